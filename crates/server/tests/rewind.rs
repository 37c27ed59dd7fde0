//! Rewinding over a connection: a server's answers to REWIND, and a directory that is rewound to it.
//!
//! # Mutations seen to fail
//! `crates/server/mutations/rewind.toml` lists them.

mod support;

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use clearway_engine::{Config, Engine};
use clearway_server::StopSignal;
use clearway_server::replication::receiver::client::Client;
use clearway_server::replication::receiver::rewind::{RewindOutcome, RewindRequest, rewind};
use clearway_server::replication::receiver::{ReceiverError, base_backup};
use clearway_storage::PAGE_SIZE;
use clearway_storage::directory_state::directory_state;
use clearway_storage::rewind::{LOG_BYTES_MAX, PAGES_MAX, rewind_is_unfinished};
use support::{PATIENCE, Raw, Reply, TestServer};

fn config() -> Config {
    Config::from_toml("autovacuum = false\nshared_buffers = \"16MB\"").unwrap()
}

fn connect(address: SocketAddr) -> Result<Client, ReceiverError> {
    let conninfo = format!("host={} port={} sslmode=disable", address.ip(), address.port());
    Client::connect(&conninfo.parse().unwrap(), PATIENCE, &StopSignal::new().unwrap())
}

fn rewound(data: &Path, address: SocketAddr) -> Result<RewindOutcome, ReceiverError> {
    let request = RewindRequest {
        dir: data.to_owned(),
        fsync: false,
        dry_run: false,
        slot: None,
    };
    rewind(|| connect(address), &request, |_| ())
}

/// A server on the database in `data`, which outlives it.
fn serve(data: &Path) -> TestServer {
    let engine = Engine::open(data, config()).unwrap();
    TestServer::over(engine, tempfile::tempdir().unwrap(), 20)
}

/// A standby's server on a copy of what listens at `source`.
fn copy_of(source: &TestServer) -> TestServer {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let mut client = connect(source.address).unwrap();
    base_backup::fetch(&mut client, &data, false, |_| ()).unwrap();
    let engine = Engine::open_standby(&data, config()).unwrap();
    TestServer::over(engine, directory, 20)
}

/// The directory of Alice's server, which has stopped, and Bob's server, which was promoted before that. Both have rows that
/// the other one lacks.
fn parted() -> (tempfile::TempDir, PathBuf, TestServer) {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("alice");
    let alice = serve(&data);
    alice.client().rows("create table notes (id int primary key)");
    alice
        .client()
        .rows("insert into notes select generate_series(1, 2000)");
    let bob = copy_of(&alice);
    bob.engine.promote("a test").unwrap();
    bob.client()
        .rows("insert into notes select generate_series(5001, 5100)");
    alice
        .client()
        .rows("insert into notes select generate_series(3001, 3100)");
    (directory, data, bob)
}

#[test]
fn a_former_primary_is_rewound() {
    let (_directory, data, bob) = parted();
    let outcome = rewound(&data, bob.address).unwrap();
    assert!(
        matches!(outcome, RewindOutcome::Rewound(summary) if summary.pages < summary.pages_total),
        "{outcome:?}"
    );
    assert!(directory_state(&data).unwrap().standby);
    let engine = Engine::open_read_only(&data, config()).unwrap();
    let report = engine.check_with(&mut |_| {}).unwrap();
    assert_eq!((report.problems, report.rows >= 2100), (Vec::new(), true));
}

/// Two copies of one directory wrote on the same timeline. The histories tell nothing, and the server's log is the longer one;
/// the logs are not the same.
#[test]
fn a_log_that_only_looks_as_if_it_went_on_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let [first, second, third] = ["first", "second", "third"].map(|name| directory.path().join(name));
    serve(&first)
        .client()
        .rows("create table notes (id int primary key)");
    for copy in [&second, &third] {
        copy_files(&first, copy);
    }
    serve(&second).client().rows("insert into notes values (2)");
    let server = serve(&first);
    server
        .client()
        .rows("insert into notes select generate_series(1001, 1500)");
    assert_eq!(rewound(&third, server.address).unwrap(), RewindOutcome::GoesOn);
    let error = rewound(&second, server.address).unwrap_err();
    assert!(matches!(error, ReceiverError::Diverged { .. }), "{error}");
    assert!(!rewind_is_unfinished(&second));
}

fn copy_files(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for found in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let copy = to.join(found.file_name());
        if found.file_type().unwrap().is_dir() {
            copy_files(&found.path(), &copy);
        } else {
            std::fs::copy(found.path(), copy).unwrap();
        }
    }
}

/// A link to `target` that flips a bit in the answer to the first command that begins with `command`.
fn flipping_link(target: SocketAddr, command: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut server = TcpStream::connect(target).unwrap();
        let mut asked = vec![0; 64 << 10];
        let mut is_flipped = false;
        // One side at a time: the client asks, and the server answers until it is ready.
        while let Ok(count @ 1..) = client.read(&mut asked) {
            server.write_all(&asked[..count]).unwrap();
            let mut flips = !is_flipped
                && asked[..count]
                    .windows(command.len())
                    .any(|part| part == command.as_bytes());
            is_flipped |= flips;
            loop {
                let mut head = [0; 5];
                if server.read_exact(&mut head).is_err() {
                    let _ = client.shutdown(Shutdown::Both);
                    return;
                }
                let length = u32::from_be_bytes(head[1..].try_into().unwrap()) as usize;
                let mut body = vec![0; length - 4];
                server.read_exact(&mut body).unwrap();
                if head[0] == b'd' && flips {
                    let middle = body.len() / 2;
                    body[middle] ^= 4;
                    flips = false;
                }
                let _ = client.write_all(&[&head[..], &body].concat());
                if head[0] == b'Z' {
                    break;
                }
            }
        }
    });
    address
}

/// A bit that is flipped on the way, in each kind of answer. Nothing is taken from such an answer, and the next attempt
/// succeeds.
#[test]
fn an_answer_that_was_changed_on_its_way_is_not_taken() {
    let (_directory, data, bob) = parted();
    for command in [
        "REWIND BEGIN",
        "REWIND REL",
        "REWIND STATUS",
        "REWIND PAGES",
        "REWIND LOG",
        "REWIND END",
    ] {
        let error = rewound(&data, flipping_link(bob.address, command)).unwrap_err();
        assert!(
            matches!(error, ReceiverError::Protocol { .. }),
            "{command}: {error}"
        );
        assert!(
            error.to_string().contains("changed on its way") && !error.is_final(),
            "{command}: {error}"
        );
    }
    assert!(rewind_is_unfinished(&data));
    rewound(&data, bob.address).unwrap();
    assert!(directory_state(&data).unwrap().standby && !rewind_is_unfinished(&data));
}

fn sqlstate(replies: &[Reply]) -> String {
    let error = replies.iter().find(|reply| reply.kind == b'E');
    error
        .unwrap_or_else(|| panic!("no error: {replies:?}"))
        .sqlstate()
}

fn replication(server: &TestServer) -> Raw {
    let mut raw = server.connect();
    raw.start(&[("user", "alice"), ("replication", "true")]);
    raw
}

/// The bytes of an answer.
fn answer(raw: &mut Raw, command: &str) -> Vec<u8> {
    let replies = raw.query(command);
    let pieces = replies.iter().filter(|reply| reply.kind == b'd');
    let bytes = pieces.flat_map(|reply| reply.body.clone()).collect::<Vec<u8>>();
    let row = replies
        .iter()
        .find(|reply| reply.kind == b'D')
        .unwrap_or_else(|| panic!("{command}: {replies:?}"));
    assert_eq!(
        row.values(),
        [Some(crc32c::crc32c(&bytes).to_string())],
        "{command}"
    );
    bytes
}

#[test]
fn what_a_rewind_may_ask_for_is_bounded() {
    let server = TestServer::over_config(config());
    let mut raw = replication(&server);
    for command in ["RELATIONS", "PAGES 0 0", "STATUS 0 1", "LOG 0/1000000 8", "END"] {
        assert_eq!(
            sqlstate(&raw.query(&format!("REWIND {command}"))),
            "55000",
            "{command}"
        );
    }
    // The log of a new database begins with its first segment.
    assert_eq!(sqlstate(&raw.query("REWIND BEGIN 0/8")), "58P01");
    let begun = answer(&mut raw, "REWIND BEGIN 0/1000000");
    assert_eq!(begun.len(), 24);
    let redo = u64::from_le_bytes(begun[..8].try_into().unwrap());
    let pages = |count: usize| format!("REWIND PAGES 0{}", " 0".repeat(count));
    assert_eq!(answer(&mut raw, &pages(PAGES_MAX)).len(), PAGES_MAX * PAGE_SIZE);
    assert_eq!(
        answer(&mut raw, &format!("REWIND STATUS 0 {PAGES_MAX}")).len(),
        PAGES_MAX * 4
    );
    assert_eq!(answer(&mut raw, "REWIND LOG 0/1000000 64").len(), 64);
    let behind = format!("REWIND LOG {:X}/{:X} {LOG_BYTES_MAX}", redo >> 32, redo as u32);
    for (refused, problem) in [
        (pages(PAGES_MAX + 1), "too many pages"),
        (format!("REWIND STATUS 0 {}", PAGES_MAX + 1), "too many pages"),
        (
            format!("REWIND LOG 0/1000000 {}", LOG_BYTES_MAX + 1),
            "too many bytes of log",
        ),
        (behind, "the log is durable up to"),
    ] {
        let replies = raw.query(&refused);
        assert_eq!(sqlstate(&replies), "22023", "{problem}");
        let error = replies.iter().find(|reply| reply.kind == b'E').unwrap();
        assert!(
            error.field(b'M').unwrap().contains(problem),
            "{problem}: {replies:?}"
        );
    }
    assert!(!answer(&mut raw, "REWIND END").is_empty());
}

#[test]
fn a_standby_is_no_server_to_rewind_to() {
    let primary = TestServer::over_config(config());
    let standby = copy_of(&primary);
    let replies = replication(&standby).query("REWIND BEGIN 0/1000000");
    assert_eq!(sqlstate(&replies), "55000");
    let error = replies.iter().find(|reply| reply.kind == b'E').unwrap();
    assert!(
        error.field(b'M').unwrap().contains("name the primary"),
        "{replies:?}"
    );
}
