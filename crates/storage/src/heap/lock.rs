//! Locking rows without changing them: SELECT … FOR UPDATE and its relatives.
//!
//! FOR UPDATE and FOR NO KEY UPDATE are held by one transaction at a time. Its xid goes into `xmax` with LOCK_ONLY; KEY_KEPT
//! tells the weaker one, as it tells an UPDATE that leaves the key alone. FOR SHARE and FOR KEY SHARE leave the page as it
//! is: their holders are in memory (`clearway_txn::RowHolders`, which has the rules H1 to H6).
//!
//! FOR KEY SHARE passes a transaction that keeps the key. The version that was asked for may then have a successor, which
//! is held, too, and so on to the row's newest version (H3): a transaction that deletes the row asks for its holders. Each
//! version is held under its page's latch before the next page is latched, so an updater that comes in between finds the
//! hold and takes it along.

use clearway_txn::{InTheWay, RowLockMode, TransactionState};

use crate::error::Result;
use crate::heap::layout::{LOCK_ONLY, Tuple};
use crate::heap::row_lock::{key_kept, own_lock, row_lock_mode};
use crate::heap::update::mark;
use crate::heap::visibility::{WriterConflict, ender_conflict, met_inserter, writer_conflict};
use crate::heap::{Heap, Tid, TxnContext};
use crate::page::PageId;

/// Result of locking a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockOutcome {
    /// Locked: until this transaction ends, no other one takes a lock on the row that conflicts.
    Locked,
    /// This transaction has changed the row already.
    SelfModified,
    /// Wait for the end of this transaction, and try again.
    Wait(InTheWay),
    /// Others wait for the row, and have been passed often enough: queue, and try again as the first in the queue.
    Queue,
    /// Deleted meanwhile.
    Deleted,
    /// Replaced meanwhile.
    Changed {
        /// The version that replaced it.
        latest: Tid,
    },
}

impl Heap {
    /// Locks the version at `tid` in `mode` to the end of the transaction. `at_front`: it is the first of those that queue
    /// for the row, or does not mean to wait.
    pub fn lock_row(
        &self,
        ctx: &TxnContext<'_>,
        tid: Tid,
        mode: RowLockMode,
        at_front: bool,
    ) -> Result<LockOutcome> {
        let mode = row_lock_mode(ctx, mode);
        if mode.is_shared() {
            self.share_row(ctx, tid, mode, at_front)
        } else {
            self.lock_row_alone(ctx, tid, mode)
        }
    }

    /// FOR UPDATE and FOR NO KEY UPDATE.
    fn lock_row_alone(&self, ctx: &TxnContext<'_>, tid: Tid, mode: RowLockMode) -> Result<LockOutcome> {
        ctx.prepare_notes(1)?;
        let mut change = ctx.storage.begin_change(ctx.writing_xid())?;
        let mut page = ctx
            .storage
            .pin(PageId {
                rel: self.rel,
                block: tid.block,
            })?
            .into_exclusive();
        let Some(tuple) = Tuple::at(page.hinted(), tid.slot) else {
            return Ok(LockOutcome::Deleted);
        };
        match writer_conflict(ctx, &page, &tuple, mode)? {
            WriterConflict::None if own_lock(ctx, &tuple) >= Some(mode) => return Ok(LockOutcome::Locked),
            WriterConflict::None => {}
            WriterConflict::Running(xid) => return Ok(LockOutcome::Wait(self.waits_for(ctx, tid, xid))),
            WriterConflict::SelfModified => return Ok(LockOutcome::SelfModified),
            WriterConflict::Deleted => return Ok(LockOutcome::Deleted),
            WriterConflict::Replaced(latest) | WriterConflict::KeyKept { next: latest, .. } => {
                return Ok(LockOutcome::Changed { latest });
            }
        }
        let rows = ctx.storage.locks.rows();
        if let Some(holder) = rows.in_the_way(ctx.writing_xid(), self.place(tid), mode) {
            return Ok(LockOutcome::Wait(self.with_own_lock(ctx, &page, tid, holder)));
        }
        mark(
            ctx,
            &mut change,
            &mut page,
            tid.slot,
            None,
            LOCK_ONLY | key_kept(mode),
        );
        change.finish()?;
        Ok(LockOutcome::Locked)
    }

    /// FOR SHARE and FOR KEY SHARE.
    fn share_row(
        &self,
        ctx: &TxnContext<'_>,
        tid: Tid,
        mode: RowLockMode,
        at_front: bool,
    ) -> Result<LockOutcome> {
        let (own, rows) = (ctx.writing_xid(), ctx.storage.locks.rows());
        let mut at = tid;
        let mut replaced_by: Option<u64> = None;
        loop {
            let page = self.shared_page(ctx, at.block)?;
            let tuple = Tuple::at(page.hinted(), at.slot);
            let (tuple, conflict) = match (tuple, replaced_by) {
                (None, None) => return Ok(LockOutcome::Deleted),
                (Some(tuple), None) => (tuple, writer_conflict(ctx, &page, &tuple, mode)?),
                // The successor of a version that is held. It counts unless its inserter has rolled back (R2).
                (Some(tuple), Some(xid)) if tuple.xmin() == xid => {
                    if met_inserter(ctx, &tuple)? == TransactionState::Aborted {
                        return Ok(LockOutcome::Locked);
                    }
                    (tuple, ender_conflict(ctx, &page, &tuple, mode)?)
                }
                (_, Some(_)) => return Ok(LockOutcome::Locked),
            };
            let next = match conflict {
                WriterConflict::None if own_lock(ctx, &tuple).is_some() => return Ok(LockOutcome::Locked),
                WriterConflict::None => None,
                WriterConflict::KeyKept { next, .. } => Some(next),
                WriterConflict::Running(xid) => return Ok(LockOutcome::Wait(self.waits_for(ctx, at, xid))),
                WriterConflict::SelfModified => return Ok(LockOutcome::SelfModified),
                WriterConflict::Deleted => return Ok(LockOutcome::Deleted),
                WriterConflict::Replaced(latest) => return Ok(LockOutcome::Changed { latest }),
            };
            if !rows.hold(ctx.proc, own, self.place(at), mode, at_front) {
                return Ok(LockOutcome::Queue);
            }
            let Some(next) = next else {
                return Ok(LockOutcome::Locked);
            };
            replaced_by = Some(tuple.xmax());
            at = next;
        }
    }
}
