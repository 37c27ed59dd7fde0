//! A time after which no answer leaves: the fence of a primary that holds its office for a limited time.
//!
//! A node of a cluster may answer as a primary only until its lease ends. A thread that watches the lease is not enough: the
//! whole process may be stopped (SIGSTOP, a paused machine) and go on after another node has taken over, and the first thread
//! to run may be a session's. So the session itself looks at the clock, as the last thing before each write to its client.
//!
//! The clock is `CLOCK_BOOTTIME`: it goes on while the process is stopped and while the machine sleeps, and no operator sets it.
//!
//! Between the look and the write a thread can be stopped, too. An answer that leaves late so is of a commit that was
//! acknowledgeable in time: with synchronous replication the new primary has it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clearway_engine::{EngineError, SqlState};
use rustix::time::{ClockId, clock_gettime};

/// The time up to which answers may leave. Clones are the same deadline. A new one has no limit.
#[derive(Debug, Clone)]
pub struct AnswerDeadline(Arc<AtomicU64>);

impl Default for AnswerDeadline {
    fn default() -> AnswerDeadline {
        AnswerDeadline(Arc::new(AtomicU64::new(AnswerDeadline::NEVER_NS)))
    }
}

impl AnswerDeadline {
    /// No limit.
    pub const NEVER_NS: u64 = u64::MAX;

    /// The time of `CLOCK_BOOTTIME` in nanoseconds.
    pub fn now_ns() -> u64 {
        let now = clock_gettime(ClockId::Boottime);
        now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
    }

    /// Answers leave until `time_ns` of [`now_ns`](Self::now_ns); 0 lets none leave.
    pub fn set_ns(&self, time_ns: u64) {
        // Release: pairs with the Acquire in `has_passed`; a promotion is published behind the deadline that it has.
        self.0.store(time_ns, Ordering::Release);
    }

    /// True if no answer may leave.
    #[inline]
    pub fn has_passed(&self) -> bool {
        // Before the clock: a deadline that was in force is compared with a time that is not earlier.
        match self.0.load(Ordering::Acquire) {
            AnswerDeadline::NEVER_NS => false,
            deadline => AnswerDeadline::now_ns() >= deadline,
        }
    }

    /// 57P01 if no answer may leave.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        match self.has_passed() {
            false => Ok(()),
            true => Err(no_primary_any_more()),
        }
    }
}

#[cold]
fn no_primary_any_more() -> EngineError {
    EngineError::new(
        SqlState::ADMIN_SHUTDOWN,
        "terminating connection because this server may not be the primary any more",
    )
    .with_detail("Its lease has ended. A transaction whose commit was not answered may or may not be on the new primary.")
    .with_hint("Connect again, to the server that is the primary now.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_passes_by_itself_and_stays_passed() {
        let deadline = AnswerDeadline::default();
        assert!(deadline.check().is_ok());
        deadline.set_ns(AnswerDeadline::now_ns() + 3_600_000_000_000);
        assert!(!deadline.has_passed());
        let soon = AnswerDeadline::now_ns() + 1_000_000;
        deadline.clone().set_ns(soon);
        while AnswerDeadline::now_ns() < soon {
            std::hint::spin_loop();
        }
        let error = deadline.check().unwrap_err();
        assert_eq!(error.sqlstate(), SqlState::ADMIN_SHUTDOWN);
        deadline.set_ns(0);
        assert!(deadline.has_passed());
    }
}
