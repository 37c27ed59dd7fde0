//! Taking back the beginning of a record that was received and never will be whole.
//!
//! The log is sent in pieces that end anywhere. Alice is the primary, Bob follows her, and Carol follows Bob.
//!
//! | time | Alice | Bob | Carol |
//! | --- | --- | --- | --- |
//! | 1 | a record from 1000 to 1300; sends up to 1200, and dies | | |
//! | 2 | | receives up to 1200, has replayed up to 1000 | receives up to 1200 |
//! | 3 | | is promoted: timeline 2 begins at 1000 | |
//! | 4 | | | learns of it: her log goes 200 bytes beyond the fork |
//!
//! Carol has none of Alice's commits that Bob has not, since there is no whole record behind the fork. Those 200 bytes are
//! no reason to make a new copy: she gives them up, and receives from 1000 on.
//!
//! # Steps
//! 1. Wait a moment until each whole record is replayed, and hold replay's mutex: it replays nothing meanwhile.
//! 2. If replay has passed the fork, there was a whole record behind it: the logs have gone apart.
//! 3. Set back what counts as received to the fork, so that no follower is sent more (`Storage::read_log` looks again after
//!    its read).
//! 4. The caller changes the timeline. The segments of the new one are copies up to the fork, with zeros behind.
//!
//! If the caller fails, what was received counts again. A crash in between is harmless: the next start finds the log's end
//! before the part of a record, on either timeline.

use std::sync::{MutexGuard, TryLockError};
use std::time::Duration;

use clearway_machine::WaitEvent;

use crate::page::Lsn;
use crate::replication::standby_state::{ReplayState, Standby};

/// Time limit of a wait for replay. The caller tries again later, and may have been asked to stop meanwhile.
const PATIENCE: Duration = Duration::from_millis(50);

/// The outcome for the log behind a fork.
pub(crate) enum TakeBack<'a> {
    /// It does not count any more, for as long as this lives.
    Taken(TakenBack<'a>),
    /// Replay has not come to the last whole record.
    NotYet,
    /// There is a whole record, or replay has ended before the fork.
    Refused,
}

/// Log behind a fork that was taken back. Dropped, it counts again.
pub(crate) struct TakenBack<'a> {
    standby: &'a Standby,
    received: Lsn,
    is_final: bool,
    _no_replay: MutexGuard<'a, ReplayState>,
}

impl Standby {
    /// Steps 1 to 3. Nothing is received meanwhile.
    pub(crate) fn take_back(&self, fork: Lsn) -> TakeBack<'_> {
        let progress = &self.progress;
        // The thread that replays may have been woken and not be there yet: what it has done says nothing of what is whole.
        let is_idle = || progress.whole() == self.replayed() || progress.has_failed();
        progress.wait(PATIENCE, WaitEvent::RecoveryApply, is_idle);
        let no_replay = match self.replay.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return TakeBack::NotYet,
        };
        if !is_idle() {
            return TakeBack::NotYet;
        }
        // After a failure of replay there may be whole records that it has not come to.
        if self.replayed() != fork || progress.whole() != fork {
            return TakeBack::Refused;
        }
        let received = self.received();
        progress.received_up_to(fork);
        TakeBack::Taken(TakenBack {
            standby: self,
            received,
            is_final: false,
            _no_replay: no_replay,
        })
    }
}

impl TakenBack<'_> {
    /// The log goes on at the fork.
    pub(crate) fn complete(mut self) {
        self.is_final = true;
    }
}

impl Drop for TakenBack<'_> {
    fn drop(&mut self) {
        if !self.is_final {
            self.standby.progress.received_up_to(self.received);
        }
    }
}
