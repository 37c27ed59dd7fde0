//! The end of a transaction: commit and rollback.
//!
//! Its visibility to other sessions, and the order, are decided in [`clearway_storage::commit`]. This file adds what
//! the engine has beside it: definitions to publish, files that go, row counts.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use clearway_machine::invariant;
use clearway_storage::sync_replication::ReplicationLevel;
use clearway_storage::{BeforeVisible, CommitWait, Lsn, RelId, Storage};
use clearway_txn::{Announcement, Xid};

use super::replication::{StandbyWait, wait_for_commit};
use super::{Phase, Transaction};
use crate::catalog::{Catalog, CatalogState};
use crate::convert::storage_error;
use crate::interrupt::Interrupts;
use crate::synchronous_commit::SynchronousCommit;
use clearway_sql::error::{EngineError, Result, SqlState};

/// Step 7 of a commit: a wait for standbys, and new definitions.
struct BeforeSessionsSee<'a> {
    storage: &'a Storage,
    catalog: &'a Catalog,
    interrupts: &'a Interrupts,
    xid: Xid,
    /// True if it is not seen before it is replicated, at the level that the session asks for, if it does.
    is_replicated: bool,
    /// True if it was made durable in step 4.
    is_flushed: bool,
    level: Option<ReplicationLevel>,
    overlay: Option<Arc<CatalogState>>,
    /// The position that was waited for, and how that ended.
    waited: &'a Cell<(Lsn, StandbyWait)>,
}

impl BeforeVisible for BeforeSessionsSee<'_> {
    #[inline]
    fn is_needed(&self) -> bool {
        self.is_replicated || self.overlay.is_some()
    }

    fn secure(&mut self) {
        if !self.is_replicated {
            return;
        }
        let position = self.storage.enter_unreplicated(self.xid, self.is_flushed);
        if let Some(level) = self.level {
            let replication = &self.storage.sync_replication;
            let outcome = wait_for_commit(replication, position, level, self.interrupts);
            self.waited.set((position, outcome));
        }
    }

    fn publish(&mut self) {
        if let Some(overlay) = self.overlay.take() {
            invariant!(
                E2 of engine::standby,
                !self.storage.is_standby(),
                "transaction {} of a session publishes definitions on a standby",
                self.xid
            );
            self.catalog.publish(overlay);
        }
    }
}

impl Transaction {
    /// Commits and leaves no transaction. An error means that it was rolled back, except when the log has
    /// failed: then the outcome is unknown and the engine has stopped.
    ///
    /// Then it waits for standbys, if there are synchronous ones and `setting` asks for them; what it returns says whether
    /// they have the commit. A commit that is not seen before it is durable ([`CommitWait::BeforeSeen`], and each under
    /// `after-flush`) is not seen before it is replicated either: it waits in step 7, as PostgreSQL's do, and keeps its
    /// locks meanwhile. Other commits wait after step 9.
    ///
    /// The notifications that it has `announced` are posted when it is seen.
    pub(crate) fn commit(
        &mut self,
        setting: SynchronousCommit,
        interrupts: &Interrupts,
        announced: Option<Announcement<'_>>,
    ) -> Result<StandbyWait> {
        self.take_asked_xid();
        if self.serializable.is_marking() && !self.is_closed() {
            self.check_serializable_commit()?;
        }
        let Some(xid) = self.xid else {
            self.finish_serializable();
            self.end_without_xid();
            self.slot.counts.transaction_ended(true);
            return Ok(StandbyWait::Replicated);
        };
        invariant!(
            E1 of engine::standby,
            !self.storage.is_standby(),
            "transaction {xid} commits on a standby"
        );
        if self.is_closed() {
            self.rollback();
            return Err(EngineError::new(
                SqlState::ADMIN_SHUTDOWN,
                "terminating connection due to administrator command",
            ));
        }
        let sees_own = self.overlay.is_some();
        if sees_own && let Err(error) = self.apply_on_commit() {
            self.rollback();
            return Err(error);
        }
        let wait = self.commit_wait(setting.is_synchronous());
        let overlay = if sees_own { self.state_to_publish() } else { None };
        let replication = &self.storage.sync_replication;
        let wanted = setting.replication_level();
        let level = wanted.filter(|_| replication.is_configured());
        let is_seen_last = wait == CommitWait::BeforeSeen || !self.storage.releases_early();
        let waited = Cell::new((Lsn(0), StandbyWait::Replicated));
        let before = BeforeSessionsSee {
            storage: &self.storage,
            catalog: &self.catalog,
            interrupts,
            xid,
            is_replicated: is_seen_last && replication.is_configured(),
            is_flushed: wait != CommitWait::Nothing,
            level,
            overlay,
            waited: &waited,
        };
        let committed = self.storage.commit_and_publish(self.proc, xid, wait, before);
        let end = match committed {
            Ok(end) => end,
            Err(error) => {
                self.rollback();
                return Err(storage_error(error));
            }
        };
        self.finish_serializable();
        // N2 of the notifications.
        if let Some(announced) = announced {
            announced.post(end.0);
        }
        self.forget();
        self.slot.counts.transaction_ended(true);
        if sees_own {
            self.settle_temporary(true);
        }
        self.settle_counts(true);
        self.created.clear();
        for rel in std::mem::take(&mut self.dropped) {
            self.unlink(rel);
        }
        let (position, outcome) = match wanted {
            // Also if standbys were named since it began: S7 of the synchronous replication.
            Some(level) if waited.get().0 == Lsn(0) => {
                let replication = &self.storage.sync_replication;
                (end, wait_for_commit(replication, end, level, interrupts))
            }
            _ => waited.get(),
        };
        if outcome != StandbyWait::Replicated {
            // All that it has seen lies before its own commit.
            self.seen.excuse(position);
        }
        Ok(outcome)
    }

    /// Settles what was counted of rows.
    fn settle_counts(&mut self, committed: bool) {
        let changed = self
            .counts
            .settle(committed, &self.catalog, self.overlay.as_ref());
        self.slot
            .counts
            .rows_changed(changed.inserted, changed.updated, changed.deleted);
    }

    /// The part of the commit that waits for the disk.
    fn commit_wait(&self, synchronous: bool) -> CommitWait {
        // The files go afterwards: see "Files" in the order of a commit.
        let removes_files = !self.dropped.is_empty();
        // Nothing tells a session that goes by definitions whose they are, so under `early` they are durable first (L3
        // of `lock_release`), also those of a session that does not wait for the disk.
        let defines = self.redefines && (synchronous || self.storage.releases_early());
        if removes_files || defines {
            CommitWait::BeforeSeen
        } else {
            CommitWait::synchronous(synchronous)
        }
    }

    /// Rolls back and leaves no transaction.
    pub(crate) fn rollback(&mut self) {
        self.take_asked_xid();
        self.remove_serializable();
        // Before sessions that wait for the transaction or its locks go on: they use the definitions that they find.
        if self.overlay.is_some() || self.redefines {
            self.settle_temporary(false);
        }
        match self.xid {
            None => self.end_without_xid(),
            Some(xid) => {
                self.roll_back(xid);
                self.forget();
                self.settle_counts(false);
            }
        }
        self.slot.counts.transaction_ended(false);
        for rel in std::mem::take(&mut self.created) {
            self.unlink(rel);
        }
        self.dropped.clear();
    }

    fn roll_back(&self, xid: Xid) {
        if self.is_closed() {
            // As after a crash: an xid without a commit record reads as aborted.
            self.storage.locks.end_transaction(self.proc, xid);
        } else if let Err(error) = self.storage.abort(self.proc, xid) {
            tracing::warn!(%error, xid = xid.0, "an abort could not be logged");
        }
    }

    /// The end of a transaction that has changed nothing: it gives back its snapshot and its locks.
    fn end_without_xid(&mut self) {
        if self.has_snapshot || self.holds_xmin {
            self.storage.proc_array.clear_xmin(self.proc);
        }
        if self.locked {
            self.storage.locks.release_all(self.proc);
        }
        if self.counts.are_many() {
            self.settle_counts(true);
        }
        self.forget();
    }

    /// The transaction has ended for all others.
    pub(super) fn forget(&mut self) {
        self.seen.end_transaction();
        self.has_snapshot = false;
        self.holds_xmin = false;
        self.locked = false;
        self.held.clear();
        self.checks = None;
        if self.savepoints.is_some() {
            self.savepoints = None;
            self.gone_portals.clear();
        }
        self.xid = None;
        self.phase = Phase::None;
        self.slot.set_transaction(0, 0);
    }

    /// True if the engine was shut down under the session: its log takes no more.
    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(super) fn unlink(&self, rel: RelId) {
        invariant!(
            3 of catalog,
            self.xid.is_none(),
            "relation {} is removed before transaction {:?} has ended",
            rel.0,
            self.xid
        );
        if self.is_closed() {
            return;
        }
        self.catalog.forget_sequence(rel.0);
        // What stays behind is found and removed at the next start.
        if let Err(error) = self.storage.drop_rel(rel) {
            tracing::warn!(%error, rel = rel.0, "a dropped relation's file could not be removed");
        }
    }
}
