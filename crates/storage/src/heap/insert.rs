//! New rows.

use clearway_machine::Native;

use crate::buffer::{FrameRing, PageExclusive};
use crate::change::byte_buffers::ByteBuffer;
use crate::change::{AtomicChange, ChangeLog};
use crate::error::{Result, StorageError};
use crate::heap::layout::{
    HAS_UNUSED, LINE_POINTER, Line, TUPLE_HEADER, bounds, encode_tuple, free_space, line_offset, lines,
    slot_count, tuple_size,
};
use crate::heap::page_run::place_run;
use crate::heap::{Heap, ROW_MAX, Tid, TxnContext};
use crate::page::{self, LOWER, PAGE_HEADER, PAGE_SIZE, PageId, PageKind};

/// The most rows that a page takes.
const ROWS_ON_PAGE: usize = (PAGE_SIZE - PAGE_HEADER) / (LINE_POINTER + TUPLE_HEADER);

/// Fails if a row cannot be stored at all.
pub(crate) fn check_size(row: usize) -> Result<()> {
    if row > ROW_MAX {
        return Err(StorageError::TooLarge {
            what: "row",
            size: row,
            max: ROW_MAX,
        });
    }
    Ok(())
}

/// True if a row fits on the page with this header, with a line pointer of its own.
pub(crate) fn fits(header: &[u8], row: usize) -> bool {
    free_space(header) >= tuple_size(row) + LINE_POINTER
}

/// The first line pointer that is Unused.
pub(crate) fn free_line_pointer(front: &[u8]) -> Option<u16> {
    if page::flags(front) & HAS_UNUSED == 0 {
        return None;
    }
    lines(front)
        .find(|(_, line)| *line == Line::Unused)
        .map(|(slot, _)| slot)
}

/// Puts an encoded tuple on a page it fits on; returns its slot.
pub(crate) fn place<L: ChangeLog>(
    change: &mut AtomicChange<'_, Native, L>,
    page: &mut PageExclusive<'_>,
    tuple: &[u8],
) -> u16 {
    let size = tuple.len().next_multiple_of(8);
    let front = page.hinted().front();
    let (count, lower) = (slot_count(front), page::lower(front));
    let (slot, lower) = match free_line_pointer(front) {
        Some(slot) => (slot, lower),
        None => (count + 1, lower + LINE_POINTER),
    };
    let upper = page::upper(front) - size;
    debug_assert!(lower <= upper, "a tuple is placed where it does not fit");
    change.write(page, upper, tuple);
    change.write(
        page,
        line_offset(slot),
        &Line::Normal {
            offset: upper,
            length: tuple.len(),
        }
        .encode(),
    );
    change.write(page, LOWER, &bounds(lower, upper));
    slot
}

impl Heap {
    /// Stores a row; no index leads to it yet.
    pub fn insert(&self, ctx: &TxnContext<'_>, row: &[u8]) -> Result<Tid> {
        let mut placed = Tid::default();
        self.insert_all(ctx, &[row], None, |tid| placed = tid)?;
        Ok(placed)
    }

    /// Stores rows, a page and a log record at a time, in frames of the ring.
    pub fn insert_many(
        &self,
        ctx: &TxnContext<'_>,
        rows: &[&[u8]],
        ring: &mut FrameRing,
    ) -> Result<Vec<Tid>> {
        let mut tids = Vec::with_capacity(rows.len());
        self.insert_all(ctx, rows, Some(ring), |tid| tids.push(tid))?;
        Ok(tids)
    }

    /// `placed` gets the place of each row, in their order.
    fn insert_all(
        &self,
        ctx: &TxnContext<'_>,
        mut rows: &[&[u8]],
        mut ring: Option<&mut FrameRing>,
        mut placed: impl FnMut(Tid),
    ) -> Result<()> {
        let xid = ctx.writing_xid();
        let mut tuple = ByteBuffer::take();
        while let Some(next) = rows.first() {
            check_size(next.len())?;
            ctx.prepare_notes(ROWS_ON_PAGE)?;
            let block = self.target(ctx, next.len(), ring.as_deref_mut())?;
            let mut change = ctx.storage.begin_change(xid)?;
            let page_id = PageId { rel: self.rel, block };
            let mut page = ctx.storage.pin_in(page_id, ring.as_deref_mut())?.into_exclusive();
            if page::is_new(page.header()) {
                change.init_page(&mut page, PageKind::HEAP, 0);
            }
            let count = match rows {
                [row] if fits(page.header(), row.len()) => {
                    encode_tuple(xid.0, ctx.command, 0, row, &mut tuple);
                    let slot = place(&mut change, &mut page, &tuple);
                    ctx.note_inserted(page_id, slot);
                    placed(Tid { block, slot });
                    1
                }
                [_] => 0,
                _ => place_run(&mut change, &mut page, (xid, ctx.command), rows, |slot| {
                    ctx.note_inserted(page_id, slot);
                    placed(Tid { block, slot });
                }),
            };
            rows = &rows[count..];
            let free = free_space(page.header());
            change.finish()?;
            drop(page);
            if !rows.is_empty() {
                ctx.storage.fsm.is_full(self.rel, ctx.proc, block, free);
            }
        }
        Ok(())
    }

    /// A page that probably has room for a row; a page added gets a frame of the ring, if there is one.
    pub(crate) fn target(
        &self,
        ctx: &TxnContext<'_>,
        row: usize,
        ring: Option<&mut FrameRing>,
    ) -> Result<u32> {
        let need = tuple_size(row) + LINE_POINTER;
        if let Some(block) =
            ctx.storage
                .fsm
                .target(self.rel, ctx.proc, need, ctx.storage.block_count(self.rel)?)
        {
            return Ok(block);
        }
        let block = ctx.storage.extend_in(self.rel, ring)?.page_id().block;
        ctx.storage.fsm.use_page(self.rel, ctx.proc, block);
        Ok(block)
    }
}
