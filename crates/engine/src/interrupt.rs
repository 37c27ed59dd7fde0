//! Cancelling what runs: by request, by timeout, by shutdown.
//!
//! A flag in the session's activity slot is looked at by every loop over rows (each few hundred rows), by every lock
//! wait, and before each statement. A cancel request that arrives between two statements hits neither: the flag is
//! cleared when a statement begins, as in PostgreSQL.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::activity::ActivitySlot;
use crate::error::{EngineError, Result, SqlState};

/// What may end the running statement.
#[derive(Debug, Clone)]
pub(crate) struct Interrupts {
    slot: Arc<ActivitySlot>,
    shutdown: Arc<AtomicBool>,
    deadline: Option<Instant>,
}

impl Interrupts {
    pub(crate) fn new(slot: Arc<ActivitySlot>, shutdown: Arc<AtomicBool>) -> Interrupts {
        Interrupts {
            slot,
            shutdown,
            deadline: None,
        }
    }

    /// A statement begins.
    #[inline]
    pub(crate) fn begin(&mut self, timeout: Option<Duration>) {
        self.slot.cancel.store(false, Ordering::Relaxed);
        self.deadline = timeout.map(|timeout| Instant::now() + timeout);
    }

    /// Whether to stop.
    #[inline]
    pub(crate) fn pending(&self) -> bool {
        self.slot.cancel.load(Ordering::Relaxed)
            || self.shutdown.load(Ordering::Relaxed)
            || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// An error if it is time to stop.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.pending() { Err(self.error()) } else { Ok(()) }
    }

    /// The error that says why.
    #[cold]
    pub(crate) fn error(&self) -> EngineError {
        if self.shutdown.load(Ordering::Relaxed) {
            return EngineError::new(
                SqlState::ADMIN_SHUTDOWN,
                "terminating connection due to administrator command",
            );
        }
        let timed_out = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let reason = if timed_out && !self.slot.cancel.load(Ordering::Relaxed) {
            "canceling statement due to statement timeout"
        } else {
            "canceling statement due to user request"
        };
        EngineError::new(SqlState::QUERY_CANCELED, reason)
    }
}
