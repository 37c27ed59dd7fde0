//! Waits for locks: what a session is told of them, and what the server's log is.
//!
//! | | the client | the log |
//! | --- | --- | --- |
//! | a deadlock | 40P01, with each wait of the cycle | the same, and the statement of each session |
//! | a circle through the session that VACUUM runs for | 40P01, with the first wait | the same |
//! | a wait of more than `deadlock_timeout`, under `log_lock_waits` | | the session, the lock, all that hold it and all that wait for it, the statement; and when the session has got it |
//! | a deadlock that another order of the queues has avoided, under `log_lock_waits` | | the session, the lock; and when the session has got it |

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
use crate::server_log::logged_text;

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

/// The part of a wait that the log was told of.
#[derive(Debug)]
struct Told {
    /// Tell the log of a wait of this length.
    limit: Duration,
    /// Set when the session is about to sleep, so that a lock that is free costs no look at the clock.
    started: Cell<Option<Instant>>,
    /// True if the log was told that it waits.
    waits: Cell<bool>,
    /// The deadlocks that the session has avoided in its life, as the log knows of them.
    avoided: Cell<u64>,
    /// True if this wait avoided one.
    has_avoided: Cell<bool>,
}

impl Told {
    fn nothing(limit: Duration, avoided: u64) -> Self {
        Self {
            limit,
            started: Cell::new(None),
            waits: Cell::new(false),
            avoided: Cell::new(avoided),
            has_avoided: Cell::new(false),
        }
    }
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
        let told = self
            .log_after
            .map(|limit| Told::nothing(limit, self.avoided_deadlocks()));
        let found = Cell::new(None);
        let cancel = || {
            if let Some(told) = &told {
                self.tell_of_a_wait(told, target);
            }
            found.set(self.circle.filter(|circle| circle.find()));
            interrupts.pending() || found.get().is_some()
        };
        let waited = wait(LockWait {
            timeout,
            cancel: &cancel,
        });
        if let Some(told) = &told
            && waited.is_ok()
        {
            self.tell_of_the_end(told, target);
        }
        waited.map_err(|error| match (&error, found.get()) {
            (LockError::Cancelled, Some(circle)) if !interrupts.pending() => circle.error(),
            _ => self.refusal(error, interrupts),
        })
    }

    fn avoided_deadlocks(&self) -> u64 {
        self.manager.avoided_deadlocks(self.proc)
    }

    /// A wait goes on: asked before each sleep, so also right behind the search for a deadlock.
    fn tell_of_a_wait(&self, told: &Told, target: WaitTarget) {
        let Some(begun) = told.started.get() else {
            return told.started.set(Some(Instant::now()));
        };
        self.tell_of_avoided_deadlocks(told, target);
        if !told.waits.get() && begun.elapsed() >= told.limit {
            told.waits.set(true);
            let (pid, statement) = self.statement_of(self.proc).unwrap_or_default();
            let queue = self.manager.queue_of(self.proc);
            let noun = if queue.holders.len() == 1 {
                "Process"
            } else {
                "Processes"
            };
            let detail = format!(
                "{noun} holding the lock: {}. Wait queue: {}.",
                self.process_ids(&queue.holders),
                self.process_ids(&queue.waiters)
            );
            tracing::info!(
                detail,
                statement = logged_text(&statement),
                "process {pid} still waiting for {} after {} ms",
                words(target),
                milliseconds(begun)
            );
        }
    }

    /// The search of this wait may have given the queues another order.
    fn tell_of_avoided_deadlocks(&self, told: &Told, target: WaitTarget) {
        let avoided = self.avoided_deadlocks();
        if let Some(begun) = told.started.get()
            && told.avoided.replace(avoided) != avoided
        {
            tracing::info!(
                "process {} avoided deadlock for {} by rearranging queue order after {} ms",
                self.process_id(self.proc),
                words(target),
                milliseconds(begun)
            );
            told.has_avoided.set(true);
        }
    }

    /// The session has got what it waited for.
    fn tell_of_the_end(&self, told: &Told, target: WaitTarget) {
        // A new order may have let the session in before it slept again.
        self.tell_of_avoided_deadlocks(told, target);
        if let Some(begun) = told.started.get()
            && (told.waits.get() || told.has_avoided.get())
        {
            tracing::info!(
                "process {} acquired {} after {} ms",
                self.process_id(self.proc),
                words(target),
                milliseconds(begun)
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

    fn count_deadlock(&self) {
        let sessions = self
            .sessions
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(session) = sessions.values().find(|session| session.locks_as(self.proc)) {
            // On the session's own thread, which waits.
            session.slot.counts.deadlock_ended();
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
            let _ = write!(statements, "\nProcess {pid}: {}", logged_text(&statement));
        }
        self.count_deadlock();
        let detail = format!("{waits}{statements}");
        tracing::info!(
            detail,
            "a deadlock is ended by the error of process {}",
            self.process_id(self.proc)
        );
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
