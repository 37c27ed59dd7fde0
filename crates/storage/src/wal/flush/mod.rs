//! `log_flush`: how inserted records become durable.
//!
//! Protects: the device, and the positions `written` and `durable` of `LogOutput`.
//!
//! # Example
//! Bob syncs the log up to 1200, which takes 100 µs. Meanwhile 15 others finish their transactions. In PostgreSQL's
//! form (`single`) they all sleep at one latch. When Bob releases it, all 15 are woken: one of them syncs, 14 look at
//! `durable`, find that it is not far enough, and sleep again. Each commit has paid for two sleeps and two wake-ups,
//! and a wake-up costs the waker a microsecond or two. The other variants differ in which worker is woken, when, and by
//! which.
//!
//! # Contract
//! `Flusher::flush``(upto)` returns when everything before `upto`, which is reserved, is durable.
//! - R3: bytes leave the ring (are overwritten) only below `written`, and one worker at a time writes.
//! - R5: `durable` moves only after a sync of the device that began when everything before it was written. One worker
//!   at a time syncs, or one in each lane of the device ([`LogDevice::sync_in_lane`]).
//! - A flusher waits for insertions only while it keeps no other worker from writing (R2 of [`insert`](super::insert)).
//!   In particular it does so before it joins a list of workers that one of them works for.
//! - A failed write or sync ends the process: the state of the device is unknown.
//!
//! A worker in `flush` cannot be told to stop. A session that is to be leaves its flush to the log writer
//! (`wal/flush_requests.rs`).
//!
//! | variant | who writes and syncs | the others |
//! | --- | --- | --- |
//! | `single` | the holder of the write latch, for all complete | sleep at the latch; all are woken and look again |
//! | `split` | as above, under a latch each for write and sync | as above |
//! | `group` | the first of a group, for the whole group | sleep until their leader wakes them, once |
//! | `self-clocking` | one that waits, named by its predecessor | sleep once, until durable; the woken wake others |
//! | `overlapped` | as `group`, and several groups are synced at once | sleep until durable; one call wakes a group |
//! | `gathering` | as `group`, when those that the last flush released have come again, if that pays | as `group` |
//! | `polling` | the first that finds the device free, for all complete | poll, and yield their CPUs; or as `gathering` |
//!
//! Under `group`, `gathering` and `polling` the switch `log_wake` ([`wake`]) says which worker wakes a group; in the
//! table it is the leader.
//!
//! `docs/mechanisms/log.md` says what each costs, and when it should win.

mod gathering;
mod group;
mod overlapped;
mod polling;
mod self_clocking;
mod single;
mod split;
mod trial;
mod waiters;
pub mod wake;
mod wake_tree;

use std::time::Duration;

use clearway_latch::{LatchClass, LwLockOptions};
use clearway_machine::{Machine, WaitEvent, WaitScope, variants};

use self::wake::LogWakeVariant;
use super::LogDevice;
use super::insert::Insertion;
use super::output::LogOutput;
use super::reserve::Reservation;

/// The latch of the worker that writes, in the variants that have one.
static WAL_WRITE: LatchClass = LatchClass::new("WALWrite", WaitEvent::WalWriteLatch, 510);

/// The parts of the log that a flush uses.
pub(super) struct Flushed<'a, M: Machine, D: LogDevice> {
    pub(super) reservation: &'a Reservation<M>,
    pub(super) insertion: &'a Insertion<M>,
    pub(super) output: &'a LogOutput<M, D>,
}

impl<M: Machine, D: LogDevice> Flushed<'_, M, D> {
    /// Waits until everything before `target` is in the ring; returns up to where that is known (≥ `target`).
    fn wait_complete(&self, target: u64) -> u64 {
        self.insertion.wait_complete(self.reservation, target)
    }

    /// The position up to which everything is in the ring: `known`, or further if that is known without waiting.
    fn complete_at_least(&self, known: u64) -> u64 {
        let complete = self.insertion.complete(self.reservation);
        complete.map_or(known, |complete| complete.max(known))
    }
}

/// Sleeps for the setting `commit_delay`, if it is not zero, so that more commits join the flush.
fn sleep_before_flush<M: Machine>(commit_delay: Duration) {
    if !commit_delay.is_zero() {
        let _wait = WaitScope::<M>::enter(WaitEvent::CommitDelay);
        M::sleep(commit_delay);
    }
}

/// The options of a flusher.
#[derive(Debug, Clone, Copy)]
pub(super) struct FlushOptions {
    /// Algorithm of the latches, in the variants that have any.
    pub(super) lwlock: LwLockOptions,
    /// The time that a flusher waits for others to join it.
    pub(super) commit_delay: Duration,
    /// The worker that wakes a group, in the variants whose leader would.
    pub(super) wake: LogWakeVariant,
}

/// The state of one variant, and its way to flush.
trait Flush<M: Machine> {
    /// No flush is in progress.
    fn new(options: &FlushOptions) -> Self;

    /// Makes everything before `upto` durable.
    fn flush<D: LogDevice>(&self, log: &Flushed<'_, M, D>, upto: u64);

    /// Number of looks of a worker that leaves its flush to others, before it sleeps: as many as of one that flushes.
    fn polls(&self) -> u64 {
        0
    }

    /// True if a worker flushes, is on its way to, or is to wait a little before it does: a hint, for one that polls.
    fn is_under_way(&self) -> bool {
        false
    }
}

variants! {
    /// The way in which the log reaches the disk.
    pub enum LogFlushVariant = "log_flush", best Polling, planned [] {
        /// Write and sync under one latch; commits that arrive meanwhile share the next.
        Single = "single": single::Flusher<M>,
        /// Write and sync under a latch each, so that the next write overlaps the sync in progress.
        Split = "split": split::Flusher<M>,
        /// The first of a group of commits writes and syncs for all of them, and wakes each once.
        Group = "group": group::Flusher<M>,
        /// A flush starts when the device is free and takes all that are complete; each commit is woken once, when it is
        /// durable, and wakes others.
        SelfClocking = "self-clocking": self_clocking::Flusher<M>,
        /// As group; its leader waits for those that the last flush released, where that makes fewer flushes of more
        /// commits.
        Gathering = "gathering": gathering::Flusher<M>,
        /// As a group that one call wakes; several groups are synced at once, so that the device waits for no leader.
        Overlapped = "overlapped": overlapped::Flusher<M>,
        /// A commit that is not durable yet polls and yields its CPU; the first that finds the device free flushes all
        /// that are complete. As gathering where that is faster.
        Polling = "polling": polling::Flusher<M>,
    }
    why {
        Single: "The baseline: with 16 clients polling commits 1.23 times as much, with 64 1.33 times, and a commit is \
            woken 1.7 times."
            in "docs/mechanisms/log.md#numbers-that-matter";
        Group: "It wakes a commit once where single wakes it 1.7 times, and makes 1.07 and 1.17 times its commits with \
            16 and 64 clients on two CPUs; but over a socket, while a sync takes milliseconds, about half as many."
            in "docs/mechanisms/log.md#numbers-that-matter";
        Gathering: "1.30, 1.19 and 1.18 times single with 4, 16 and 64 clients natively. Simulated on a disk ten \
            times as slow it makes 1.4 to 1.6 times the commits of single."
            in "docs/mechanisms/log.md#numbers-that-matter";
        SelfClocking: "1.01, 1.09 and 1.08 times single with 4, 16 and 64 clients natively, no more than group."
            in "docs/mechanisms/log.md#numbers-that-matter";
        Overlapped: "The simulation promised up to 1.80 times single; on the disk that was measured it did 0.77, \
            0.91 and 1.08 with 4, 16 and 64 clients, since each sync takes CPU time."
            in "docs/mechanisms/log.md#numbers-that-matter";
        Polling: "1.23, 1.23 and 1.33 times single with 4, 16 and 64 clients natively, and level with one. It \
            measures itself, and gathers where that is faster: with few clients, on a slow disk, \
            and, after a while, where a thread that yields is back at once."
            in "docs/mechanisms/log.md#numbers-that-matter";
    }

    /// Flushes in progress, under the variant chosen.
    pub(super) enum Flusher[M: Machine], called by dispatch;
}

impl<M: Machine> Flusher<M> {
    /// No flush is in progress.
    pub(super) fn new(variant: LogFlushVariant, options: &FlushOptions) -> Self {
        dispatch!(new variant => Flush::new(options))
    }

    /// Makes everything before `upto` durable.
    pub(super) fn flush<D: LogDevice>(&self, log: &Flushed<'_, M, D>, upto: u64) {
        if log.output.durable() < upto {
            dispatch!(self, flusher => flusher.flush(log, upto))
        }
    }

    /// Number of looks of a worker that leaves its flush to others, before it sleeps.
    pub(super) fn polls(&self) -> u64 {
        dispatch!(self, flusher => Flush::<M>::polls(flusher))
    }

    /// True if a worker flushes or is about to: a hint, for one that polls.
    pub(super) fn is_under_way(&self) -> bool {
        dispatch!(self, flusher => Flush::<M>::is_under_way(flusher))
    }
}
