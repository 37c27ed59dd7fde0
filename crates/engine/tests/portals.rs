//! Portals: statements that send some of their rows and go on later.

mod common;

use clearway_engine::{Collected, Completion, Portal, Session, Value};
use clearway_machine::Watchdog;
use common::*;

/// Executes a statement for at most `most` rows: the portal, if there may be more.
fn execute(session: &mut Session, sql: &str, most: u32, out: &mut Collected) -> Option<Box<Portal>> {
    let prepared = session.prepare(sql, &[]).unwrap();
    portal_of(session.execute(&prepared, &[], most, out).unwrap())
}

fn portal_of(completion: Completion) -> Option<Box<Portal>> {
    match completion {
        Completion::Suspended(portal) => Some(portal),
        Completion::Complete => None,
    }
}

fn numbers(out: &Collected) -> Vec<i64> {
    out.rows.iter().map(|row| row[0].as_i64().unwrap()).collect()
}

#[test]
fn a_portal_goes_on_under_the_snapshot_it_began_with() {
    let _watchdog = Watchdog::over_test();
    let fixture = Fixture::new("create table t (id int primary key, v int)");
    let (mut alice, mut bob) = (fixture.session(), fixture.session());
    query(
        &mut alice,
        "insert into t select g, 0 from generate_series(1, 5000) g",
    );
    for (isolation, portal_sql) in [
        ("read committed", "select id from t"),
        ("read committed", "select id from t where id >= 1 order by id"),
        ("repeatable read", "select id from t"),
    ] {
        let mut out = Collected::default();
        query(&mut alice, &format!("begin isolation level {isolation}"));
        let portal = execute(&mut alice, portal_sql, 10, &mut out).expect("more rows");
        assert_eq!(out.rows.len(), 10, "{portal_sql}");
        assert!(out.tags.is_empty(), "{:?}", out.tags);
        // What other sessions commit and vacuum meanwhile, and what the transaction itself writes, is not
        // seen. Bob leaves the last thousand rows to Alice: the rows that Alice deletes are the very versions
        // that the portal is to send.
        query(&mut bob, "update t set v = v + 1 where id between 2001 and 4000");
        query(&mut bob, "delete from t where id <= 2000");
        query(&mut bob, "vacuum t");
        if isolation == "read committed" {
            assert_eq!(query(&mut alice, "select count(*) from t"), "3000");
            query(&mut alice, "delete from t where id > 4000");
        }
        query(&mut bob, "vacuum t");
        let portal = portal_of(alice.resume(portal, 100, &mut out).unwrap()).expect("more rows");
        assert_eq!(out.rows.len(), 110);
        assert!(portal_of(alice.resume(portal, 0, &mut out).unwrap()).is_none());
        assert_eq!(out.tags, ["SELECT 4890"], "{portal_sql}");
        let mut ids = numbers(&out);
        ids.sort_unstable();
        assert_eq!(ids, (1..=5000).collect::<Vec<_>>(), "{isolation}: {portal_sql}");
        query(&mut alice, "rollback");
        query(
            &mut bob,
            "insert into t select g, 0 from generate_series(1, 2000) g",
        );
    }
}

#[test]
fn a_portal_ends_with_its_transaction() {
    let _watchdog = Watchdog::over_test();
    let fixture = Fixture::new("create table t (id int)");
    let mut s = fixture.session();
    let sql = "select g from generate_series(1, 100) g";
    let mut out = Collected::default();
    // An implicit transaction ends at Sync.
    let portal = execute(&mut s, sql, 5, &mut out).unwrap();
    s.sync().unwrap();
    let error = s.resume(portal, 5, &mut out).unwrap_err();
    assert_eq!(error.sqlstate().as_str(), "34000");
    // A block ends at COMMIT, and the next one is another.
    query(&mut s, "begin");
    let portal = execute(&mut s, sql, 5, &mut out).unwrap();
    query(&mut s, "commit");
    query(&mut s, "begin");
    let error = s.resume(portal, 5, &mut out).unwrap_err();
    assert_eq!(error.sqlstate().as_str(), "34000");
    query(&mut s, "rollback");
    // One that has failed takes nothing but its end.
    query(&mut s, "begin");
    let portal = execute(&mut s, sql, 5, &mut out).unwrap();
    assert_eq!(run(&mut s, "select 1 / 0"), "ERROR 22012");
    let error = s.resume(portal, 5, &mut out).unwrap_err();
    assert_eq!(error.sqlstate().as_str(), "25P02");
    assert_eq!(out.rows.len(), 15);
}

#[test]
fn a_statement_that_writes_has_written_all_before_its_first_row() {
    let _watchdog = Watchdog::over_test();
    let fixture = Fixture::new("create table t (id int)");
    let mut s = fixture.session();
    query(&mut s, "begin; set local work_mem = '64kB'");
    let mut out = Collected::default();
    let sql = "insert into t select g from generate_series(1, 20000) g returning id";
    let mut portal = execute(&mut s, sql, 3, &mut out);
    assert_eq!(query(&mut s, "select count(*) from t"), "20000");
    while let Some(suspended) = portal {
        portal = portal_of(s.resume(suspended, 7_000, &mut out).unwrap());
    }
    assert_eq!(numbers(&out), (1..=20_000).collect::<Vec<_>>());
    assert_eq!(out.tags, ["INSERT 0 5997"]);
}

#[test]
fn portions_of_every_size_make_the_whole() {
    let _watchdog = Watchdog::over_test();
    let fixture = Fixture::new("create table t (id int primary key, v int)");
    let mut s = fixture.session();
    query(
        &mut s,
        "insert into t select g, g % 7 from generate_series(1, 50) g",
    );
    for sql in [
        "select id from t",
        "select id from t where id between 5 and 45",
        "select id from t where id = 7",
        "select id from t order by v desc, id",
        "select id from t order by v limit 20 offset 3",
        "select distinct v from t",
        "select v, count(*) from t group by v",
        "select count(*) from t",
        "select id from t order by id desc for update",
        "select 1",
        "select g from generate_series(1, 50) g where g % 2 = 0 limit 20",
        "explain select * from t",
        "update t set v = v returning id",
    ] {
        let mut whole = Collected::default();
        let prepared = s.prepare(sql, &[]).unwrap();
        s.execute(&prepared, &[], 0, &mut whole).unwrap();
        s.sync().unwrap();
        for most in [1, 2, 7, 49, 50, 51] {
            let mut out = Collected::default();
            let mut portal = portal_of(s.execute(&prepared, &[], most, &mut out).unwrap());
            let mut portions = 1;
            while let Some(suspended) = portal {
                assert_eq!(out.rows.len(), portions * most as usize, "{sql}");
                portal = portal_of(s.resume(suspended, most, &mut out).unwrap());
                portions += 1;
            }
            assert_eq!(out.rows, whole.rows, "{sql} in portions of {most}");
            s.sync().unwrap();
        }
    }
}

#[test]
fn a_suspended_portal_can_be_cancelled_and_times_out() {
    let _watchdog = Watchdog::over_test();
    let fixture = Fixture::new("");
    let mut s = fixture.session();
    query(&mut s, "set statement_timeout = '1s'");
    let mut out = Collected::default();
    let portal = execute(
        &mut s,
        "select g from generate_series(1, 2000000000) g where g % 1000 = 0",
        1,
        &mut out,
    );
    // Time between two portions does not count, time in one does.
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    let portal = portal_of(s.resume(portal.unwrap(), 1, &mut out).unwrap());
    let error = s
        .resume(portal.unwrap(), 0, &mut clearway_engine::Discard::default())
        .unwrap_err();
    assert_eq!(error.sqlstate().as_str(), "57014");
    assert_eq!(out.rows, [[Value::Int4(1_000)], [Value::Int4(2_000)]]);
}
