//! A commit, stopped in the middle.

use std::sync::Arc;
use std::time::Duration;

use clearway_storage::{CommitWait, Publish};

use crate::{Collected, Config, Engine, Session, SessionInfo, Value};

fn engine(directory: &tempfile::TempDir) -> Arc<Engine> {
    let config = Config {
        shared_buffers: "16MB".parse().unwrap(),
        fsync: false,
        ..Config::default()
    };
    Engine::open(directory.path(), config).unwrap()
}

fn rows(session: &mut Session, sql: &str) -> Vec<Vec<Value>> {
    let mut out = Collected::default();
    session.execute_simple(sql, &mut out).unwrap();
    out.rows
}

/// Alice changes an indexed value and makes the index in one transaction, which stops when its definitions
/// are published and its id still runs. Bob's statement plans with the index, which leads from 2 to the row;
/// a snapshot taken then would show Bob the row as it was, with 1.
///
/// Caught with it: `take_snapshot_for` that compares only the snapshots it has kept.
fn read_by_an_index_whose_commit_is_under_way(begin: &str) {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(&directory);
    let mut alice = engine.session(SessionInfo::default()).unwrap();
    for sql in [
        "create table t (id int primary key, x int)",
        "insert into t values (1, 1)",
        "begin",
        "update t set x = 2 where id = 1",
        "create index t_x on t (x)",
    ] {
        rows(&mut alice, sql);
    }
    let xid = alice.txn.xid.unwrap();
    let overlay = alice.txn.overlay.take().unwrap();
    let mut bob = engine.session(SessionInfo::default()).unwrap();
    let process_id = bob.cancel_key().0;
    let begin = begin.to_owned();
    let waits_for_a_lock = || {
        let activity = engine.activity();
        let bob = activity.iter().find(|session| session.process_id == process_id);
        bob.is_some_and(|bob| bob.wait_event_type == Some("Lock"))
    };
    let mut reading = None;
    let publish = || {
        engine.catalog.publish(overlay);
        let reader = std::thread::spawn(move || {
            rows(&mut bob, &begin);
            rows(&mut bob, "select id, x from t where x = 2")
        });
        // The reader waits or has an answer; neither depends on how long this takes.
        while !reader.is_finished() && !waits_for_a_lock() {
            std::thread::sleep(Duration::from_millis(1));
        }
        reading = Some(reader);
    };
    engine
        .storage
        .commit_and_publish(alice.txn.proc, xid, CommitWait::Nothing, Publish::new(publish))
        .unwrap();
    alice.txn.forget();
    let rows = reading.unwrap().join().unwrap();
    assert_eq!(rows, [[Value::Int4(1), Value::Int4(2)]]);
}

#[test]
fn a_new_index_is_read_under_a_snapshot_that_sees_its_commit() {
    read_by_an_index_whose_commit_is_under_way("select 1");
}

#[test]
fn so_it_is_by_the_first_statement_of_repeatable_read() {
    read_by_an_index_whose_commit_is_under_way("begin isolation level repeatable read");
}
