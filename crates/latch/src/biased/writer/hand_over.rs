//! Variant `hand-over`: a writer that leaves hands the slots over to one that waits.
//!
//! As `announce`, but while a writer waits for the writers' latch, the one that has it gives back that latch alone. The
//! slots keep `EXCLUSIVE`, and the next writer finds them so: it has K lines fewer to fetch, change and change back, and
//! no reader to wait for.
//!
//! # Why not without an end
//! Readers are refused for as long as the slots are handed over. Writers that come without pause would shut them out for
//! ever, though no writer holds the latch for long. So after [`HAND_OVERS_MAX`] in a row the slots are given back, with
//! the wake-ups owed to readers, whether or not a writer waits. A reader that was refused waits for at most that many
//! sections of writers more than under `announce`. The bound is small because so is the gain beyond it: of the K lines'
//! way to and fro, eight hand-overs spare eight ninths.
//!
//! # Rules, besides those of `announce`
//! - H1: slots are handed over only while a worker is counted in `waiting`. That worker has not got the writers' latch,
//!   and waits for it until it has: so there is a next writer. (Any writer may come first, and is the next one then.)
//!   *A worker counts itself before it waits, and takes itself out while it holds the writers' latch. So what the
//!   holder reads there includes no worker that has held it before, by that latch's Release and Acquire.*
//! - H2: `handed` is read and written by the holder of the writers' latch only. It is not 0 if and only if the slots have
//!   `EXCLUSIVE` at the moment that a worker takes that latch.
//! - H3: a conditional writer that takes the writers' latch while `handed` is not 0 has the slots: it is a next writer.

use core::sync::atomic::Ordering::Relaxed;

use clearway_machine::{AtomicWord, CoreU32, Host, Machine};

use super::Slots;
use super::announce::Announcement;

/// The most writers in a row that get the slots from the one before.
const HAND_OVERS_MAX: u32 = if cfg!(any(feature = "loom", feature = "shuttle")) {
    1
} else {
    8
};

#[derive(Debug)]
pub(super) struct HandOver<M: Machine> {
    /// Workers that wait for the writers' latch.
    waiting: M::U32,
    /// Number of times that the slots have been handed over since they were last announced.
    handed: M::U32,
}

impl HandOver<Host> {
    /// As `new`, in a constant.
    pub(super) const fn in_static() -> Self {
        Self {
            waiting: CoreU32::new_const(0),
            handed: CoreU32::new_const(0),
        }
    }
}

impl<M: Machine> HandOver<M> {
    pub(super) fn new() -> Self {
        Self {
            waiting: M::U32::new(0),
            handed: M::U32::new(0),
        }
    }

    pub(super) fn acquire(&self, announcement: &Announcement<M>, slots: &Slots<M>) {
        if !announcement.try_writers_latch() {
            // H1. Relaxed: only the count matters.
            self.waiting.fetch_add(1, Relaxed);
            announcement.wait_for_writers_latch();
            self.waiting.fetch_sub(1, Relaxed);
        }
        if self.handed.load(Relaxed) == 0 {
            announcement.announce(slots);
        }
    }

    pub(super) fn try_acquire(&self, announcement: &Announcement<M>, slots: &Slots<M>) -> bool {
        // H3.
        announcement.try_writers_latch() && (self.handed.load(Relaxed) != 0 || announcement.try_slots(slots))
    }

    pub(super) fn release(&self, announcement: &Announcement<M>, slots: &Slots<M>) {
        // H2.
        let handed = self.handed.load(Relaxed);
        // H1.
        if handed < HAND_OVERS_MAX && self.waiting.load(Relaxed) != 0 {
            self.handed.store(handed + 1, Relaxed);
            announcement.release_writers_latch();
            return;
        }
        if handed != 0 {
            self.handed.store(0, Relaxed);
        }
        announcement.release(slots);
    }
}
