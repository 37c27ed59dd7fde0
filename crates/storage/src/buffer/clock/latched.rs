//! The hand and one list of free frames, under one latch.
//!
//! A worker that needs a frame holds the latch BufferClock until it has claimed one: first from the list, then by the
//! hand. It waits for no other latch meanwhile: a claim is an atomic step, and a dirty page is written after the latch
//! is released. So a worker may hold any latch of the pool when it acquires this one.
//!
//! Invariant: a frame is in the list once at most, which `listed` says. So the list never grows past the number of
//! frames.
//!
//! Costs: an acquisition for each frame claimed or freed. A sweep over many used frames holds the latch for all of
//! them, and every other worker that misses waits.
//!
//! Origin: PostgreSQL up to 9.4, whose BufFreelistLock was held so.

use clearway_latch::{LatchClass, Latched, LwLockOptions};
use clearway_machine::{Machine, Padded, WaitEvent};

use super::VictimSource;
use crate::buffer::frame::Frame;

static BUFFER_CLOCK: LatchClass = LatchClass::new("BufferClock", WaitEvent::BufferClock, 412);

/// The state under the latch.
struct State {
    hand: usize,
    /// Frames without a page, the next one to use last.
    free: Vec<u32>,
    /// True if a frame is in `free`.
    listed: Box<[bool]>,
}

/// The hand and the list.
pub(in crate::buffer) struct Clock<M: Machine>(Padded<Latched<State, M>>);

impl<M: Machine> VictimSource<M> for Clock<M> {
    fn new(frames: usize, lwlock: LwLockOptions) -> Self {
        let state = State {
            hand: 0,
            free: (0..frames as u32).rev().collect(),
            listed: vec![true; frames].into(),
        };
        Self(Padded(Latched::new(&BUFFER_CLOCK, lwlock, state)))
    }

    fn claim(&self, frames: &[Frame<M>], looks_left: &mut usize) -> Option<u32> {
        let mut state = self.0.exclusive();
        while let Some(number) = state.free.pop() {
            state.listed[number as usize] = false;
            if frames[number as usize].state.try_claim_free() {
                return Some(number);
            }
        }
        while *looks_left > 0 {
            *looks_left -= 1;
            let number = state.hand;
            state.hand = (number + 1) % frames.len();
            if frames[number].state.try_claim() {
                return Some(number as u32);
            }
        }
        None
    }

    fn has_free(&self, _frames: usize) -> bool {
        !self.0.exclusive().free.is_empty()
    }

    fn freed(&self, number: u32) {
        let mut state = self.0.exclusive();
        if !std::mem::replace(&mut state.listed[number as usize], true) {
            state.free.push(number);
        }
    }
}
