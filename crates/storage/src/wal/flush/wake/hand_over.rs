//! A leader leaves its followers to the next leader, which wakes them when it has the write latch and before it syncs.
//!
//! # Steps
//! 1. A group is durable, and its leader still holds the write latch. If the next group's list is not empty, its first
//!    worker is the next leader. The followers go into `handed_over`; the leader gives the latch back and returns.
//! 2. The list is empty: the leader wakes its followers itself, after the latch.
//! 3. The next leader, as soon as it has the latch, takes over what was handed over and wakes it. Workers that come
//!    meanwhile still join its group.
//!
//! W2: by the invariant of `group` the first on a list leads, and goes from joining to the latch without a wait for
//! anything else. So the next leader is awake, or sleeps at the latch, which the leader is about to release. `handed_over`
//! is read and written under the latch alone, and no list is lost in it: each leader empties it before its own sync.
//!
//! W3: the next leader wakes under the write latch. A woken worker that commits again joins the list and needs the latch
//! only if it leads the group after.
//!
//! Cost: the leader's client pays for no wake-up. But the next sync begins later by all of them, with an idle device, and
//! the followers wait until the next leader has been woken and has got a CPU.

use std::sync::atomic::Ordering::Relaxed;

use clearway_machine::{AtomicWord, Machine, Padded};

use super::{Followers, Wake, tell_each};
use crate::wal::flush::waiters::{NONE, Waiters};

pub(in crate::wal) struct Waker<M: Machine> {
    /// The first of the followers that the next leader is going to wake. The write latch orders it.
    handed_over: Padded<M::U32>,
}

impl<M: Machine> Wake<M> for Waker<M> {
    fn new() -> Self {
        Self {
            handed_over: Padded(M::U32::new(NONE)),
        }
    }

    fn leader_begins(&self, waiters: &Waiters<M>) {
        let first = self.handed_over.load(Relaxed);
        if first != NONE {
            self.handed_over.store(NONE, Relaxed);
            tell_each(waiters, first);
        }
    }

    fn group_ended(&self, _waiters: &Waiters<M>, followers: &mut Followers, has_next_leader: bool) {
        if has_next_leader {
            debug_assert_eq!(self.handed_over.load(Relaxed), NONE);
            self.handed_over.store(followers.first, Relaxed);
            followers.first = NONE;
        }
    }

    fn wake(&self, waiters: &Waiters<M>, followers: Followers) {
        tell_each(waiters, followers.first);
    }
}
