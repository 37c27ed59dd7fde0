//! Memory that one client can make the server keep.
//!
//! Each test has a client do something without end, or without reading the answers, and compares the growth of the
//! process (the server runs in it) with a bound far below what keeping everything would take.

mod support;

use clearway_engine::{SessionActivity, SessionState};
use support::memory::Measured;
use support::*;

const MIB: u64 = 1 << 20;

/// Sends from a thread of its own, since the server stops reading while its answers are not taken.
fn send_beside(client: &Raw, bytes: Vec<u8>) -> std::thread::JoinHandle<()> {
    use std::io::Write;
    let mut stream = client.stream.try_clone().unwrap();
    std::thread::spawn(move || stream.write_all(&bytes).unwrap())
}

/// Waits until the server has been blocked in writing to its client for a while, or has answered all.
fn until_the_server_waits_for_its_client(server: &TestServer) {
    wait_for("the server to wait for its client", || {
        server
            .engine
            .activity()
            .iter()
            .any(|s| matches!(s.wait_event, Some("ClientWrite" | "ClientRead")))
    });
    std::thread::sleep(std::time::Duration::from_millis(300));
}

/// Reads the replies up to ReadyForQuery and counts those of kind `counted`; any other must be of one of the `others`.
fn count_replies(client: &mut Raw, counted: u8, others: &[u8]) -> usize {
    let mut count = 0;
    loop {
        match client.read().unwrap().kind {
            kind if kind == counted => count += 1,
            b'Z' => return count,
            kind => assert!(others.contains(&kind), "a reply of kind {}", kind.escape_ascii()),
        }
    }
}

/// A SELECT of 200 columns with long names: its description has some 14 kB.
fn wide_select() -> String {
    let columns: Vec<String> = (0..200)
        .map(|number| format!("{number} as a_column_with_a_long_name_of_fifty_bytes_or_so_{number}"))
        .collect();
    format!("select {}", columns.join(", "))
}

/// A short text whose description has some 17 kB.
const FOUR_TIMES_WIDE: &str = "select t.*, t.*, t.*, t.* from t;";

fn wide_table() -> String {
    let columns: Vec<String> = (0..60)
        .map(|number| format!("a_column_with_a_long_name_of_fifty_bytes_or_so_{number} int"))
        .collect();
    format!("create table t ({})", columns.join(", "))
}

#[test]
fn describes_without_sync_do_not_gather() {
    const DESCRIBES: usize = 20_000;
    let mut measured = Measured::alone();
    let server = TestServer::start();
    let mut client = server.client();
    client.send(&[parse("wide", &wide_select()), sync()].concat());
    assert_eq!(kinds(&client.until_ready()), "1Z");
    measured.start();
    let mut messages = describe(b'S', "wide").repeat(DESCRIBES);
    messages.extend(sync());
    let sender = send_beside(&client, messages);
    until_the_server_waits_for_its_client(&server);
    assert!(
        measured.peak_growth() < 32 * MIB,
        "grew by {} MiB; all descriptions have 300",
        measured.peak_growth() / MIB
    );
    assert_eq!(count_replies(&mut client, b'T', b"t"), DESCRIBES);
    sender.join().unwrap();
}

#[test]
fn statements_pipelined_without_sync_do_not_gather() {
    const ROUNDS: usize = 4_000;
    let mut measured = Measured::alone();
    let server = TestServer::start();
    let mut client = server.client();
    client.rows(&wide_table());
    let round = [parse("", FOUR_TIMES_WIDE), bind("", "", &[]), describe(b'P', "")].concat();
    client.send(&[round.repeat(20), sync()].concat());
    client.until_ready();
    measured.start();
    let mut messages = round.repeat(ROUNDS);
    messages.extend(sync());
    let sender = send_beside(&client, messages);
    until_the_server_waits_for_its_client(&server);
    assert!(
        measured.peak_growth() < 24 * MIB,
        "grew by {} MiB; all descriptions have 70",
        measured.peak_growth() / MIB
    );
    assert_eq!(count_replies(&mut client, b'T', b"12"), ROUNDS);
    sender.join().unwrap();
}

#[test]
fn empty_selects_in_one_query_do_not_gather() {
    const SELECTS: usize = 4_000;
    let mut measured = Measured::alone();
    let server = TestServer::start();
    let mut client = server.client();
    client.rows(&wide_table());
    let text = FOUR_TIMES_WIDE.repeat(SELECTS);
    // What parsing takes is another matter: it is taken once, and its answers are read, before the measurement.
    client.send(&query(&text));
    client.until_ready();
    measured.start();
    client.send(&query(&text));
    until_the_server_waits_for_its_client(&server);
    assert!(
        measured.peak_growth() < 24 * MIB,
        "grew by {} MiB; all descriptions have 70",
        measured.peak_growth() / MIB
    );
    assert_eq!(count_replies(&mut client, b'C', b"T"), SELECTS);
}

/// Reads a portion of a portal; the number of its rows and how it ended.
fn portion(client: &mut Raw) -> (usize, u8) {
    let mut rows = 0;
    loop {
        match client.read().unwrap().kind {
            b'D' => rows += 1,
            b'1' | b'2' => {}
            end => return (rows, end),
        }
    }
}

#[test]
fn a_portal_keeps_no_rows() {
    let mut measured = Measured::alone();
    let server = TestServer::start();
    let mut client = server.client();
    client.rows("select 1");
    measured.start();
    // 100 MB, if all rows were kept.
    let wide = "select repeat('x', 1000), g from generate_series(1, 100000) g";
    let flush = message(b'H', b"");
    client.send(&[parse("", wide), bind("", "", &[]), execute("", 10), flush.clone()].concat());
    assert_eq!(portion(&mut client), (10, b's'));
    client.send(&[execute("", 10), flush].concat());
    assert_eq!(portion(&mut client), (10, b's'));
    assert!(
        measured.peak_growth() < 16 * MIB,
        "grew by {} MiB",
        measured.peak_growth() / MIB
    );
    // Sync ends the transaction, and the portal with it.
    client.send(&sync());
    assert_eq!(kinds(&client.until_ready()), "Z");
    client.send(&[execute("", 10), sync()].concat());
    assert_eq!(client.until_ready()[0].sqlstate(), "34000");
}

#[test]
fn plans_keep_no_long_values() {
    const STATEMENTS: usize = 30;
    let mut measured = Measured::alone();
    let server = TestServer::start();
    let mut client = server.client();
    client.rows("create table t (a text)");
    measured.start();
    for number in 0..STATEMENTS {
        let long = format!("repeat('x', {})", (8 << 20) + number);
        client.rows(&format!("prepare p{number} as select $1::text || {long}"));
        // The plans of recent texts are kept too.
        assert_eq!(
            client.value(&format!("select count(*) from t where a > {long}")),
            "0"
        );
    }
    assert!(
        measured.peak_growth() < 64 * MIB,
        "grew by {} MiB; the values of all statements have 480",
        measured.peak_growth() / MIB
    );
}

fn sqlstate_of(replies: &[Reply]) -> String {
    let error = replies.iter().find(|reply| reply.kind == b'E');
    error
        .unwrap_or_else(|| panic!("no error: {}", kinds(replies)))
        .sqlstate()
}

#[test]
fn values_that_are_held_together_have_a_limit() {
    let mut measured = Measured::alone();
    let server = TestServer::start();
    let mut client = server.client();
    client.rows("create table t (a int, b int)");
    client.rows("insert into t select i % 2000, i / 2000 from generate_series(0, 3999) as i");
    measured.start();
    let arguments = vec!["repeat('x', 67108864)"; 30].join(", ");
    let replies = client.query(&format!("select length(concat({arguments}))"));
    assert_eq!(sqlstate_of(&replies), "54000");
    assert!(
        measured.peak_growth() < 1_120 * MIB,
        "grew by {} MiB; all arguments have 1,920",
        measured.peak_growth() / MIB
    );
    measured.start();
    // All groups are there before the first of them grows.
    let grown = "case when b = 1 then repeat('x', 1048576) end";
    let replies = client.query(&format!("select a, max({grown}) from t group by a"));
    assert_eq!(sqlstate_of(&replies), "53200");
    assert!(
        measured.peak_growth() < 1_300 * MIB,
        "grew by {} MiB; all groups have 2,000",
        measured.peak_growth() / MIB
    );
}

#[test]
fn sorts_and_groups_stay_within_work_mem() {
    let mut measured = Measured::alone();
    let server = TestServer::start();
    let mut client = server.client();
    client.rows("set work_mem = '1MB'");
    client.rows("select repeat('x', 1000) from generate_series(1, 10) g order by 1");
    let wide = "repeat('x', 1000) || g";
    for sql in [
        format!("select {wide} from generate_series(1, 30000) g order by -g"),
        format!("select distinct {wide} from generate_series(1, 30000) g"),
        format!("select {wide}, count(*) from generate_series(1, 30000) g group by 1"),
        format!("select count(distinct {wide}) from generate_series(1, 30000) g"),
    ] {
        measured.start();
        client.send(&query(&sql));
        let rows = count_replies(&mut client, b'D', b"TC");
        assert!(rows == 30_000 || rows == 1, "{sql}: {rows} rows");
        assert!(
            measured.peak_growth() < 16 * MIB,
            "grew by {} MiB: {sql}",
            measured.peak_growth() / MIB
        );
    }
}

#[test]
fn a_result_that_is_not_read_can_be_cancelled_and_times_out() {
    let _alone = Measured::alone();
    let server = TestServer::start();
    let mut client = server.connect();
    let replies = client.start(&[("user", "alice")]);
    let key = &replies.iter().find(|reply| reply.kind == b'K').unwrap().body;
    let endless = query("select repeat('x', 1000) from generate_series(1, 2000000000)");
    let blocked = || {
        wait_for("the server to wait for its client", || {
            // Not the answer to the statement before, whose end the client may see earlier than it shows here: a cancel
            // request that came then would find nothing to end.
            let activity = server.engine.activity();
            let waits =
                |s: &SessionActivity| s.wait_event == Some("ClientWrite") && s.query.contains("repeat");
            activity.iter().any(waits)
        });
    };
    for timeout in ["0", "200ms"] {
        client.rows(&format!("set statement_timeout = '{timeout}'"));
        client.send(&endless);
        blocked();
        if timeout == "0" {
            let mut cancel = server.connect();
            cancel.send(&[&16u32.to_be_bytes()[..], &80_877_102u32.to_be_bytes(), key].concat());
            assert!(cancel.until_closed().is_empty());
        }
        // The statement ends although nothing is read, and its transaction with it. A statement that only
        // reads shows no beginning of a transaction, so its state tells.
        wait_for("the statement to end", || {
            let activity = server.engine.activity();
            activity.iter().all(|s| s.state == SessionState::Idle)
        });
        let mut replies = client.until_ready();
        replies.pop();
        assert_eq!(replies.pop().unwrap().sqlstate(), "57014");
        assert_eq!(client.value("select 1"), "1");
    }
}

#[test]
fn prepared_statements_are_small() {
    const STATEMENTS: u32 = 5_000;
    let mut measured = Measured::alone();
    let server = TestServer::start();
    let mut client = server.client();
    client.rows("create table t (id int primary key, a int, b text); insert into t values (7, 3, 'seven')");
    let prepare = |number: u32| {
        let sql = format!("select id, a, b, {number} from t where id = $1 and a < {number} order by b");
        parse(&format!("s{number}"), &sql)
    };
    let batch = |from: u32, to: u32| [(from..to).map(prepare).collect::<Vec<_>>().concat(), sync()].concat();
    client.send(&batch(0, 500));
    client.until_ready();
    measured.start();
    for from in (500..STATEMENTS).step_by(500) {
        client.send(&batch(from, from + 500));
        assert_eq!(client.until_ready().len(), 501);
    }
    // 3 MB; with all plans kept it would be 13 MB.
    assert!(
        measured.peak_growth() < 8 * MIB,
        "grew by {} MiB",
        measured.peak_growth() / MIB
    );
    // All are still there, with or without their plans.
    for number in [0, 1, 499, 2_500, 4_999] {
        let statement = format!("s{number}");
        client.send(&[bind("", &statement, &[Some("7")]), execute("", 0), sync()].concat());
        let replies = client.until_ready();
        let rows = replies.iter().filter(|reply| reply.kind == b'D').count();
        assert_eq!(rows, usize::from(number > 3), "{statement}: {replies:?}");
    }
}

#[test]
fn portals_have_a_limit() {
    let _alone = Measured::alone();
    let server = TestServer::start();
    let mut client = server.client();
    client.send(&[parse("s", "select 1"), sync()].concat());
    assert_eq!(kinds(&client.until_ready()), "1Z");
    let binds: Vec<Vec<u8>> = (0..1_001)
        .map(|number| bind(&format!("p{number}"), "s", &[]))
        .collect();
    client.send(&[binds.concat(), sync()].concat());
    let replies = client.until_ready();
    assert_eq!(kinds(&replies), format!("{}EZ", "2".repeat(1_000)));
    assert_eq!(replies[1_000].sqlstate(), "54000");
    // Four parameters of 15 MiB fit, five do not.
    client.send(&[parse("t", "select length($1::text)"), sync()].concat());
    assert_eq!(kinds(&client.until_ready()), "1Z");
    let wide = "x".repeat(15 << 20);
    for number in 0..5 {
        client.send(&bind(&format!("p{number}"), "t", &[Some(&wide)]));
    }
    client.send(&sync());
    let replies = client.until_ready();
    assert_eq!(kinds(&replies), "2222EZ");
    assert_eq!(replies[4].sqlstate(), "54000");
}

#[test]
fn a_message_has_a_limit_and_a_text_is_not_kept() {
    let _alone = Measured::alone();
    let server = TestServer::start();
    let mut client = server.client();
    client.send(b"Q\x01\x00\x00\x01");
    let replies = client.until_closed();
    assert_eq!(replies[0].sqlstate(), "08P01");
    let mut client = server.client();
    let text = "\u{e4}".repeat(1 << 20);
    assert_eq!(
        client.value(&format!("select length('{text}')")),
        (1 << 20).to_string()
    );
    let kept = server
        .engine
        .activity()
        .iter()
        .map(|s| s.query.len())
        .max()
        .unwrap();
    assert!(kept <= 1_024, "{kept} bytes of the text are still shown");
}

/// The memory that is reserved for a long statement is more than it takes: rows of an INSERT, and the text that takes
/// most.
#[test]
fn a_long_statement_takes_less_than_is_reserved_for_it() {
    let mut measured = Measured::alone();
    let server = TestServer::start();
    let mut client = server.client();
    client.rows("create table t (a int)");
    for (sql, reserved) in [
        (
            format!("insert into t values (1){}", ",(1)".repeat(200_000)),
            800_000 * 160,
        ),
        ("select 1;".repeat(20_000), 20_000 * (9 * 800 + 12_000)),
        (
            format!("select 1 from t where a in (1{})", ",1".repeat(100_000)),
            100_000 * (2 * 800 + 2_400),
        ),
        (
            format!("select 1 order by 1{}", ",1".repeat(50_000)),
            50_000 * (2 * 800 + 2_400),
        ),
    ] {
        measured.start();
        client.query(&sql);
        let growth = measured.peak_growth();
        assert!(growth < reserved, "{}: {growth} of {reserved}", &sql[..30]);
    }
}
