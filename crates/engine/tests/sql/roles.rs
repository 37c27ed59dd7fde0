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
