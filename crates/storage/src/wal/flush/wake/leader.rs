//! The leader wakes each follower of its group: what group commits ship with.
//!
//! W2: the leader has the duty, and wakes all before it returns.
//!
//! Cost: n wake-ups between the sync and the leader's own client; the followers' order is that of the list.

use std::marker::PhantomData;

use clearway_machine::Machine;

use super::{Followers, Wake, tell_each};
use crate::wal::flush::waiters::Waiters;

pub(in crate::wal) struct Waker<M>(PhantomData<fn() -> M>);

impl<M: Machine> Wake<M> for Waker<M> {
    fn new() -> Self {
        Self(PhantomData)
    }

    fn wake(&self, waiters: &Waiters<M>, followers: Followers) {
        tell_each(waiters, followers.first);
    }
}
