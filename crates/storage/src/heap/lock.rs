//! Locking rows without changing them (SELECT … FOR UPDATE).
//!
//! The locker's xid goes into `xmax` with LOCK_ONLY. Only one transaction can be there, so a shared row lock
//! is taken as an exclusive one: stronger than asked for, never weaker.

use clearway_txn::Xid;

use crate::error::Result;
use crate::heap::layout::{LOCK_ONLY, Tuple};
use crate::heap::update::mark;
use crate::heap::visibility::{WriterConflict, writer_conflict};
use crate::heap::{Heap, Tid, TxnContext};
use crate::page::PageId;

/// Result of locking a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockOutcome {
    /// Locked: no other transaction changes the row before this one ends.
    Locked,
    /// This transaction has changed the row already.
    SelfModified,
    /// Wait for the end of this transaction, and try again.
    Wait(Xid),
    /// Deleted meanwhile.
    Deleted,
    /// Replaced meanwhile.
    Changed {
        /// The version that replaced it.
        latest: Tid,
    },
}

impl Heap {
    /// Locks the version at `tid` to the end of the transaction.
    pub fn lock_row(&self, ctx: &TxnContext<'_>, tid: Tid, _exclusive: bool) -> Result<LockOutcome> {
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
        let locked_already = tuple.has(LOCK_ONLY) && ctx.xid == Some(Xid(tuple.xmax()));
        match writer_conflict(ctx, &page, &tuple)? {
            WriterConflict::None if locked_already => return Ok(LockOutcome::Locked),
            WriterConflict::None => {}
            WriterConflict::Running(xid) => return Ok(LockOutcome::Wait(xid)),
            WriterConflict::SelfModified => return Ok(LockOutcome::SelfModified),
            WriterConflict::Deleted => return Ok(LockOutcome::Deleted),
            WriterConflict::Replaced(latest) => return Ok(LockOutcome::Changed { latest }),
        }
        mark(ctx, &mut change, &mut page, tid.slot, None, LOCK_ONLY);
        change.finish()?;
        Ok(LockOutcome::Locked)
    }
}
