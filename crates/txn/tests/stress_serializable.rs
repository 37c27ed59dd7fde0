//! Random transactions over a few keys by several threads, under serializable snapshot isolation; the history of those that
//! have committed has no circle. `SEED=9` asks for another sequence.
//!
//! Mutations that it is for: `crates/txn/mutations/serializable.toml`.

mod support;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use clearway_latch::LwLockOptions;
use clearway_txn::{ProcId, SerializableOptions};
use support::Random;
use support::dependency_circle::{Done, circle};
use support::serial_history::{Refused, Store};

const THREADS: u32 = 4;

#[derive(Debug, Clone, Copy)]
struct Plan {
    keys: u64,
    transactions: u64,
    options: SerializableOptions,
    /// One in so many transactions stays open over many others; 0: none.
    long_one_in: u64,
}

fn options() -> SerializableOptions {
    SerializableOptions::new(THREADS, LwLockOptions::default())
}

fn steps(store: &Store, random: &mut Random, plan: Plan, proc: u32, number: u64) -> Result<Done, Refused> {
    let is_read_only = random.below(4) == 0;
    let mut running = store.begin(ProcId(proc), number, is_read_only);
    let count = 1 + random.below(4);
    for _ in 0..count {
        let key = random.below(plan.keys);
        let step = match random.below(if is_read_only { 2 } else { 5 }) {
            0 => store.read_range(&mut running, key),
            1 | 2 => store.read(&mut running, key).map(drop),
            _ => store.append(&mut running, key),
        };
        if let Err(refused) = step {
            store.roll_back(running);
            return Err(refused);
        }
        for _ in 0..random.below(3) {
            std::thread::yield_now();
        }
        if plan.long_one_in != 0 && random.below(plan.long_one_in) == 0 {
            std::thread::sleep(std::time::Duration::from_millis(3));
        }
    }
    store.commit(running)
}

/// Runs a plan; the transactions that have committed, and how many were refused as not serializable.
fn run(plan: Plan) -> (Store, Vec<Done>, u64) {
    let seed = std::env::var("SEED").map_or(7, |seed| seed.parse().expect("SEED is a number"));
    eprintln!("SEED={seed}");
    let store = Store::new(plan.options);
    let (done, refused) = (Mutex::new(Vec::new()), AtomicU64::new(0));
    let next = AtomicU64::new(1);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (store, done, refused, next) = (&store, &done, &refused, &next);
            scope.spawn(move || {
                let mut random = Random(seed ^ (u64::from(thread) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number > plan.transactions {
                        return;
                    }
                    match steps(store, &mut random, plan, thread, number) {
                        Ok(transaction) => done.lock().unwrap().push(transaction),
                        Err(Refused::Concurrent) => {}
                        Err(Refused::Serialization(_)) => {
                            refused.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    (store, done.into_inner().unwrap(), refused.into_inner())
}

fn check(plan: Plan) {
    let (store, done, refused) = run(plan);
    eprintln!(
        "{} of {} committed, {refused} refused as not serializable",
        done.len(),
        plan.transactions
    );
    assert_eq!(circle(&done, &store.lists()), None);
    assert!(
        done.len() as u64 > plan.transactions / 20,
        "nearly nothing commits"
    );
    // All have ended: one that begins now and ends takes the last marks with it.
    let last = store.begin(ProcId(0), plan.transactions + 10, false);
    store.commit(last).unwrap();
    assert_eq!(store.serializable.sizes(), (0, 0), "something is left");
}

#[test]
fn stress_no_circle_among_those_that_commit() {
    check(Plan {
        keys: 6,
        transactions: 6_000,
        options: options(),
        long_one_in: 0,
    });
}

#[test]
fn stress_no_circle_when_old_ones_are_summarised() {
    check(Plan {
        keys: 8,
        transactions: 6_000,
        options: SerializableOptions {
            retained_max: 3,
            ..options()
        },
        long_one_in: 200,
    });
}

#[test]
fn stress_no_circle_when_marks_are_coarse() {
    check(Plan {
        keys: 40,
        transactions: 4_000,
        options: SerializableOptions {
            marks_max: 3,
            retained_max: 2,
            old_marks_max: 4,
            ..options()
        },
        long_one_in: 200,
    });
}

/// The check finds a circle where there is one: write skew, without the check before the commit.
#[test]
fn the_check_finds_a_write_skew() {
    let done = |number, other_key, key| Done {
        number,
        reads: [(key, Vec::new()), (other_key, Vec::new())].into(),
        writes: [key].into(),
    };
    let lists = [(1, vec![1]), (2, vec![2])].into();
    assert!(circle(&[done(1, 2, 1), done(2, 1, 2)], &lists).is_some());
    assert_eq!(circle(&[done(1, 2, 1)], &lists), None);
}
