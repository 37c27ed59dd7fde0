//! A session as other sessions see it.

mod common;

use clearway_engine::Session;
use common::{Fixture, query};

#[test]
fn a_long_query_is_shown_from_its_beginning() {
    let fixture = Fixture::new("");
    let mut alice = fixture.session();
    let shown = |of: &Session| {
        let activity = fixture.engine.activity();
        let process_id = of.cancel_key().0;
        let found = activity.iter().find(|session| session.process_id == process_id);
        found.unwrap().query.to_string()
    };
    let long = format!("select '{}'", "ä".repeat(2_000));
    query(&mut alice, &long);
    let beginning = shown(&alice);
    assert!(
        long.starts_with(&beginning) && (1_000..=1_024).contains(&beginning.len()),
        "{}",
        beginning.len()
    );
    query(&mut alice, "select 1");
    assert_eq!(shown(&alice), "select 1");
}

#[test]
fn a_session_shows_its_transaction_and_its_snapshot() {
    let fixture = Fixture::new("create table t (a int)");
    let (mut alice, mut bob) = (fixture.session(), fixture.session());
    let ids = "select count(backend_xid), count(backend_xmin) from pg_stat_activity where pid = ";
    let alices = format!("{ids}{}", alice.cancel_key().0);
    assert_eq!(query(&mut bob, &alices), "0|0");
    query(&mut alice, "begin isolation level repeatable read; select 1");
    assert_eq!(query(&mut bob, &alices), "0|1");
    query(&mut alice, "insert into t values (1)");
    assert_eq!(query(&mut bob, &alices), "1|1");
    query(&mut alice, "commit");
    assert_eq!(query(&mut bob, &alices), "0|0");
    // A statement's own snapshot, while it runs.
    assert_eq!(query(&mut bob, &format!("{ids} pg_backend_pid()")), "0|1");
}

#[test]
fn the_server_s_own_threads_have_rows() {
    let fixture = Fixture::new("");
    let mut alice = fixture.session();
    let rows = "select backend_type, wait_event_type from pg_stat_activity where state is null and datname is null \
                order by backend_type";
    let shown = "autovacuum launcher|Activity, checkpointer|Activity, walwriter|Activity";
    // Each enters itself when it begins, and now and then it is at work.
    for _ in 0..10_000 {
        if query(&mut alice, rows) == shown {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(query(&mut alice, rows), shown);
}
