//! Statements whose text is long: the work grows with the length and no faster, and can be ended while the statement is
//! still being understood.
//!
//! An INSERT of 40,000 rows used to take 14 seconds, nearly all of it spent counting characters for positions
//! in errors that were never reported, and nothing could end it: neither a cancel request nor
//! `statement_timeout` nor the client's end, and `pg_stat_activity` showed the session as idle.

mod support;

use std::time::Instant;

use support::{TestServer, message, query, wait_for};

fn insert_of(rows: usize, between: &str) -> String {
    let rows: Vec<String> = (0..rows)
        .map(|row| format!("({row}, 'row {row}', {row}.5)"))
        .collect();
    format!("insert into t values {}", rows.join(between))
}

/// Time of a statement of four times the length, as a multiple; the least of some measurements, since other work on the
/// machine can only add.
fn growth(between: &str) -> f64 {
    let server = TestServer::start();
    let mut client = server.client();
    client.rows("create table t (a bigint, b text, c float)");
    let (short, long) = (insert_of(4_000, between), insert_of(16_000, between));
    let mut seconds = |sql: &str| {
        let times = (0..3).map(|_| {
            let start = Instant::now();
            // EXPLAIN: parsing and binding alone.
            client.rows(&format!("explain {sql}"));
            start.elapsed().as_secs_f64()
        });
        times.fold(f64::INFINITY, f64::min)
    };
    seconds(&long) / seconds(&short)
}

/// Linear is 4, quadratic is 16. Other work on the machine can make one measurement say anything.
#[test]
fn binding_time_grows_with_the_length_of_the_text() {
    let is_linear = |between| (0..4).any(|_| growth(between) < 10.0);
    assert!(is_linear(", "), "rows on one line");
    assert!(is_linear(",\n"), "a row a line");
}

#[test]
fn a_statement_that_is_being_bound_is_active_and_can_be_ended() {
    let server = TestServer::start();
    let mut client = server.client();
    let pid = client.value("select pg_backend_pid()");
    let mut watcher = server.client();
    // Enough for seconds of work in a debug build, should nothing end it.
    let long = format!("select 1 where {}", vec!["1 + 1 = 2"; 110_000].join(" or "));
    // A statement with an error at its end: binding it to the end would report that.
    let wrong = format!("{long} or nonsense = 1");
    let state = format!("select state from pg_stat_activity where pid = {pid}");

    client.rows("set statement_timeout = '1ms'");
    let error = client.query(&wrong);
    assert_eq!(error[0].sqlstate(), "57014");
    assert!(error[0].field(b'M').unwrap().contains("statement timeout"));
    client.reset_statement_timeout();

    client.send(&query(&wrong));
    wait_for("the session to be active", || watcher.value(&state) == "active");
    for activity in server.engine.activity() {
        if activity.process_id.to_string() == pid {
            assert!(activity.query.starts_with("select 1 where"));
        }
    }
    let _ = client.until_ready();

    // By the extended protocol, and then the client's end.
    let sessions = server.engine.session_count();
    client.send(&message(b'P', &[b"\0", wrong.as_bytes(), b"\0\0\0"].concat()));
    drop(client);
    wait_for("the vanished client's session to end", || {
        server.engine.session_count() < sessions
    });
}
