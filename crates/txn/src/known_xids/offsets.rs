//! A hint beside each entry says how far the next running one is at least. Readers write the hints, so that each gap is
//! walked once.
//!
//! # An example
//! 100 runs at position 0, and 101 to 104 at positions 1 to 4 have ended.
//!
//! | time | a snapshot | hint of 100 |
//! | --- | --- | --- |
//! | 1 | walks over positions 1 to 4 and finds 105 at 5 | 1, then 5 |
//! | 2 | goes from 0 to 5 at once | 5 |
//! | 3 | 105 to 107 have ended: goes to 5, walks over 5 to 7 | 8 |
//!
//! # Why a wrong hint is harmless
//! H1: a hint is never too far. Positions between an entry and the one its hint names have ended, and an entry does not
//! run again: new ones are appended behind the range. Two readers that write one hint both write distances that were
//! right; the shorter one costs a second walk. Positions are used again after a compaction, or when the range begins
//! again at 0: each entry's hint is set to 1 when it is appended, and compaction sets those it has moved, under the
//! latch in exclusive mode.
//!
//! # Costs
//! add: a store more than the array. remove: as the array. snapshot: a latch, two looks a running transaction, and what
//! was not walked before. All readers write the hint of the oldest transaction, on one line. 13 bytes an entry.
//! Compaction: when full.
//!
//! Origin: proposed for PostgreSQL in 2021 (Michail Nikolaev).

use std::sync::atomic::Ordering::Relaxed;

use clearway_machine::{AtomicWord, Machine};

use super::entries::Entries;
use super::{KnownSet, KnownXidsOptions, RunningXids};
use crate::Xid;

/// Entries with hints.
#[derive(Debug)]
pub(crate) struct Set<M: Machine> {
    entries: Entries<M>,
    hints: Box<[M::U32]>,
}

impl<M: Machine> Set<M> {
    /// The next running entry after `position`, or `head`; hints at it. The caller holds the latch shared.
    #[inline]
    fn next_running(&self, position: usize, head: usize) -> usize {
        let hint = self.hints[position].load(Relaxed) as usize;
        let mut next = position + hint;
        while next < head && !self.entries.is_running(next) {
            next += self.hints[next].load(Relaxed) as usize;
        }
        // H1: no hint passes the end of the range that its writer knew.
        let next = next.min(head);
        if next > position + hint {
            self.hints[position].store((next - position) as u32, Relaxed);
        }
        next
    }

    #[cold]
    fn compact(&self) {
        let _exclusive = self.entries.exclusive();
        self.entries.compact();
        for hint in &self.hints[..self.entries.running() as usize] {
            hint.store(1, Relaxed);
        }
    }
}

impl<M: Machine> KnownSet<M> for Set<M> {
    fn new(options: &KnownXidsOptions) -> Self {
        Self {
            entries: Entries::new(options),
            hints: (0..options.capacity).map(|_| M::U32::new(1)).collect(),
        }
    }

    fn running(&self) -> u32 {
        self.entries.running()
    }

    fn range(&self) -> u64 {
        self.entries.range() as u64
    }

    #[inline]
    fn add(&self, from: u64, to: u64) {
        let count = (to - from + 1) as usize;
        if self.entries.tail() + self.entries.range() + count > self.entries.capacity() {
            self.compact();
        }
        for xid in from..=to {
            let position = self.entries.append(xid);
            self.hints[position].store(1, Relaxed);
            self.entries.publish(position + 1);
        }
    }

    #[inline]
    fn remove(&self, xid: Xid, children: &[Xid]) {
        let _exclusive = self.entries.exclusive();
        for xid in children.iter().chain([&xid]) {
            if let Some(position) = self.entries.find(*xid) {
                self.entries.clear(position);
            }
        }
        self.entries.trim();
    }

    fn remove_preceding(&self, xid: Xid, prepared: &[Xid]) {
        let positions = self.entries.preceding(xid, prepared);
        let _exclusive = self.entries.exclusive();
        for position in positions {
            self.entries.clear(position);
        }
        self.entries.trim();
    }

    fn begin(&self, _oldest: Xid, newest_ended: Xid) {
        self.entries.set_newest_ended(newest_ended);
    }

    fn snapshot(&self, xmax: Option<Xid>, into: &mut RunningXids) {
        let _shared = self.entries.shared();
        into.begin(xmax.unwrap_or_else(|| self.entries.newest_ended().next()));
        // The entry at the tail runs, if there is any.
        let (mut position, head) = (self.entries.tail(), self.entries.head());
        while position < head && into.push(self.entries.xid(position)) {
            position = self.next_running(position, head);
        }
    }
}
