//! The waits for a state of S, U and X modes: as a reader, as an exclusive for other owners and then for the readers inside.
//!
//! They need neither the class nor the address of the latch, which `Waiting` has, so latches that keep these in different ways
//! wait alike.

use clearway_machine::Machine;

use crate::futex::ssux_state::{Readers, SsuxState};
use crate::waiting::Waiting;

/// The waits of a state. Each returns whether it got what it waited for before `waiting` was over.
pub(crate) trait SsuxWaits<M: Machine>: SsuxState<M> {
    /// Enters as a reader by one attempt; if it is `RECURSIVE`, also beside readers for which an exclusive waits (S6).
    fn enters<const RECURSIVE: bool>(&self) -> bool {
        if RECURSIVE {
            self.enter_beside_readers()
        } else {
            self.enter()
        }
    }

    /// Enters as a reader, waiting as long as it takes, or until the wait is over.
    #[must_use]
    fn enter_slow(&self, waiting: &mut Waiting) -> bool {
        self.enter_waiting::<false>(waiting)
    }

    /// As `enter_slow`, and also beside readers for which an exclusive waits.
    #[must_use]
    fn enter_recursive_slow(&self, waiting: &mut Waiting) -> bool {
        self.enter_waiting::<true>(waiting)
    }

    /// As `enters`, waiting as long as it takes, or until the wait is over.
    #[must_use]
    fn enter_waiting<const RECURSIVE: bool>(&self, waiting: &mut Waiting) -> bool {
        // Not registered while polling, so that a release makes no call for this worker.
        loop {
            if (RECURSIVE || self.is_open()) && self.enters::<RECURSIVE>() {
                return true;
            }
            if !waiting.poll::<M>() {
                break;
            }
        }
        if waiting.is_over::<M>() {
            return false;
        }
        self.register_reader();
        let mut slept = false;
        let entered = loop {
            if self.enters::<RECURSIVE>() {
                break true;
            }
            if waiting.is_over::<M>() {
                break false;
            }
            // A woken worker polls again.
            if !waiting.poll::<M>() {
                slept = if RECURSIVE {
                    self.sleep_while_empty(waiting, slept)
                } else {
                    self.sleep_while_exclusive(waiting, slept)
                };
            }
        };
        if RECURSIVE {
            self.wake_recursive_readers();
        }
        self.unregister_reader(slept);
        entered
    }

    /// Acquires in exclusive mode, waiting as long as it takes, or until the wait is over.
    #[must_use]
    fn take_exclusive_slow(&self, waiting: &mut Waiting) -> bool {
        match self.take_exclusive(waiting) {
            Some(Readers::None) => true,
            Some(Readers::Inside) => {
                let drained = self.drain(waiting);
                if !drained {
                    self.release_update();
                }
                drained
            }
            None => false,
        }
    }

    /// The owner in exclusive mode waits until the readers inside have left. If the wait is over before that, it is the owner
    /// in update mode.
    #[must_use]
    fn drain(&self, waiting: &mut Waiting) -> bool {
        self.wake_recursive_readers();
        waiting.poll_as_owner::<M>();
        loop {
            if self.readers_left() == 0 {
                return true;
            }
            if waiting.is_over::<M>() {
                self.withdraw_exclusive();
                return false;
            }
            if !waiting.poll::<M>() {
                self.sleep_until_readers_leave(waiting);
            }
        }
    }
}

impl<M: Machine, S: SsuxState<M>> SsuxWaits<M> for S {}
