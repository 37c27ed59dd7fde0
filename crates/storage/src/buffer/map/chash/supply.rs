//! The nodes that are in no bucket's list: never used, free, or garbage.
//!
//! # Memory
//! | place | number | a line of its own |
//! | --- | --- | --- |
//! | nodes that were never used | one counter | yes; it is only read once they are used up |
//! | free list | one for a *group* of worker slots | yes, with the group's place in the garbage lists |
//! | garbage list | one for each 64th bucket | yes |
//!
//! # Steps of `allocate`
//! 1. A free node of the worker's group.
//! 2. Nodes that were never used: several at a time, of which the others become free for the group.
//! 3. The garbage lists, from where the group's last reclaimer stopped: (d) detach a list; (e) a fence; (f) for each
//!    worker, wait until it does not announce that list. Its first node is in hand, the others are free for the group.
//! 4. All the nodes that are free for another group.
//! 5. None (H4: other workers have them in hand, to reclaim or to enter them): yield, and begin again.
//!
//! # Why the simpler version is wrong
//! - *One list for what is reclaimed, of which all take.* When the nodes are used up, each list is empty but the one
//!   that was filled last. So all workers change the same line, for each page that they read in. This table had that
//!   with eight lists, and stopped at 32 clients in the simulation of four sockets
//!   (`docs/read-path-predictions.md`).
//! - *A garbage list of a group's own.* A node goes where the scans of its bucket are announced (H3); which group will
//!   want it is not known. So groups take turns at the garbage lists.
//! - *Free nodes of other groups before garbage.* Then workers take turns at the free lists of others, and garbage is
//!   not reclaimed before all of them are empty.
//!
//! # Cost
//! A reclaimer reads a line for each worker slot that has ever scanned. That is shared by as many allocations as the
//! list had nodes: with `s` nodes to spare, `g` groups at work and `l` garbage lists about 2s / (g + l).

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, Machine, Native, Padded};

use super::node::{NO_NODE, Node, reference};
use super::scans::Scans;

/// Groups of worker slots. Two under a checker, of which one takes what the other has.
const fn groups<M: Machine>() -> usize {
    if M::EXPLORED { 2 } else { 64 }
}
/// Number of garbage lists: a reclaimer waits for the scans of the buckets of one. A checker needs scans that meet.
const fn garbage_lists<M: Machine>() -> usize {
    if M::EXPLORED { 1 } else { 64 }
}
/// Nodes that were never used, for a group at a time.
const fn unused_taken<M: Machine>() -> u32 {
    if M::EXPLORED { 1 } else { 32 }
}
/// Nodes for `frames` frames. As many as frames are enough (H4); the others may lie on garbage lists before a
/// reclaimer is needed.
const fn nodes_for<M: Machine>(frames: usize) -> usize {
    if M::EXPLORED {
        // One to spare in the smallest pool, so that a page can come in there while a scan goes on; none in a larger
        // one, so that a node is used again at once.
        if frames == 1 { 2 } else { frames }
    } else {
        2 * frames + 16
    }
}

/// The source from which the workers of a group allocate.
struct Group<M: Machine> {
    /// Free nodes. Bits 31–0: reference to the first one; bits 63–32 count changes, so that a list which has the same
    /// first node again is not taken for unchanged.
    free: M::U64,
    /// The garbage list to look at next.
    garbage_next: M::U32,
}

pub(super) struct Supply<M: Machine = Native> {
    nodes: Box<[Node<M>]>,
    /// Number of nodes that were ever taken; at least all, when none is left that was never used.
    used: Padded<M::U32>,
    groups: Box<[Padded<Group<M>>]>,
    /// Unlinked nodes, by bucket: the first one.
    garbage: Box<[Padded<M::U32>]>,
}

impl<M: Machine> Supply<M> {
    pub(super) fn new(frames: usize) -> Self {
        let count = nodes_for::<M>(frames);
        assert!(
            u32::try_from(count).is_ok_and(|count| count < 1 << 30),
            "a buffer pool of 2^30 frames or more"
        );
        // Groups begin at different lists.
        let group = |number: usize| Group {
            free: M::U64::new(NO_NODE.into()),
            garbage_next: M::U32::new((number * garbage_lists::<M>() / groups::<M>()) as u32),
        };
        Self {
            nodes: (0..count).map(|_| Node::new()).collect(),
            used: Padded(M::U32::new(0)),
            groups: (0..groups::<M>()).map(|number| Padded(group(number))).collect(),
            garbage: (0..garbage_lists::<M>())
                .map(|_| Padded(M::U32::new(NO_NODE)))
                .collect(),
        }
    }

    /// The node of a reference, whether marked or not.
    #[inline]
    pub(super) fn node(&self, reference: u32) -> Option<&Node<M>> {
        (reference >> 1)
            .checked_sub(1)
            .map(|number| &self.nodes[number as usize])
    }

    /// The garbage list of a bucket's nodes.
    #[inline]
    pub(super) fn garbage_list(&self, bucket: usize) -> usize {
        bucket % garbage_lists::<M>()
    }

    /// The group of the calling worker.
    fn own_group(&self) -> usize {
        M::known_worker().map_or(0, |worker| worker.0 as usize) % self.groups.len()
    }

    /// A node in hand, for a worker that does not scan.
    pub(super) fn allocate(&self, scans: &Scans<M>) -> u32 {
        self.allocate_for(self.own_group(), scans)
    }

    #[inline]
    fn allocate_for(&self, own: usize, scans: &Scans<M>) -> u32 {
        self.pop_free(own)
            .unwrap_or_else(|| self.allocate_slow(own, scans))
    }

    #[cold]
    fn allocate_slow(&self, own: usize, scans: &Scans<M>) -> u32 {
        loop {
            let found = self
                .take_unused(own)
                .or_else(|| self.reclaim_next(own, scans))
                .or_else(|| self.take_from_others(own))
                .or_else(|| self.pop_free(own));
            if let Some(reference) = found {
                return reference;
            }
            M::yield_now();
        }
    }

    /// Gives back a node in hand that was not entered: no scan has seen it.
    pub(super) fn give_back(&self, reference: u32) {
        if let Some(node) = self.node(reference) {
            node.link.store(NO_NODE, Relaxed);
            self.add_free(self.own_group(), reference);
        }
    }

    /// Puts a node that this worker has unlinked from the bucket on the bucket's garbage list.
    pub(super) fn discard(&self, bucket: usize, reference: u32) {
        let list = &*self.garbage[self.garbage_list(bucket)];
        let Some(node) = self.node(reference) else { return };
        let mut first = list.load(Relaxed);
        loop {
            node.link.store(first, Relaxed);
            // Release: pairs with the Acquire in `reclaim`; publishes the link, and that the node is unlinked.
            match list.compare_exchange(first, reference, Release, Relaxed) {
                Ok(_) => return,
                Err(found) => first = found,
            }
            M::label(std::ptr::from_ref(list).cast(), "BufferMappingGarbage");
        }
    }

    fn pop_free(&self, group: usize) -> Option<u32> {
        self.take_free(group, |node| node.link.load(Relaxed))
    }

    /// Takes nodes from a group's free list, of which `rest` says where it goes on; the first one.
    fn take_free(&self, group: usize, rest: impl Fn(&Node<M>) -> u32) -> Option<u32> {
        let list = &self.groups[group].free;
        let mut first = list.load(Acquire);
        loop {
            let reference = first as u32;
            let changed = changed(first, rest(self.node(reference)?));
            // Acquire: pairs with the Release in `add_free`; the link is the node's.
            match list.compare_exchange(first, changed, Acquire, Acquire) {
                Ok(_) => return Some(reference),
                Err(found) => first = found,
            }
            M::label(std::ptr::from_ref(list).cast(), "BufferMappingFree");
        }
    }

    /// Adds the nodes of a chain, which ends with a link to no node.
    fn add_free(&self, group: usize, chain: u32) {
        let Some(first_added) = self.node(chain) else {
            return;
        };
        let list = &self.groups[group].free;
        let mut first = list.load(Relaxed);
        let mut last = None;
        loop {
            // Mostly the list is empty, and the chain need not be walked.
            if last.is_some() || first as u32 != NO_NODE {
                let last = *last.get_or_insert_with(|| self.last(first_added));
                last.link.store(first as u32, Relaxed);
            }
            match list.compare_exchange(first, changed(first, chain), Release, Relaxed) {
                Ok(_) => return,
                Err(found) => first = found,
            }
        }
    }

    /// The last node of a chain.
    fn last<'s>(&'s self, mut node: &'s Node<M>) -> &'s Node<M> {
        while let Some(next) = self.node(node.link.load(Relaxed)) {
            node = next;
        }
        node
    }

    /// Makes the nodes of a chain free for the group, but for the first one, which is in hand.
    fn keep_first(&self, own: usize, chain: u32) -> Option<u32> {
        self.add_free(own, self.node(chain)?.link.load(Relaxed));
        Some(chain)
    }

    /// A node that was never used; those behind it are free for the group.
    fn take_unused(&self, own: usize) -> Option<u32> {
        let count = self.nodes.len() as u32;
        if self.used.load(Relaxed) >= count {
            return None;
        }
        let first = self.used.fetch_add(unused_taken::<M>(), Relaxed);
        let end = (first + unused_taken::<M>()).min(count);
        for number in (first + 1)..end {
            self.nodes[number as usize - 1]
                .link
                .store(reference(number), Relaxed);
        }
        (first < end)
            .then(|| self.keep_first(own, reference(first)))
            .flatten()
    }

    /// Looks at each garbage list at most, and takes the first one that has nodes.
    fn reclaim_next(&self, own: usize, scans: &Scans<M>) -> Option<u32> {
        (0..self.garbage.len()).find_map(|_| {
            let next = self.groups[own].garbage_next.fetch_add(1, Relaxed) as usize;
            let chain = self.reclaim(next % self.garbage.len(), scans)?;
            self.keep_first(own, chain)
        })
    }

    /// The nodes of a garbage list, which no scan sees any more; `None` if it is empty.
    fn reclaim(&self, list: usize, scans: &Scans<M>) -> Option<u32> {
        if self.garbage[list].load(Relaxed) == NO_NODE {
            return None;
        }
        // Acquire: pairs with the Release in `discard`.
        let chain = self.garbage[list].swap(NO_NODE, Acquire);
        self.node(chain)?;
        scans.wait_for_scans(list);
        Some(chain)
    }

    /// Takes nodes that are free for another group.
    fn take_from_others(&self, own: usize) -> Option<u32> {
        (1..self.groups.len()).find_map(|distance| {
            let chain = self.take_free((own + distance) % self.groups.len(), |_| NO_NODE)?;
            self.keep_first(own, chain)
        })
    }
}

/// The word of a free list that now begins with this node.
fn changed(list: u64, first: u32) -> u64 {
    (list >> 32).wrapping_add(1) << 32 | u64::from(first)
}

#[cfg(test)]
impl Supply<Native> {
    /// Nodes of a chain.
    fn linked(&self, first: u32) -> usize {
        std::iter::successors(self.node(first), |node| self.node(node.link.load(Relaxed))).count()
    }

    /// Nodes that are free or were never used.
    pub(super) fn free_nodes(&self) -> usize {
        let free = self
            .groups
            .iter()
            .map(|group| self.linked(group.free.load(Relaxed) as u32));
        free.sum::<usize>() + self.nodes.len().saturating_sub(self.used.load(Relaxed) as usize)
    }

    pub(super) fn garbage_nodes(&self) -> usize {
        self.garbage
            .iter()
            .map(|list| self.linked(list.load(Relaxed)))
            .sum()
    }

    pub(super) fn nodes(&self) -> usize {
        self.nodes.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::time::Duration;

    use super::*;

    /// One group takes nodes that were never used, and gives one back; the other wants all there are.
    ///
    /// Mutations that it catches: a group that does not take what is free for others (allocation has no end); nodes
    /// that are made free and hide those that were free.
    #[test]
    fn a_group_gets_what_is_free_for_another() {
        let (supply, scans) = (Supply::<Native>::new(100), Scans::new());
        let own = supply.own_group();
        supply.give_back(supply.allocate(&scans));
        assert_eq!(supply.free_nodes(), supply.nodes());
        assert!(supply.linked(supply.groups[own].free.load(Relaxed) as u32) > 10);
        let mut taken = HashSet::new();
        while taken.len() < supply.nodes() {
            let other = (own + 4) % supply.groups.len();
            assert!(
                taken.insert(supply.allocate_for(other, &scans)),
                "a node in two hands"
            );
        }
        assert_eq!(supply.free_nodes(), 0);
    }

    /// Two groups want a node each, and there is garbage on every list: each takes a list of its own, and neither takes
    /// what the other has reclaimed.
    ///
    /// Mutation that it catches: groups that all begin with the same garbage list.
    #[test]
    fn groups_reclaim_different_lists() {
        let (supply, scans) = (Supply::<Native>::new(1_000), Scans::new());
        for bucket in 0..supply.nodes() {
            supply.discard(bucket, supply.allocate_for(0, &scans));
        }
        assert_eq!((supply.free_nodes(), supply.garbage_nodes()), (0, supply.nodes()));
        let before: Vec<u32> = supply.garbage.iter().map(|list| list.load(Relaxed)).collect();
        for group in [3, 40] {
            let first = supply.allocate_for(group, &scans);
            assert_eq!(first, before[group], "the list where group {group} begins");
        }
        let empty = |list: &&Padded<_>| AtomicWord::load(&***list, Relaxed) == NO_NODE;
        assert_eq!(supply.garbage.iter().filter(empty).count(), 2);
    }

    /// H3: what was unlinked during a scan is not used again before the scan has ended.
    ///
    /// Mutation that it catches: a reclaimer that does not look at the announcements.
    #[test]
    fn a_scan_keeps_the_garbage_of_its_bucket() {
        let (supply, scans) = (Supply::<Native>::new(100), Scans::new());
        let node = supply.allocate(&scans);
        supply.discard(3, node);
        let other = scans.announce(supply.garbage_list(4));
        assert_eq!(supply.reclaim(supply.garbage_list(4), &scans), None);
        drop(other);
        let scan = scans.announce(supply.garbage_list(3));
        std::thread::scope(|scope| {
            let reclaimer = scope.spawn(|| supply.reclaim(supply.garbage_list(3), &scans));
            // However long this is, the reclaimer may not have ended; the longer, the surer a wrong one is seen.
            std::thread::sleep(Duration::from_millis(50));
            assert!(!reclaimer.is_finished(), "nodes that a scan may see are free");
            drop(scan);
            assert_eq!(reclaimer.join().unwrap(), Some(node));
        });
    }
}
