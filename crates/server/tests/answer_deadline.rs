//! A primary that holds its office for a limited time: what its sessions get behind the deadline of their answers.
//!
//! Caught mutations: `mutations/answer_deadline.toml`.

mod support;

use clearway_engine::{Config, Engine};
use clearway_server::AnswerDeadline;
use support::*;

fn server(deadline: &AnswerDeadline) -> TestServer {
    let directory = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    if let Ok(assignments) = std::env::var("CLEARWAY_MECHANISMS") {
        for assignment in assignments.split(',') {
            config.mechanisms.set(assignment).expect("CLEARWAY_MECHANISMS");
        }
    }
    let engine = Engine::open(directory.path().join("data"), config).unwrap();
    TestServer::with_options(engine, directory, |options| {
        options.answer_deadline = Some(deadline.clone());
    })
}

/// Nothing but the end of the session.
fn assert_fenced(replies: &[Reply], what: &str) {
    let kinds: Vec<char> = replies.iter().map(|reply| char::from(reply.kind)).collect();
    assert_eq!(kinds, ['E'], "{what}");
    assert_eq!(replies[0].sqlstate(), "57P01", "{what}");
    assert_eq!(replies[0].field(b'S').unwrap(), "FATAL", "{what}");
    assert!(
        replies[0].field(b'M').unwrap().contains("may not be the primary"),
        "{what}"
    );
}

#[test]
fn no_answer_leaves_behind_the_deadline() {
    let deadline = AnswerDeadline::default();
    let server = server(&deadline);
    let mut client = server.client();
    client.query("create table t (i int); insert into t values (1)");
    let mut in_block = server.client();
    in_block.query("begin; update t set i = 2");
    let mut at_rest: Vec<Raw> = (0..4).map(|_| server.client()).collect();
    deadline.set_ns(AnswerDeadline::now_ns() + 3_600_000_000_000);
    assert_eq!(client.value("select count(*) from t"), "1");
    // As after a SIGSTOP: the time has passed, and no thread has noticed.
    deadline.set_ns(AnswerDeadline::now_ns());
    for (what, session) in [
        "insert into t values (3)",
        "select i from t",
        "select 1/0",
        "begin",
    ]
    .into_iter()
    .zip(&mut at_rest)
    {
        session.send(&query(what));
        assert_fenced(&session.until_closed(), what);
    }
    in_block.send(&query("commit"));
    assert_fenced(&in_block.until_closed(), "commit");
    // A row by row result of more than one buffer: nothing of it leaves.
    client.send(&query("select repeat('x', 1000) from generate_series(1, 1000)"));
    assert_fenced(&client.until_closed(), "a long result");
    // Nor is a new session greeted.
    let mut late = server.connect();
    late.send(&startup(&[("user", "alice")]));
    assert_fenced(&late.until_closed(), "a new session");
}

#[test]
fn sessions_at_rest_are_told_when_a_fenced_server_ends_and_it_logs_nothing_more() {
    let deadline = AnswerDeadline::default();
    let mut server = server(&deadline);
    let mut client = server.client();
    client.query("create table t (i int)");
    let storage = std::sync::Arc::clone(server.engine.storage());
    deadline.set_ns(0);
    let end = storage.wal.reserved();
    server.request_stop();
    assert_fenced(&client.until_closed(), "at rest");
    server.stop();
    assert_eq!(storage.wal.reserved(), end, "a checkpoint was logged");
}
