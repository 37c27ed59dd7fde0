//! `lock_release = early` over a socket: nothing that depends on a commit leaves before the commit is durable. The disk
//! is held: no sync of the log returns before the test releases it.

mod support;

use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};

use clearway_engine::{Config, Engine};
use clearway_storage::disk::{Faults, FaultyDisk, NativeDisk, Operation, SyncPurpose};
use support::{Raw, TestServer, query, wait_for};

/// True if syncs of the log are held.
#[derive(Debug, Default)]
struct Syncs {
    are_held: Mutex<bool>,
    changed: Condvar,
}

impl Syncs {
    fn hold(&self, held: bool) {
        *self.are_held.lock().unwrap() = held;
        self.changed.notify_all();
    }
}

impl Faults for Syncs {
    fn before(&self, operation: Operation, _path: &Path) -> io::Result<()> {
        if matches!(operation, Operation::Sync(SyncPurpose::LogFlush)) {
            let held = self.are_held.lock().unwrap();
            drop(self.changed.wait_while(held, |held| *held).unwrap());
        }
        Ok(())
    }
}

/// Lets the syncs go when the test has failed, so that the server can end.
struct LetGo(Arc<Syncs>);

impl Drop for LetGo {
    fn drop(&mut self) {
        self.0.hold(false);
    }
}

fn server(syncs: &Arc<Syncs>) -> TestServer {
    let directory = tempfile::tempdir().unwrap();
    let mut config = Config::from_toml("autovacuum = false").unwrap();
    if let Ok(assignments) = std::env::var("CLEARWAY_MECHANISMS") {
        for assignment in assignments.split(',') {
            config.mechanisms.set(assignment).expect("CLEARWAY_MECHANISMS");
        }
    }
    config.mechanisms.set("lock_release=early").unwrap();
    let disk = FaultyDisk::new(Arc::new(NativeDisk), Arc::<Syncs>::clone(syncs));
    let engine = Engine::open_on(Arc::new(disk), directory.path().join("data"), config).unwrap();
    TestServer::over(engine, directory, 10)
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
    let syncs = Arc::<Syncs>::default();
    let server = server(&syncs);
    let [mut alice, mut bob, mut carol] = [server.client(), server.client(), server.client()];
    alice.rows("create table accounts (id int primary key, balance int)");
    alice.rows("insert into accounts values (1, 10), (2, 20)");
    let let_go = LetGo(Arc::clone(&syncs));
    syncs.hold(true);
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
    let syncs = Arc::<Syncs>::default();
    let server = server(&syncs);
    let [mut alice, mut bob] = [server.client(), server.client()];
    alice.rows("create table words (id int primary key, word text)");
    alice.rows("insert into words select i, repeat('w', 100) from generate_series(1, 5000) i");
    let let_go = LetGo(Arc::clone(&syncs));
    syncs.hold(true);
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
