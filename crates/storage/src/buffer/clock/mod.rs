//! The clock: which page gives way to the next one.
//!
//! Protects: nothing. Which frame the hand stands at is a matter of taste; what makes a choice safe are the
//! atomic steps of the frame's state ([`pin`](super::pin)).
//!
//! # Invariants
//! - C1: the hand claims only a frame that is unpinned and has usage 0, and the claim is a pin: two workers never get
//!   the same frame.
//! - C2: a sweep ends. A frame that stays unpinned is claimed in the sixth round at the latest, because its usage is 5
//!   at most. After [`ROUNDS`] rounds without success each frame was pinned whenever the hand passed it.
//! - C3: a worker that needs a frame does not wait for the latches of the page in it: their holder may be waiting for a
//!   page that this worker has latched. It takes the next frame. Only the checkpointer, which holds no page, waits.
//!
//! # Steps
//! 1. Move the hand by one, with one atomic add: concurrent sweeps look at different frames.
//! 2. Pinned: go on. Usage above 0: lower it, and go on. Otherwise claim the frame.
//!
//! Each pin raises the usage, so a page that is used again before the hand comes around stays in memory, and one that
//! was used often stays for up to five rounds.

use std::sync::atomic::Ordering;

use clearway_machine::{AtomicWord, Machine, Native, Padded};

use super::frame::Frame;
use super::pin::ROUNDS_TO_CLAIM;

/// Rounds of a sweep. Two more than an unpinned frame needs, since other workers move the hand too.
const ROUNDS: usize = ROUNDS_TO_CLAIM + 2;

/// The hand of the clock, on a line of its own: each miss writes it, and each pin reads the pool's pointers beside it.
pub(super) struct Clock<M: Machine = Native> {
    hand: Padded<M::U64>,
}

impl<M: Machine> Clock<M> {
    /// The hand stands at the first frame.
    pub(super) fn new() -> Self {
        Self {
            hand: Padded(M::U64::new(0)),
        }
    }

    /// Goes around and claims frames, one for each call of `next`, until each frame has been looked at [`ROUNDS`]
    /// times. The caller unpins what it does not use.
    pub(super) fn sweep<'a>(
        &'a self,
        frames: &'a [Frame<M>],
    ) -> impl Iterator<Item = (u32, &'a Frame<M>)> + use<'a, M> {
        (0..frames.len() * ROUNDS).filter_map(move |_| {
            let number = (self.hand.fetch_add(1, Ordering::Relaxed) % frames.len() as u64) as usize;
            let frame = &frames[number];
            frame.state.try_claim().then_some((number as u32, frame))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(count: usize) -> Vec<Frame> {
        let frame = |_| Frame::new(Default::default(), std::ptr::null());
        (0..count).map(frame).collect()
    }

    /// Mutation that it catches: `try_claim` that does not look at the usage (frame 0 is claimed first).
    #[test]
    fn a_page_that_was_used_outlives_one_that_was_not() {
        let frames = frames(3);
        let clock = Clock::new();
        frames[0].state.pin();
        frames[0].state.unpin();
        let claimed: Vec<_> = clock.sweep(&frames).take(3).map(|(number, _)| number).collect();
        assert_eq!(claimed, [1, 2, 0]);
    }

    #[test]
    fn a_sweep_over_pinned_frames_ends() {
        let frames = frames(2);
        let clock = Clock::new();
        for frame in &frames {
            frame.state.pin();
        }
        assert_eq!(clock.sweep(&frames).count(), 0);
        frames[1].state.unpin();
        let claimed: Vec<_> = clock.sweep(&frames).map(|(number, _)| number).collect();
        assert_eq!(claimed, [1], "once, since the claim is a pin");
    }

    /// Mutation that it catches: `ROUNDS` of 5.
    #[test]
    fn a_page_used_often_gives_way_in_one_sweep() {
        let frames = frames(1);
        for _ in 0..20 {
            frames[0].state.pin();
            frames[0].state.unpin();
        }
        assert_eq!(Clock::new().sweep(&frames).count(), 1);
    }
}
