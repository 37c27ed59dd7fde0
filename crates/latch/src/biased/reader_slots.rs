//! Where the readers of a biased [`AdaptiveLatch`](crate::AdaptiveLatch) make themselves known: K words on cache lines of
//! their own.
//!
//! | bits | name | meaning |
//! | --- | --- | --- |
//! | 0–14 | `INSIDE` | readers here |
//! | 15 | `AWAITED` | a writer sleeps until `INSIDE` is zero |
//! | 16–31 | served | readers that ever came, wrapping |
//!
//! A reader comes by one addition that counts it twice, inside and served, and goes by one subtraction. The second count
//! costs the reader nothing, and a writer, who must look at every word anyway, learns from it how many readers came
//! between two writers.
//!
//! No lost wake-up: the writer sets `AWAITED` by an RMW of the word that readers leave by an RMW. The reader first: the
//! writer's RMW shows that nobody is inside. The writer first: the reader that leaves last sees `AWAITED` and wakes it.
//! Only one writer waits at a time, the one that holds the latch's word exclusively.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use clearway_machine::{AtomicWord, Machine, Padded, WaitScope};

use crate::class::{LatchClass, Wait};
use crate::spin::Spin;

const INSIDE: u32 = AWAITED - 1;
const AWAITED: u32 = 1 << 15;
const SERVED_UNIT: u32 = 1 << 16;

/// The readers that came between two counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Readers {
    pub(crate) all: u32,
    /// Those in slots other than the counting worker's own.
    pub(crate) elsewhere: u32,
}

/// The slots of one latch.
#[derive(Debug)]
pub(crate) struct ReaderSlots<const K: usize, M: Machine> {
    words: [Padded<M::U32>; K],
    /// `served` of each slot when the readers were counted last. Apart from the words, since who counts may have to read the
    /// readers' lines but need not write them. Written by exclusive holders only.
    counted: Padded<[M::U32; K]>,
}

impl<const K: usize, M: Machine> ReaderSlots<K, M> {
    pub(crate) fn new() -> Self {
        Self {
            words: core::array::from_fn(|_| Padded(M::U32::new(0))),
            counted: Padded(core::array::from_fn(|_| M::U32::new(0))),
        }
    }

    /// A reader makes itself known. SeqCst, not for what it publishes but for what follows it: see R3 of the latch.
    #[inline]
    pub(crate) fn enter(&self, slot: usize) {
        let before = self.words[slot].fetch_add(SERVED_UNIT + 1, SeqCst);
        debug_assert!(before & INSIDE < INSIDE, "the count of readers overflows");
    }

    /// A reader leaves. Release: pairs with the Acquire in `is_empty` and `drain`; the reader's reads come before the writer's
    /// writes.
    #[inline]
    pub(crate) fn leave(&self, slot: usize) {
        let word = &*self.words[slot];
        let before = word.fetch_sub(1, Release);
        debug_assert!(before & INSIDE != 0, "a reader leaves a slot that has none");
        if before & (INSIDE | AWAITED) == AWAITED | 1 {
            Self::wake(word);
        }
    }

    #[cold]
    #[inline(never)]
    fn wake(word: &M::U32) {
        M::futex_wake(word, 1);
    }

    /// Whether there is no reader in any slot, each looked at once.
    pub(crate) fn is_empty(&self) -> bool {
        // All are read, so that the CPU can fetch the lines at the same time.
        let words = self
            .words
            .iter()
            .fold(0, |all, word| all | word.load(Acquire) & INSIDE);
        words == 0
    }

    /// Waits until each slot has been seen without a reader; a wait counts as one for exclusive mode.
    #[cold]
    #[inline(never)]
    pub(crate) fn drain(&self, class: &'static LatchClass) {
        let started = M::now();
        let mut spin = Spin::begin::<M>(class);
        spin.poll_as_owner::<M>();
        let mut sleeps = 0;
        for word in &self.words {
            let word: &M::U32 = word;
            let mut found = word.load(Acquire);
            let mut awaited = false;
            while found & INSIDE != 0 {
                if spin.poll::<M>() {
                    found = word.load(Acquire);
                    continue;
                }
                awaited = true;
                // An RMW, so that it comes before or after the last reader's.
                found = word.fetch_or(AWAITED, Acquire) | AWAITED;
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
            if awaited {
                // Readers that look in and leave again must not go on waking nobody.
                word.fetch_and(!AWAITED, Relaxed);
            }
        }
        class.record(
            Wait::Exclusive,
            spin.polls(),
            sleeps,
            M::now().saturating_sub(started),
        );
        spin.finish::<M>(sleeps > 0);
    }

    /// Counts the readers that came since the last count, modulo 65,536 a slot, and begins a new one. For the exclusive
    /// holder.
    pub(crate) fn count(&self, own: usize) -> Readers {
        let mut readers = Readers { all: 0, elsewhere: 0 };
        for (number, (word, counted)) in self.words.iter().zip(self.counted.iter()).enumerate() {
            let served = word.load(Relaxed) / SERVED_UNIT;
            let came = served.wrapping_sub(counted.load(Relaxed)) % (1 << 16);
            counted.store(served, Relaxed);
            readers.all += came;
            if number != own {
                readers.elsewhere += came;
            }
        }
        readers
    }
}

const _: () = assert!(INSIDE & AWAITED == 0 && INSIDE + AWAITED < SERVED_UNIT);
