//! The leader wakes one follower, which wakes all others: the leader's client hears after one wake-up.
//!
//! W2: the follower that is told first has inherited the rest of the list before it is told, and wakes the rest before it
//! returns. So the duty passes from the leader, which is awake, to a worker that has been posted.
//!
//! Cost: the wake-ups of a group move from its leader to one of its followers, whose client waits for them instead, and
//! all but the first are later by the time in which that follower gets a CPU.

use std::marker::PhantomData;

use clearway_machine::Machine;

use super::{Followers, Wake, tell_each};
use crate::wal::flush::waiters::{NONE, Outcome, Waiters};

pub(in crate::wal) struct Waker<M>(PhantomData<fn() -> M>);

impl<M: Machine> Wake<M> for Waker<M> {
    fn new() -> Self {
        Self(PhantomData)
    }

    fn wake(&self, waiters: &Waiters<M>, followers: Followers) {
        let first = followers.first;
        if first != NONE {
            waiters.set_inherited(first, waiters.next(first));
            waiters.tell(first, Outcome::Durable);
        }
    }

    fn woken(&self, waiters: &Waiters<M>, inherited: u32) {
        tell_each(waiters, inherited);
    }
}
