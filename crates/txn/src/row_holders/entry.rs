//! One row: the transactions that hold it in a shared strength, and the one that waits for them.

use std::hash::{Hash, Hasher};

use smallvec::SmallVec;

use crate::{ProcId, RowLockMode, Xid};

/// New holders that pass a transaction that waits for the row, before they have to queue behind it (H5).
pub(super) const PASSES_MAX: u8 = 16;

/// The place of a row version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowPlace {
    /// The storage relation.
    pub rel: u32,
    /// The page.
    pub block: u32,
    /// The line pointer.
    pub slot: u16,
}

/// The two halves of a product with an odd constant, folded: each bit of the value reaches each bit of the result.
#[inline]
fn folded(value: u64) -> u64 {
    let product = u128::from(value) * u128::from(0x9E37_79B9_7F4A_7C15_u64);
    (product >> 64) as u64 ^ product as u64
}

impl RowPlace {
    /// The same for all places on a page.
    #[inline]
    pub(super) fn page_hash(&self) -> u64 {
        folded(u64::from(self.rel) << 32 | u64::from(self.block))
    }
}

impl Hash for RowPlace {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.page_hash() ^ u64::from(self.slot));
    }
}

/// Hashes places: numbers that we chose ourselves, so speed is all that matters.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct PlaceHasher(u64);

impl Hasher for PlaceHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = folded(self.0 ^ value);
    }
    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }
}

/// A transaction that holds a row, or all rows of a relation.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowHolder {
    pub(super) xid: Xid,
    pub(super) proc: ProcId,
    pub(super) mode: RowLockMode,
}

/// The transactions that hold one row, or all rows of a relation.
pub(super) type RowHolders = SmallVec<[RowHolder; 1]>;

/// One row.
#[derive(Debug, Default)]
pub(super) struct RowEntry {
    pub(super) holders: RowHolders,
    /// The strongest mode that a transaction waits for, and the number of holders that have come since.
    waiting: Option<(RowLockMode, u8)>,
}

impl RowEntry {
    /// Notes that a transaction waits for the row.
    pub(super) fn note_waiter(&mut self, mode: RowLockMode) {
        let (before, passed) = self.waiting.unwrap_or((mode, 0));
        self.waiting = Some((mode.max(before), passed));
    }

    /// Adds a holder, or makes its hold stronger; `false` if it has to queue first (H5). `at_front`: it has queued.
    pub(super) fn admit(&mut self, holder: RowHolder, at_front: bool) -> Admission {
        if let Some(held) = self.holders.iter_mut().find(|held| held.xid == holder.xid) {
            held.mode = held.mode.max(holder.mode);
            return Admission::Held;
        }
        if at_front {
            // The lock at the head of the queue is this one's, so no other waits that came before it.
            self.waiting = None;
        } else if let Some((mode, passed)) = &mut self.waiting
            && mode.conflicts_with(holder.mode)
        {
            if *passed == PASSES_MAX {
                return Admission::Queue;
            }
            *passed += 1;
        }
        self.holders.push(holder);
        Admission::Added
    }
}

/// The outcome of [`RowEntry::admit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    /// A new holder.
    Added,
    /// It was one.
    Held,
    /// It has to queue.
    Queue,
}
