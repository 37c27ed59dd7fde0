//! The buffer mapping under loom: who finds a page and pins its frame against who takes the frame for another page.
//!
//! One frame, first with page 1. Its content is loom's, so whoever looks at it while it is given away fails the test. The pin
//! count and its steps are those of `buffer/frame.rs` and `buffer/pool.rs` (rules 2 and 8 there), without the states that do
//! not matter here: the frames themselves are for the real machine only.
//!
//! Caught mutations: the finder pinning after it has let go of the partition's latch; the evictor not looking at the pins
//! again under the exclusive latch; `unpin` with `Relaxed`.

#![cfg(feature = "loom")]

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_latch::LwLockAlgorithm;
use clearway_machine::{AtomicWord, DataCell, Loom, Machine};
use clearway_storage::{BufferMapping, PageId, RelId};
use loom::sync::Arc;
use loom::thread;

const FRAME: u32 = 0;

struct Pool {
    mapping: BufferMapping<Loom>,
    pins: <Loom as Machine>::U32,
    /// The number of the page whose content it is.
    content: <Loom as Machine>::Data<u32>,
}

// SAFETY: the content is reached by pin and by whoever has taken the frame out of the table, which is what the test checks.
unsafe impl Sync for Pool {}
// SAFETY: as above.
unsafe impl Send for Pool {}

fn page(block: u32) -> PageId {
    PageId { rel: RelId(1), block }
}

/// As the table has it.
fn key(block: u32) -> u64 {
    u64::from(page(block).rel.0) << 32 | u64::from(block)
}

impl Pool {
    fn with_page(block: u32, algorithm: LwLockAlgorithm) -> Pool {
        let pool = Pool {
            mapping: BufferMapping::new(algorithm),
            pins: <Loom as Machine>::U32::new(0),
            content: <Loom as Machine>::Data::new(block),
        };
        pool.map(block);
        pool
    }

    fn map(&self, block: u32) {
        let page = page(block);
        let mut entries = self.mapping.exclusive(self.mapping.partition_of(page));
        entries.insert(key(block), FRAME);
    }

    fn unpin(&self) {
        self.pins.fetch_sub(1, Release);
    }

    /// Looks a page up, and if it is there looks at it.
    fn find(&self, block: u32) -> bool {
        let page = page(block);
        let found = {
            let entries = self.mapping.shared(self.mapping.partition_of(page));
            let found = entries.get(&key(block)).copied();
            if found.is_some() {
                self.pins.fetch_add(1, Acquire);
            }
            found
        };
        if found.is_some() {
            // SAFETY: pinned; loom fails the test if anybody writes meanwhile.
            self.content
                .with(|content| assert_eq!(unsafe { *content }, block, "the frame has another page"));
            self.unpin();
        }
        found.is_some()
    }

    /// Gives the frame from page `old` to page `new`, if nobody wants it.
    fn take_over(&self, old: u32, new: u32) -> bool {
        if self.pins.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
            return false;
        }
        let unmapped = {
            let mut entries = self.mapping.exclusive(self.mapping.partition_of(page(old)));
            self.pins.load(Acquire) == 1 && entries.remove(&key(old)).is_some()
        };
        if unmapped {
            // SAFETY: pinned by us alone and in no partition; loom fails the test if anybody looks meanwhile.
            self.content.with_mut(|content| unsafe { *content = new });
            self.map(new);
        }
        self.unpin();
        unmapped
    }
}

fn explore(case: impl Fn(LwLockAlgorithm) + Send + Sync + Copy + 'static) {
    for algorithm in [LwLockAlgorithm::Queued, LwLockAlgorithm::SingleCas] {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || case(algorithm));
    }
}

#[test]
fn loom_a_pinned_page_stays() {
    explore(|algorithm| {
        let pool = Arc::new(Pool::with_page(1, algorithm));
        let finder = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || pool.find(1))
        };
        let taken = pool.take_over(1, 2);
        finder.join().unwrap();
        // Whoever comes now finds the one or the other.
        assert_eq!(pool.find(2), taken);
        assert_eq!(pool.find(1), !taken);
    });
}

#[test]
fn loom_a_new_page_is_whole_when_it_is_found() {
    explore(|algorithm| {
        let pool = Arc::new(Pool::with_page(1, algorithm));
        let finder = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || pool.find(2) || pool.find(1))
        };
        pool.take_over(1, 2);
        finder.join().unwrap();
    });
}
