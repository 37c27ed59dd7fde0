//! Cancelling what runs: by request, by timeout, by shutdown, by replay.
//!
//! A session that holds the most when memory is scarce ends itself here too (`memory/pressure.rs`).
//!
//! A flag in the session's activity slot is looked at by every loop over rows (each few hundred rows), by every lock
//! wait, and before each statement. A cancel request that arrives between two statements hits neither: the flag is
//! cleared when a statement begins, as in PostgreSQL. Replay asks again until the session is out of its way
//! (`engine/standby/conflict.rs`).

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::activity::{ActivitySlot, Progress, ToldPlace};
pub(crate) use crate::cancel_reason::CancelReason;
use crate::clock::running_us;
use crate::memory;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_txn::ProcId;

/// 40001 for a statement, or a transaction, that replay has ended.
#[cold]
pub(crate) fn conflict_error(reason: CancelReason, what: &str) -> EngineError {
    let verb = if what == "statement" {
        "canceling"
    } else {
        "terminating"
    };
    let error = EngineError::new(
        SqlState::SERIALIZATION_FAILURE,
        format!("{verb} {what} due to conflict with recovery"),
    );
    let error = error.with_detail(match reason {
        CancelReason::LockConflict => "User was holding a relation lock for too long.",
        _ => "User query might have needed to see row versions that must be removed.",
    });
    error.with_hint(format!(
        "Run the {what} again. How long replay waits is set by max_standby_streaming_delay."
    ))
}

/// 57P01.
#[cold]
fn terminated() -> EngineError {
    EngineError::new(
        SqlState::ADMIN_SHUTDOWN,
        "terminating connection due to administrator command",
    )
}

thread_local! {
    /// Those of the statement that this thread runs, or has run last.
    static CURRENT: RefCell<Option<Interrupts>> = const { RefCell::new(None) };
}

/// True if the statement that this thread runs is to stop. For waits in storage, which knows of no statements.
pub(crate) fn current_is_to_stop() -> bool {
    CURRENT.with_borrow(|current| current.as_ref().is_some_and(Interrupts::pending))
}

/// The time that the statement that this thread runs may still take, if there is a limit.
pub(crate) fn current_time_left() -> Option<Duration> {
    CURRENT.with_borrow(|current| current.as_ref().and_then(Interrupts::time_left))
}

/// The error that says why the statement that this thread runs is to stop.
#[cold]
pub(crate) fn current_error() -> Option<EngineError> {
    CURRENT.with_borrow(|current| current.as_ref().map(Interrupts::error))
}

/// The reasons that may end the running statement.
#[derive(Debug, Clone)]
pub(crate) struct Interrupts {
    slot: Arc<ActivitySlot>,
    shutdown: Arc<AtomicBool>,
}

impl Interrupts {
    pub(crate) fn new(slot: Arc<ActivitySlot>, shutdown: Arc<AtomicBool>) -> Interrupts {
        Interrupts { slot, shutdown }
    }

    /// Shows that VACUUM locks tables for the session by this place in the lock table.
    pub(crate) fn tell_vacuum(&self, vacuum: ProcId) -> ToldPlace<'_> {
        self.slot.tell_vacuum(vacuum)
    }

    /// The progress of the session's command.
    pub(crate) fn progress(&self) -> &Progress {
        &self.slot.progress
    }

    /// A statement begins.
    #[inline]
    pub(crate) fn begin(&mut self, timeout: Option<Duration>) {
        self.slot.forget_request();
        let deadline = timeout.map_or(0, |timeout| running_us() + timeout.as_micros() as u64);
        self.slot.deadline_us.store(deadline, Ordering::Relaxed);
        CURRENT.with_borrow_mut(|current| match current {
            Some(current) if Arc::ptr_eq(&current.slot, &self.slot) => {}
            _ => *current = Some(self.clone()),
        });
    }

    /// True if the statement has taken too long.
    #[inline]
    fn timed_out(&self) -> bool {
        let deadline = self.slot.deadline_us.load(Ordering::Relaxed);
        deadline != 0 && running_us() >= deadline
    }

    /// True if the statement is to stop.
    #[inline]
    pub(crate) fn pending(&self) -> bool {
        self.canceled_or_late() || self.is_to_free_memory()
    }

    /// True if the statement is to stop, however much memory its session has: for a wait in which none is taken, and
    /// whose end would free none.
    #[inline]
    pub(crate) fn canceled_or_late(&self) -> bool {
        self.slot.cancel.load(Ordering::Relaxed) != 0
            || self.shutdown.load(Ordering::Relaxed)
            || self.timed_out()
    }

    /// True if the statement is to end because memory is scarce. Called by the session's own thread, whose memory it is.
    #[inline]
    fn is_to_free_memory(&self) -> bool {
        let held = memory::of_thread();
        self.slot.memory_bytes.store(held, Ordering::Relaxed);
        let ends = memory::attention() && memory::must_end(held);
        if ends {
            // A reason that is there already stands.
            let (none, reason) = (0, CancelReason::Memory as u32);
            let _ = self
                .slot
                .cancel
                .compare_exchange(none, reason, Ordering::Relaxed, Ordering::Relaxed);
        }
        ends
    }

    /// True if a cancel request has come or the server stops, however long the statement takes.
    #[inline]
    pub(crate) fn canceled_or_stopped(&self) -> bool {
        self.slot.cancel.load(Ordering::Relaxed) != 0 || self.server_stops()
    }

    /// The time that the statement may still take, if there is a limit.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        let deadline = self.slot.deadline_us.load(Ordering::Relaxed);
        (deadline != 0).then(|| Duration::from_micros(deadline.saturating_sub(running_us())))
    }

    /// The statement's time limit counts from now on again, if it has one: the client has taken its time between two
    /// messages.
    pub(crate) fn begin_again(&self, timeout: Option<Duration>) {
        if let Some(timeout) = timeout
            && self.slot.deadline_us.load(Ordering::Relaxed) != 0
        {
            let deadline = running_us() + timeout.as_micros() as u64;
            self.slot.deadline_us.store(deadline, Ordering::Relaxed);
        }
    }

    /// True if the server stops.
    #[inline]
    pub(crate) fn server_stops(&self) -> bool {
        self.shutdown.load(Ordering::Relaxed)
    }

    /// True if the session is to end.
    #[inline]
    pub(crate) fn is_to_end(&self) -> bool {
        self.slot.cancel.load(Ordering::Relaxed) == CancelReason::Terminate as u32
    }

    /// The cancel request has had its effect, and the statement's time limit has none any more: it was committed.
    pub(crate) fn take_cancel(&self) {
        self.slot.forget_request();
        self.slot.deadline_us.store(0, Ordering::Relaxed);
    }

    /// An error if it is time to stop.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.pending() { Err(self.error()) } else { Ok(()) }
    }

    /// The error that says why.
    #[cold]
    pub(crate) fn error(&self) -> EngineError {
        if self.server_stops() || self.is_to_end() {
            return terminated();
        }
        let reason = match CancelReason::from_number(self.slot.cancel.load(Ordering::Relaxed)) {
            Some(CancelReason::Terminate) => return terminated(),
            Some(CancelReason::Memory) => return memory::scarcity_error(memory::of_thread()),
            Some(CancelReason::Request) => "canceling statement due to user request",
            Some(conflict) => return conflict_error(conflict, "statement"),
            None if self.timed_out() => "canceling statement due to statement timeout",
            None => "canceling statement due to user request",
        };
        EngineError::new(SqlState::QUERY_CANCELED, reason)
    }
}

/// Tells a receiver of results whether the statement that sends them is to stop: it may have to wait for its client.
#[derive(Debug, Clone)]
pub struct StatementWatch(Interrupts);

impl StatementWatch {
    pub(crate) fn new(interrupts: Interrupts) -> StatementWatch {
        StatementWatch(interrupts)
    }

    /// The error that ends the statement, if it is to stop.
    pub fn check(&self) -> Result<(), EngineError> {
        self.0.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SessionInfo;

    /// A commit was waited for until a cancel came, and so long that the time limit has passed too. It is committed: what
    /// follows is a warning, and neither of the two makes an error of it.
    #[test]
    fn a_cancel_that_was_taken_takes_the_time_limit_along() {
        let slot = Arc::new(ActivitySlot::new(1, 2, &SessionInfo::default()));
        let mut interrupts = Interrupts::new(Arc::clone(&slot), Arc::default());
        interrupts.begin(Some(Duration::from_micros(1)));
        while !interrupts.timed_out() {}
        slot.cancel.store(CancelReason::Request as u32, Ordering::Relaxed);
        assert!(interrupts.check().is_err() && interrupts.canceled_or_stopped());
        interrupts.take_cancel();
        interrupts.check().unwrap();
        // The next statement has a limit of its own.
        interrupts.begin(Some(Duration::from_micros(1)));
        while !interrupts.timed_out() {}
        assert!(interrupts.check().is_err());
    }
}
