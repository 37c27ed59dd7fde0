//! The phase and the progress of a receiver: a row of `pg_stat_wal_receiver`.

use std::sync::{Mutex, MutexGuard};

use clearway_storage::Lsn;

/// The phase of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReceiverPhase {
    /// It connects, or asks what the server is.
    #[default]
    Starting,
    /// It receives log.
    Streaming,
    /// The connection was lost: it waits for the next attempt.
    Waiting,
    /// It has ended at the stop signal.
    Stopped,
    /// It has ended, since it would fail each time: [`ReceiverState::error`] says why.
    Refused,
    /// As `Refused`: the server's log does not go on from ours, so that what is here is of an abandoned branch.
    Diverged,
    /// It has ended, since replay has failed: [`ReceiverState::error`] says why.
    ReplayFailed,
}

impl ReceiverPhase {
    /// As PostgreSQL calls it, where it has such a state.
    pub fn name(self) -> &'static str {
        match self {
            ReceiverPhase::Starting => "starting",
            ReceiverPhase::Streaming => "streaming",
            ReceiverPhase::Waiting => "waiting",
            ReceiverPhase::Stopped => "stopped",
            ReceiverPhase::Refused => "refused",
            ReceiverPhase::Diverged => "diverged",
            ReceiverPhase::ReplayFailed => "replay failed",
        }
    }
}

/// Times are microseconds since 2000-01-01 UTC.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ReceiverState {
    /// Its phase.
    pub phase: ReceiverPhase,
    /// The start of the running or last stream.
    pub receive_start: Lsn,
    /// Written up to here, not all of it durable.
    pub written: Lsn,
    /// Durable up to here.
    pub flushed: Lsn,
    /// The timeline that is received.
    pub timeline: u32,
    /// The time of the server's last message, by its clock.
    pub last_send_time: Option<i64>,
    /// The time of that message's arrival, by ours.
    pub last_receipt_time: Option<i64>,
    /// The end of the server's log at that message.
    pub latest_end: Lsn,
    /// The time at which the server first reported that end, by its clock.
    pub latest_end_time: Option<i64>,
    /// The slot that is used.
    pub slot: Option<String>,
    /// The server's address, or the directory of its socket.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The connection string.
    pub conninfo: String,
    /// The last error; none once log is received again.
    pub error: Option<String>,
}

/// The state of a receiver, for its thread and for those who look.
#[derive(Debug, Default)]
pub struct ReceiverStatus(Mutex<ReceiverState>);

impl ReceiverStatus {
    /// The state now.
    pub fn get(&self) -> ReceiverState {
        self.lock().clone()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ReceiverState> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn set_phase(&self, phase: ReceiverPhase) {
        self.lock().phase = phase;
    }

    pub(super) fn failed(&self, phase: ReceiverPhase, error: String) {
        let mut state = self.lock();
        state.phase = phase;
        state.error = Some(error);
    }
}
