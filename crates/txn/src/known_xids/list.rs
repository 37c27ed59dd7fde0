//! The running entries are linked, so that a snapshot visits no other.
//!
//! # An example
//! Of 100 to 104 only 100 and 104 run: `first` is the entry of 100, whose `next` is that of 104. When 104 ends, its
//! neighbours are linked with each other; the entry stays, for searches.
//!
//! # Orderings
//! An entry is appended without the latch: all of it is written first, and then the link to it is stored by a Release,
//! which pairs with the Acquire of a snapshot. Links change otherwise under the latch in exclusive mode.
//!
//! # Costs
//! add: four stores more than the array. remove: the array's search, and up to two links. snapshot: a latch, and two
//! lines a running transaction, at places that depend on each other. 17 bytes an entry. Compaction: when full.
//!
//! Origin: proposed for PostgreSQL in 2021 (Michail Nikolaev).

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, Machine};

use super::entries::Entries;
use super::{KnownSet, KnownXidsOptions, RunningXids};
use crate::Xid;

/// No entry.
const NONE: u32 = u32::MAX;

/// The links of an entry.
#[derive(Debug)]
struct Links<M: Machine> {
    next: M::U32,
    previous: M::U32,
}

/// The list.
#[derive(Debug)]
pub(crate) struct Set<M: Machine> {
    entries: Entries<M>,
    links: Box<[Links<M>]>,
    first: M::U32,
    /// For replay.
    last: M::U32,
}

impl<M: Machine> Set<M> {
    /// The word that holds the link behind `position`.
    fn link_behind(&self, position: u32) -> &M::U32 {
        match position {
            NONE => &self.first,
            _ => &self.links[position as usize].next,
        }
    }

    /// Links the new entry at `position`, behind the last one.
    #[inline]
    fn link(&self, position: usize) {
        let last = self.last.load(Relaxed);
        self.links[position].next.store(NONE, Relaxed);
        self.links[position].previous.store(last, Relaxed);
        // Release: pairs with the Acquire in `snapshot`.
        self.link_behind(last).store(position as u32, Release);
        self.last.store(position as u32, Relaxed);
    }

    /// Takes the entry at `position` away. The caller holds the latch exclusively.
    #[inline]
    fn take_away(&self, position: usize) {
        let next = self.links[position].next.load(Relaxed);
        let previous = self.links[position].previous.load(Relaxed);
        self.link_behind(previous).store(next, Relaxed);
        match next {
            NONE => self.last.store(previous, Relaxed),
            _ => self.links[next as usize].previous.store(previous, Relaxed),
        }
        self.entries.clear(position);
    }

    /// Moves the range on to the first entry. The caller holds the latch exclusively.
    #[inline]
    fn trim(&self) {
        match self.first.load(Relaxed) {
            NONE => self.entries.trim(),
            first => self.entries.set_tail(first as usize),
        }
    }

    #[cold]
    fn compact(&self) {
        let _exclusive = self.entries.exclusive();
        self.entries.compact();
        self.first.store(NONE, Relaxed);
        self.last.store(NONE, Relaxed);
        for position in 0..self.entries.running() as usize {
            self.link(position);
        }
    }
}

impl<M: Machine> KnownSet<M> for Set<M> {
    fn new(options: &KnownXidsOptions) -> Self {
        let links = (0..options.capacity).map(|_| Links {
            next: M::U32::new(NONE),
            previous: M::U32::new(NONE),
        });
        Self {
            entries: Entries::new(options),
            links: links.collect(),
            first: M::U32::new(NONE),
            last: M::U32::new(NONE),
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
            self.link(position);
            self.entries.publish(position + 1);
        }
    }

    #[inline]
    fn remove(&self, xid: Xid, children: &[Xid]) {
        let _exclusive = self.entries.exclusive();
        for xid in children.iter().chain([&xid]) {
            if let Some(position) = self.entries.find(*xid) {
                self.take_away(position);
            }
        }
        self.trim();
    }

    fn remove_preceding(&self, xid: Xid, prepared: &[Xid]) {
        let positions = self.entries.preceding(xid, prepared);
        let _exclusive = self.entries.exclusive();
        for position in positions {
            self.take_away(position);
        }
        self.trim();
    }

    fn begin(&self, _oldest: Xid, newest_ended: Xid) {
        self.entries.set_newest_ended(newest_ended);
    }

    fn snapshot(&self, xmax: Option<Xid>, into: &mut RunningXids) {
        let _shared = self.entries.shared();
        into.begin(xmax.unwrap_or_else(|| self.entries.newest_ended().next()));
        // Acquire: pairs with the Release in `link`.
        let mut position = self.first.load(Acquire);
        while position != NONE && into.push(self.entries.xid(position as usize)) {
            position = self.links[position as usize].next.load(Acquire);
        }
    }
}
