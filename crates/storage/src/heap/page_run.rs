//! Rows placed on one page together.
//!
//! ```text
//! before  | header | 1 2 3 → |            free             | ← tuples 3 2 1 |
//! after   | header | 1 2 3 | 4 5 6 → |  free  | ← tuples 6 5 4 | tuples 3 2 1 |
//!                          ^ lines               ^ tuples
//! ```
//!
//! The tuples of a run lie side by side, the first row's at the highest offset, as if the rows had been placed one by
//! one. So a run is three writes, however long: its tuples, its line pointers, and the bounds of the free space. Each
//! line pointer that is used again is a write more.
//!
//! # Rules
//! - U1: a run is one change, made under one exclusive latch: readers, and a crash, find all of it or none.
//! - U2: a run takes the rows from the first one on, up to the one that does not fit. No row passes another.
//! - U3: a row fits if there is room for it and for a line pointer of its own, as for a single row (`insert::fits`).

use clearway_machine::Native;
use clearway_txn::Xid;
use smallvec::SmallVec;

use crate::buffer::PageExclusive;
use crate::change::byte_buffers::ByteBuffer;
use crate::change::{AtomicChange, ChangeLog};
use crate::heap::layout::{
    HAS_UNUSED, LINE_POINTER, Line, TUPLE_HEADER, append_tuple, bounds, line_offset, lines, slot_count,
    tuple_size,
};
use crate::page::{self, LOWER};

/// Line pointers of the page that are Unused, at most `most`.
fn unused_line_pointers(front: &[u8], most: usize) -> SmallVec<[u16; 8]> {
    if page::flags(front) & HAS_UNUSED == 0 {
        return SmallVec::new();
    }
    lines(front)
        .filter(|(_, line)| *line == Line::Unused)
        .map(|(slot, _)| slot)
        .take(most)
        .collect()
}

/// Places the first of `rows`, as many as fit, as versions that command `command` of `xmin` has made; returns their
/// number. `placed` gets the slot of each, in their order.
pub(crate) fn place_run<L: ChangeLog>(
    change: &mut AtomicChange<'_, Native, L>,
    page: &mut PageExclusive<'_>,
    (xmin, command): (Xid, u32),
    rows: &[&[u8]],
    mut placed: impl FnMut(u16),
) -> usize {
    let front = page.hinted().front();
    let first_new = slot_count(front) + 1;
    let (mut lower, mut upper) = (page::lower(front), page::upper(front));
    let end = upper;
    let mut unused = unused_line_pointers(front, rows.len()).into_iter();
    let mut reused: SmallVec<[(u16, Line); 8]> = SmallVec::new();
    let mut added = ByteBuffer::take();
    let mut next_slot = first_new;
    let mut count = 0;
    for row in rows {
        let size = tuple_size(row.len());
        // U3.
        if upper.saturating_sub(lower) < size + LINE_POINTER {
            break;
        }
        upper -= size;
        let line = Line::Normal {
            offset: upper,
            length: TUPLE_HEADER + row.len(),
        };
        if let Some(slot) = unused.next() {
            reused.push((slot, line));
            placed(slot);
        } else {
            added.extend_from_slice(&line.encode());
            lower += LINE_POINTER;
            placed(next_slot);
            next_slot += 1;
        }
        count += 1;
    }
    if count == 0 {
        return 0;
    }
    let mut tuples = ByteBuffer::take();
    tuples.reserve(end - upper);
    for row in rows[..count].iter().rev() {
        append_tuple(xmin.0, command, 0, row, &mut tuples);
        let aligned = tuples.len().next_multiple_of(8);
        tuples.resize(aligned, 0);
    }
    debug_assert_eq!(
        tuples.len(),
        end - upper,
        "U2: the tuples laid out are those placed"
    );
    change.write(page, upper, &tuples);
    for (slot, line) in reused {
        change.write(page, line_offset(slot), &line.encode());
    }
    if !added.is_empty() {
        change.write(page, line_offset(first_new), &added);
    }
    change.write(page, LOWER, &bounds(lower, upper));
    count
}
