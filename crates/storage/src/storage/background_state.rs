//! State that the background threads of an open database share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use clearway_machine::{Native, WaitEvent, WaitScope};

use super::background_log::BackgroundLog;
use crate::wal::Wal;

/// The target of the events of `tracing` that tell of checkpoints and restartpoints.
pub const CHECKPOINTS: &str = "clearway::checkpoints";

/// Checkpoints since the start, and the restartpoints of a standby.
#[derive(Debug, Default)]
pub struct CheckpointCounts {
    /// Those that were due by the time since the last.
    pub timed: AtomicU64,
    /// Those that were asked for, by a statement or by the size of the log.
    pub requested: AtomicU64,
    /// Pages that they have written.
    pub pages: AtomicU64,
    /// The time that writing these has taken, in microseconds.
    pub write_us: AtomicU64,
    /// The time that making the data files durable has taken, in microseconds.
    pub sync_us: AtomicU64,
}

impl CheckpointCounts {
    /// One begins: it is due by the time, or is asked for.
    pub(crate) fn begun(&self, by_time: bool) {
        let count = if by_time { &self.timed } else { &self.requested };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// One has written pages, and made them durable.
    pub(crate) fn wrote(&self, pages: u64, write: Duration, sync: Duration) {
        self.pages.fetch_add(pages, Ordering::Relaxed);
        for (sum, time) in [(&self.write_us, write), (&self.sync_us, sync)] {
            sum.fetch_add(time.as_micros() as u64, Ordering::Relaxed);
        }
    }
}

/// The background threads' shared state.
#[derive(Debug, Default)]
pub(crate) struct BackgroundState {
    stopping: Mutex<bool>,
    changed: Condvar,
    /// One checkpoint at a time.
    checkpointing: Mutex<()>,
    /// The records that they have logged themselves.
    pub(crate) log: BackgroundLog,
    /// The checkpoints that were made.
    pub(crate) checkpoints: CheckpointCounts,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl BackgroundState {
    /// No checkpoint is made while the guard lives.
    pub(crate) fn pause_checkpoints(&self) -> MutexGuard<'_, ()> {
        lock(&self.checkpointing)
    }

    /// Makes the threads end.
    pub(crate) fn stop(&self, log: &Wal) {
        *lock(&self.stopping) = true;
        self.changed.notify_all();
        log.wake_log_writer();
    }

    /// True if it is time to end.
    pub(crate) fn is_stopping(&self) -> bool {
        *lock(&self.stopping)
    }

    /// The checkpointer sleeps; `true` if it is time to end.
    pub(crate) fn sleep(&self, duration: Duration) -> bool {
        let _wait = WaitScope::<Native>::enter(WaitEvent::CheckpointerMain);
        let stopping = lock(&self.stopping);
        let waited = self
            .changed
            .wait_timeout_while(stopping, duration, |stopping| !*stopping);
        *waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0
    }
}
