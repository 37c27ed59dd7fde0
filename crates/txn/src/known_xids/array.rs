//! The baseline: a snapshot looks at the flag of every entry in the range. The switch `known_xids_compaction` says when
//! the range is compacted.
//!
//! # An example
//! Transaction 100 stays open while 101 to 100,000 come and go. The entries of all of them are in the range, and each
//! snapshot looks at 99,901 flags to find one running transaction. It holds the latch meanwhile, which every end needs
//! exclusively.
//!
//! # Costs
//! add: two stores and the published end. remove: a latch, a search by halves, a store. snapshot: a latch, a flag an
//! entry of the range. compaction: a move of each running entry, a look at each flag. 9 bytes an entry.
//!
//! Origin: PostgreSQL 9.0 (2010); the compaction of 2022 is that of PostgreSQL 16.

use std::sync::atomic::Ordering::Relaxed;

use clearway_machine::{AtomicWord, Machine, Work};

use super::entries::{Entries, FLAGS};
use super::{KnownSet, KnownXidsCompactionVariant, KnownXidsOptions, RunningXids};
use crate::Xid;

/// Under `2022`, time between two compactions of an idle replay.
const IDLE_NS: u64 = 1_000_000_000;
/// The loop over a word's flags, in a simulation; natively it takes what it takes.
const FLAGS_NS: u64 = 3;

/// The array.
#[derive(Debug)]
pub(crate) struct Set<M: Machine> {
    entries: Entries<M>,
    compaction: KnownXidsCompactionVariant,
    /// The range at which `2010` compacts.
    range_min: usize,
    /// Ends so far, and when an idle replay compacted last; for replay.
    ends: M::U32,
    compacted_ns: M::U64,
}

impl<M: Machine> Set<M> {
    /// Under `2022`, ends between two looks at the range.
    const ENDS: u32 = if M::EXPLORED { 2 } else { 128 };

    fn is_half_empty(&self) -> bool {
        self.entries.range() >= 2 * self.entries.running() as usize
    }

    /// Compacts after an end, if the rule says so. The caller holds the latch exclusively.
    fn compact_after_end(&self) {
        let due = match self.compaction {
            KnownXidsCompactionVariant::Of2010 => self.entries.range() >= self.range_min,
            KnownXidsCompactionVariant::Of2022 => {
                let ends = self.ends.load(Relaxed).wrapping_add(1);
                self.ends.store(ends, Relaxed);
                ends.is_multiple_of(Self::ENDS)
            }
        };
        if due && self.is_half_empty() && self.entries.running() > 0 {
            self.entries.compact();
        }
    }
}

impl<M: Machine> KnownSet<M> for Set<M> {
    fn new(options: &KnownXidsOptions) -> Self {
        Self {
            entries: Entries::new(options),
            compaction: options.compaction,
            range_min: 4 * options.sessions as usize,
            ends: M::U32::new(0),
            compacted_ns: M::U64::new(0),
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
            let _exclusive = self.entries.exclusive();
            self.entries.compact();
        }
        for xid in from..=to {
            let position = self.entries.append(xid);
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
        self.compact_after_end();
    }

    fn remove_preceding(&self, xid: Xid, prepared: &[Xid]) {
        let positions = self.entries.preceding(xid, prepared);
        let _exclusive = self.entries.exclusive();
        for position in positions {
            self.entries.clear(position);
        }
        self.entries.trim();
        if self.compaction == KnownXidsCompactionVariant::Of2022 && self.entries.running() > 0 {
            self.entries.compact();
        } else {
            self.compact_after_end();
        }
    }

    fn idle(&self) {
        let (now, last) = (M::now(), self.compacted_ns.load(Relaxed));
        if self.compaction == KnownXidsCompactionVariant::Of2022
            && self.entries.range() > self.entries.running() as usize
            && (last == 0 || now - last >= IDLE_NS)
        {
            self.compacted_ns.store(now, Relaxed);
            let _exclusive = self.entries.exclusive();
            self.entries.compact();
        }
    }

    fn begin(&self, _oldest: Xid, newest_ended: Xid) {
        self.entries.set_newest_ended(newest_ended);
    }

    fn snapshot(&self, xmax: Option<Xid>, into: &mut RunningXids) {
        let _shared = self.entries.shared();
        into.begin(xmax.unwrap_or_else(|| self.entries.newest_ended().next()));
        let (tail, head) = (self.entries.tail(), self.entries.head());
        let mut position = tail;
        while position < head {
            // The flags of a word come in one load; each is looked at by itself, as the origin's bytes are.
            let flags = self.entries.flags(position / FLAGS) >> (position % FLAGS * 8);
            let end = head.min(position + FLAGS - position % FLAGS);
            M::charge(Work::Nanos(FLAGS_NS));
            for lane in 0..end - position {
                if flags >> (lane * 8) & 1 != 0 && !into.push(self.entries.xid(position + lane)) {
                    return;
                }
            }
            position = end;
        }
    }
}
