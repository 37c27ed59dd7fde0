//! Polling flush: a worker whose record is not durable looks again and again, and yields its CPU between two looks.
//!
//! Invariant: one worker at most has the device, from the CAS that takes it to the swap that gives it back. A worker
//! sleeps only while `device` is `AWAITED`, and the swap that ends `AWAITED` is followed by a wake-up of all sleepers.
//!
//! | `device` | the device | sleepers |
//! | --- | --- | --- |
//! | `FREE` | free | none, or woken by the worker that freed it |
//! | `BUSY` | has an owner | none, or woken as above |
//! | `AWAITED` | has an owner | there may be some |
//!
//! # Steps
//! 1. Wait for the insertions before one's own target.
//! 2. Durable far enough: done.
//! 3. `FREE`: take the device by a CAS. Look at `durable` again; sleep `commit_delay` if there is one; write and sync
//!    all that are complete. Give the device back by a swap, and wake the sleepers if there may be some. Done.
//! 4. Else, while polling is the faster way, yield the CPU, and go on with 2. The worker spends at most about twice the
//!    time on this that a flush takes, and none if that is more than [`PATIENCE_NS`]. While others run on its CPU it
//!    spends none, so polls are counted, at [`POLL_NS`] each.
//! 5. Then sleep: make `BUSY` `AWAITED` by a CAS, and sleep while it is. Go on with 2, without polling again.
//!
//! Which way is faster, 4 or 5, the owners find out by taking both in turn ([`trial`](super::trial)).
//!
//! # Why
//! To put a worker to sleep and to wake it takes two context switches and, on a virtual machine, an interrupt to an
//! idle CPU. Where a flush takes 100 µs, that is a fifth of it, and it comes between two flushes: the device is idle
//! until the next leader runs. A worker that polls runs already, or its CPU runs another that is as good: no leader is
//! named, so the first that finds the device free takes it. A yield gives the CPU to a worker that has a transaction
//! to go on with, so with more workers than CPUs polling takes little from them.
//!
//! That is so where a thread that yields goes behind the others, as it does since Linux 6.18 and 6.12.63. Before, the
//! scheduler took the thread that had run least: two that poll pass the CPU to each other while a third, which has work
//! and has run more, waits. Limits on the CPU time of a container speak against polling too. A worker sees none of this,
//! but the rate of the log shows it; hence the trials.
//!
//! # How the rules are kept
//! - R3, R5: the owner alone writes and syncs. Ownership passes by the swap (Release) and the CAS (Acquire), so the next
//!   owner sees `written` and `durable`.
//! - R2: step 1 comes before the device is taken. The owner waits for nothing but the device (step 3 takes along what
//!   is complete, and waits for none). So an inserter that finds the ring full may poll or sleep here, and holds up no
//!   owner.
//! - R1: `complete_at_least` is asked by the owner itself, which sees by it the bytes that it writes.
//! - No wake-up is lost: a worker sleeps only if the kernel finds `AWAITED`. Who stored that, or another, found the
//!   device with an owner, whose swap is still to come, and wakes all.
//! - No wake-up while holding what the woken need: it follows the swap.
//! - A worker goes through 3 in vain only while `durable` moves or the device has an owner, whose next sync takes
//!   along all that is complete. So it waits for the flush in progress and one more.
//!
//! # Cost
//! Alone: one CAS and one swap around write and sync, and the clock twice. With others: CPU time that a sleeper would
//! leave to programs that have work, or to an idle loop. With more CPUs than workers all of it is idle time; with 4
//! workers on 2 CPUs a commit takes about twice the CPU time (`docs/mechanisms/log.md`). The lines of `device` and
//! `durable` are read by all that wait.
//!
//! Origin: ours, after `examples/commit_limit` had shown what sleeping costs. That a waiter should spin for about as
//! long as a switch takes is Karlin, Li, Manasse and Owicki (1991).

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use clearway_machine::{AtomicWord, Machine, Padded, WaitEvent, WaitScope};

use super::trial::{Trial, Way};
use super::{Flush, FlushOptions, Flushed, sleep_before_flush};
use crate::wal::LogDevice;

const FREE: u32 = 0;
const BUSY: u32 = 1;
/// Busy, and workers may sleep.
const AWAITED: u32 = 2;

/// A flush that usually takes longer, nanoseconds, is slept for. Disks that spin take thousands of microseconds.
const PATIENCE_NS: u64 = 500_000;

/// What a poll takes if no other worker wants the CPU, nanoseconds: two loads and a system call.
const POLL_NS: u64 = 500;

/// `usual_ns` moves half of the way down to a shorter flush, and by this part of the difference up to a longer one,
/// because an owner that waits for a CPU after its sync measures that wait too.
const SMOOTHING_UP: u64 = 64;

pub(in crate::wal) struct Flusher<M: Machine> {
    device: Padded<M::U32>,
    /// How long a flush takes, nanoseconds; 0 before the first. Stored by owners of the device.
    usual_ns: Padded<M::U64>,
    /// Whether to poll.
    trial: Trial<M>,
    commit_delay: Duration,
}

impl<M: Machine> Flush<M> for Flusher<M> {
    fn new(options: &FlushOptions) -> Self {
        Self {
            device: Padded(M::U32::new(FREE)),
            usual_ns: Padded(M::U64::new(0)),
            trial: Trial::new(),
            commit_delay: options.commit_delay,
        }
    }

    fn flush<D: LogDevice>(&self, log: &Flushed<'_, M, D>, upto: u64) {
        log.wait_complete(upto);
        if !self.flushed_by_me(log, upto) {
            let _wait = WaitScope::<M>::enter(WaitEvent::WalFlushGroup);
            self.wait_durable(log, upto);
        }
        debug_assert!(log.output.durable() >= upto);
    }
}

impl<M: Machine> Flusher<M> {
    /// Takes the device if it is free, and then makes everything before `upto` durable.
    fn flushed_by_me<D: LogDevice>(&self, log: &Flushed<'_, M, D>, upto: u64) -> bool {
        if !self.take_device() {
            return false;
        }
        if log.output.durable() < upto {
            sleep_before_flush::<M>(self.commit_delay);
            let begun = M::now();
            let target = log.complete_at_least(upto);
            // SAFETY: the caller owns the device, and everything before `target` is in the ring.
            unsafe { log.output.write(target) };
            log.output.sync(target);
            let now = M::now();
            self.note_duration(now.saturating_sub(begun));
            self.trial.flushed(target, now);
        }
        self.give_device_back();
        true
    }

    fn take_device(&self) -> bool {
        if self.device.load(Relaxed) != FREE {
            return false;
        }
        // Acquire: pairs with the Release in `give_device_back`; the last owner's `written` and `durable` are visible.
        let taken = self.device.compare_exchange(FREE, BUSY, Acquire, Relaxed);
        taken.is_ok()
    }

    fn give_device_back(&self) {
        // Release: pairs with the Acquire with which the device is taken.
        if self.device.swap(FREE, Release) == AWAITED {
            M::futex_wake(&self.device, u32::MAX);
        }
    }

    /// Called by the owner of the device.
    fn note_duration(&self, ns: u64) {
        let usual = self.usual_ns.load(Relaxed);
        let moved = match usual {
            0 => ns,
            _ if ns < usual => usual - (usual - ns) / 2,
            _ => usual + (ns - usual) / SMOOTHING_UP,
        };
        self.usual_ns.store(moved, Relaxed);
    }

    /// Waits until everything before `upto` is durable, by the caller or by another worker.
    fn wait_durable<D: LogDevice>(&self, log: &Flushed<'_, M, D>, upto: u64) {
        let mut polls = self.polls_max();
        while log.output.durable() < upto {
            if self.flushed_by_me(log, upto) {
                return;
            }
            self.trial.waits();
            if polls > 0 {
                polls -= 1;
                M::yield_now();
            } else {
                self.sleep();
            }
        }
    }

    /// How often a worker looks again before it sleeps. Once under a checker, which so explores both ways.
    fn polls_max(&self) -> u64 {
        match self.usual_ns.load(Relaxed) {
            _ if M::EXPLORED => 1,
            PATIENCE_NS.. => 0,
            _ if self.trial.way() == Way::Sleep => 0,
            usual => 2 * usual / POLL_NS,
        }
    }

    /// Sleeps until the owner of the device gives it back; returns at once if there is none.
    fn sleep(&self) {
        // Relaxed: the word alone decides; what it tells of is read again after the sleep.
        match self.device.compare_exchange(BUSY, AWAITED, Relaxed, Relaxed) {
            Err(FREE) => {}
            _ => {
                M::futex_wait(&self.device, AWAITED, None);
            }
        }
    }
}
