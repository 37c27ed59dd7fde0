//! `pg_stat_statements`: what statements take, by their text without constants.

use clearway_engine::{Collected, Completion, Session, Value};

use crate::common::{Fixture, config, error, query, run};
use crate::shop;

/// A session whose statements are counted from now on.
fn counted(fixture: &Fixture) -> Session {
    let mut s = fixture.session();
    query(&mut s, "set pg_stat_statements.track = top");
    query(&mut s, "select pg_stat_statements_reset()");
    s
}

/// Columns of the statement whose text begins so; `none` if it is not there.
fn of(s: &mut Session, columns: &str, begin: &str) -> String {
    query(
        s,
        &format!("select {columns} from pg_stat_statements where query like '{begin}%' order by 1"),
    )
}

#[test]
fn statements_are_counted_by_their_texts_without_constants() {
    let fixture = shop();
    let mut s = counted(&fixture);
    for id in [1, 2, 3, 4] {
        query(&mut s, &format!("select name from items where id = {id}"));
    }
    query(&mut s, "SELECT name FROM items  WHERE id = 1;");
    run(&mut s, "update items set stock = 5 where id < 3");
    assert_eq!(
        of(&mut s, "query, calls, rows", "select name"),
        "select name from items where id = $1|5|4"
    );
    assert_eq!(
        of(
            &mut s,
            "query, calls, rows, wal_records > 0, wal_bytes > 100",
            "update items"
        ),
        "update items set stock = $1 where id < $2|1|2|t|t"
    );
    // The view's own statement is counted when it has ended.
    assert_eq!(of(&mut s, "count(*)", "select count"), "0");
    assert_eq!(of(&mut s, "calls", "select count"), "1");
    // Failures, and sessions that are not counted, leave nothing.
    error(&mut s, "select 1 / (id - id) from items");
    let mut other = fixture.session();
    query(&mut other, "select stock from items");
    assert_eq!(of(&mut s, "count(*)", "select 1 /"), "0");
    assert_eq!(of(&mut s, "count(*)", "select stock"), "0");
    query(&mut s, "set pg_stat_statements.track = none");
    query(&mut s, "select name from items where id = 1");
    assert_eq!(of(&mut s, "calls", "select name"), "5");
}

#[test]
fn times_pages_and_log_are_those_of_the_calls() {
    let fixture = Fixture::with_config(
        "create table t (id int primary key, v text);
         insert into t select g, repeat('x', 400) from generate_series(1, 4000) g; analyze t",
        clearway_engine::Config {
            shared_buffers: "1MB".parse().unwrap(),
            autovacuum: false,
            ..config()
        },
    );
    let mut s = counted(&fixture);
    let blocks = query(&mut s, "select pg_relation_size('t') / 8192");
    for seconds in ["0.01", "0.03"] {
        query(&mut s, &format!("select count(v), pg_sleep({seconds}) from t"));
    }
    // Times are at least what was slept; nothing is said of how much longer it took.
    assert_eq!(
        of(
            &mut s,
            "calls, min_exec_time >= 10, max_exec_time >= 30, total_exec_time >= 40, mean_exec_time = total_exec_time / 2, \
             round(stddev_exec_time::numeric, 3) = round(((max_exec_time - min_exec_time) / 2)::numeric, 3)",
            "select count(v), pg_sleep"
        ),
        "2|t|t|t|t|t"
    );
    assert_eq!(
        of(
            &mut s,
            &format!("shared_blks_hit + shared_blks_read = 2 * {blocks}, shared_blks_read > 0, wal_records"),
            "select count(v), pg_sleep"
        ),
        "t|t|0"
    );
    // Root, leaf and row are found in memory, without a pin. The first call finds out where the root is.
    query(&mut s, "select v from t where id = 77");
    query(&mut s, "select pg_stat_statements_reset()");
    query(&mut s, "select v from t where id = 77");
    query(&mut s, "select v from t where id = 77");
    assert_eq!(
        of(
            &mut s,
            "shared_blks_hit, shared_blks_read",
            "select v from t where"
        ),
        "6|0"
    );
    query(&mut s, "checkpoint");
    run(&mut s, "update t set v = 'y' where id = 77");
    assert_eq!(
        of(
            &mut s,
            "wal_fpi >= 1, shared_blks_dirtied >= 1, wal_bytes > 100",
            "update t"
        ),
        "t|t|t"
    );
    query(&mut s, "set work_mem = '64kB'");
    query(&mut s, "select v from t order by v, id desc offset 3999");
    assert_eq!(
        of(
            &mut s,
            "temp_blks_read > 0, temp_blks_written > 0",
            "select v from t order"
        ),
        "t|t"
    );
    assert_eq!(
        of(
            &mut s,
            "plans is null, total_plan_time is null, blk_read_time is null, jit_functions",
            "select v from t where"
        ),
        "t|t|t|0"
    );
}

#[test]
fn prepared_statements_portals_and_execute_are_calls() {
    let fixture = shop();
    let mut s = counted(&fixture);
    let mut out = Collected::default();
    let find = s.prepare("select id from items where id > $1", &[]).unwrap();
    for id in [0, 2] {
        s.execute(&find, &[Value::Int4(id)], 0, &mut out).unwrap();
        s.sync().unwrap();
    }
    assert_eq!(
        of(&mut s, "query, calls, rows", "select id"),
        "select id from items where id > $1|2|4"
    );
    // A portal that sends its rows in parts is one call.
    run(&mut s, "begin");
    let mut completion = s.execute(&find, &[Value::Int4(0)], 1, &mut out).unwrap();
    while let Completion::Suspended(portal) = completion {
        completion = s.resume(portal, 1, &mut out).unwrap();
    }
    s.bind_portal("p", &find, vec![Value::Int4(0)]).unwrap();
    while s.execute_portal("p", 2, &mut out).unwrap() {}
    run(&mut s, "commit");
    assert_eq!(of(&mut s, "calls, rows", "select id"), "4|10");
    run(
        &mut s,
        "prepare stocked as select name from items where stock > $1",
    );
    run(&mut s, "execute stocked(50)");
    run(&mut s, "execute stocked (10 + 40)");
    assert_eq!(of(&mut s, "calls, rows", "select name"), "2|2");
    assert_eq!(of(&mut s, "count(*)", "execute"), "0");
    // The session runs the statement that is counted; also one whose rows are sent in parts.
    assert_eq!(of(&mut s, "count(*)", "prepare"), "1");
    let watching = "prepare watching as select (select s.query from pg_stat_statements s where s.queryid = a.query_id) \
                    from pg_stat_activity a where $1 and query like 'execute%'";
    run(&mut s, watching);
    run(&mut s, "execute watching(true)");
    assert!(query(&mut s, "execute watching(true)").starts_with("select (select s.query"));
    let execute = s.prepare("execute stocked(0)", &[]).unwrap();
    let mut completion = s.execute(&execute, &[], 1, &mut out).unwrap();
    while let Completion::Suspended(portal) = completion {
        completion = s.resume(portal, 1, &mut out).unwrap();
    }
    s.sync().unwrap();
    assert_eq!(of(&mut s, "calls, rows", "select name"), "3|4");
    assert_eq!(of(&mut s, "count(*)", "execute"), "0");
    // The entry is looked up anew after a reset.
    query(&mut s, "select pg_stat_statements_reset()");
    s.execute(&find, &[Value::Int4(0)], 0, &mut out).unwrap();
    s.sync().unwrap();
    assert_eq!(of(&mut s, "calls, rows", "select id"), "1|3");
}

#[test]
fn a_role_sees_its_own_statements_and_only_superusers_reset() {
    let fixture = shop();
    let mut s = counted(&fixture);
    query(&mut s, "select 'mine'");
    query(&mut s, "create role joe login");
    query(&mut s, "set role joe");
    query(&mut s, "select 'his', 2");
    assert_eq!(
        of(&mut s, "query, queryid is null", "select $1,"),
        "select $1, $2|f"
    );
    assert_eq!(
        query(
            &mut s,
            "select count(*) > 0, count(queryid) from pg_stat_statements where query = '<insufficient privilege>'"
        ),
        "t|0"
    );
    for (sql, code) in [
        ("select pg_stat_statements_reset()", "42501"),
        ("set pg_stat_statements.track = none", "42501"),
        ("set pg_stat_statements.max = 10", "55P02"),
    ] {
        assert_eq!(error(&mut s, sql).sqlstate().as_str(), code, "{sql}");
    }
    query(&mut s, "reset role");
    // Of one role, then of one statement, then all.
    query(
        &mut s,
        "select pg_stat_statements_reset((select oid from pg_roles where rolname = 'joe'), 0, 0)",
    );
    assert_eq!(of(&mut s, "count(*)", "select $1, $2"), "0");
    assert_eq!(of(&mut s, "count(*)", "select $1"), "1");
    query(
        &mut s,
        "select pg_stat_statements_reset(0, 0, queryid) from pg_stat_statements where query = 'select $1'",
    );
    assert_eq!(of(&mut s, "count(*)", "select $1"), "0");
    let before = query(&mut s, "select stats_reset from pg_stat_statements_info");
    query(&mut s, "select pg_stat_statements_reset()");
    assert_ne!(
        query(&mut s, "select stats_reset from pg_stat_statements_info"),
        before
    );
}

#[test]
fn there_are_no_more_statements_than_the_setting_says() {
    let config =
        clearway_engine::Config::from_toml("pg_stat_statements = { max = 100, track = \"top\" }").unwrap();
    let fixture = Fixture::with_config(
        "create table t (a int)",
        clearway_engine::Config {
            pg_stat_statements: config.pg_stat_statements,
            ..crate::common::config()
        },
    );
    let mut s = fixture.session();
    assert_eq!(query(&mut s, "show pg_stat_statements.max"), "100");
    for number in 0..150 {
        query(&mut s, &format!("select a as a{number} from t"));
    }
    let told = query(
        &mut s,
        "select count(*) between 90 and 100, (select dealloc > 0 from pg_stat_statements_info) from pg_stat_statements",
    );
    assert_eq!(told, "t|t");
    assert_eq!(of(&mut s, "count(*)", "select a as a149 "), "1");
    assert_eq!(of(&mut s, "count(*)", "select a as a0 "), "0");
}

#[test]
fn activity_has_the_number_of_the_statement() {
    let fixture = shop();
    let mut s = counted(&fixture);
    let mut waiting = fixture.session();
    let own = "select query_id is not null from pg_stat_activity where pid = pg_backend_pid()";
    assert_eq!(query(&mut waiting, own), "f");
    query(&mut waiting, "set pg_stat_statements.track = top");
    query(&mut waiting, "select name from items where id = 2");
    let same = "select count(*) from pg_stat_activity a join pg_stat_statements s on s.queryid = a.query_id \
                where a.query like 'select name%' and s.query = 'select name from items where id = $1'";
    assert_eq!(query(&mut s, same), "1");
    query(&mut waiting, "set pg_stat_statements.track = none");
    query(&mut waiting, "select stock from items where id = 2");
    let untold = "select query_id is null from pg_stat_activity where query like 'select stock%' and pid <> pg_backend_pid()";
    assert_eq!(query(&mut s, untold), "t");
}

#[test]
fn the_extension_is_there() {
    let fixture = shop();
    let mut s = fixture.session();
    assert_eq!(
        query(&mut s, "select extname, extversion from pg_extension"),
        "pg_stat_statements|1.10"
    );
    assert_eq!(
        query(
            &mut s,
            "select name, installed_version from pg_available_extensions"
        ),
        "pg_stat_statements|1.10"
    );
    let refused = error(&mut s, "create extension pg_stat_statements");
    assert_eq!(
        (refused.sqlstate().as_str(), refused.message()),
        ("42710", "extension \"pg_stat_statements\" already exists")
    );
    assert_eq!(
        run(
            &mut s,
            "create extension if not exists pg_stat_statements with schema public"
        ),
        "CREATE EXTENSION"
    );
    assert_eq!(
        error(&mut s, "create extension hstore").sqlstate().as_str(),
        "0A000"
    );
}
