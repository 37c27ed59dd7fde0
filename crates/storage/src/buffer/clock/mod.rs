//! The clock: which frame a page that is not in memory gets. The switch `buffer_clock`.
//!
//! Protects: nothing. Which frame the hand is at is a matter of taste; what makes a choice safe are the
//! atomic steps of the frame's state ([`pin`](super::pin)).
//!
//! # An example
//! Three frames: frame 0 has an index root, used all the time (usage 5), frame 1 a heap page that was read once
//! (usage 1), and frame 2 no page, since its table was dropped. Bob needs a frame twice.
//!
//! | | `hand` | `latched`, `atomic` |
//! | --- | --- | --- |
//! | first | frames 0 and 1: lowers the usage; frame 2 is claimed, if its usage is 0 by now | frame 2, from the list |
//! | second | frame 0: lowers; frame 1 is claimed | frames 0 and 1: lowers; frame 0: lowers; frame 1 is claimed |
//!
//! # Invariants, for every variant
//! - C1: a frame is claimed only if it is unpinned, and has usage 0 or no page. The claim is a pin: two workers
//!   never get the same frame.
//! - C2: a sweep ends. The hand claims a frame that stays unpinned in the sixth round at the latest, because its usage
//!   is 5 at most. After [`ROUNDS`] rounds without success each frame was pinned whenever the hand passed it, or could not be written
//!   (C3): the worker waits (`pool/all_pinned.rs`). Entries
//!   of a list come on top; each is taken out when it is looked at.
//! - C3: a worker that needs a frame does not wait for the latches of the page in it: their holder may be waiting for a
//!   page that this worker has latched. It takes the next frame. Only the checkpointer, which holds no page, waits.
//! - C4: an entry of a list of free frames is a hint. The hand finds free frames too, so an entry may be out of date,
//!   and a free frame may be in no list. A worker claims what it takes from a list only if it has no page, in one
//!   atomic step of the frame's state.
//!
//! # Steps
//! 1. With a list: take an entry. If its frame is still unpinned and without a page, claim it; otherwise take the next.
//! 2. Move the hand by one. Pinned: go on. Usage above 0: lower it, and go on. Otherwise claim the frame.
//! 3. A worker that owns a frame it does not need, or one of a dropped relation, gives its pin back, and then calls
//!    [`freed`](Clock::freed). In the other order another worker could take the entry, find the frame pinned, and drop
//!    the entry.
//!
//! Each pin raises the usage, so a page that is used again before the hand comes around stays in memory, and one that
//! was used often stays for up to five rounds.
//!
//! | variant | a free frame is found | a miss without free frames writes |
//! | --- | --- | --- |
//! | `hand` | by the hand | the hand's line, once for each frame looked at |
//! | `latched` | first | the latch's line, twice, and waits for the sweeps before it |
//! | `atomic` | first, those of the own group of CPUs before others | the hand's line, once for each frame looked at |
//!
//! A variant is a file with a [`VictimSource`].

mod atomic;
mod free_lists;
mod hand;
mod latched;

use clearway_latch::LwLockOptions;
use clearway_machine::{Machine, Native, variants};

use super::frame::Frame;
use super::pin::ROUNDS_TO_CLAIM;

/// Rounds of a sweep. Two more than an unpinned frame needs, since other workers move the hand too.
const ROUNDS: usize = ROUNDS_TO_CLAIM + 2;

/// The operations of a variant. Each function that gets frames gets all, in the order of their numbers.
pub(super) trait VictimSource<M: Machine>: Sized {
    /// The clock of a pool of `frames` frames, none of which has a page.
    fn new(frames: usize, lwlock: LwLockOptions) -> Self;

    /// Claims a frame, and returns its number. `looks_left` is how many frames the hand may still look at; each look
    /// counts it down, and `None` means that it has reached 0.
    fn claim(&self, frames: &[Frame<M>], looks_left: &mut usize) -> Option<u32>;

    /// The frame has no page, and the caller no pin on it any more.
    fn freed(&self, number: u32);

    /// True if, as far as the clock knows, some of the `frames` frames have no page, so that a claim makes none give
    /// way.
    fn has_free(&self, frames: usize) -> bool;
}

variants! {
    /// The way in which a page that is not in memory gets a frame.
    pub enum BufferClockVariant = "buffer_clock", best Hand, planned [] {
        /// An atomic hand, which finds free frames as it finds all others.
        Hand = "hand": hand::Clock<M>,
        /// The hand and a list of free frames, under one latch.
        Latched = "latched": latched::Clock<M>,
        /// An atomic hand, and a list of free frames for each group of CPUs.
        Atomic = "atomic": atomic::Clock<M>,
    }
    why {
        Hand: "It is the simplest, and level with the others on two CPUs, where the table is larger than the pool."
            in "docs/mechanisms/buffer-pool.md#numbers-that-matter";
        Atomic: "Level with hand, simulated on four sockets too: a list spares a sweep only after tables were dropped."
            in "docs/read-path-predictions.md#the-buffer-clock-buffer-clock";
    }

    /// The clock of a pool.
    pub(super) enum Clock[M: Machine = Native], called by dispatch;
}

impl<M: Machine> Clock<M> {
    /// The clock of a pool of `frames` frames, none of which has a page.
    pub(super) fn new(variant: BufferClockVariant, frames: usize, lwlock: LwLockOptions) -> Self {
        dispatch!(new variant => VictimSource::new(frames, lwlock))
    }
}

impl<M: Machine> Clock<M> {
    /// Claims frames, one for each call of `next`, until the hand has looked at each [`ROUNDS`] times. The caller
    /// unpins what it does not use.
    pub(super) fn sweep<'a>(
        &'a self,
        frames: &'a [Frame<M>],
    ) -> impl Iterator<Item = (u32, &'a Frame<M>)> + use<'a, M> {
        let mut looks_left = frames.len() * ROUNDS;
        std::iter::from_fn(move || {
            let number = dispatch!(self, clock => clock.claim(frames, &mut looks_left))?;
            Some((number, &frames[number as usize]))
        })
    }

    /// Step 3: the frame has no page, and the caller no pin on it any more.
    pub(super) fn freed(&self, number: u32) {
        dispatch!(self, clock => clock.freed(number));
    }

    /// True if, as far as the clock knows, some of the `frames` frames have no page.
    pub(super) fn has_free(&self, frames: usize) -> bool {
        dispatch!(self, clock => clock.has_free(frames))
    }
}

#[cfg(test)]
mod tests {
    use clearway_machine::Switch;

    use super::*;
    use crate::buffer::pin::VALID;

    fn clock(variant: BufferClockVariant, frames: &[Frame]) -> Clock {
        Clock::new(variant, frames.len(), LwLockOptions::default())
    }

    /// Frames with a page each.
    fn frames(count: usize) -> Vec<Frame> {
        let frame = |_| {
            let frame = Frame::new(Default::default(), std::ptr::null());
            frame.state.set(VALID);
            frame
        };
        (0..count).map(frame).collect()
    }

    fn claimed(clock: &Clock, frames: &[Frame], most: usize) -> Vec<u32> {
        clock.sweep(frames).take(most).map(|(number, _)| number).collect()
    }

    /// Mutation that it catches: `try_claim` that does not look at the usage (frame 0 is claimed first).
    #[test]
    fn a_page_that_was_used_outlives_one_that_was_not() {
        for &variant in BufferClockVariant::ALL {
            let frames = frames(3);
            frames[0].state.pin();
            frames[0].state.unpin();
            let clock = clock(variant, &frames);
            assert_eq!(claimed(&clock, &frames, 3), [1, 2, 0], "{variant:?}");
        }
    }

    #[test]
    fn a_sweep_over_pinned_frames_ends() {
        for &variant in BufferClockVariant::ALL {
            let frames = frames(2);
            let clock = clock(variant, &frames);
            for frame in &frames {
                frame.state.pin();
            }
            assert_eq!(clock.sweep(&frames).count(), 0);
            frames[1].state.unpin();
            let all = claimed(&clock, &frames, usize::MAX);
            assert_eq!(all, [1], "{variant:?}: once, since the claim is a pin");
        }
    }

    /// Mutation that it catches: `ROUNDS` of 5.
    #[test]
    fn a_page_used_often_gives_way_in_one_sweep() {
        for &variant in BufferClockVariant::ALL {
            let frames = frames(1);
            for _ in 0..20 {
                frames[0].state.pin();
                frames[0].state.unpin();
            }
            assert_eq!(clock(variant, &frames).sweep(&frames).count(), 1, "{variant:?}");
        }
    }

    /// Every unpinned frame of a new pool can be claimed, once. Mutation that it catches: `try_claim_free` that does not
    /// look at the pins (frame 5).
    #[test]
    fn the_frames_of_a_new_pool_are_claimed_once_each() {
        for &variant in BufferClockVariant::ALL {
            let frames = frames(21);
            for frame in &frames {
                frame.state.clear(VALID);
            }
            frames[5].state.pin();
            let mut all = claimed(&clock(variant, &frames), &frames, usize::MAX);
            all.sort_unstable();
            assert!(
                all.into_iter().eq((0..21).filter(|&number| number != 5)),
                "{variant:?}"
            );
        }
    }

    /// Mutation that it catches: a hand that counts a pool as new for ever.
    #[test]
    fn a_new_pool_has_free_frames_until_all_are_claimed() {
        for &variant in BufferClockVariant::ALL {
            let frames = frames(9);
            for frame in &frames {
                frame.state.clear(VALID);
            }
            let clock = clock(variant, &frames);
            for claims in 0..9 {
                assert!(clock.has_free(frames.len()), "{variant:?} after {claims}");
                assert_eq!(claimed(&clock, &frames, 1).len(), 1);
            }
            assert!(!clock.has_free(frames.len()), "{variant:?}");
        }
    }

    /// A list gives a free frame, whatever the usage its page has left, and no page gives way meanwhile. Mutations that
    /// it catches: `freed` that does nothing; a claim of a free frame that keeps the usage.
    #[test]
    fn a_frame_that_was_freed_is_claimed_before_any_page_gives_way() {
        for variant in [BufferClockVariant::Latched, BufferClockVariant::Atomic] {
            let frames = frames(4);
            let clock = clock(variant, &frames);
            // Takes the entries of the new pool out: the frames have pages.
            assert_eq!(claimed(&clock, &frames, 1), [0], "{variant:?}");
            frames[0].state.unpin();
            for _ in 0..3 {
                frames[2].state.pin();
                frames[2].state.unpin();
            }
            frames[2].state.clear(VALID);
            clock.freed(2);
            clock.freed(2);
            assert_eq!(claimed(&clock, &frames, 1), [2], "{variant:?}");
            frames[2].state.set(VALID);
            frames[2].state.unpin();
            // The usage that the last page has left went with it.
            assert_eq!(claimed(&clock, &frames, 4), [1, 2, 3, 0], "{variant:?}");
        }
    }

    /// C4. Mutation that it catches: `try_claim_free` that does not look at `VALID` (frame 0's page gives way).
    #[test]
    fn a_listed_frame_that_has_a_page_by_now_is_left_alone() {
        for variant in [BufferClockVariant::Latched, BufferClockVariant::Atomic] {
            let frames = frames(2);
            frames[0].state.pin();
            frames[0].state.unpin();
            let clock = clock(variant, &frames);
            assert_eq!(claimed(&clock, &frames, 1), [1], "{variant:?}");
        }
    }
}
