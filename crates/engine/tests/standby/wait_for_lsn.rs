//! WAIT FOR LSN.

use std::time::Duration;

use clearway_engine::{Session, SessionInfo};

use crate::common::{error, query, run};
use crate::pair::{PATIENCE, Pair};

const SETUP: &str = "create table t (x int)";

/// A position behind all log that these tests write.
const FAR: &str = "F/0";

fn position(session: &mut Session) -> String {
    query(session, "select pg_current_wal_insert_lsn()")
        .trim()
        .to_owned()
}

#[test]
fn what_was_written_is_read() {
    let pair = Pair::new(SETUP);
    let (writer, reader) = (&mut pair.writer(), &mut pair.reader());
    for x in 1..=100 {
        run(writer, &format!("insert into t values ({x})"));
        let at = position(writer);
        pair.logged();
        assert_eq!(query(reader, &format!("wait for lsn '{at}'")), "success");
        assert_eq!(query(reader, "select max(x) from t"), x.to_string());
    }
    let at = position(writer);
    for mode in ["standby_write", "standby_flush", "STANDBY_REPLAY"] {
        assert_eq!(
            query(reader, &format!("wait for lsn '{at}' with (mode '{mode}')")),
            "success"
        );
    }
    assert_eq!(
        query(
            writer,
            &format!("wait for lsn '{at}' with (mode 'primary_flush', timeout '1min')")
        ),
        "success"
    );
}

#[test]
fn the_time_is_limited() {
    let pair = Pair::new(SETUP);
    let (writer, reader) = (&mut pair.writer(), &mut pair.reader());
    for (on_standby, mode, done) in [
        (true, "standby_replay", "replayed"),
        (true, "standby_write", "written"),
        (true, "standby_flush", "flushed"),
        (false, "primary_flush", "flushed"),
    ] {
        let session = if on_standby { &mut *reader } else { &mut *writer };
        let refused = error(
            session,
            &format!("wait for lsn '{FAR}' with (mode '{mode}', timeout 30)"),
        );
        assert_eq!(refused.sqlstate().as_str(), "57014");
        let expected =
            format!("timed out while waiting for target LSN {FAR} to be {done}; current {mode} LSN 0/");
        assert!(refused.message().starts_with(&expected), "{}", refused.message());
        let quiet = format!("wait for lsn '{FAR}' with (no_throw, timeout '0.03s', mode '{mode}')");
        assert_eq!(query(session, &quiet), "timeout");
    }
    for (text, message) in [
        ("soon", "invalid timeout value: \"soon\""),
        ("-1ms", "timeout cannot be negative"),
    ] {
        let refused = error(
            reader,
            &format!("wait for lsn '{FAR}' with (no_throw, timeout '{text}')"),
        );
        assert_eq!(
            (refused.sqlstate().as_str(), refused.message()),
            ("22023", message)
        );
    }
    run(reader, "set statement_timeout = 50");
    let refused = error(reader, &format!("wait for lsn '{FAR}'"));
    assert_eq!(refused.message(), "canceling statement due to statement timeout");
}

#[test]
fn a_snapshot_would_hold_replay_up() {
    let pair = Pair::new(SETUP);
    let reader = &mut pair.reader();
    let wait = "wait for lsn '0/1'";
    run(reader, "begin; select count(*) from t");
    assert_eq!(query(reader, wait), "success");
    run(reader, "declare c cursor for select * from t");
    let refused = error(reader, wait);
    assert_eq!(refused.sqlstate().as_str(), "55000");
    run(reader, "rollback; begin isolation level repeatable read");
    assert_eq!(query(reader, wait), "success");
    run(reader, "select count(*) from t");
    let refused = error(reader, wait);
    assert_eq!(
        refused.message(),
        "WAIT FOR must be called without an active or registered snapshot"
    );
    run(reader, "rollback");
    assert_eq!(query(reader, wait), "success");
}

#[test]
fn each_side_has_its_modes() {
    let pair = Pair::new(SETUP);
    let (writer, reader) = (&mut pair.writer(), &mut pair.reader());
    let refused = error(writer, "wait for lsn '0/1'");
    assert_eq!(
        (refused.sqlstate().as_str(), refused.message()),
        ("55000", "recovery is not in progress")
    );
    assert_eq!(
        query(writer, "wait for lsn '0/1' with (no_throw)"),
        "not in recovery"
    );
    let refused = error(reader, "wait for lsn '0/1' with (no_throw, mode 'primary_flush')");
    assert_eq!(
        (refused.sqlstate().as_str(), refused.message()),
        ("55000", "recovery is in progress")
    );
}

#[test]
fn a_promotion_ends_the_wait() {
    let mut pair = Pair::new(SETUP);
    pair.write("insert into t values (1)");
    let reached = position(&mut pair.writer());
    pair.catch_up();
    let (mut one, mut other) = (pair.reader(), pair.reader());
    let throws = std::thread::spawn(move || error(&mut one, &format!("wait for lsn '{FAR}'")));
    let tells =
        std::thread::spawn(move || query(&mut other, &format!("wait for lsn '{FAR}' with (no_throw)")));
    std::thread::sleep(Duration::from_millis(50));
    assert!(!throws.is_finished() && !tells.is_finished());
    pair.cut();
    pair.standby().promote("a test").unwrap();
    let refused = throws.join().unwrap();
    assert_eq!(refused.message(), "recovery is not in progress");
    let detail = refused.detail().unwrap();
    assert!(
        detail.starts_with(&format!("Recovery ended before target LSN {FAR} was replayed")),
        "{detail}"
    );
    assert_eq!(tells.join().unwrap(), "not in recovery");
    let after = &mut pair.standby().session(SessionInfo::default()).unwrap();
    assert_eq!(
        query(after, &format!("wait for lsn '{reached}'")),
        "success",
        "it was replayed before"
    );
}

#[test]
fn a_cancel_ends_the_wait() {
    let pair = Pair::new(SETUP);
    let mut session = pair.reader();
    let number = query(&mut session, "select pg_backend_pid()");
    let waits = std::thread::spawn(move || error(&mut session, &format!("wait for lsn '{FAR}'")));
    let look = &mut pair.reader();
    let event = format!("select wait_event from pg_stat_activity where pid = {number}");
    while query(look, &event) != "WaitForWalReplay" {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(query(look, &format!("select pg_cancel_backend({number})")), "t");
    assert_eq!(
        waits.join().unwrap().message(),
        "canceling statement due to user request"
    );
}

/// Replay waits for a reader; meanwhile the log is durable here, and not seen.
#[test]
fn what_was_received_is_not_yet_seen() {
    let pair = Pair::new("create table t (x int); create table u (x int)");
    pair.catch_up();
    let (holder, reader) = (&mut pair.reader(), &mut pair.reader());
    run(holder, "begin; select * from u");
    pair.write("drop table u");
    pair.write("insert into t values (1)");
    let at = position(&mut pair.writer());
    pair.logged();
    let wait = |mode: &str| format!("wait for lsn '{at}' with (mode '{mode}', timeout '100ms', no_throw)");
    let durable = format!("wait for lsn '{at}' with (mode 'standby_flush', timeout '1min')");
    assert_eq!(query(reader, &durable), "success");
    assert_eq!(query(reader, &wait("standby_replay")), "timeout");
    assert_eq!(query(reader, &wait("standby_write")), "success");
    run(holder, "commit");
    assert_eq!(query(reader, &format!("wait for lsn '{at}'")), "success");
    assert_eq!(query(reader, "select * from t"), "1");
}

/// Replay waits for a lock of the session that waits for replay, or of one that waits for the session: whatever the time
/// that replay may wait, the session is told at once, and replay goes on.
#[test]
fn a_session_in_replays_way_is_told_at_once() {
    let setup = "create table t (x int); create table u (x int)";
    let pair = Pair::new(setup);
    let mut reader = pair.reader();
    run(&mut reader, "begin; select * from t");
    pair.write("alter table t add column y int");
    let end = pair.logged();
    let wait = format!(
        "wait for lsn '{}' with (timeout '60s')",
        position(&mut pair.writer())
    );
    let told = error(&mut reader, &wait);
    assert_eq!(told.sqlstate().as_str(), "40P01", "{told}");
    run(&mut reader, "rollback");
    assert!(pair.has_replayed(end, PATIENCE));
    assert_eq!(query(&mut reader, &wait), "success");
    // A lock that is not in the way.
    run(&mut reader, "begin; select * from u");
    pair.write("insert into t values (1, 2)");
    let at = position(&mut pair.writer());
    assert_eq!(query(&mut reader, &format!("wait for lsn '{at}'")), "success");
    run(&mut reader, "commit");

    // Bob holds `t`, for which replay waits, and waits for a lock of the reader.
    run(&mut reader, "begin; select pg_advisory_xact_lock(7)");
    let mut bob = pair.reader();
    run(&mut bob, "begin; select * from t");
    pair.write("alter table t add column z int");
    let end = pair.logged();
    let wait = format!(
        "wait for lsn '{}' with (timeout '60s')",
        position(&mut pair.writer())
    );
    std::thread::scope(|scope| {
        let waits = scope.spawn(move || run(&mut bob, "select pg_advisory_xact_lock(7); rollback"));
        let told = run(&mut reader, &wait);
        run(&mut reader, "rollback");
        assert!(!waits.join().unwrap().starts_with("ERROR"));
        assert_eq!(told, "ERROR 40P01");
    });
    assert!(pair.has_replayed(end, PATIENCE));
}
