//! Faults of clients: the server stays up, other sessions go on, locks are freed.

mod support;

use std::io::Write;
use std::net::Shutdown;
use std::time::{Duration, Instant};

use support::seeded::Random;
use support::*;

/// Seed of the random bytes.
const SEED: u64 = 20_240_601;

fn assert_alive(server: &TestServer) {
    assert_eq!(server.client().value("select 40 + 2"), "42");
}

/// Sends what it can and hangs up: the server may close at any point.
fn send_and_leave(raw: &mut Raw, bytes: &[u8]) {
    let _ = raw.stream.write_all(bytes);
    let _ = raw.stream.shutdown(Shutdown::Write);
    raw.stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let _ = std::io::copy(&mut raw.stream, &mut std::io::sink());
}

#[test]
fn random_first_packets() {
    let server = TestServer::start();
    let mut random = Random::begin(SEED);
    for _ in 0..200 {
        let count = random.below(64);
        let mut bytes = random.bytes(count);
        if random.below(2) == 0 && bytes.len() >= 8 {
            let length = bytes.len() as u32;
            bytes[..4].copy_from_slice(&length.to_be_bytes());
            bytes[4..8].copy_from_slice(&[0, 3, 0, 0]);
        }
        send_and_leave(&mut server.connect(), &bytes);
    }
    assert_alive(&server);
}

#[test]
fn random_messages() {
    let server = TestServer::start();
    let mut random = Random::begin(SEED);
    let kinds = b"QPBDECHSXdcfFpZ?\0";
    for _ in 0..300 {
        let mut client = server.client();
        let mut bytes = Vec::new();
        for _ in 0..random.below(8) {
            let kind = kinds[random.below(kinds.len() as u64) as usize];
            let count = random.below(40);
            let mut body = random.bytes(count);
            if random.below(2) == 0 {
                // Likelier to get past the names at the front.
                body.splice(0..0, [0, 0]);
            }
            bytes.extend(message(kind, &body));
        }
        send_and_leave(&mut client, &bytes);
    }
    assert_alive(&server);
}

#[test]
fn sound_messages_with_flipped_bytes() {
    let server = TestServer::start();
    server.client().rows("create table t (a int primary key, b text)");
    let mut random = Random::begin(SEED);
    let batch = [
        query("insert into t values (1, 'one') returning a"),
        parse("s", "select a, b from t where a = $1"),
        bind("p", "s", &[Some("1")]),
        describe(b'P', "p"),
        execute("p", 1),
        close(b'S', "s"),
        sync(),
        query("rollback"),
    ]
    .concat();
    for _ in 0..300 {
        let mut bytes = batch.clone();
        for _ in 0..1 + random.below(4) {
            let place = random.below(bytes.len() as u64) as usize;
            bytes[place] = random.next() as u8;
        }
        send_and_leave(&mut server.client(), &bytes);
    }
    assert_alive(&server);
}

#[test]
fn every_truncation_of_a_batch() {
    let server = TestServer::start();
    server.client().rows("create table t (a int)");
    let batch = [
        startup(&[("user", "alice")]),
        query("begin"),
        parse("", "insert into t values ($1)"),
        bind("", "", &[Some("5")]),
        execute("", 0),
        sync(),
    ]
    .concat();
    for end in 0..batch.len() {
        let mut client = server.connect();
        send_and_leave(&mut client, &batch[..end]);
    }
    let mut client = server.client();
    assert_eq!(
        client.value("select count(*) from t"),
        "0",
        "no transaction committed"
    );
    assert_eq!(
        client.query("drop table t")[0].tag(),
        "DROP TABLE",
        "no lock is held"
    );
}

#[test]
fn messages_too_long_end_only_their_connection() {
    let server = TestServer::start();
    for header in [
        &b"Q\x7f\xff\xff\xff"[..],
        b"Q\xff\xff\xff\xff",
        b"Q\0\0\0\x03",
        b"S\0\x10\0\0",
        b"E\0\0\x75\x30",
        b"d\x40\0\0\0",
        b"!",
    ] {
        let mut client = server.client();
        client.send(header);
        let replies = client.until_closed();
        assert_eq!(replies.len(), 1, "{header:?}: {replies:?}");
        assert_eq!(replies[0].field(b'S').unwrap(), "FATAL");
        assert_eq!(replies[0].sqlstate(), "08P01");
    }
    assert_alive(&server);
}

#[test]
fn a_claimed_length_reserves_nothing() {
    // Two hundred connections that each claim 16 MiB: if that were believed, 3 GiB.
    let server = TestServer::with_connections(300);
    let mut claims = Vec::new();
    for _ in 0..200 {
        let mut client = server.client();
        client.send(b"Q\x00\xff\xff\xff");
        client.send(&[b' '; 1000]);
        claims.push(client);
    }
    assert_alive(&server);
}

#[test]
fn a_long_statement_arrives_in_pieces() {
    let server = TestServer::start();
    let mut client = server.client();
    let text = "x".repeat(3 << 20);
    let bytes = query(&format!("select length('{text}')"));
    for piece in bytes.chunks(70_001) {
        client.send(piece);
    }
    let replies = client.until_ready();
    assert_eq!(replies[1].values(), [Some((3 << 20).to_string())]);
    assert_alive(&server);
}

#[test]
fn deep_nesting_is_an_error_not_an_end() {
    let server = TestServer::start();
    let mut client = server.client();
    for (open, close) in [
        ("(", ")"),
        ("abs(", ")"),
        ("not ", ""),
        ("- ", ""),
        ("case when true then ", " end"),
    ] {
        let sql = format!("select {}1{}", open.repeat(20_000), close.repeat(20_000));
        let replies = client.query(&sql);
        assert!(matches!(replies[0].kind, b'E' | b'T'), "{open}: {replies:?}");
        assert_eq!(client.value("select 1"), "1");
    }
}

#[test]
fn a_client_that_vanishes_leaves_no_locks() {
    let server = TestServer::start();
    let mut other = server.client();
    other.rows("create table t (a int primary key, n int); insert into t values (1, 0)");
    for way in ["terminate", "close", "reset", "half a message"] {
        let mut client = server.client();
        client.query("begin; update t set n = n + 1 where a = 1");
        match way {
            "terminate" => client.send(&message(b'X', b"")),
            "reset" => {
                // Unread data at close makes the kernel send RST instead of FIN.
                client.send(&query("select * from t"));
                std::thread::sleep(Duration::from_millis(50));
            }
            "half a message" => client.send(b"Q\0\0\0\x20select"),
            _ => {}
        }
        drop(client);
        let started = Instant::now();
        assert_eq!(
            other.query("update t set n = n where a = 1")[0].tag(),
            "UPDATE 1",
            "{way}"
        );
        assert!(started.elapsed() < PATIENCE, "{way}: {:?}", started.elapsed());
        assert_eq!(other.value("select n from t"), "0", "{way}: rolled back");
    }
}

#[test]
fn a_client_that_vanishes_while_it_waits_for_a_lock() {
    let server = TestServer::start();
    let mut holder = server.client();
    holder.rows("create table t (a int primary key, n int); insert into t values (1, 0), (2, 0)");
    holder.query("begin; update t set n = 1 where a = 1");
    // It holds row 2 and waits for row 1, then is gone.
    let mut victim = server.client();
    victim.query("begin; update t set n = 2 where a = 2");
    victim.send(&query("update t set n = 2 where a = 1"));
    wait_for("the victim to wait", || {
        server
            .engine
            .activity()
            .iter()
            .any(|session| session.wait_event_type == Some("Lock"))
    });
    drop(victim);
    let mut other = server.client();
    let started = Instant::now();
    assert_eq!(other.query("update t set n = 3 where a = 2")[0].tag(), "UPDATE 1");
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    holder.query("commit");
    assert_eq!(other.value("select n from t where a = 1"), "1");
}

#[test]
fn a_client_that_never_reads_can_be_cancelled_and_dropped() {
    let server = TestServer::start();
    server.client().rows("create table t (a int, b text)");
    server.client().rows(
        "insert into t select n, 'some text to fill the buffers with' from generate_series(1, 20000) as n",
    );
    let mut deaf = server.client();
    deaf.send(
        &[
            query("select * from t"),
            query("select * from t"),
            query("select * from t"),
        ]
        .concat(),
    );
    std::thread::sleep(Duration::from_millis(200));
    assert_alive(&server);
    drop(deaf);
    wait_for("its session to end", || server.engine.activity().len() <= 1);
}

#[test]
fn a_copy_that_is_given_up() {
    let server = TestServer::start();
    let mut other = server.client();
    other.rows("create table t (a int primary key)");
    let begin_copy = |client: &mut Raw| {
        client.send(&query("copy t from stdin"));
        assert_eq!(client.read().unwrap().kind, b'G');
        client.send(&message(b'd', b"1\n2\n3\n"));
    };
    // By the client, politely.
    let mut client = server.client();
    begin_copy(&mut client);
    client.send(&message(b'f', b"changed my mind\0"));
    let replies = client.until_ready();
    assert_eq!(replies[0].sqlstate(), "57014");
    assert!(replies[0].field(b'M').unwrap().contains("changed my mind"));
    // By the server, at a bad line; what the client still sends is thrown away.
    begin_copy(&mut client);
    client.send(
        &[
            message(b'd', b"four\n"),
            message(b'd', b"5\n"),
            message(b'c', b""),
        ]
        .concat(),
    );
    let replies = client.until_ready();
    assert_eq!(replies[0].sqlstate(), "22P02");
    assert_eq!(client.value("select 1"), "1");
    // By a message that has no place there.
    begin_copy(&mut client);
    client.send(&query("select 1"));
    assert_eq!(client.until_ready()[0].sqlstate(), "08P01");
    // By vanishing, in the middle of a line.
    begin_copy(&mut client);
    client.send(&message(b'd', b"4"));
    drop(client);
    assert_eq!(other.value("select count(*) from t"), "0");
    wait_for("the lock of the vanished client", || {
        other
            .query("begin; set local lock_timeout = '100ms'; truncate t; rollback")
            .iter()
            .all(|r| r.kind != b'E')
            || other.query("rollback").is_empty()
    });
}

#[test]
fn a_transaction_given_up_by_one_does_not_disturb_the_others() {
    let server = TestServer::start();
    server
        .client()
        .rows("create table t (a int primary key, n int); insert into t select i, 0 from generate_series(1, 8) as i");
    std::thread::scope(|scope| {
        for number in 1..=4 {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.client();
                for _ in 0..100 {
                    client.query(&format!("update t set n = n + 1 where a = {number}"));
                }
            });
        }
        for number in 5..=8 {
            let server = &server;
            scope.spawn(move || {
                for round in 0..25 {
                    let mut client = server.client();
                    client.query(&format!("begin; update t set n = n + 1 where a = {number}"));
                    if round % 2 == 0 {
                        client.send(b"\xff\xff\xff\xff\xff");
                    }
                }
            });
        }
    });
    let mut client = server.client();
    assert_eq!(
        client.rows("select n from t order by a").concat(),
        [
            Some("100".to_owned()),
            Some("100".to_owned()),
            Some("100".to_owned()),
            Some("100".to_owned()),
            Some("0".to_owned()),
            Some("0".to_owned()),
            Some("0".to_owned()),
            Some("0".to_owned()),
        ]
    );
}

#[test]
fn two_thousand_connections() {
    let server = TestServer::with_connections(2_000);
    server
        .client()
        .rows("create table t (a int primary key, n int); insert into t values (1, 0)");
    let opened = Instant::now();
    let mut clients: Vec<Raw> = std::thread::scope(|scope| {
        let openers: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| (0..500).map(|_| retry_client(&server)).collect::<Vec<_>>()))
            .collect();
        openers
            .into_iter()
            .flat_map(|opener| opener.join().unwrap())
            .collect()
    });
    println!("2,000 sessions in {:?}", opened.elapsed());
    assert_eq!(server.engine.activity().len(), 2_000);
    for client in &mut clients {
        client.send(&query("select a + n from t"));
    }
    for client in &mut clients {
        let replies = client.until_ready();
        assert_eq!(replies[1].values(), [Some("1".to_owned())]);
    }
    let mut late = server.connect();
    late.send(&startup(&[("user", "late")]));
    assert_eq!(late.until_closed()[0].sqlstate(), "53300");
    drop(clients);
    wait_for("all sessions to end", || server.engine.activity().is_empty());
    assert_alive(&server);
}

/// The first client's session may not have ended when the last place is asked for.
fn retry_client(server: &TestServer) -> Raw {
    for _ in 0..1_000 {
        let mut raw = server.connect();
        raw.send(&startup(&[("user", "alice")]));
        if raw.read().is_some_and(|reply| reply.kind == b'R') {
            raw.until_ready();
            return raw;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("no place for a client");
}
