//! The protocol, message by message.

mod support;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use support::*;

/// The transaction status in the last reply.
fn status(replies: &[Reply]) -> char {
    let last = replies.last().unwrap();
    assert_eq!(last.kind, b'Z');
    char::from(last.body[0])
}

#[test]
fn a_session_starts_with_what_clients_look_for() {
    let server = TestServer::start();
    let mut client = server.connect();
    // TLS and GSSAPI are asked for first, and declined with one byte each.
    for code in [80_877_103u32, 80_877_104] {
        client.send(&[8u32.to_be_bytes(), code.to_be_bytes()].concat());
        let mut answer = [0];
        client.stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"N");
    }
    let replies = client.start(&[
        ("user", "alice"),
        ("application_name", "probe"),
        ("options", "-c lock_timeout=5s"),
    ]);
    let parameter = |name: &str| {
        let wanted = [name.as_bytes(), b"\0"].concat();
        let found = replies
            .iter()
            .find(|reply| reply.kind == b'S' && reply.body.starts_with(&wanted));
        let body = &found.unwrap_or_else(|| panic!("no {name}")).body[wanted.len()..];
        String::from_utf8(body[..body.len() - 1].to_vec()).unwrap()
    };
    assert!(
        parameter("server_version").starts_with("15."),
        "{}",
        parameter("server_version")
    );
    assert_eq!(parameter("client_encoding"), "UTF8");
    assert_eq!(parameter("standard_conforming_strings"), "on");
    assert_eq!(parameter("integer_datetimes"), "on");
    assert_eq!(parameter("application_name"), "probe");
    assert!(
        replies
            .iter()
            .any(|reply| reply.kind == b'K' && reply.body.len() == 8)
    );
    assert_eq!(status(&replies), 'I');
    assert_eq!(client.value("show lock_timeout"), "5s");
}

#[test]
fn a_client_is_told_how_strings_are_read_and_of_escapes_in_them() {
    let server = TestServer::start();
    let mut client = server.client();
    let replies = client.query("set standard_conforming_strings = off");
    let told = replies.iter().find(|reply| reply.kind == b'S').unwrap();
    assert_eq!(told.body, b"standard_conforming_strings\0off\0");
    let sql = "select 'a\\tb'";
    for (sent, expected) in [
        (query(sql), "NTDCZ"),
        ([parse("", sql), sync()].concat(), "N1Z"),
        ([parse("named", sql), sync()].concat(), "N1Z"),
    ] {
        client.send(&sent);
        let replies = client.until_ready();
        assert_eq!(kinds(&replies), expected);
        let notice = &replies[0];
        assert_eq!(notice.sqlstate(), "22P06");
        assert_eq!(notice.field(b'P').unwrap(), "8");
        assert!(
            notice
                .field(b'H')
                .unwrap()
                .starts_with("Use the escape string syntax")
        );
    }
    let replies = client.query("reset standard_conforming_strings");
    assert!(
        replies
            .iter()
            .any(|reply| reply.body == b"standard_conforming_strings\0on\0")
    );
}

#[test]
fn unix_sockets_work_as_well() {
    let server = TestServer::start();
    let path = server
        .directory
        .path()
        .join(format!(".s.PGSQL.{}", server.address.port()));
    let mut stream = UnixStream::connect(path).unwrap();
    stream.write_all(&startup(&[("user", "alice")])).unwrap();
    stream.write_all(&query("select 7")).unwrap();
    stream.write_all(&message(b'X', b"")).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(
        answer.windows(9).any(|window| window == b"SELECT 1\0"),
        "{answer:?}"
    );
}

#[test]
fn a_newer_minor_version_is_negotiated_down() {
    let server = TestServer::start();
    let mut client = server.connect();
    let mut packet = startup(&[("user", "alice"), ("_pq_.strange", "1")]);
    packet[7] = 2;
    client.send(&packet);
    let replies = client.until_ready();
    assert_eq!(replies[0].kind, b'v');
    assert_eq!(
        replies[0].body,
        [&[0, 0, 0, 0, 0, 0, 0, 1], &b"_pq_.strange\0"[..]].concat()
    );
}

#[test]
fn start_ups_that_are_refused() {
    let server = TestServer::start();
    let refused = |packet: &[u8]| {
        let mut client = server.connect();
        client.send(packet);
        let replies = client.until_closed();
        assert_eq!(replies.len(), 1, "{replies:?}");
        assert_eq!(replies[0].field(b'S').unwrap(), "FATAL");
        replies[0].sqlstate()
    };
    assert_eq!(refused(&startup(&[])), "28000");
    assert_eq!(
        refused(&startup(&[("user", "a"), ("no_such_setting", "1")])),
        "42704"
    );
    assert_eq!(
        refused(&startup(&[("user", "a"), ("replication", "database")])),
        "0A000"
    );
    assert_eq!(refused(&startup(&[("user", "a"), ("database", "b")])), "3D000");
    // As in PostgreSQL, a client that names no database means the one called like its user.
    assert_eq!(refused(&startup_as_given(&[("user", "a")])), "3D000");
    let mut version_2 = startup(&[("user", "a")]);
    version_2[5] = 2;
    assert_eq!(refused(&version_2), "0A000");
    assert_eq!(refused(b"GET / HTTP/1.1\r\n\r\n"), "08P01");
}

#[test]
fn several_statements_in_one_query_are_one_transaction() {
    let server = TestServer::start();
    let mut client = server.client();
    let replies =
        client.query("create table t (a int); insert into t values (1), (2); select a from t order by a");
    assert_eq!(kinds(&replies), "CCTDDC");
    assert_eq!(replies[1].tag(), "INSERT 0 2");

    let replies = client.query("insert into t values (3); select * from nowhere; insert into t values (4)");
    assert_eq!(kinds(&replies), "CE");
    assert_eq!(replies[1].sqlstate(), "42P01");
    assert_eq!(
        client.value("select count(*) from t"),
        "2",
        "the first INSERT went with the error"
    );

    assert_eq!(kinds(&client.query("")), "I");
    assert_eq!(kinds(&client.query("  -- nothing\n")), "I");
}

#[test]
fn transaction_status_and_a_failed_transaction() {
    let server = TestServer::start();
    let mut client = server.client();
    client.send(&query("begin"));
    assert_eq!(status(&client.until_ready()), 'T');
    client.send(&query("select nonsense from nowhere"));
    let replies = client.until_ready();
    assert_eq!((replies[0].sqlstate().as_str(), status(&replies)), ("42P01", 'E'));
    client.send(&query("select 1"));
    let replies = client.until_ready();
    assert_eq!((replies[0].sqlstate().as_str(), status(&replies)), ("25P02", 'E'));
    client.send(&query("commit"));
    let replies = client.until_ready();
    assert_eq!((replies[0].tag(), status(&replies)), ("ROLLBACK", 'I'));
}

#[test]
fn errors_carry_position_and_severity() {
    let server = TestServer::start();
    let mut client = server.client();
    client.rows("create table t (a int)");
    let error = &client.query("select ä, nonsense from t")[0];
    assert_eq!(error.field(b'S').unwrap(), "ERROR");
    assert_eq!(error.field(b'V').unwrap(), "ERROR");
    assert_eq!(error.sqlstate(), "42703");
    assert_eq!(error.field(b'P').as_deref(), Some("8"));
}

#[test]
fn the_extended_protocol_in_one_batch() {
    let server = TestServer::start();
    let mut client = server.client();
    client.rows("create table t (a int primary key, b text)");
    client.rows("insert into t values (1, 'one'), (2, null)");
    client.send(
        &[
            parse("find", "select a, b from t where a = $1"),
            describe(b'S', "find"),
            bind("", "find", &[Some("2")]),
            describe(b'P', ""),
            execute("", 0),
            bind("", "find", &[Some("1")]),
            execute("", 0),
            sync(),
        ]
        .concat(),
    );
    let replies = client.until_ready();
    assert_eq!(kinds(&replies), "1tT2TDC2DCZ");
    assert_eq!(replies[1].body, [0, 1, 0, 0, 0, 23]);
    assert_eq!(replies[5].values(), [Some("2".to_owned()), None]);
    assert_eq!(
        replies[8].values(),
        [Some("1".to_owned()), Some("one".to_owned())]
    );
    assert_eq!(replies[9].tag(), "SELECT 1");

    client.send(
        &[
            parse("", "update t set b = $2 where a = $1"),
            describe(b'S', ""),
            sync(),
        ]
        .concat(),
    );
    assert_eq!(kinds(&client.until_ready()), "1tnZ");
    // The unnamed statement is still there after Sync.
    client.send(&[bind("", "", &[Some("2"), Some("two")]), execute("", 0), sync()].concat());
    let replies = client.until_ready();
    assert_eq!(kinds(&replies), "2CZ");
    assert_eq!(replies[1].tag(), "UPDATE 1");
    assert_eq!(client.value("select b from t where a = 2"), "two");
}

#[test]
fn binary_parameters_and_results() {
    let server = TestServer::start();
    let mut client = server.client();
    // One int8 parameter in binary form, one result column in binary form.
    let mut bound = b"\0sum\0\0\x01\0\x01\0\x01\0\0\0\x08".to_vec();
    bound.extend(40i64.to_be_bytes());
    bound.extend([0, 1, 0, 1]);
    let typed = message(b'P', b"sum\0select $1 + 2\0\0\x01\0\0\0\x14");
    client.send(
        &[
            typed,
            message(b'B', &bound),
            describe(b'P', ""),
            execute("", 0),
            sync(),
        ]
        .concat(),
    );
    let replies = client.until_ready();
    assert_eq!(kinds(&replies), "12TDCZ");
    assert_eq!(
        &replies[2].body[replies[2].body.len() - 2..],
        [0, 1],
        "the description says binary"
    );
    assert_eq!(
        replies[3].body,
        [&[0, 1, 0, 0, 0, 8][..], &42i64.to_be_bytes()].concat()
    );
}

#[test]
fn a_value_that_bind_has_decoded_keeps_its_type_when_the_table_is_defined_anew() {
    let server = TestServer::start();
    let (mut client, mut other) = (server.client(), server.client());
    client.query("create table t (id int primary key, x int); insert into t values (1, 5)");
    let flush = message(b'H', b"");
    let find = parse("find", "select id from t where x = $1");
    client.send(&[find, bind("", "find", &[Some("5")]), flush].concat());
    assert_eq!(client.read().unwrap().kind, b'1');
    assert_eq!(client.read().unwrap().kind, b'2');
    other.query(
        "drop table t; create table t (id int primary key, x numeric(10, 2)); insert into t values (1, 5), (2, 6)",
    );
    client.send(&[execute("", 0), sync()].concat());
    let replies = client.until_ready();
    assert_eq!(kinds(&replies), "DCZ", "{replies:?}");
    assert_eq!(replies[0].values(), [Some("1".to_owned())]);
}

#[test]
fn a_vacuum_among_other_statements_is_refused_rather_than_waiting_for_them() {
    let server = TestServer::start();
    let mut client = server.client();
    client.query("create table t (x int)");
    let replies = client.query("create index i on t (x); vacuum t");
    assert_eq!(kinds(&replies), "CE", "{replies:?}");
    assert_eq!(replies[1].sqlstate(), "25001");
    assert_eq!(client.value("select count(*) from pg_indexes"), "0");
    assert_eq!(kinds(&client.query("vacuum t")), "C");
}

#[test]
fn a_portal_gives_its_rows_in_portions() {
    let server = TestServer::start();
    let mut client = server.client();
    client.rows("create table t (a int)");
    client.rows("insert into t select n from generate_series(1, 5) as n");
    client.query("begin");
    client.send(
        &[
            parse("", "select a from t"),
            bind("cursor", "", &[]),
            execute("cursor", 2),
            sync(),
        ]
        .concat(),
    );
    assert_eq!(kinds(&client.until_ready()), "12DDsZ");
    client.send(&[execute("cursor", 2), sync()].concat());
    assert_eq!(kinds(&client.until_ready()), "DDsZ");
    client.send(&[execute("cursor", 2), sync()].concat());
    let replies = client.until_ready();
    assert_eq!(kinds(&replies), "DCZ");
    client.send(&[bind("cursor", "", &[]), sync()].concat());
    let replies = client.until_ready();
    assert_eq!(replies[0].sqlstate(), "42P03");
    client.query("rollback");
    client.send(&[execute("cursor", 0), sync()].concat());
    assert_eq!(
        client.until_ready()[0].sqlstate(),
        "34000",
        "a portal goes with its transaction"
    );
}

#[test]
fn after_an_error_all_is_skipped_up_to_sync() {
    let server = TestServer::start();
    let mut client = server.client();
    client.rows("create table t (a int)");
    client.send(
        &[
            parse("", "insert into t values (1)"),
            bind("", "", &[]),
            execute("", 0),
            parse("", "select broken from"),
            bind("", "", &[]),
            execute("", 0),
            describe(b'P', ""),
            query("insert into t values (9)"),
            sync(),
        ]
        .concat(),
    );
    let replies = client.until_ready();
    assert_eq!(kinds(&replies), "12CEZ");
    assert_eq!(replies[3].sqlstate(), "42601");
    assert_eq!(
        client.value("select count(*) from t"),
        "0",
        "one implicit transaction up to Sync"
    );
}

/// Errors that the server finds before the session does: each ends the transaction, the implicit one of a pipeline as
/// well as a block.
#[test]
fn every_error_of_the_extended_protocol_ends_its_transaction() {
    let server = TestServer::start();
    let mut client = server.client();
    client.rows("create table t (a int)");
    client.send(&[parse("s", "select $1::int"), sync()].concat());
    client.until_ready();
    let mistakes = [
        ("no statement", bind("", "nothing", &[])),
        ("a parameter", bind("", "s", &[Some("one")])),
        ("no parameter", bind("", "s", &[])),
        ("a name in use", parse("s", "select 1")),
        ("nothing to describe", describe(b'S', "nothing")),
        ("no portal", execute("nothing", 0)),
        ("a message that is too short", message(b'B', b"\0s\0\0\x02")),
    ];
    for (what, mistake) in mistakes {
        let insert = [
            parse("", "insert into t values (1)"),
            bind("", "", &[]),
            execute("", 0),
        ]
        .concat();
        client.send(&[insert, mistake.clone(), sync()].concat());
        let replies = client.until_ready();
        assert_eq!(kinds(&replies), "12CEZ", "{what}");
        assert_eq!(
            client.value("select count(*) from t"),
            "0",
            "{what}, in a pipeline"
        );
        client.query("begin; insert into t values (1)");
        client.send(&[mistake, sync()].concat());
        assert_eq!(status(&client.until_ready()), 'E', "{what}, in a block");
        assert_eq!(client.query("commit")[0].tag(), "ROLLBACK", "{what}");
        assert_eq!(client.value("select count(*) from t"), "0", "{what}, in a block");
    }
}

#[test]
fn errors_of_the_extended_protocol_have_their_codes() {
    let server = TestServer::start();
    let mut client = server.client();
    client.send(&[parse("s", "select $1::int"), sync()].concat());
    assert_eq!(kinds(&client.until_ready()), "1Z");
    let mut code = |messages: &[Vec<u8>]| {
        client.send(&messages.concat());
        client.send(&sync());
        let replies = client.until_ready();
        replies
            .iter()
            .find(|reply| reply.kind == b'E')
            .unwrap_or_else(|| panic!("{replies:?}"))
            .sqlstate()
    };
    assert_eq!(code(&[parse("s", "select 1")]), "42P05");
    assert_eq!(code(&[bind("", "nothing", &[])]), "26000");
    assert_eq!(code(&[describe(b'S', "nothing")]), "26000");
    assert_eq!(code(&[describe(b'P', "nothing")]), "34000");
    assert_eq!(code(&[execute("nothing", 0)]), "34000");
    assert_eq!(code(&[bind("", "s", &[])]), "08P01");
    assert_eq!(code(&[bind("", "s", &[Some("one")])]), "22P02");
    assert_eq!(code(&[message(b'B', b"\0s\0\0\x02")]), "08P01");
    assert_eq!(code(&[message(b'P', b"\0select '\xc3\x28'\0\0\0")]), "22021");
    assert_eq!(
        code(&[message(b'P', b"\0select $1\0\0\x01\x00\x00\x02\x58")]),
        "0A000"
    );
    // Close forgets, and forgetting nothing is no error.
    client.send(&[close(b'S', "s"), close(b'S', "s"), close(b'P', "none"), sync()].concat());
    assert_eq!(kinds(&client.until_ready()), "333Z");
    client.send(&[bind("", "s", &[Some("1")]), sync()].concat());
    assert_eq!(client.until_ready()[0].sqlstate(), "26000");
}

#[test]
fn a_function_call_is_not_supported_and_harms_no_session() {
    let server = TestServer::start();
    let mut client = server.client();
    client.send(&message(b'F', &[0, 0, 0, 1, 0, 0, 0, 0, 0, 0]));
    let replies = client.until_ready();
    assert_eq!(replies[0].sqlstate(), "0A000");
    assert_eq!(client.value("select 1"), "1");
}

#[test]
fn copy_in_and_out() {
    let server = TestServer::start();
    let mut client = server.client();
    client.rows("create table t (a int, b text)");
    client.send(&query("copy t from stdin"));
    assert_eq!(
        client.read().unwrap(),
        Reply {
            kind: b'G',
            body: vec![0, 0, 2, 0, 0, 0, 0]
        }
    );
    // Pieces end anywhere; Flush and Sync are allowed among them.
    client.send(
        &[
            message(b'd', b"1\ton"),
            message(b'H', b""),
            message(b'd', b"e\n2\t\\N\n"),
        ]
        .concat(),
    );
    client.send(
        &[
            sync(),
            message(b'd', b""),
            message(b'd', b"3\tthr\\\\ee\n"),
            message(b'c', b""),
        ]
        .concat(),
    );
    let replies = client.until_ready();
    assert_eq!(replies[0].tag(), "COPY 3");
    let replies = client.query("copy t to stdout");
    assert_eq!(kinds(&replies), "HdddcC");
    assert_eq!(replies[2].body, b"2\t\\N\n");
    assert_eq!(replies[3].body, b"3\tthr\\\\ee\n");
    assert_eq!(replies[5].tag(), "COPY 3");
}

#[test]
fn copy_through_the_extended_protocol() {
    let server = TestServer::start();
    let mut client = server.client();
    client.rows("create table t (a int)");
    client.send(
        &[
            parse("", "copy t from stdin"),
            bind("", "", &[]),
            execute("", 0),
            sync(),
        ]
        .concat(),
    );
    // libpq sends a second Sync after the data; the first is swallowed by the COPY.
    client.send(&[message(b'd', b"1\n2\n"), message(b'c', b""), sync()].concat());
    let replies = client.until_ready();
    assert_eq!(kinds(&replies), "12GCZ");
    assert_eq!(client.value("select count(*) from t"), "2");
}

#[test]
fn a_cancel_request_ends_the_statement() {
    let server = TestServer::start();
    let mut holder = server.client();
    holder.rows("create table t (a int primary key); insert into t values (1)");
    holder.query("begin; update t set a = a");
    let mut waiter = server.connect();
    let replies = waiter.start(&[("user", "bob")]);
    let key = replies
        .iter()
        .find(|reply| reply.kind == b'K')
        .unwrap()
        .body
        .clone();
    waiter.send(&query("update t set a = a"));
    wait_for("bob to wait", || {
        server
            .engine
            .activity()
            .iter()
            .any(|s| s.wait_event_type == Some("Lock"))
    });
    // A wrong secret does nothing.
    let mut wrong = key.clone();
    wrong[7] ^= 1;
    for key in [wrong, key] {
        let mut cancel = server.connect();
        cancel.send(&[&16u32.to_be_bytes()[..], &80_877_102u32.to_be_bytes(), &key].concat());
        assert!(
            cancel.until_closed().is_empty(),
            "a cancel request is never answered"
        );
    }
    let started = Instant::now();
    let replies = waiter.until_ready();
    assert_eq!(replies[0].sqlstate(), "57014");
    assert!(started.elapsed() < PATIENCE);
    assert_eq!(waiter.value("select 1"), "1");
}

#[test]
fn one_too_many_is_told_so() {
    let server = TestServer::with_connections(3);
    let mut clients: Vec<Raw> = (0..3).map(|_| server.client()).collect();
    let mut fourth = server.connect();
    fourth.send(&startup(&[("user", "dave")]));
    let replies = fourth.until_closed();
    assert_eq!((replies.len(), replies[0].sqlstate().as_str()), (1, "53300"));
    assert_eq!(clients[0].value("select 1"), "1");
    drop(clients.pop());
    wait_for("a place", || {
        let mut client = server.connect();
        client.send(&startup(&[("user", "dave")]));
        client.read().unwrap().kind == b'R'
    });
}

#[test]
fn a_server_that_stops_says_goodbye() {
    let mut server = TestServer::start();
    let mut idle = server.client();
    let mut busy = server.client();
    let mut waiting = server.client();
    busy.rows("create table t (a int primary key); insert into t values (1)");
    busy.query("begin; update t set a = 2");
    waiting.send(&query("update t set a = 3"));
    wait_for("a lock wait", || {
        server
            .engine
            .activity()
            .iter()
            .any(|s| s.wait_event_type == Some("Lock"))
    });
    let started = Instant::now();
    server.stop();
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    for client in [&mut idle, &mut busy, &mut waiting] {
        // The one that waits may still get its lock, when the session that held it has ended first.
        let replies = client.until_closed();
        let last = replies.last().unwrap();
        assert_eq!(last.field(b'S').unwrap(), "FATAL", "{replies:?}");
        assert_eq!(last.sqlstate(), "57P01");
    }
}

#[test]
fn before_the_engine_is_open_clients_are_told_to_wait() {
    use clearway_server::{Server, ServerOptions, StopSignal};
    let options = ServerOptions {
        listen: Some("127.0.0.1:0".to_owned()),
        ..ServerOptions::default()
    };
    let server = Server::bind_early(options).unwrap();
    let stop = StopSignal::new().unwrap();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| server.run(&stop));
        let mut client = Raw::connect(server.local_addr().unwrap());
        client.send(&startup(&[("user", "alice")]));
        let replies = client.until_closed();
        assert_eq!(replies[0].sqlstate(), "57P03");
        stop.stop();
        running.join().unwrap().unwrap();
    });
}

/// asyncpg prepares with Parse, Describe, Flush and reads the answer before it sends Sync.
#[test]
fn an_error_is_sent_before_sync() {
    let server = TestServer::start();
    let mut client = server.client();
    client.send(&[parse("ok", "select $1::int / 0"), sync()].concat());
    assert_eq!(kinds(&client.until_ready()), "1Z");
    let flush = || message(b'H', b"");
    let failing: [(&str, Vec<Vec<u8>>, &str); 4] = [
        ("Parse", vec![parse("bad", "selec 1")], "42601"),
        ("Bind", vec![bind("", "nothing", &[])], "26000"),
        ("Describe", vec![describe(b'S', "nothing")], "26000"),
        (
            "Execute",
            vec![bind("", "ok", &[Some("1")]), execute("", 0)],
            "22012",
        ),
    ];
    for (what, messages, code) in failing {
        client.send(&messages.concat());
        client.send(&[describe(b'S', "bad"), flush()].concat());
        let error = loop {
            let reply = client.read().expect(what);
            if reply.kind != b'2' {
                break reply;
            }
        };
        assert_eq!(error.sqlstate(), code, "{what}");
        // Everything up to Sync is skipped, whatever it is.
        client.send(
            &[
                parse("", "select 1"),
                bind("", "", &[]),
                describe(b'P', ""),
                execute("", 0),
                close(b'S', "ok"),
                query("select 2"),
                flush(),
                sync(),
            ]
            .concat(),
        );
        assert_eq!(kinds(&client.until_ready()), "Z", "after a failed {what}");
    }
    client.send(&[describe(b'S', "ok"), sync()].concat());
    assert_eq!(
        kinds(&client.until_ready()),
        "tTZ",
        "the skipped Close closed nothing"
    );
}

/// Without an error, too: Flush sends what there is.
#[test]
fn flush_sends_what_was_answered() {
    let server = TestServer::start();
    let mut client = server.client();
    client.send(&[parse("", "select 1"), describe(b'S', ""), message(b'H', b"")].concat());
    let mut answered = String::new();
    while !answered.ends_with('T') {
        answered.push(char::from(client.read().unwrap().kind));
    }
    assert_eq!(answered, "1tT");
    client.send(&sync());
    assert_eq!(kinds(&client.until_ready()), "Z");
}
