//! Long values on their way to the client: each is in memory once, however slowly the client reads.
//!
//! The memory is that of the process, in which the server runs. The client compares what it reads piece by piece with what
//! is to come, so that it holds none of it.

mod support;

use clearway_engine::{Config, Engine, SessionState};
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
    server_with("")
}

/// The same with more lines of configuration.
fn server_with(lines: &str) -> (TestServer, Raw, Vec<Reply>) {
    let mut config = Config::from_toml(&format!("shared_buffers = \"2MB\"\n{lines}")).unwrap();
    if let Ok(assignments) = std::env::var("CLEARWAY_MECHANISMS") {
        for assignment in assignments.split(',') {
            config.mechanisms.set(assignment).expect("CLEARWAY_MECHANISMS");
        }
    }
    let message_bytes_max = config.max_message_size.bytes() as u32;
    let directory = tempfile::tempdir().unwrap();
    let engine = Engine::open(directory.path(), config).unwrap();
    let server = TestServer::with_options(engine, directory, |options| {
        options.message_bytes_max = message_bytes_max;
    });
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

/// Sends a statement, and compares what it sends; the bytes by which memory grew at most.
fn growth_of(
    measured: &mut Measured,
    client: &mut Raw,
    (sql, sent): (&str, &[u8]),
    expected: &[Vec<Part>],
) -> u64 {
    measured.start();
    client.send(sent);
    let others = read_expecting(&mut client.stream, b'D', expected);
    let error = others.iter().find(|reply| reply.kind == b'E');
    assert!(error.is_none(), "{sql}: {error:?}");
    let growth = measured.peak_growth();
    println!("{sql}: {} kB", growth >> 10);
    growth
}

/// A join or a sort keeps the places of values.
#[test]
fn a_value_is_in_memory_once_behind_joins_and_sorts() {
    let mut measured = Measured::alone();
    let (_server, mut client, _) = server();
    client.rows("create table l (id int primary key, v text)");
    client.rows("create table r (id int, l int)");
    client.rows("alter table l alter v set storage external");
    let times = BYTES / PATTERN.len();
    for id in [1, 2] {
        client.rows(&format!(
            "insert into l select {id}, repeat('{PATTERN}', {times})"
        ));
    }
    client.rows("insert into r values (1, 1), (2, 2), (3, 9)");
    let expected = row(&[Part::Repeated(PATTERN, times)]);
    let mut growth_is_of_one = |client: &mut Raw, sql: &str, rows: usize| {
        let growth = growth_of(
            &mut measured,
            client,
            (sql, &query(sql)),
            &vec![expected.clone(); rows],
        );
        assert!(
            growth < (BYTES + BYTES * 3 / 10) as u64,
            "{sql}: grew by {} kB",
            growth >> 10
        );
    };
    for method in ["hashjoin", "mergejoin", "nestloop"] {
        for other in ["hashjoin", "mergejoin", "nestloop"] {
            client.query(&format!("set enable_{other} = {}", other == method));
        }
        growth_is_of_one(&mut client, "select v from l left join r on r.l = l.id", 2);
        growth_is_of_one(&mut client, "select v from r join l on r.l = l.id", 2);
    }
    let filtered = "select v from l join r on r.l = l.id where r.id > 1 and v like '0%' order by r.id";
    growth_is_of_one(&mut client, filtered, 1);
    growth_is_of_one(&mut client, "select v from l order by id desc", 2);
    growth_is_of_one(
        &mut client,
        "select v from l where v like '0%' order by id desc",
        2,
    );
}

/// A group or a window keeps the places of values, and DISTINCT their digests. An aggregate keeps a value.
#[test]
fn a_value_is_in_memory_once_behind_groups_and_windows() {
    let mut measured = Measured::alone();
    let (_server, mut client, _) = server();
    client.rows("create table l (id int primary key, v text)");
    client.rows("alter table l alter v set storage external");
    let times = BYTES / PATTERN.len();
    for id in [1, 2, 3] {
        let value = format!("repeat('{PATTERN}', {times}) || {} ", id % 2);
        client.rows(&format!("insert into l select {id}, {value}"));
    }
    let value = |id: usize| {
        [
            Part::Repeated(PATTERN, times),
            bytes((id % 2).to_string().as_bytes()),
        ]
    };
    let numbered = |id: usize| {
        let length = (BYTES + 1) as u32;
        let front = [&[0, 2][..], &length.to_be_bytes()].concat();
        let behind = [&[0, 0, 0, 1][..], id.to_string().as_bytes()].concat();
        [&[Part::Bytes(front)], &value(id)[..], &[Part::Bytes(behind)]].concat()
    };
    let of = |ids: &[usize]| ids.iter().map(|id| row(&value(*id))).collect::<Vec<_>>();
    let all: Vec<_> = [1, 2, 3].map(numbered).into();
    let ranked = "select v from (select v, rank() over (order by id) n from l) x where n > 0";
    let chained = "select v from l where id < 3 union all select v from l where id = 3";
    let cases = [
        ("select v from l group by v", of(&[1, 2]), 1),
        ("select v from l group by v having count(*) > 1", of(&[1]), 1),
        ("select v, id from l group by id, v", all.clone(), 1),
        ("select distinct v from l", of(&[1, 2]), 1),
        ("select v, row_number() over (order by id) from l", all, 1),
        (ranked, of(&[1, 2, 3]), 1),
        (chained, of(&[1, 2, 3]), 1),
        ("select max(v) from l", of(&[1]), 2),
    ];
    for (sql, expected, copies) in cases {
        let growth = growth_of(&mut measured, &mut client, (sql, &query(sql)), &expected);
        assert!(
            growth < (copies * BYTES + BYTES * 3 / 10) as u64,
            "{sql}: grew by {} kB",
            growth >> 10
        );
    }
}

/// A session that has stored a value, and has no other statement, keeps nothing of it.
#[test]
fn a_value_leaves_memory_with_the_statement_that_has_stored_it() {
    let mut measured = Measured::alone();
    let (_server, mut client, _) = server_with("max_message_size = \"64MB\"");
    client.rows("create table t (v text)");
    client.rows("alter table t alter v set storage external");
    let times = BYTES / PATTERN.len();
    let text = PATTERN.repeat(times);
    let by_bind = |sql: &str| {
        let bind = bind("", "", &[Some(&text)]);
        [parse("", sql), bind, execute("", 0), sync()].concat()
    };
    let made = format!("insert into t select repeat('{PATTERN}', {times})");
    // Of a value that the client has sent its message is there too. A text of so many bytes would be refused: its plan could
    // take more memory than there is.
    let cases = [
        (by_bind("insert into t values ($1)"), 0, None),
        (by_bind("insert into t values ($1) returning v"), 1, None),
        (query(&made), 0, Some(BYTES)),
        (query(&format!("{made} returning v")), 1, Some(BYTES)),
    ];
    let expected = row(&[Part::Repeated(PATTERN, times)]);
    for (number, (sent, rows, at_once)) in cases.iter().enumerate() {
        let name = format!("case {number}");
        let expected = vec![expected.clone(); *rows];
        let growth = growth_of(&mut measured, &mut client, (&name, sent), &expected);
        if let Some(bytes) = at_once {
            assert!(
                growth < (bytes + bytes * 3 / 10) as u64,
                "{name}: grew by {} kB",
                growth >> 10
            );
        }
        // The buffer of the message is given back when the session reads on.
        wait_for("what the statement had to be given back", || {
            measured.growth() < (BYTES / 4) as u64
        });
    }
    let stored = format!("select count(*) from t where length(v) = {BYTES}");
    assert_eq!(client.value(&stored), cases.len().to_string());
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
