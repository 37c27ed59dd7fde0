//! Synchronous replication over sockets: raw followers that say how far they are, when the test wants.
//!
//! # Mutations seen to fail
//! `crates/server/mutations/sync_replication.toml` lists them.

mod support;

use std::io::{ErrorKind, Read};
use std::time::Duration;

use clearway_engine::{Config, Engine};
use support::{Raw, TestServer, kinds, message, query, wait_for};

fn server_with(standbys: &str, lock_release: &str) -> TestServer {
    let directory = tempfile::tempdir().unwrap();
    let text = format!("autovacuum = false\nsynchronous_standby_names = '{standbys}'");
    let mut config = Config::from_toml(&text).unwrap();
    config
        .mechanisms
        .set(&format!("lock_release={lock_release}"))
        .unwrap();
    let engine = Engine::open(directory.path().join("data"), config).unwrap();
    TestServer::over(engine, directory, 100)
}

/// A server with the table `notes`, which has the rows 1 and 2.
fn server(standbys: &str) -> TestServer {
    let server = server_with(standbys, "early");
    client(&server, "local").rows(
        "create table notes (id int primary key, what text); insert into notes values (1, 'one'), (2, 'two')",
    );
    server
}

fn client(server: &TestServer, synchronous_commit: &str) -> Raw {
    let mut client = server.connect();
    client.start(&[("user", "alice"), ("synchronous_commit", synchronous_commit)]);
    client
}

/// A follower that stays where it is until it is told to go on.
struct Standby {
    raw: Raw,
    /// The end of the log that it has received.
    received: u64,
}

impl Standby {
    /// One that has everything so far, and has said so.
    fn connect(server: &TestServer, name: &str) -> Standby {
        let mut raw = server.connect();
        raw.start(&[
            ("user", "replicator"),
            ("replication", "true"),
            ("application_name", name),
        ]);
        let end = server.engine.storage().wal.flushed().0;
        raw.send(&query(&format!(
            "START_REPLICATION {:X}/{:X}",
            end >> 32,
            end & 0xFFFF_FFFF
        )));
        assert_eq!(raw.read().unwrap().kind, b'W');
        let mut standby = Standby { raw, received: end };
        standby.report([end; 3]);
        let mut other = client(server, "local");
        let counts = format!(
            "select 1 from pg_stat_replication where application_name = '{name}' and state = 'streaming' \
             and flush_lsn is not null"
        );
        wait_for("the standby to be known", || !other.rows(&counts).is_empty());
        standby
    }

    fn report(&mut self, [written, flushed, replayed]: [u64; 3]) {
        let mut body = vec![b'r'];
        for number in [written, flushed, replayed, 0] {
            body.extend(number.to_be_bytes());
        }
        body.push(0);
        self.raw.send(&message(b'd', &body));
    }

    /// Receives all that is durable on the server; the end of it.
    fn receive(&mut self, server: &TestServer) -> u64 {
        let end = server.engine.storage().wal.flushed().0;
        while self.received < end {
            let reply = self.raw.read().expect("the stream ended");
            assert_eq!(reply.kind, b'd', "{reply:?}");
            if reply.body[0] == b'w' {
                let begins = u64::from_be_bytes(reply.body[1..9].try_into().unwrap());
                assert_eq!(begins, self.received);
                self.received += reply.body.len() as u64 - 25;
            }
        }
        self.received
    }

    /// Receives all, and says that it is written, durable and replayed.
    fn confirm(&mut self, server: &TestServer) {
        let end = self.receive(server);
        self.report([end; 3]);
    }
}

/// Waits until `count` sessions wait for standbys.
fn until_waiting(server: &TestServer, count: usize) {
    wait_for("sessions that wait for standbys", || {
        let activity = server.engine.activity();
        let is_waiting = |session: &&clearway_engine::SessionActivity| {
            (session.wait_event_type, session.wait_event) == (Some("IPC"), Some("SyncRep"))
        };
        activity.iter().filter(is_waiting).count() == count
    });
}

/// That nothing comes from the server.
#[track_caller]
fn assert_silence(client: &mut Raw) {
    let patience = Some(Duration::from_millis(20));
    client.stream.set_read_timeout(patience).unwrap();
    let error = client.stream.read(&mut [0]).expect_err("bytes have left");
    assert!(matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut
    ));
    client.stream.set_read_timeout(Some(support::PATIENCE)).unwrap();
}

#[test]
fn each_level_waits_for_its_own_position() {
    let server = server("berlin");
    let mut standby = Standby::connect(&server, "berlin");
    let before = standby.received;
    let mut clients = ["remote_write", "on", "remote_apply"].map(|level| client(&server, level));
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(&query(&format!(
            "insert into notes values ({}, 'new')",
            10 + number
        )));
    }
    until_waiting(&server, 3);
    let end = standby.receive(&server);
    for number in 0..3 {
        for client in &mut clients[number..] {
            assert_silence(client);
        }
        let mut positions = [before; 3];
        positions[..=number].fill(end);
        standby.report(positions);
        assert_eq!(clients[number].until_ready()[0].tag(), "INSERT 0 1");
        until_waiting(&server, 2 - number);
    }
    let mut client = client(&server, "local");
    let shown = client
        .rows(
            "select sync_state, sync_priority, write_lag is null, flush_lag is null, replay_lag is null \
             from pg_stat_replication",
        )
        .remove(0);
    let shown: Vec<_> = shown.iter().map(|value| value.as_deref().unwrap()).collect();
    assert_eq!(shown, ["sync", "1", "f", "f", "f"]);
    assert_eq!(client.value("show synchronous_standby_names"), "berlin");
}

/// `local` and `off` wait for no standby, neither for their commits nor for what they read.
#[test]
fn local_and_off_wait_for_no_standby() {
    let server = server("berlin");
    for (id, level) in [(3, "local"), (4, "off")] {
        let mut client = client(&server, level);
        client.rows(&format!("insert into notes values ({id}, 'new')"));
        assert_eq!(client.value("select count(*) from notes"), (id).to_string());
        client.rows(&format!("create table {level}_table (id int)"));
        client.rows(&format!("drop table {level}_table"));
    }
    // Nor does a session that has seen nothing new, or changes nothing.
    let mut client = client(&server, "on");
    assert_eq!(client.value("select 1"), "1");
    client.rows("begin; commit");
}

/// A commit is seen before it is replicated, and no answer that depends on it leaves before.
#[test]
fn a_reader_of_what_is_not_replicated_waits() {
    let server = server("berlin");
    let mut standby = Standby::connect(&server, "berlin");
    let [mut alice, mut bob, mut carol, mut dave] =
        ["on", "on", "local", "remote_apply"].map(|level| client(&server, level));
    // What was there before is replicated.
    standby.confirm(&server);
    alice.send(&query("update notes set what = 'new' where id = 1"));
    until_waiting(&server, 1);
    assert_eq!(bob.value("select what from notes where id = 2"), "two");
    bob.send(&query("select what from notes where id = 1"));
    until_waiting(&server, 2);
    dave.send(&query("select what from notes where id = 1"));
    until_waiting(&server, 3);
    assert_silence(&mut bob);
    assert_silence(&mut alice);
    assert_eq!(carol.value("select what from notes where id = 1"), "new", "local");
    let end = standby.receive(&server);
    let before = server.engine.storage().sync_replication.secured().unwrap().0;
    standby.report([end, end, before]);
    assert_eq!(alice.until_ready()[0].tag(), "UPDATE 1");
    let row = bob.until_ready().into_iter().find(|reply| reply.kind == b'D');
    assert_eq!(row.unwrap().values(), [Some("new".to_owned())]);
    assert_silence(&mut dave);
    standby.report([end; 3]);
    let row = dave.until_ready().into_iter().find(|reply| reply.kind == b'D');
    assert_eq!(row.unwrap().values(), [Some("new".to_owned())]);
}

/// The commit stays, the client is warned, and the session is not held up by the same commit again.
#[test]
fn a_cancel_ends_the_wait_with_a_warning() {
    let server = server("berlin");
    let mut alice = server.connect();
    let greeting = alice.start(&[("user", "alice")]);
    for extended in [false, true] {
        let id = 10 + i32::from(extended);
        let sql = format!("insert into notes values ({id}, 'new')");
        if extended {
            let messages = [
                support::parse("", &sql),
                support::bind("", "", &[]),
                support::execute("", 0),
                support::sync(),
            ];
            alice.send(&messages.concat());
        } else {
            alice.send(&query(&sql));
        }
        until_waiting(&server, 1);
        server.cancel(&greeting);
        let replies = alice.until_ready();
        let expected = if extended { "12CNZ" } else { "NCZ" };
        assert_eq!(kinds(&replies), expected);
        let warning = replies.iter().find(|reply| reply.kind == b'N').unwrap();
        assert_eq!(warning.sqlstate(), "01000");
        assert_eq!(
            warning.field(b'M').unwrap(),
            "canceling wait for synchronous replication due to user request"
        );
        assert_eq!(
            warning.field(b'D').unwrap(),
            "The transaction has already committed locally, but might not have been replicated to the standby."
        );
        let own = alice.value(&format!("select what from notes where id = {id}"));
        assert_eq!(own, "new");
    }
    // A client that wants no warnings gets none.
    alice.rows("set client_min_messages = error");
    alice.send(&query("insert into notes values (12, 'new')"));
    until_waiting(&server, 1);
    server.cancel(&greeting);
    assert_eq!(kinds(&alice.until_ready()), "CZ");
    // Another session has not been warned, and is shown none of it: what it canceled is its answer.
    let mut bob = server.connect();
    let greeting = bob.start(&[("user", "bob")]);
    for (begin, status) in [("", b'I'), ("begin; ", b'E')] {
        bob.send(&query(&format!("{begin}select what from notes where id = 11")));
        until_waiting(&server, 1);
        server.cancel(&greeting);
        let replies = bob.until_ready();
        assert_eq!(kinds(&replies), "EZ", "an error in the place of the answer");
        assert_eq!(replies[0].sqlstate(), "57014");
        assert_eq!(
            replies[0].field(b'M').unwrap(),
            "canceling statement due to user request"
        );
        assert!(replies[0].field(b'D').unwrap().starts_with("The answer depends"));
        assert_eq!(replies[1].body, [status]);
    }
    assert_eq!(bob.query("rollback")[0].tag(), "ROLLBACK");
    assert_eq!(bob.value("select 1"), "1");
}

/// An answer that shows others' commits need not leave, so its wait has the limit of its statement.
#[test]
fn a_time_limit_ends_the_wait_of_an_answer() {
    let server = server("berlin");
    client(&server, "local").rows("update notes set what = 'new' where id = 1");
    let mut bob = client(&server, "on");
    bob.rows("set statement_timeout = '200ms'");
    let read = "select what from notes where id = 1";
    let extended = |sql| {
        [
            support::parse("", sql),
            support::bind("", "", &[]),
            support::execute("", 0),
        ]
        .concat()
    };
    // The first part of a long answer waits by itself, in the middle of its statement.
    let long = "select what || repeat('x', 40000) from notes where id = 1";
    for (batch, told) in [
        (query(read), "EZ"),
        (query(long), "EZ"),
        (query(&format!("select 1; {read}; select 2")), "EZ"),
        (
            [extended("select 1"), extended(read), support::sync()].concat(),
            "EZ",
        ),
        (
            [
                extended(read),
                message(b'H', &[]),
                extended("select 1"),
                support::sync(),
            ]
            .concat(),
            "EZ",
        ),
    ] {
        bob.send(&batch);
        let replies = bob.until_ready();
        assert_eq!(kinds(&replies), told);
        assert_eq!(replies[0].sqlstate(), "57014");
        let reason = replies[0].field(b'M').unwrap();
        assert_eq!(reason, "canceling statement due to statement timeout");
        assert_eq!(bob.value("select 1"), "1");
    }
    bob.send(&query(&format!("begin; {read}")));
    let replies = bob.until_ready();
    assert_eq!((kinds(&replies), replies[1].body[0]), ("EZ".to_owned(), b'E'));
    bob.rows("rollback");
    let mut standby = Standby::connect(&server, "berlin");
    standby.confirm(&server);
    assert_eq!(bob.value(read), "new");
}

/// A transaction that was shown a row at `on`, and commits at `off`, has not committed when its client gets an error.
#[test]
fn what_is_owed_is_waited_for_before_a_lesser_commit() {
    let server = server("berlin");
    client(&server, "local").rows("update notes set what = 'new' where id = 1");
    let mut bob = client(&server, "on");
    bob.rows("set statement_timeout = '200ms'");
    bob.send(&query(
        "select what from notes where id = 1; set synchronous_commit = off; insert into notes values (9, 'nine')",
    ));
    let replies = bob.until_ready();
    assert_eq!(kinds(&replies), "EZ");
    assert_eq!(replies[0].sqlstate(), "57014");
    let mut carol = client(&server, "local");
    assert_eq!(carol.value("select count(*) from notes where id = 9"), "0");
}

/// They are made of no commit.
#[test]
fn views_of_the_server_and_new_sessions_wait_for_no_standby() {
    for lock_release in ["early", "after-flush"] {
        let server = server_with("berlin", lock_release);
        client(&server, "local").rows("create table notes (id int primary key, what text)");
        let mut alice = client(&server, "on");
        alice.send(&query("insert into notes values (3, 'new')"));
        until_waiting(&server, 1);
        for level in ["on", "remote_apply"] {
            for view in [
                "select application_name, state from pg_stat_replication",
                "select pid, state, wait_event, backend_xmin from pg_stat_activity",
                "select slot_name, wal_status from pg_replication_slots",
                "select relname, n_dead_tup from pg_stat_user_tables",
                "select tablename from pg_tables",
                "select name, setting from pg_settings",
                "select * from pg_stat_wal_receiver",
                "select * from clearway_latches",
                "explain select * from notes",
                "explain select * from pg_stat_activity",
                "show synchronous_standby_names",
                "show all",
                "select pg_is_in_recovery()",
                "begin; commit",
            ] {
                let mut monitor = client(&server, level);
                let replies = monitor.query(view);
                assert!(
                    replies.iter().all(|reply| reply.kind != b'E'),
                    "{view}: {replies:?}"
                );
            }
        }
        assert_silence(&mut alice);
    }
}

/// A reader at a level of standbys is shown no row that no standby has, whatever its writer has asked for, and however that
/// one's own wait has ended.
#[test]
fn no_reader_is_shown_what_no_standby_has() {
    for lock_release in ["early", "after-flush"] {
        for writer in ["local", "off", "on"] {
            let server = server_with("berlin", lock_release);
            client(&server, "local").rows(
                "create table notes (id int primary key, what text); insert into notes values (1, 'one')",
            );
            let mut standby = Standby::connect(&server, "berlin");
            standby.confirm(&server);
            let mut alice = server.connect();
            let greeting = alice.start(&[("user", "alice"), ("synchronous_commit", writer)]);
            alice.send(&query("update notes set what = 'new' where id = 1"));
            if writer == "on" {
                until_waiting(&server, 1);
                server.cancel(&greeting);
            }
            alice.until_ready();
            let mut readers = ["on", "remote_write", "remote_apply"].map(|level| client(&server, level));
            for reader in &mut readers {
                reader.send(&query("select what from notes where id = 1"));
            }
            until_waiting(&server, 3);
            assert_eq!(client(&server, "local").value("select what from notes"), "new");
            readers.iter_mut().for_each(assert_silence);
            standby.confirm(&server);
            for reader in &mut readers {
                let row = reader.until_ready().into_iter().find(|reply| reply.kind == b'D');
                assert_eq!(row.unwrap().values(), [Some("new".to_owned())], "{lock_release}");
            }
        }
    }
}

#[test]
fn a_session_is_active_until_its_answer_leaves() {
    let server = server("berlin");
    let mut carol = client(&server, "local");
    carol.rows("update notes set what = 'new' where id = 1");
    let mut readers = [client(&server, "on"), client(&server, "on")];
    for (reader, begin) in readers.iter_mut().zip(["", "begin; "]) {
        reader.send(&query(&format!("{begin}select what from notes where id = 1")));
    }
    until_waiting(&server, 2);
    let states = "select state from pg_stat_activity where wait_event = 'SyncRep' order by pid";
    let active = [Some("active".to_owned())];
    assert_eq!(carol.rows(states), [active.clone(), active]);
    let mut standby = Standby::connect(&server, "berlin");
    standby.confirm(&server);
    readers.iter_mut().for_each(|reader| drop(reader.until_ready()));
    // What a client knows of its answer, other sessions know of its state.
    let states = "select state from pg_stat_activity where pid <> pg_backend_pid() and query like '%select what%' \
                  order by pid";
    let idle = ["idle", "idle in transaction"].map(|state| [Some(state.to_owned())]);
    assert_eq!(carol.rows(states), idle);
    // One that sends the log is none of them.
    let sender = "select backend_type, state, query like 'START_REPLICATION%' from pg_stat_activity \
                  where wait_event = 'WalSenderMain'";
    let shown = ["walsender", "active", "t"].map(|value| Some(value.to_owned()));
    wait_for("the sender to have sent all", || {
        carol.rows(sender) == [shown.clone()]
    });
}

/// A statement's time limit is not the wait's.
#[test]
fn statement_timeout_does_not_end_the_wait() {
    let server = server("berlin");
    let mut alice = client(&server, "on");
    alice.rows("set statement_timeout = '400ms'");
    alice.send(&query("insert into notes values (3, 'new')"));
    until_waiting(&server, 1);
    std::thread::sleep(Duration::from_millis(500));
    assert_silence(&mut alice);
    let mut standby = Standby::connect(&server, "berlin");
    standby.confirm(&server);
    assert_eq!(kinds(&alice.until_ready()), "CZ");
}

/// Neither success nor a row is sent.
#[test]
fn the_end_of_the_server_ends_the_waits() {
    let mut server = server("berlin");
    let [mut alice, mut bob] = [client(&server, "on"), client(&server, "on")];
    alice.send(&query("insert into notes values (3, 'new')"));
    until_waiting(&server, 1);
    bob.send(&query("select what from notes where id = 3"));
    until_waiting(&server, 2);
    server.request_stop();
    for (client, detail) in [
        (&mut alice, "The transaction has already"),
        (&mut bob, "The answer depends"),
    ] {
        let replies = client.until_closed();
        assert_eq!(kinds(&replies), "E", "{replies:?}");
        assert_eq!(replies[0].sqlstate(), "57P01");
        assert!(replies[0].field(b'D').unwrap().starts_with(detail));
    }
    server.stop();
}

#[test]
fn any_two_of_three_are_needed() {
    let server = server("ANY 2 (a, b, c)");
    let mut standbys = ["a", "b", "other"].map(|name| Standby::connect(&server, name));
    let mut alice = client(&server, "on");
    alice.send(&query("insert into notes values (3, 'new')"));
    until_waiting(&server, 1);
    let [a, b, other] = &mut standbys;
    a.confirm(&server);
    other.confirm(&server);
    let mut carol = client(&server, "local");
    let end = format!("{:X}", server.engine.storage().wal.flushed().0 & 0xFFFF_FFFF);
    let confirmed = format!("select 1 from pg_stat_replication where flush_lsn::text like '%/{end}'");
    wait_for("two to have confirmed", || carol.rows(&confirmed).len() == 2);
    assert_silence(&mut alice);
    b.confirm(&server);
    assert_eq!(alice.until_ready()[0].tag(), "INSERT 0 1");
    let states = carol.rows("select application_name, sync_state, sync_priority from pg_stat_replication");
    let states: Vec<String> = states
        .into_iter()
        .map(|row| row.into_iter().flatten().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(states, ["a quorum 1", "b quorum 1", "other async 0"]);
}

#[test]
fn waits_go_on_when_a_standby_goes_until_another_one_comes() {
    let server = server("FIRST 1 (berlin, paris)");
    let berlin = Standby::connect(&server, "berlin");
    let mut alice = client(&server, "on");
    alice.send(&query("insert into notes values (3, 'new')"));
    until_waiting(&server, 1);
    drop(berlin);
    let mut carol = client(&server, "local");
    wait_for("the standby to be gone", || {
        carol.rows("select 1 from pg_stat_replication").is_empty()
    });
    assert_silence(&mut alice);
    // It begins where the log ends: it has alice's commit.
    let _paris = Standby::connect(&server, "paris");
    assert_eq!(alice.until_ready()[0].tag(), "INSERT 0 1");
}

/// New definitions are seen by no session before they are replicated; under `after-flush` that holds for all commits.
#[test]
fn what_is_seen_last_waits_before_it_is_seen() {
    for (lock_release, change) in [
        ("early", "create table fresh (id int)"),
        ("after-flush", "insert into notes values (7, 'seven')"),
    ] {
        let server = server_with("berlin", lock_release);
        let mut carol = client(&server, "local");
        carol.rows("create table notes (id int primary key, what text)");
        let mut alice = client(&server, "on");
        alice.send(&query(change));
        until_waiting(&server, 1);
        let mut seen = || {
            let tables = carol.rows("select 1 from pg_tables where tablename = 'fresh'");
            let rows = carol.rows("select 1 from notes where id = 7");
            tables.len() + rows.len()
        };
        assert_eq!(seen(), 0, "{lock_release}");
        let mut standby = Standby::connect(&server, "berlin");
        standby.confirm(&server);
        assert_eq!(kinds(&alice.until_ready()), "CZ");
        assert_eq!(seen(), 1, "{lock_release}");
    }
}
