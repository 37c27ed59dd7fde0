//! Locks that belong to a session rather than to its transaction: advisory locks, until they are given back.
//!
//! # Rules
//! - K1: a mode of a lock is held if the session, or its transaction, has asked for it. The list has it once, and says
//!   whether the session has.
//! - K2: the end of a transaction, and going back to a savepoint, leave what the session has asked for. The end of the
//!   session gives it back before its place in the array is free.
//!
//! The number of times that the session has asked, and its transaction's part, are counted above
//! (`engine/src/session/advisory_locks.rs`).

use std::sync::atomic::Ordering::Relaxed;

use clearway_machine::{AtomicWord, Machine};

use super::{LockManager, LockTag};
use crate::{LockMode, ProcId};

impl<M: Machine> LockManager<M> {
    /// `proc`, which calls this and holds `tag` in `mode`, holds it for the session from now on, or for its transaction
    /// alone.
    pub fn hold_for_session(&self, proc: ProcId, tag: LockTag, mode: LockMode, for_session: bool) {
        let mut list = self.wait_of(proc).held.exclusive();
        let held = list.iter_mut().find(|lock| lock.tag == tag);
        debug_assert!(
            held.as_ref().is_some_and(|lock| lock.modes & mode.bit() != 0),
            "K1: session {} does not hold {tag:?} {mode}",
            proc.0
        );
        if let Some(lock) = held {
            match for_session {
                true => lock.session_modes |= mode.bit(),
                false => lock.session_modes &= !mode.bit(),
            }
        }
    }

    /// A wait of `proc` begins: the time, which others may read.
    #[inline]
    pub(crate) fn wait_starts(&self, proc: ProcId) -> u64 {
        let started = M::now();
        self.wait_of(proc).wait_started_ns.store(started, Relaxed);
        started
    }
}
