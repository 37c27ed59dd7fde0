//! The baseline: a hash table in partitions, each under a latch: 128 of them, or as many as the pool's options say.
//!
//! A page is found and pinned under its partition's shared latch, inserted and removed under the exclusive one. So M1
//! and M3 hold: under the exclusive latch no lookup of the partition's pages can add a pin. Other pins are claims: only
//! the clock hand, and a worker that drops a relation, pin a frame without looking its page up.
//!
//! Costs: an acquisition and a release of the latch for each lookup, two writes to a cache line that one page in 128
//! shares. For an index root that line is as hot as the root's frame.
//!
//! Origin: PostgreSQL since 8.2, with 16 partitions until 9.4 and 128 since 9.5.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};

use clearway_latch::{Latched, LwLockOptions};
use clearway_machine::{Machine, Native, Padded};

use super::{BUFFER_MAPPING, Insertion, PageMap, PinnedFrame, hash};
use crate::buffer::frame::Frame;
use crate::page::PageId;

/// Hashes a page as [`hash`] does.
#[derive(Default)]
struct PageHasher(u64);

impl Hasher for PageHasher {
    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("pages are hashed as u64");
    }
    fn write_u64(&mut self, page: u64) {
        self.0 = hash(page);
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

/// Page to frame number.
type Partition = HashMap<u64, u32, BuildHasherDefault<PageHasher>>;

/// The partitions, a power of two of them. No worker holds two.
pub(in crate::buffer) struct Map<M: Machine = Native> {
    partitions: Box<[Padded<Latched<Partition, M>>]>,
}

impl<M: Machine> Map<M> {
    /// The table inside uses the hash's low and top bits.
    #[inline]
    fn partition(&self, page: PageId) -> &Latched<Partition, M> {
        &self.partitions[(hash(page.to_u64()) >> 40) as usize & (self.partitions.len() - 1)]
    }
}

impl<M: Machine> PageMap<M> for Map<M> {
    fn new(_frames: usize, partitions: u32, lwlock: LwLockOptions) -> Self {
        let partition = || Padded(Latched::new(&BUFFER_MAPPING, lwlock, Partition::default()));
        Self {
            partitions: (0..partitions.next_power_of_two()).map(|_| partition()).collect(),
        }
    }

    #[inline]
    fn lookup_and_pin<'a>(&self, page: PageId, frames: &'a [Frame<M>]) -> Option<PinnedFrame<'a, M>> {
        let entries = self.partition(page).shared();
        entries.get(&page.to_u64()).map(|&number| {
            let frame = &frames[number as usize];
            (frame, frame.state.pin())
        })
    }

    #[inline]
    fn find<'a>(&self, page: PageId, frames: &'a [Frame<M>]) -> Option<&'a Frame<M>> {
        let entries = self.partition(page).shared();
        entries
            .get(&page.to_u64())
            .map(|&number| &frames[number as usize])
    }

    fn insert_or_pin<'a>(&self, page: PageId, number: u32, frames: &'a [Frame<M>]) -> Insertion<'a, M> {
        match self.partition(page).exclusive().entry(page.to_u64()) {
            Entry::Vacant(vacant) => {
                vacant.insert(number);
                Insertion::Inserted
            }
            Entry::Occupied(occupied) => {
                let frame = &frames[*occupied.get() as usize];
                Insertion::Found((frame, frame.state.pin()))
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
        let mut entries = self.partition(page).exclusive();
        let removes = entries.get(&page.to_u64()) == Some(&number) && condition(&frames[number as usize]);
        if removes {
            entries.remove(&page.to_u64());
        }
        removes
    }
}
