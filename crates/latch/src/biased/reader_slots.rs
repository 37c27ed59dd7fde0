//! The reader slots of a biased [`AdaptiveLatch`](crate::AdaptiveLatch): K words on cache lines of their own.
//!
//! | bits | name | meaning |
//! | --- | --- | --- |
//! | 0–30 | `INSIDE` | readers that hold the latch by this slot, and visits |
//! | 31 | `WRITER_SLEEPS` | a writer sleeps until `INSIDE` is zero |
//!
//! No wake-up is lost: the writer sets `WRITER_SLEEPS` by an RMW of the word that readers leave by an RMW. If
//! the reader's RMW is first, the writer's shows that no reader is inside. If the writer's is first, the last
//! reader to leave sees `WRITER_SLEEPS` and wakes it. Only one writer waits at a time: the holder of
//! `EXCLUSIVE` in the latch's word.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use clearway_machine::{AtomicWord, CoreU32, Host, Machine, Padded, WaitScope};

use crate::class::{LatchClass, Wait};
use crate::spin::Spin;

const INSIDE: u32 = WRITER_SLEEPS - 1;
const WRITER_SLEEPS: u32 = 1 << 31;

/// The slots of one latch.
#[derive(Debug)]
pub(crate) struct ReaderSlots<const K: usize, M: Machine> {
    words: [Padded<M::U32>; K],
}

impl<const K: usize> ReaderSlots<K, Host> {
    /// As `new`, in a constant.
    pub(super) const fn in_static() -> Self {
        Self {
            words: [const { Padded(CoreU32::new_const(0)) }; K],
        }
    }
}

impl<const K: usize, M: Machine> ReaderSlots<K, M> {
    pub(crate) fn new() -> Self {
        Self {
            words: core::array::from_fn(|_| Padded(M::U32::new(0))),
        }
    }

    /// Counts a reader in. SeqCst because of the load that follows it: see R3 of the latch.
    #[inline]
    pub(crate) fn enter(&self, slot: usize) {
        let before = self.words[slot].fetch_add(1, SeqCst);
        debug_assert!(before & INSIDE < INSIDE, "the count of readers overflows");
    }

    /// Counts a reader out. Release: pairs with the Acquire in `is_empty` and `drain`; the reader's reads
    /// come before the writer's writes.
    #[inline]
    pub(crate) fn leave(&self, slot: usize) {
        let word = &*self.words[slot];
        let before = word.fetch_sub(1, Release);
        debug_assert!(before & INSIDE != 0, "a reader leaves a slot that has none");
        if before & (INSIDE | WRITER_SLEEPS) == WRITER_SLEEPS | 1 {
            Self::wake(word);
        }
    }

    #[cold]
    #[inline(never)]
    fn wake(word: &M::U32) {
        M::futex_wake(word, 1);
    }

    /// True if each of the first `in_use` slots, read once, had no reader.
    pub(crate) fn is_empty(&self, in_use: usize) -> bool {
        // All words are read, without a branch between, so that the CPU fetches the lines at the same time.
        let words = self.words[..in_use]
            .iter()
            .fold(0, |all, word| all | word.load(Acquire) & INSIDE);
        words == 0
    }

    /// Waits until each of the first `in_use` slots has been seen without a reader. Recorded as a wait for exclusive
    /// mode. What the worker learns from it, it applies to such waits alone. Returns when the wait was over.
    #[cold]
    #[inline(never)]
    pub(crate) fn drain(&self, in_use: usize, class: &'static LatchClass) -> u64 {
        class.begin_wait();
        let started = M::now();
        // A worker without a slot, which holds the latch's word, polls as one that has learned nothing.
        let slot = M::known_worker().map(|worker| M::workers().slot(worker));
        let taught = slot.map(|slot| &slot.adaptive.spins_for_slots);
        let mut spin = taught.map_or_else(
            || Spin::begin::<M>(class),
            |taught| Spin::begin_in::<M>(class, taught),
        );
        spin.poll_as_owner::<M>();
        let mut sleeps = 0;
        for word in &self.words[..in_use] {
            let word: &M::U32 = word;
            let mut found = word.load(Acquire);
            let mut marked = false;
            while found & INSIDE != 0 {
                if spin.poll::<M>() {
                    found = word.load(Acquire);
                    continue;
                }
                marked = true;
                // An RMW, so that it comes before or after that of the last reader.
                found = word.fetch_or(WRITER_SLEEPS, Acquire) | WRITER_SLEEPS;
                if found & INSIDE == 0 {
                    break;
                }
                {
                    let _wait = WaitScope::<M>::enter(class.wait_event);
                    M::futex_wait(word, found, None);
                }
                sleeps += 1;
                spin.restart::<M>();
                found = word.load(Acquire);
            }
            if marked {
                // Later visits must not make wake-up calls in vain.
                word.fetch_and(!WRITER_SLEEPS, Relaxed);
            }
        }
        let ended = M::now();
        class.record(
            Wait::Exclusive,
            spin.polls(),
            sleeps,
            ended.saturating_sub(started),
        );
        if let Some(taught) = taught {
            spin.finish_in::<M>(class, taught, sleeps > 0);
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use clearway_machine::{Native, WaitEvent};

    use super::*;

    /// Mutation: `drain` learns in `spins_per_delay` → the worker polls longer at plain latches, too.
    #[test]
    fn a_wait_for_slots_teaches_for_such_waits_alone() {
        static CLASS: LatchClass = LatchClass::new("slots", WaitEvent::UserLatch, 0);
        let slots = ReaderSlots::<2, Native>::new();
        slots.enter(1);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(core::time::Duration::from_millis(5));
                slots.leave(1);
            });
            let worker = Native::workers().slot(Native::worker());
            worker.spins_per_delay.store(500, Relaxed);
            slots.drain(2, &CLASS);
            assert_eq!(worker.spins_per_delay.load(Relaxed), 500);
            let for_slots = worker.adaptive.spins_for_slots.load(Relaxed);
            assert!(for_slots != 0, "it has learned");
            worker.spins_per_delay.store(0, Relaxed);
        });
    }
}
