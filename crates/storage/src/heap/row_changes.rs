//! The rows that a transaction has changed since its first savepoint, so that it can go back to one.
//!
//! A list of changes in their order, 16 bytes each: the place of the version, and what was done to it. Rows that an INSERT
//! stores side by side on a page are one change. What stood in the header before need not be kept: a version that a
//! transaction may end had no end, but for a lock of the transaction's own, in one of two strengths.
//!
//! # Rules
//! - L1: a change is on the list before its page is unlatched. [`RowChanges::prepare`], which can fail, comes before the
//!   latch; [`RowChanges::note`] cannot.
//! - L2: no change before a savepoint is joined with one behind it.
//! - L3: a version on the list stays where it is while it is there. Its inserter or its deleter runs, so neither pruning
//!   nor vacuum removes it (R4 of [`heap`](super)), and line pointers do not move.
//!
//! The newest changes are in memory, at most as many bytes as the list was made for. Older ones go to an [`Overflow`],
//! which gives them back from its end.
//!
//! A transaction without a savepoint has no list, and pays one test for each change of a row.

use std::cell::RefCell;
use std::io;
use std::path::Path;

use crate::error::{Result, StorageError};

/// Bytes of a change.
const BYTES: usize = 16;
/// The fewest changes that are kept in memory: as many as the rows of a page, and more.
const FEWEST: usize = 1 << 10;
/// Changes that are fetched from the overflow at a time.
const FETCHED: u64 = 1 << 14;

/// The change of a version by its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Done {
    /// It has stored it.
    Inserted,
    /// It has deleted, replaced or locked it.
    Ended,
    /// The same, and had it locked FOR NO KEY UPDATE before.
    EndedNoKeyUpdate,
    /// The same, and had it locked FOR UPDATE before.
    EndedUpdate,
}

/// A change of one version; of several that were inserted side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowChange {
    pub(crate) rel: u32,
    pub(crate) block: u32,
    /// The first one's line pointer.
    pub(crate) slot: u16,
    /// Number of line pointers.
    pub(crate) count: u16,
    pub(crate) done: Done,
}

impl RowChange {
    fn encode(self) -> [u8; BYTES] {
        let done = match self.done {
            Done::Inserted => 0,
            Done::Ended => 1,
            Done::EndedNoKeyUpdate => 2,
            Done::EndedUpdate => 3,
        };
        let places = u64::from(self.rel) | u64::from(self.block) << 32;
        let rest = u64::from(self.slot) | u64::from(self.count) << 16 | done << 32;
        (u128::from(places) | u128::from(rest) << 64).to_le_bytes()
    }

    fn decode(bytes: [u8; BYTES]) -> RowChange {
        let word = u128::from_le_bytes(bytes);
        RowChange {
            rel: word as u32,
            block: (word >> 32) as u32,
            slot: (word >> 64) as u16,
            count: (word >> 80) as u16,
            done: match (word >> 96) as u8 {
                0 => Done::Inserted,
                1 => Done::Ended,
                2 => Done::EndedNoKeyUpdate,
                _ => Done::EndedUpdate,
            },
        }
    }

    /// Its line pointers.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u16> + use<> {
        self.slot..self.slot + self.count
    }
}

/// The place for changes that memory has no room for: bytes that are taken back from their end.
pub trait Overflow: std::fmt::Debug + Send {
    /// Adds bytes at the end.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Removes bytes from the end, as many as `into` is long, and gives them to it in the order in which they were added.
    fn take(&mut self, into: &mut [u8]) -> io::Result<()>;

    /// Its name in errors.
    fn path(&self) -> &Path;
}

/// The changes of a transaction; see the module's beginning.
#[derive(Debug)]
pub struct RowChanges(RefCell<List>);

#[derive(Debug)]
struct List {
    /// The newest ones.
    recent: Vec<RowChange>,
    recent_max: usize,
    /// Number of the others.
    elsewhere: u64,
    overflow: Box<dyn Overflow>,
    /// Changes below this position stay as they are (L2).
    settled: u64,
}

impl RowChanges {
    /// An empty list that keeps about `bytes_max` bytes in memory.
    pub fn new(bytes_max: usize, overflow: Box<dyn Overflow>) -> RowChanges {
        RowChanges(RefCell::new(List {
            recent: Vec::new(),
            recent_max: (bytes_max / BYTES).max(FEWEST),
            elsewhere: 0,
            overflow,
            settled: 0,
        }))
    }

    /// The position behind the last change: that of a savepoint that is made now.
    pub fn savepoint(&self) -> u64 {
        let list = &mut *self.0.borrow_mut();
        list.settled = list.end();
        list.settled
    }

    /// Makes room for `count` changes (L1).
    pub(crate) fn prepare(&self, count: usize) -> Result<()> {
        let list = &mut *self.0.borrow_mut();
        if list.recent.len() + count <= list.recent_max {
            return Ok(());
        }
        let bytes: Vec<u8> = list.recent.iter().flat_map(|change| change.encode()).collect();
        let appended = list.overflow.append(&bytes);
        appended.map_err(|error| StorageError::io("write", list.overflow.path(), error))?;
        list.elsewhere += list.recent.len() as u64;
        list.recent.clear();
        Ok(())
    }

    /// Adds a change of one version.
    pub(crate) fn note(&self, rel: u32, block: u32, slot: u16, done: Done) {
        let list = &mut *self.0.borrow_mut();
        let is_settled = list.end() == list.settled;
        if let Some(last) = list.recent.last_mut().filter(|_| !is_settled)
            && (last.done, done) == (Done::Inserted, Done::Inserted)
            && (last.rel, last.block) == (rel, block)
            && last.slot.checked_add(last.count) == Some(slot)
        {
            last.count += 1;
            return;
        }
        list.recent.push(RowChange {
            rel,
            block,
            slot,
            count: 1,
            done,
        });
    }

    /// Takes changes behind position `down_to` off the list's end, in their order; none if there are no more.
    pub(crate) fn take(&self, down_to: u64) -> Result<Vec<RowChange>> {
        let list = &mut *self.0.borrow_mut();
        list.settled = list.settled.min(down_to);
        if !list.recent.is_empty() {
            let kept = down_to.saturating_sub(list.elsewhere) as usize;
            return Ok(list.recent.split_off(kept.min(list.recent.len())));
        }
        let count = list.elsewhere.saturating_sub(down_to).min(FETCHED);
        let mut bytes = vec![0; count as usize * BYTES];
        let taken = list.overflow.take(&mut bytes);
        taken.map_err(|error| StorageError::io("read", list.overflow.path(), error))?;
        list.elsewhere -= count;
        Ok(bytes
            .as_chunks()
            .0
            .iter()
            .map(|bytes| RowChange::decode(*bytes))
            .collect())
    }
}

impl List {
    fn end(&self) -> u64 {
        self.elsewhere + self.recent.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct InMemory(Vec<u8>);

    impl Overflow for InMemory {
        fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
            self.0.extend_from_slice(bytes);
            Ok(())
        }

        fn take(&mut self, into: &mut [u8]) -> io::Result<()> {
            into.copy_from_slice(&self.0.split_off(self.0.len() - into.len()));
            Ok(())
        }

        fn path(&self) -> &Path {
            Path::new("memory")
        }
    }

    fn all_behind(list: &RowChanges, down_to: u64) -> Vec<RowChange> {
        let mut found = Vec::new();
        loop {
            let mut batch = list.take(down_to).unwrap();
            if batch.is_empty() {
                found.reverse();
                return found;
            }
            batch.reverse();
            found.extend(batch);
        }
    }

    /// Changes come back in their order, from memory and from the overflow, and those before a position stay.
    #[test]
    fn changes_come_back_from_the_end() {
        let list = RowChanges::new(0, Box::<InMemory>::default());
        let change = |number: u32| RowChange {
            rel: number % 3,
            block: u32::MAX - number,
            slot: number as u16,
            count: 1,
            done: [
                Done::Inserted,
                Done::Ended,
                Done::EndedNoKeyUpdate,
                Done::EndedUpdate,
            ][number as usize % 4],
        };
        for number in 0..50_000 {
            let one = change(number);
            list.prepare(1).unwrap();
            list.note(one.rel, one.block, one.slot, one.done);
        }
        for (down_to, end) in [(49_999, 50_000), (30_000, 49_999), (30_000, 30_000), (0, 30_000)] {
            let expected: Vec<_> = (down_to..end).map(change).collect();
            assert_eq!(
                all_behind(&list, u64::from(down_to)),
                expected,
                "{down_to}..{end}"
            );
        }
    }

    /// Rows side by side are one change, but not across a savepoint, nor across one that was gone back to.
    #[test]
    fn rows_side_by_side_are_one_change() {
        let list = RowChanges::new(0, Box::<InMemory>::default());
        let insert = |block: u32, slots: std::ops::Range<u16>| {
            for slot in slots {
                list.prepare(1).unwrap();
                list.note(7, block, slot, Done::Inserted);
            }
        };
        let run = |block: u32, slot: u16, count: u16| RowChange {
            rel: 7,
            block,
            slot,
            count,
            done: Done::Inserted,
        };
        insert(0, 1..4);
        let savepoint = list.savepoint();
        insert(0, 4..6);
        insert(1, 6..9);
        insert(1, 10..11);
        assert_eq!(
            all_behind(&list, savepoint),
            [run(0, 4, 2), run(1, 6, 3), run(1, 10, 1)]
        );
        insert(0, 4..5);
        assert_eq!(all_behind(&list, savepoint), [run(0, 4, 1)]);
        assert_eq!(all_behind(&list, 0), [run(0, 1, 3)]);
    }
}
