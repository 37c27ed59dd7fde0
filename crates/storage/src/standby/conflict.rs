//! Sessions in the way of replay.
//!
//! A primary's vacuum waits for the snapshots of its own sessions, and knows nothing of those of a standby. Replay waits
//! for them for as long as it may lag, and then ends them: a standby that waits for a report of an hour is an hour behind
//! when its primary dies. How long is `max_standby_streaming_delay`, counted from when replay was last up to date; so a
//! standby that lags already cancels at once.
//!
//! The other way is feedback: the standby tells the primary its oldest xmin, and the primary keeps the versions. Then a
//! report there costs the primary space.

use std::time::{Duration, Instant};

use clearway_machine::{Native, WaitEvent, WaitScope};
use clearway_txn::{ProcId, Xid};

use crate::error::Result;
use crate::replication::standby_state::{Conflict, Standby, lock};
use crate::storage::Storage;

/// Time between two looks whether a session is out of the way. Most are within a millisecond or two.
const LOOK: Duration = Duration::from_millis(1);
const LOOK_MAX: Duration = Duration::from_millis(50);

impl Standby {
    /// Versions that `deleter` and older transactions deleted are about to be removed: waits until no session sees them.
    /// The known xids regard none of those transactions as running any more.
    pub(crate) fn clean_up(&self, storage: &Storage, deleter: Xid) -> Result<()> {
        let array = &storage.proc_array;
        self.clean_up_where(deleter, || array.holders_of_xmin_up_to(deleter))
    }

    /// As [`clean_up`](Self::clean_up), with the look for sessions. The deleter is announced before the first look: a
    /// session that takes its snapshot after the look finds the announcement, and goes by it.
    pub(crate) fn clean_up_where(&self, deleter: Xid, holders: impl Fn() -> Vec<ProcId>) -> Result<()> {
        if self.cleaned.newest() >= deleter {
            return Ok(());
        }
        self.cleaned.begin(deleter);
        self.wait_for_sessions(Conflict::Snapshot, holders)
    }

    /// Waits until `holders` finds no session any more, and cancels those that it finds when replay has lagged for long
    /// enough. An error: the standby is being stopped.
    pub fn wait_for_sessions(&self, conflict: Conflict, holders: impl Fn() -> Vec<ProcId>) -> Result<()> {
        if holders().is_empty() {
            return Ok(());
        }
        let event = match conflict {
            Conflict::Snapshot => WaitEvent::RecoveryConflictSnapshot,
            Conflict::Lock => WaitEvent::RecoveryConflictLock,
        };
        let _wait = WaitScope::<Native>::enter(event);
        let deadline = self
            .options
            .streaming_delay_max
            .map(|delay| *lock(&self.lags_since) + delay);
        let mut pause = LOOK;
        loop {
            let found = holders();
            if found.is_empty() {
                return Ok(());
            }
            if self.progress.is_stopping() {
                return Err(self.failed("the standby is being stopped"));
            }
            let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            // A promotion does not wait for reports either.
            if is_late || self.progress.is_ending() {
                for proc in found {
                    if let Some(observer) = self.observer.get() {
                        observer.cancel(proc, conflict);
                    }
                }
                pause = LOOK;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LOOK_MAX);
        }
    }

    /// Replay is up to date.
    pub(crate) fn is_up_to_date(&self) {
        *lock(&self.lags_since) = Instant::now();
    }
}
