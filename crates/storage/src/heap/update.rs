//! New versions of rows, and deletions.

use clearway_txn::{InTheWay, RowLockMode, Xid};

use crate::buffer::PageExclusive;
use crate::change::AtomicChange;
use crate::change::byte_buffers::ByteBuffer;
use crate::error::Result;
use crate::heap::insert::{check_size, fits, place};
use crate::heap::layout::{
    CMAX, HEAP_ONLY, HOT_UPDATED, INFOMASK, KEY_KEPT, LOCK_ONLY, MAY_RETURN, NEXT, Tuple, XMAX, XMAX_BITS,
    encode_tuple, free_space,
};
use crate::heap::once_durable;
use crate::heap::prune;
use crate::heap::replace::{Room, note_ended};
use crate::heap::row_changes::{Done, RowChanges};
use crate::heap::row_lock::{key_kept, row_lock_mode};
use crate::heap::visibility::{WriterConflict, writer_conflict};
use crate::heap::{Heap, Tid, TxnContext};
use crate::page::{self, Lsn, PageId, PageKind};
use crate::storage::Storage;
use crate::storage::page_room::PageRoomVariant;

/// The columns that an update changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangedColumns {
    /// None that is in an index.
    NotIndexed,
    /// Indexed ones, and none of the row's key: of an index whose entries tell one row from another.
    Indexed,
    /// Some of the row's key, or it is not known.
    Key,
}

impl ChangedColumns {
    /// The strength in which an update locks its row.
    #[inline]
    pub fn row_lock(self) -> RowLockMode {
        match self {
            ChangedColumns::NotIndexed | ChangedColumns::Indexed => RowLockMode::NoKeyUpdate,
            ChangedColumns::Key => RowLockMode::Update,
        }
    }
}

/// `true`: no indexed column changes. `false`: a key may.
impl From<bool> for ChangedColumns {
    #[inline]
    fn from(hot_allowed: bool) -> Self {
        match hot_allowed {
            true => ChangedColumns::NotIndexed,
            false => ChangedColumns::Key,
        }
    }
}

/// Result of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpdateOutcome {
    /// Done.
    Updated {
        /// The new version's place.
        tid: Tid,
        /// True if the indexes lead to it already.
        hot: bool,
    },
    /// This transaction has changed the row already.
    SelfModified,
    /// Wait for the end of this transaction, and try again.
    Wait(InTheWay),
    /// Deleted meanwhile.
    Deleted,
    /// Replaced meanwhile; what to do about that depends on the isolation level.
    Changed {
        /// The version that replaced it.
        latest: Tid,
    },
}

/// Result of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeleteOutcome {
    /// Done.
    Deleted,
    /// This transaction has changed the row already.
    SelfModified,
    /// Wait for the end of this transaction, and try again.
    Wait(InTheWay),
    /// Deleted meanwhile.
    Gone,
    /// Replaced meanwhile.
    Changed {
        /// The version that replaced it.
        latest: Tid,
    },
}

/// The end of a version: the part of its header that says who has deleted, replaced or locked it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End {
    pub(crate) xmax: Xid,
    pub(crate) command: u32,
    /// Its successor.
    pub(crate) next: Option<Tid>,
    /// Of [`XMAX_BITS`].
    pub(crate) bits: u16,
}

impl End {
    /// It is alive, and not locked.
    pub(crate) const NONE: End = End {
        xmax: Xid::INVALID,
        command: 0,
        next: None,
        bits: 0,
    };
}

/// Gives the tuple at `slot` this end.
#[inline(always)]
pub(crate) fn write_end(change: &mut AtomicChange<'_>, page: &mut PageExclusive<'_>, slot: u16, end: End) {
    let Some(tuple) = Tuple::at(page.hinted(), slot) else {
        unreachable!("the tuple was found under this latch");
    };
    let (offset, infomask) = (tuple.offset, tuple.infomask() & !XMAX_BITS | end.bits);
    let mut header = [0; INFOMASK + 2 - XMAX];
    header[..8].copy_from_slice(&end.xmax.0.to_le_bytes());
    header[8..12].copy_from_slice(&tuple.cmin().to_le_bytes());
    header[CMAX - XMAX..CMAX - XMAX + 4].copy_from_slice(&end.command.to_le_bytes());
    let next = end.next.unwrap_or_default();
    header[NEXT - XMAX..NEXT - XMAX + 4].copy_from_slice(&next.block.to_le_bytes());
    header[NEXT - XMAX + 4..NEXT - XMAX + 6].copy_from_slice(&next.slot.to_le_bytes());
    header[INFOMASK - XMAX..].copy_from_slice(&infomask.to_le_bytes());
    change.write(page, offset + XMAX, &header);
}

/// Marks the tuple at `slot` as ended by this command; `next` is its successor.
pub(crate) fn mark(
    ctx: &TxnContext<'_>,
    change: &mut AtomicChange<'_>,
    page: &mut PageExclusive<'_>,
    slot: u16,
    next: Option<Tid>,
    xmax_bits: u16,
) {
    let Some(tuple) = Tuple::at(page.hinted(), slot) else {
        unreachable!("the tuple was found without a conflicting writer under this latch");
    };
    let mut end = own_end(ctx, next, xmax_bits);
    if tuple.infomask() & (LOCK_ONLY | KEY_KEPT) == LOCK_ONLY && Xid(tuple.xmax()) == end.xmax {
        // It has locked the row FOR UPDATE, and a transaction's locks do not become weaker.
        end.bits &= !KEY_KEPT;
    }
    if let Some(changes) = ctx.changes {
        end.bits |= note_end(changes, end, &tuple, page.page_id(), slot);
    }
    write_end(change, page, slot, end);
}

fn own_end(ctx: &TxnContext<'_>, next: Option<Tid>, bits: u16) -> End {
    End {
        xmax: ctx.writing_xid(),
        command: ctx.command,
        next,
        bits,
    }
}

/// Notes that a version gets this end of a transaction that has a savepoint; what its bits are to say beside.
#[cold]
fn note_end(changes: &RowChanges, end: End, tuple: &Tuple<'_>, page: PageId, slot: u16) -> u16 {
    let has_own_lock = tuple.has(LOCK_ONLY) && Xid(tuple.xmax()) == end.xmax;
    let done = match (has_own_lock, tuple.has(KEY_KEPT)) {
        (false, _) => Done::Ended,
        (true, true) => Done::EndedNoKeyUpdate,
        (true, false) => Done::EndedUpdate,
    };
    changes.note(page.rel.0, page.block, slot, done);
    let deletes_own = end.bits & LOCK_ONLY == 0 && end.next.is_none() && Xid(tuple.xmin()) == end.xmax;
    if deletes_own { MAY_RETURN } else { 0 }
}

/// The reason why a version is not changed.
enum Refused {
    Wait(InTheWay),
    SelfModified,
    Deleted,
    Replaced(Tid),
}

/// Room for a new version on its predecessor's page.
enum Found {
    /// At the end of the tuples.
    Free,
    /// The place of a dead version.
    Place(Room),
    /// There will be some once the log is durable up to here.
    OnceDurable(Lsn),
    None,
}

/// Looks for room on a full page for a row of `length` bytes: the place of a dead version, or what pruning
/// frees; if it `may_wait`, also room that a flush of the log brings.
#[inline]
fn make_room(
    storage: &Storage,
    page: &mut PageExclusive<'_>,
    length: usize,
    may_wait: bool,
) -> Result<Found> {
    // Pruning is a change of its own, and the page stays latched, so what conflicts with the caller does not change.
    let horizon = storage.proc_array.horizon();
    if storage.options.page_room == PageRoomVariant::Replace
        && let Some(room) = Room::find(storage, page, length, horizon)?
    {
        return Ok(Found::Place(room));
    }
    let pruned = prune::prune(storage, page, horizon)?;
    if fits(page.header(), length) {
        return Ok(Found::Free);
    }
    Ok(pruned
        .once_durable
        .awaited(storage, may_wait)
        .map_or(Found::None, Found::OnceDurable))
}

impl Heap {
    /// Replaces the version at `tid`.
    #[inline]
    pub fn update(
        &self,
        ctx: &TxnContext<'_>,
        tid: Tid,
        row: &[u8],
        changed: impl Into<ChangedColumns>,
    ) -> Result<UpdateOutcome> {
        self.replace(ctx, tid, row, changed.into())
    }

    fn replace(
        &self,
        ctx: &TxnContext<'_>,
        tid: Tid,
        row: &[u8],
        changed: ChangedColumns,
    ) -> Result<UpdateOutcome> {
        check_size(row.len())?;
        let hot_allowed = changed == ChangedColumns::NotIndexed;
        let mode = row_lock_mode(ctx, changed.row_lock());
        let key_kept = key_kept(mode);
        let rows = ctx.storage.locks.rows();
        let mut other: Option<u32> = None;
        let mut may_wait = hot_allowed;
        loop {
            ctx.prepare_notes(2)?;
            let mut change = ctx.storage.begin_change(ctx.writing_xid())?;
            let (mut page, mut new_page) = self.latched(ctx, tid.block, other)?;
            if let Some(refused) = self.refused(ctx, &page, tid, mode)? {
                return Ok(match refused {
                    Refused::Wait(other) => UpdateOutcome::Wait(other),
                    Refused::SelfModified => UpdateOutcome::SelfModified,
                    Refused::Deleted => UpdateOutcome::Deleted,
                    Refused::Replaced(latest) => UpdateOutcome::Changed { latest },
                });
            }
            let replaces = ctx.storage.options.page_room == PageRoomVariant::Replace;
            let found = match fits(page.header(), row.len()) {
                true => Found::Free,
                false => make_room(ctx.storage, &mut page, row.len(), may_wait)?,
            };
            if let Found::OnceDurable(position) = found {
                drop((new_page, page, change));
                ctx.storage.wait_for_durable(position)?;
                may_wait = false;
                continue;
            }
            let mut tuple = ByteBuffer::take();
            if let Found::Free | Found::Place(_) = found {
                let heap_only = if hot_allowed { HEAP_ONLY } else { 0 };
                encode_tuple(ctx.writing_xid().0, ctx.command, heap_only, row, &mut tuple);
                let free = free_space(page.header());
                let in_place = matches!(found, Found::Place(_));
                let slot = match found {
                    Found::Place(room) => room.take(ctx.storage, &mut change, &mut page, &tuple),
                    _ => place(&mut change, &mut page, &tuple),
                };
                let new = Tid {
                    block: tid.block,
                    slot,
                };
                if once_durable::became_scarce(free, free_space(page.header())) {
                    once_durable::ask_for_inserter(ctx.storage, &page, tid.slot);
                }
                let hot_updated = if hot_allowed { HOT_UPDATED } else { 0 };
                mark(
                    ctx,
                    &mut change,
                    &mut page,
                    tid.slot,
                    Some(new),
                    hot_updated | key_kept,
                );
                rows.follow(self.place(tid), self.place(new));
                ctx.note_inserted(page.page_id(), slot);
                if replaces && hot_allowed {
                    note_ended(&mut change, &mut page, tid.slot, in_place);
                }
                change.finish()?;
                return Ok(UpdateOutcome::Updated {
                    tid: new,
                    hot: hot_allowed,
                });
            }
            let Some(target) = &mut new_page else {
                drop(page);
                other = Some(self.other_page(ctx, tid.block, row.len())?);
                continue;
            };
            if !page::is_new(target.header()) && !fits(target.header(), row.len()) {
                let (block, free) = (target.page_id().block, free_space(target.header()));
                drop(new_page);
                drop(page);
                ctx.storage.fsm.is_full(self.rel, ctx.proc, block, free);
                other = Some(self.other_page(ctx, tid.block, row.len())?);
                continue;
            }
            if page::is_new(target.header()) {
                change.init_page(target, PageKind::HEAP, 0);
            }
            encode_tuple(ctx.writing_xid().0, ctx.command, 0, row, &mut tuple);
            let slot = place(&mut change, target, &tuple);
            let new = Tid {
                block: target.page_id().block,
                slot,
            };
            mark(ctx, &mut change, &mut page, tid.slot, Some(new), key_kept);
            rows.follow(self.place(tid), self.place(new));
            ctx.note_inserted(target.page_id(), slot);
            change.finish()?;
            return Ok(UpdateOutcome::Updated { tid: new, hot: false });
        }
    }

    /// The page of a version, and another one for the version that replaces it, latched by R6.
    #[inline]
    fn latched<'a>(
        &self,
        ctx: &TxnContext<'a>,
        block: u32,
        other: Option<u32>,
    ) -> Result<(PageExclusive<'a>, Option<PageExclusive<'a>>)> {
        let old_pin = ctx.storage.pin(PageId { rel: self.rel, block })?;
        let Some(other) = other else {
            return Ok((old_pin.into_exclusive(), None));
        };
        let new_pin = ctx.storage.pin(PageId {
            rel: self.rel,
            block: other,
        })?;
        Ok(if other < block {
            let new_page = new_pin.into_exclusive();
            (old_pin.into_exclusive(), Some(new_page))
        } else {
            let page = old_pin.into_exclusive();
            (page, Some(new_pin.into_exclusive()))
        })
    }

    /// The reason why the transaction of `ctx` cannot change the version at `tid`, which locks it in `mode`.
    #[inline(always)]
    fn refused(
        &self,
        ctx: &TxnContext<'_>,
        page: &PageExclusive<'_>,
        tid: Tid,
        mode: RowLockMode,
    ) -> Result<Option<Refused>> {
        let Some(tuple) = Tuple::at(page.hinted(), tid.slot) else {
            return Ok(Some(Refused::Deleted));
        };
        Ok(match writer_conflict(ctx, page, &tuple, mode)? {
            WriterConflict::None => {
                let rows = ctx.storage.locks.rows();
                let holder = rows.in_the_way(ctx.writing_xid(), self.place(tid), mode);
                holder.map(|holder| Refused::Wait(self.with_own_lock(ctx, page, tid, holder)))
            }
            WriterConflict::Running(xid) => Some(Refused::Wait(self.waits_for(ctx, tid, xid))),
            WriterConflict::SelfModified => Some(Refused::SelfModified),
            WriterConflict::Deleted => Some(Refused::Deleted),
            WriterConflict::Replaced(latest) | WriterConflict::KeyKept { next: latest, .. } => {
                Some(Refused::Replaced(latest))
            }
        })
    }

    /// A page other than `not` that probably has room.
    fn other_page(&self, ctx: &TxnContext<'_>, not: u32, row: usize) -> Result<u32> {
        loop {
            let block = self.target(ctx, row, None)?;
            if block != not {
                return Ok(block);
            }
            ctx.storage.fsm.is_full(self.rel, ctx.proc, block, 0);
        }
    }

    /// Deletes the version at `tid`.
    pub fn delete(&self, ctx: &TxnContext<'_>, tid: Tid) -> Result<DeleteOutcome> {
        ctx.prepare_notes(1)?;
        let mut change = ctx.storage.begin_change(ctx.writing_xid())?;
        let mut page = ctx
            .storage
            .pin(PageId {
                rel: self.rel,
                block: tid.block,
            })?
            .into_exclusive();
        if let Some(refused) = self.refused(ctx, &page, tid, RowLockMode::Update)? {
            return Ok(match refused {
                Refused::Wait(other) => DeleteOutcome::Wait(other),
                Refused::SelfModified => DeleteOutcome::SelfModified,
                Refused::Deleted => DeleteOutcome::Gone,
                Refused::Replaced(latest) => DeleteOutcome::Changed { latest },
            });
        }
        mark(ctx, &mut change, &mut page, tid.slot, None, 0);
        change.finish()?;
        Ok(DeleteOutcome::Deleted)
    }

    /// Takes back a row that this command has inserted: no transaction will ever see it. Index entries may lead to it.
    pub fn withdraw(&self, ctx: &TxnContext<'_>, tid: Tid) -> Result<()> {
        let mut change = ctx.storage.begin_change(ctx.writing_xid())?;
        let mut page = ctx
            .storage
            .pin(PageId {
                rel: self.rel,
                block: tid.block,
            })?
            .into_exclusive();
        let own = Tuple::at(page.hinted(), tid.slot).is_some_and(|tuple| ctx.xid == Some(Xid(tuple.xmin())));
        assert!(own, "a row is withdrawn by the transaction that has inserted it");
        // No note: what is on the list is that it was inserted, and to take that back is the same again.
        write_end(&mut change, &mut page, tid.slot, own_end(ctx, None, 0));
        change.finish()?;
        Ok(())
    }
}
