//! Serializable snapshot isolation under loom, in the smallest dangerous structures: of two and of three transactions.
//!
//! `cargo test -p clearway-txn --features loom --test loom_serializable --release`
//!
//! Mutations that it is for: `crates/txn/mutations/serializable.toml`.

mod support;

use std::sync::Arc;

use clearway_latch::{LwLockOptions, LwLockVariant};
use clearway_machine::Loom;
use clearway_txn::{
    MarkedRow, SerialTransaction, Serializable, SerializableOptions, SerializationFailure, Xid,
};
use loom::thread;
use support::{ALICE, BOB, CAROL, explore};

type Outcome = Result<(), SerializationFailure>;

fn serializable() -> Serializable<Loom> {
    Serializable::new(SerializableOptions::new(
        4,
        LwLockOptions::from(LwLockVariant::SingleCas),
    ))
}

fn row(block: u32) -> MarkedRow {
    MarkedRow {
        relation: 1,
        block,
        slot: 1,
    }
}

/// Under snapshots that show nothing of the others.
const BLIND: &dyn Fn(Xid) -> bool = &|_| false;

/// Reads one row, writes another, and commits or rolls back.
fn read_and_write(
    shared: &Serializable<Loom>,
    mut own: SerialTransaction<Loom>,
    xid: Xid,
    (read, written): (MarkedRow, MarkedRow),
) -> Outcome {
    let outcome = shared
        .read_row(&mut own, read, BLIND)
        .and_then(|()| shared.write_row(&mut own, xid, written, BLIND))
        .and_then(|()| shared.prepare(&own, xid));
    match outcome {
        Ok(()) => shared.finish(own),
        Err(_) => shared.remove(own),
    }
    outcome
}

/// Write skew: each reads the row that the other writes. One at most commits.
#[test]
fn loom_one_of_two_that_read_what_the_other_writes_gives_up() {
    explore(2, || {
        let shared = Arc::new(serializable());
        let (alice, bob) = (shared.begin(ALICE, false), shared.begin(BOB, false));
        shared.snapshot_taken(&alice);
        shared.snapshot_taken(&bob);
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || read_and_write(&shared, bob, Xid(101), (row(1), row(2))))
        };
        let first = read_and_write(&shared, alice, Xid(100), (row(2), row(1)));
        let second = other.join().unwrap();
        assert!(first.is_err() || second.is_err(), "both have committed");
        assert_eq!(shared.sizes(), (0, 0));
    });
}

/// The same by keys: each looks for the key that the other enters, and finds nothing.
#[test]
fn loom_one_of_two_that_miss_what_the_other_enters_gives_up() {
    fn enter(
        shared: &Serializable<Loom>,
        mut own: SerialTransaction<Loom>,
        xid: Xid,
        (read, written): (u8, u8),
    ) -> Outcome {
        let outcome = shared
            .read_keys(&mut own, 2, (&[read], Some(&[read + 1])), BLIND)
            .and_then(|()| shared.write_key(&mut own, xid, 2, &[written], BLIND))
            .and_then(|()| shared.prepare(&own, xid));
        match outcome {
            Ok(()) => shared.finish(own),
            Err(_) => shared.remove(own),
        }
        outcome
    }
    explore(2, || {
        let shared = Arc::new(serializable());
        let (alice, bob) = (shared.begin(ALICE, false), shared.begin(BOB, false));
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || enter(&shared, bob, Xid(101), (1, 2)))
        };
        let first = enter(&shared, alice, Xid(100), (2, 1));
        let second = other.join().unwrap();
        assert!(first.is_err() || second.is_err(), "both have committed");
    });
}

/// The read-only anomaly: Bob (T3) has committed, Carol reads under a snapshot that shows it and not Alice, and Alice (the
/// pivot) commits: not both.
#[test]
fn loom_a_reader_and_a_pivot_do_not_both_commit() {
    explore(2, || {
        let shared = Arc::new(serializable());
        let mut alice = shared.begin(ALICE, false);
        shared.snapshot_taken(&alice);
        // Alice reads what Bob writes, Bob commits.
        shared.read_row(&mut alice, row(1), BLIND).unwrap();
        let mut bob = shared.begin(BOB, false);
        shared.write_row(&mut bob, Xid(101), row(1), BLIND).unwrap();
        shared.prepare(&bob, Xid(101)).unwrap();
        shared.finish(bob);
        let mut carol = shared.begin(CAROL, true);
        shared.snapshot_taken(&carol);
        let pivot = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let outcome = shared
                    .write_row(&mut alice, Xid(100), row(2), BLIND)
                    .and_then(|()| shared.prepare(&alice, Xid(100)));
                match outcome {
                    Ok(()) => shared.finish(alice),
                    Err(_) => shared.remove(alice),
                }
                outcome
            })
        };
        let sees_bob = |xid: Xid| xid == Xid(101);
        let outcome = shared
            .read_row(&mut carol, row(1), &sees_bob)
            .and_then(|()| shared.read_row(&mut carol, row(2), &sees_bob))
            .and_then(|()| shared.prepare(&carol, Xid::INVALID));
        let was_safe = carol.is_safe();
        match outcome {
            Ok(()) => shared.finish(carol),
            Err(_) => shared.remove(carol),
        }
        let pivot = pivot.join().unwrap();
        assert!(outcome.is_err() || pivot.is_err(), "both have committed");
        assert!(!was_safe || pivot.is_err(), "the snapshot was not safe");
        assert_eq!(shared.sizes(), (0, 0));
    });
}
