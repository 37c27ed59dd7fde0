//! The published concurrent hash table: lists of nodes that are searched without a latch.
//!
//! # Memory
//! A bucket is a word with the number of its first node. Its nodes form a list in ascending order of their pages.
//!
//! | word of a node | meaning |
//! | --- | --- |
//! | page, frame | the entry; they change only while the node is in no list that a scan can be in |
//! | next, bits 31–1 | number of the next node + 1; 0: none |
//! | next, bit 0 | `MARK`: the entry is removed, and `next` does not change any more |
//! | link | the next node on a free list or a garbage list |
//!
//! There are many garbage lists, each for some of the buckets, and many free lists, each for some of the workers.
//!
//! A node is *free*, *in hand* (of the worker that is about to enter it), *in the list* of a bucket, marked or not, or
//! *garbage*: no list leads to it any more, but a scan that came by before may be at it.
//!
//! # Invariants
//! - H1: an entry is in the map from the CAS that links its node until the CAS that marks it.
//! - H2: a list is in ascending order, and has one node of a page at most.
//! - H3: a node that was unlinked from a bucket is used again only after every scan of that bucket which began before
//!   the unlinking has ended.
//! - H4: nodes in lists without a mark, and nodes in hand, are no more than the frames: each inserter owns a frame
//!   that is in no list.
//!
//! # Steps
//! - *Scan*: (a) announce the bucket's garbage list in a word of the worker's own; (b) a fence; walk; (c) take the
//!   announcement back, a Release.
//! - *Lookup*, in a scan: walk to the page's node, past marks. It is there without a mark: pin its frame, and compare
//!   the frame's tag.
//! - *Insert*: take a free node. In a scan: walk to the page's place, and unlink marked nodes on the way. The page is
//!   there: pin. Otherwise CAS the node into the predecessor's `next`; on failure, walk again.
//! - *Remove*, in a scan: walk to the node; evaluate the condition; mark the node; unlink it by one CAS of the
//!   predecessor's `next`. On failure walk again, which unlinks it.
//! - *Unlink*: the worker whose CAS takes a node out of its list pushes it on the bucket's garbage list.
//! - *Reclaim*, when a worker lacks free nodes: (d) detach a garbage list; (e) a fence; (f) for each worker, wait
//!   until it does not announce that list; all its nodes are free. Which list, and for which workers: `supply.rs`.
//!
//! # Linearization
//! - An insertion: its CAS. It fails if anything was linked to or unlinked from this place, or if the predecessor was
//!   marked. So of two workers that insert a page at the same place, the second walks again and finds the first one's
//!   node (M1, H2).
//! - A removal: for lookups, the step of the frame's state in its condition, which clears `VALID`; they may find the
//!   entry afterwards, but no frame to rely on (M3). For the list, the mark. Only the frame's owner removes its entry,
//!   so the condition holds for one worker.
//! - A lookup that hits: its pin. The state has `VALID`, and the tag, read while pinned, is the page (P1, P2). What led
//!   to the frame does not matter, as in [`concurrent`](super::concurrent).
//! - A lookup that finds no node, or one with a mark: an instant of its scan. It cannot pass over a node that was in
//!   the list all the time: if a node leads to it, then still after that node was unlinked, since the `next` of a
//!   marked node does not change.
//!
//! # Why the simpler version is wrong
//! - *Unlink without a mark.* A worker that inserts behind the node at that moment links its own node to one that is no
//!   longer in the list, and its page is in a frame that no lookup finds.
//! - *Use an unlinked node at once.* A scan that is at it walks on in another bucket, and says of a page behind it
//!   that it is not there. A checkpoint believes it, and leaves a dirty page unwritten. And a CAS that expects the node
//!   as the successor succeeds although the list is another one by now.
//! - *Announce without the fence.* The processor may walk before others see the announcement. With the two fences, (b)
//!   and (e), either the reclaimer sees the announcement, or the scan sees that the nodes are unlinked.
//! - *Announce each node.* A fence for each step of a walk instead of one for each lookup.
//!
//! # Orderings
//! - Release of the CAS that links a node: pairs with the Acquire of a walk's loads; publishes the entry.
//! - Release of (c): pairs with the Acquire of (f); the scan's loads come before the node's next use.
//!
//! # Cost
//! A hit: a store to a line of the worker's own that reclaimers read, a full fence, loads of the bucket and of each
//! node on the way, which are as many cache lines, another store, and the pin. It takes no latch and writes nothing
//! that another lookup reads or writes. The fence and the walk are what the table loses with one client. Removing and
//! entering a page each take a CAS or two in the list, and one on a garbage or free list. 68 bytes a frame, 128 bytes
//! a worker slot, and 16 KiB of lists.
//!
//! One weakness: a reclaimer waits for a scan whose worker has lost its CPU.
//!
//! Origin: the hash table that Robert Haas proposed for PostgreSQL's buffer mapping in 2014; lists after Harris
//! (2001) and Michael (2002).

mod node;
mod scans;
mod supply;

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use clearway_latch::LwLockOptions;
use clearway_machine::{AtomicWord, Machine, Native};

use self::node::{MARK, NO_NODE, Node};
use self::scans::{Scan, Scans};
use self::supply::Supply;
use super::{Insertion, PageMap, PinnedFrame, hash};
use crate::buffer::frame::Frame;
use crate::page::PageId;

/// Buckets for `frames` frames. A checker needs lists of several nodes.
const fn buckets_for<M: Machine>(frames: usize) -> usize {
    if M::EXPLORED { frames.div_ceil(2) } else { frames }
}

/// The table.
pub(in crate::buffer) struct Map<M: Machine = Native> {
    /// First nodes, as in [`Node::next`].
    buckets: Box<[M::U32]>,
    supply: Supply<M>,
    scans: Scans<M>,
}

/// A page's place in a list: the word that leads to the first node which is not of a lower page, and that node.
struct Position<'m, M: Machine> {
    before: &'m M::U32,
    /// As in [`Node::next`].
    at: u32,
    /// The node's, if it has the page.
    node: Option<&'m Node<M>>,
}

impl<M: Machine> Map<M> {
    #[inline]
    fn bucket(&self, page: PageId) -> usize {
        (((hash(page.to_u64()) >> 32) * self.buckets.len() as u64) >> 32) as usize
    }

    #[inline]
    fn node(&self, reference: u32) -> Option<&Node<M>> {
        self.supply.node(reference)
    }

    /// Announces a scan of the bucket.
    #[inline]
    fn scan(&self, bucket: usize) -> Scan<'_, M> {
        self.scans.announce(self.supply.garbage_list(bucket))
    }

    /// Walks to the page's place, for a worker that scans and will change the list there. Unlinks marked nodes.
    fn position(&self, bucket: usize, page: u64) -> Position<'_, M> {
        'walk: loop {
            let mut before = &self.buckets[bucket];
            let mut at = before.load(Acquire);
            while let Some(node) = self.node(at) {
                let next = node.next.load(Acquire);
                if next & MARK != 0 {
                    // It fails if another worker has unlinked the node, or if the one before is marked too.
                    if before
                        .compare_exchange(at, next & !MARK, AcqRel, Acquire)
                        .is_err()
                    {
                        continue 'walk;
                    }
                    self.supply.discard(bucket, at);
                    at = next & !MARK;
                    continue;
                }
                let found = node.page.load(Relaxed);
                if found >= page {
                    let node = (found == page).then_some(node);
                    return Position { before, at, node };
                }
                (before, at) = (&node.next, next);
            }
            return Position {
                before,
                at: NO_NODE,
                node: None,
            };
        }
    }

    /// Pins the frame of a node that this worker has found in a scan; `None` if the frame is another page's by now, so
    /// that the node is about to go.
    #[inline]
    fn pin<'a>(&self, node: &Node<M>, page: PageId, frames: &'a [Frame<M>]) -> Option<PinnedFrame<'a, M>> {
        let frame = &frames[node.frame.load(Relaxed) as usize];
        let state = frame.state.pin();
        if frame.page() == page {
            return Some((frame, state));
        }
        frame.state.unpin();
        None
    }
}

impl<M: Machine> PageMap<M> for Map<M> {
    fn new(frames: usize, _partitions: u32, _lwlock: LwLockOptions) -> Self {
        Self {
            buckets: (0..buckets_for::<M>(frames))
                .map(|_| M::U32::new(NO_NODE))
                .collect(),
            supply: Supply::new(frames),
            scans: Scans::new(),
        }
    }

    #[inline]
    fn lookup_and_pin<'a>(&self, page: PageId, frames: &'a [Frame<M>]) -> Option<PinnedFrame<'a, M>> {
        let bucket = self.bucket(page);
        let wanted = page.to_u64();
        let _scan = self.scan(bucket);
        let mut node = self.node(self.buckets[bucket].load(Acquire))?;
        loop {
            let next = node.next.load(Acquire);
            let found = node.page.load(Relaxed);
            if found >= wanted {
                // The page goes: an instant after the mark it is not in the map.
                let is_there = found == wanted && next & MARK == 0;
                return is_there.then(|| self.pin(node, page, frames)).flatten();
            }
            node = self.node(next)?;
        }
    }

    #[inline]
    fn find<'a>(&self, page: PageId, frames: &'a [Frame<M>]) -> Option<&'a Frame<M>> {
        let bucket = self.bucket(page);
        let wanted = page.to_u64();
        let _scan = self.scan(bucket);
        let mut node = self.node(self.buckets[bucket].load(Acquire))?;
        loop {
            let found = node.page.load(Relaxed);
            if found >= wanted {
                // Marked or not: the frame's version knows.
                return (found == wanted).then(|| &frames[node.frame.load(Relaxed) as usize]);
            }
            node = self.node(node.next.load(Acquire))?;
        }
    }

    fn insert_or_pin<'a>(&self, page: PageId, number: u32, frames: &'a [Frame<M>]) -> Insertion<'a, M> {
        let bucket = self.bucket(page);
        // Outside of the scan: it may wait for the scans of others.
        let added = self.supply.allocate(&self.scans);
        let Some(node) = self.node(added) else {
            unreachable!("a node in hand has a number");
        };
        node.page.store(page.to_u64(), Relaxed);
        node.frame.store(number, Relaxed);
        let scan = self.scan(bucket);
        loop {
            let position = self.position(bucket, page.to_u64());
            if let Some(there) = position.node {
                if let Some(found) = self.pin(there, page, frames) {
                    drop(scan);
                    self.supply.give_back(added);
                    return Insertion::Found(found);
                }
                // The owner of its frame is about to mark it.
                M::yield_now();
                continue;
            }
            node.next.store(position.at, Relaxed);
            if position
                .before
                .compare_exchange(position.at, added, Release, Relaxed)
                .is_ok()
            {
                return Insertion::Inserted;
            }
        }
    }

    fn remove_if(
        &self,
        page: PageId,
        number: u32,
        frames: &[Frame<M>],
        condition: impl FnOnce(&Frame<M>) -> bool,
    ) -> bool {
        let bucket = self.bucket(page);
        let _scan = self.scan(bucket);
        let Position { before, at, node } = self.position(bucket, page.to_u64());
        let Some(node) = node.filter(|node| node.frame.load(Relaxed) == number) else {
            return false;
        };
        if !condition(&frames[number as usize]) {
            return false;
        }
        // This worker owns the frame now, so no other one marks the node; others may change what is behind it.
        let next = node.next.fetch_or(MARK, AcqRel);
        debug_assert!(next & MARK == 0, "an entry is removed twice");
        if before.compare_exchange(at, next, AcqRel, Relaxed).is_ok() {
            self.supply.discard(bucket, at);
        } else {
            self.position(bucket, page.to_u64());
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::map::PARTITIONS;
    use crate::buffer::map::tests::{Random, frames, own_and_insert, pages_where, take_out};

    const FRAMES: u32 = 40;

    impl Map<Native> {
        fn pages_in(&self, bucket: usize) -> Vec<u64> {
            let first = self.node(self.buckets[bucket].load(Relaxed));
            let nodes = std::iter::successors(first, |node| self.node(node.next.load(Relaxed)));
            nodes.map(|node| node.page.load(Relaxed)).collect()
        }
    }

    /// All pages in one bucket: entered in any order, removed at any place, many times as often as there are nodes.
    ///
    /// Mutations that it catches: an unlinked node that is not put on a garbage list (allocation has no end); a page
    /// entered behind the one that it precedes.
    #[test]
    fn a_list_is_in_order_and_no_node_is_lost() {
        let frames = frames(FRAMES);
        let map = Map::<Native>::new(frames.len(), PARTITIONS, LwLockOptions::default());
        let pages = pages_where(FRAMES, |page| map.bucket(page) == 3);
        let mut random = Random::new();
        let mut below = |end| random.below(end);
        for _ in 0..20 {
            let mut absent: Vec<u32> = (0..FRAMES).collect();
            let mut entered = Vec::new();
            while !absent.is_empty() || !entered.is_empty() {
                if !absent.is_empty() && (entered.is_empty() || below(3) > 0) {
                    let number = absent.swap_remove(below(absent.len()));
                    own_and_insert(&map, pages[number as usize], number, &frames);
                    entered.push(number);
                } else {
                    let number = entered.swap_remove(below(entered.len()));
                    take_out(&map, pages[number as usize], number, &frames);
                }
                let mut expected: Vec<u64> = entered
                    .iter()
                    .map(|&number| pages[number as usize].to_u64())
                    .collect();
                expected.sort_unstable();
                assert_eq!(map.pages_in(3), expected);
                let known = map.supply.free_nodes() + map.supply.garbage_nodes() + entered.len();
                assert_eq!(known, map.supply.nodes());
            }
        }
    }
}
