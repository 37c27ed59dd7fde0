//! Sessions in the way of replay.

use std::thread;
use std::time::{Duration, Instant};

use clearway_engine::{Collected, Completion, Config, EngineError, Session};

use crate::common::{error, query, run};
use crate::pair::{PATIENCE, Pair, config, wait_until};

const SETUP: &str = "create table t (id int primary key, x int);
    insert into t select g, 0 from generate_series(1, 50) g;
    create table other (id int); insert into other values (1)";

const DELAY: Duration = Duration::from_millis(400);

/// A pair whose replay waits for `DELAY`.
fn pair() -> Pair {
    let pair = Pair::with_config(
        SETUP,
        Config {
            max_standby_streaming_delay: "400ms".parse().unwrap(),
            ..config()
        },
    );
    pair.catch_up();
    pair
}

/// Removes row versions that older snapshots see.
fn clean_up(pair: &Pair) {
    pair.write("update t set x = x + 1");
    pair.write("update t set x = x + 1");
    pair.write("vacuum t");
}

#[track_caller]
fn is_conflict(error: &EngineError, what: &str, detail: &str) {
    assert_eq!(error.sqlstate().as_str(), "40001", "{error}");
    assert!(error.message().contains(what), "{error}");
    assert!(
        error.message().ends_with("due to conflict with recovery"),
        "{error}"
    );
    assert!(error.detail().unwrap().contains(detail), "{error}");
    assert!(error.is_retryable());
}

fn counts(pair: &Pair) -> String {
    query(
        &mut pair.reader(),
        "select confl_lock, confl_snapshot from pg_stat_database_conflicts",
    )
}

/// A transaction that waits for its client. Replay waits for as long as it may, and goes on without the client.
#[test]
fn a_snapshot_of_an_idle_transaction_gives_way() {
    let pair = pair();
    let mut reader = pair.reader();
    run(&mut reader, "begin isolation level repeatable read");
    assert_eq!(query(&mut reader, "select sum(x) from t"), "0");
    let started = Instant::now();
    clean_up(&pair);
    pair.catch_up();
    assert!(
        started.elapsed() >= DELAY / 2,
        "replay did not wait: {:?}",
        started.elapsed()
    );
    let told = error(&mut reader, "select sum(x) from t");
    is_conflict(
        &told,
        "terminating transaction",
        "row versions that must be removed",
    );
    assert_eq!(error(&mut reader, "select 1").sqlstate().as_str(), "25P02");
    assert_eq!(run(&mut reader, "commit"), "ROLLBACK");
    assert_eq!(query(&mut reader, "select sum(x) from t"), "100");
    assert_eq!(counts(&pair), "0|1");
}

/// The client never says anything again.
#[test]
fn a_transaction_that_was_ended_can_be_rolled_back_or_forgotten() {
    let pair = pair();
    let mut readers: Vec<Session> = (0..3).map(|_| pair.reader()).collect();
    for reader in &mut readers {
        run(
            reader,
            "begin isolation level repeatable read; select count(*) from t",
        );
    }
    clean_up(&pair);
    pair.catch_up();
    assert_eq!(run(&mut readers[0], "rollback"), "ROLLBACK");
    assert_eq!(query(&mut readers[0], "select sum(x) from t"), "100");
    // The first message is a Parse.
    let told = readers[1].prepare("select 1", &[]).unwrap_err();
    is_conflict(&told, "terminating transaction", "row versions");
    drop(readers);
    clean_up(&pair);
    pair.catch_up();
    assert_eq!(counts(&pair), "0|3");
}

/// Waits until a reader's pg_sleep is in its way: it has a snapshot, and had its lock before. One that is active and has none
/// yet would see no row that goes, and sleep to its end.
fn until_asleep(pair: &Pair) {
    wait_until("the statement has a snapshot", || {
        let activity = pair.standby().activity();
        activity.iter().any(|session| {
            session.query.contains("pg_sleep") && session.state.name() == "active" && session.xmin.is_some()
        })
    });
}

/// A statement that runs, in either isolation level.
#[test]
fn a_running_statement_gives_way() {
    let pair = pair();
    for begin in ["select 1", "begin isolation level repeatable read"] {
        let mut reader = pair.reader();
        run(&mut reader, begin);
        let running = thread::spawn(move || {
            let told = error(&mut reader, "select count(*), pg_sleep(300) from t");
            (reader, told)
        });
        until_asleep(&pair);
        clean_up(&pair);
        pair.catch_up();
        let (mut reader, told) = running.join().unwrap();
        is_conflict(&told, "canceling statement", "row versions");
        run(&mut reader, "rollback");
        query(&mut reader, "select count(*) from t");
    }
    assert_eq!(counts(&pair), "0|2");
}

/// Replay leaves a statement without tables alone, whatever its transaction has read before. A REPEATABLE READ transaction
/// keeps its snapshot for the next statement, so replay ends that.
#[test]
fn a_statement_without_tables_is_left_alone() {
    let pair = pair();
    let mut committed = pair.reader();
    run(&mut committed, "begin; select count(*) from t");
    let mut repeatable = pair.reader();
    run(
        &mut repeatable,
        "begin isolation level repeatable read; select count(*) from t",
    );
    let sleeps = thread::spawn(move || {
        query(&mut committed, "select 1 from pg_sleep(3)");
        run(&mut committed, "select count(*) from t; commit");
    });
    let gives_way = thread::spawn(move || error(&mut repeatable, "select pg_sleep(20)"));
    wait_until("both sleep", || {
        let activity = pair.standby().activity();
        let asleep = activity
            .iter()
            .filter(|session| session.query.contains("pg_sleep") && session.state.name() == "active");
        asleep.count() == 2
    });
    clean_up(&pair);
    pair.catch_up();
    is_conflict(&gives_way.join().unwrap(), "canceling statement", "row versions");
    sleeps.join().unwrap();
    assert_eq!(counts(&pair), "0|1");
}

/// A portal that has sent some of its rows, in an implicit transaction and in a block.
#[test]
fn a_suspended_portal_gives_way() {
    let pair = pair();
    for block in [false, true] {
        let mut reader = pair.reader();
        let all = reader.prepare("select x from t", &[]).unwrap();
        if block {
            run(&mut reader, "begin");
        }
        let mut out = Collected::default();
        let Completion::Suspended(portal) = reader.execute(&all, &[], 3, &mut out).unwrap() else {
            panic!("all rows came at once");
        };
        if block {
            // A statement without tables gives nothing back that the portal keeps.
            let one = reader.prepare("select 1", &[]).unwrap();
            reader.execute(&one, &[], 0, &mut Collected::default()).unwrap();
        }
        clean_up(&pair);
        pair.catch_up();
        let told = reader.resume(portal, 0, &mut out).unwrap_err();
        is_conflict(&told, "terminating transaction", "row versions");
        reader.sync().unwrap();
        run(&mut reader, "rollback");
        query(&mut reader, "select count(*) from t");
    }
    // At a Sync everything has been answered.
    let mut reader = pair.reader();
    let all = reader.prepare("select x from t", &[]).unwrap();
    let Completion::Suspended(portal) = reader.execute(&all, &[], 3, &mut Collected::default()).unwrap()
    else {
        panic!("all rows came at once");
    };
    clean_up(&pair);
    pair.catch_up();
    drop(portal);
    reader.sync().unwrap();
    query(&mut reader, "select count(*) from t");
}

/// A session that holds nothing that replay needs is left alone, however long it takes: between two statements, with
/// other tables, with newer snapshots.
#[test]
fn others_are_left_alone() {
    let pair = pair();
    clean_up(&pair);
    pair.catch_up();
    let mut between = pair.reader();
    run(&mut between, "begin; select count(*) from t");
    let mut newer = pair.reader();
    run(
        &mut newer,
        "begin isolation level repeatable read; select count(*) from t",
    );
    // Removes nothing that was not removed before.
    pair.write("vacuum t");
    pair.catch_up();
    thread::sleep(DELAY);
    assert_eq!(query(&mut newer, "select sum(x) from t"), "100");
    run(&mut newer, "commit");
    clean_up(&pair);
    pair.catch_up();
    assert_eq!(query(&mut between, "select sum(x) from t"), "200");
    let mut other = pair.reader();
    run(&mut between, "commit");
    run(&mut other, "begin; select * from other");
    pair.write("truncate t");
    pair.catch_up();
    assert_eq!(query(&mut other, "select * from other"), "1");
    assert_eq!(counts(&pair), "0|0");
}

/// Replay needs the table for itself.
#[test]
fn a_lock_of_an_idle_transaction_gives_way() {
    let pair = pair();
    let mut reader = pair.reader();
    run(&mut reader, "begin; select count(*) from t");
    let started = Instant::now();
    pair.write("truncate t");
    pair.catch_up();
    assert!(started.elapsed() >= DELAY / 2, "replay did not wait");
    let told = error(&mut reader, "select count(*) from t");
    is_conflict(&told, "terminating transaction", "relation lock for too long");
    run(&mut reader, "rollback");
    assert_eq!(query(&mut reader, "select count(*) from t"), "0");
    assert_eq!(counts(&pair), "1|0");
}

#[test]
fn a_lock_of_a_running_statement_gives_way() {
    let pair = pair();
    let mut reader = pair.reader();
    let running = thread::spawn(move || error(&mut reader, "select pg_sleep(300) from t"));
    until_asleep(&pair);
    pair.write("drop table t");
    pair.catch_up();
    is_conflict(&running.join().unwrap(), "canceling statement", "relation lock");
}

/// Bob has `a` and wants `b`; replay has `b` and wants `a`, and would wait for ever. One of the two searches finds it.
#[test]
fn a_circle_with_replay_is_found() {
    let pair = Pair::new("create table a (id int); create table b (id int)");
    pair.catch_up();
    // `b` has the greater number, so replay asks for `a` first: two commits are needed to have it hold `b`.
    pair.write("drop table a; drop table b; create table b (id int); create table a (id int)");
    pair.catch_up();
    let mut bob = pair.reader();
    run(&mut bob, "begin; select * from a");
    pair.write("truncate a, b");
    let end = pair.logged();
    assert!(!pair.has_replayed(end, Duration::from_millis(100)));
    let waiting = thread::spawn(move || error(&mut bob, "select * from b"));
    assert!(pair.has_replayed(end, PATIENCE), "replay waits for ever");
    let told = waiting.join().unwrap();
    assert!(["40001", "40P01"].contains(&told.sqlstate().as_str()), "{told}");
}

/// Under `never` replay waits until the reader is done.
#[test]
fn replay_may_wait_for_ever() {
    let pair = Pair::new(SETUP);
    pair.catch_up();
    let mut reader = pair.reader();
    run(
        &mut reader,
        "begin isolation level repeatable read; select count(*) from t",
    );
    clean_up(&pair);
    let end = pair.logged();
    assert!(!pair.has_replayed(end, Duration::from_millis(600)));
    assert_eq!(query(&mut reader, "select sum(x) from t"), "0");
    run(&mut reader, "commit");
    assert!(pair.has_replayed(end, PATIENCE));
}

/// Many sessions, most of them idle in transactions, on a primary that cleans up all the time, and replay that waits for
/// none. Sessions get answers or 40001, and what they read in one transaction is the same.
///
/// Caught mutation: a session that does not take its turn (`begin_call` without `turn.begin`).
#[test]
fn transactions_are_ended_at_any_moment() {
    let pair = Pair::with_config(
        SETUP,
        Config {
            max_standby_streaming_delay: "0".parse().unwrap(),
            ..config()
        },
    );
    pair.catch_up();
    let deadline = Instant::now() + Duration::from_millis(1_500);
    let (mut answered, mut ended) = (0, 0);
    thread::scope(|scope| {
        let cleaner = &pair;
        scope.spawn(move || {
            while Instant::now() < deadline {
                clean_up(cleaner);
            }
        });
        let readers: Vec<_> = (0..4)
            .map(|number| {
                let mut reader = pair.reader();
                scope.spawn(move || {
                    let (mut answered, mut ended) = (0, 0);
                    while Instant::now() < deadline {
                        run(&mut reader, "begin isolation level repeatable read");
                        let mut first = None;
                        for _ in 0..3 {
                            let mut out = Collected::default();
                            match reader.execute_simple("select min(x), max(x), count(*) from t", &mut out) {
                                Ok(()) => {
                                    let row = out.rows;
                                    assert_eq!(row[0][0], row[0][1], "half an update");
                                    let before = first.get_or_insert_with(|| row.clone());
                                    assert_eq!(before, &row, "two snapshots in one transaction");
                                    answered += 1;
                                }
                                Err(told) => {
                                    assert_eq!(told.sqlstate().as_str(), "40001", "{told}");
                                    ended += 1;
                                    break;
                                }
                            }
                            thread::sleep(Duration::from_micros(100 * number));
                        }
                        run(&mut reader, "rollback");
                    }
                    (answered, ended)
                })
            })
            .collect();
        for reader in readers {
            let (some, others) = reader.join().unwrap();
            answered += some;
            ended += others;
        }
    });
    pair.catch_up();
    assert!(answered > 0 && ended > 0, "{answered} answered, {ended} ended");
    assert_eq!(
        pair.standby().storage().proc_array.oldest_xmin(),
        None,
        "an xmin was left behind"
    );
}

/// Replay waits for a session in the middle of a record: it does not stand still yet, though a pause before has been shown.
#[test]
fn a_second_pause_is_requested_until_replay_stands_still() {
    let pair = Pair::with_config(
        SETUP,
        Config {
            max_standby_streaming_delay: "never".parse().unwrap(),
            ..config()
        },
    );
    pair.catch_up();
    let mut reader = pair.reader();
    run(
        &mut reader,
        "begin isolation level repeatable read; select count(*) from t",
    );
    let mut operator = pair.reader();
    let shows = |operator: &mut Session, state: &str| {
        wait_until(state, || {
            query(operator, "select pg_get_wal_replay_pause_state()") == state
        });
    };
    query(&mut operator, "select pg_wal_replay_pause()");
    shows(&mut operator, "paused");
    clean_up(&pair);
    query(&mut operator, "select pg_wal_replay_resume()");
    wait_until("replay waits for the reader", || {
        let event = "select wait_event from pg_stat_activity where backend_type = 'startup'";
        query(&mut operator, event) == "RecoveryConflictSnapshot"
    });
    query(&mut operator, "select pg_wal_replay_pause()");
    assert_eq!(
        query(&mut operator, "select pg_get_wal_replay_pause_state()"),
        "pause requested"
    );
    run(&mut reader, "rollback");
    shows(&mut operator, "paused");
    query(&mut operator, "select pg_wal_replay_resume()");
    pair.catch_up();
}
