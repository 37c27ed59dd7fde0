//! Which frame holds a page: a hash table in 128 partitions, each under a latch (the baseline).
//!
//! R1: an entry is added and removed only under its partition's exclusive latch, and a frame is pinned under
//! the shared one; so a frame found here cannot be given to another page before the finder's pin counts.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use clearway_latch::{LatchClass, Latched, LatchedExclusive, LatchedShared, LwLockOptions};
use clearway_machine::{Machine, Native, Padded, WaitEvent, switch};

use crate::page::PageId;

static BUFFER_MAPPING: LatchClass = LatchClass::new("BufferMapping", WaitEvent::BufferMapping, 410);

const PARTITIONS: usize = 128;

/// Fibonacci hashing of one u64: keys are our own page numbers, so a client cannot choose colliding ones.
#[derive(Debug, Default)]
pub struct PageHasher(u64);

impl Hasher for PageHasher {
    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("page numbers are hashed as u64");
    }
    fn write_u64(&mut self, number: u64) {
        self.0 = hash(number);
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

fn hash(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ mixed >> 32
}

switch! {
    /// The table from page to buffer.
    pub enum BufferMapVariant = "buffer_map", best Partitioned, planned ["chash", "concurrent"] {
        /// 128 partitions, a latch each.
        Partitioned = "partitioned",
    }
}

/// One partition: page to frame number.
pub type MappingPartition = HashMap<u64, u32, BuildHasherDefault<PageHasher>>;

/// The buffer mapping table.
#[derive(Debug)]
pub struct BufferMapping<M: Machine = Native> {
    partitions: Box<[Padded<Latched<MappingPartition, M>>]>,
}

impl<M: Machine> BufferMapping<M> {
    /// An empty table.
    pub fn new(lwlock: impl Into<LwLockOptions>) -> Self {
        let lwlock = lwlock.into();
        let partition = || Padded(Latched::new(&BUFFER_MAPPING, lwlock, MappingPartition::default()));
        Self {
            partitions: (0..PARTITIONS).map(|_| partition()).collect(),
        }
    }

    /// The number of the partition `page` belongs to. The table inside uses the hash's low and top bits.
    pub fn partition_of(&self, page: PageId) -> usize {
        (hash(page.to_u64()) >> 40) as usize % PARTITIONS
    }

    /// Partition `number`, to look in.
    pub fn shared(&self, number: usize) -> LatchedShared<'_, MappingPartition, M> {
        self.partitions[number].shared()
    }

    /// Partition `number`, to change. A worker that needs two takes the lower number first.
    pub fn exclusive(&self, number: usize) -> LatchedExclusive<'_, MappingPartition, M> {
        self.partitions[number].exclusive()
    }
}
