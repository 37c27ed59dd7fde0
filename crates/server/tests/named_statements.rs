//! Prepared statements have one set of names, whether Parse or PREPARE made them: drivers and pools remove with SQL
//! what they made by the protocol.

mod support;

use support::*;

/// Replies to these messages and a Sync.
fn answer(client: &mut Raw, messages: &[Vec<u8>]) -> Vec<Reply> {
    client.send(&messages.concat());
    client.send(&sync());
    client.until_ready()
}

fn is_missing(client: &mut Raw, name: &str) -> bool {
    answer(client, &[describe(b'S', name)])[0].kind == b'E'
}

#[test]
fn sql_removes_what_parse_made() {
    let server = TestServer::start();
    let mut client = server.client();
    for removal in ["deallocate s", "deallocate all", "discard all"] {
        assert_eq!(kinds(&answer(&mut client, &[parse("s", "select 1")])), "1Z");
        let replies = client.query(removal);
        assert!(
            replies.iter().all(|reply| reply.kind != b'E'),
            "{removal}: {replies:?}"
        );
        assert!(is_missing(&mut client, "s"), "{removal}");
    }
    assert_eq!(client.query("deallocate s")[0].sqlstate(), "26000");
}

#[test]
fn each_way_finds_what_the_other_made() {
    let server = TestServer::start();
    let mut client = server.client();
    client.query("prepare by_sql as select $1::int + 1");
    let replies = answer(&mut client, &[bind("", "by_sql", &[Some("41")]), execute("", 0)]);
    assert_eq!(replies[1].values(), [Some("42".to_owned())]);
    answer(&mut client, &[parse("by_parse", "select $1::int * 2")]);
    assert_eq!(client.value("execute by_parse(21)"), "42");
    assert_eq!(
        answer(&mut client, &[parse("by_sql", "select 1")])[0].sqlstate(),
        "42P05"
    );
    assert_eq!(
        client.query("prepare by_parse as select 1")[0].sqlstate(),
        "42P05"
    );
    answer(&mut client, &[close(b'S', "by_sql")]);
    assert_eq!(client.query("execute by_sql(1)")[0].sqlstate(), "26000");
}

#[test]
fn a_statement_does_not_execute_itself() {
    let server = TestServer::start();
    let mut client = server.client();
    answer(&mut client, &[parse("a", "execute a"), parse("c", "commit")]);
    let replies = answer(&mut client, &[bind("", "a", &[]), execute("", 0)]);
    assert_eq!(kinds(&replies), "2EZ");
    assert_eq!(replies[1].sqlstate(), "0A000");
    assert_eq!(client.query("execute a")[0].sqlstate(), "0A000");
    assert_eq!(client.query("execute c")[0].sqlstate(), "0A000");
}
