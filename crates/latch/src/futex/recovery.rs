//! The death of a worker that sleeps on a latch of this family, in memory that processes share (H6).
//!
//! The kernel's list of sleepers loses a thread that ends. What stays is the worker's part of the word, which is one of three,
//! and another worker takes it back:
//!
//! | it slept | its part of the word | the worker that stands in |
//! | --- | --- | --- |
//! | as a reader, until readers are admitted | `READER` | leaves as a reader does that gives up |
//! | until it could own the word | `UNIT` | leaves as a worker does that gives up |
//! | as the owner, until readers have left | `HOLDER`, `EXCLUSIVE`, `UNIT`, `OWNER_SLEEPS` | releases |
//!
//! Each of them changes the word by the steps of a worker that lives, so no step of another one is different. An owner that waits
//! for readers has not been granted the latch: it has written nothing under it.
//!
//! # Example: the wake-up of a dead worker
//! Dora and Emil sleep until they can own a mutex; Alice releases it.
//!
//! | time | Alice | Dora | Emil | the worker that stands in |
//! | --- | --- | --- | --- | --- |
//! | 1 | subtracts her part, sets `WAKING`, wakes Dora | | sleeps | |
//! | 2 | | is killed | sleeps | |
//! | 3 | takes and releases: wakes no worker because of the flag | | sleeps | |
//! | 4 | | | sleeps | clears the flag, subtracts `UNIT`, sees a free word with a waiter: wakes Emil |
//!
//! Without the flag's clearing at time 4 Emil sleeps for ever, and without the subtraction each release from then on calls the
//! kernel for a worker that is not there.
//!
//! # Why the flag may be another worker's
//! Dora may have died before she was woken, and the flag be that of Emil, who is awake. Then one worker more is woken than
//! necessary, as after a sleep that ends for no reason (H5).

use clearway_machine::{Half, Machine};

use super::holder::{EXCLUSIVE, HolderProtocol, HolderWord, READER, SingleWake, UNIT};
use super::in_one_word::{InOneWord, OneWord};
use super::srw_mutex::SrwMutex;
use super::ssux_lock::SsuxLock;
use super::storage::WordStorage;
use crate::class::ClassOf;

/// The sleep in which a worker has died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastSleep {
    /// As a reader, until readers are admitted.
    AsReader,
    /// Until it could own the latch, in update or exclusive mode.
    ToOwn,
    /// As the owner, until the readers inside have left.
    AsOwner,
}

impl LastSleep {
    /// The sleep on this half of the word of an [`SsuxLock`], of a worker that wanted the latch shared or not.
    pub fn of(wants_shared: bool, half: Half) -> Self {
        match half {
            Half::High => Self::AsOwner,
            Half::Low if wants_shared => Self::AsReader,
            Half::Low => Self::ToOwn,
        }
    }
}

impl<P: HolderProtocol, M: Machine, W: WordStorage<M>> HolderWord<P, M, W> {
    /// Takes back the part of a worker that has died asleep until it could own the word (H6).
    pub(crate) fn leave_for_dead(&self) {
        self.unregister(UNIT, true);
    }
}

impl<M: Machine> InOneWord<SingleWake, M> {
    /// Takes back the part of a worker that has died in this sleep (H6).
    pub(crate) fn leave_for_dead(&self, sleep: LastSleep) {
        match sleep {
            LastSleep::AsReader => {
                // A reader that may meet others leaves a mark (S6), which is a live one's to clear.
                self.0.wake_recursive_readers();
                self.0.unregister(READER, true);
            }
            LastSleep::ToOwn => self.0.unregister(UNIT, true),
            LastSleep::AsOwner => {
                self.wake_up_as_owner();
                self.0.release(EXCLUSIVE);
            }
        }
    }
}

impl<C: ClassOf, M: Machine, P: HolderProtocol> SrwMutex<C, M, P> {
    /// Stands in for a worker that has died asleep on this mutex: no wake-up is lost with it. Does not wait.
    ///
    /// # Safety
    /// The worker was in an acquisition of this mutex, in the sleep itself and not before or behind it, and will execute no
    /// further instruction. It is stood in for once.
    pub unsafe fn recover_waiter(&self) {
        self.word().leave_for_dead();
    }
}

impl<C: ClassOf, M: Machine> SsuxLock<C, M, OneWord> {
    /// Stands in for a worker that has died in `sleep` on this latch: no wake-up is lost with it, and it does not hold the latch.
    /// Does not wait.
    ///
    /// # Safety
    /// As of [`SrwMutex::recover_waiter`]; it was in an acquisition and not in a transition from a mode in which it held the
    /// latch.
    pub unsafe fn recover_waiter(&self, sleep: LastSleep) {
        self.state().leave_for_dead(sleep);
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::Ordering::Relaxed;

    use super::super::holder::{HOLDER, RECURSIVE, WAKING};
    use super::super::in_one_word::OWNER_SLEEPS;
    use super::*;
    use crate::Unclassed;

    #[test]
    fn nothing_of_a_dead_worker_stays_in_the_word() {
        // An owner is woken by readers, without the flag.
        for (sleep, part, woken) in [
            (LastSleep::AsReader, READER, &[0, WAKING][..]),
            (LastSleep::AsReader, READER | RECURSIVE, &[0, WAKING]),
            (LastSleep::ToOwn, UNIT, &[0, WAKING]),
            (LastSleep::AsOwner, HOLDER | EXCLUSIVE | UNIT | OWNER_SLEEPS, &[0]),
        ] {
            let latch = SsuxLock::<Unclassed>::new();
            for waking in woken {
                latch.state().0.word.fetch_add(part | waking, Relaxed);
                // SAFETY: the latch is used by this thread alone.
                unsafe { latch.recover_waiter(sleep) };
                assert_eq!(latch.state().0.look(), 0, "{sleep:?}");
            }
        }
    }
}
