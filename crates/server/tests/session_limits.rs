//! Limits that end a statement that only waits, and a session whose client is silent.
//!
//! `pg_sleep` used to sleep to its end whatever happened, and the idle timeouts were accepted and did nothing.

mod support;

use std::time::{Duration, Instant};

use support::{TestServer, query, wait_for};

/// Longer than the test's patience: a sleep that goes on fails the test.
const LONG_SLEEP: &str = "select pg_sleep(1000)";

#[test]
fn a_sleep_ends_by_cancel_by_timeout_and_with_its_client() {
    let server = TestServer::start();
    let mut client = server.connect();
    let greeting = client.start(&[("user", "alice")]);
    let key = &greeting.iter().find(|reply| reply.kind == b'K').unwrap().body;
    let number = |at: usize| u32::from_be_bytes(key[at..at + 4].try_into().unwrap());
    let (pid, secret) = (number(0), number(4));
    client.rows("set statement_timeout = '50ms'");
    let error = client
        .query(LONG_SLEEP)
        .into_iter()
        .find(|reply| reply.kind == b'E')
        .unwrap();
    assert_eq!(error.sqlstate(), "57014");
    assert!(error.field(b'M').unwrap().contains("statement timeout"));
    client.reset_statement_timeout();

    let mut other = server.client();
    let asleep = format!("select state from pg_stat_activity where pid = {pid} and query like '%sleep%'");
    let mut active = || {
        wait_for("the sleep", || {
            other
                .rows(&asleep)
                .first()
                .is_some_and(|row| row[0].as_deref() == Some("active"))
        });
    };
    client.send(&query(LONG_SLEEP));
    active();
    assert!(server.engine.cancel(pid, secret));
    let error = client
        .until_ready()
        .into_iter()
        .find(|reply| reply.kind == b'E')
        .unwrap();
    assert_eq!(error.sqlstate(), "57014");
    assert!(error.field(b'M').unwrap().contains("user request"));

    let sessions = server.engine.session_count();
    client.send(&query(LONG_SLEEP));
    active();
    drop(client);
    wait_for("the end of the vanished client's session", || {
        server.engine.session_count() < sessions
    });
    // A short one is not cut short.
    let start = Instant::now();
    other.rows("select pg_sleep(0.1)");
    assert!(start.elapsed() >= Duration::from_millis(100));
}

/// One step of an expression may work on 256 MB, and a row may have thousands of steps.
#[test]
fn work_on_long_texts_ends_by_timeout() {
    let server = TestServer::start();
    let mut client = server.client();
    client.rows("set statement_timeout = '50ms'");
    let conditions = vec!["repeat('x', 20000000) like '%y%'"; 200].join(" or ");
    for endless in [
        "select repeat('a', 2000000) like '%' || repeat('a', 1000000) || 'b'",
        &format!(
            "select '{}' like '%{}b'",
            "a".repeat(2_000_000),
            "a".repeat(1_000_000)
        ),
        &format!("select 1 where {conditions}"),
    ] {
        let replies = client.query(endless);
        let error = replies.iter().find(|reply| reply.kind == b'E');
        assert_eq!(
            error.map(support::Reply::sqlstate).as_deref(),
            Some("57014"),
            "{replies:?}"
        );
    }
}

#[test]
fn a_silent_client_is_sent_away_in_and_outside_of_a_transaction() {
    let server = TestServer::start();
    for (setting, begin, sqlstate) in [
        ("idle_in_transaction_session_timeout", "begin", "25P03"),
        ("idle_session_timeout", "select 1", "57P05"),
    ] {
        let mut client = server.client();
        // In one message: a client that thinks between two may be late.
        client.rows(&format!("set {setting} = '50ms'; {begin}"));
        let end = client.until_closed();
        let error = end.last().unwrap();
        assert_eq!(error.sqlstate(), sqlstate);
        assert_eq!(error.field(b'S').unwrap(), "FATAL");
    }
    // A failed transaction is one too; its locks are free at the end in any case.
    let mut client = server.client();
    client.rows("set idle_in_transaction_session_timeout = '50ms'");
    client.rows("begin");
    client.send(&query("select nonsense"));
    let replies = client.until_closed();
    assert_eq!(replies.last().unwrap().sqlstate(), "25P03");
}

#[test]
fn the_idle_limits_leave_others_alone() {
    let server = TestServer::start();
    let mut client = server.client();
    client.rows("create table t (a int)");
    // Outside of a transaction the one for transactions does not count, and the other way round.
    client.rows("set idle_in_transaction_session_timeout = '100ms'");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(client.value("select 1"), "1");
    client.rows("set idle_in_transaction_session_timeout = 0; set idle_session_timeout = '100ms'; begin");
    std::thread::sleep(Duration::from_millis(300));
    // A COPY is a command that runs: its client may think.
    client.send(&query("copy t from stdin"));
    assert_eq!(client.read().unwrap().kind, b'G');
    std::thread::sleep(Duration::from_millis(300));
    client.send(&support::message(b'd', b"7\n"));
    client.send(&support::message(b'c', b""));
    let replies = client.until_ready();
    assert_eq!(replies[0].tag(), "COPY 1");
    // So is a statement that takes longer than the limit.
    let rows = client.rows("commit; select pg_sleep(0.3); select a from t");
    assert_eq!(rows[1], [Some("7".to_owned())]);
}
