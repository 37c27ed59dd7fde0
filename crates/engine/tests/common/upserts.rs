//! Sessions that count by INSERT … ON CONFLICT DO UPDATE, while others delete and move the rows in their way.
//!
//! Every acknowledged transaction has counted its number of times, in `counts` or, for what was deleted, in `taken`. So
//! the sum of both tells whether an update was lost. `n` has an index, so no update is HOT and every one makes an entry.

use std::sync::atomic::{AtomicU64, Ordering};

use clearway_engine::Session;

use super::{query, run};

/// The tables.
pub const SETUP: &str = "create table counts (k int primary key, other int unique, n int not null);
    create index by_n on counts (n);
    create table taken (n int)";

/// The sum of what was counted.
pub const SUM: &str =
    "select coalesce((select sum(n) from counts), 0) + coalesce((select sum(n) from taken), 0)";

const KEYS: u64 = 3;

/// The counts of transactions that have begun, and of those that were acknowledged.
#[derive(Default)]
pub struct Counted {
    pub begun: AtomicU64,
    pub acknowledged: AtomicU64,
}

/// One session's transactions, while `goes_on`.
pub fn count(session: &mut Session, number: u64, counted: &Counted, goes_on: impl Fn(u64) -> bool) {
    let repeatable = number % 3 == 2;
    if repeatable {
        run(session, "set default_transaction_isolation = 'repeatable read'");
    }
    let mut round = 0;
    while goes_on(round) {
        let key = (number + round) % KEYS + 10 * (round % 2);
        let once = format!(
            "insert into counts values ({key}, {key}, 1) on conflict (k) do update set n = counts.n + 1;"
        );
        let nothing = format!("insert into counts values ({key}, {key}, 0) on conflict do nothing;");
        match round % 10 {
            0..=5 => transact(session, &once, 1, repeatable, counted),
            6 => transact(
                session,
                &format!("begin; {once} {once} commit"),
                2,
                repeatable,
                counted,
            ),
            7 => {
                run(session, &format!("begin; {once} rollback"));
                run(session, "rollback");
                transact(session, &nothing, 0, repeatable, counted);
            }
            8 => {
                let moved = format!("update counts set k = k + 10, other = other + 10 where k = {key}");
                let ended = run(session, &moved);
                let taken = ended == "ERROR 23505";
                assert!(taken || repeatable || ended.starts_with("UPDATE"), "{ended}");
            }
            _ => {
                let taken = format!(
                    "with gone as (delete from counts where k = {key} returning n) \
                     insert into taken select n from gone"
                );
                transact(session, &taken, 0, repeatable, counted);
            }
        }
        round += 1;
    }
}

/// Runs a transaction until it is through; only REPEATABLE READ may have to be told to try again.
fn transact(session: &mut Session, sql: &str, times: u64, repeatable: bool, counted: &Counted) {
    counted.begun.fetch_add(times, Ordering::SeqCst);
    loop {
        let ended = run(session, sql);
        if !ended.contains("ERROR") {
            counted.acknowledged.fetch_add(times, Ordering::SeqCst);
            return;
        }
        assert!(repeatable && ended == "ERROR 40001", "{sql}: {ended}");
        run(session, "rollback");
    }
}

/// Asserts that no key has two rows, whichever way they are found.
#[track_caller]
pub fn assert_keys_are_unique(session: &mut Session) {
    for column in ["k", "other"] {
        let twice = format!("select {column} from counts group by {column} having count(*) > 1");
        assert_eq!(query(session, &twice), "");
    }
    for key in query(session, "select k from counts")
        .split(", ")
        .filter(|key| !key.is_empty())
    {
        assert_eq!(
            query(session, &format!("select k, other from counts where k = {key}")),
            format!("{key}|{key}")
        );
        assert_eq!(
            query(
                session,
                &format!("select k, other from counts where other = {key}")
            ),
            format!("{key}|{key}")
        );
    }
}
