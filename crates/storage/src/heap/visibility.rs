//! Which version a reader sees, and how a version stands for someone who wants to change it.
//!
//! A snapshot knows which transactions had finished; the commit log knows how. What was found there is noted in the tuple's
//! hint bits, so that the next reader need not ask.

use clearway_txn::{Fate, Xid};

use crate::buffer::{PageExclusive, PageShared};
use crate::error::Result;
use crate::heap::layout::{
    HOT_UPDATED, INFOMASK, LOCK_ONLY, Tuple, XMAX_ABORTED, XMAX_COMMITTED, XMIN_ABORTED, XMIN_COMMITTED,
};
use crate::heap::{Tid, TxnContext};
use crate::status_pages::storage_error;
use crate::storage::Storage;

/// A latched page on which hints can be set.
pub(crate) trait Hints {
    fn set_hint(&self, offset: usize, bits: u16);
}

impl Hints for PageShared<'_> {
    fn set_hint(&self, offset: usize, bits: u16) {
        self.set_hint_u16(offset, bits);
    }
}

impl Hints for PageExclusive<'_> {
    fn set_hint(&self, offset: usize, bits: u16) {
        self.set_hint_u16(offset, bits);
    }
}

/// How `xid` stands now (R5).
pub(crate) fn fate(storage: &Storage, xid: Xid) -> Result<Fate> {
    clearway_txn::fate(&storage.proc_array, &storage.commit_log, xid).map_err(storage_error)
}

/// How `xid`, which does not run any more, ended. What a crash interrupted counts as rolled back.
pub(crate) fn ended(storage: &Storage, xid: Xid) -> Result<Fate> {
    clearway_txn::ended(&storage.commit_log, xid).map_err(storage_error)
}

/// Whether the snapshot sees the version.
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
        return Ok(!ctx.snapshot.is_running(xmin));
    }
    if ctx.xid == Some(xmin) {
        return Ok(tuple.cmin() < ctx.command);
    }
    if ctx.snapshot.is_running(xmin) {
        return Ok(false);
    }
    let committed = ended(ctx.storage, xmin)? == Fate::Committed;
    page.set_hint(
        tuple.offset + INFOMASK,
        if committed { XMIN_COMMITTED } else { XMIN_ABORTED },
    );
    Ok(committed)
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
    if ctx.snapshot.is_running(xmax) {
        return Ok(false);
    }
    if tuple.has(XMAX_COMMITTED) {
        return Ok(true);
    }
    let committed = ended(ctx.storage, xmax)? == Fate::Committed;
    page.set_hint(
        tuple.offset + INFOMASK,
        if committed { XMAX_COMMITTED } else { XMAX_ABORTED },
    );
    Ok(committed)
}

/// How a version stands for someone who wants to change or lock it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It can be had.
    Free,
    /// A transaction that runs has changed or locked it.
    Held(Xid),
    /// This command, or the transaction itself in an earlier one, has changed it; or it made it just now.
    SelfModified,
    /// Deleted, and committed; or its inserter rolled back.
    Deleted,
    /// Replaced, and committed.
    Replaced(Tid),
}

/// How `tuple` stands for the transaction of `ctx`, as of now and whatever the snapshot.
pub(crate) fn standing(ctx: &TxnContext<'_>, page: &impl Hints, tuple: &Tuple<'_>) -> Result<Standing> {
    let xmin = Xid(tuple.xmin());
    if ctx.xid == Some(xmin) {
        if tuple.cmin() >= ctx.command {
            return Ok(Standing::SelfModified);
        }
    } else if !tuple.has(XMIN_COMMITTED) {
        match fate(ctx.storage, xmin)? {
            Fate::Running => return Ok(Standing::Held(xmin)),
            Fate::Aborted => return Ok(Standing::Deleted),
            Fate::Committed => page.set_hint(tuple.offset + INFOMASK, XMIN_COMMITTED),
        }
    }
    let xmax = Xid(tuple.xmax());
    if !xmax.is_valid() || tuple.has(XMAX_ABORTED) {
        return Ok(Standing::Free);
    }
    let lock_only = tuple.has(LOCK_ONLY);
    if ctx.xid == Some(xmax) {
        return Ok(if lock_only {
            Standing::Free
        } else {
            Standing::SelfModified
        });
    }
    let fate = if tuple.has(XMAX_COMMITTED) {
        Fate::Committed
    } else {
        fate(ctx.storage, xmax)?
    };
    match fate {
        Fate::Running => Ok(Standing::Held(xmax)),
        Fate::Aborted => {
            page.set_hint(tuple.offset + INFOMASK, XMAX_ABORTED);
            Ok(Standing::Free)
        }
        Fate::Committed if lock_only => Ok(Standing::Free),
        Fate::Committed => {
            page.set_hint(tuple.offset + INFOMASK, XMAX_COMMITTED);
            Ok(tuple.next().map_or(Standing::Deleted, Standing::Replaced))
        }
    }
}

/// Whether a row with some index entry's key is alive, for unique checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    /// No version of it will ever be seen again.
    Dead,
    /// It is there.
    Alive,
    /// That depends on how this transaction ends.
    DependsOn(Xid),
}

/// How the version stands for a unique check by the transaction of `ctx`.
pub(crate) fn liveness(ctx: &TxnContext<'_>, tuple: &Tuple<'_>) -> Result<Liveness> {
    let xmin = Xid(tuple.xmin());
    if ctx.xid != Some(xmin) && !tuple.has(XMIN_COMMITTED) {
        match fate(ctx.storage, xmin)? {
            Fate::Running => return Ok(Liveness::DependsOn(xmin)),
            Fate::Aborted => return Ok(Liveness::Dead),
            Fate::Committed => {}
        }
    }
    let xmax = Xid(tuple.xmax());
    if !xmax.is_valid() || tuple.has(LOCK_ONLY | XMAX_ABORTED) {
        return Ok(Liveness::Alive);
    }
    if ctx.xid == Some(xmax) {
        return Ok(Liveness::Dead);
    }
    Ok(match fate(ctx.storage, xmax)? {
        Fate::Running => Liveness::DependsOn(xmax),
        Fate::Committed => Liveness::Dead,
        Fate::Aborted => Liveness::Alive,
    })
}

/// Whether no snapshot can see the version (R4).
pub(crate) fn removable(storage: &Storage, tuple: &Tuple<'_>, horizon: Xid) -> Result<bool> {
    let xmin = Xid(tuple.xmin());
    if tuple.has(XMIN_ABORTED) {
        return Ok(true);
    }
    if !tuple.has(XMIN_COMMITTED) {
        // Below the horizon nothing runs, so R5 is kept.
        if xmin >= horizon {
            return Ok(false);
        }
        if ended(storage, xmin)? == Fate::Aborted {
            return Ok(true);
        }
    }
    let xmax = Xid(tuple.xmax());
    if !xmax.is_valid() || tuple.has(LOCK_ONLY | XMAX_ABORTED) || xmax >= horizon {
        return Ok(false);
    }
    Ok(tuple.has(XMAX_COMMITTED) || ended(storage, xmax)? == Fate::Committed)
}

/// Whether the version is its row's newest committed one: what a new snapshot sees. Changes of transactions that still
/// run do not count yet.
pub(crate) fn is_live(storage: &Storage, tuple: &Tuple<'_>) -> Result<bool> {
    if tuple.has(XMIN_ABORTED) {
        return Ok(false);
    }
    if !tuple.has(XMIN_COMMITTED) && fate(storage, Xid(tuple.xmin()))? != Fate::Committed {
        return Ok(false);
    }
    let xmax = Xid(tuple.xmax());
    if !xmax.is_valid() || tuple.has(LOCK_ONLY | XMAX_ABORTED) {
        return Ok(true);
    }
    Ok(!tuple.has(XMAX_COMMITTED) && fate(storage, xmax)? != Fate::Committed)
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
