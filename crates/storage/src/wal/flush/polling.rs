//! Polling flush: a worker whose record is not durable looks again and again, and yields its CPU between two looks.
//! Where it is faster to sleep, it joins a group, as under [`gathering`](super::gathering).
//!
//! Invariant: as in [`group`](super::group), whose write latch is the device. A worker that sleeps is on the list of a
//! group, or leads one and sleeps at the write latch.
//!
//! # Steps
//! 1. Wait for the insertions before one's own target.
//! 2. If polling is the faster way: durable far enough, done. The write latch is free: take it, and take over the group
//!    that is open, if there is one. Look at `durable` again, sleep `commit_delay` if there is one, write and sync all
//!    that are complete. Done. If it is faster to poll *late*, the last flush has to be over for as long as a flush
//!    takes.
//! 3. Else yield the CPU, and go on with 2. The worker spends at most about twice the time on this that a flush takes,
//!    and none if that is more than [`PATIENCE_NS`]. While others run on its CPU it spends none, so polls are counted, at
//!    [`POLL_NS`] each.
//! 4. Then, or if sleeping is the faster way, go through the steps of `gathering`. But if the latch is free although a
//!    group has a leader, take both over, as in 2.
//!
//! The owners of the device find out the faster way by taking both in turn ([`trial`](super::trial)).
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
//! but the rate of commits shows it; hence the trials. And with few workers a group that waits for all of them makes
//! fewer and larger flushes than either; the trials show that too.
//!
//! # Why late
//! With many more workers than CPUs the CPUs are the limit, and a sync takes CPU time. Where 64 workers share 2 CPUs, 12
//! of them come while a sync is in progress; begun at once, the next carries those 12. Half of the syncs, each with twice
//! as many, leave more CPU time for transactions, and the CPUs still have work during each sync. With few workers all
//! of them would wait for the late flush, so this is a way of its own, to be tried.
//!
//! # Why groups are taken over
//! A leader sleeps at the write latch. By the time that it runs, a poller may have taken the latch again, and again. The
//! leader's record would be durable by then, but it and its followers do not look for that: they wait for an outcome.
//! And where other programs want the CPUs, a leader may get one late, and all of its group would wait for it.
//!
//! A worker that polls does not tell the [`Gatherer`] of its flushes, nor does one that takes a group over. So the
//! gatherer counts their followers with the next leader's group, and the leader after that may wait for more workers than
//! can come. It waits for half of a flush at most, and seldom: a wait in vain makes the next flushes begin at once. The
//! count has no other use.
//!
//! # How the rules are kept
//! - R3, R5, R1: as in `group`. A poller sees by `complete_at_least` the bytes that it writes.
//! - R2: step 1 comes before all others. So an inserter that finds the ring full may poll or sleep here, and holds up no
//!   owner.
//! - No wake-up is lost: a poller does not sleep, and a group wakes its own.
//! - A poller goes through 2 and 3 in vain only while `durable` moves or the device has an owner, whose next sync takes
//!   along all that is complete. So it waits for the flush in progress and one more.
//!
//! # Under a checker
//! Its clock says nothing, so nothing is tried there, and each worker polls once and then joins a group. A way decides
//! whether, and how often, a worker tries to take the device before it joins. To try in vain changes nothing, and to
//! succeed is a whole flush, so what has to be explored is every order of flushes, joins and takings-over, whichever way
//! led to it. Only a worker that finds the latch free and leaves it alone, because it sleeps or polls late, is not
//! explored here: it goes on as a worker of `group` does, which is explored there. Which way is gone when is tested
//! without workers (`trial.rs`).
//!
//! # Cost
//! Alone while it sleeps: `gathering`'s, and an atomic addition that counts it. While it polls: one acquisition of a latch around write and sync, and the clock
//! twice. With others: CPU time that a sleeper would leave to programs that have work, or to an idle loop. With more CPUs
//! than workers all of it is idle time (`docs/mechanisms/log.md`). The lines of the latch, the list's head and `durable`
//! are read by all that wait.
//!
//! Origin: ours, after `examples/commit_limit` had shown what sleeping costs. That a waiter should spin for about as
//! long as a switch takes is Karlin, Li, Manasse and Owicki (1991).

use std::sync::atomic::Ordering::Relaxed;

use clearway_machine::{AtomicWord, Machine, Padded, WaitEvent, WaitScope};

use super::gathering::Gatherer;
use super::group::{self, Pace};
use super::trial::{FlushWait, Trial};
use super::{Flush, FlushOptions, Flushed};
use crate::wal::LogDevice;

/// A flush that usually takes longer, nanoseconds, is slept for. Disks that spin take thousands of microseconds.
const PATIENCE_NS: u64 = 500_000;

/// The time of a poll if no other worker wants the CPU, nanoseconds: three loads and a system call.
const POLL_NS: u64 = 500;

/// `usual_ns` moves half of the way down to a shorter flush, and by this part of the difference up to a longer one,
/// because an owner that waits for a CPU after its sync measures that wait too.
const SMOOTHING_UP: u64 = 64;

pub(in crate::wal) struct Flusher<M: Machine> {
    group: group::Flusher<M, Observer<M>>,
}

/// Sees all flushes: those of groups, which it paces as `gathering` does, and those of pollers.
struct Observer<M: Machine> {
    gatherer: Gatherer<M>,
    /// The duration of a flush, nanoseconds; 0 before the first. Stored by owners of the device.
    usual_ns: Padded<M::U64>,
    /// The end of the last flush, nanoseconds. Stored by owners of the device.
    over_ns: Padded<M::U64>,
    /// Workers that have come to have their record flushed.
    commits: Padded<M::U64>,
    /// The choice whether to poll, and when to begin a flush.
    trial: Trial<M>,
}

impl<M: Machine> Flush<M> for Flusher<M> {
    fn new(options: &FlushOptions) -> Self {
        Self {
            group: Flush::new(options),
        }
    }

    fn flush<D: LogDevice>(&self, log: &Flushed<'_, M, D>, upto: u64) {
        log.wait_complete(upto);
        self.group.pace().count_commit();
        let polls = self.group.pace().polls_max();
        let durable = match polls {
            0 => self.group.is_led() && self.flushed_by_me(log, upto),
            _ => self.poll(log, upto, polls),
        };
        if !durable {
            self.group.flush(log, upto);
        }
        debug_assert!(log.output.durable() >= upto);
    }

    fn polls(&self) -> u64 {
        self.group.pace().polls_max()
    }

    fn is_under_way(&self) -> bool {
        self.group.is_led() || self.group.has_device() || self.group.pace().too_early()
    }
}

impl<M: Machine> Flusher<M> {
    /// Polls at most `polls` times, until everything before `upto` is durable, by the caller or by another worker.
    /// `false`: it may not be durable yet.
    fn poll<D: LogDevice>(&self, log: &Flushed<'_, M, D>, upto: u64, polls: u64) -> bool {
        let observer = self.group.pace();
        if !observer.too_early() && self.flushed_by_me(log, upto) {
            return true;
        }
        let _wait = WaitScope::<M>::enter(WaitEvent::WalFlushGroup);
        for _ in 0..polls {
            M::yield_now();
            if log.output.durable() >= upto {
                return true;
            }
            if !observer.too_early() {
                if self.flushed_by_me(log, upto) {
                    return true;
                }
                observer.trial.waits();
            }
        }
        false
    }

    /// Takes the device if it is free, and then makes everything before `upto` durable.
    fn flushed_by_me<D: LogDevice>(&self, log: &Flushed<'_, M, D>, upto: u64) -> bool {
        self.group.flush_if_free(log, upto, Observer::note_flush)
    }
}

impl<M: Machine> Pace<M> for Observer<M> {
    fn new() -> Self {
        Self {
            gatherer: Gatherer::new(),
            usual_ns: Padded(M::U64::new(0)),
            over_ns: Padded(M::U64::new(0)),
            commits: Padded(M::U64::new(0)),
            trial: Trial::new(),
        }
    }

    fn arrived(&self) {
        self.gatherer.arrived();
    }

    fn wait(&self) {
        self.gatherer.wait();
    }

    fn flushed(&self, target: u64, followed: bool) {
        self.gatherer.flushed(target, followed);
        self.note_flush(self.gatherer.begun_ns(), followed);
    }
}

impl<M: Machine> Observer<M> {
    fn count_commit(&self) {
        if !M::EXPLORED {
            self.commits.fetch_add(1, Relaxed);
        }
    }

    /// The caller, which owns the device, has flushed, and began at `begun_ns`. `followed`: others waited in a group.
    fn note_flush(&self, begun_ns: u64, followed: bool) {
        if followed {
            self.trial.waits();
        }
        let now = M::now();
        self.over_ns.store(now, Relaxed);
        self.note_duration(now.saturating_sub(begun_ns));
        self.trial.flushed(self.commits.load(Relaxed), now);
    }

    /// True if the next flush is to begin later. While a flush is in progress this tells of the one before.
    fn too_early(&self) -> bool {
        self.trial.way() == FlushWait::PollLate && {
            let idle_ns = M::now().saturating_sub(self.over_ns.load(Relaxed));
            idle_ns < self.usual_ns.load(Relaxed)
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

    /// Number of times that a worker looks again before it joins a group. Once under a checker, which so explores both
    /// ways.
    fn polls_max(&self) -> u64 {
        match self.usual_ns.load(Relaxed) {
            _ if M::EXPLORED => 1,
            PATIENCE_NS.. => 0,
            _ if self.trial.way() == FlushWait::Sleep => 0,
            usual => 2 * usual / POLL_NS,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::time::Duration;

    use clearway_latch::LwLockOptions;
    use clearway_machine::Native;
    use clearway_txn::Xid;

    use super::*;
    use crate::wal::flush::wake::LogWakeVariant;
    use crate::wal::insert::{Insertion, InsertionOptions, LogInsertVariant};
    use crate::wal::link::LogLink;
    use crate::wal::output::LogOutput;
    use crate::wal::record::{self, RecordKind};
    use crate::wal::reserve::{LogReserveVariant, Reservation};
    use crate::wal::ring::Ring;

    const RING: usize = 1 << 16;
    const THREADS: u64 = 4;
    const FLUSHES: u64 = 500;
    /// Bytes of a record.
    const RECORD: usize = 64;

    /// Takes everything.
    #[derive(Debug)]
    struct Nowhere;

    impl LogDevice for Nowhere {
        fn make_room(&self, _position: u64) -> io::Result<()> {
            Ok(())
        }
        fn write(&self, _position: u64, _bytes: &[u8]) -> io::Result<()> {
            Ok(())
        }
        fn sync(&self, _from: u64, _to: u64) -> io::Result<()> {
            Ok(())
        }
        fn read(&self, _position: u64, _bytes: &mut [u8]) -> io::Result<usize> {
            Ok(0)
        }
        fn forget_before(&self, _position: u64) -> io::Result<()> {
            Ok(())
        }
    }

    /// The trials go by this count. Mutations that it should catch (`crates/storage/mutations/wal.toml`): commits are not
    /// counted; those that join a group are counted twice.
    #[test]
    fn each_worker_that_comes_is_counted_once() {
        let lwlock = LwLockOptions::default();
        let reservation = Reservation::<Native>::new(LogReserveVariant::FetchAdd, 1 << 20);
        let insertion = Insertion::new(
            LogInsertVariant::Latches,
            &InsertionOptions {
                lwlock,
                latches: 8,
                ring_size: RING,
            },
            1 << 20,
            1 << 20,
        );
        let ring = Ring::new(RING);
        // What the reservations stand for: records of this size, again and again.
        for at in (1 << 20..(1 << 20) + RING as u64).step_by(RECORD) {
            let payload = RECORD - record::HEADER;
            let header = record::header(RecordKind::NOTHING, Xid::INVALID, at, at, payload, 0);
            // SAFETY: no other thread has the ring yet.
            unsafe { ring.copy_in(at, &header) };
        }
        let output = LogOutput::new(Nowhere, ring, 1 << 20, LogLink::FIRST);
        let log = Flushed {
            reservation: &reservation,
            insertion: &insertion,
            output: &output,
        };
        let flusher = Flusher::<Native>::new(&FlushOptions {
            lwlock,
            commit_delay: Duration::ZERO,
            wake: LogWakeVariant::Leader,
        });
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for _ in 0..FLUSHES {
                        reservation.reserve(RECORD as u64);
                        let upto = reservation.end();
                        flusher.flush(&log, upto);
                        assert!(output.durable() >= upto);
                    }
                });
            }
        });
        let counted = flusher.group.pace().commits.load(Relaxed);
        assert_eq!(counted, THREADS * FLUSHES);
    }
}
