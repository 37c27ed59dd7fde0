//! `lock_release = early` over a socket: nothing that depends on a commit leaves before the commit is durable. The disk
//! is held: no sync of the log returns before the test releases it.

mod support;

use std::io::{ErrorKind, Read};
use std::sync::Arc;

use clearway_engine::{Config, Engine};
use clearway_storage::disk::HeldLog;
use support::{Raw, Reply, TestServer, kinds, query, wait_for};

/// A server, and what holds its log.
fn server() -> (TestServer, Arc<HeldLog>) {
    let directory = tempfile::tempdir().unwrap();
    let mut config = Config::from_toml("autovacuum = false").unwrap();
    if let Ok(assignments) = std::env::var("CLEARWAY_MECHANISMS") {
        for assignment in assignments.split(',') {
            config.mechanisms.set(assignment).expect("CLEARWAY_MECHANISMS");
        }
    }
    config.mechanisms.set("lock_release=early").unwrap();
    let (disk, log) = HeldLog::disk();
    let engine = Engine::open_on(disk, directory.path().join("data"), config).unwrap();
    (TestServer::over(engine, directory, 10), log)
}

/// Waits until `count` sessions wait for the log.
fn until_waiting(server: &TestServer, count: usize) {
    wait_for("sessions that wait for the log", || {
        let activity = server.engine.activity();
        let waits = activity.iter().filter_map(|session| session.wait_event);
        let log = ["WALWrite", "WALSync", "WALFlushGroup"];
        waits.filter(|wait| log.contains(wait)).count() == count
    });
}

/// That nothing has come from the server.
#[track_caller]
fn assert_silence(client: &mut Raw) {
    client.stream.set_nonblocking(true).unwrap();
    let error = client.stream.read(&mut [0]).expect_err("bytes have left");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    client.stream.set_nonblocking(false).unwrap();
}

#[test]
fn an_answer_leaves_when_what_it_tells_of_is_durable() {
    let (server, log) = server();
    let [mut alice, mut bob, mut carol] = [server.client(), server.client(), server.client()];
    alice.rows("create table accounts (id int primary key, balance int)");
    alice.rows("insert into accounts values (1, 10), (2, 20)");
    let let_go = log.hold();
    alice.send(&query("update accounts set balance = 11 where id = 1"));
    until_waiting(&server, 1);
    carol.rows("begin");
    let tags = carol.query("update accounts set balance = balance + 1 where id = 1");
    assert_eq!(tags[0].tag(), "UPDATE 1", "of a row that is not durable");
    assert_eq!(bob.value("select balance from accounts where id = 2"), "20");
    bob.send(&query("select balance from accounts where id = 1"));
    until_waiting(&server, 2);
    assert_silence(&mut bob);
    assert_silence(&mut alice);
    drop(let_go);
    let row = bob.until_ready().into_iter().find(|reply| reply.kind == b'D');
    assert_eq!(row.unwrap().values(), [Some("11".to_owned())]);
    assert_eq!(alice.until_ready()[0].tag(), "UPDATE 1");
    carol.rows("commit");
    assert_eq!(bob.value("select balance from accounts where id = 1"), "12");
}

/// An answer longer than the server's buffer leaves in parts, each of which waits for what it tells of.
#[test]
fn the_first_part_of_a_long_answer_waits() {
    let (server, log) = server();
    let [mut alice, mut bob] = [server.client(), server.client()];
    alice.rows("create table words (id int primary key, word text)");
    alice.rows("insert into words select i, repeat('w', 100) from generate_series(1, 5000) i");
    let let_go = log.hold();
    alice.send(&query("update words set word = 'first' where id = 1"));
    until_waiting(&server, 1);
    bob.send(&query("select word from words where id <= 5000"));
    until_waiting(&server, 2);
    assert_silence(&mut bob);
    drop(let_go);
    let rows = bob
        .until_ready()
        .iter()
        .filter(|reply| reply.kind == b'D')
        .count();
    assert_eq!(rows, 5_000);
    alice.until_ready();
}

/// The server's own disk does not answer. What has been told to stop is told so, its answer is dropped, and the session goes
/// on; what it is shown later is as durable as before.
#[test]
fn a_session_that_waits_for_the_disk_can_be_stopped() {
    let (server, log) = server();
    let mut alice = server.client();
    let mut bob = server.connect();
    let greeting = bob.start(&[("user", "bob")]);
    alice.rows("create table accounts (id int primary key, balance int)");
    alice.rows("insert into accounts values (1, 10), (2, 20)");
    bob.rows("set statement_timeout = '200ms'");
    let let_go = log.hold();
    alice.send(&query("update accounts set balance = 11 where id = 1"));
    until_waiting(&server, 1);
    let stopped = |replies: Vec<Reply>| {
        assert_eq!(
            kinds(&replies).trim_end_matches('Z'),
            "E",
            "nothing of the answer"
        );
        assert_eq!(replies[0].sqlstate(), "57014");
        (replies[0].field(b'M').unwrap(), replies[0].field(b'D').unwrap())
    };
    let timed_out = stopped(bob.query("select balance from accounts where id = 1"));
    assert_eq!(timed_out.0, "canceling statement due to statement timeout");
    assert!(
        timed_out.1.contains("might not be durable yet"),
        "{}",
        timed_out.1
    );
    bob.reset_statement_timeout();
    assert_eq!(bob.value("select balance from accounts where id = 2"), "20");
    // The first statement's answer is in the same buffer, and goes too.
    let batch = "select balance from accounts where id = 2; select balance from accounts where id = 1";
    bob.send(&query(batch));
    until_waiting(&server, 2);
    assert_silence(&mut bob);
    server.cancel(&greeting);
    let canceled = stopped(bob.until_ready());
    assert_eq!(canceled.0, "canceling statement due to user request");
    assert_eq!(bob.value("select 1"), "1");
    bob.send(&query("select balance from accounts where id = 1"));
    until_waiting(&server, 2);
    assert_silence(&mut bob);
    drop(let_go);
    let row = bob.until_ready().into_iter().find(|reply| reply.kind == b'D');
    assert_eq!(row.unwrap().values(), [Some("11".to_owned())]);
    assert_eq!(alice.until_ready()[0].tag(), "UPDATE 1");
}

/// The server stops while the disk does not answer: a session that waits for another's commit is told so, and nothing else.
#[test]
fn a_server_that_stops_ends_the_wait_for_the_disk() {
    let (server, log) = server();
    let [mut alice, mut bob] = [server.client(), server.client()];
    alice.rows("create table accounts (id int primary key, balance int)");
    alice.rows("insert into accounts values (1, 10)");
    let let_go = log.hold();
    alice.send(&query("update accounts set balance = 11 where id = 1"));
    until_waiting(&server, 1);
    bob.send(&query("select balance from accounts where id = 1"));
    until_waiting(&server, 2);
    server.request_stop();
    let told = bob.until_closed();
    assert_eq!(kinds(&told), "E");
    assert_eq!(told[0].sqlstate(), "57P01");
    drop(let_go);
    assert_eq!(alice.until_closed()[0].tag(), "UPDATE 1", "it was committed");
}
