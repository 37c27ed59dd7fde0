//! Replication connections, spoken in raw bytes: commands, the stream, slots, and what a hostile follower can do.
//!
//! # Mutations seen to fail
//! `crates/server/mutations/replication.toml` lists them.

mod support;

use std::time::{Duration, Instant};

use clearway_engine::{Config, Engine};
use clearway_storage::wal::reader::LogReader;
use clearway_storage::wal::record::RecordKind;
use support::{Raw, Reply, TestServer, kinds, message, query, wait_for};

const SEGMENT: u64 = 16 << 20;

fn follower(server: &TestServer) -> Raw {
    let mut raw = server.connect();
    raw.start(&[
        ("user", "alice"),
        ("replication", "true"),
        ("database", "replication"),
    ]);
    raw
}

fn server_with(configuration: &str) -> TestServer {
    let directory = tempfile::tempdir().unwrap();
    let config = Config::from_toml(configuration).unwrap();
    let engine = Engine::open(directory.path().join("data"), config).unwrap();
    TestServer::over(engine, directory, 100)
}

fn position(text: &str) -> u64 {
    let (high, low) = text.split_once('/').unwrap();
    u64::from_str_radix(high, 16).unwrap() << 32 | u64::from_str_radix(low, 16).unwrap()
}

/// The durable end of the log.
fn flushed(raw: &mut Raw) -> u64 {
    position(&raw.rows("IDENTIFY_SYSTEM")[0][2].clone().unwrap())
}

fn sqlstate(replies: &[Reply]) -> String {
    replies
        .iter()
        .find(|reply| reply.kind == b'E')
        .unwrap_or_else(|| panic!("no error: {replies:?}"))
        .sqlstate()
}

fn start(raw: &mut Raw, command: &str) {
    raw.send(&query(command));
    let reply = raw.read().unwrap();
    assert_eq!((reply.kind, &reply.body[..]), (b'W', &[0, 0, 0][..]), "{reply:?}");
}

/// The next piece of the log: where it begins, and its bytes. `None` for a keepalive.
fn piece(reply: &Reply) -> Option<(u64, &[u8])> {
    assert_eq!(reply.kind, b'd', "{reply:?}");
    match reply.body[0] {
        b'w' => {
            let begins = u64::from_be_bytes(reply.body[1..9].try_into().unwrap());
            Some((begins, &reply.body[25..]))
        }
        b'k' => None,
        other => panic!("a message of kind {other}"),
    }
}

/// Reads log that begins at `from` until it reaches `upto`.
fn log_until(raw: &mut Raw, from: u64, upto: u64) -> Vec<u8> {
    let mut log = Vec::new();
    while from + (log.len() as u64) < upto {
        let reply = raw.read().expect("the stream ended");
        if let Some((begins, bytes)) = piece(&reply) {
            assert_eq!(begins, from + log.len() as u64, "a hole in the stream");
            log.extend(bytes);
        }
    }
    log
}

fn status(written: u64, flushed: u64, wants_answer: bool) -> Vec<u8> {
    let mut body = vec![b'r'];
    for number in [written, flushed, 0, 0] {
        body.extend(number.to_be_bytes());
    }
    body.push(u8::from(wants_answer));
    message(b'd', &body)
}

/// The message of a standby with `hot_standby_feedback`.
fn feedback(xmin: u64) -> Vec<u8> {
    let mut body = vec![b'h'];
    for number in [0, xmin.rotate_right(32), 0] {
        body.extend(number.to_be_bytes());
    }
    message(b'd', &body)
}

/// The log in the segments on the server's disk between two positions.
fn on_disk(server: &TestServer, from: u64, upto: u64) -> Vec<u8> {
    let directory = server.directory.path().join("data").join("pg_wal");
    let mut log = Vec::new();
    for number in from / SEGMENT..=(upto - 1) / SEGMENT {
        let name = format!("00000001{:08X}{:08X}", number >> 8, number & 0xFF);
        log.extend(std::fs::read(directory.join(name)).unwrap());
    }
    let begin = (from % SEGMENT) as usize;
    log[begin..begin + (upto - from) as usize].to_vec()
}

#[test]
fn commands_are_answered_in_postgresqls_form() {
    let server = TestServer::start();
    let mut raw = follower(&server);
    let replies = raw.query("IDENTIFY_SYSTEM");
    assert_eq!(kinds(&replies), "TDC");
    assert_eq!(replies[2].tag(), "IDENTIFY_SYSTEM");
    let system = replies[1].values();
    assert_eq!(
        system[0],
        Some(server.engine.storage().system_identifier().to_string())
    );
    assert_eq!((system[1].as_deref(), system[3].as_deref()), (Some("1"), None));
    assert_eq!(raw.value("SHOW wal_segment_size"), "16MB");
    assert_eq!(raw.value("SHOW data_directory_mode"), "0700");
    for (command, expected) in [
        ("SHOW nothing", "42704"),
        ("TIMELINE_HISTORY 2", "58P01"),
        ("select 1", "42601"),
        ("START_REPLICATION 0/0", "58P01"),
        ("START_REPLICATION FF/0", "XX000"),
        ("START_REPLICATION 0/1000000 TIMELINE 2", "XX000"),
        ("START_REPLICATION SLOT nothing 0/1000000", "42704"),
        ("DROP_REPLICATION_SLOT nothing", "42704"),
        ("CREATE_REPLICATION_SLOT \"A\" PHYSICAL", "42602"),
        ("CREATE_REPLICATION_SLOT a LOGICAL pgoutput", "0A000"),
    ] {
        assert_eq!(sqlstate(&raw.query(command)), expected, "{command}");
    }
    // The extended protocol: one error, then nothing until Sync.
    raw.send(
        &[
            support::parse("", "select 1"),
            support::parse("", "select 2"),
            support::sync(),
        ]
        .concat(),
    );
    let replies = raw.until_ready();
    assert_eq!(
        (kinds(&replies).as_str(), replies[0].sqlstate().as_str()),
        ("EZ", "08P01")
    );
    assert_eq!(raw.value("SHOW wal_segment_size"), "16MB");
}

#[test]
fn slots_are_made_shown_and_dropped() {
    let server = TestServer::start();
    let mut raw = follower(&server);
    let made = raw.query("CREATE_REPLICATION_SLOT \"archive\" PHYSICAL ( RESERVE_WAL)");
    assert_eq!(
        (kinds(&made).as_str(), made[2].tag()),
        ("TDC", "CREATE_REPLICATION_SLOT")
    );
    raw.query("CREATE_REPLICATION_SLOT passing TEMPORARY PHYSICAL");
    assert_eq!(
        sqlstate(&raw.query("CREATE_REPLICATION_SLOT archive PHYSICAL")),
        "42710"
    );
    let read = raw.rows("READ_REPLICATION_SLOT archive").remove(0);
    assert_eq!(
        (read[0].as_deref(), read[2].as_deref()),
        (Some("physical"), Some("1"))
    );
    assert_eq!(raw.rows("READ_REPLICATION_SLOT nothing"), [[None, None, None]]);
    let mut client = server.client();
    let shown = "select slot_name, temporary, active, wal_status from pg_replication_slots";
    assert_eq!(client.rows(shown).len(), 2);
    let mut other = follower(&server);
    let restart = read[1].clone().unwrap();
    start(&mut raw, &format!("START_REPLICATION SLOT archive {restart}"));
    wait_for("the follower to be shown", || {
        client
            .rows("select state, sent_lsn from pg_stat_replication where state = 'streaming'")
            .len()
            == 1
    });
    // A role that may not read all statistics is told that there is a connection.
    client.query("create role visitor; set role visitor");
    let told = "select count(pid), count(usename), count(state), count(sent_lsn), count(sync_state) from pg_stat_replication";
    let counts = |count: &str| [["1", "1", count, count, count].map(|count| Some(count.to_owned()))];
    assert_eq!(client.rows(told), counts("0"));
    client.query("reset role");
    assert_eq!(client.rows(told), counts("1"));
    assert_eq!(sqlstate(&other.query("DROP_REPLICATION_SLOT archive")), "55006");
    assert_eq!(
        sqlstate(&other.query(&format!("START_REPLICATION SLOT archive {restart}"))),
        "55006"
    );
    // The connection's end ends the temporary slot and the use of the other one.
    drop(raw);
    wait_for("the temporary slot to go", || client.rows(shown).len() == 1);
    wait_for("the slot to be free", || {
        client.rows(shown)[0][2].as_deref() == Some("f")
    });
    assert!(client.rows("select * from pg_stat_replication").is_empty());
    assert_eq!(
        other.query("DROP_REPLICATION_SLOT archive WAIT")[0].tag(),
        "DROP_REPLICATION_SLOT"
    );
    assert!(client.rows(shown).is_empty());
}

/// Byte by byte what is on disk, from the beginning of a segment, while statements run; and the connection goes on after
/// the follower's CopyDone.
#[test]
fn the_stream_is_the_log() {
    let server = TestServer::start();
    let mut raw = follower(&server);
    let mut client = server.client();
    client.rows("create table notes (id int primary key, what text)");
    start(&mut raw, "START_REPLICATION 0/1000000 TIMELINE 1");
    for id in 0..50 {
        client.rows(&format!("insert into notes values ({id}, 'note')"));
    }
    let mut other = follower(&server);
    let end = flushed(&mut other);
    let log = log_until(&mut raw, SEGMENT, end);
    assert!(log[..(end - SEGMENT) as usize] == on_disk(&server, SEGMENT, end)[..]);
    // An answer is given when it is wanted, and progress is shown.
    let sent = SEGMENT + log.len() as u64;
    raw.send(&status(sent, end, true));
    while piece(&raw.read().unwrap()).is_some() {}
    let shown = client
        .rows("select flush_lsn, sync_state from pg_stat_replication")
        .remove(0);
    assert_eq!(position(shown[0].as_deref().unwrap()), end);
    assert_eq!(shown[1].as_deref(), Some("async"));
    raw.send(&message(b'c', b""));
    let mut replies = raw.until_ready();
    replies.retain(|reply| reply.kind != b'd');
    assert_eq!(kinds(&replies), "cCCZ");
    assert_eq!(raw.value("SHOW wal_segment_size"), "16MB");
}

/// Log that is not durable does not leave: a crash would take it back here, and the follower would have it.
#[test]
fn only_durable_log_is_sent() {
    let server = server_with("wal_writer_delay = \"1h\"\nautovacuum = false");
    let mut client = server.client();
    client.rows("create table notes (id int primary key)");
    let mut raw = follower(&server);
    let end = flushed(&mut raw);
    let at = format!("{:X}/{:X}", end >> 32, end & 0xFFFF_FFFF);
    start(&mut raw, &format!("START_REPLICATION {at}"));
    client.rows("set synchronous_commit = off");
    client.rows("insert into notes values (1)");
    let storage = server.engine.storage();
    assert!(
        storage.wal.reserved().0 > end && storage.wal.flushed().0 == end,
        "logged, not durable"
    );
    raw.stream
        .set_read_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    let mut byte = [0];
    assert!(raw.stream.peek(&mut byte).is_err(), "something was sent");
    raw.stream.set_read_timeout(Some(support::PATIENCE)).unwrap();
    client.rows("set synchronous_commit = on");
    client.rows("insert into notes values (2)");
    let durable = storage.wal.flushed().0;
    let log = log_until(&mut raw, end, durable);
    assert!(log[..(durable - end) as usize] == on_disk(&server, end, durable)[..]);
}

/// Checkpoints keep what a slot needs, and remove it when the slot has moved on.
#[test]
fn a_slot_keeps_its_log() {
    let server = TestServer::start();
    let mut raw = follower(&server);
    raw.query("CREATE_REPLICATION_SLOT archive PHYSICAL RESERVE_WAL");
    let mut client = server.client();
    client.rows("create table filler (id int primary key, what text)");
    let fill = |client: &mut Raw| {
        let storage = server.engine.storage();
        let from = storage.wal.reserved().0;
        while storage.wal.reserved().0 < from + 2 * SEGMENT {
            storage.make_log_room().unwrap();
            let nothing = clearway_storage::wal::record::RecordKind::NOTHING;
            let end = storage
                .wal
                .insert_any(nothing, clearway_txn::Xid::INVALID, &[0; 1 << 19]);
            storage.wal.flush(end);
        }
        client.rows("checkpoint");
    };
    fill(&mut client);
    let end = flushed(&mut raw);
    start(&mut raw, "START_REPLICATION SLOT archive 0/1000000");
    let log = log_until(&mut raw, SEGMENT, end);
    assert!(log[..(end - SEGMENT) as usize] == on_disk(&server, SEGMENT, end)[..]);
    raw.send(&status(end, end, true));
    while piece(&raw.read().unwrap()).is_some() {}
    drop(raw);
    client.rows("checkpoint");
    let mut raw = follower(&server);
    assert_eq!(sqlstate(&raw.query("START_REPLICATION 0/1000000")), "58P01");
    start(
        &mut raw,
        &format!("START_REPLICATION SLOT archive {:X}/{:X}", end >> 32, end),
    );
}

#[test]
fn a_slot_beyond_its_limit_is_lost_and_says_what_to_do() {
    let server = server_with("max_slot_wal_keep_size = \"16MB\"");
    let mut raw = follower(&server);
    raw.query("CREATE_REPLICATION_SLOT slow PHYSICAL RESERVE_WAL");
    let storage = server.engine.storage();
    while storage.wal.reserved().0 < 5 * SEGMENT {
        storage.make_log_room().unwrap();
        let nothing = clearway_storage::wal::record::RecordKind::NOTHING;
        let end = storage
            .wal
            .insert_any(nothing, clearway_txn::Xid::INVALID, &[0; 1 << 19]);
        storage.wal.flush(end);
    }
    let mut client = server.client();
    client.rows("checkpoint");
    let replies = raw.query("START_REPLICATION SLOT slow 0/1000000");
    assert_eq!(sqlstate(&replies), "55000");
    assert!(replies[0].field(b'M').unwrap().contains("new base backup"));
    assert_eq!(
        client.value("select wal_status from pg_replication_slots"),
        "lost"
    );
}

/// At the server's stop a follower gets the log to the end of the last checkpoint, and then the stream's end. The
/// connection stays until the follower has ended its own side: what it says meanwhile would otherwise reset the
/// connection, and what was sent last would be lost.
#[test]
fn a_stop_sends_the_rest() {
    let mut server = TestServer::start();
    let mut client = server.client();
    client.rows("create table notes (id int primary key)");
    let mut raw = follower(&server);
    start(&mut raw, "START_REPLICATION 0/1000000");
    client.rows("insert into notes values (1)");
    drop(client);
    let reader = std::thread::spawn(move || {
        let mut replies = Vec::new();
        while let Some(reply) = raw.read() {
            let ends = reply.kind == b'c';
            replies.push(reply);
            if ends {
                for _ in 0..3 {
                    std::thread::sleep(Duration::from_millis(30));
                    raw.send(&status(0, 0, false));
                }
                raw.send(&message(b'c', b""));
            }
        }
        replies
    });
    let storage = std::sync::Arc::clone(server.engine.storage());
    server.stop();
    let replies = reader.join().unwrap();
    let mut log: Vec<u8> = Vec::new();
    for reply in replies.iter().filter(|reply| reply.kind == b'd') {
        log.extend(piece(reply).map_or(&[][..], |(_, bytes)| bytes));
    }
    let end = storage.wal.flushed().0;
    assert!(log == on_disk(&server, SEGMENT, end), "{} bytes", log.len());
    assert!(kinds(&replies).ends_with("cCC"), "{}", kinds(&replies));
}

/// A session that sends waits most of the time, and says for what.
#[test]
fn a_sender_shows_that_it_waits() {
    let server = TestServer::start();
    let mut raw = follower(&server);
    let end = flushed(&mut raw);
    start(&mut raw, &format!("START_REPLICATION 0/{end:X}"));
    let mut client = server.client();
    let waits = "select count(*) from pg_stat_activity where wait_event = 'WalSenderMain' and wait_event_type = 'Activity'";
    support::wait_for("the sender to show", || client.value(waits) == "1");
}

/// A follower that does not end its side delays a stop, and does not prevent it.
#[test]
fn a_stop_cuts_a_mute_follower_off() {
    let mut server = TestServer::start();
    let mut raw = follower(&server);
    start(&mut raw, "START_REPLICATION 0/1000000");
    server.stop();
    assert!(raw.until_closed().iter().any(|reply| reply.kind == b'c'));
}

#[test]
fn a_silent_follower_is_asked_and_then_given_up() {
    let server = server_with("wal_sender_timeout = \"600ms\"");
    let mut raw = follower(&server);
    let end = flushed(&mut raw);
    start(&mut raw, &format!("START_REPLICATION 0/{end:X}"));
    let began = Instant::now();
    let replies = raw.until_closed();
    assert!(began.elapsed() < Duration::from_secs(20));
    let asked = replies
        .iter()
        .any(|reply| reply.body[0] == b'k' && reply.body[17] == 1);
    assert!(asked, "{replies:?}");
}

/// Frames that are none, messages of wrong kinds and lengths: the connection ends or has an error, and the server goes on.
#[test]
fn a_broken_follower_harms_itself_only() {
    let server = TestServer::start();
    for broken in [
        message(b'd', b"r"),
        message(b'd', b""),
        message(b'd', b"x"),
        message(b'd', &[b'h'; 24]),
        message(b'd', &[b'r'; 40]),
        message(b'Q', b"SHOW x\0"),
        vec![0xFF; 9],
        vec![b'd', 0xFF, 0xFF, 0xFF, 0xFF],
    ] {
        let mut raw = follower(&server);
        start(&mut raw, "START_REPLICATION 0/1000000");
        raw.send(&broken);
        raw.until_closed();
    }
    for text in [&b"BASE_BACKUP (LABEL '\0"[..], b"\xFF\0", b"START_REPLICATION"] {
        let mut raw = follower(&server);
        raw.send(&message(b'Q', text));
        raw.read();
    }
    // Positions that no follower can have.
    let mut raw = follower(&server);
    start(&mut raw, "START_REPLICATION 0/1000000");
    raw.send(&status(u64::MAX, u64::MAX, true));
    while piece(&raw.read().unwrap()).is_some() {}
    wait_for("the broken ones to be gone", || {
        server.client().rows("select * from pg_stat_replication").len() == 1
    });
}

/// The xmin that a standby reports holds until the standby reports another one, its stream ends, or its connection.
#[test]
fn feedback_holds_back_the_horizon() {
    let server = server_with("autovacuum = false");
    let mut client = server.client();
    client.rows("create table notes (id int primary key)");
    client.rows("insert into notes values (1)");
    let storage = server.engine.storage();
    let procs = &storage.proc_array;
    let from = storage.wal.reserved();
    // How often versions that a transaction deleted were removed since.
    let removals = || {
        storage.wal.flush(storage.wal.reserved());
        let mut reader = LogReader::new(storage.wal.device(), from);
        let records = std::iter::from_fn(|| reader.next_record().unwrap().map(|(record, _)| record.kind));
        records.filter(|kind| *kind == RecordKind::CLEANUP).count()
    };
    let held = procs.next_xid();
    let begin = || {
        let mut raw = follower(&server);
        let end = flushed(&mut raw);
        start(
            &mut raw,
            &format!("START_REPLICATION {:X}/{:X}", end >> 32, end & 0xFFFF_FFFF),
        );
        raw.send(&feedback(held.0));
        wait_for("the horizon to be held back", || procs.horizon() == held);
        raw
    };
    let mut raw = begin();
    let shown = "select backend_xmin from pg_stat_replication";
    wait_for("the xmin to be shown", || {
        client.rows(shown) == [[Some(held.to_string())]]
    });
    client.rows("delete from notes");
    client.rows("vacuum notes");
    assert_eq!((procs.horizon(), removals()), (held, 0));
    // An xid that was never handed out, and one that no transaction has: no answer, and no effect.
    for nonsense in [procs.next_xid().0 + 1, u64::MAX, 1] {
        raw.send(&feedback(nonsense));
    }
    raw.send(&status(0, 0, true));
    while piece(&raw.read().unwrap()).is_some() {}
    assert_eq!((procs.horizon(), client.value(shown)), (held, held.to_string()));
    raw.send(&feedback(0));
    wait_for("the horizon to go on", || procs.horizon() > held);
    wait_for("no xmin to be shown", || client.rows(shown) == [[None]]);
    client.rows("vacuum notes");
    assert_eq!(removals(), 1);
    raw.send(&feedback(held.0));
    wait_for("the horizon to be held back again", || procs.horizon() == held);
    raw.send(&message(b'c', b""));
    raw.until_ready();
    assert!(procs.horizon() > held, "the stream has ended");
    assert_eq!(raw.value("SHOW wal_segment_size"), "16MB");
    drop(raw);
    drop(begin());
    wait_for("the connection's end", || procs.horizon() > held);
}

/// The answer to a stream that is over: where the next timeline begins.
fn next_timeline(replies: &[Reply]) -> (String, u64) {
    let row = replies.iter().find(|reply| reply.kind == b'D').expect("no row");
    let values = row.values();
    (
        values[0].clone().unwrap(),
        position(values[1].as_deref().unwrap()),
    )
}

/// The log goes on under a new number while Alice's standby follows: her stream ends with the last byte before, and tells
/// her where to go on. Bob's, which comes later, is sent the former timeline's log up to there too.
#[test]
fn a_stream_ends_with_its_timeline() {
    let server = server_with("autovacuum = false\nwal_writer_delay = \"1h\"");
    let mut client = server.client();
    client.rows("create table notes (id int primary key)");
    let storage = server.engine.storage();
    // Nothing is logged meanwhile, as on a standby that is promoted.
    storage.stop_threads();
    storage.wal.flush(storage.wal.reserved());
    let fork = storage.wal.flushed();
    let mut alice = follower(&server);
    start(&mut alice, "START_REPLICATION 0/1000000 TIMELINE 1");
    log_until(&mut alice, SEGMENT, fork.0);
    assert_eq!(storage.begin_timeline(fork, "promoted").unwrap(), 2);
    let last = loop {
        let reply = alice.read().expect("the stream ended");
        if reply.kind != b'd' {
            break reply;
        }
        assert!(piece(&reply).is_none(), "log behind the end of the timeline");
    };
    assert_eq!(last.kind, b'c');
    // Nothing follows CopyDone before the follower's own, also if an answer is wanted.
    alice.send(&status(fork.0, fork.0, true));
    alice.send(&message(b'c', b""));
    let replies = alice.until_ready();
    assert_eq!(kinds(&replies), "TDCCZ");
    assert_eq!(next_timeline(&replies), ("2".to_owned(), fork.0));

    client.rows("insert into notes values (1)");
    let mut bob = follower(&server);
    let system = bob.rows("IDENTIFY_SYSTEM").remove(0);
    assert_eq!(system[1].as_deref(), Some("2"));
    let history = bob.rows("TIMELINE_HISTORY 2").remove(0);
    assert_eq!(history[0].as_deref(), Some("00000002.history"));
    let content = history[1].clone().unwrap();
    let (identity, ended) = content.split_once('\n').unwrap();
    assert!(identity.starts_with("# identity of timeline 2: "), "{identity}");
    assert_eq!(ended, format!("1\t{fork}\tpromoted\n"));
    start(&mut bob, "START_REPLICATION 0/1000000 TIMELINE 1");
    let log = log_until(&mut bob, SEGMENT, fork.0);
    assert_eq!(log.len() as u64, fork.0 - SEGMENT, "not a byte of timeline 2");
    bob.send(&message(b'c', b""));
    let replies = bob.until_ready();
    assert_eq!(kinds(&replies), "cTDCCZ");
    assert_eq!(next_timeline(&replies), ("2".to_owned(), fork.0));
    // At the end there is no log to send, and behind it none of that timeline.
    let replies = bob.query(&format!("START_REPLICATION {fork} TIMELINE 1"));
    assert_eq!(kinds(&replies), "TDCC");
    assert_eq!(next_timeline(&replies), ("2".to_owned(), fork.0));
    for command in [
        format!(
            "START_REPLICATION {} TIMELINE 1",
            clearway_storage::Lsn(fork.0 + 8)
        ),
        format!("START_REPLICATION {fork} TIMELINE 3"),
    ] {
        let replies = bob.query(&command);
        assert_eq!(sqlstate(&replies), "XX000", "{command}");
    }
    start(&mut bob, &format!("START_REPLICATION {fork} TIMELINE 2"));
    let mut other = follower(&server);
    let end = flushed(&mut other);
    assert!(end > fork.0);
    log_until(&mut bob, fork.0, end);
}

/// A copy that was begun on one timeline and has ended on another: the list of its files says which log it needs, and the
/// history comes with it.
#[test]
fn a_backup_names_its_timelines() {
    let server = server_with("autovacuum = false");
    let storage = server.engine.storage();
    storage.stop_threads();
    storage.wal.flush(storage.wal.reserved());
    let fork = storage.wal.flushed();
    storage.begin_timeline(fork, "promoted").unwrap();
    let mut raw = follower(&server);
    let replies = raw.query("BASE_BACKUP ( LABEL 'x', MANIFEST 'yes', WAL )");
    let rows: Vec<_> = replies.iter().filter(|reply| reply.kind == b'D').collect();
    let end = rows.last().unwrap().values();
    assert_eq!(end[1].as_deref(), Some("2"));
    let sent: Vec<u8> = replies
        .iter()
        .filter(|reply| reply.kind == b'd')
        .flat_map(|reply| reply.body[1..].to_vec())
        .collect();
    let holds = |part: &str| sent.windows(part.len()).any(|window| window == part.as_bytes());
    let range = format!(
        "{{ \"Timeline\": 2, \"Start-LSN\": \"{}\"",
        rows[0].values()[0].clone().unwrap()
    );
    assert!(holds(&range), "{range}");
    for name in ["pg_wal/00000002.history", "pg_wal/000000020000000000000001"] {
        assert!(holds(name), "{name}");
    }
}
