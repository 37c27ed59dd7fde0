//! Random transactions of several sessions on a few rows. Each row has a list of the transactions that have written it, so
//! what is read tells the dependencies; those that have committed have no circle. `SEED=n` repeats a run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use clearway_engine::Session;

use crate::common::{Fixture, query, run};
use crate::dependency_circle::{Done, circle};

const SESSIONS: u64 = 4;
const TRANSACTIONS: u64 = 2_500;
const KEYS: u64 = 6;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Runs a statement of the transaction; `None` if it has failed.
fn step(session: &mut Session, sql: &str) -> Option<String> {
    let shown = run(session, sql);
    match shown.strip_prefix("ERROR ") {
        None => Some(shown),
        Some("40001" | "23505" | "40P01") => None,
        Some(other) => panic!("{sql}: {other}"),
    }
}

fn lists(shown: &str) -> BTreeMap<u64, Vec<u64>> {
    let rows = shown.split(", ").filter(|row| !row.is_empty());
    rows.map(|row| {
        let (key, list) = row.split_once('|').expect("two columns");
        let numbers = list.split(' ').filter(|number| !number.is_empty());
        (
            key.parse().unwrap(),
            numbers.map(|number| number.parse().unwrap()).collect(),
        )
    })
    .collect()
}

/// Reads keys, and notes what it has read before it has written there.
fn read(session: &mut Session, done: &mut Done, keys: std::ops::Range<u64>, condition: &str) -> Option<()> {
    let shown = step(session, &format!("select id, list from t where {condition}"))?;
    let found = lists(&shown);
    for key in keys {
        let list = found.get(&key).cloned().unwrap_or_default();
        done.reads.entry(key).or_insert(list);
    }
    Some(())
}

fn transaction(session: &mut Session, random: &mut Random, number: u64) -> Option<Done> {
    let mut done = Done {
        number,
        reads: BTreeMap::new(),
        writes: BTreeSet::new(),
    };
    let is_read_only = random.below(4) == 0;
    let begin = if is_read_only { " read only" } else { "" };
    query(session, &format!("begin isolation level serializable{begin}"));
    for _ in 0..1 + random.below(3) {
        let key = random.below(KEYS);
        match random.below(if is_read_only { 3 } else { 6 }) {
            0 => read(session, &mut done, 0..KEYS, "true")?,
            1 => read(session, &mut done, 0..key, &format!("id >= 0 and id < {key}"))?,
            2 => read(session, &mut done, key..key + 1, &format!("id = {key}"))?,
            _ => {
                read(session, &mut done, key..key + 1, &format!("id = {key}"))?;
                let is_there = step(session, &format!("select count(*) from t where id = {key}"))? == "1";
                let sql = match is_there {
                    true => {
                        format!("update t set list = list || ' {number}', pad = {number} where id = {key}")
                    }
                    false => format!("insert into t values ({key}, '{number}', 0)"),
                };
                if done.writes.insert(key) {
                    step(session, &sql)?;
                }
            }
        }
    }
    (step(session, "commit")? == "COMMIT").then_some(done)
}

#[test]
fn those_that_commit_have_a_serial_order() {
    let seed = std::env::var("SEED").map_or(7, |seed| seed.parse().expect("SEED is a number"));
    eprintln!("SEED={seed}");
    // With an index on what changes, so that some updates are not HOT.
    let fixture =
        Fixture::new("create table t (id int primary key, list text, pad int); create index on t (pad)");
    let (done, next) = (Mutex::new(Vec::new()), AtomicU64::new(1));
    std::thread::scope(|scope| {
        for number in 1..=SESSIONS {
            let (fixture, done, next) = (&fixture, &done, &next);
            scope.spawn(move || {
                let mut session = fixture.session();
                query(&mut session, "set enable_seqscan = off");
                let mut random = Random(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number > TRANSACTIONS {
                        return;
                    }
                    match transaction(&mut session, &mut random, number) {
                        Some(transaction) => done.lock().unwrap().push(transaction),
                        None => drop(run(&mut session, "rollback")),
                    }
                }
            });
        }
    });
    let done = done.into_inner().unwrap();
    let mut session = fixture.session();
    let last = lists(&query(&mut session, "select id, list from t"));
    eprintln!("{} of {TRANSACTIONS} committed", done.len());
    assert_eq!(circle(&done, &last), None);
    assert!(done.len() as u64 > TRANSACTIONS / 20, "nearly nothing commits");
}
