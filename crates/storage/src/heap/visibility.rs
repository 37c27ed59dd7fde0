//! The version that a reader sees, and the state of a version for a transaction that wants to change it.
//!
//! The snapshot tells which transactions had finished, and the commit log tells how they ended. A reader
//! notes the commit log's answer in the tuple's hint bits, so that the next reader need not ask.

use clearway_txn::{RowLockMode, TransactionState, Xid};

use crate::buffer::{PageExclusive, PageShared};
use crate::error::Result;
use crate::files::status_pages::storage_error;
use crate::heap::layout::{
    HOT_UPDATED, KEY_KEPT, LOCK_ONLY, MAY_RETURN, Tuple, XMAX_ABORTED, XMAX_COMMITTED, XMIN_ABORTED,
    XMIN_COMMITTED, stands_alone,
};
use crate::heap::{Tid, TxnContext};
use crate::page::Lsn;
use crate::storage::Storage;

/// A latched page on which hints can be set.
pub(crate) trait Hints {
    /// Sets hints of a tuple of the page.
    fn set_hint(&self, tuple: &Tuple<'_>, bits: u16);
}

impl Hints for PageShared<'_> {
    fn set_hint(&self, tuple: &Tuple<'_>, bits: u16) {
        debug_assert!(stands_alone(self.hinted(), tuple.offset), "H3");
        self.set_hints(tuple.header, bits);
    }
}

impl Hints for PageExclusive<'_> {
    fn set_hint(&self, tuple: &Tuple<'_>, bits: u16) {
        debug_assert!(stands_alone(self.hinted(), tuple.offset), "H3");
        self.set_hints(tuple.header, bits);
    }
}

/// The state of `xid` now (R5), for work whose outcome no client is told of.
fn state_now(storage: &Storage, xid: Xid) -> Result<TransactionState> {
    storage.commit_states().of_no_answer(xid).map_err(storage_error)
}

/// The final state of `xid`, which does not run any more, for such work. A transaction that a crash interrupted counts as
/// rolled back.
fn final_state(storage: &Storage, xid: Xid) -> Result<TransactionState> {
    storage
        .commit_states()
        .final_of_no_answer(xid)
        .map_err(storage_error)
}

/// True if the snapshot sees the version.
#[inline]
pub(crate) fn visible(ctx: &TxnContext<'_>, page: &impl Hints, tuple: &Tuple<'_>) -> Result<bool> {
    Ok(inserted(ctx, page, tuple)? && !deleted(ctx, page, tuple)?)
}

#[inline]
fn inserted(ctx: &TxnContext<'_>, page: &impl Hints, tuple: &Tuple<'_>) -> Result<bool> {
    let xmin = Xid(tuple.xmin());
    if tuple.has(XMIN_ABORTED) {
        return Ok(false);
    }
    if tuple.has(XMIN_COMMITTED) {
        return committed_at_snapshot(ctx, xmin);
    }
    if ctx.xid == Some(xmin) {
        return Ok(tuple.cmin() < ctx.command);
    }
    let hint = match snapshot_state(ctx, xmin)? {
        TransactionState::Running => return Ok(false),
        TransactionState::Committed => XMIN_COMMITTED,
        TransactionState::Aborted => XMIN_ABORTED,
    };
    page.set_hint(tuple, hint);
    Ok(hint == XMIN_COMMITTED)
}

#[inline]
fn deleted(ctx: &TxnContext<'_>, page: &impl Hints, tuple: &Tuple<'_>) -> Result<bool> {
    let xmax = Xid(tuple.xmax());
    if !xmax.is_valid() || tuple.has(LOCK_ONLY | XMAX_ABORTED) {
        return Ok(false);
    }
    if ctx.xid == Some(xmax) {
        return Ok(tuple.cmax() < ctx.command);
    }
    if tuple.has(XMAX_COMMITTED) {
        return committed_at_snapshot(ctx, xmax);
    }
    let hint = match snapshot_state(ctx, xmax)? {
        TransactionState::Running => return Ok(false),
        TransactionState::Committed => XMAX_COMMITTED,
        TransactionState::Aborted => XMAX_ABORTED,
    };
    page.set_hint(tuple, hint);
    Ok(hint == XMAX_COMMITTED)
}

/// The state of `xid` when the snapshot was taken.
#[inline]
fn snapshot_state(ctx: &TxnContext<'_>, xid: Xid) -> Result<TransactionState> {
    ctx.storage
        .commit_states()
        .at_snapshot(&ctx.reader, xid)
        .map_err(storage_error)
}

/// True if `xid`, which has committed by now, had committed when the snapshot was taken.
#[inline]
fn committed_at_snapshot(ctx: &TxnContext<'_>, xid: Xid) -> Result<bool> {
    ctx.storage
        .commit_states()
        .committed_at_snapshot(&ctx.reader, xid)
        .map_err(storage_error)
}

/// The state of `xid` now (R5), which the reader goes by.
fn met_state(ctx: &TxnContext<'_>, xid: Xid) -> Result<TransactionState> {
    ctx.storage
        .commit_states()
        .now(&ctx.reader, xid)
        .map_err(storage_error)
}

/// A conflict of a transaction that wants to change or lock a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriterConflict {
    /// No conflicting writer.
    None,
    /// A running transaction has changed or locked the version.
    Running(Xid),
    /// This transaction has changed it, in this command or an earlier one; or this command has made it.
    SelfModified,
    /// Deleted, and committed; or its inserter rolled back.
    Deleted,
    /// Replaced, and committed.
    Replaced(Tid),
    /// FOR KEY SHARE only: replaced by a version with the same key, by a transaction that runs or has committed. That is no
    /// conflict.
    KeyKept {
        /// The version that replaces it.
        next: Tid,
        is_committed: bool,
    },
}

/// The conflict of the transaction of `ctx` in changing `tuple`, or in locking it in `mode`, as of now and whatever the
/// snapshot. Transactions that share the row are left out (`clearway_txn::RowHolders`).
pub(crate) fn writer_conflict(
    ctx: &TxnContext<'_>,
    page: &impl Hints,
    tuple: &Tuple<'_>,
    mode: RowLockMode,
) -> Result<WriterConflict> {
    let xmin = Xid(tuple.xmin());
    if ctx.xid == Some(xmin) {
        if tuple.cmin() >= ctx.command {
            return Ok(WriterConflict::SelfModified);
        }
    } else {
        match met_inserter(ctx, tuple)? {
            TransactionState::Running => return Ok(WriterConflict::Running(xmin)),
            TransactionState::Aborted => return Ok(WriterConflict::Deleted),
            TransactionState::Committed if tuple.has(XMIN_COMMITTED) => {}
            TransactionState::Committed => page.set_hint(tuple, XMIN_COMMITTED),
        }
    }
    ender_conflict(ctx, page, tuple, mode)
}

/// The part of it that `xmax` makes.
#[inline]
pub(crate) fn ender_conflict(
    ctx: &TxnContext<'_>,
    page: &impl Hints,
    tuple: &Tuple<'_>,
    mode: RowLockMode,
) -> Result<WriterConflict> {
    let xmax = Xid(tuple.xmax());
    if !xmax.is_valid() || tuple.has(XMAX_ABORTED) {
        return Ok(WriterConflict::None);
    }
    let lock_only = tuple.has(LOCK_ONLY);
    let passes = mode == RowLockMode::KeyShare && tuple.has(KEY_KEPT);
    if ctx.xid == Some(xmax) {
        if lock_only {
            return Ok(WriterConflict::None);
        }
        return Ok(WriterConflict::SelfModified);
    }
    if passes && lock_only {
        return Ok(WriterConflict::None);
    }
    let states = ctx.storage.commit_states();
    let state = if tuple.has(XMAX_COMMITTED) {
        states.committed_now(&ctx.reader, xmax);
        Ok(TransactionState::Committed)
    } else if lock_only {
        states.of_locker(xmax)
    } else {
        states.now(&ctx.reader, xmax)
    };
    match state.map_err(storage_error)? {
        TransactionState::Aborted => {
            page.set_hint(tuple, XMAX_ABORTED);
            Ok(WriterConflict::None)
        }
        state if passes => Ok(tuple.next().map_or(WriterConflict::Deleted, |next| {
            let is_committed = state == TransactionState::Committed;
            WriterConflict::KeyKept { next, is_committed }
        })),
        TransactionState::Running => Ok(WriterConflict::Running(xmax)),
        TransactionState::Committed if lock_only => Ok(WriterConflict::None),
        TransactionState::Committed => {
            page.set_hint(tuple, XMAX_COMMITTED);
            Ok(tuple
                .next()
                .map_or(WriterConflict::Deleted, WriterConflict::Replaced))
        }
    }
}

/// The state now of the version's inserter, another transaction.
pub(crate) fn met_inserter(ctx: &TxnContext<'_>, tuple: &Tuple<'_>) -> Result<TransactionState> {
    let xmin = Xid(tuple.xmin());
    if tuple.has(XMIN_COMMITTED) {
        ctx.storage.commit_states().committed_now(&ctx.reader, xmin);
        return Ok(TransactionState::Committed);
    }
    met_state(ctx, xmin)
}

/// True if a row with some index entry's key is alive, for unique checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    /// No version of it will ever be seen again.
    Dead,
    /// A version of it is alive.
    Alive,
    /// That depends on how this transaction ends.
    DependsOn(Xid),
}

/// The state of the version for a unique check by the transaction of `ctx`.
pub(crate) fn liveness(ctx: &TxnContext<'_>, tuple: &Tuple<'_>) -> Result<Liveness> {
    let xmin = Xid(tuple.xmin());
    let deletes_own = xmin.is_valid() && tuple.xmax() == xmin.0 && !tuple.has(LOCK_ONLY);
    if deletes_own && tuple.next().is_none() && !tuple.has(MAY_RETURN) {
        // Whatever becomes of its inserter, which has deleted or withdrawn it. If it has replaced it, the key is taken until
        // its end: the successor's entry may not be there yet.
        return Ok(Liveness::Dead);
    }
    if ctx.xid != Some(xmin) {
        match met_inserter(ctx, tuple)? {
            TransactionState::Running => return Ok(Liveness::DependsOn(xmin)),
            TransactionState::Aborted => return Ok(Liveness::Dead),
            TransactionState::Committed => {}
        }
    }
    let xmax = Xid(tuple.xmax());
    if !xmax.is_valid() || tuple.has(LOCK_ONLY | XMAX_ABORTED) {
        return Ok(Liveness::Alive);
    }
    if ctx.xid == Some(xmax) {
        return Ok(Liveness::Dead);
    }
    Ok(match met_state(ctx, xmax)? {
        TransactionState::Running => Liveness::DependsOn(xmax),
        TransactionState::Committed => Liveness::Dead,
        TransactionState::Aborted => Liveness::Alive,
    })
}

/// True if the version's inserter is known to have rolled back.
pub(crate) fn rolled_back(
    storage: &Storage,
    page: &impl Hints,
    tuple: &Tuple<'_>,
    horizon: Xid,
) -> Result<bool> {
    if tuple.has(XMIN_ABORTED | XMIN_COMMITTED) {
        return Ok(tuple.has(XMIN_ABORTED));
    }
    // Below the horizon nothing runs, so R5 is kept.
    let xmin = Xid(tuple.xmin());
    if xmin >= horizon {
        return Ok(false);
    }
    let is_aborted = final_state(storage, xmin)? == TransactionState::Aborted;
    let hint = if is_aborted { XMIN_ABORTED } else { XMIN_COMMITTED };
    page.set_hint(tuple, hint);
    Ok(is_aborted)
}

/// True if a version stays and has no successor, by its header alone. It is so of most versions: the newest of
/// their rows, with a hint that the inserter committed. `false` is no answer.
#[inline]
pub(crate) fn is_settled(infomask: u16, xmax: Xid) -> bool {
    infomask & (XMIN_COMMITTED | XMIN_ABORTED | HOT_UPDATED) == XMIN_COMMITTED
        && (infomask & (LOCK_ONLY | XMAX_ABORTED) != 0 || !xmax.is_valid())
}

/// The answer to the question if a version may be removed, and the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Removable {
    /// A snapshot of this database may see it.
    No,
    /// No snapshot can, but a reader is to find it until the log is durable up to here, where its deleter has committed
    /// (L5 of `commit::lock_release`).
    OnceDurable(Lsn),
    /// Its inserter rolled back, or has deleted it itself: no other transaction ever sees it.
    NeverSeen,
    /// This transaction deleted it and committed, below the horizon. A standby's snapshots may still see it.
    DeletedBy(Xid),
}

/// Tells if the version may be removed: if no snapshot can see it (R4), and no answer needs it.
pub(crate) fn removable(
    storage: &Storage,
    page: &impl Hints,
    tuple: &Tuple<'_>,
    horizon: Xid,
) -> Result<Removable> {
    if rolled_back(storage, page, tuple, horizon)? {
        return Ok(Removable::NeverSeen);
    }
    if !tuple.has(XMIN_COMMITTED) && Xid(tuple.xmin()) >= horizon {
        return Ok(Removable::No);
    }
    let xmax = Xid(tuple.xmax());
    if !xmax.is_valid() || tuple.has(LOCK_ONLY | XMAX_ABORTED) || xmax >= horizon {
        return Ok(Removable::No);
    }
    if !tuple.has(XMAX_COMMITTED) && final_state(storage, xmax)? != TransactionState::Committed {
        return Ok(Removable::No);
    }
    // A deleter below the horizon has left the array, so it is found if it is not durable.
    if let Some(position) = storage.position_if_early(xmax) {
        return Ok(Removable::OnceDurable(position));
    }
    Ok(if xmax == Xid(tuple.xmin()) {
        Removable::NeverSeen
    } else {
        Removable::DeletedBy(xmax)
    })
}

/// True if the version is its row's newest committed one: what a new snapshot sees. Changes of transactions that still
/// run do not count yet.
pub(crate) fn is_live(storage: &Storage, tuple: &Tuple<'_>) -> Result<bool> {
    if tuple.has(XMIN_ABORTED) {
        return Ok(false);
    }
    if !tuple.has(XMIN_COMMITTED) && state_now(storage, Xid(tuple.xmin()))? != TransactionState::Committed {
        return Ok(false);
    }
    let xmax = Xid(tuple.xmax());
    if !xmax.is_valid() || tuple.has(LOCK_ONLY | XMAX_ABORTED) {
        return Ok(true);
    }
    Ok(!tuple.has(XMAX_COMMITTED) && state_now(storage, xmax)? != TransactionState::Committed)
}

/// The slot of the next version in a HOT chain.
#[inline]
pub(crate) fn next_in_chain(tuple: &Tuple<'_>) -> Option<u16> {
    if tuple.has(HOT_UPDATED) {
        tuple.next().map(|tid| tid.slot)
    } else {
        None
    }
}
