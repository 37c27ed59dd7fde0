//! One futex for a whole group: the followers sleep on a word that tells which group has ended, and one call wakes all.
//!
//! There are two words, one for groups with an even number and one for those with an odd one. While a group is being
//! synced, those that come form the next one, and sleep on the other word. The group after that opens when the next is
//! taken, which may be before the leader has made its call; so a few of that group may be woken by it. They find that
//! their group has not ended, and sleep again.
//!
//! W2: the leader stores the number of its group, and then wakes all that sleep on the word. A follower sleeps only while
//! the word is what it has read there, and goes as soon as it reads its group's number or a later one. So the kernel
//! lets it sleep before the store alone, and then the call wakes it. Leaders store under the write latch: the numbers rise.
//!
//! W1: a follower goes when its group has ended, and not as soon as it is durable, since its place is on the list until
//! the leader has read it.
//!
//! Cost: one call of the kernel, which wakes all one after the other, at less than a call each; the leader waits for it.
//! All run at once, whether there are CPUs or not.

use std::sync::atomic::Ordering::{Acquire, Release};

use clearway_machine::{AtomicWord, Machine, Padded, WaitEvent, WaitScope};

use super::{Followers, Wake};
use crate::wal::flush::waiters::{NONE, Waiters};

pub(in crate::wal) struct Waker<M: Machine> {
    /// The number of the last group that has ended, of the even and of the odd ones.
    ended: [Padded<M::U32>; 2],
}

impl<M: Machine> Waker<M> {
    fn word(&self, group: u32) -> &M::U32 {
        &self.ended[group as usize % 2]
    }
}

impl<M: Machine> Wake<M> for Waker<M> {
    fn new() -> Self {
        // The groups before the first, whose number is 0.
        let before = |number: u32| Padded(M::U32::new(number.wrapping_sub(2)));
        Self {
            ended: [before(0), before(1)],
        }
    }

    fn group_ended(&self, followers: Followers) {
        // Release: pairs with the Acquire in `follow`; one that sees the number sees `durable`.
        self.word(followers.group).store(followers.group, Release);
    }

    fn wake(&self, _waiters: &Waiters<M>, followers: Followers) {
        if followers.first != NONE {
            M::futex_wake(self.word(followers.group), u32::MAX);
        }
    }

    fn follow(&self, _waiters: &Waiters<M>, _me: u32, group: u32) {
        let _wait = WaitScope::<M>::enter(WaitEvent::WalFlushGroup);
        let word = self.word(group);
        loop {
            // Acquire: pairs with the Release in `group_ended`.
            let ended = word.load(Acquire);
            // A group ends before the next but one opens, so numbers are compared as near to each other.
            if ended.wrapping_sub(group) as i32 >= 0 {
                return;
            }
            M::futex_wait(word, ended, None);
        }
    }
}
