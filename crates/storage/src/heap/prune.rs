//! Removing dead versions from one page.
//!
//! Pruning removes the dead versions at the front of each HOT chain. The root becomes a Redirect to the first
//! version that stays, or Dead if none stays. At the end of a chain, pruning removes the versions of an updater that
//! rolled back; the version before them still names the first of them, and R2 tells a reader that the slot is used
//! again. The line pointers of removed heap-only versions become Unused; roots do not (R3). Then the remaining tuples
//! move together. One log record holds the moves and the line pointers. Before it, the log names the newest transaction
//! that deleted one of the versions, for the snapshots of standbys (`cleanup`).

use clearway_txn::Xid;

use crate::buffer::PageExclusive;
use crate::error::Result;
use crate::heap::layout::{
    HAS_UNUSED, HEAP_ONLY, LINE_POINTER, Line, PAGE_FLAGS, Tuple, line, line_offset, slot_count,
};
use crate::heap::scan::{chain, chain_start};
use crate::heap::visibility::{Removable, removable, rolled_back};
use crate::page::{self, LOWER, PAGE_SIZE};
use crate::storage::Storage;

/// Result of pruning a page.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Pruned {
    /// Versions removed.
    pub(crate) removed: usize,
}

/// Removes what no snapshot can see. The page is latched exclusively.
pub(crate) fn prune(storage: &Storage, page: &mut PageExclusive<'_>, horizon: Xid) -> Result<Pruned> {
    let bytes = &page.bytes()[..];
    if page::is_new(bytes) {
        return Ok(Pruned::default());
    }
    let count = slot_count(bytes);
    let mut lines: Vec<Line> = (1..=count).map(|slot| line(bytes, slot)).collect();
    let at = |slot: u16| usize::from(slot) - 1;
    let mut pruned = Pruned::default();
    let mut newest_deleter = Xid::INVALID;
    // Whatever it finds removable is removed.
    let mut is_removable = |tuple: &Tuple<'_>| -> Result<bool> {
        let reason = removable(storage, tuple, horizon)?;
        if let Some(Removable::DeletedBy(deleter)) = reason {
            newest_deleter = newest_deleter.max(deleter);
        }
        Ok(reason.is_some())
    };
    let mut visited = vec![false; lines.len()];
    for root in 1..=count {
        let Some(start) = chain_start(bytes, root) else {
            continue;
        };
        let (mut dead, mut undone) = (Vec::new(), Vec::new());
        let mut first_live = None;
        for (slot, tuple) in chain(bytes, start) {
            visited[at(slot)] = true;
            if first_live.is_none() && is_removable(&tuple)? {
                dead.push(slot);
            } else if first_live.is_some() && rolled_back(storage, &tuple, horizon)? {
                undone.push(slot);
            } else {
                first_live.get_or_insert(slot);
            }
        }
        pruned.removed += dead.len() + undone.len();
        // Without a version at all: a Redirect to one that was rolled back and removed below.
        let root_changes = !dead.is_empty() || first_live.is_none();
        for slot in dead.into_iter().chain(undone) {
            lines[at(slot)] = Line::Unused;
        }
        if root_changes {
            lines[at(root)] = first_live.map_or(Line::Dead, Line::Redirect);
        }
    }
    // Versions that no chain leads to any more: successors whose updater rolled back.
    for slot in 1..=count {
        if let Some(tuple) = Tuple::at(bytes, slot)
            && tuple.has(HEAP_ONLY)
            && !visited[at(slot)]
            && is_removable(&tuple)?
        {
            lines[at(slot)] = Line::Unused;
            pruned.removed += 1;
        }
    }
    if pruned.removed > 0 {
        let mut change = storage.begin_change_latched(Xid::INVALID)?;
        // R1 of `cleanup`; `begin_change_latched` has made sure of its room.
        storage
            .newest_cleanup
            .log_before_removal(&storage.wal, newest_deleter);
        rewrite(&mut change, page, &mut lines);
        change.finish()?;
    }
    Ok(pruned)
}

/// Gives the page these line pointers, and moves the tuples that stay together at its end.
pub(crate) fn rewrite(
    change: &mut crate::change::AtomicChange<'_>,
    page: &mut PageExclusive<'_>,
    lines: &mut Vec<Line>,
) {
    while lines.last() == Some(&Line::Unused) {
        lines.pop();
    }
    let mut staying: Vec<usize> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        if matches!(line, Line::Normal { .. }) {
            staying.push(index);
        }
    }
    // From the page's end: each moves up into space that is free or its own.
    let offset_of = |line: Line| {
        if let Line::Normal { offset, .. } = line {
            offset
        } else {
            0
        }
    };
    staying.sort_unstable_by_key(|&index| std::cmp::Reverse(offset_of(lines[index])));
    let mut upper = PAGE_SIZE;
    for index in staying {
        let Line::Normal { offset, length } = lines[index] else {
            continue;
        };
        upper -= length.next_multiple_of(8);
        if offset != upper {
            change.move_bytes(page, offset, upper, length);
            lines[index] = Line::Normal {
                offset: upper,
                length,
            };
        }
    }
    let encoded: Vec<u8> = lines.iter().flat_map(|line| line.encode()).collect();
    change.write(page, line_offset(1), &encoded);
    let lower = line_offset(1) + lines.len() * LINE_POINTER;
    change.write(page, LOWER, &(lower as u32 | (upper as u32) << 16).to_le_bytes());
    let flags = if lines.contains(&Line::Unused) {
        HAS_UNUSED
    } else {
        0
    };
    change.write_u16(page, PAGE_FLAGS, flags);
}
