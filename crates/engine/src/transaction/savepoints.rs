//! Savepoints: the places to which a transaction can go back.
//!
//! # Invariant
//! After ROLLBACK TO everything that ends with a transaction is what it was at the savepoint, for the transaction and for
//! all others; what does not end with one (numbers from sequences, prepared statements) goes on.
//!
//! # How
//! There are no subtransactions with ids of their own. A transaction that has a savepoint keeps a list of the rows that it
//! changes, and goes back by changing them back ([`clearway_storage::heap::TakeBack`], which says why that is right for
//! others, for a crash and for standbys). Everything else is small enough to be copied, or is a list that gets longer:
//!
//! | | at the savepoint | back |
//! | --- | --- | --- |
//! | rows, those of the definitions' heap too | the length of the list of changes | the changes behind it are taken back |
//! | definitions, temporary tables | the overlay, by reference count | it is the overlay again |
//! | files | how many were made, how many are to go | none goes that was to go; those that were made go at the end, whichever it is |
//! | locks of relations | how many there are | the others are released, those of rows with their rows |
//! | shared locks of rows | a mark (`clearway_txn::RowHolders`) | the others are released, but for relations that are held whole; in SERIALIZABLE none |
//! | constraints to be checked at the commit | how many there are (`pending_checks`) | the others are forgotten, and those that passed since are checked again |
//! | row counts | what they were, of the tables that are counted afterwards | they are that again; what was stored is dead |
//! | advisory locks of the transaction | how many there are | the others are released; those of sequences stay |
//! | notifications, channels listened on | how many there are | the others are forgotten |
//! | settings | the length of the list of what SET replaced | `Settings::go_back_to` |
//! | portals | a clock that every savepoint moves on | those made since are gone |
//!
//! # Rules
//! - V1: the order is rows, definitions, locks, waiters. Who gets a lock, or is woken, finds what was at the savepoint.
//! - V2: an error on the way leaves no half: the whole transaction is rolled back, which needs nothing of the list.
//! - V3: a file that was made behind the savepoint stays until the transaction has ended (rule 3 of [`crate::catalog`]).
//!   Nothing names it, so its rows are not taken back.
//! - V4: an error in a block with savepoints goes back to the newest one at once, as an error in any other block rolls back
//!   at once: others do not wait for the client's ROLLBACK TO.
//!
//! Going back is not interrupted by a cancel request, as a rollback is not. The server's stop interrupts it: then the whole
//! transaction is rolled back.
//!
//! # Costs
//! One test for each changed row without a savepoint. With one, 16 bytes of memory for each row that was inserted (rows side
//! by side on a page together), 32 for an updated one; beyond `work_mem` in a temporary file. Going back costs about what
//! the changes cost. PostgreSQL's is free, and its savepoints cost an xid each, which every snapshot and every reader of
//! their rows pays for.

use std::collections::HashSet;
use std::sync::Arc;

use clearway_machine::invariant;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::IsolationLevel;
use clearway_storage::RelId;
use clearway_storage::heap::{RowChanges, TakeBack};
use clearway_txn::{LockMode, LockTag, RowMark};

use super::Transaction;
use super::pending_checks::Mark;
use super::pending_notifications::PendingMark;
use super::row_counts::TableCount;
use super::temporary::SavedDefinitions;
use crate::convert::storage_error;
use crate::interrupt::Interrupts;
use crate::spill::{SpillOptions, SpilledStack};

/// The savepoints of a transaction, and what it has changed since the first.
#[derive(Debug)]
pub(super) struct Savepoints {
    /// The newest one last.
    stack: Vec<Savepoint>,
    pub(super) changes: RowChanges,
}

/// A place to which the transaction can go back.
#[derive(Debug)]
struct Savepoint {
    name: String,
    /// Lengths of lists.
    changes: u64,
    locks: usize,
    rows: RowMark,
    created: usize,
    dropped: usize,
    truncated: usize,
    session: SessionMark,
    definitions: SavedDefinitions,
    /// The tables that were counted since, as they were counted before.
    counts: Vec<TableCount>,
    checks: Mark,
    read_only: bool,
    /// Portals of this time and later are made since.
    clock: u64,
}

/// Lengths of lists that the session keeps beside its transaction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionMark {
    /// Settings that the transaction has replaced.
    pub(crate) settings: usize,
    /// Actions of its commit about notifications.
    pub(crate) notifications: PendingMark,
    /// Advisory locks of the transaction.
    pub(crate) advisory_locks: usize,
}

/// Locks of the session that the transaction's list does not have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionHolds<'a> {
    /// The advisory locks of the transaction, in their order.
    pub(crate) advisory: &'a [(LockTag, LockMode)],
    /// Those of sequences that it has counted by, which no savepoint takes back.
    pub(crate) sequences: &'a [(LockTag, LockMode)],
}

/// Portals that are gone with what was taken back: those made at these times.
#[derive(Debug, Clone, Copy)]
pub(super) struct GonePortals {
    from: u64,
    to: u64,
}

impl Savepoints {
    /// The number of files that the transaction had made when the newest savepoint was set.
    pub(super) fn created_before_newest(&self) -> usize {
        self.stack.last().map_or(0, |newest| newest.created)
    }

    /// Keeps what the counts of a table were at the newest savepoint.
    pub(super) fn keep_count(&mut self, count: TableCount) {
        if let Some(newest) = self.stack.last_mut()
            && newest.counts.iter().all(|kept| kept.oid != count.oid)
        {
            newest.counts.push(count);
        }
    }

    /// Removes those from `index` on. The counts that they keep are kept by the one before them.
    fn remove(&mut self, index: usize) {
        for savepoint in self.stack.split_off(index) {
            for count in savepoint.counts {
                self.keep_count(count);
            }
        }
    }
}

impl Transaction {
    /// True if there is a savepoint.
    #[inline]
    pub(crate) fn has_savepoints(&self) -> bool {
        self.savepoints.is_some()
    }

    /// SAVEPOINT.
    pub(crate) fn add_savepoint(&mut self, name: &str, session: SessionMark, spill: &SpillOptions) {
        self.clock += 1;
        // Its end forgets the mark.
        self.locked = true;
        let savepoints = self.savepoints.get_or_insert_with(|| {
            let overflow = Box::new(SpilledStack::new(&spill.directory));
            Box::new(Savepoints {
                stack: Vec::new(),
                changes: RowChanges::new(spill.bytes_max, overflow),
            })
        });
        let savepoint = Savepoint {
            name: name.to_owned(),
            changes: savepoints.changes.savepoint(),
            locks: self.held.len(),
            rows: self.storage.locks.rows().savepoint(self.proc),
            created: self.created.len(),
            dropped: self.dropped.len(),
            truncated: self.counts.truncation_count(),
            session,
            definitions: SavedDefinitions::of(
                self.overlay.as_ref(),
                self.redefines,
                self.temporary.as_deref(),
            ),
            counts: Vec::new(),
            checks: self
                .checks
                .as_ref()
                .map_or_else(Mark::default, |events| events.mark()),
            read_only: self.read_only,
            clock: self.clock,
        };
        savepoints.stack.push(savepoint);
    }

    /// The newest savepoint of this name; 3B001 if there is none.
    pub(crate) fn savepoint(&self, name: &str) -> Result<usize> {
        let stack = self.savepoints.iter().flat_map(|savepoints| &savepoints.stack);
        let found = stack.enumerate().filter(|(_, savepoint)| savepoint.name == name);
        found.last().map(|(index, _)| index).ok_or_else(|| {
            EngineError::new(
                SqlState::from_code("3B001"),
                format!("savepoint \"{name}\" does not exist"),
            )
        })
    }

    /// True if it is READ ONLY, and was at each savepoint that it may go back to.
    pub(super) fn stays_read_only(&self) -> bool {
        let mut stack = self.savepoints.iter().flat_map(|savepoints| &savepoints.stack);
        self.read_only && stack.all(|savepoint| savepoint.read_only)
    }

    /// The time of a savepoint: portals of this time and later are made behind it.
    pub(crate) fn savepoint_clock(&self, index: usize) -> Option<u64> {
        let savepoint = self.savepoints.as_ref()?.stack.get(index)?;
        Some(savepoint.clock)
    }

    /// The newest savepoint.
    pub(crate) fn newest_savepoint(&self) -> Option<usize> {
        self.savepoints.as_ref()?.stack.len().checked_sub(1)
    }

    /// RELEASE: forgets a savepoint and those behind it. What was done since then stays done.
    pub(crate) fn release_savepoint(&mut self, index: usize) {
        let Some(savepoints) = &mut self.savepoints else {
            return;
        };
        if let Some(savepoint) = savepoints.stack.get(index) {
            self.read_only = savepoint.read_only;
        }
        savepoints.remove(index);
        if savepoints.stack.is_empty() {
            self.savepoints = None;
        }
    }

    /// ROLLBACK TO: everything is as it was at the savepoint, which stays. What the session is to go back to itself.
    ///
    /// An error: the transaction can only be rolled back as a whole (V2).
    pub(crate) fn go_back_to(
        &mut self,
        index: usize,
        holds: SessionHolds<'_>,
        interrupts: &Interrupts,
    ) -> Result<SessionMark> {
        let Some(mut savepoints) = self.savepoints.take() else {
            return Err(EngineError::internal(
                "a transaction without savepoints goes back to one",
            ));
        };
        savepoints.remove(index + 1);
        let gone_back = match savepoints.stack.get_mut(index) {
            Some(savepoint) => self.go_back(savepoint, &savepoints.changes, holds, interrupts),
            None => Err(EngineError::internal("a savepoint was lost")),
        };
        self.savepoints = Some(savepoints);
        gone_back
    }

    fn go_back(
        &mut self,
        savepoint: &mut Savepoint,
        changes: &RowChanges,
        holds: SessionHolds<'_>,
        interrupts: &Interrupts,
    ) -> Result<SessionMark> {
        self.take_rows_back(savepoint, changes, interrupts)?;
        self.restore_definitions(&savepoint.definitions);
        // V3.
        self.dropped.truncate(savepoint.dropped);
        self.dropped.extend(&self.created[savepoint.created..]);
        self.counts
            .go_back(savepoint.counts.drain(..), savepoint.truncated);
        if let Some(checks) = &mut self.checks {
            checks.cut_back(savepoint.checks);
        }
        self.read_only = savepoint.read_only;
        self.portals_go(savepoint.clock);
        // The next statement sees what was taken back, and has a snapshot of its own.
        self.end_statement();
        self.release_locks_behind(savepoint.locks, savepoint.session.advisory_locks, holds);
        // The lock of a foreign key's check stands for a read that has no mark (`serializable`).
        if self.isolation != IsolationLevel::Serializable {
            self.storage.locks.rows().go_back(self.proc, savepoint.rows);
        }
        if let Some(xid) = self.xid {
            self.storage.locks.wake_after_take_back(self.proc, xid);
        }
        Ok(savepoint.session)
    }

    fn take_rows_back(
        &self,
        savepoint: &Savepoint,
        changes: &RowChanges,
        interrupts: &Interrupts,
    ) -> Result<()> {
        let Some(xid) = self.xid else {
            return Ok(());
        };
        let made: HashSet<RelId> = self.created[savepoint.created..].iter().copied().collect();
        let take_back = TakeBack {
            storage: &self.storage,
            xid,
            command: self.command,
        };
        let gone = |rel: RelId| made.contains(&rel);
        let done = take_back.rows(changes, savepoint.changes, &gone, &|| interrupts.server_stops());
        match done.map_err(storage_error)? {
            true => Ok(()),
            false => Err(interrupts.error()),
        }
    }

    /// Releases the locks of relations but for the first `kept`, the advisory ones but for the first `advisory`, and those of
    /// rows that an error has left.
    fn release_locks_behind(&mut self, kept: usize, advisory: usize, holds: SessionHolds<'_>) {
        invariant!(
            V1 of savepoints,
            kept <= self.held.len(),
            "{} locks are held, and {kept} were at a savepoint",
            self.held.len()
        );
        self.held.truncate(kept);
        let relations = self.held.iter();
        let relations = relations.map(|(oid, mode)| (LockTag::Relation(*oid), *mode));
        let of_session = holds.advisory[..advisory].iter().chain(holds.sequences);
        let kept: Vec<_> = relations.chain(of_session.copied()).collect();
        self.storage.locks.release_others(self.proc, &kept);
    }

    /// The time that portals are made at now.
    pub(crate) fn portal_clock(&self) -> u64 {
        self.clock
    }

    /// The portals made at this time and later are gone.
    fn portals_go(&mut self, from: u64) {
        let to = self.clock;
        self.clock += 1;
        self.newly_gone = Some(self.newly_gone.map_or(from, |earlier| earlier.min(from)));
        self.gone_portals.retain(|gone| gone.from < from);
        // Without a suspended portal there is none to be refused later.
        if Arc::strong_count(&self.portals) > 1 {
            self.gone_portals.push(GonePortals { from, to });
        }
    }

    /// True if a portal made at this time is gone, although its transaction goes on.
    pub(super) fn is_portal_gone(&self, made: u64) -> bool {
        self.gone_portals
            .iter()
            .any(|gone| (gone.from..=gone.to).contains(&made))
    }

    /// The time from which on portals are gone that were there at the last call.
    #[inline]
    pub(crate) fn take_gone_portals(&mut self) -> Option<u64> {
        self.newly_gone.take()
    }
}
