//! Roles: who may log in, what a restart finds, and what is not shown.

use clearway_engine::{Collected, Engine, EngineError, Session, SessionInfo};
use std::sync::Arc;

use crate::common::{Fixture, config, error, query, run};

fn log_in(engine: &Arc<Engine>, user: &str) -> Result<Session, EngineError> {
    engine.session(SessionInfo {
        user: user.to_owned(),
        ..SessionInfo::default()
    })
}

/// The SQLSTATE and the message by which a login is refused.
fn refused(engine: &Arc<Engine>, user: &str) -> (String, String) {
    let error = log_in(engine, user).expect_err(user);
    (error.sqlstate().as_str().to_owned(), error.message().to_owned())
}

#[test]
fn the_first_statement_about_roles_closes_an_open_directory() {
    let fixture = Fixture::new("create table t (a int)");
    let mut alice = log_in(&fixture.engine, "alice").unwrap();
    assert_eq!(
        query(&mut alice, "select current_user, usesuper from pg_user"),
        "alice|t"
    );
    assert!(log_in(&fixture.engine, "anyone").is_ok(), "it is open");

    run(&mut alice, "begin");
    run(&mut alice, "create role bob login connection limit 1");
    run(&mut alice, "rollback");
    assert!(log_in(&fixture.engine, "anyone").is_ok(), "it is open again");

    run(
        &mut alice,
        "create role bob login connection limit 1; create role crew",
    );
    let state = "28000".to_owned();
    assert_eq!(
        refused(&fixture.engine, "anyone"),
        (state.clone(), "role \"anyone\" does not exist".to_owned())
    );
    assert_eq!(
        refused(&fixture.engine, "crew"),
        (state, "role \"crew\" is not permitted to log in".to_owned())
    );
    let mut bob = log_in(&fixture.engine, "bob").unwrap();
    assert_eq!(refused(&fixture.engine, "bob").0, "53300");
    assert_eq!(
        error(&mut bob, "select * from t").message(),
        "permission denied for table t"
    );
    assert_eq!(query(&mut bob, "select current_setting('is_superuser')"), "off");
    run(&mut alice, "revoke connect on database postgres from public");
    drop(bob);
    assert_eq!(refused(&fixture.engine, "bob").0, "42501");
    assert!(log_in(&fixture.engine, "alice").is_ok(), "a superuser may always");
}

#[test]
fn roles_and_grants_are_there_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Engine::open(directory.path(), config()).unwrap();
    let mut admin = log_in(&engine, "admin").unwrap();
    for sql in [
        "create role crew; create role bob login password 'secret' in role crew",
        "alter role bob set work_mem = '3MB'",
        "create table t (a int, b int); create table u (a int); create schema s authorization bob",
        "grant select (b) on t to bob; grant insert on u to crew; grant create on database postgres to bob",
        "alter table u owner to crew",
    ] {
        run(&mut admin, sql);
    }
    let told =
        "select relname, relowner::regrole, relacl from pg_class where relname in ('t', 'u') order by 1";
    let before = query(&mut admin, told);
    drop(admin);
    engine.shutdown().unwrap();
    drop(engine);

    let engine = Engine::open(directory.path(), config()).unwrap();
    let mut admin = log_in(&engine, "admin").unwrap();
    assert_eq!(query(&mut admin, told), before);
    assert_eq!(refused(&engine, "other").0, "28000");
    assert_eq!(
        query(
            &mut admin,
            "select rolname, rolpassword like 'SCRAM-SHA-256$%' from pg_authid where oid >= 16384 order by 1"
        ),
        "bob|t, crew|"
    );
    let mut bob = log_in(&engine, "bob").unwrap();
    for (sql, answer) in [
        ("show work_mem", "3MB"),
        ("select b from t", ""),
        ("select count(*) from u", "0"),
        (
            "select datacl from pg_database",
            "{=Tc/admin,admin=CTc/admin,bob=C/admin}",
        ),
        (
            "select nspowner::regrole from pg_namespace where nspname = 's'",
            "bob",
        ),
    ] {
        assert_eq!(query(&mut bob, sql), answer, "{sql}");
    }
    assert_eq!(run(&mut bob, "create schema mine"), "CREATE SCHEMA");
    assert_eq!(run(&mut bob, "select a from t"), "ERROR 42501");
}

#[test]
fn a_password_is_not_shown_and_neither_is_what_others_do() {
    let fixture = Fixture::new("");
    let mut admin = log_in(&fixture.engine, "admin").unwrap();
    run(&mut admin, "create role bob login; create role eve login");
    run(&mut admin, "alter role bob password 'swordfish'");
    let shown = "select query from pg_stat_activity where usename = 'admin'";
    let mut superuser = log_in(&fixture.engine, "admin").unwrap();
    let seen = query(&mut superuser, shown);
    assert!(
        seen.contains("password '********'") && !seen.contains("swordfish"),
        "{seen}"
    );
    let mut eve = log_in(&fixture.engine, "eve").unwrap();
    assert_eq!(
        query(
            &mut eve,
            "select distinct query, state from pg_stat_activity where usename = 'admin'"
        ),
        "<insufficient privilege>|"
    );
    run(&mut admin, "grant pg_read_all_stats to eve");
    assert!(query(&mut eve, shown).contains("grant pg_read_all_stats"));
    for sql in [
        "select pg_reload_conf()",
        "select pg_promote()",
        "select pg_wal_replay_pause()",
        "select pg_wal_replay_resume()",
        "select pg_switch_wal()",
        "select passwd from pg_shadow",
    ] {
        assert_eq!(run(&mut eve, sql), "ERROR 42501", "{sql}");
    }
}

#[test]
fn a_renamed_role_stays_the_sessions_and_a_rollback_takes_set_role_back() {
    let fixture = Fixture::new("");
    let mut admin = log_in(&fixture.engine, "admin").unwrap();
    run(&mut admin, "create role bob login");
    let mut bob = log_in(&fixture.engine, "bob").unwrap();
    run(&mut admin, "alter role bob rename to robert");
    assert_eq!(query(&mut bob, "select current_user"), "robert");
    for (sql, user) in [
        ("begin; set role robert", "robert"),
        ("rollback", "admin"),
        ("begin; set local role robert", "robert"),
        ("commit", "admin"),
        ("begin; set role robert; savepoint a; reset role", "admin"),
        ("rollback to a; commit", "robert"),
        ("reset all", "robert"),
        ("discard all", "admin"),
        ("set session authorization robert", "robert"),
        ("set session authorization default", "admin"),
    ] {
        run(&mut admin, sql);
        assert_eq!(query(&mut admin, "select current_user"), user, "after {sql}");
    }
}

/// Tables of others are left out, with a warning.
#[test]
fn a_visitor_vacuums_nothing() {
    let fixture = Fixture::new("create table t (x int); create role visitor");
    let mut visitor = fixture.session();
    run(&mut visitor, "set role visitor");
    for (sql, text) in [
        (
            "vacuum t",
            "skipping \"t\" --- only table or database owner can vacuum it",
        ),
        (
            "analyze t",
            "skipping \"t\" --- only table or database owner can analyze it",
        ),
    ] {
        let mut out = Collected::default();
        visitor.execute_simple(sql, &mut out).unwrap();
        let told: Vec<&str> = out.notices.iter().map(|notice| &*notice.message).collect();
        assert_eq!(told, [text]);
    }
}

/// An error on a row is no way to read what the role may not: of the row it shows columns that the role may read or has
/// given a value, of a key all or nothing.
#[test]
fn an_error_shows_no_value_that_the_role_may_not_read() {
    let fixture = Fixture::new("");
    let mut admin = log_in(&fixture.engine, "admin").unwrap();
    for sql in [
        "create table account (id int primary key, owner text not null, secret int check (secret < 100), code int unique, \
             twice int generated always as (secret * 2) stored)",
        "create unique index on account (lower(owner))",
        "create table note (account int references account)",
        "insert into account values (1, 'ann', 7, 70), (2, 'ben', 8, 80)",
        "create role clerk login",
        "grant select (id), insert (id, owner, secret, code), update (owner, code), delete on account to clerk",
        "grant insert on note to clerk",
        "insert into note values (1)",
    ] {
        run(&mut admin, sql);
    }
    let mut clerk = log_in(&fixture.engine, "clerk").unwrap();
    for (sql, state, detail) in [
        ("update account set code = 80 where id = 1", "23505", None),
        (
            "insert into account (id, owner) values (1, 'eve')",
            "23505",
            Some("Key (id)=(1) already exists."),
        ),
        ("insert into account (id, owner) values (3, 'BEN')", "23505", None),
        (
            "update account set owner = null where id = 1",
            "23502",
            Some("Failing row contains (id, owner) = (1, null)."),
        ),
        // What another part of the statement gives a value is as it was in this row.
        (
            "with i as (insert into account (id, owner, secret) select 9, 'eve', 9 where false) \
                 update account set owner = null where id = 1",
            "23502",
            Some("Failing row contains (id, owner) = (1, null)."),
        ),
        (
            "with u as (update account set code = 9 where false) update account set owner = null where id = 1",
            "23502",
            Some("Failing row contains (id, owner) = (1, null)."),
        ),
        (
            "insert into account (id, owner, secret) values (1, 'eve', 9) on conflict (id) do update set owner = null",
            "23502",
            Some("Failing row contains (id, owner) = (1, null)."),
        ),
        (
            "merge into account using (values (1)) s (n) on id = n when matched then update set owner = null \
                 when not matched then insert (id, owner, secret) values (n, 'eve', 9)",
            "23502",
            Some("Failing row contains (id, owner) = (1, null)."),
        ),
        (
            "merge into account using (values (3)) s (n) on id = n when matched then update set owner = null \
                 when not matched then insert (id, secret) values (n, 9)",
            "23502",
            Some("Failing row contains (id, secret) = (3, 9)."),
        ),
        (
            "insert into account (owner, secret) values ('eve', 100)",
            "23502",
            Some("Failing row contains (id, owner, secret) = (null, eve, 100)."),
        ),
        (
            "insert into account (id, owner, secret) values (3, 'eve', 100)",
            "23514",
            Some("Failing row contains (id, owner, secret) = (3, eve, 100)."),
        ),
        (
            "insert into note values (9)",
            "23503",
            Some("Key is not present in table \"account\"."),
        ),
        (
            "delete from account where id = 1",
            "23503",
            Some("Key (id)=(1) is still referenced from table \"note\"."),
        ),
    ] {
        let error = error(&mut clerk, sql);
        assert_eq!(
            (error.sqlstate().as_str(), error.detail()),
            (state, detail),
            "{sql}"
        );
    }
    run(&mut admin, "grant select on account to clerk");
    for (sql, detail) in [
        (
            "update account set code = 80 where id = 1",
            "Key (code)=(80) already exists.",
        ),
        (
            "insert into account (id, owner) values (3, 'BEN')",
            "Key (lower(owner))=(ben) already exists.",
        ),
        (
            "update account set owner = null where id = 1",
            "Failing row contains (1, null, 7, 70, 14).",
        ),
    ] {
        assert_eq!(error(&mut clerk, sql).detail(), Some(detail), "{sql}");
    }
}

/// Views of the catalog have values of rows and of sequences in them, too.
#[test]
fn a_view_of_the_system_shows_no_value_that_the_role_may_not_read() {
    let fixture = Fixture::new("");
    let mut admin = log_in(&fixture.engine, "admin").unwrap();
    for sql in [
        "create table account (id int, secret int)",
        "insert into account select n, 777 from generate_series(1, 100) n",
        "analyze account",
        "create sequence tickets",
        "select nextval('tickets')",
        "create role clerk login",
    ] {
        run(&mut admin, sql);
    }
    let mut clerk = log_in(&fixture.engine, "clerk").unwrap();
    let columns = "select attname, most_common_vals from pg_stats where tablename = 'account' order by 1";
    let numbers = "select last_value from pg_sequences";
    assert_eq!(query(&mut admin, columns), "id|, secret|{777}");
    assert_eq!(query(&mut admin, numbers), "1");
    assert_eq!(
        (query(&mut clerk, columns), query(&mut clerk, numbers)),
        Default::default()
    );
    run(
        &mut admin,
        "grant select (id) on account to clerk; grant usage on sequence tickets to clerk",
    );
    assert_eq!(query(&mut clerk, columns), "id|");
    assert_eq!(query(&mut clerk, numbers), "1");
    run(&mut admin, "grant select on account to clerk");
    assert_eq!(query(&mut clerk, columns), "id|, secret|{777}");
}
