//! Putting a new version in the place of a dead one (`page_room = replace`).
//!
//! A page in use is full, and each update on it finds one dead version there: the one that the update before has
//! replaced. To prune the page means to look at the headers of some sixty rows, to move half of the tuples, and to log
//! their line pointers. But the new version takes as many bytes as the dead one has, so it can go there, and nothing else
//! on the page changes.
//!
//! # An example
//! Row A was updated last, and its version at line pointer 7 is dead. Row B is updated.
//!
//! ```text
//! before   3 ──redirect──► 7: A, dead ──next──► 9: A          4 ──redirect──► 5: B
//! after    3 ──redirect──► 9: A                               4 ──redirect──► 5: B, ended ──next──► 7: B
//! ```
//!
//! # The note
//! The page's flags hold the line pointer of the version that an update has ended last, or [`Ended::Several`] after
//! more than one. Only an update in a HOT chain is noted, and only where the variant uses it. Pruning clears the note.
//! The note is a hint: it says where to look. Whatever it says, a page that does not keep what the steps ask for is pruned
//! as under `compact`. So a page that an earlier version of this program has written needs no conversion.
//!
//! # Steps
//! 1. The version that the note names is removable (R4 of [`heap`](super)), and takes at least as much space as the new
//!    one needs.
//! 2. It is the first of its chain: an index leads to it, or a Redirect does. And the chain goes on behind it (R2).
//! 3. The new version has a line pointer. If the dead one is heap-only its own becomes free. If it is a root, the root
//!    becomes a Redirect, and the new version needs one that is Unused, or room for one more.
//! 4. The log names the deleter, for the snapshots of standbys (R1 of `cleanup`).
//! 5. One change, that of the update: the Redirect to the chain's second version, the new version in the dead one's
//!    place, its line pointer, the old version's end, and the note about it.
//!
//! # What it is not for
//! Rows of growing length find the dead version too short, and deletions and updates that change an indexed column leave
//! no chain. Then the page is pruned. A shorter version leaves a hole behind itself until then.
//!
//! Cost: a look at 60 line pointers and two headers. The log gets 7 bytes beside the update's own 195 (rows of 100
//! bytes); pruning a page of 55 such rows logs 260 to 480, in a record of its own.
//!
//! Origin: ours. PostgreSQL compacts the page as `compact` does; InnoDB keeps a list of free records in each page, from
//! which an insertion takes the first if it is large enough.

use clearway_txn::Xid;

use crate::buffer::PageExclusive;
use crate::change::AtomicChange;
use crate::error::Result;
use crate::heap::chain::chain;
use crate::heap::insert::free_line_pointer;
use crate::heap::layout::{
    ENDED_SHIFT, HEAP_ONLY, LINE_POINTER, Line, PAGE_FLAGS, free_space, line_offset, line_words, slot_count,
    tuple_size,
};
use crate::heap::visibility::{Removable, removable};
use crate::page::{self, LOWER};
use crate::storage::Storage;

/// The versions that updates have ended since the page was pruned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// None that is known.
    Unknown,
    /// The one at this line pointer.
    One(u16),
    /// More than one.
    Several,
}

impl Ended {
    const SEVERAL: u16 = u16::MAX >> ENDED_SHIFT;

    fn of(flags: u16) -> Self {
        match flags >> ENDED_SHIFT {
            0 => Self::Unknown,
            Self::SEVERAL => Self::Several,
            slot => Self::One(slot),
        }
    }

    /// `flags` with this note in place of theirs.
    fn in_flags(self, flags: u16) -> u16 {
        let note = match self {
            Self::Unknown => 0,
            Self::One(slot) => slot,
            Self::Several => Self::SEVERAL,
        };
        flags & ((1 << ENDED_SHIFT) - 1) | note << ENDED_SHIFT
    }
}

/// The place of a dead version, for a new one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// The line pointer that becomes a Redirect, and where to.
    root: u16,
    second: u16,
    /// The dead version's line pointer, and its offset on the page.
    dead: u16,
    offset: usize,
    /// The line pointer for the new version.
    slot: u16,
    /// The transaction that the log has to name, or [`Xid::INVALID`].
    deleter: Xid,
}

impl Room {
    /// Steps 1 to 3: the place of a dead version for a row of `length` bytes.
    pub(crate) fn find(
        storage: &Storage,
        page: &PageExclusive<'_>,
        row: usize,
        horizon: Xid,
    ) -> Result<Option<Room>> {
        let (hinted, front) = (page.hinted(), page.hinted().front());
        let Ended::One(dead) = Ended::of(page::flags(front)) else {
            return Ok(None);
        };
        let mut versions = chain(hinted, dead);
        let (Some((_, tuple)), Some((second, _))) = (versions.next(), versions.next()) else {
            return Ok(None);
        };
        if tuple.size() < tuple_size(row) {
            return Ok(None);
        }
        let is_root = !tuple.has(HEAP_ONLY);
        let root = if is_root {
            Some(dead)
        } else {
            redirect_to(front, dead)
        };
        let slot = if is_root { free_slot(front) } else { Some(dead) };
        let (Some(root), Some(slot)) = (root, slot) else {
            return Ok(None);
        };
        let deleter = match removable(storage, page, &tuple, horizon)? {
            Removable::DeletedBy(deleter) => deleter,
            Removable::NeverSeen => Xid::INVALID,
            Removable::No | Removable::OnceDurable(_) => return Ok(None),
        };
        Ok(Some(Room {
            root,
            second,
            dead,
            offset: tuple.offset,
            slot,
            deleter,
        }))
    }

    /// Steps 4 and 5, without the old version's end and the note. Returns the new version's line pointer.
    pub(crate) fn take(
        self,
        storage: &Storage,
        change: &mut AtomicChange<'_>,
        page: &mut PageExclusive<'_>,
        tuple: &[u8],
    ) -> u16 {
        storage
            .newest_cleanup
            .log_before_removal(&storage.wal, self.deleter);
        // H4 of `row_holders`.
        let id = page.page_id();
        storage.locks.rows().forget(id.rel.0, id.block, [self.dead]);
        let count = slot_count(page.header());
        change.write(
            page,
            line_offset(self.root),
            &Line::Redirect(self.second).encode(),
        );
        change.write(page, self.offset, tuple);
        let line = Line::Normal {
            offset: self.offset,
            length: tuple.len(),
        };
        change.write(page, line_offset(self.slot), &line.encode());
        if self.slot > count {
            change.write_u16(page, LOWER, line_offset(self.slot + 1) as u16);
        }
        self.slot
    }
}

/// The line pointer that redirects to `slot`.
fn redirect_to(front: &[u8], slot: u16) -> Option<u16> {
    let wanted = Line::Redirect(slot).encode();
    let index = line_words(front).iter().position(|word| *word == wanted)?;
    Some(index as u16 + 1)
}

/// A line pointer for a version whose place is known.
fn free_slot(front: &[u8]) -> Option<u16> {
    free_line_pointer(front).or_else(|| (free_space(front) >= LINE_POINTER).then(|| slot_count(front) + 1))
}

/// Notes that an update in a HOT chain has ended the version at `slot`. `in_place`: it has taken the place of the version
/// that the note named before.
pub(crate) fn note_ended(
    change: &mut AtomicChange<'_>,
    page: &mut PageExclusive<'_>,
    slot: u16,
    in_place: bool,
) {
    let flags = page::flags(page.header());
    let ended = match Ended::of(flags) {
        Ended::One(_) if !in_place => Ended::Several,
        Ended::Several => Ended::Several,
        Ended::Unknown | Ended::One(_) => Ended::One(slot),
    };
    let noted = ended.in_flags(flags);
    if noted != flags {
        change.write_u16(page, PAGE_FLAGS, noted);
    }
}
