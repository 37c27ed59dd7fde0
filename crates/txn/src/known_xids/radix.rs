//! A tree of sums over the entries: each node knows how many run below it, and which is the first.
//!
//! ```text
//!   level 2                 5 run, the first at 0
//!   level 1     4, first 0            1, first 71              … eight nodes a node
//!   level 0     3, first 0   1, first 14   …                   eight entries a node: one word of flags
//!   entries     1 1 0 0 0 1 0 0 | 0 0 0 0 0 0 1 0 | …
//! ```
//!
//! A snapshot goes down from the root into nodes with a sum above 0, beginning at the first; below a sum of 1 it goes
//! straight to the entry.
//!
//! # Rules
//! - T1: a node is one word, so that a reader never finds a sum of one moment beside a first entry of another.
//! - T2: an entry is appended without the latch: entry and flag, then the nodes from below. Each is stored by a Release,
//!   which pairs with the Acquire of a reader on its way down; so what a sum counts is there. Sums become smaller under
//!   the latch in exclusive mode only.
//!
//! # Costs
//! add and remove: a node a level beside the array's work, and a remove of a first entry looks for the next first one.
//! snapshot: a latch, and a path of nodes a running transaction, fewer where they are neighbours. 10.1 bytes an entry.
//! Compaction: when full.
//!
//! Origin: sums over blocks of entries, proposed for PostgreSQL; the tree is that of a van Emde Boas layout without the
//! recursion.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, Machine};

use super::entries::{Entries, FLAGS};
use super::{KnownSet, KnownXidsOptions, RunningXids};
use crate::Xid;

/// Children of a node: a cache line of nodes, or a word of flags.
const CHILDREN: usize = 8;

/// A node's word: the first running entry above, how many run below (T1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sum {
    first: u32,
    count: u32,
}

impl Sum {
    fn of(word: u64) -> Self {
        Self {
            first: (word >> 32) as u32,
            count: word as u32,
        }
    }

    fn word(self) -> u64 {
        u64::from(self.first) << 32 | u64::from(self.count)
    }
}

/// Entries under a tree.
#[derive(Debug)]
pub(crate) struct Set<M: Machine> {
    entries: Entries<M>,
    /// From the lowest to the root's, which has one node.
    levels: Box<[Box<[M::U64]>]>,
}

impl<M: Machine> Set<M> {
    /// The entry at `position`, which is in no sum yet, runs.
    #[inline]
    fn count_in(&self, position: usize) {
        let mut node = position;
        for level in &self.levels {
            node /= CHILDREN;
            let mut sum = Sum::of(level[node].load(Relaxed));
            if sum.count == 0 {
                sum.first = position as u32;
            }
            sum.count += 1;
            // Release: pairs with the Acquire in `collect`; T2.
            level[node].store(sum.word(), Release);
        }
    }

    /// The entry at `position`, whose flag is cleared, has ended. The caller holds the latch exclusively.
    #[inline]
    fn count_out(&self, position: usize) {
        let (mut node, mut next) = (position / CHILDREN, None);
        for (number, level) in self.levels.iter().enumerate() {
            let mut sum = Sum::of(level[node].load(Relaxed));
            sum.count -= 1;
            if sum.count > 0 && sum.first as usize == position {
                next = next.or_else(|| self.first_below(number, node, position));
                sum.first = next.unwrap_or(sum.first);
            }
            level[node].store(sum.word(), Relaxed);
            node /= CHILDREN;
        }
    }

    /// The first running entry below a node of level `number`, behind `position`, which was the first.
    fn first_below(&self, number: usize, node: usize, position: usize) -> Option<u32> {
        let Some(below) = number.checked_sub(1) else {
            let flags = self.entries.flags(node);
            return (flags != 0).then(|| (node * FLAGS) as u32 + flags.trailing_zeros() / 8);
        };
        let level = &self.levels[below];
        // The child with `position` has no other: its own sum would have found it.
        let child = position / CHILDREN.pow(below as u32 + 1) + 1;
        let sums = child..level.len().min((node + 1) * CHILDREN);
        let mut sums = sums.map(|child| Sum::of(level[child].load(Relaxed)));
        sums.find(|sum| sum.count > 0).map(|sum| sum.first)
    }

    /// Collects what runs below a node; `false` once an xid is not before xmax. The caller holds the latch shared.
    fn collect(&self, number: usize, node: usize, into: &mut RunningXids) -> bool {
        // Acquire: pairs with the Release in `count_in`; T2.
        let sum = Sum::of(self.levels[number][node].load(Acquire));
        let first = sum.first as usize;
        match (sum.count, number) {
            (0, _) => true,
            (1, _) => into.push(self.entries.xid(first)),
            (_, 0) => {
                let mut flags = self.entries.flags(node);
                while flags != 0 {
                    let position = node * FLAGS + flags.trailing_zeros() as usize / 8;
                    if !into.push(self.entries.xid(position)) {
                        return false;
                    }
                    flags &= flags - 1;
                }
                true
            }
            _ => {
                let level = self.levels[number - 1].len();
                let child = first / CHILDREN.pow(number as u32);
                (child..level.min((node + 1) * CHILDREN)).all(|child| self.collect(number - 1, child, into))
            }
        }
    }

    fn take_away(&self, position: usize) {
        self.entries.clear(position);
        self.count_out(position);
    }

    #[cold]
    fn compact(&self) {
        let _exclusive = self.entries.exclusive();
        let mut nodes = (self.entries.tail() + self.entries.range()).div_ceil(CHILDREN);
        for level in &self.levels {
            for node in &level[..nodes] {
                node.store(0, Relaxed);
            }
            nodes = nodes.div_ceil(CHILDREN);
        }
        self.entries.compact();
        for position in 0..self.entries.running() as usize {
            self.count_in(position);
        }
    }
}

impl<M: Machine> KnownSet<M> for Set<M> {
    fn new(options: &KnownXidsOptions) -> Self {
        let mut levels = Vec::new();
        let mut nodes = options.capacity as usize;
        while nodes > 1 || levels.is_empty() {
            nodes = nodes.div_ceil(CHILDREN);
            levels.push((0..nodes).map(|_| M::U64::new(0)).collect());
        }
        Self {
            entries: Entries::new(options),
            levels: levels.into(),
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
            self.count_in(position);
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
        self.entries.trim();
    }

    fn remove_preceding(&self, xid: Xid, prepared: &[Xid]) {
        let positions = self.entries.preceding(xid, prepared);
        let _exclusive = self.entries.exclusive();
        for position in positions {
            self.take_away(position);
        }
        self.entries.trim();
    }

    fn begin(&self, _oldest: Xid, newest_ended: Xid) {
        self.entries.set_newest_ended(newest_ended);
    }

    fn snapshot(&self, xmax: Option<Xid>, into: &mut RunningXids) {
        let _shared = self.entries.shared();
        into.begin(xmax.unwrap_or_else(|| self.entries.newest_ended().next()));
        self.collect(self.levels.len() - 1, 0, into);
    }
}
