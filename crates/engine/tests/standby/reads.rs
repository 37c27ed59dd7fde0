//! Reads on the standby while the primary writes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clearway_engine::{Collected, Config, Mechanisms, Session};

use crate::common::upserts::{self, Counted};
use crate::common::{error, query, run};
use crate::pair::{Pair, config};

const ACCOUNTS: u32 = 40;
/// Fewer reads than that have shown nothing; a busy machine takes longer for them.
const READ_MIN: u64 = 5;

/// Money moves between accounts on the primary, also in transactions that are rolled back, while tables come and go and
/// accounts get an index and lose it. On the standby the sum is always the same, in a statement and in two of one
/// REPEATABLE READ transaction; and of two rows that are set one after the other, in two transactions, the second is never
/// ahead.
///
/// Caught mutation: a snapshot of the array (`Storage::take_snapshot`).
fn money_is_never_lost(mechanisms: Mechanisms) {
    let setup = format!(
        "create table accounts (id int primary key, balance bigint);
         insert into accounts select g, 100 from generate_series(1, {ACCOUNTS}) g;
         create table steps (id int primary key, at bigint);
         insert into steps values (1, 0), (2, 0)"
    );
    let pair = Pair::with_config(
        &setup,
        Config {
            mechanisms,
            max_standby_streaming_delay: "20s".parse().unwrap(),
            ..config()
        },
    );
    let stop = AtomicBool::new(false);
    let read = AtomicU64::new(0);
    let stopped = || stop.load(Ordering::Relaxed);
    let sum = (u64::from(ACCOUNTS) * 100).to_string();
    thread::scope(|scope| {
        for seed in 1..=3_u32 {
            let mut writer = pair.writer();
            scope.spawn(move || move_money(&mut writer, seed, stopped));
        }
        let mut stepper = pair.writer();
        scope.spawn(move || step(&mut stepper, stopped));
        let mut definer = pair.writer();
        scope.spawn(move || define(&mut definer, stopped));
        for _ in 0..2 {
            let mut reader = pair.reader();
            let (sum, read) = (&sum, &read);
            scope.spawn(move || {
                while !stopped() {
                    read.fetch_add(u64::from(money_is_there(&mut reader, sum)), Ordering::Relaxed);
                }
            });
        }
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(1_200)
            || (read.load(Ordering::Relaxed) <= READ_MIN && began.elapsed() < Duration::from_secs(60))
        {
            thread::sleep(Duration::from_millis(10));
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(read.load(Ordering::Relaxed) > READ_MIN, "{read:?}");
    pair.catch_up();
    for sql in [
        "select id, balance from accounts order by id",
        "select id, at from steps order by id",
    ] {
        assert_eq!(query(&mut pair.reader(), sql), query(&mut pair.writer(), sql));
    }
    let names = "select tablename from pg_tables order by 1";
    assert_eq!(query(&mut pair.reader(), names), query(&mut pair.writer(), names));
}

/// Transfers between accounts, some of them rolled back, all with changes that are taken back to a savepoint, until it is stopped.
fn move_money(writer: &mut Session, seed: u32, stopped: impl Fn() -> bool) {
    let mut at = seed;
    while !stopped() {
        at = at.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (from, to) = (at >> 8 & 0xFF, at >> 16 & 0xFF);
        let (from, to) = (from % ACCOUNTS + 1, to % ACCOUNTS + 1);
        let end = if at >> 28 < 3 { "rollback" } else { "commit" };
        let first = from.min(to);
        let second = from.max(to);
        run(
            writer,
            &format!(
                "begin;
                 update accounts set balance = balance - 1 where id = {first};
                 savepoint s;
                 update accounts set balance = balance - 1 where id in ({first}, {second});
                 insert into accounts values (1000 + {first}, 1), (2000 + {first}, 1);
                 delete from accounts where id = {second} or id > 2000;
                 rollback to s;
                 update accounts set balance = balance + 1 where id = {second}"
            ),
        );
        run(writer, end);
    }
}

/// Sets two rows to the next number, one after the other, until it is stopped.
fn step(writer: &mut Session, stopped: impl Fn() -> bool) {
    for at in 1.. {
        for id in [1, 2] {
            run(writer, &format!("update steps set at = {at} where id = {id}"));
        }
        if stopped() {
            break;
        }
    }
}

/// Makes tables and indexes and drops them, until it is stopped.
fn define(writer: &mut Session, stopped: impl Fn() -> bool) {
    while !stopped() {
        for sql in [
            "create table aside (id serial primary key)",
            "insert into aside default values",
            "create index by_balance on accounts (balance)",
            "truncate aside",
            "begin; create index gone on accounts (balance, id); rollback",
            "drop index by_balance",
            "drop table aside",
        ] {
            run(writer, sql);
        }
        run(writer, "vacuum accounts");
    }
}

/// Looks at the sum, the two rows, and twice at the accounts in one transaction; true if the second look was possible.
fn money_is_there(reader: &mut Session, sum: &str) -> bool {
    let found = query(reader, "select sum(balance) from accounts");
    assert_eq!(found, sum);
    let steps = query(reader, "select at from steps order by id");
    let (first, second) = steps.split_once(", ").unwrap();
    let (first, second): (u64, u64) = (first.parse().unwrap(), second.parse().unwrap());
    assert!(
        first == second || first == second + 1,
        "{first} and then {second}"
    );
    run(reader, "begin isolation level repeatable read");
    let before = query(reader, "select id, balance from accounts order by id");
    // An index that was made in between leads to no version that the old snapshot sees: 40001.
    let again = run(reader, "select id, balance from accounts order by id");
    run(reader, "rollback");
    if again == "ERROR 40001" {
        return false;
    }
    assert_eq!(before, again);
    true
}

fn with(settings: &[&str]) -> Mechanisms {
    let mut mechanisms = crate::common::mechanisms();
    for setting in settings {
        mechanisms.set(setting).unwrap();
    }
    mechanisms
}

#[test]
fn money_is_never_lost_with_an_array() {
    money_is_never_lost(with(&["known_xids=array", "replay=serial"]));
}

#[test]
fn money_is_never_lost_with_an_array_compacted_as_in_2010() {
    money_is_never_lost(with(&["known_xids=array", "known_xids_compaction=2010"]));
}

#[test]
fn money_is_never_lost_with_a_list() {
    money_is_never_lost(with(&["known_xids=list", "page_read=pinned"]));
}

#[test]
fn money_is_never_lost_with_offsets() {
    money_is_never_lost(with(&[
        "known_xids=offsets",
        "page_read=pinned",
        "replay=parallel",
    ]));
}

#[test]
fn money_is_never_lost_with_a_radix_tree() {
    money_is_never_lost(with(&["known_xids=radix", "relation_locks=table"]));
}

#[test]
fn money_is_never_lost_with_a_bitmap() {
    money_is_never_lost(with(&["known_xids=bitmap", "replay=parallel"]));
}

/// Rows that are copied in on the primary, a page and a leaf at a time, while a reader on the standby counts them by both
/// indexes: none of a COPY, or all.
fn copied_rows_arrive_together(replay: &str) {
    const ROWS: u32 = 3_000;
    let mut mechanisms = crate::common::mechanisms();
    mechanisms.set(&format!("replay={replay}")).unwrap();
    let config = Config {
        mechanisms,
        ..config()
    };
    let pair = Pair::with_config(
        "create table t (id int primary key, n int, filler text); create index on t (n)",
        config,
    );
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let mut reader = pair.reader();
        let stop = &stop;
        scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                run(&mut reader, "begin isolation level repeatable read");
                let all = query(&mut reader, "select count(*), count(distinct id) from t");
                let by_index = query(
                    &mut reader,
                    "select count(*), count(distinct id) from t where n >= 0",
                );
                run(&mut reader, "commit");
                let (count, distinct) = all.split_once('|').unwrap();
                assert_eq!(count, distinct);
                assert_eq!(all, by_index);
                assert_eq!(count.parse::<u32>().unwrap() % ROWS, 0, "a part of a COPY");
            }
        });
        let mut writer = pair.writer();
        for round in 0..4_u32 {
            let line = |row: u32| {
                let n = row.wrapping_mul(2_654_435_761) % 1_000;
                format!(
                    "{}\t{n}\t{}\n",
                    round * ROWS + row,
                    "f".repeat(row as usize % 100)
                )
            };
            let mut out = Collected {
                copy_input: (0..ROWS).map(line).collect::<String>().into_bytes(),
                ..Collected::default()
            };
            writer.execute_simple("copy t from stdin", &mut out).unwrap();
        }
        pair.catch_up();
        stop.store(true, Ordering::Relaxed);
    });
    for sql in [
        "select * from t order by id",
        "select n, id from t where n < 50 order by n, id",
    ] {
        assert_eq!(query(&mut pair.reader(), sql), query(&mut pair.writer(), sql));
    }
}

#[test]
fn copied_rows_arrive_together_by_serial_replay() {
    copied_rows_arrive_together("serial");
}

#[test]
fn copied_rows_arrive_together_by_parallel_replay() {
    copied_rows_arrive_together("parallel");
}

/// Rows are stored and withdrawn on the primary; after it the standby has the same, and its indexes lead to it.
#[test]
fn upserts_are_replayed() {
    let pair = Pair::new(upserts::SETUP);
    let counted = Counted::default();
    thread::scope(|scope| {
        for number in 0..4 {
            let (pair, counted) = (&pair, &counted);
            scope.spawn(move || upserts::count(&mut pair.writer(), number, counted, |round| round < 60));
        }
    });
    for then in ["select 1", "vacuum counts"] {
        pair.write(then);
        pair.catch_up();
        let mut reader = pair.reader();
        assert_eq!(
            query(&mut reader, upserts::SUM),
            counted.acknowledged.load(Ordering::SeqCst).to_string()
        );
        upserts::assert_keys_are_unique(&mut reader);
    }
}

/// Values apart from their rows come with the rows, and go with them while a snapshot of the standby keeps its own.
#[test]
fn long_values_are_replayed() {
    let pair = Pair::new(
        "create table notes (id int primary key, note text);
         create view noise as select string_agg(md5(g::text), '') as value from generate_series(1, 3000) g;
         insert into notes select g, g || value from noise, generate_series(1, 3) g",
    );
    let right = "select id, note = id || value, length(note) from notes, noise order by id";
    pair.catch_up();
    let mut reader = pair.reader();
    assert_eq!(query(&mut reader, right), "1|t|96001, 2|t|96001, 3|t|96001");
    pair.write("update notes set note = note || '!' where id = 1");
    pair.write("delete from notes where id = 2");
    pair.write("begin; insert into notes select 4, value from noise; rollback");
    pair.write("vacuum notes");
    pair.write("insert into notes select 5, repeat(value, 10) from noise");
    pair.catch_up();
    assert_eq!(query(&mut reader, right), "1|f|96002, 3|t|96001, 5|f|960000");
    pair.write("alter table notes add column n numeric");
    pair.write("update notes set n = repeat('7', 20000)::numeric");
    pair.write("alter table notes alter column note type varchar using id || note");
    pair.catch_up();
    assert_eq!(query(&mut reader, right), "1|f|96003, 3|f|96002, 5|f|960001");
    pair.write("truncate notes");
    pair.write("insert into notes select 9, 9 || value from noise");
    pair.catch_up();
    assert_eq!(query(&mut reader, right), "9|t|96001");
}

/// The mechanisms with each variant of replay.
fn variants() -> [Mechanisms; 2] {
    ["serial", "parallel"].map(|replay| {
        let mut mechanisms = config().mechanisms;
        mechanisms.set(&format!("replay={replay}")).unwrap();
        mechanisms
    })
}

fn await_shown(reader: &mut Session, sql: &str, wanted: &str) {
    let until = Instant::now() + Duration::from_secs(60);
    while query(reader, sql) != wanted {
        assert!(Instant::now() < until, "{sql}: {}", query(reader, sql));
        thread::sleep(Duration::from_millis(2));
    }
}

/// Replay that is paused stands still while log is received, shows that, and goes on from there.
#[test]
fn a_pause_holds_replay_and_not_the_log() {
    for mechanisms in variants() {
        let pair = Pair::with_config(
            "create table t (a int)",
            Config {
                mechanisms,
                ..config()
            },
        );
        let mut reader = pair.reader();
        let state = "select pg_is_wal_replay_paused(), pg_get_wal_replay_pause_state()";
        assert_eq!(query(&mut reader, state), "f|not paused");
        pair.write("insert into t values (1)");
        pair.catch_up();
        query(&mut reader, "select pg_wal_replay_pause()");
        await_shown(&mut reader, state, "t|paused");
        await_shown(
            &mut reader,
            "select wait_event_type, wait_event from pg_stat_activity where backend_type = 'startup'",
            "IPC|RecoveryPause",
        );
        let stopped = query(&mut reader, "select pg_last_wal_replay_lsn()");
        pair.write("insert into t select g from generate_series(2, 500) g");
        let logged = pair.logged();
        await_shown(
            &mut reader,
            &format!("select pg_last_wal_receive_lsn() >= '{logged}'"),
            "t",
        );
        assert!(!pair.has_replayed(logged, Duration::from_millis(300)));
        assert_eq!(query(&mut reader, "select count(*) from t"), "1");
        assert_eq!(query(&mut reader, "select pg_last_wal_replay_lsn()"), stopped);
        query(&mut reader, "select pg_wal_replay_resume()");
        assert_eq!(query(&mut reader, state), "f|not paused");
        pair.catch_up();
        assert_eq!(query(&mut reader, "select count(*) from t"), "500");
        // A promotion ends a pause: what was received is replayed.
        query(&mut reader, "select pg_wal_replay_pause()");
        await_shown(&mut reader, state, "t|paused");
        pair.write("insert into t values (501)");
        let logged = pair.logged();
        await_shown(
            &mut reader,
            &format!("select pg_last_wal_receive_lsn() >= '{logged}'"),
            "t",
        );
        let mut pair = pair;
        pair.cut();
        pair.standby().promote("a test").unwrap();
        assert_eq!(query(&mut reader, "select count(*) from t"), "501");
        assert_eq!(error(&mut reader, state).sqlstate().as_str(), "55000");
    }
}

/// A commit is replayed when it is old enough, and what is behind it in the log after it; a promotion waits for none.
#[test]
fn a_delay_holds_commits_until_they_are_old_enough() {
    for mechanisms in variants() {
        let delay = Duration::from_millis(700);
        let pair = Pair::with_config(
            "create table t (a int)",
            Config {
                mechanisms,
                recovery_min_apply_delay: "700ms".parse().unwrap(),
                ..config()
            },
        );
        pair.catch_up();
        let mut reader = pair.reader();
        for row in 1..=2 {
            let began = Instant::now();
            pair.write(&format!("insert into t values ({row})"));
            let seen = format!("select count(*) from t where a = {row}");
            await_shown(&mut reader, &seen, "1");
            // The commit's time was taken behind `began`, by a clock of whole microseconds.
            assert!(
                began.elapsed() + Duration::from_millis(1) >= delay,
                "{:?}",
                began.elapsed()
            );
        }
        drop(reader);
        drop(pair);
        // A day: what a promotion would wait for, if it did.
        let mut pair = Pair::with_config(
            "create table t (a int)",
            Config {
                mechanisms,
                recovery_min_apply_delay: "1d".parse().unwrap(),
                ..config()
            },
        );
        pair.write("insert into t values (1)");
        let logged = pair.logged();
        let mut reader = pair.reader();
        await_shown(
            &mut reader,
            &format!("select pg_last_wal_receive_lsn() >= '{logged}'"),
            "t",
        );
        await_shown(
            &mut reader,
            "select wait_event_type, wait_event from pg_stat_activity where backend_type = 'startup'",
            "Timeout|RecoveryApplyDelay",
        );
        assert!(!pair.has_replayed(logged, Duration::from_millis(300)));
        assert_eq!(query(&mut reader, "select count(*) from t"), "0");
        pair.cut();
        pair.standby().promote("a test").unwrap();
        assert_eq!(query(&mut reader, "select count(*) from t"), "1");
    }
}
