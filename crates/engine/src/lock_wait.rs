//! Waits for locks: what a session is told of them, and what the server's log is.
//!
//! | | the client | the log |
//! | --- | --- | --- |
//! | a deadlock | 40P01, with each wait of the cycle | the same, and the statement of each session |
//! | a circle through the session that VACUUM runs for | 40P01, with the first wait | the same |
//! | a wait of more than `deadlock_timeout`, under `log_lock_waits` | | the session, the lock, all that hold it and all that wait for it, the statement; and when the session has got it |

use std::cell::Cell;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::function::DATABASE_OID;
use clearway_txn::{
    Asked, DeadlockWait, LockError, LockManager, LockMode, LockTag, LockWait, ProcId, QueuedLock, WaitTarget,
    Xid,
};

use crate::activity::OpenSessions;
use crate::interrupt::Interrupts;

/// 55P03: a wait has taken longer than `lock_timeout`.
pub(crate) fn lock_timed_out() -> EngineError {
    EngineError::new(
        SqlState::LOCK_NOT_AVAILABLE,
        "canceling statement due to lock timeout",
    )
}

/// Looks for a circle of waits that the lock table does not know whole.
pub(crate) trait WaitCircle: std::fmt::Debug {
    /// True if there is one. Asked at each moment at which the wait may end.
    fn find(&self) -> bool;

    /// 40P01 for the one that was found.
    fn error(&self) -> EngineError;
}

/// A session that waits for locks.
#[derive(Debug)]
pub(crate) struct LockWaiter<'a> {
    pub(crate) manager: &'a LockManager,
    pub(crate) sessions: &'a Mutex<OpenSessions>,
    pub(crate) proc: ProcId,
    /// Tell the log of a wait of this length.
    pub(crate) log_after: Option<Duration>,
    /// The looks for a circle through the session that this one waits on behalf of.
    pub(crate) circle: Option<&'a dyn WaitCircle>,
}

impl<'a> LockWaiter<'a> {
    pub(crate) fn locks(&self) -> &'a LockManager {
        self.manager
    }

    /// Takes a lock, waiting for it.
    #[inline]
    pub(crate) fn acquire(
        &self,
        tag: LockTag,
        mode: LockMode,
        interrupts: &Interrupts,
        timeout: Option<Duration>,
    ) -> Result<()> {
        match self.manager.ask(self.proc, tag, mode) {
            Asked::Granted => Ok(()),
            Asked::Queued(request) => {
                self.wait_queued(request, interrupts, timeout, WaitTarget::Lock(tag, mode))
            }
        }
    }

    #[cold]
    fn wait_queued(
        &self,
        request: QueuedLock,
        interrupts: &Interrupts,
        timeout: Option<Duration>,
        target: WaitTarget,
    ) -> Result<()> {
        self.wait(interrupts, timeout, target, |wait| {
            self.manager.wait_queued(request, wait)
        })
    }

    /// Waits until another transaction has ended.
    pub(crate) fn wait_for_transaction(
        &self,
        xid: Xid,
        interrupts: &Interrupts,
        timeout: Option<Duration>,
    ) -> Result<()> {
        self.wait(interrupts, timeout, WaitTarget::Transaction(xid), |wait| {
            self.manager.wait_for_transaction(self.proc, xid, wait)
        })
    }

    #[inline]
    fn wait(
        &self,
        interrupts: &Interrupts,
        timeout: Option<Duration>,
        target: WaitTarget,
        wait: impl FnOnce(LockWait<'_>) -> Result<(), LockError>,
    ) -> Result<()> {
        // Set when the session is about to sleep, so that a lock that is free costs no look at the clock.
        let (started, told) = (Cell::new(None), Cell::new(false));
        let found = Cell::new(None);
        let cancel = || {
            if let Some(limit) = self.log_after {
                self.look_at_the_clock(limit, &started, &told, target);
            }
            found.set(self.circle.filter(|circle| circle.find()));
            interrupts.pending() || found.get().is_some()
        };
        let waited = wait(LockWait {
            timeout,
            cancel: &cancel,
        });
        if told.get()
            && let Some(started) = started.get()
            && waited.is_ok()
        {
            let pid = self.process_id(self.proc);
            tracing::warn!(
                "process {pid} acquired {} after {} ms",
                words(target),
                milliseconds(started)
            );
        }
        waited.map_err(|error| match (&error, found.get()) {
            (LockError::Cancelled, Some(circle)) if !interrupts.pending() => circle.error(),
            _ => self.refusal(error, interrupts),
        })
    }

    /// A wait goes on: asked before each sleep, so also right behind the search for a deadlock.
    fn look_at_the_clock(
        &self,
        limit: Duration,
        started: &Cell<Option<Instant>>,
        told: &Cell<bool>,
        target: WaitTarget,
    ) {
        let Some(begun) = started.get() else {
            return started.set(Some(Instant::now()));
        };
        if !told.get() && begun.elapsed() >= limit {
            told.set(true);
            let (pid, statement) = self.statement_of(self.proc).unwrap_or_default();
            let queue = self.manager.queue_of(self.proc);
            let noun = if queue.holders.len() == 1 {
                "Process"
            } else {
                "Processes"
            };
            tracing::warn!(
                "process {pid} still waiting for {} after {} ms\n\
                 DETAIL:  {noun} holding the lock: {}. Wait queue: {}.\n\
                 STATEMENT:  {}",
                words(target),
                milliseconds(begun),
                self.process_ids(&queue.holders),
                self.process_ids(&queue.waiters),
                clearway_sql::masked(&statement)
            );
        }
    }

    /// The numbers of sessions, in a list.
    fn process_ids(&self, procs: &[ProcId]) -> String {
        let numbers: Vec<String> = procs
            .iter()
            .map(|proc| self.process_id(*proc).to_string())
            .collect();
        numbers.join(", ")
    }

    fn process_id(&self, proc: ProcId) -> u32 {
        self.statement_of(proc).map_or(0, |(pid, _)| pid)
    }

    /// The number of a session, and its statement.
    fn statement_of(&self, proc: ProcId) -> Option<(u32, Arc<str>)> {
        let sessions = self
            .sessions
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let session = sessions.values().find(|session| session.locks_as(proc))?;
        Some((session.slot.process_id, session.slot.query()))
    }

    /// A lock error for the client.
    #[cold]
    fn refusal(&self, error: LockError, interrupts: &Interrupts) -> EngineError {
        match error {
            LockError::Deadlock { cycle } => self.deadlock(&cycle),
            LockError::Timeout => lock_timed_out(),
            _ => interrupts.error(),
        }
    }

    fn deadlock(&self, cycle: &[DeadlockWait]) -> EngineError {
        let (mut waits, mut statements) = (String::new(), String::new());
        for wait in cycle {
            let (pid, statement) = self.statement_of(wait.waiter).unwrap_or_default();
            let blocker = self.process_id(wait.blocker);
            if !waits.is_empty() {
                waits.push('\n');
            }
            let _ = write!(
                waits,
                "Process {pid} waits for {}; blocked by process {blocker}.",
                words(wait.target)
            );
            let _ = write!(
                statements,
                "\nProcess {pid}: {}",
                clearway_sql::masked(&statement)
            );
        }
        tracing::warn!("deadlock detected: {waits}{statements}");
        EngineError::new(SqlState::DEADLOCK_DETECTED, "deadlock detected")
            .with_detail(waits)
            .with_hint("See server log for query details.")
    }
}

/// In PostgreSQL's words, which programs look for.
fn words(target: WaitTarget) -> String {
    match target {
        WaitTarget::Lock(LockTag::Advisory { high, low, is_pair }, mode) => {
            let part = 1 + u8::from(is_pair);
            format!("{mode} on advisory lock [{DATABASE_OID},{high},{low},{part}]")
        }
        WaitTarget::Lock(tag, mode) => format!("{mode} on {tag} of database {DATABASE_OID}"),
        WaitTarget::Transaction(xid) => format!("ShareLock on transaction {xid}"),
    }
}

fn milliseconds(since: Instant) -> String {
    format!("{:.3}", since.elapsed().as_secs_f64() * 1e3)
}
