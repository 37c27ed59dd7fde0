//! Long values on their way to the client: each is in memory once, however slowly the client reads.
//!
//! The memory is that of the process, in which the server runs. The client compares what it reads piece by piece with what
//! is to come, so that it holds none of it.

mod support;

use clearway_engine::{Config, SessionState};
use support::memory::Measured;
use support::*;

/// Bytes of a value. More than 32 MiB, so that the C library's allocator takes each copy from the system and gives it back:
/// what is resident is what is there.
const BYTES: usize = 36 << 20;

/// Bytes of the pattern that fills the values.
const PATTERN: &str = "0123456789abcdef";
/// The same as hexadecimal digits.
const DIGITS: &str = "30313233343536373839616263646566";

/// A part of what is to come.
#[derive(Clone)]
enum Part {
    Bytes(Vec<u8>),
    /// A pattern, so many times.
    Repeated(&'static str, usize),
}

impl Part {
    fn length(&self) -> usize {
        match self {
            Part::Bytes(bytes) => bytes.len(),
            Part::Repeated(pattern, times) => pattern.len() * times,
        }
    }
}

fn bytes(bytes: &[u8]) -> Part {
    Part::Bytes(bytes.to_vec())
}

/// A row of one value.
fn row(value: &[Part]) -> Vec<Part> {
    let length: usize = value.iter().map(Part::length).sum();
    let front = [&[0, 1][..], &(length as u32).to_be_bytes()].concat();
    [&[Part::Bytes(front)], value].concat()
}

/// Reads messages up to ReadyForQuery. Those of `kind` are the `expected` ones, which are not kept; the others are given
/// back.
fn read_expecting<S: std::io::Read>(stream: &mut S, kind: u8, expected: &[Vec<Part>]) -> Vec<Reply> {
    let mut expected = expected.iter();
    let mut others = Vec::new();
    loop {
        let mut header = [0; 5];
        stream.read_exact(&mut header).unwrap();
        let length = u32::from_be_bytes(header[1..].try_into().unwrap()) as usize - 4;
        if header[0] == kind {
            let parts = expected.next().expect("no such message is to come");
            assert_eq!(length, parts.iter().map(Part::length).sum::<usize>());
            parts.iter().for_each(|part| read_part(stream, part));
            continue;
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        others.push(Reply {
            kind: header[0],
            body,
        });
        if header[0] == b'Z' {
            assert!(expected.next().is_none(), "a message is missing: {others:?}");
            return others;
        }
    }
}

fn read_part<S: std::io::Read>(stream: &mut S, part: &Part) {
    match part {
        Part::Bytes(expected) => {
            let mut found = vec![0; expected.len()];
            stream.read_exact(&mut found).unwrap();
            assert_eq!(&found, expected);
        }
        Part::Repeated(pattern, times) => {
            let expected = pattern.repeat(4_096);
            let mut found = vec![0; expected.len()];
            let mut left = pattern.len() * times;
            while left > 0 {
                let now = left.min(found.len());
                stream.read_exact(&mut found[..now]).unwrap();
                assert!(
                    found[..now] == expected.as_bytes()[..now],
                    "{left} bytes before the end"
                );
                left -= now;
            }
        }
    }
}

/// A statement without parameters, its result as text or in binary.
fn statement(sql: &str, is_binary: bool) -> Vec<u8> {
    if !is_binary {
        return query(sql);
    }
    let bind = message(b'B', &[0, 0, 0, 0, 0, 0, 0, 1, 0, 1]);
    [parse("", sql), bind, execute("", 0), sync()].concat()
}

/// A server whose pages are few beside the values that are measured, a client, and what it was greeted with.
fn server() -> (TestServer, Raw, Vec<Reply>) {
    let mut config = Config::from_toml("shared_buffers = \"2MB\"").unwrap();
    if let Ok(assignments) = std::env::var("CLEARWAY_MECHANISMS") {
        for assignment in assignments.split(',') {
            config.mechanisms.set(assignment).expect("CLEARWAY_MECHANISMS");
        }
    }
    let server = TestServer::over_config(config);
    let mut client = server.connect();
    let greeting = client.start(&[("user", "alice")]);
    (server, client, greeting)
}

/// Stores a value of this type and storage in a table of its own.
fn store(client: &mut Raw, table: &str, data_type: &str, storage: &str, value: &str, rows: usize) {
    client.rows(&format!("create table {table} (v {data_type})"));
    client.rows(&format!("alter table {table} alter v set storage {storage}"));
    for _ in 0..rows {
        client.rows(&format!("insert into {table} select {value}"));
    }
}

#[test]
fn a_value_is_in_memory_once_while_it_is_sent() {
    /// Of one that is stored as it is; the others are compressed.
    const LONG: usize = 100_000_000;
    let mut measured = Measured::alone();
    let (_server, mut client, _) = server();
    let filled = |bytes: usize| Part::Repeated(PATTERN, bytes / PATTERN.len());
    let repeated = |bytes: usize| format!("repeat('{PATTERN}', {})", bytes / PATTERN.len());
    let hex = [bytes(b"\\x"), Part::Repeated(DIGITS, BYTES / PATTERN.len())];
    let versioned = [bytes(b"\x01\""), filled(BYTES), bytes(b"\"")];
    let value = repeated(BYTES);
    store(&mut client, "long", "text", "external", &repeated(LONG), 1);
    store(&mut client, "texts", "text", "extended", &value, 2);
    store(
        &mut client,
        "b",
        "bytea",
        "extended",
        &format!("convert_to({value}, 'UTF8')"),
        1,
    );
    store(
        &mut client,
        "jb",
        "jsonb",
        "extended",
        &format!("to_jsonb({value})"),
        1,
    );
    let header = [
        &b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0"[..],
        &[0, 1],
        &(BYTES as u32).to_be_bytes(),
    ]
    .concat();
    let (long, whole) = (row(&[filled(LONG)]), row(&[filled(BYTES)]));
    let line = vec![filled(BYTES), bytes(b"\n")];
    let binary = vec![bytes(&header), filled(BYTES)];
    let cases = [
        ("select v from long", false, vec![long], LONG),
        ("select v from texts", false, vec![whole.clone(), whole], BYTES),
        ("select v from b", false, vec![row(&hex)], BYTES),
        ("select v from jb", true, vec![row(&versioned)], BYTES),
        ("copy texts to stdout", false, vec![line.clone(), line], BYTES),
        (
            "copy b to stdout (format binary)",
            false,
            vec![binary, vec![bytes(&[0xff, 0xff])]],
            BYTES,
        ),
    ];
    for (sql, is_binary, expected, stored) in cases {
        let kind = if sql.starts_with("copy") { b'd' } else { b'D' };
        measured.start();
        client.send(&statement(sql, is_binary));
        let others = read_expecting(&mut client.stream, kind, &expected);
        let error = others.iter().find(|reply| reply.kind == b'E');
        assert!(error.is_none(), "{sql}: {error:?}");
        let growth = measured.peak_growth();
        println!(
            "{sql} (in binary: {is_binary}): {} of {} kB",
            growth >> 10,
            stored >> 10
        );
        assert!(
            growth < (stored + stored * 3 / 10) as u64,
            "{sql} (in binary: {is_binary}): grew by {} kB for {} kB",
            growth >> 10,
            stored >> 10
        );
    }
    // Nor does the session keep it after a statement that has not sent it.
    measured.start();
    assert_eq!(client.value("select length(v) from long"), LONG.to_string());
    assert!(
        measured.growth() < (LONG / 4) as u64,
        "{} kB are left",
        measured.growth() >> 10
    );
}

/// The rest of a message of which a part has left follows, and the error behind it; the session goes on.
#[test]
fn a_long_value_that_is_not_read_takes_no_more_memory_and_can_be_cancelled() {
    let mut measured = Measured::alone();
    let (server, mut client, greeting) = server();
    let value = format!("repeat('{PATTERN}', {})", BYTES / PATTERN.len());
    store(&mut client, "t", "text", "external", &value, 1);
    store(
        &mut client,
        "b",
        "bytea",
        "external",
        &format!("convert_to({value}, 'UTF8')"),
        1,
    );
    let filled = |pattern| Part::Repeated(pattern, BYTES / PATTERN.len());
    let of_bytes = [bytes(b"\\x"), filled(DIGITS)];
    let cases = [
        ("select v from t", b'D', row(&[filled(PATTERN)])),
        ("select v from b", b'D', row(&of_bytes)),
        ("copy t to stdout", b'd', vec![filled(PATTERN), bytes(b"\n")]),
    ];
    for (sql, kind, expected) in cases {
        measured.start();
        client.send(&query(sql));
        wait_for("the server to wait for its client", || {
            let activity = server.engine.activity();
            activity
                .iter()
                .any(|s| s.wait_event == Some("ClientWrite") && s.query.contains(sql))
        });
        let growth = measured.peak_growth();
        assert!(
            growth < (BYTES + BYTES * 3 / 10) as u64,
            "{sql}: grew by {} kB",
            growth >> 10
        );
        server.cancel(&greeting);
        wait_for("the statement to end", || {
            server
                .engine
                .activity()
                .iter()
                .all(|s| s.state == SessionState::Idle)
        });
        let others = read_expecting(&mut client.stream, kind, &[expected]);
        let error = others.iter().find(|reply| reply.kind == b'E').unwrap();
        assert_eq!(error.sqlstate(), "57014", "{sql}");
        assert_eq!(client.value("select 1"), "1");
    }
}
