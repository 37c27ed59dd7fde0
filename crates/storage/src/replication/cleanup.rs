//! The record that comes before the removal of row versions: a standby's snapshots that see them end first.
//!
//! # An example
//! Bob reads on the standby, Alice deletes on the primary, and Carol's update prunes the page.
//!
//! | time | Alice, transaction 100 | Carol | Bob, on the standby |
//! | --- | --- | --- | --- |
//! | 1 | deletes a row | | takes a snapshot: 100 runs |
//! | 2 | commits | | |
//! | 3 | | logs `Cleanup` 100, then the removal of the row's version | |
//! | 4 | | | replay meets `Cleanup` 100: it waits for Bob, whose xmin is 100, or cancels him |
//! | 5 | | | replay meets the removal: no snapshot that sees the row is left |
//!
//! The primary's horizon keeps the versions that its own sessions see; Bob is none of them.
//!
//! # Rules
//! - R1: before a change that removes versions which committed transactions deleted, there is in the log a `Cleanup` with
//!   the newest of these transactions, or a newer one.
//! - R2: that transaction is below the horizon: it and all before it have left the array of running ones, and the records
//!   of their ends lie before the `Cleanup`.
//!
//! # Steps
//! 1. A pruner computes the newest deleter of what it removes. A newest one that was logged before is not below it: done.
//! 2. Otherwise it inserts the record, and raises the newest logged one.
//! 3. It changes the page, and logs the change.
//!
//! # Why a pruner may skip its record
//! It has loaded, by an Acquire, a number that another pruner stored by a Release after it had inserted its record. So
//! that record's place was reserved before the place of our change is. Raised before the insertion, the number would let
//! us log the change first, and the standby would remove the version while Bob reads.
//!
//! A standby that begins at a redo position behind that other record does not meet it. It needs none: by R2 the
//! transactions up to there had ended before the redo position, so its snapshots' xmins are above from the beginning
//! (`running_transactions`, R1).
//!
//! # Why nothing else logs one
//! | what goes | why no snapshot of a standby misses it |
//! | --- | --- |
//! | versions whose inserter rolled back; versions that their own inserter deleted | no other transaction ever sees them |
//! | Dead line pointers (vacuum, step 3), and the index entries that lead to them (step 2) | the version went when the page was pruned, after its `Cleanup`. A scan that holds such an entry may meet a row that was put there later, whose inserter its snapshot does not see: the snapshot is older than the replay of that insertion, and so of its commit |
//! | moves of tuples on a page | nothing goes; replay changes a page under its latch |
//! | empty pages of a tree | they stay |
//! | relations (DROP, TRUNCATE, an index built again) | the replay of the commit waits for readers under a lock of the table |
//!
//! Two functions free line pointers. The callers of `heap::compaction::compact` are pruning, which logs, and step 3 of
//! vacuum. `heap::replace::Room::take` logs by itself.
//!
//! # Room in the log
//! The record is inserted under the page's latch, after `begin_change_latched` or `begin_change`, which has made sure of half a segment for
//! the changes under way: two pages each at most, beside which these 40 bytes do not count. Insertion itself cannot fail.
//!
//! Costs: a load for each pruning; 40 bytes of log for one that removes what a newer transaction deleted than any before.
//!
//! Origin: PostgreSQL has the xid in each record of a removal (`snapshotConflictHorizon`). Our records describe bytes,
//! so it has a record of its own, which most prunings share with an earlier one.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, Machine, Native};
use clearway_txn::Xid;

use crate::page::get_u64;
use crate::wal::record::RecordKind;
use crate::wal::{LogDevice, Wal};

/// The newest deleter that a `Cleanup` record was logged for since the start.
#[derive(Debug)]
pub struct NewestCleanup<M: Machine = Native>(M::U64);

impl<M: Machine> Default for NewestCleanup<M> {
    fn default() -> Self {
        Self(M::U64::new(Xid::INVALID.0))
    }
}

impl<M: Machine> NewestCleanup<M> {
    /// Versions that transactions up to `deleter` deleted, all of which have committed below the horizon, are about to be
    /// removed: makes R1 true. There is room for the record in the log. [`Xid::INVALID`]: there are no such versions.
    #[inline]
    pub fn log_before_removal<D: LogDevice>(&self, log: &Wal<M, D>, deleter: Xid) {
        // Acquire: pairs with the Release in `log_newer`.
        if deleter.0 > self.0.load(Acquire) {
            self.log_newer(log, deleter);
        }
    }

    fn log_newer<D: LogDevice>(&self, log: &Wal<M, D>, deleter: Xid) {
        log.insert_any(RecordKind::CLEANUP, Xid::INVALID, &deleter.0.to_le_bytes());
        let mut newest = self.0.load(Relaxed);
        while newest < deleter.0 {
            // Release: pairs with the Acquire in `log_before_removal`; the record was inserted before.
            match self.0.compare_exchange_weak(newest, deleter.0, Release, Relaxed) {
                Ok(_) => return,
                Err(found) => newest = found,
            }
        }
    }
}

/// The transaction that the payload of a `Cleanup` record names; `None` if it is malformed.
pub fn decode(payload: &[u8]) -> Option<Xid> {
    let xid = (payload.len() == 8).then(|| Xid(get_u64(payload, 0)))?;
    (xid >= Xid::FIRST_NORMAL).then_some(xid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_payloads_are_none() {
        assert_eq!(decode(&100_u64.to_le_bytes()), Some(Xid(100)));
        for payload in [&[][..], &[1; 7], &[1; 9], &[0; 8], &1_u64.to_le_bytes()] {
            assert_eq!(decode(payload), None, "{payload:?}");
        }
    }
}
