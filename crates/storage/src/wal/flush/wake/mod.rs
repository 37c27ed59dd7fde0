//! `log_wake`: which worker wakes the followers of a group whose records are durable.
//!
//! Protects: the followers of a group of `log_flush` group, gathering or polling, from the sync that makes them durable
//! until each is awake. Under `polling` they are those that sleep, and a worker that takes their group over is its
//! leader here: it finds what was handed over to the one that it replaces, and hands nothing over itself. The other
//! variants of `log_flush` have wake-ups of their own, or none.
//!
//! # Example
//! Bob leads a group of 15 followers. Its sync has taken 100 µs. A wake-up costs the waker 1 to 2 µs, so when Bob wakes
//! all of them before it returns, its own client hears 15 to 30 µs later, as if the sync had taken so much longer.
//! Another worker can pay; the last follower then hears through a chain of wake-ups, each of which waits for a CPU.
//!
//! # Contract
//! - W1: each follower is woken, once; and no worker that the group has no more use for gets an outcome.
//! - W2: *no follower is forgotten.* While a follower of a durable group sleeps, the leader has the *duty* to wake it, and wakes
//!   it before it returns from the flush. A worker with a duty waits for nothing but a CPU.
//! - W3: no worker wakes another while it holds what the woken one needs next.
//!
//! W2 forbids a leader to post after its own acknowledgement: between the two a session writes to its client's socket,
//! where it may block for ever, and the followers would wait for that client.
//!
//! | variant | wakes | the leader pays | the last of n followers is woken by |
//! | --- | --- | --- | --- |
//! | `leader` | the leader: each | n wake-ups | the n-th wake-up of the leader |
//! | `one-word` | the leader: all by one call of the kernel | 1 call | the kernel |
//!
//! `docs/mechanisms/log.md` says what each costs, and when it should win.

mod leader;
mod one_word;

use clearway_machine::{Machine, variants};

use super::waiters::{Outcome, Waiters};

/// The followers of one group, linked by their places.
#[derive(Debug, Clone, Copy)]
pub(super) struct Followers {
    /// The first to be woken, or `NONE`.
    pub(super) first: u32,
    /// The group's number. Groups are numbered from 0 in the order in which they are taken, and wrap.
    pub(super) group: u32,
}

/// The wake-up of one variant.
trait Wake<M: Machine> {
    fn new() -> Self;

    /// The group of `followers` is durable, and its leader, the caller, still holds the write latch.
    fn group_ended(&self, _followers: Followers) {}

    /// Wakes `followers`. Called by the leader, which has given the write latch back.
    fn wake(&self, waiters: &Waiters<M>, followers: Followers);

    /// Sleeps until `group`, which the caller, `me`, has joined as a follower, is durable and its leader has done with the
    /// caller's place.
    fn follow(&self, waiters: &Waiters<M>, me: u32, _group: u32) {
        let outcome = waiters.sleep(me);
        debug_assert_eq!(outcome, Outcome::Durable);
    }
}

/// Tells all on the list that begins with `first` that they are durable.
fn tell_each<M: Machine>(waiters: &Waiters<M>, first: u32) {
    let mut worker = first;
    while worker != super::waiters::NONE {
        // Read first: once told, the worker may join the next group.
        let next = waiters.next(worker);
        waiters.tell(worker, Outcome::Durable);
        worker = next;
    }
}

variants! {
    /// The worker that wakes the commits of a group that is durable, under `log_flush` group, gathering and
    /// polling.
    pub enum LogWakeVariant = "log_wake", best Leader, planned [],
        only beside "log_flush" ["group", "gathering", "polling"]
    {
        /// The leader of the group wakes each.
        Leader = "leader": leader::Waker<M>,
        /// All sleep on one word, and the leader wakes them by one call of the kernel.
        OneWord = "one-word": one_word::Waker<M>,
    }
    why {
        Leader: "The baseline. Simulated no other wins at each number of clients; natively one-word makes 1.05 to \
            1.29 times its commits under group, and under polling, the preset's, none has been compared."
            in "docs/mechanisms/log.md#variants";
    }

    /// The state of the variant chosen.
    pub(super) enum Waker[M: Machine], called by dispatch;
}

impl<M: Machine> Waker<M> {
    pub(super) fn new(variant: LogWakeVariant) -> Self {
        dispatch!(new variant => Wake::new())
    }

    /// The group of `followers` is durable, and its leader, the caller, still holds the write latch.
    pub(super) fn group_ended(&self, followers: Followers) {
        dispatch!(self, waker => Wake::<M>::group_ended(waker, followers))
    }

    /// Wakes `followers`. Called by the leader, which has given the write latch back.
    pub(super) fn wake(&self, waiters: &Waiters<M>, followers: Followers) {
        dispatch!(self, waker => waker.wake(waiters, followers))
    }

    /// Sleeps until `group`, which the caller, `me`, has joined as a follower, is durable.
    pub(super) fn follow(&self, waiters: &Waiters<M>, me: u32, group: u32) {
        dispatch!(self, waker => waker.follow(waiters, me, group))
    }
}
