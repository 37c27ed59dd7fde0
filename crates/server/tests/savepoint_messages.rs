//! Savepoints as clients see them: transaction states, pipelines, portals, settings, COPY.

mod support;

use support::*;

/// The transaction status in the last reply.
fn status(replies: &[Reply]) -> char {
    let last = replies.last().unwrap();
    assert_eq!(last.kind, b'Z');
    char::from(last.body[0])
}

/// Messages that run a statement by the extended protocol.
fn run(sql: &str) -> Vec<u8> {
    [parse("", sql), bind("", "", &[]), execute("", 0)].concat()
}

#[test]
fn each_answer_tells_the_state() {
    let server = TestServer::start();
    let mut client = server.client();
    client.rows("create table t (a int primary key)");
    for by_message in [true, false] {
        for (sql, kinds_of, state) in [
            ("savepoint a", "E", 'I'),
            ("begin", "C", 'T'),
            ("savepoint a", "C", 'T'),
            ("insert into t values (1)", "C", 'T'),
            ("insert into t values (1)", "E", 'E'),
            ("savepoint b", "E", 'E'),
            ("release a", "E", 'E'),
            ("rollback to b", "E", 'E'),
            ("rollback to a", "C", 'T'),
            ("insert into t values (2)", "C", 'T'),
            ("release a", "C", 'T'),
            ("savepoint a", "C", 'T'),
            ("selec 1", "E", 'E'),
            ("rollback to savepoint a", "C", 'T'),
            ("delete from t", "C", 'T'),
            ("savepoint a", "C", 'T'),
            ("rollback to nothing", "E", 'E'),
            ("commit", "C", 'I'),
        ] {
            let replies = if by_message {
                client.send(&query(sql));
                client.until_ready()
            } else {
                client.send(&[run(sql), sync()].concat());
                let all = client.until_ready();
                let rest = all.into_iter().filter(|reply| !b"12n".contains(&reply.kind));
                rest.collect()
            };
            assert_eq!(kinds(&replies), format!("{kinds_of}Z"), "{sql}");
            assert_eq!(status(&replies), state, "{sql}");
        }
    }
    assert_eq!(client.value("select count(*) from t"), "0");
}

/// An error in a pipeline skips the rest up to Sync, ROLLBACK TO included; the next one goes back.
#[test]
fn a_pipeline_goes_back() {
    let server = TestServer::start();
    let mut client = server.client();
    client.rows("create table t (a int primary key)");
    let pipeline = [
        "begin",
        "savepoint a",
        "insert into t values (1)",
        "select 1 / 0",
        "rollback to a",
    ];
    let mut messages: Vec<u8> = pipeline.iter().flat_map(|sql| run(sql)).collect();
    messages.extend(sync());
    client.send(&messages);
    let replies = client.until_ready();
    assert_eq!(kinds(&replies), "12C12C12C12EZ");
    assert_eq!(status(&replies), 'E');
    let pipeline = ["rollback to a", "insert into t values (2)", "release a", "commit"];
    let mut messages: Vec<u8> = pipeline.iter().flat_map(|sql| run(sql)).collect();
    messages.extend(sync());
    client.send(&messages);
    let replies = client.until_ready();
    assert_eq!(kinds(&replies), "12C12C12C12CZ");
    assert_eq!(client.value("select a from t"), "2");
}

/// Portals made behind the savepoint go, those from before go on with what they saw.
#[test]
fn portals_made_since_are_gone() {
    let server = TestServer::start();
    let mut client = server.client();
    client.rows("create table t (a int primary key)");
    client.rows("insert into t select n from generate_series(1, 5) as n");
    let open = |name: &str, rows: i32| {
        [
            parse("", "select a from t order by a"),
            bind(name, "", &[]),
            execute(name, rows),
        ]
        .concat()
    };
    let bound = [parse("", "select a from t"), bind("bound", "", &[])].concat();
    client.query("begin");
    client.send(&[open("before", 2), sync()].concat());
    assert_eq!(kinds(&client.until_ready()), "12DDsZ");
    client.query("savepoint a");
    client.query("update t set a = a + 10");
    client.send(&[open("since", 2), bound, sync()].concat());
    assert_eq!(kinds(&client.until_ready()), "12DDs12Z");
    client.query("rollback to a");
    client.send(&[open("again", 1), sync()].concat());
    assert_eq!(kinds(&client.until_ready()), "12DsZ");
    client.query("rollback to a");
    for gone in ["since", "bound", "again"] {
        client.query("savepoint b");
        client.send(&[execute(gone, 0), sync()].concat());
        let replies = client.until_ready();
        assert_eq!(replies[0].sqlstate(), "34000", "{gone}");
        client.query("rollback to b");
    }
    client.send(&[execute("before", 0), sync()].concat());
    let replies = client.until_ready();
    assert_eq!(kinds(&replies), "DDDCZ");
    assert_eq!(replies[0].values(), [Some("3".to_owned())]);
}

/// The client is told of a setting that comes back, also if an error has put it back.
#[test]
fn settings_that_come_back_are_told() {
    let server = TestServer::start();
    let mut client = server.client();
    client.rows("set application_name = 'one'");
    client.query("begin");
    for error in ["select 1", "select 1 / 0"] {
        client.query("savepoint a");
        client.query("set application_name = 'two'");
        client.query(error);
        let replies = client.query("rollback to a");
        assert_eq!(kinds(&replies), "SC");
        assert_eq!(replies[0].body, b"application_name\0one\0");
    }
    client.query("set application_name = 'three'");
    let replies = client.query("rollback");
    assert_eq!(kinds(&replies), "SC");
    assert_eq!(replies[0].body, b"application_name\0one\0");
}

/// A COPY that fails is taken back with what it had stored.
#[test]
fn a_copy_is_taken_back() {
    let server = TestServer::start();
    let mut client = server.client();
    client.rows("create table t (a int primary key)");
    client.query("begin");
    client.query("insert into t values (1)");
    client.query("savepoint a");
    let rows: String = (2..2_000).map(|number| format!("{number}\n")).collect();
    for last in ["1\n", ""] {
        client.send(&[query("copy t from stdin"), message(b'd', rows.as_bytes())].concat());
        client.send(&[message(b'd', last.as_bytes()), message(b'c', b"")].concat());
        let replies = client.until_ready();
        let (end, state) = if last.is_empty() {
            ("GCZ", 'T')
        } else {
            ("GEZ", 'E')
        };
        assert_eq!((kinds(&replies).as_str(), status(&replies)), (end, state));
        client.query("rollback to a");
        assert_eq!(client.value("select count(*) from t"), "1");
    }
    client.query("commit");
    assert_eq!(client.value("select count(*) from t"), "1");
}

/// Ten thousand savepoints inside each other, by pipelines of a thousand, with a row at each hundredth; in the innermost a COPY
/// that fails. Then back by messages of both protocols.
#[test]
fn ten_thousand_inside_each_other() {
    let server = TestServer::start();
    let mut client = server.client();
    client.rows("create table t (a int primary key)");
    client.query("begin");
    for first in (0..10_000).step_by(1_000) {
        let levels = (first..first + 1_000).flat_map(|level| {
            let row = match level % 100 {
                0 => run(&format!("insert into t values ({level})")),
                _ => Vec::new(),
            };
            [run(&format!("savepoint s{level}")), row].concat()
        });
        let messages: Vec<u8> = levels.chain(sync()).collect();
        client.send(&messages);
        let replies = client.until_ready();
        assert_eq!(kinds(&replies), "12C".repeat(1_010) + "Z");
    }
    let count = |client: &mut Raw| client.value("select count(*) from t");
    for (rows, end) in [("10000\n10001\n", "GCZ"), ("10002\n9900\n", "GEZ")] {
        client.send(
            &[
                query("copy t from stdin"),
                message(b'd', rows.as_bytes()),
                message(b'c', b""),
            ]
            .concat(),
        );
        assert_eq!(kinds(&client.until_ready()), end);
    }
    client.query("rollback to s9999");
    assert_eq!(count(&mut client), "100");
    let pipeline = ["rollback to s5000", "release s2500", "insert into t values (0)"];
    let mut messages: Vec<u8> = pipeline.iter().flat_map(|sql| run(sql)).collect();
    messages.extend(sync());
    client.send(&messages);
    let replies = client.until_ready();
    assert_eq!(kinds(&replies), "12C12C12EZ");
    assert_eq!(status(&replies), 'E');
    client.query("rollback to s2499");
    assert_eq!(count(&mut client), "25");
    client.query("commit");
    assert_eq!(count(&mut client), "25");
}
