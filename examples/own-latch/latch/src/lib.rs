//! A ticket latch: exclusive, first come, first served, and asleep while it waits long.
//!
//! It stands for a latch of your own: it uses nothing but the trait [`Machine`], so the same code runs on the host
//! ([`Native`]), under loom and shuttle, and on simulated machines.
//!
//! Alice, Bob and Carol come in this order and draw the tickets 0, 1 and 2. Alice is served at once. When she leaves,
//! 1 is served: that is Bob, however early Carol looks.
//!
//! # Rules
//! - T1. The worker whose ticket is served holds the latch. Each ticket is drawn once, so one worker holds it.
//! - T2. A worker that may sleep is counted in `sleepers` before the kernel looks at `serving` for it, and a release
//!   changes `serving` before it looks at `sleepers`. A full fence stands between the two on either side. So either the
//!   release sees the sleeper, or `serving` has changed and it does not sleep: no wake-up is lost.
//!
//! # Steps
//! 1. Draw a ticket. Poll until it is served; at most [`POLLS`] times.
//! 2. Else be counted, and sleep while `serving` is what was seen last (the kernel compares it once more).
//! 3. Release: serve the next ticket. If workers sleep, wake all of them, since one futex does not tell who has the
//!    next ticket.
//!
//! # Costs
//! Uncontended: one locked instruction to acquire, and a store and a fence to release. Each release takes the line of
//! `serving` from all that poll it. All that sleep are woken at every release: with many sleepers that is a herd. And
//! with fewer CPUs than workers the next in turn may be without a CPU while others, which could run, wait for it. The
//! laboratory shows both (`examples/own-latch/README.md`).
//!
//! Origin: tickets are Reed and Kanodia (1979); Mellor-Crummey and Scott (1991) compare them with queues.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use clearway_machine::{AtomicWord, Machine, Native};

/// How often a worker polls before it sleeps: about as long as it takes to sleep and to be woken.
pub const POLLS: u32 = 500;

/// The latch.
#[derive(Debug)]
pub struct TicketLatch<M: Machine = Native> {
    /// The next ticket to draw.
    next: M::U32,
    /// The ticket whose worker holds the latch, or whose worker will, if it is not drawn yet. Sleepers sleep on it.
    serving: M::U32,
    /// Workers that sleep, or are about to.
    sleepers: M::U32,
}

impl<M: Machine> TicketLatch<M> {
    /// A free latch.
    pub fn new() -> Self {
        Self {
            next: M::U32::new(0),
            serving: M::U32::new(0),
            sleepers: M::U32::new(0),
        }
    }

    /// Acquires the latch, and releases it when `section` has run.
    pub fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        self.acquire();
        let holder = Holder(self);
        let result = section();
        drop(holder);
        result
    }

    fn acquire(&self) {
        // Relaxed: who draws which ticket orders nothing. Tickets wrap around after 2^32, and so does `serving`.
        let ticket = self.next.fetch_add(1, Relaxed);
        // A checker polls once: each further look would be the same case again.
        let polls = if M::EXPLORED { 1 } else { POLLS };
        for _ in 0..polls {
            // Acquire: pairs with the Release in `release`; what earlier holders wrote is visible.
            if self.serving.load(Acquire) == ticket {
                return;
            }
            M::spin_hint();
        }
        self.sleepers.fetch_add(1, Relaxed);
        // T2, the sleeper's side.
        M::fence(SeqCst);
        loop {
            let seen = self.serving.load(Acquire);
            if seen == ticket {
                break;
            }
            M::futex_wait(&self.serving, seen, None);
        }
        self.sleepers.fetch_sub(1, Relaxed);
    }

    fn release(&self) {
        // The holder alone changes it, so what it loads is the latest.
        let next = self.serving.load(Relaxed).wrapping_add(1);
        self.serving.store(next, Release);
        // T2, the side of the release.
        M::fence(SeqCst);
        if self.sleepers.load(Relaxed) != 0 {
            M::futex_wake(&self.serving, u32::MAX);
        }
    }
}

impl<M: Machine> Default for TicketLatch<M> {
    fn default() -> Self {
        Self::new()
    }
}

/// A worker that holds the latch: releases it at its end, also when the section panics.
struct Holder<'a, M: Machine>(&'a TicketLatch<M>);

impl<M: Machine> Drop for Holder<'_, M> {
    fn drop(&mut self) {
        self.0.release();
    }
}
