//! A tree of wake-ups: the leader wakes a few followers, and each that is woken wakes a few more.
//!
//! The plan is made by the leader before it wakes any: the first few of the list are its own, and each follower, in
//! the order of the list, *inherits* the next few. With two each, the followers 1 to 6:
//!
//! ```text
//!   leader ─┬─ 1 ─┬─ 3
//!           │     └─ 4
//!           └─ 2 ─┬─ 5
//!                 └─ 6
//! ```
//!
//! W2: each follower is in one part of the list, since each part begins where the one before ends; and each part is
//! the leader's, or is inherited by a follower of an earlier part. By induction over the parts, the worker that has the
//! duty for a part is awake or is told, and it tells the part before it returns from the flush.
//!
//! Cost: no worker wakes more than its few; the last of n is a chain of wake-ups away. A chain (one each) would
//! be the least for each and the latest for the last. As many wake-ups in all as by the leader alone.
//!
//! `self-clocking` wakes by the same tree, four each.

use std::marker::PhantomData;

use clearway_machine::Machine;

use super::{Followers, Wake};
use crate::wal::flush::waiters::{NONE, Outcome, Waiters};

/// The most followers that a worker wakes under `log_wake = tree`.
const WIDTH: u32 = 2;

/// A tree in which each worker wakes at most `width` others.
pub(in crate::wal::flush) struct Tree<M> {
    width: u32,
    _machine: PhantomData<fn() -> M>,
}

impl<M: Machine> Tree<M> {
    /// Each worker wakes at most `width`; one under a checker, so that few workers make a deep tree.
    pub(in crate::wal::flush) fn new(width: u32) -> Self {
        Self {
            width: if M::EXPLORED { 1 } else { width },
            _machine: PhantomData,
        }
    }

    /// Makes each worker of the list that begins with `first` inherit its part of the wake-ups. The first part is the
    /// caller's.
    pub(in crate::wal::flush) fn plan(&self, waiters: &Waiters<M>, first: u32) {
        let mut waker = first;
        let mut woken = self.after_part(waiters, first);
        while woken != NONE {
            waiters.set_inherited(waker, woken);
            waker = waiters.next(waker);
            woken = self.after_part(waiters, woken);
        }
    }

    /// The worker behind the part that begins with `first`.
    fn after_part(&self, waiters: &Waiters<M>, first: u32) -> u32 {
        let mut worker = first;
        for _ in 0..self.width {
            if worker == NONE {
                break;
            }
            worker = waiters.next(worker);
        }
        worker
    }

    /// Tells the workers of the part that begins with `first` that they are durable.
    pub(in crate::wal::flush) fn tell_part(&self, waiters: &Waiters<M>, first: u32) {
        let mut worker = first;
        for _ in 0..self.width {
            if worker == NONE {
                break;
            }
            // Read first: once told, the worker may wait for the next flush.
            let next = waiters.next(worker);
            waiters.tell(worker, Outcome::Durable);
            worker = next;
        }
    }
}

pub(in crate::wal) struct Waker<M>(Tree<M>);

impl<M: Machine> Wake<M> for Waker<M> {
    fn new() -> Self {
        Self(Tree::new(WIDTH))
    }

    fn wake(&self, waiters: &Waiters<M>, followers: Followers) {
        self.0.plan(waiters, followers.first);
        self.0.tell_part(waiters, followers.first);
    }

    fn woken(&self, waiters: &Waiters<M>, inherited: u32) {
        self.0.tell_part(waiters, inherited);
    }
}
