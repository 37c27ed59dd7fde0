//! LISTEN and NOTIFY as clients see them.

mod support;

use std::time::{Duration, Instant};

use support::*;

/// Channel and payload of a NotificationResponse.
fn told(reply: &Reply) -> String {
    assert_eq!(reply.kind, b'A', "{reply:?}");
    let texts: Vec<&[u8]> = reply.body[4..].split(|byte| *byte == 0).collect();
    format!(
        "{}:{}",
        String::from_utf8_lossy(texts[0]),
        String::from_utf8_lossy(texts[1])
    )
}

fn all_told(replies: &[Reply]) -> Vec<String> {
    replies
        .iter()
        .filter(|reply| reply.kind == b'A')
        .map(told)
        .collect()
}

/// Waits until the queue is empty: a session forgets what it has told when its client may have read it already.
fn until_all_is_told(client: &mut Raw) {
    wait_for("an empty queue", || {
        client.value("select pg_notification_queue_usage()") == "0"
    });
}

/// Each line: which client runs what (or reads, while it is idle), and what it is told of meanwhile, as in PostgreSQL 15.
#[test]
fn a_transaction_tells_at_its_commit() {
    let server = TestServer::start();
    let (mut alice, mut bob) = (server.client(), server.client());
    let story = [
        ("alice", "listen a; listen b", ""),
        ("alice", "notify a, '1'; notify a, '1'; notify b", "a:1 b:"),
        (
            "alice",
            "begin; notify a, 'x'; savepoint s; notify a, 'x'; notify a, 'y'",
            "",
        ),
        ("alice", "rollback to s; notify a, 'z'", ""),
        ("alice", "commit", "a:x a:z"),
        ("alice", "begin; notify a, 'gone'; rollback", ""),
        (
            "bob",
            "begin; select pg_notify('b', null), pg_notify('other', 'x')",
            "",
        ),
        ("alice", "select 1", ""),
        ("bob", "commit", ""),
        ("alice", "", "b:"),
        ("alice", "begin", ""),
        ("bob", "notify a, 'late'", ""),
        ("alice", "select 1", ""),
        (
            "alice",
            "savepoint s; unlisten b; rollback to s; commit",
            "a:late",
        ),
        ("alice", "begin; notify a; unlisten a; commit", ""),
        ("bob", "notify b, 'still'", ""),
        ("alice", "", "b:still"),
        ("alice", "listen c; select pg_listening_channels()", ""),
        ("alice", "begin; listen d; rollback; unlisten *", ""),
        ("bob", "notify b; notify c; notify d", ""),
        ("alice", "select 1", ""),
        (
            "alice",
            "begin read only; listen a; notify a, 'may'; commit",
            "a:may",
        ),
        ("alice", "discard all", ""),
        ("alice", "notify a", ""),
    ];
    for (who, sql, expected) in story {
        let client = if who == "alice" { &mut alice } else { &mut bob };
        let replies = match sql {
            "" => vec![client.read().unwrap()],
            sql => client.query(sql),
        };
        assert!(
            replies.iter().all(|reply| reply.kind != b'E'),
            "{sql}: {replies:?}"
        );
        assert_eq!(all_told(&replies).join(" "), expected, "{who}: {sql}");
    }
}

#[test]
fn a_client_that_waits_is_told() {
    let server = TestServer::start();
    let (mut alice, mut bob) = (server.client(), server.client());
    alice.query("listen a; set idle_session_timeout = '5min'");
    for round in 0..20 {
        bob.query(&format!("notify a, '{round}'"));
        assert_eq!(told(&alice.read().unwrap()), format!("a:{round}"));
    }
    // More than is sent at once, and more than a socket takes.
    let many = "select pg_notify('a', repeat('x', 7000) || g) from generate_series(1, 1000) g";
    bob.query(many);
    for number in 1..=1_000 {
        assert!(told(&alice.read().unwrap()).ends_with(&format!("x{number}")));
    }
    until_all_is_told(&mut bob);
    let started = Instant::now();
    alice.query("set idle_session_timeout = '100ms'");
    assert_eq!(alice.until_closed()[0].sqlstate(), "57P05");
    assert!(started.elapsed() >= Duration::from_millis(100));
    bob.query("listen a");
    let mut server = server;
    server.stop();
    assert_eq!(bob.until_closed()[0].sqlstate(), "57P01");
}

#[test]
fn what_a_listener_does_not_take_is_bounded() {
    let server = TestServer::start();
    let (mut alice, mut bob) = (server.client(), server.client());
    alice.query("listen a");
    alice.query("begin");
    let many = "select pg_notify('a', repeat('x', 7900) || g) from generate_series(1, 1000) g";
    let refused = (0..20).find_map(|_| {
        let replies = bob.query(many);
        replies.into_iter().find(|reply| reply.kind == b'E')
    });
    let refused = refused.expect("the queue is never full");
    assert_eq!(refused.sqlstate(), "54000");
    assert_eq!(
        refused.field(b'M').unwrap(),
        "too many notifications in the NOTIFY queue"
    );
    assert!(bob.value("select pg_notification_queue_usage() > 0.8") == "t");
    // Others go on, and so does a transaction that does not notify.
    bob.query("begin; create table t (i int); commit");
    drop(alice);
    let started = Instant::now();
    while bob.query("notify a").iter().any(|reply| reply.kind == b'E') {
        assert!(started.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(5));
    }
    until_all_is_told(&mut bob);
}
