//! Lists of frames that hold no page, one for each group of CPUs. A list is a stack, and needs no latch.
//!
//! Protects: nothing. An entry is a hint: the frame held no page when it was entered, and may hold one by now. A worker
//! that takes an entry claims the frame, which is where a race is decided.
//!
//! # State
//! | word | bits | meaning |
//! | --- | --- | --- |
//! | `first[list]` | 0–31 | the first frame of the list, or `END` |
//! | | 32–63 | number of changes of this word, so that no value comes twice |
//! | `next[frame]` | 0–31 | the frame behind it in its list, `END`, or `UNLISTED` |
//!
//! # Invariants
//! - L1: while `first` has one value, `next` of that first frame is the frame behind it.
//! - L2: a frame is in one list at most. Only the worker that has changed its `next` from `UNLISTED` enters it.
//! - L3: entries may be missing. A frame that is freed while another worker takes out its older entry is not entered.
//!   The clock's hand finds it.
//!
//! # Why the count is needed
//! Frames 1 and 2 are listed, in this order.
//!
//! | time | Alice | Bob | list |
//! | --- | --- | --- | --- |
//! | 1 | reads: 1 is first, 2 behind it | | 1, 2 |
//! | 2 | | takes 1 and 2, frees 1 | 1 |
//! | 3 | 1 is still first: replaces it by 2 | | **2, which Bob uses** |
//!
//! With the count Alice's compare-and-swap fails at time 3. A worker that sleeps through exactly 2^32 changes between
//! its load and its compare-and-swap would not notice; it would cost hints, since entries are no more (see above).
//!
//! # Why L1 holds for a worker that takes an entry
//! It reads `first`, then `next` of that frame. If `next` has been changed since, the frame was taken out before, by a
//! compare-and-swap on `first`, so its own fails: no value of `first` comes twice.
//!
//! Costs: 4 bytes a frame and 128 a list. While all lists are empty, a miss reads one line a list, which no worker
//! writes.
//!
//! Origin: the stack of R. K. Treiber (1986) with a counted head.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, Machine, Padded};

/// `next` of the last frame of a list; `first` of an empty one.
const END: u32 = u32::MAX;
/// `next` of a frame in no list.
const UNLISTED: u32 = u32::MAX - 1;

/// The lists.
pub(super) struct FreeLists<M: Machine> {
    first: Box<[Padded<M::U64>]>,
    next: Box<[M::U32]>,
}

/// The value of `first` that follows `found`.
fn changed(found: u64, first: u32) -> u64 {
    let changes = (found >> 32) as u32;
    (u64::from(changes.wrapping_add(1)) << 32) | u64::from(first)
}

impl<M: Machine> FreeLists<M> {
    /// `lists` lists, with all frames dealt out to them in pieces.
    pub(super) fn full(lists: usize, frames: usize) -> Self {
        let piece = frames.div_ceil(lists).max(1);
        let next = |frame: usize| {
            let last = (frame + 1).is_multiple_of(piece) || frame + 1 == frames;
            M::U32::new(if last { END } else { frame as u32 + 1 })
        };
        let first = |list: usize| {
            let frame = list * piece;
            let frame = if frame < frames { frame as u32 } else { END };
            Padded(M::U64::new(u64::from(frame)))
        };
        Self {
            first: (0..lists).map(first).collect(),
            next: (0..frames).map(next).collect(),
        }
    }

    /// Number of lists.
    pub(super) fn count(&self) -> usize {
        self.first.len()
    }

    /// True if a list has no entry at this moment.
    pub(super) fn is_empty(&self, list: usize) -> bool {
        self.first[list].load(Relaxed) as u32 == END
    }

    /// Enters a frame in a list, unless it is in one.
    pub(super) fn push(&self, list: usize, frame: u32) {
        let next = &self.next[frame as usize];
        // L2.
        if next.compare_exchange(UNLISTED, END, Relaxed, Relaxed).is_err() {
            return;
        }
        let first = &self.first[list];
        let mut found = first.load(Relaxed);
        loop {
            next.store(found as u32, Relaxed);
            // Release: pairs with the Acquire in `pop`; publishes `next` (L1).
            match first.compare_exchange_weak(found, changed(found, frame), Release, Relaxed) {
                Ok(_) => return,
                Err(now) => found = now,
            }
        }
    }

    /// Takes the first frame out of a list.
    pub(super) fn pop(&self, list: usize) -> Option<u32> {
        let first = &self.first[list];
        // Acquire, here and below: pairs with the Release in `push`. Each change of `first` is a read-modify-write, so
        // a later value shows what an earlier one published.
        let mut found = first.load(Acquire);
        loop {
            let frame = found as u32;
            if frame == END {
                return None;
            }
            let next = &self.next[frame as usize];
            let behind = next.load(Relaxed);
            match first.compare_exchange_weak(found, changed(found, behind), Relaxed, Acquire) {
                Ok(_) => {
                    next.store(UNLISTED, Relaxed);
                    return Some(frame);
                }
                Err(now) => found = now,
            }
        }
    }
}

#[cfg(all(test, not(feature = "loom"), not(feature = "shuttle")))]
mod tests {
    use clearway_machine::Native;

    use super::*;

    fn all_of(lists: &FreeLists<Native>, list: usize) -> Vec<u32> {
        std::iter::from_fn(|| lists.pop(list)).collect()
    }

    /// Each frame is in one list at first, however few there are.
    #[test]
    fn frames_are_dealt_out() {
        for (count, frames) in [(1, 5), (2, 5), (4, 3), (8, 64), (8, 9)] {
            let lists = FreeLists::<Native>::full(count, frames);
            assert_eq!(lists.count(), count);
            let found: Vec<u32> = (0..count).flat_map(|list| all_of(&lists, list)).collect();
            assert!(
                found.iter().copied().eq(0..frames as u32),
                "{count} lists: {found:?}"
            );
        }
    }

    /// Mutation that it catches: `push` that does not look whether the frame is listed (the list becomes a ring).
    #[test]
    fn a_frame_is_listed_once() {
        let lists = FreeLists::<Native>::full(2, 4);
        assert_eq!((all_of(&lists, 0), all_of(&lists, 1)), (vec![0, 1], vec![2, 3]));
        for frame in [3, 1, 3] {
            lists.push(0, frame);
        }
        lists.push(1, 1);
        assert_eq!(lists.pop(0), Some(1));
        assert_eq!(lists.pop(0), Some(3));
        assert_eq!((lists.pop(0), lists.pop(1)), (None, None));
    }
}
