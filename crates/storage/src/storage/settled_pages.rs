//! Settled pages: those on which vacuum has nothing to do until they change.
//!
//! A page is *settled* if each version on it is (`visibility::is_settled`: its inserter is known to have committed, and
//! it has neither a deleter that may commit nor a successor) and no line pointer is Dead. What vacuum finds on such a
//! page follows from its bytes: nothing to remove, whatever the horizon, and as many live rows as versions. So the vacuum
//! that has seen it settled notes the page's LSN, and the next one that meets the page with that LSN goes on to the next
//! page without a look at its rows.
//!
//! # Rules
//! - N1: a note is trusted only if the page still has the LSN of the note. Each change of a page stamps it with the
//!   position of its own record, so equal LSNs are equal bytes, but for hints.
//! - N2: hints unsettle nothing. On a settled version a reader can only add that a locker has ended.
//! - N3: a note with Dead line pointers is not trusted. It lets the step that frees them (vacuum's third) note the page
//!   by the LSN of its own change, if no other change came between.
//! - N4: notes are in memory only. After a start there are none, so no note outlives the log that it speaks of: a
//!   position that a crash took away is handed out again. A relation's notes go with it.
//!
//! One position for the whole relation, below which all is settled, would not do: vacuum itself changes pages, and gives
//! them positions above any that it could have noted before.
//!
//! # Costs
//! Eight bytes a page, 1/1024 of the table. A note that is trusted costs a pin and a shared latch; the page is read from
//! the disk if it is not in memory.
//!
//! # What it does not do
//! It does not tell readers of indexes that a page's rows are visible to all, and it does not save reading the page.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::page::{Lsn, RelId};

/// Bits of a note for the rows. A page has fewer line pointers than that.
const ROW_BITS: u32 = 11;
const ROWS: u64 = (1 << ROW_BITS) - 1;
/// The bit of a note that tells of Dead line pointers.
const DEAD: u64 = 1 << ROW_BITS;
/// The bits behind it hold the LSN. A log of four petabytes fits.
const LSN_SHIFT: u32 = ROW_BITS + 1;
const NO_NOTE: u64 = 0;

const _: () = assert!(crate::page::PAGE_SIZE / 4 <= ROWS as usize + 1);

/// A look at a page all of whose versions are settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SettledPage {
    /// The page's LSN.
    pub(crate) lsn: Lsn,
    /// Number of versions, each a live row.
    pub(crate) rows: u16,
    /// True if there are Dead line pointers.
    pub(crate) dead: bool,
}

/// The notes of one relation, page by page.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct SettledPages(Vec<u64>);

impl SettledPages {
    /// Notes a look at a page; `None`: it is not settled.
    pub(crate) fn note(&mut self, block: u32, look: Option<SettledPage>) {
        let block = block as usize;
        let note = look.map_or(NO_NOTE, encode);
        if self.0.len() <= block {
            if note == NO_NOTE {
                return;
            }
            self.0.resize(block + 1, NO_NOTE);
        }
        self.0[block] = note;
    }

    /// The note of a page; to be trusted if the page has its LSN (N1).
    pub(crate) fn get(&self, block: u32) -> Option<SettledPage> {
        let note = *self.0.get(block as usize)?;
        (note != NO_NOTE).then_some(SettledPage {
            lsn: Lsn(note >> LSN_SHIFT),
            rows: (note & ROWS) as u16,
            dead: note & DEAD != 0,
        })
    }
}

fn encode(look: SettledPage) -> u64 {
    let SettledPage { lsn, rows, dead } = look;
    let position = lsn.0 << LSN_SHIFT;
    if position >> LSN_SHIFT != lsn.0 || u64::from(rows) > ROWS {
        // It does not fit: the page is looked at each time.
        return NO_NOTE;
    }
    position | u64::from(rows) | if dead { DEAD } else { 0 }
}

/// The notes of all relations. A vacuum takes its relation's, and puts them back at its end.
#[derive(Debug, Default)]
pub(crate) struct AllSettledPages(Mutex<HashMap<RelId, SettledPages>>);

impl AllSettledPages {
    fn rels(&self) -> std::sync::MutexGuard<'_, HashMap<RelId, SettledPages>> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The notes of a relation, which has none then.
    pub(crate) fn take(&self, rel: RelId) -> SettledPages {
        self.rels().remove(&rel).unwrap_or_default()
    }

    /// Keeps the notes of a relation.
    pub(crate) fn put(&self, rel: RelId, pages: SettledPages) {
        self.rels().insert(rel, pages);
    }

    /// Forgets the notes of a relation that was dropped.
    pub(crate) fn forget(&self, rel: RelId) {
        self.rels().remove(&rel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_come_back_as_they_were() {
        let mut pages = SettledPages::default();
        assert_eq!(pages.get(0), None);
        pages.note(7, None);
        assert_eq!(pages, SettledPages::default());
        let looks = [
            (1, 1, 0, false),
            (3, 0x1234_5678_9ABC, 2_047, true),
            (4, (1 << 52) - 1, 60, false),
        ];
        let look = |(block, lsn, rows, dead)| {
            let lsn = Lsn(lsn);
            (block, SettledPage { lsn, rows, dead })
        };
        for (block, look) in looks.map(look) {
            pages.note(block, Some(look));
        }
        for (block, look) in looks.map(look) {
            assert_eq!(pages.get(block), Some(look));
        }
        assert_eq!(pages.get(2), None);
        pages.note(3, None);
        assert_eq!(pages.get(3), None);
    }

    #[test]
    fn a_position_that_does_not_fit_is_not_noted() {
        let mut pages = SettledPages::default();
        let look = SettledPage {
            lsn: Lsn(1 << 52),
            rows: 0,
            dead: false,
        };
        pages.note(1, Some(look));
        assert_eq!(pages.get(1), None);
    }
}
