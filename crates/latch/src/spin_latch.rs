//! SpinLatch: an exclusive latch of one word, for a handful of instructions.
//!
//! It protects a few words that every worker changes, such as the end of the log. The holder does nothing but read and
//! write them; it calls nothing and waits for nothing. There is no list of waiters: a worker that finds the latch
//! held polls it, and sleeps for a set time when its [delay](crate::delay) says so.
//!
//! | word | means |
//! | --- | --- |
//! | 0 | free |
//! | 1 | held |
//!
//! # Steps
//! 1. Change the word from 0 to 1 by a CAS. Success: the latch is held by this worker.
//! 2. Else look by loads, with a step of the delay after each, until the word is 0, then go back to 1. A CAS takes the
//!    line away from the holder, which needs it for what the latch protects; a load only shares it.
//! 3. Release: store 0.
//!
//! # Costs
//! Uncontended: one locked instruction and one store. Contended: every release and every CAS moves the line to
//! another core, and a holder that loses its CPU stops all others, which sleep a millisecond at a time. The first is
//! why a database replaces such a latch by an atomic add where one is enough; the second is inherent.
//!
//! Origin: PostgreSQL's s_lock.c.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, Host, Machine};

use crate::class::{LatchClass, Wait};
use crate::delay::Delay;

/// A latch that workers poll. See the module's documentation for what it is for.
#[derive(Debug)]
pub struct SpinLatch<M: Machine = Host> {
    class: &'static LatchClass,
    word: M::U32,
}

impl<M: Machine> SpinLatch<M> {
    /// A free latch of `class`.
    pub fn new(class: &'static LatchClass) -> Self {
        Self {
            class,
            word: M::U32::new(0),
        }
    }

    /// Acquires the latch.
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> SpinLatchGuard<'_, M> {
        if !self.try_take() {
            self.take_slow();
        }
        self.class.count::<M>(Wait::Exclusive);
        SpinLatchGuard {
            latch: self,
            not_send: PhantomData,
        }
    }

    /// Acquire: pairs with the Release in the guard's drop; what earlier holders wrote is visible.
    #[inline]
    fn try_take(&self) -> bool {
        self.word.compare_exchange(0, 1, Acquire, Relaxed).is_ok()
    }

    #[cold]
    #[track_caller]
    fn take_slow(&self) {
        M::label(core::ptr::from_ref(self).cast(), self.class.name);
        self.class.begin_wait();
        let started = M::now();
        let mut delay = Delay::new::<M>(M::known_worker());
        // Each step follows a look at the word: a step promises the machine further polls of the word loaded last,
        // and `Delay::new` has loaded others.
        while self.word.load(Relaxed) != 0 || !self.try_take() {
            delay.step::<M>(self.class.name);
        }
        let waited = M::now().saturating_sub(started);
        self.class.record(Wait::Exclusive, delay.total_spins, 0, waited);
        delay.finish::<M>();
    }
}

/// The latch, held. Dropping it releases the latch.
#[derive(Debug)]
#[must_use = "dropping the guard releases the latch"]
pub struct SpinLatchGuard<'a, M: Machine> {
    latch: &'a SpinLatch<M>,
    not_send: PhantomData<*const ()>,
}

impl<M: Machine> Drop for SpinLatchGuard<'_, M> {
    #[inline]
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `try_take`.
        self.latch.word.store(0, Release);
    }
}
