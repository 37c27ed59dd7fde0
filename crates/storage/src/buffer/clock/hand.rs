//! The baseline: a hand that is moved by one atomic add, and nothing else.
//!
//! Concurrent sweeps look at different frames. Frames without a page are found as all others are, by the hand; those of
//! a new pool are used in their order. A frame that is freed later waits until the hand comes around, and its usage,
//! which is that of the page it held, until it has been lowered to 0.
//!
//! Costs: a write to one line for each frame looked at, which all sweeps share.

use std::sync::atomic::Ordering;

use clearway_latch::LwLockOptions;
use clearway_machine::{AtomicWord, Machine, Padded};

use super::VictimSource;
use crate::buffer::frame::Frame;

/// The hand, on a line of its own: each miss writes it, and each pin reads the pool's pointers beside the clock.
pub(in crate::buffer) struct Clock<M: Machine> {
    hand: Padded<M::U64>,
}

impl<M: Machine> Clock<M> {
    /// A hand at the first frame.
    pub(super) fn at_first_frame() -> Self {
        Self {
            hand: Padded(M::U64::new(0)),
        }
    }

    /// Moves the hand until it has claimed a frame.
    pub(super) fn claim_by_hand(&self, frames: &[Frame<M>], looks_left: &mut usize) -> Option<u32> {
        while *looks_left > 0 {
            *looks_left -= 1;
            // Relaxed: the number says where to look; the claim is a step of the frame's state.
            let number = (self.hand.fetch_add(1, Ordering::Relaxed) % frames.len() as u64) as usize;
            if frames[number].state.try_claim() {
                return Some(number as u32);
            }
        }
        None
    }
}

impl<M: Machine> VictimSource<M> for Clock<M> {
    fn new(_frames: usize, _lwlock: LwLockOptions) -> Self {
        Self::at_first_frame()
    }

    fn claim(&self, frames: &[Frame<M>], looks_left: &mut usize) -> Option<u32> {
        self.claim_by_hand(frames, looks_left)
    }

    fn freed(&self, _number: u32) {}

    /// In a new pool all frames that the hand has not looked at. It does not know of those freed later.
    fn has_free(&self, frames: usize) -> bool {
        self.hand.load(Ordering::Relaxed) < frames as u64
    }
}
