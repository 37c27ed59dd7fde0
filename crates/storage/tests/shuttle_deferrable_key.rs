//! A deferrable unique key under shuttle: the look at an insertion and the second look at a commit (U1 to U3 of the engine's
//! `session/checks/unique_key.rs`), as the shipped tree makes them. Transactions put rows under one key, whichever rows are
//! there, and commit or roll back; one that waits for another which waits for it gives up.
//!
//! Caught mutations: those of `mutations/btree.toml` that name this suite.

#![cfg(feature = "shuttle")]

#[path = "support/long_turns.rs"]
mod long_turns;
#[path = "support/tree_in_memory.rs"]
#[expect(dead_code, reason = "the disk of this suite is never full")]
mod tree_in_memory;

use std::collections::HashMap;
use std::sync::Mutex;

use clearway_storage::btree::{BTree, InsertOutcome};
use clearway_storage::heap::{Liveness, Tid};
use clearway_storage::{BufferPoolOptions, PageLatchVariant, Result};
use clearway_txn::Xid;
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Arc;
use shuttle::thread;
use tree_in_memory::{InMemory, REL};

/// Four entries fill a page.
const KEY: [u8; 1_900] = [7; 1_900];
/// Rows that were rolled back before, whose entries fill two leaves.
const DEAD: u32 = 8;
const TRANSACTIONS: u32 = 3;

/// No look at other rows.
const UNCHECKED: Option<fn(Tid) -> Result<Liveness>> = None;

/// The state of the transaction that made a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Row {
    Running { waits_for: Option<Xid> },
    Committed,
    RolledBack,
}

/// Rows with one key. Each has a transaction of its own, whose number is its block's.
struct Key {
    storage: InMemory,
    tree: BTree,
    rows: Mutex<HashMap<u32, Row>>,
}

fn number(below: u32) -> u32 {
    thread_rng().gen_range(0..below)
}

fn tid(block: u32) -> Tid {
    Tid { block, slot: 1 }
}

impl Key {
    fn new(options: BufferPoolOptions) -> Self {
        let storage = InMemory::new(options);
        BTree::create(&storage, REL).unwrap();
        let key = Self {
            storage,
            tree: BTree::new(REL.0),
            rows: Mutex::default(),
        };
        for dead in 1..=DEAD {
            key.set(dead * 10, Row::RolledBack);
            key.enter(dead * 10, UNCHECKED);
        }
        assert!(key.storage.check(key.tree).pages > 1, "two leaves");
        key
    }

    fn set(&self, row: u32, state: Row) {
        self.rows.lock().unwrap().insert(row, state);
    }

    fn liveness(&self, tid: Tid) -> Result<Liveness> {
        Ok(match self.rows.lock().unwrap()[&tid.block] {
            Row::Running { .. } => Liveness::DependsOn(Xid(u64::from(tid.block))),
            Row::Committed => Liveness::Alive,
            Row::RolledBack => Liveness::Dead,
        })
    }

    fn enter(&self, row: u32, liveness: Option<impl Fn(Tid) -> Result<Liveness>>) -> InsertOutcome {
        let entered = self.tree.insert_entry(&self.storage, &KEY, tid(row), liveness);
        entered.unwrap()
    }

    /// U1: enters a row; whether it is in doubt.
    fn store(&self, row: u32) -> bool {
        self.set(row, Row::Running { waits_for: None });
        let is_in_doubt = self.enter(row, Some(|tid| self.liveness(tid))) != InsertOutcome::Inserted;
        if is_in_doubt {
            assert_eq!(self.enter(row, UNCHECKED), InsertOutcome::Inserted);
        }
        is_in_doubt
    }

    /// U3: whether no other row has the key of one in doubt.
    fn is_alone(&self, row: u32) -> bool {
        loop {
            let others = self
                .tree
                .liveness_of_others_by(&self.storage, &KEY, tid(row), |tid| self.liveness(tid));
            match others.unwrap() {
                Liveness::Dead => return true,
                Liveness::Alive => return false,
                Liveness::DependsOn(other) => {
                    assert_ne!(other, Xid(u64::from(row)));
                    if !self.wait(row, other) {
                        return false;
                    }
                }
            }
        }
    }

    /// Waits for the end of a transaction; false for a deadlock.
    fn wait(&self, row: u32, other: Xid) -> bool {
        let is_waited_for = |rows: &HashMap<u32, Row>| {
            let mut last = other;
            while let Some(Row::Running {
                waits_for: Some(next),
            }) = rows.get(&(last.0 as u32))
            {
                if *next == Xid(u64::from(row)) {
                    return true;
                }
                last = *next;
            }
            false
        };
        let state = |waits_for| Row::Running { waits_for };
        {
            let mut rows = self.rows.lock().unwrap();
            if is_waited_for(&rows) {
                return false;
            }
            rows.insert(row, state(Some(other)));
        }
        while let Liveness::DependsOn(_) = self.liveness(tid(other.0 as u32)).unwrap() {
            thread::yield_now();
        }
        self.set(row, state(None));
        true
    }

    /// Commits, which no other row with the key has done.
    fn commit(&self, row: u32) {
        let mut rows = self.rows.lock().unwrap();
        let committed = rows.values().filter(|state| **state == Row::Committed).count();
        assert_eq!(committed, 0, "a second row with the key is committed");
        rows.insert(row, Row::Committed);
    }

    /// A transaction from its row to its end.
    fn transact(&self, row: u32, gives_up: bool) {
        let is_in_doubt = self.store(row);
        thread::yield_now();
        match !gives_up && (!is_in_doubt || self.is_alone(row)) {
            true => self.commit(row),
            false => self.set(row, Row::RolledBack),
        }
    }
}

/// Each of the rows goes anywhere between those that are dead. One transaction at most rolls back without a reason.
fn transactions_under_one_key(options: BufferPoolOptions) {
    let key = Arc::new(Key::new(options));
    let gives_up = number(2 * TRANSACTIONS);
    let transactions: Vec<_> = (0..TRANSACTIONS)
        .map(|transaction| {
            let (key, row) = (Arc::clone(&key), number(DEAD + 1) * 10 + transaction + 1);
            thread::spawn(move || key.transact(row, transaction == gives_up))
        })
        .collect();
    for transaction in transactions {
        transaction.join().unwrap();
    }
    let mut tids = Vec::new();
    key.tree.lookup(&key.storage, &KEY, &mut tids).unwrap();
    let alive = |tid: &&Tid| key.liveness(**tid).unwrap() == Liveness::Alive;
    assert!(tids.iter().filter(alive).count() <= 1);
    assert_eq!(tids.len(), (DEAD + TRANSACTIONS) as usize);
    assert_eq!(key.storage.check(key.tree).unnamed, 0);
}

fn check(page_latch: PageLatchVariant) {
    for options in BufferPoolOptions::each_map_and_page_read() {
        let options = BufferPoolOptions {
            page_latch,
            ..options
        };
        long_turns::check(move || transactions_under_one_key(options), 500);
    }
}

#[test]
fn shuttle_one_row_of_a_deferrable_key_commits_under_lwlocks() {
    check(PageLatchVariant::LwLock);
}

#[test]
fn shuttle_one_row_of_a_deferrable_key_commits_under_futex_latches() {
    check(PageLatchVariant::Ssux);
}

#[test]
fn shuttle_one_row_of_a_deferrable_key_commits_under_hybrid_latches() {
    check(PageLatchVariant::Hybrid);
}
