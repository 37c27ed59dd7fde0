//! Notifications under load: each commit is told of once, in the order of commits, and can be seen by then.

mod common;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use clearway_engine::SqlState;
use common::{Fixture, error, query};

/// Half of the transactions raise one counter, so that their order is known; the others meet nowhere but in the queue.
///
/// Mutations seen caught: those of `mutations/notifications.toml`.
#[test]
fn each_commit_is_told_of_once_in_order_and_seen() {
    const WRITERS: u64 = 4;
    const ROUNDS: u64 = 60;
    let fixture = Fixture::new(
        "create table counter (n int); insert into counter values (0); create table t (id text)",
    );
    let mut listener = fixture.session();
    query(&mut listener, "listen c");
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let mut session = fixture.session();
            scope.spawn(move || {
                if writer % 2 == 0 {
                    query(&mut session, "set synchronous_commit = off");
                }
                for round in 0..ROUNDS {
                    let told = if writer < 2 {
                        query(&mut session, "begin");
                        let told = query(&mut session, "update counter set n = n + 1 returning n");
                        let told = told.split(' ').next().unwrap().to_owned();
                        query(&mut session, &format!("insert into t values ('{told}')"));
                        told
                    } else {
                        let told = format!("w{writer}-{round}");
                        query(&mut session, "begin");
                        query(&mut session, &format!("insert into t values ('{told}')"));
                        told
                    };
                    query(&mut session, &format!("notify c, '{told}'"));
                    let end = if round % 7 == 6 && writer >= 2 {
                        "rollback"
                    } else {
                        "commit"
                    };
                    query(&mut session, end);
                }
            });
        }
        let expected = 2 * ROUNDS + 2 * (ROUNDS - ROUNDS / 7);
        let mut heard = HashSet::new();
        let mut last = 0;
        let started = Instant::now();
        while (heard.len() as u64) < expected {
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "heard of {} of {expected}",
                heard.len()
            );
            for notification in listener.notifications(1_000).unwrap() {
                let told = &*notification.payload;
                let found = query(
                    &mut listener,
                    &format!("select count(*) from t where id = '{told}'"),
                );
                assert_eq!(found, "1", "N2: {told} is told of and not seen");
                if let Ok(number) = told.parse::<u64>() {
                    assert_eq!(number, last + 1, "N1");
                    last = number;
                }
                assert!(heard.insert(told.to_owned()), "{told} is told of twice");
            }
            listener.notifications_are_sent();
        }
    });
    assert_eq!(listener.notifications(1_000).unwrap(), []);
    assert_eq!(query(&mut listener, "select pg_notification_queue_usage()"), "0");
}

#[test]
fn what_a_savepoint_takes_back_is_not_sent() {
    let fixture = Fixture::new("");
    let mut session = fixture.session();
    query(&mut session, "listen a");
    query(
        &mut session,
        "begin; notify a, '1'; savepoint s; notify a, '1'; notify a, '2'; listen b",
    );
    query(
        &mut session,
        "rollback to s; notify a, '2'; notify a, '3'; commit; notify b",
    );
    let told = session.notifications(1_000).unwrap();
    let told: Vec<&str> = told.iter().map(|one| &*one.payload).collect();
    assert_eq!(told, ["1", "2", "3"]);
    session.notifications_are_sent();
    assert_eq!(session.notifications(1_000).unwrap(), []);
}

/// More than is fetched at once is of a channel that the session listens on no more.
#[test]
fn what_is_of_no_interest_hides_nothing_behind_it() {
    let fixture = Fixture::new("");
    let (mut alice, mut bob) = (fixture.session(), fixture.session());
    query(&mut alice, "listen a; listen b");
    for _ in 0..5 {
        query(&mut bob, "notify a, 'gone'");
    }
    query(&mut alice, "unlisten a");
    query(&mut bob, "notify b, 'here'");
    let told = alice.notifications(1).unwrap();
    let told: Vec<&str> = told.iter().map(|one| &*one.payload).collect();
    assert_eq!(told, ["here"]);
    alice.notifications_are_sent();
    assert_eq!(query(&mut bob, "select pg_notification_queue_usage()"), "0");
}

#[test]
fn what_is_refused() {
    let fixture = Fixture::new("");
    let mut session = fixture.session();
    for sql in [
        "select pg_notify(null, 'x')",
        "select pg_notify('', 'x')",
        "select pg_notify(repeat('a', 64), 'x')",
        "select pg_notify('a', repeat('x', 8000))",
    ] {
        let refused = error(&mut session, sql);
        assert_eq!(refused.sqlstate(), SqlState::INVALID_PARAMETER_VALUE, "{sql}");
    }
    query(&mut session, "select pg_notify('a', repeat('x', 7999))");
    let long = "a".repeat(80);
    query(&mut session, &format!("listen {long}"));
    query(&mut session, &format!("notify {long}"));
    assert_eq!(&*session.notifications(100).unwrap()[0].channel, &long[..63]);
}
