//! Restarts and the promotion.

use std::time::Duration;

use clearway_engine::{Collected, Completion, Engine, SessionInfo};

use crate::common::{error, query, run};
use crate::pair::Pair;

const SETUP: &str = "create table t (id serial primary key, x int);
    insert into t (x) select g from generate_series(1, 50) g";

const UNFINISHED: &str =
    "begin; insert into t (x) values (100000); create table unfinished (id serial primary key, x int)";

const ALL: &str = "select count(*), sum(id), sum(x) from t";

/// Rows, definitions, transactions under way: a standby goes on where it was, closed in order or killed.
#[test]
fn a_standby_goes_on_after_a_restart() {
    let mut pair = Pair::new(SETUP);
    for in_order in [true, false, true, false] {
        let mut open = pair.writer();
        run(&mut open, "begin; insert into t (x) values (1000)");
        pair.write("insert into t (x) select g from generate_series(1, 200) g");
        pair.write("create table u (id int primary key); insert into u values (1)");
        pair.write("drop table u");
        pair.primary.checkpoint().unwrap();
        pair.write("update t set x = x + 1 where id < 20");
        pair.catch_up();
        let before = query(&mut pair.reader(), ALL);
        if in_order {
            pair.standby().checkpoint().unwrap();
        }
        pair.write("create table w (id int); insert into w values (1); drop table w");
        pair.close_standby(in_order);
        pair.write("insert into t (x) values (7)");
        pair.open_standby();
        let reader = &mut pair.reader();
        assert_ne!(query(reader, ALL), "", "it reads at once");
        pair.catch_up();
        assert_ne!(query(reader, ALL), before);
        run(&mut open, "commit");
        pair.catch_up();
        assert_eq!(query(reader, ALL), query(&mut pair.writer(), ALL));
    }
}

/// A transaction that has changed definitions before a checkpoint, from which on the standby replays when it is opened
/// again, and that commits afterwards: its record of the commit is all that the standby meets of it then.
#[test]
fn definitions_of_before_a_restart_arrive() {
    let mut pair = Pair::new(SETUP);
    let mut open = pair.writer();
    run(&mut open, "begin; create table late (id int); truncate t");
    pair.primary.checkpoint().unwrap();
    pair.catch_up();
    pair.standby().checkpoint().unwrap();
    pair.close_standby(true);
    pair.open_standby();
    pair.catch_up();
    assert_eq!(query(&mut pair.reader(), "select count(*) from t"), "50");
    run(&mut open, "commit");
    pair.catch_up();
    assert_eq!(query(&mut pair.reader(), "select count(*) from late"), "0");
    assert_eq!(query(&mut pair.reader(), "select count(*) from t"), "0");
    let rels = |engine: &Engine| engine.storage().list_rels().unwrap();
    assert_eq!(rels(pair.standby()), rels(&pair.primary));
}

/// A log that is cut off at any place, and a standby that is opened with what it has.
#[test]
fn a_standby_reads_what_it_has() {
    let mut pair = Pair::new(SETUP);
    pair.catch_up();
    pair.cut();
    let before = query(&mut pair.reader(), ALL);
    pair.write("insert into t (x) values (1)");
    assert_eq!(query(&mut pair.reader(), ALL), before);
    pair.close_standby(false);
    let alone = Engine::open_standby(pair.standby_dir(), pair.config().clone()).unwrap();
    assert_eq!(
        query(&mut alone.session(SessionInfo::default()).unwrap(), ALL),
        before
    );
    alone.shutdown().unwrap();
    drop(alone);
    pair.open_standby();
    pair.catch_up();
    assert_eq!(query(&mut pair.reader(), ALL), query(&mut pair.writer(), ALL));
}

/// The old primary is lost. What had committed is there, what was under way is not, and neither are its files; sessions
/// go on, those in the middle of reading too; then the new primary starts as one.
#[test]
fn a_standby_becomes_a_primary() {
    let mut pair = Pair::new(SETUP);
    let mut open = pair.writer();
    pair.write("create table moved (id int)");
    // Its definition is the same afterwards, and its row is another one.
    pair.write(
        "begin; alter table moved set (fillfactor = 50); alter table moved set (fillfactor = 100); commit",
    );
    run(&mut open, UNFINISHED);
    pair.write("update t set x = x + 1");
    pair.catch_up();
    pair.cut();
    let unfinished = pair.standby().storage().list_rels().unwrap();

    let mut reader = pair.reader();
    let all = reader.prepare("select x from t", &[]).unwrap();
    run(&mut reader, "begin isolation level repeatable read");
    let mut out = Collected::default();
    let Completion::Suspended(portal) = reader.execute(&all, &[], 3, &mut out).unwrap() else {
        panic!("all rows came at once");
    };
    let mut idle = pair.reader();
    assert_eq!(error(&mut idle, "delete from t").sqlstate().as_str(), "25006");

    let (timeline, _) = pair.standby().promote("a test").unwrap();
    assert_eq!(timeline, 2);
    assert_eq!(
        pair.standby().promote("again").unwrap_err().sqlstate().as_str(),
        "55000"
    );

    // The one in the middle sees what it saw, and stays read only.
    run(&mut idle, "update t set x = -1 where id <= 10");
    reader.resume(portal, 0, &mut out).unwrap();
    assert_eq!(out.rows.len(), 50);
    assert_eq!(query(&mut reader, "select sum(x) from t"), "1325");
    assert_eq!(error(&mut reader, "delete from t").sqlstate().as_str(), "25006");
    run(&mut reader, "rollback");

    for (name, value) in [("in_hot_standby", "off"), ("transaction_read_only", "off")] {
        assert_eq!(query(&mut reader, &format!("show {name}")), value);
    }
    // Numbers of a serial column are not given out twice.
    let inserted = query(&mut reader, "insert into t (x) values (5) returning id > 50");
    assert_eq!(inserted, "t");
    run(
        &mut reader,
        "create table made (id int primary key); insert into made values (1)",
    );
    let sql = "create index t_x on t (x); drop table made; alter table moved set (fillfactor = 70)";
    assert!(!run(&mut reader, sql).contains("ERROR"));
    for sql in ["vacuum", "checkpoint"] {
        assert!(!run(&mut reader, sql).contains("ERROR"));
    }
    assert_eq!(
        error(&mut reader, "select * from unfinished").sqlstate().as_str(),
        "42P01"
    );
    let left = pair.standby().storage().list_rels().unwrap();
    let gone = unfinished.iter().filter(|rel| !left.contains(rel)).count();
    assert_eq!(
        gone, 3,
        "the unfinished table, its index and its sequence: {unfinished:?}, {left:?}"
    );
    let rows = query(&mut reader, ALL);
    drop((reader, idle));
    pair.close_standby(true);

    let again = Engine::open(pair.standby_dir(), pair.config().clone()).unwrap();
    assert!(!again.is_standby());
    let mut session = again.session(SessionInfo::default()).unwrap();
    assert_eq!(query(&mut session, ALL), rows);
    assert_eq!(query(&mut session, "select count(*) from t where x = -1"), "10");
    let report = again.check().unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    drop(session);
    again.shutdown().unwrap();
}

/// A promotion does not wait for reports: replay has a way to go, and a session is in its way.
#[test]
fn a_promotion_cancels_what_is_in_its_way() {
    let mut pair = Pair::new(SETUP);
    pair.catch_up();
    let mut reader = pair.reader();
    run(&mut reader, "begin isolation level repeatable read");
    query(&mut reader, "select count(*) from t");
    pair.write("truncate t");
    let end = pair.logged();
    assert!(!pair.has_replayed(end, Duration::from_millis(200)));
    let received = || pair.standby().storage().standby().unwrap().received() >= end;
    crate::pair::wait_until("all was received", received);
    pair.cut();
    pair.standby().promote("a test").unwrap();
    assert_eq!(
        error(&mut reader, "select count(*) from t").sqlstate().as_str(),
        "40001"
    );
    run(&mut reader, "rollback");
    assert_eq!(query(&mut reader, "select count(*) from t"), "0");
    run(&mut reader, "insert into t (x) values (1)");
}
