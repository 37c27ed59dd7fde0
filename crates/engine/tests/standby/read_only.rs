//! Statements that a standby refuses, and the answers of its functions and views.

use std::sync::Arc;

use clearway_engine::{Collected, Completion, Session, WalReceiverStatus};
use clearway_storage::Lsn;

use crate::common::{error, query, run};
use crate::pair::{Pair, wait_until};

fn pair() -> Pair {
    Pair::new(
        "create table t (id serial primary key, x int);
         insert into t (x) select g from generate_series(1, 50) g",
    )
}

#[track_caller]
fn refused(session: &mut Session, sql: &str, sqlstate: &str, message: &str) {
    let error = error(session, sql);
    assert_eq!(error.sqlstate().as_str(), sqlstate, "{sql}: {error}");
    assert_eq!(error.message(), message, "{sql}");
    run(session, "rollback");
}

#[test]
fn what_writes_is_refused() {
    let mut pair = pair();
    pair.catch_up();
    // The primary says every 15 s which transactions run.
    pair.cut();
    let mut reader = pair.reader();
    let before = pair.standby().storage().wal.reserved();
    for (sql, name) in [
        ("insert into t (x) values (1)", "INSERT"),
        ("update t set x = 1", "UPDATE"),
        ("delete from t", "DELETE"),
        ("copy t from stdin", "COPY FROM"),
        ("select * from t for update", "SELECT FOR UPDATE"),
        ("select * from t for share", "SELECT FOR SHARE"),
        ("create table u (id int)", "CREATE TABLE"),
        ("drop table t", "DROP TABLE"),
        ("truncate t", "TRUNCATE TABLE"),
        ("create index t_x on t (x)", "CREATE INDEX"),
        ("alter table t set (fillfactor = 50)", "ALTER TABLE"),
    ] {
        let message = format!("cannot execute {name} in a read-only transaction");
        refused(&mut reader, sql, "25006", &message);
        refused(&mut reader, &format!("begin; {sql}"), "25006", &message);
    }
    for (sql, name) in [
        ("vacuum", "VACUUM"),
        ("vacuum t", "VACUUM"),
        ("analyze", "ANALYZE"),
    ] {
        let message = format!("cannot execute {name} during recovery");
        refused(&mut reader, sql, "25006", &message);
    }
    let message = "cannot set transaction read-write mode during recovery";
    refused(&mut reader, "begin read write", "0A000", message);
    refused(&mut reader, "begin; set transaction read write", "0A000", message);
    refused(
        &mut reader,
        "begin; set transaction_read_only = off",
        "0A000",
        message,
    );
    // Outside a block each would be a transaction of its own.
    for sql in ["set transaction read write", "set transaction_read_only = off"] {
        refused(&mut reader, sql, "0A000", message);
    }
    run(&mut reader, "set transaction read only");
    assert!(pair.standby().vacuum().is_err());
    assert_eq!(pair.standby().storage().wal.reserved(), before, "E1");
    assert_eq!(query(&mut reader, "select count(*) from t"), "50");
}

/// A standby does not know what the primary's transactions read, so none of its own can be serializable.
#[test]
fn serializable_transactions_are_refused() {
    let pair = pair();
    let mut reader = pair.reader();
    let message = "cannot use serializable mode in a hot standby";
    refused(
        &mut reader,
        "begin isolation level serializable",
        "0A000",
        message,
    );
    refused(
        &mut reader,
        "begin; set transaction isolation level serializable",
        "0A000",
        message,
    );
    run(&mut reader, "set default_transaction_isolation = 'serializable'");
    refused(&mut reader, "select * from t", "0A000", message);
    run(
        &mut reader,
        "set default_transaction_isolation = 'repeatable read'",
    );
    assert_eq!(query(&mut reader, "select count(*) from t"), "50");
}

/// A statement that writes is refused before it asks for a lock, which it would have to wait for.
#[test]
fn what_is_refused_waits_for_nothing() {
    let pair = pair();
    let mut other = pair.reader();
    run(&mut other, "begin; select * from t");
    let mut reader = pair.reader();
    run(&mut reader, "set lock_timeout = '50ms'");
    for sql in [
        "drop table t",
        "truncate t",
        "alter table t set (fillfactor = 50)",
    ] {
        assert_eq!(error(&mut reader, sql).sqlstate().as_str(), "25006", "{sql}");
    }
}

/// A reader that sorts on disk, in portions, within a block and outside: nothing is logged.
#[test]
fn readers_log_nothing() {
    let mut pair = pair();
    pair.write("insert into t (x) select g from generate_series(1, 20000) g");
    pair.catch_up();
    // The primary says every 15 s which transactions run.
    pair.cut();
    let before = pair.standby().storage().wal.reserved();
    let mut reader = pair.reader();
    run(&mut reader, "set work_mem = '64kB'");
    let sorted = reader
        .prepare("select x, id from t order by x desc, id", &[])
        .unwrap();
    run(&mut reader, "begin");
    let mut out = Collected::default();
    let mut completion = reader.execute(&sorted, &[], 100, &mut out).unwrap();
    while let Completion::Suspended(portal) = completion {
        completion = reader.resume(portal, 5_000, &mut out).unwrap();
    }
    run(&mut reader, "commit");
    assert_eq!(out.rows.len(), 20_050);
    run(&mut reader, "checkpoint");
    assert_eq!(pair.standby().storage().wal.reserved(), before);
}

#[test]
fn settings_tell_of_recovery() {
    let pair = pair();
    let mut reader = pair.reader();
    for (name, value) in [("transaction_read_only", "on"), ("in_hot_standby", "on")] {
        assert_eq!(query(&mut reader, &format!("show {name}")), value);
    }
    assert_eq!(query(&mut reader, "begin; show transaction_read_only"), "on");
    assert!(
        reader
            .reported_settings()
            .contains(&("in_hot_standby", "on".to_owned()))
    );
    assert_eq!(query(&mut pair.writer(), "show in_hot_standby"), "off");
}

#[test]
fn functions_tell_positions() {
    let pair = pair();
    let (mut writer, mut reader) = (pair.writer(), pair.reader());
    assert_eq!(query(&mut writer, "select pg_is_in_recovery()"), "f");
    assert_eq!(query(&mut reader, "select pg_is_in_recovery()"), "t");
    for function in ["receive", "replay"] {
        let sql = format!("select pg_last_wal_{function}_lsn() is null");
        assert_eq!(query(&mut writer, &sql), "t");
        assert_eq!(query(&mut reader, &sql), "f");
    }
    pair.write("insert into t (x) values (1)");
    let logged = query(&mut writer, "select pg_current_wal_lsn()");
    pair.catch_up();
    let behind = query(
        &mut reader,
        &format!("select pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '{logged}') >= 0"),
    );
    assert_eq!(behind, "t");
    assert_eq!(
        query(&mut writer, "select pg_wal_lsn_diff('1/0', '0/FF')"),
        "4294967041"
    );
    assert_eq!(
        query(
            &mut reader,
            "select pg_last_xact_replay_timestamp() <= clock_timestamp()"
        ),
        "t"
    );
    for name in ["", "flush_", "insert_"] {
        let error = error(&mut reader, &format!("select pg_current_wal_{name}lsn()"));
        assert_eq!(error.sqlstate().as_str(), "55000");
        assert_eq!(error.message(), "recovery is in progress");
        assert_eq!(
            query(&mut writer, &format!("select pg_current_wal_{name}lsn() is null")),
            "f"
        );
    }
    assert_eq!(
        error(&mut writer, "select pg_promote()").sqlstate().as_str(),
        "55000"
    );
    assert_eq!(
        error(&mut reader, "select pg_promote(true, 0)")
            .sqlstate()
            .as_str(),
        "22003"
    );
    // No program has installed what promotes.
    assert_eq!(
        error(&mut reader, "select pg_promote()").sqlstate().as_str(),
        "55000"
    );
}

#[test]
fn views_tell_of_the_receiver() {
    let pair = pair();
    pair.write("create role visitor; create role reviewer in role pg_read_all_stats");
    pair.catch_up();
    let mut reader = pair.reader();
    let sql = "select status, flushed_lsn, received_tli, slot_name, sender_host, sender_port from pg_stat_wal_receiver";
    assert_eq!(query(&mut reader, sql), "");
    pair.standby().set_wal_receiver(Arc::new(|| {
        Some(WalReceiverStatus {
            status: "streaming".to_owned(),
            flushed: Lsn(0x5_0000_0028),
            received_timeline: 1,
            sender_host: Some("127.0.0.1".to_owned()),
            sender_port: Some(5433),
            ..WalReceiverStatus::default()
        })
    }));
    assert_eq!(query(&mut reader, sql), "streaming|5/28|1||127.0.0.1|5433");
    // A role that may not read all statistics is told that there is one.
    run(&mut reader, "set role visitor");
    assert_eq!(query(&mut reader, sql), "|||||");
    let processes = "select count(pid) from pg_stat_wal_receiver";
    assert_eq!(query(&mut reader, processes), "1");
    run(&mut reader, "set role reviewer");
    assert_eq!(query(&mut reader, sql), "streaming|5/28|1||127.0.0.1|5433");
    run(&mut reader, "reset role");
    let counts = "select confl_lock, confl_snapshot from pg_stat_database_conflicts";
    assert_eq!(query(&mut reader, counts), "0|0");
}

#[test]
fn a_session_can_ask_for_the_promotion() {
    let mut pair = pair();
    pair.catch_up();
    pair.cut();
    let standby = Arc::downgrade(pair.standby());
    pair.standby().set_promotion(Arc::new(move || {
        let Some(standby) = standby.upgrade() else { return };
        std::thread::spawn(move || standby.promote("asked for").unwrap());
    }));
    let mut reader = pair.reader();
    assert_eq!(query(&mut reader, "select pg_promote()"), "t");
    assert_eq!(query(&mut reader, "select pg_is_in_recovery()"), "f");
    wait_until("the promoting thread ends", || {
        Arc::strong_count(pair.standby()) == 2
    });
}
