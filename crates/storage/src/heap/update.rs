//! New versions of rows, and deletions.

use clearway_txn::Xid;

use crate::buffer::PageExclusive;
use crate::change::AtomicChange;
use crate::change::byte_buffers::ByteBuffer;
use crate::error::Result;
use crate::heap::insert::{check_size, fits, place};
use crate::heap::layout::{
    CMAX, HEAP_ONLY, HOT_UPDATED, INFOMASK, NEXT, Tuple, XMAX, XMAX_BITS, encode_tuple, free_space,
};
use crate::heap::prune;
use crate::heap::replace::{Room, note_ended};
use crate::heap::visibility::{WriterConflict, writer_conflict};
use crate::heap::{Heap, Tid, TxnContext};
use crate::page::{self, PageId, PageKind};
use crate::storage::page_room::PageRoomVariant;

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
    Wait(Xid),
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
    Wait(Xid),
    /// Deleted meanwhile.
    Gone,
    /// Replaced meanwhile.
    Changed {
        /// The version that replaced it.
        latest: Tid,
    },
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
    let (offset, infomask) = (tuple.offset, tuple.infomask() & !XMAX_BITS | xmax_bits);
    let xid = ctx.writing_xid();
    let mut header = [0; INFOMASK + 2 - XMAX];
    header[..8].copy_from_slice(&xid.0.to_le_bytes());
    header[8..12].copy_from_slice(&tuple.cmin().to_le_bytes());
    header[CMAX - XMAX..CMAX - XMAX + 4].copy_from_slice(&ctx.command.to_le_bytes());
    let next = next.unwrap_or_default();
    header[NEXT - XMAX..NEXT - XMAX + 4].copy_from_slice(&next.block.to_le_bytes());
    header[NEXT - XMAX + 4..NEXT - XMAX + 6].copy_from_slice(&next.slot.to_le_bytes());
    header[INFOMASK - XMAX..].copy_from_slice(&infomask.to_le_bytes());
    change.write(page, offset + XMAX, &header);
}

fn writer_conflict_at(ctx: &TxnContext<'_>, page: &PageExclusive<'_>, slot: u16) -> Result<WriterConflict> {
    match Tuple::at(page.hinted(), slot) {
        Some(tuple) => writer_conflict(ctx, page, &tuple),
        None => Ok(WriterConflict::Deleted),
    }
}

impl Heap {
    /// Replaces the version at `tid`. `hot_allowed`: no indexed column changes.
    pub fn update(
        &self,
        ctx: &TxnContext<'_>,
        tid: Tid,
        row: &[u8],
        hot_allowed: bool,
    ) -> Result<UpdateOutcome> {
        check_size(row.len())?;
        let mut other: Option<u32> = None;
        loop {
            let mut change = ctx.storage.begin_change(ctx.writing_xid())?;
            let old_pin = ctx.storage.pin(PageId {
                rel: self.rel,
                block: tid.block,
            })?;
            // R6.
            let (mut page, mut new_page) = match other {
                None => (old_pin.into_exclusive(), None),
                Some(block) => {
                    let new_pin = ctx.storage.pin(PageId { rel: self.rel, block })?;
                    if block < tid.block {
                        let new_page = new_pin.into_exclusive();
                        (old_pin.into_exclusive(), Some(new_page))
                    } else {
                        let page = old_pin.into_exclusive();
                        (page, Some(new_pin.into_exclusive()))
                    }
                }
            };
            match writer_conflict_at(ctx, &page, tid.slot)? {
                WriterConflict::None => {}
                WriterConflict::Running(xid) => return Ok(UpdateOutcome::Wait(xid)),
                WriterConflict::SelfModified => return Ok(UpdateOutcome::SelfModified),
                WriterConflict::Deleted => return Ok(UpdateOutcome::Deleted),
                WriterConflict::Replaced(latest) => return Ok(UpdateOutcome::Changed { latest }),
            }
            let replaces = ctx.storage.options.page_room == PageRoomVariant::Replace;
            let mut room = None;
            if !fits(page.header(), row.len()) {
                // Pruning is a change of its own, and the page stays latched, so what conflicts with the caller does
                // not change.
                let horizon = ctx.storage.proc_array.horizon();
                if replaces {
                    room = Room::find(ctx.storage, &page, row.len(), horizon)?;
                }
                if room.is_none() {
                    prune::prune(ctx.storage, &mut page, horizon)?;
                }
            }
            let mut tuple = ByteBuffer::take();
            if room.is_some() || fits(page.header(), row.len()) {
                let heap_only = if hot_allowed { HEAP_ONLY } else { 0 };
                encode_tuple(ctx.writing_xid().0, ctx.command, heap_only, row, &mut tuple);
                let slot = match room {
                    Some(room) => room.take(ctx.storage, &mut change, &mut page, &tuple),
                    None => place(&mut change, &mut page, &tuple),
                };
                let new = Tid {
                    block: tid.block,
                    slot,
                };
                let hot_updated = if hot_allowed { HOT_UPDATED } else { 0 };
                mark(ctx, &mut change, &mut page, tid.slot, Some(new), hot_updated);
                if replaces && hot_allowed {
                    note_ended(&mut change, &mut page, tid.slot, room.is_some());
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
            mark(ctx, &mut change, &mut page, tid.slot, Some(new), 0);
            change.finish()?;
            return Ok(UpdateOutcome::Updated { tid: new, hot: false });
        }
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
        let mut change = ctx.storage.begin_change(ctx.writing_xid())?;
        let mut page = ctx
            .storage
            .pin(PageId {
                rel: self.rel,
                block: tid.block,
            })?
            .into_exclusive();
        match writer_conflict_at(ctx, &page, tid.slot)? {
            WriterConflict::None => {}
            WriterConflict::Running(xid) => return Ok(DeleteOutcome::Wait(xid)),
            WriterConflict::SelfModified => return Ok(DeleteOutcome::SelfModified),
            WriterConflict::Deleted => return Ok(DeleteOutcome::Gone),
            WriterConflict::Replaced(latest) => return Ok(DeleteOutcome::Changed { latest }),
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
        mark(ctx, &mut change, &mut page, tid.slot, None, 0);
        change.finish()?;
        Ok(())
    }
}
