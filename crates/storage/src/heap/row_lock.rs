//! The strength of a row lock as a version's header has it, and the waits for those in the way.

use clearway_txn::{InTheWay, RowLockMode, RowPlace, Xid};

use crate::buffer::PageExclusive;
use crate::heap::layout::{KEY_KEPT, LOCK_ONLY, Tuple};
use crate::heap::{Heap, Tid, TxnContext};

/// The strength that a row is locked in where `mode` is asked for: the strongest under `row_locks = exclusive`.
#[inline]
pub(super) fn row_lock_mode(ctx: &TxnContext<'_>, mode: RowLockMode) -> RowLockMode {
    match ctx.storage.locks.rows().are_shared() {
        true => mode,
        false => RowLockMode::Update,
    }
}

/// The bit that goes with `xmax` in this strength.
#[inline]
pub(super) fn key_kept(mode: RowLockMode) -> u16 {
    match mode {
        RowLockMode::Update => 0,
        _ => KEY_KEPT,
    }
}

/// The strength in which the transaction of `ctx` has locked a version on its page.
pub(super) fn own_lock(ctx: &TxnContext<'_>, tuple: &Tuple<'_>) -> Option<RowLockMode> {
    if !tuple.has(LOCK_ONLY) || ctx.xid != Some(Xid(tuple.xmax())) {
        return None;
    }
    Some(match tuple.has(KEY_KEPT) {
        true => RowLockMode::NoKeyUpdate,
        false => RowLockMode::Update,
    })
}

impl Heap {
    #[inline]
    pub(super) fn place(&self, tid: Tid) -> RowPlace {
        RowPlace {
            rel: self.rel.0,
            block: tid.block,
            slot: tid.slot,
        }
    }

    /// The wait for a transaction that has the version at `tid` on its page.
    #[cold]
    pub(super) fn waits_for(&self, ctx: &TxnContext<'_>, tid: Tid, xid: Xid) -> InTheWay {
        let own = ctx.xid.filter(|_| ctx.storage.locks.rows().are_shared());
        InTheWay {
            xid,
            is_holder: own.is_some_and(|own| ctx.storage.locks.rows().holds(own, self.place(tid))),
        }
    }

    /// The wait for a holder of the version at `tid`: this transaction may have locked it on its page.
    #[cold]
    pub(super) fn with_own_lock(
        &self,
        ctx: &TxnContext<'_>,
        page: &PageExclusive<'_>,
        tid: Tid,
        holder: InTheWay,
    ) -> InTheWay {
        let has_own = Tuple::at(page.hinted(), tid.slot).and_then(|tuple| own_lock(ctx, &tuple));
        InTheWay {
            is_holder: holder.is_holder || has_own.is_some(),
            ..holder
        }
    }
}
