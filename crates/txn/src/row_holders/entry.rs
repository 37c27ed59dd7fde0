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

/// A moment of a transaction between two savepoints (`savepoint`).
pub(super) type Moment = u32;

/// The moment of what has not happened.
const NEVER: Moment = Moment::MAX;

/// A transaction that holds a row, or all rows of a relation.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowHolder {
    pub(super) xid: Xid,
    pub(super) proc: ProcId,
    /// The moments at which it got the shared modes, by their numbers.
    since: [Moment; 2],
}

impl RowHolder {
    pub(super) fn new(proc: ProcId, xid: Xid, mode: RowLockMode, now: Moment) -> RowHolder {
        debug_assert!(mode.is_shared(), "{mode:?} stands on the page");
        let mut since = [NEVER; 2];
        since[mode as usize] = now;
        RowHolder { xid, proc, since }
    }

    /// The strongest mode that it has.
    pub(super) fn mode(&self) -> RowLockMode {
        match self.since[RowLockMode::Share as usize] {
            NEVER => RowLockMode::KeyShare,
            _ => RowLockMode::Share,
        }
    }

    /// Has also what `other` has of the same transaction; true if it is stronger than before.
    pub(super) fn add(&mut self, other: &RowHolder) -> bool {
        let before = self.mode();
        for (mine, others) in self.since.iter_mut().zip(other.since) {
            *mine = others.min(*mine);
        }
        self.mode() > before
    }

    /// Loses what it got at a moment or later; false if nothing is left.
    pub(super) fn go_back(&mut self, to: Moment) -> bool {
        for since in &mut self.since {
            if *since >= to {
                *since = NEVER;
            }
        }
        self.since != [NEVER; 2]
    }
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
            return match held.add(&holder) {
                true => Admission::Stronger,
                false => Admission::Held,
            };
        }
        if at_front {
            // The lock at the head of the queue is this one's, so no other waits that came before it.
            self.waiting = None;
        } else if let Some((mode, passed)) = &mut self.waiting
            && mode.conflicts_with(holder.mode())
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
    /// It was one, in that mode or a stronger one.
    Held,
    /// It was one in a weaker mode.
    Stronger,
    /// It has to queue.
    Queue,
}
