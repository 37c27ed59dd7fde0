//! Keys of deferrable unique constraints: PRIMARY KEY and UNIQUE with DEFERRABLE, checked when the statement has ended or at
//! the commit.
//!
//! `UPDATE t SET id = id + 1` gives each row the key that the next one has had until then. With a check at each row it
//! would fail or not by the order in which the rows are found; with one at the statement's end it passes.
//!
//! # Invariant
//!
//! A transaction that commits leaves none of its rows under a key of such a constraint that another row has, whatever other
//! transactions have committed meanwhile.
//!
//! # Rules
//!
//! - U1: the entry of a row goes into the index whether another row has its key or not. The leaf's latch that it is made
//!   under shows all entries of the key. If one of them leads to a row that is alive, or depends on a transaction that
//!   runs, the new row is noted as *in doubt*.
//! - U2: of two rows with one key, the one whose entry came second is in doubt: the other entry was there, and its row alive
//!   or of a transaction that ran. A row that was dead then stays so: a deletion by this transaction comes back only by a
//!   rollback to a savepoint from before it, which takes the second row away too.
//! - U3: the check of a row in doubt looks for another row by all entries of the key, under the latches of an insertion. One
//!   that is alive is 23505. One that depends on a running transaction is waited for, and all is looked at again: it may be
//!   a row that goes, or one that stays.
//! - U4: a row that the transaction has deleted or given another key meanwhile needs no check. One that it has replaced with
//!   the key as it was needs it: the newest version at the place counts.
//! - U5: REINDEX CONCURRENTLY makes a second tree, and exchanges it for the first one while transactions of the definition
//!   before write beside those of the one after. Each enters its rows into both trees, though in either order. So a row is
//!   in doubt, for the same constraint, if U1 finds another in either tree.
//!
//! # Two sessions
//!
//! *Both store the same key.* The second one is in doubt (U2). Its check waits for the first one's end, and finds the row or
//! none. If each has a row in doubt for the other's, each waits for the other: a deadlock, one of the two is ended with
//! 40P01. *A row comes between a check and the commit.* Its entry comes second, so it is its own transaction that checks it,
//! after the end of this one. *The two write into the trees of U5 in different orders.* Alice comes first in one, and Bob
//! in the other: both are in doubt. A check that does not find the other row yet is that of one whose entry comes first in
//! the tree that it asks, and then the other one's check finds it. A snapshot has no part in this: under REPEATABLE READ
//! too a check sees what is committed.
//!
//! # Why not another check at the insertion
//!
//! A transaction that waited at the insertion, as for a key that is not deferrable, would need no second look for rows of
//! others; but it would wait for rows that are gone by the time of the check, and with the keys of UPDATE above for each
//! other in whatever order the rows come. PostgreSQL's `unique_key_recheck` is the origin of the second look.
//!
//! U1 to U3 under random schedules of the tree's steps: `storage/tests/shuttle_deferrable_key.rs`. Of whole transactions:
//! `tests/isolation/deferrable_keys.rs`.

use crate::convert::storage_error;
use crate::executor::heap_rel;
use crate::executor::long_values::{restore, whole_row};
use crate::executor::subquery::SubqueryResults;
use crate::executor::unique::violation;
use crate::executor::{Execution, InnerPlans};
use crate::session::Session;
use clearway_sql::error::Result;
use clearway_sql::value::{ColumnSet, Decoded, Value};
use clearway_sql::{IndexDef, IndexEntry, TableDef};
use clearway_storage::btree::BTree;
use clearway_storage::heap::{Heap, Liveness, Rival, Tid};

impl Session {
    /// Checks the row at a place, whose key in this index was in doubt when it was stored.
    pub(super) fn check_unique_key(&mut self, index: u32, tid: Tid) -> Result<()> {
        self.txn.catalog_version();
        let state = self.txn.catalog_state();
        let Some(table) = state.owner(index).map(|entry| &*entry.def) else {
            return Ok(());
        };
        let mut indexes = table.all_indexes();
        let Some(index) = indexes.find(|known| known.oid == index) else {
            return Ok(());
        };
        self.txn.next_command();
        self.txn.take_snapshot();
        let inner = InnerPlans::default();
        let mut results = SubqueryResults::default();
        self.with_execution(&[], inner, &mut results, |execution, _| {
            require_alone(execution, table, index, tid)
        })
    }
}

/// Rules U3 and U4.
fn require_alone(execution: &mut Execution<'_>, table: &TableDef, index: &IndexDef, tid: Tid) -> Result<()> {
    let heap = Heap::new(heap_rel(table));
    let found = heap.rival(&execution.txn.context(), tid);
    // What the transaction has stored depends on no other one.
    let Rival::Alive(newest) = found.map_err(storage_error)? else {
        return Ok(());
    };
    let bytes = heap.row_at(execution.storage, newest, <[u8]>::to_vec);
    let Some(bytes) = bytes.map_err(storage_error)? else {
        return Ok(());
    };
    let mut needed = ColumnSet::new();
    index.each_read_column(|column| needed.insert(column));
    let mut row = vec![Value::Null; table.columns.len()];
    if table.codec.decode(&bytes, &needed, &mut row)? == Decoded::Apart {
        restore(execution.storage, execution.interrupts, table, &mut row)?;
    }
    let mut key = Vec::new();
    if index.entry(&row, &execution.eval, &mut key)? != IndexEntry::Whole {
        return Ok(());
    }
    let tree = BTree::new(index.rel);
    loop {
        let others = tree.liveness_of_others(&execution.txn.context(), &key, tid, heap_rel(table));
        match others.map_err(storage_error)? {
            Liveness::Dead => return Ok(()),
            Liveness::Alive => {
                execution.txn.check_serializable()?;
                // The error may show each column.
                let row = whole_row(execution.storage, execution.interrupts, table, &bytes)?;
                return Err(violation(execution, table, index, &row));
            }
            Liveness::DependsOn(xid) => {
                execution
                    .txn
                    .wait_for_transaction(xid, execution.interrupts, execution.lock_timeout)?;
            }
        }
    }
}
