//! Cursors as clients see them: portals by name in SQL, cursors as portals, columns and formats of FETCH.

mod support;

use support::*;

/// The format of the first column of a RowDescription of one column.
fn format_of(reply: &Reply) -> u8 {
    assert_eq!(reply.kind, b'T');
    *reply.body.last().unwrap()
}

fn values(replies: &[Reply]) -> Vec<String> {
    let rows = replies.iter().filter(|reply| reply.kind == b'D');
    rows.map(|row| row.values()[0].clone().unwrap()).collect()
}

#[test]
fn fetch_and_execute_share_a_portal() {
    let server = TestServer::start();
    let mut client = server.client();
    client.query("begin");
    let series = "select g from generate_series(1, 9) g";
    client.send(&[parse("", series), bind("p", "", &[]), sync()].concat());
    assert_eq!(kinds(&client.until_ready()), "12Z");
    // The portal has not run yet.
    let replies = client.query("fetch 2 from p");
    assert_eq!(kinds(&replies), "TDDC");
    assert_eq!(values(&replies), ["1", "2"]);
    assert_eq!(replies[3].tag(), "FETCH 2");
    client.send(&[execute("p", 2), sync()].concat());
    let replies = client.until_ready();
    assert_eq!(
        (kinds(&replies).as_str(), values(&replies)),
        ("DDsZ", vec!["3".to_owned(), "4".to_owned()])
    );
    assert_eq!(values(&client.query("fetch p")), ["5"]);
    assert_eq!(
        client.rows("select name, is_scrollable from pg_cursors"),
        [[Some("p".to_owned()), Some("f".to_owned())]]
    );
    client.send(&[execute("p", 0), sync()].concat());
    let replies = client.until_ready();
    assert_eq!(values(&replies), ["6", "7", "8", "9"]);
    assert_eq!(replies[4].tag(), "SELECT 4");
    assert_eq!(client.query("fetch p")[1].tag(), "FETCH 0");
    assert_eq!(
        client.query("declare p cursor for select 1")[0].sqlstate(),
        "42P03"
    );
}

#[test]
fn a_cursor_is_a_portal() {
    let server = TestServer::start();
    let mut client = server.client();
    client.query("begin");
    client.query("declare c cursor for select g from generate_series(1, 5) g");
    client.send(&[describe(b'P', "c"), execute("c", 2), sync()].concat());
    let replies = client.until_ready();
    assert_eq!(kinds(&replies), "TDDsZ");
    assert_eq!(values(&client.query("fetch prior c")), ["1"]);
    client.send(&[execute("c", 0), sync()].concat());
    let replies = client.until_ready();
    assert_eq!(values(&replies), ["2", "3", "4", "5"]);
    assert_eq!(replies[4].tag(), "SELECT 4");
    client.send(&[close(b'P', "c"), sync()].concat());
    assert_eq!(kinds(&client.until_ready()), "3Z");
    assert_eq!(client.query("fetch c")[0].sqlstate(), "34000");
    client.query("rollback");
    client.send(
        &[
            parse(
                "",
                "declare c cursor for select $1::int + g from generate_series(1, 2) g",
            ),
            sync(),
        ]
        .concat(),
    );
    client.until_ready();
    client.query("begin");
    client.send(
        &[
            parse(
                "",
                "declare c cursor for select $1::int + g from generate_series(1, 2) g",
            ),
            bind("", "", &[Some("40")]),
            execute("", 0),
            sync(),
        ]
        .concat(),
    );
    assert_eq!(kinds(&client.until_ready()), "12CZ");
    // The columns of FETCH are those that its cursor has now.
    client.send(&[parse("f", "fetch all c"), describe(b'S', "f"), sync()].concat());
    assert_eq!(kinds(&client.until_ready()), "1tTZ");
    client.send(&[bind("", "f", &[]), describe(b'P', ""), execute("", 0), sync()].concat());
    let replies = client.until_ready();
    assert_eq!(kinds(&replies), "2TDDCZ");
    assert_eq!(values(&replies), ["41", "42"]);
    client.query("close c");
    client.query("declare c cursor for select 'x', 'y'");
    client.send(&[bind("", "f", &[]), describe(b'P', ""), execute("", 0), sync()].concat());
    let replies = client.until_ready();
    assert_eq!(replies[1].body[..2], [0, 2], "two columns");
    assert_eq!(replies[2].values().len(), 2);
}

#[test]
fn a_binary_cursor_is_binary_in_a_simple_query() {
    let server = TestServer::start();
    let mut client = server.client();
    client.query("begin");
    client.query("declare c binary cursor for select 258");
    let replies = client.query("fetch c; select 258");
    assert_eq!(kinds(&replies), "TDCTDC");
    assert_eq!((format_of(&replies[0]), format_of(&replies[3])), (1, 0));
    assert_eq!(replies[1].body[6..], [0, 0, 1, 2]);
    assert_eq!(values(&replies[3..]), ["258"]);
}

#[test]
fn held_cursors_outlive_transactions_and_pipelines() {
    let server = TestServer::start();
    let mut client = server.client();
    let declare = "declare h cursor with hold for select g from generate_series(1, 3) g";
    client.send(&[parse("", declare), bind("", "", &[]), execute("", 0), sync()].concat());
    assert_eq!(kinds(&client.until_ready()), "12CZ");
    assert_eq!(values(&client.query("fetch 2 h")), ["1", "2"]);
    client.send(&[execute("h", 0), sync()].concat());
    assert_eq!(values(&client.until_ready()), ["3"]);
    client.query("select broken");
    assert_eq!(values(&client.query("fetch backward all h")), ["3", "2", "1"]);
    let failing =
        client.query("declare f cursor with hold for select 1 / (g - 2) from generate_series(1, 3) g");
    assert_eq!(kinds(&failing), "E", "an error comes instead of the tag");
    assert_eq!(
        client.rows("select count(*) from pg_cursors")[0][0].as_deref(),
        Some("1")
    );
}
