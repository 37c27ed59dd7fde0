//! `log_flush`: how inserted records become durable.
//!
//! Protects: the device, and the positions `written` and `durable` of `LogOutput`.
//!
//! # Contract
//! `Flusher::flush``(upto)` returns when everything before `upto`, which is reserved, is durable.
//! - R3: bytes leave the ring (are overwritten) only below `written`, and one worker at a time writes.
//! - R5: `durable` moves only after a sync of the device that began when everything before it was written.
//! - A flusher waits for insertions only while it keeps no other worker from writing (R2 of [`insert`](super::insert)).
//! - A failed write or sync ends the process: the state of the device is unknown.
//!
//! | variant | who writes and syncs | the others |
//! | --- | --- | --- |
//! | `single` | the holder of the write latch, for all that are complete | sleep at the latch, then look again |

mod single;

use std::time::Duration;

use clearway_latch::LwLockOptions;
use clearway_machine::{Machine, switch};

use self::single::Single;
use super::LogDevice;
use super::insert::Insertion;
use super::output::LogOutput;
use super::reserve::Reservation;

switch! {
    /// How the log reaches the disk.
    pub enum LogFlushVariant = "log_flush", best Single, planned ["split", "group", "self-clocking"] {
        /// Write and sync under one latch; commits that arrive meanwhile share the next.
        Single = "single",
    }
}

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

    /// Up to where everything is in the ring, if that can be told without waiting.
    fn complete(&self) -> Option<u64> {
        self.insertion.complete(self.reservation)
    }
}

/// Flushes in progress, under the variant chosen.
pub(super) enum Flusher<M: Machine> {
    Single(Single<M>),
}

impl<M: Machine> Flusher<M> {
    /// No flush is in progress. `commit_delay`: how long a flusher waits for others to join it.
    pub(super) fn new(variant: LogFlushVariant, lwlock: LwLockOptions, commit_delay: Duration) -> Self {
        match variant {
            LogFlushVariant::Single => Self::Single(Single::new(lwlock, commit_delay)),
        }
    }

    /// Makes everything before `upto` durable.
    pub(super) fn flush<D: LogDevice>(&self, log: &Flushed<'_, M, D>, upto: u64) {
        match self {
            Self::Single(single) => single.flush(log, upto),
        }
    }
}
