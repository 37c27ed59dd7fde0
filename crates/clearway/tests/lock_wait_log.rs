//! The server's log of waits for locks (`log_lock_waits`).

#[allow(dead_code, reason = "each suite uses a part of it")]
#[path = "support/served.rs"]
mod served;

use std::thread::JoinHandle;
use std::time::Instant;

use served::{Answer, Client, PATIENCE, Served};

const CONFIG: &str = "shared_buffers = \"2MB\"\ndeadlock_timeout = \"20ms\"\nlog_line_prefix = \"\"\n";

/// A session that logs its waits, and its number.
fn session(server: &Served) -> (Client, String) {
    let mut client = server.connect().unwrap();
    client.query("set log_lock_waits = on").unwrap();
    let pid = client.value("select pg_backend_pid()");
    (client, pid)
}

/// Sends a statement that waits.
fn wait(mut client: Client, sql: &'static str) -> JoinHandle<Answer> {
    std::thread::spawn(move || client.query(sql))
}

#[test]
fn the_log_tells_of_a_long_wait_and_of_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Served::in_directory(directory.path());
    let mut holder = server.start("", CONFIG);
    let holder_pid = holder.value("select pg_backend_pid()");
    holder
        .query("create table t (a int primary key); insert into t values (1)")
        .unwrap();

    // A row: its last writer's transaction is waited for.
    let (client, pid) = session(&server);
    holder.query("begin; update t set a = 2").unwrap();
    let xid = holder.value(
        "select transactionid from pg_locks where locktype = 'transactionid' and pid = pg_backend_pid()",
    );
    let waiting = wait(client, "update t set a = 3");
    let lock = format!("ShareLock on transaction {xid}");
    server.said(&format!("process {pid} still waiting for {lock} after "));
    server.said(&format!(
        "DETAIL:  Process holding the lock: {holder_pid}. Wait queue: {pid}.\nSTATEMENT:  update t set a = 3"
    ));
    let acquired = format!("process {pid} acquired {lock} after ");
    assert!(!server.log().contains(&acquired), "{}", server.log());
    holder.query("commit").unwrap();
    waiting.join().unwrap().unwrap();
    server.said(&acquired);

    // A table that two hold, and for which two wait.
    let relation = holder.value("select 't'::regclass::oid");
    let (mut second, second_pid) = session(&server);
    for client in [&mut holder, &mut second] {
        client.query("begin; lock table t in access share mode").unwrap();
    }
    let (mut writer, writer_pid) = session(&server);
    writer.query("begin").unwrap();
    let writing = wait(writer, "lock table t in access exclusive mode");
    server.said(&format!(
        "process {writer_pid} still waiting for AccessExclusiveLock on relation {relation} of database "
    ));
    let (reader, reader_pid) = session(&server);
    let reading = wait(reader, "select * from t");
    server.said(&format!(
        "process {reader_pid} still waiting for AccessShareLock on relation {relation} of database "
    ));
    let log = server.log();
    let told = log
        .lines()
        .find(|line| line.ends_with(&format!("Wait queue: {writer_pid}, {reader_pid}.")))
        .unwrap_or_else(|| panic!("{log}"));
    let (_, holders) = told.split_once("DETAIL:  Processes holding the lock: ").unwrap();
    let mut holders: Vec<&str> = holders.split('.').next().unwrap().split(", ").collect();
    holders.sort_unstable();
    let mut expected = [holder_pid.as_str(), second_pid.as_str()];
    expected.sort_unstable();
    assert_eq!(holders, expected);
    for client in [&mut holder, &mut second] {
        client.query("commit").unwrap();
    }
    // The reader goes on when the writer's session has ended.
    writing.join().unwrap().unwrap();
    reading.join().unwrap().unwrap();
}

#[test]
fn the_log_tells_of_a_deadlock_that_another_order_avoids() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Served::in_directory(directory.path());
    let mut client = server.start("", CONFIG);
    client
        .query("create table accounts (a int); create table history (a int)")
        .unwrap();
    let number = |client: &mut Client, name: &str| client.value(&format!("select '{name}'::regclass::oid"));
    let (accounts, history) = (number(&mut client, "accounts"), number(&mut client, "history"));
    let said_waiting = |pid: &str, relation: &str| {
        let words = format!("process {pid} still waiting for ");
        let lock = format!(" on relation {relation} of database ");
        server.said_line(&format!("{words}…{lock}"), |line| {
            line.contains(&words) && line.contains(&lock)
        });
    };
    let [(mut alice, alice_pid), (mut bob, bob_pid), (mut carol, carol_pid)] =
        [session(&server), session(&server), session(&server)];
    alice
        .query("begin; lock table accounts in share update exclusive mode")
        .unwrap();
    bob.query("begin; lock table history in access share mode")
        .unwrap();
    carol.query("begin").unwrap();
    // Bob waits for Alice, and Carol for Bob.
    let bob = wait(bob, "lock table accounts in share update exclusive mode; commit");
    said_waiting(&bob_pid, &accounts);
    let carol = wait(carol, "lock table history; commit");
    said_waiting(&carol_pid, &history);
    // Alice would wait for Carol, whose wait began earlier.
    alice
        .query("lock table history in share update exclusive mode")
        .unwrap();
    let lock = format!("ShareUpdateExclusiveLock on relation {history} of database ");
    let avoided = format!("process {alice_pid} avoided deadlock for {lock}");
    let acquired = format!("process {alice_pid} acquired {lock}");
    server.said(&acquired);
    let log = server.log();
    let place = |words: &str| log.lines().position(|line| line.contains(words));
    let avoided = place(&avoided).unwrap_or_else(|| panic!("{log}"));
    assert!(
        log.lines()
            .nth(avoided)
            .unwrap()
            .contains(" by rearranging queue order after ")
    );
    assert!(
        place(&acquired).is_some_and(|acquired| avoided < acquired),
        "{log}"
    );
    alice.query("commit").unwrap();
    for waiting in [bob, carol] {
        waiting.join().unwrap().unwrap();
    }
}

#[test]
fn a_wait_is_told_of_only_when_asked_to_and_only_when_it_lasts() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Served::in_directory(directory.path());
    let mut holder = server.start("", CONFIG);
    let waits = |pid: &str| format!("process {pid} still waiting");

    // Not asked to.
    holder.query("select pg_advisory_lock(1)").unwrap();
    let mut silent = server.connect().unwrap();
    let silent_pid = silent.value("select pg_backend_pid()");
    let first = wait(silent, "select pg_advisory_lock_shared(1)");
    // Another session's line, for the same lock, shows that time enough has passed.
    let (client, pid) = session(&server);
    let second = wait(client, "select pg_advisory_lock_shared(1)");
    server.said(&waits(&pid));
    holder.query("select pg_advisory_unlock(1)").unwrap();
    for waiting in [first, second] {
        waiting.join().unwrap().unwrap();
    }
    assert!(!server.log().contains(&waits(&silent_pid)), "{}", server.log());

    // A wait that ends before deadlock_timeout.
    let (mut client, pid) = session(&server);
    client.query("set deadlock_timeout = '1h'").unwrap();
    holder.query("select pg_advisory_lock(2)").unwrap();
    let short = wait(client, "select pg_advisory_lock(2)");
    let queued = "select count(*) from pg_locks where locktype = 'advisory' and not granted";
    let mut looking = server.connect().unwrap();
    let deadline = Instant::now() + PATIENCE;
    while looking.value(queued) != "1" {
        assert!(Instant::now() < deadline, "nothing waits");
    }
    holder.query("select pg_advisory_unlock(2)").unwrap();
    short.join().unwrap().unwrap();
    assert!(
        !server.log().contains(&format!("process {pid} ")),
        "{}",
        server.log()
    );
}
