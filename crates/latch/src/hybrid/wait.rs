//! The slow paths of a hybrid latch: polling, parking, and waking parked workers.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use clearway_machine::{AtomicWord, Machine};

use super::{COUNT, EXCLUSIVE, HAS_WAITERS, HybridLatch, UPDATE, WAKING};
use crate::class::{ClassOf, Wait};
use crate::parking;
use crate::waiting::Waiting;

/// Modes of parked workers.
pub(super) const WANTS_SHARED: u32 = 0;
pub(super) const WANTS_UPDATE: u32 = 1;
pub(super) const WANTS_EXCLUSIVE: u32 = 2;
pub(super) const WAITS_FOR_READERS: u32 = 3;

impl<C: ClassOf, M: Machine> HybridLatch<C, M> {
    #[cold]
    #[inline(never)]
    #[track_caller]
    pub(super) fn shared_slow(&self) {
        self.wait(Wait::Shared, WANTS_SHARED, EXCLUSIVE, || self.try_grant_shared());
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    pub(super) fn update_slow(&self) {
        self.wait(Wait::Update, WANTS_UPDATE, UPDATE, || {
            self.try_set(UPDATE, 0, None)
        });
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    pub(super) fn exclusive_slow(&self) {
        self.wait(Wait::Exclusive, WANTS_EXCLUSIVE, UPDATE, || {
            self.try_set(UPDATE | EXCLUSIVE, 0, None)
        });
        self.drain();
    }

    /// Waits for the shared holders to leave; `EXCLUSIVE` keeps new ones out.
    #[cold]
    #[inline(never)]
    #[track_caller]
    pub(super) fn drain(&self) {
        // Acquire: pairs with the Release of each shared release.
        self.wait(Wait::Exclusive, WAITS_FOR_READERS, COUNT, || {
            self.word.load(Acquire) & COUNT == 0
        });
    }

    /// Polls, and parks while any of `blocking` is set, until `attempt` succeeds.
    #[track_caller]
    pub(super) fn wait(&self, wait: Wait, mode: u32, blocking: u64, attempt: impl Fn() -> bool) {
        if attempt() {
            return;
        }
        let mut waiting = Waiting::begin::<M>(C::class(), wait, self.address());
        if mode == WAITS_FOR_READERS {
            waiting.poll_as_owner::<M>();
        }
        // Whether WAKING is set because of this worker.
        let mut woken = false;
        loop {
            if self.word.load(Relaxed) & blocking == 0 && attempt() {
                if woken {
                    self.end_waking();
                }
                break;
            }
            if waiting.poll::<M>() {
                continue;
            }
            if woken {
                woken = false;
                if self.end_waking() & blocking == 0 {
                    continue;
                }
            }
            let again = waiting.has_slept();
            let slept = waiting.sleep::<M>(|class| {
                parking::park::<M>(self.address(), mode, again, class.wait_event, || {
                    self.must_park(blocking)
                })
            });
            woken = slept && (mode == WANTS_UPDATE || mode == WANTS_EXCLUSIVE);
        }
        waiting.finish::<M>();
    }

    /// R2a: a woken writer has got the latch, or takes the look that may make it park again. Returns the
    /// word.
    pub(super) fn end_waking(&self) -> u64 {
        let word = self.word.fetch_and(!WAKING, Relaxed);
        // Even if UPDATE is clear now: the caller takes it next, perhaps without excluding readers.
        if word & (EXCLUSIVE | HAS_WAITERS) == HAS_WAITERS {
            self.wake_readers();
        }
        word
    }

    /// R2: whether any of `blocking` is set, in a word that has `HAS_WAITERS` from then on.
    pub(super) fn must_park(&self, blocking: u64) -> bool {
        let mut word = self.word.load(Relaxed);
        loop {
            if word & blocking == 0 {
                return false;
            }
            if word & HAS_WAITERS != 0 {
                return true;
            }
            match self
                .word
                .compare_exchange_weak(word, word | HAS_WAITERS, Relaxed, Relaxed)
            {
                Ok(_) => return true,
                Err(found) => word = found,
            }
        }
    }

    /// `UPDATE` is clear: wakes one writer and the readers. If the longest waiter is a writer that will
    /// exclude readers, wakes it alone, since the readers would only park again.
    #[cold]
    #[inline(never)]
    pub(super) fn wake_after_update(&self) {
        // Step 5. If the flag was set after the release, a worker was woken after it, which serves as well.
        if self.word.load(Relaxed) & WAKING != 0 {
            return;
        }
        let mut first = true;
        let mut writer = false;
        let mut alone = false;
        self.wake(|mode| {
            let take = match mode {
                _ if alone => false,
                WANTS_SHARED => true,
                WANTS_UPDATE | WANTS_EXCLUSIVE if !writer => {
                    writer = true;
                    alone = first && mode == WANTS_EXCLUSIVE;
                    // Before the writer runs and can clear it.
                    self.word.fetch_or(WAKING, Relaxed);
                    true
                }
                _ => false,
            };
            first = false;
            take
        });
    }

    /// `EXCLUSIVE` is clear: wakes the readers.
    #[cold]
    pub(super) fn wake_readers(&self) {
        self.wake(|mode| mode == WANTS_SHARED);
    }

    /// Wakes the parked workers whose mode `pick` accepts.
    pub(super) fn wake(&self, pick: impl FnMut(u32) -> bool) {
        parking::unpark::<M>(self.address(), pick, || {
            self.word.fetch_and(!HAS_WAITERS, Relaxed);
        });
    }
}
