//! A standby that has diverged: it has log which its server does not have and never will, and so rows that are not the
//! database's any more. A client that reads them cannot tell. So by default they are refused (55000), and the setting
//! `diverged_standby_reads` gives them to those who want to look what was lost. Views of the server's own state are
//! answered in any case.
//!
//! The receiver finds a divergence when it asks the server, and whatever runs the receiver reports it here.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::engine::Engine;
use clearway_sql::error::{EngineError, Result, SqlState};

/// The reason why the log here is of an abandoned branch.
#[derive(Debug, Default)]
pub(super) struct Divergence {
    is_refusing: AtomicBool,
    problem: Mutex<Option<String>>,
}

impl Engine {
    /// Says that this standby has diverged from its server, and why; `None`: that its log goes on again.
    pub fn set_diverged(&self, problem: Option<String>) {
        let divergence = &self.standby.divergence;
        let refuses = problem.is_some() && !self.config.diverged_standby_reads;
        *divergence
            .problem
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner()) = problem;
        // Release: pairs with the Acquire of a statement that reads; it finds the reason.
        divergence.is_refusing.store(refuses, Ordering::Release);
    }

    /// 55000 for a statement that reads tables, if they are of an abandoned branch. A promotion makes that branch the
    /// database.
    #[inline]
    pub(crate) fn check_not_diverged(&self) -> Result<()> {
        if self.standby.divergence.is_refusing.load(Ordering::Acquire) && self.is_standby() {
            return Err(self.diverged());
        }
        Ok(())
    }

    #[cold]
    fn diverged(&self) -> EngineError {
        let problem = &self.standby.divergence.problem;
        let problem = problem.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        EngineError::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            "this standby has diverged from its primary, and its rows are not the database's any more",
        )
        .with_detail(problem.clone().unwrap_or_default())
        .with_hint(
            "Make a new base backup for it. To read what it has, set diverged_standby_reads = true and restart it.",
        )
    }
}
