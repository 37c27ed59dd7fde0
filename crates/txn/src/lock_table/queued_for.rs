//! The lock that a session queues for, in two words of its slot, so that a search for a deadlock finds it without a
//! look at all queues.
//!
//! | word | bits | meaning |
//! | --- | --- | --- |
//! | 0 | 0–31 | the relation; of an advisory lock or a program's own the lower half |
//! | | 32–63 | the page; of an advisory lock or a program's own the upper half |
//! | 1 | 0–15 | the line pointer; of a program's own the number of its wait event |
//! | | 16 | 1: a tuple |
//! | | 17, 18 | 1: an advisory lock; of a pair of numbers |
//! | | 19 | 1: a program's own |
//! | | 32–34 | the mode |
//!
//! The words are written when the session is put in the queue, under the latch of the lock's partition, and read by a
//! worker that has all of these latches and finds the session queued.

use std::sync::atomic::Ordering::Relaxed;

use clearway_machine::{AtomicWord, Machine, WaitEvent};

use super::{LockKind, LockManager, LockTag, QUEUED};
use crate::{LockMode, ProcId};

const TUPLE: u64 = 1 << 16;
const ADVISORY: u64 = 1 << 17;
const PAIR: u64 = 1 << 18;
const OWN: u64 = 1 << 19;
const MODE_SHIFT: u32 = 32;

/// A lock and a mode.
#[derive(Debug)]
pub(super) struct QueuedFor<M: Machine>([M::U64; 2]);

impl<M: Machine> QueuedFor<M> {
    pub(super) fn nothing() -> Self {
        Self([0, 0].map(M::U64::new))
    }

    /// The caller has the latch of the partition.
    #[inline]
    pub(super) fn set(&self, tag: LockTag, mode: LockMode) {
        let (place, kind) = match tag {
            LockTag::Relation(rel) => (u64::from(rel), 0),
            LockTag::Tuple { rel, block, slot } => {
                (u64::from(block) << 32 | u64::from(rel), TUPLE | u64::from(slot))
            }
            LockTag::Advisory { high, low, is_pair } => (
                u64::from(high) << 32 | u64::from(low),
                ADVISORY | if is_pair { PAIR } else { 0 },
            ),
            LockTag::Own { kind, high, low } => (
                u64::from(high) << 32 | u64::from(low),
                OWN | kind.wait_event() as u64,
            ),
        };
        self.0[0].store(place, Relaxed);
        self.0[1].store(kind | (mode as u64) << MODE_SHIFT, Relaxed);
    }

    fn get(&self) -> (LockTag, LockMode) {
        let [place, kind] = [0, 1].map(|word| self.0[word].load(Relaxed));
        let rel = place as u32;
        let own = LockKind::of(WaitEvent::from_number(u32::from(kind as u16)));
        let tag = if kind & ADVISORY != 0 {
            LockTag::Advisory {
                high: (place >> 32) as u32,
                low: rel,
                is_pair: kind & PAIR != 0,
            }
        } else if let Some(own) = own.filter(|_| kind & OWN != 0) {
            LockTag::own(own, place)
        } else if kind & TUPLE == 0 {
            LockTag::Relation(rel)
        } else {
            LockTag::Tuple {
                rel,
                block: (place >> 32) as u32,
                slot: kind as u16,
            }
        };
        (tag, LockMode::ALL[(kind >> MODE_SHIFT) as usize])
    }
}

impl<M: Machine> LockManager<M> {
    /// The lock that `proc` queues for. The caller has the latches of all partitions.
    pub(crate) fn queues_for(&self, proc: ProcId) -> Option<(LockTag, LockMode)> {
        let wait = self.wait_of(proc);
        (wait.queued.load(Relaxed) == QUEUED).then(|| wait.queued_for.get())
    }
}

#[cfg(all(test, not(feature = "loom"), not(feature = "shuttle")))]
mod tests {
    use clearway_machine::Native;

    use super::*;

    /// Mutations that it is for: a page shifted by 31; the mode in bits 16 to 18.
    #[test]
    fn what_was_written_is_read() {
        let words = QueuedFor::<Native>::nothing();
        for number in [0, 1, u32::MAX] {
            let tuple = LockTag::Tuple {
                rel: number,
                block: !number,
                slot: number as u16,
            };
            let advisory = |is_pair| LockTag::Advisory {
                high: !number,
                low: number,
                is_pair,
            };
            let own = [WaitEvent::User1, WaitEvent::User32].map(|event| {
                let kind = LockKind::of(event).unwrap();
                LockTag::own(kind, u64::from(!number) << 32 | u64::from(number))
            });
            let tags = [LockTag::Relation(number), tuple, advisory(true), advisory(false)];
            for mode in LockMode::ALL {
                for tag in tags.into_iter().chain(own) {
                    words.set(tag, mode);
                    assert_eq!(words.get(), (tag, mode));
                }
            }
        }
    }
}
