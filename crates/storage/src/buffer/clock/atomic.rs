//! The hand of the baseline, and a list of free frames for each group of CPUs.
//!
//! A worker looks into the list of its group, then into the others, and only then moves the hand: no page gives way
//! while a frame is listed as free. A frame that is freed goes into the list of the worker that frees it. Its memory
//! was last used there, and that worker's group finds it without writing to a line of another group.
//!
//! A group is a NUMA node, or several of them on a machine with more nodes than lists. Where a worker runs is a hint: a
//! worker that moves to another node in between costs a line from there.
//!
//! Costs: those of the hand, and for each miss, while all lists are empty, a read of a line for each list. A frame
//! freed, or taken from a list: two lines that its group shares.
//!
//! It does not deal the pages out to nodes. A new pool's frames are cut into a piece for each list, so a
//! worker's first misses use the piece of its own node.

use clearway_latch::LwLockOptions;
use clearway_machine::Machine;

use super::free_lists::FreeLists;
use super::{VictimSource, hand};
use crate::buffer::frame::Frame;

/// The most lists.
const GROUPS: usize = 8;

/// The hand and the lists.
pub(in crate::buffer) struct Clock<M: Machine> {
    hand: hand::Clock<M>,
    free: FreeLists<M>,
}

impl<M: Machine> Clock<M> {
    /// The list of the calling worker's group.
    fn own_list(&self) -> usize {
        M::cpu().node as usize % self.free.count()
    }
}

impl<M: Machine> VictimSource<M> for Clock<M> {
    fn new(frames: usize, _lwlock: LwLockOptions) -> Self {
        // Two under a checker: one list, and one to take from when that is empty.
        let groups = if M::EXPLORED { 2 } else { GROUPS };
        Self {
            hand: hand::Clock::at_first_frame(),
            free: FreeLists::full(groups, frames),
        }
    }

    fn claim(&self, frames: &[Frame<M>], looks_left: &mut usize) -> Option<u32> {
        let (own, count) = (self.own_list(), self.free.count());
        for list in (0..count).map(|step| (own + step) % count) {
            while let Some(number) = self.free.pop(list) {
                // C4.
                if frames[number as usize].state.try_claim_free() {
                    return Some(number);
                }
            }
        }
        self.hand.claim_by_hand(frames, looks_left)
    }

    fn has_free(&self, _frames: usize) -> bool {
        (0..self.free.count()).any(|list| !self.free.is_empty(list))
    }

    fn freed(&self, number: u32) {
        self.free.push(self.own_list(), number);
    }
}
