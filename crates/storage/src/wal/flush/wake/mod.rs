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
//! - W2: *no follower is forgotten.* While a follower of a durable group sleeps, one worker has the *duty* to wake it: it
//!   is awake, or has been posted. Before that worker returns from the flush, it wakes the follower or has passed the
//!   duty to another that is awake or posted. A worker with a duty waits for nothing but a CPU and, in `hand-over`, for
//!   the write latch.
//! - W3: no worker wakes another while it holds what the woken one needs next.
//!
//! W2 forbids a leader to post after its own acknowledgement: between the two a session writes to its client's socket,
//! where it may block for ever, and the followers would wait for that client. What W2 leaves of that idea is
//! `first-woken`: another worker does the posts, and that one before its own acknowledgement.
//!
//! | variant | wakes | the leader pays | the last of n followers is woken by |
//! | --- | --- | --- | --- |
//! | `leader` | the leader: each | n wake-ups | the n-th wake-up of the leader |
//! | `tree` | the leader and each that is woken: two each | 2 | a chain of about log₂ n |
//! | `first-woken` | the leader: one, which wakes the others | 1 | the n-th, after one more switch of threads |
//! | `hand-over` | the next leader, if there is one by then: each | n, of the group before | the n-th, after the next leader has been woken |
//! | `one-word` | the leader: all by one call of the kernel | 1 call | the kernel |
//!
//! `docs/mechanisms/log.md` says what each costs, and when it should win.

mod first_woken;
mod hand_over;
mod leader;
mod one_word;
mod tree;

use clearway_machine::{Machine, switch};

pub(super) use self::tree::Tree;
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

    /// The caller has become the leader of the next group: it holds the write latch, and is about to take its group.
    fn leader_begins(&self, _waiters: &Waiters<M>) {}

    /// The group is durable, and its leader, the caller, still holds the write latch. Takes those from `followers` that
    /// the next leader is going to wake; `has_next_leader`: it has joined, and is on its way to the latch.
    fn group_ended(&self, _waiters: &Waiters<M>, _followers: &mut Followers, _has_next_leader: bool) {}

    /// Wakes `followers`, or passes the duty on. Called by the leader, which has given the write latch back.
    fn wake(&self, waiters: &Waiters<M>, followers: Followers);

    /// Sleeps until `group`, which the caller, `me`, has joined as a follower, is durable and its leader has done with the
    /// caller's place; then wakes others, if that is its duty.
    fn follow(&self, waiters: &Waiters<M>, me: u32, _group: u32) {
        let outcome = waiters.sleep(me);
        debug_assert_eq!(outcome, Outcome::Durable);
        self.woken(waiters, waiters.inherited(me));
    }

    /// The caller, a follower, has been told, and has inherited the list that begins with `inherited`.
    fn woken(&self, _waiters: &Waiters<M>, _inherited: u32) {}
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

/// Makes the switch and the dispatch over the variants from one line for each.
macro_rules! variants {
    ($( $(#[doc = $text:literal])+ $variant:ident = $name:literal in $module:ident; )+) => {
        switch! {
            /// The worker that wakes the commits of a group that is durable, under `log_flush` group, gathering and
            /// polling.
            pub enum LogWakeVariant = "log_wake", best Leader, planned [],
                only beside "log_flush" ["group", "gathering", "polling"]
            {
                $( $(#[doc = $text])+ $variant = $name, )+
            }
            why {
                Leader: "The baseline. Simulated no other wins at each number of clients; natively one-word makes 1.05 to \
                    1.29 times its commits under group, and under polling, the preset's, none has been compared."
                    in "docs/mechanisms/log.md#variants";
            }
        }

        /// The state of the variant chosen.
        pub(super) enum Waker<M: Machine> { $( $variant($module::Waker<M>), )+ }

        impl<M: Machine> Waker<M> {
            pub(super) fn new(variant: LogWakeVariant) -> Self {
                match variant {
                    $( LogWakeVariant::$variant => Self::$variant(Wake::new()), )+
                }
            }

            /// The caller has become the leader of the next group: it holds the write latch.
            pub(super) fn leader_begins(&self, waiters: &Waiters<M>) {
                match self {
                    $( Self::$variant(waker) => waker.leader_begins(waiters), )+
                }
            }

            /// The group is durable, and its leader, the caller, still holds the write latch. Takes those from
            /// `followers` that the next leader is going to wake.
            pub(super) fn group_ended(
                &self,
                waiters: &Waiters<M>,
                followers: &mut Followers,
                has_next_leader: bool,
            ) {
                match self {
                    $( Self::$variant(waker) => waker.group_ended(waiters, followers, has_next_leader), )+
                }
            }

            /// Wakes `followers`, or passes the duty on. Called by the leader, which has given the write latch back.
            pub(super) fn wake(&self, waiters: &Waiters<M>, followers: Followers) {
                match self {
                    $( Self::$variant(waker) => waker.wake(waiters, followers), )+
                }
            }

            /// Sleeps until `group`, which the caller, `me`, has joined as a follower, is durable; then does the
            /// caller's part of the wake-ups.
            pub(super) fn follow(&self, waiters: &Waiters<M>, me: u32, group: u32) {
                match self {
                    $( Self::$variant(waker) => waker.follow(waiters, me, group), )+
                }
            }
        }
    };
}

variants! {
    /// The leader of the group wakes each.
    Leader = "leader" in leader;
    /// The leader wakes two, and each that is woken wakes two more.
    Tree = "tree" in tree;
    /// The leader wakes one, which wakes all others.
    FirstWoken = "first-woken" in first_woken;
    /// The leader of the next group wakes each before it syncs; without one the leader does.
    HandOver = "hand-over" in hand_over;
    /// All sleep on one word, and the leader wakes them by one call of the kernel.
    OneWord = "one-word" in one_word;
}
