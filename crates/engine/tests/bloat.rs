//! Tables and indexes that are updated for a long time stay as large as their rows.

mod common;

use std::fs;
use std::sync::Arc;

use clearway_engine::{Discard, Engine, SessionInfo, Value};
use common::{Fixture, query};

/// Runs that may be needed on a busy machine.
const RUNS_MAX: u32 = 4;

/// A session commits so often, at most, without waiting for the log. Under `lock_release = early` an old version stays until
/// the commit that has replaced it is durable. The log writer sees to that each 10 ms, in which these sessions replace more
/// versions than the table has rows.
const ASYNCHRONOUS_MAX: u64 = 32;

/// The size of all data files.
fn data_bytes(fixture: &Fixture) -> u64 {
    fs::read_dir(fixture.directory.path().join("base"))
        .unwrap()
        .map(|entry| fs::metadata(entry.unwrap().path()).map_or(0, |metadata| metadata.len()))
        .sum()
}

fn update_at_random(engine: &Arc<Engine>, worker: u64, rounds: u64) {
    let mut session = engine.session(SessionInfo::default()).unwrap();
    let out = &mut Discard::default();
    let update = session
        .prepare("update accounts set balance = balance + 1 where id = $1", &[])
        .unwrap();
    let mut state = worker + 1;
    for round in 0..rounds {
        match round % ASYNCHRONOUS_MAX {
            0 => query(&mut session, "set synchronous_commit = on"),
            1 => query(&mut session, "set synchronous_commit = off"),
            _ => String::new(),
        };
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let id = (state >> 33) % 1_000 + 1;
        session
            .execute(&update, &[Value::Int4(id as i32)], 0, out)
            .unwrap();
        session.sync().unwrap();
    }
}

/// While a worker that has a snapshot waits for a CPU nothing is taken back, and on a busy machine that doubled the tables
/// in a quarter of the runs. So there are several, each with new tables and the same bound. Versions that are never taken
/// back make the tables four and a half times as large in each (seen: pruning that finds nothing).
#[test]
fn simple_updates_do_not_bloat() {
    let mut grown = Vec::new();
    for _ in 0..RUNS_MAX {
        let (warm, end) = sizes_around_updates();
        if end <= warm * 3 / 2 {
            return;
        }
        grown.push((warm, end));
    }
    panic!("grew in each run, in bytes: {grown:?}");
}

/// The size of the tables when their space has been used once, and after 24,000 more updates.
fn sizes_around_updates() -> (u64, u64) {
    let fixture = Fixture::new(
        "create table accounts (id int primary key, balance bigint, filler char(84));
         insert into accounts select i, 0, '' from generate_series(1, 1000) i",
    );
    let rounds = |count| {
        std::thread::scope(|scope| {
            for worker in 0..4 {
                let engine = &fixture.engine;
                scope.spawn(move || update_at_random(engine, worker, count));
            }
        });
    };
    rounds(1_500);
    let warm = data_bytes(&fixture);
    rounds(6_000);
    let end = data_bytes(&fixture);
    assert_eq!(
        query(&mut fixture.session(), "select sum(balance) from accounts"),
        "30000"
    );
    assert_eq!(fixture.engine.check().unwrap().problems, Vec::<String>::new());
    (warm, end)
}

#[test]
fn vacuum_takes_back_what_updates_of_an_indexed_column_leave() {
    let fixture = Fixture::new(
        "create table accounts (id int primary key, balance bigint);
         create index by_balance on accounts (balance);
         insert into accounts select i, i from generate_series(1, 1000) i",
    );
    let mut session = fixture.session();
    let round = |session: &mut clearway_engine::Session| {
        query(session, "update accounts set balance = 1001 - balance");
        query(session, "vacuum accounts");
    };
    for _ in 0..3 {
        round(&mut session);
    }
    let warm = data_bytes(&fixture);
    for _ in 0..13 {
        round(&mut session);
    }
    let end = data_bytes(&fixture);
    // 24,000 versions that nothing takes back are 3.6 MB, seven times the warm tables. While a worker that has a snapshot
    // waits for a CPU, nothing is taken back: on a busy machine they double.
    assert!(end <= warm * 3, "grew from {warm} to {end} bytes");
    assert_eq!(
        query(&mut session, "select min(balance), max(balance) from accounts"),
        "1|1000"
    );
    assert_eq!(fixture.engine.check().unwrap().problems, Vec::<String>::new());
}

#[test]
fn space_of_deleted_rows_is_used_again() {
    let fixture = Fixture::new("create table queue (id int primary key, payload text)");
    let mut session = fixture.session();
    let mut warm = 0;
    for round in 0..12 {
        // The same keys each time: a tree's emptied pages are used again for their own range of keys only.
        query(
            &mut session,
            "insert into queue select i, 'job' || i from generate_series(1, 500) i",
        );
        query(&mut session, "delete from queue");
        query(&mut session, "vacuum queue");
        if round == 3 {
            warm = data_bytes(&fixture);
        }
    }
    let end = data_bytes(&fixture);
    // 24,000 versions that nothing takes back are 3.6 MB, seven times the warm tables. While a worker that has a snapshot
    // waits for a CPU, nothing is taken back: on a busy machine they double.
    assert!(end <= warm * 3, "grew from {warm} to {end} bytes");
}
