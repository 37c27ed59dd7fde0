//! Counts of the acquisitions of latches, by class and mode: the feature `count-acquisitions`.
//!
//! An uncontended acquisition is one atomic instruction and a few others, and a counter shared by threads
//! would cost more than the latch. So each thread counts in a block of its own, with plain additions, and a
//! reader adds the blocks up. A block outlives its thread, with its counts, and goes to a later thread.
//!
//! The feature is off by default: it adds five instructions to an acquisition (see
//! `docs/mechanisms/lwlock.md`). The engine turns it on.

use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;

use super::Wait;

/// Classes with a place of their own; later ones share the last place.
const PLACES: usize = 64;

/// Modes with a count of their own.
const MODES: usize = 4;

/// The counts of one thread: each mode of each place.
#[derive(Debug)]
struct Block([AtomicU64; MODES * PLACES]);

#[derive(Debug)]
struct Blocks {
    all: Vec<&'static Block>,
    free: Vec<&'static Block>,
    places: u8,
}

static BLOCKS: Mutex<Blocks> = Mutex::new(Blocks {
    all: Vec::new(),
    free: Vec::new(),
    places: 0,
});

thread_local! {
    static MINE: Cell<Option<&'static Block>> = const { Cell::new(None) };
    static LEASE: Lease = const { Lease };
}

/// Gives the thread's block back when the thread ends.
struct Lease;

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(block) = MINE.take() {
            blocks().free.push(block);
        }
    }
}

fn blocks() -> std::sync::MutexGuard<'static, Blocks> {
    BLOCKS.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A place for one more class.
pub(crate) fn new_place() -> u8 {
    let mut blocks = blocks();
    let place = blocks.places.min(PLACES as u8 - 1);
    blocks.places = blocks.places.saturating_add(1);
    place
}

fn index(place: u8, mode: Wait) -> usize {
    MODES * (usize::from(place) % PLACES) + mode as usize
}

/// Counts one acquisition.
#[inline]
pub(crate) fn count(place: u8, mode: Wait) {
    // Only this thread writes the block, so a load and a store are enough; relaxed, since a sum needs no
    // order.
    let add = |block: &Block| {
        let counter = &block.0[index(place, mode)];
        counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    };
    match MINE.get() {
        Some(block) => add(block),
        None => {
            // A thread that is ending has no block, and does not count.
            if let Some(block) = lease() {
                add(block);
            }
        }
    }
}

#[cold]
fn lease() -> Option<&'static Block> {
    LEASE.try_with(|_| {}).ok()?;
    let mut blocks = blocks();
    let block = blocks.free.pop().unwrap_or_else(|| {
        let block: &'static Block = Box::leak(Box::new(Block([const { AtomicU64::new(0) }; MODES * PLACES])));
        blocks.all.push(block);
        block
    });
    MINE.set(Some(block));
    Some(block)
}

/// All acquisitions so far, of classes at this place.
pub(crate) fn total(place: u8, mode: Wait) -> u64 {
    let blocks = blocks();
    let counts = blocks
        .all
        .iter()
        .map(|block| block.0[index(place, mode)].load(Ordering::Relaxed));
    counts.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_add_up_and_blocks_are_used_again() {
        let place = new_place();
        let before = total(place, Wait::Shared);
        for _ in 0..3 {
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| (0..1_000).for_each(|_| count(place, Wait::Shared)));
                }
            });
        }
        assert_eq!(total(place, Wait::Shared) - before, 12_000);
        assert_eq!(total(place, Wait::Exclusive), 0);
        assert!(blocks().all.len() < 12, "twelve threads, four at a time");
    }
}
