//! The connected sessions and what each waits for: the source of `pg_stat_activity` and of the bench's
//! sampler.
//!
//! A session publishes its state in a slot that others may read at any time: small atomics for what changes with
//! every statement, and a mutex of its own (never contended but by readers) for the texts. What a session *waits*
//! for is not kept here: it is read from the worker slot of the thread that serves it.

mod background;
mod glance;
pub(crate) mod progress;

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crate::cancel_reason::CancelReason;
use clearway_machine::{Machine, Native, WaitClass, WaitEvent, WorkerId};
use clearway_txn::{ProcId, TransactionTurn, Xid};

use crate::session_counts::SessionCounts;
pub use background::BackgroundActivity;
pub(crate) use glance::SessionGlance;
pub(crate) use progress::{Command, CommandShown, Progress, Running};

/// The most of a statement's text that is shown, in bytes: it is kept after the statement has ended.
const SHOWN_QUERY_BYTES_MAX: usize = 1_024;

/// No state of a session.
const NO_STATE: u32 = u32::MAX;

/// The client that opens a session.
#[derive(Debug, Clone, Default)]
pub struct SessionInfo {
    /// The role's name; what opens the session has checked who it is.
    pub user: String,
    /// The database's name; empty means the one there is.
    pub database: String,
    /// The client's address, or none for a Unix-domain socket or an embedding program.
    pub client_address: Option<SocketAddr>,
    /// The address that the client has reached; none where the client has none.
    pub server_address: Option<SocketAddr>,
    /// The encryption of its connection, if it is encrypted.
    pub encryption: Option<Encryption>,
    /// Settings from the start-up message, applied as by `SET`; unknown ones are an error as there.
    pub settings: Vec<(String, String)>,
}

/// The encryption of a connection, in `pg_stat_ssl`'s words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encryption {
    /// The version of TLS: `TLSv1.3`.
    pub version: &'static str,
    /// The cipher suite: `TLS_AES_256_GCM_SHA384`.
    pub cipher: String,
    /// The bits of its key.
    pub bits: i32,
}

/// The state of a session, in `pg_stat_activity`'s words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum SessionState {
    /// No transaction, no statement.
    Idle = 0,
    /// A statement is running.
    Active = 1,
    /// Between two statements of a transaction.
    IdleInTransaction = 2,
    /// As before, after an error.
    IdleInFailedTransaction = 3,
}

impl SessionState {
    /// The name shown.
    pub const fn name(self) -> &'static str {
        match self {
            SessionState::Idle => "idle",
            SessionState::Active => "active",
            SessionState::IdleInTransaction => "idle in transaction",
            SessionState::IdleInFailedTransaction => "idle in transaction (aborted)",
        }
    }

    fn from_number(number: u32) -> SessionState {
        match number {
            1 => SessionState::Active,
            2 => SessionState::IdleInTransaction,
            3 => SessionState::IdleInFailedTransaction,
            _ => SessionState::Idle,
        }
    }
}

/// One row of `pg_stat_activity`.
#[derive(Debug, Clone)]
pub struct SessionActivity {
    /// The number by which the session is cancelled, in place of a process id.
    pub process_id: u32,
    /// The role's name.
    pub user: String,
    /// The database's name.
    pub database: String,
    /// The client's name for itself.
    pub application_name: String,
    /// The client's address.
    pub client_address: Option<SocketAddr>,
    /// The encryption of its connection, if it is encrypted.
    pub encryption: Option<Encryption>,
    /// The start of the session, in microseconds since 2000-01-01 UTC, as all times here.
    pub backend_start: i64,
    /// The start of its transaction, if it is in one.
    pub transaction_start: Option<i64>,
    /// The start of its last statement.
    pub query_start: Option<i64>,
    /// The time of the last change of its state.
    pub state_change: i64,
    /// Its state.
    pub state: SessionState,
    /// The class of what it waits for; `None` when on the CPU.
    pub wait_event_type: Option<&'static str>,
    /// The name of what it waits for.
    pub wait_event: Option<&'static str>,
    /// Its transaction's id, once it has written something.
    pub transaction_id: Option<u64>,
    /// The oldest transaction whose changes its snapshot may need, while it has one; of a session that sends the log, what
    /// its follower needs.
    pub xmin: Option<u64>,
    /// Memory that its thread has allocated and not freed, in bytes, when it last looked whether to stop; 0 if the program
    /// does not count ([`ProcessMemory`](crate::memory::ProcessMemory)).
    pub memory_bytes: u64,
    /// The kind of session.
    pub backend_type: BackendType,
    /// The number of its last statement, if it is counted in `pg_stat_statements`.
    pub query_id: Option<i64>,
    /// The text of its last statement, its first 1,024 bytes.
    pub query: String,
}

/// The session that a thread serves, as lines of the log name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedSession {
    /// Its number, by which it is cancelled.
    pub process_id: u32,
    /// The name that its client has logged in with.
    pub user: String,
    /// The database's name.
    pub database: String,
    /// The client's name for itself.
    pub application_name: String,
    /// The client's address; none for a Unix-domain socket.
    pub client_address: Option<SocketAddr>,
    /// Its start, in microseconds since 2000-01-01 UTC.
    pub start_us: i64,
    /// The kind of session, in `pg_stat_activity`'s words.
    pub backend_type: &'static str,
}

/// The kind of a session, in `pg_stat_activity`'s words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum BackendType {
    /// It runs statements.
    Client = 0,
    /// It sends the log, or copies of the files.
    WalSender = 1,
    /// It analyzes tables in the background.
    AutovacuumWorker = 2,
}

impl BackendType {
    /// The name shown.
    pub const fn name(self) -> &'static str {
        match self {
            BackendType::Client => "client backend",
            BackendType::WalSender => "walsender",
            BackendType::AutovacuumWorker => "autovacuum worker",
        }
    }
}

/// The event that `worker` waits for, if it waits.
fn wait_event(worker: WorkerId) -> Option<WaitEvent> {
    if_it_waits(Native::workers().slot(worker).wait_event())
}

fn if_it_waits(event: WaitEvent) -> Option<WaitEvent> {
    Some(event).filter(|event| event.class() != WaitClass::None)
}

/// A session, as others find it.
#[derive(Debug)]
pub(crate) struct OpenSession {
    pub(crate) slot: Arc<ActivitySlot>,
    pub(crate) proc: ProcId,
}

impl OpenSession {
    /// True if this place in the lock table is the session's, or the one by which VACUUM locks tables for it.
    pub(crate) fn locks_as(&self, proc: ProcId) -> bool {
        self.proc == proc || self.slot.vacuums_as() == Some(proc)
    }
}

/// The open sessions, by number.
pub(crate) type OpenSessions = HashMap<u32, OpenSession>;

/// The open sessions by their places in the lock table ([`OpenSession::locks_as`]): for a caller that looks up many.
pub(crate) fn sessions_by_place(sessions: &OpenSessions) -> HashMap<ProcId, &OpenSession> {
    let places = sessions.values().flat_map(|session| {
        let places = [Some(session.proc), session.slot.vacuums_as()];
        places.into_iter().flatten().map(move |place| (place, session))
    });
    places.collect()
}

/// Makes a session that waits for its client find its connection ended.
struct EndOfConnection(Box<dyn Fn() + Send + Sync>);

impl fmt::Debug for EndOfConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EndOfConnection")
    }
}

/// The part of one session that others see.
#[derive(Debug)]
pub(crate) struct ActivitySlot {
    pub(crate) process_id: u32,
    pub(crate) secret: u32,
    user: String,
    database: String,
    client_address: Option<SocketAddr>,
    encryption: Option<Encryption>,
    backend_start: i64,
    worker: AtomicU32,
    /// A [`BackendType`].
    backend_type: AtomicU32,
    state: AtomicU32,
    /// The state from when the answer in the making leaves; [`NO_STATE`]: as it is.
    next_state: AtomicU32,
    transaction_start: AtomicI64,
    query_start: AtomicI64,
    state_change: AtomicI64,
    transaction_id: AtomicU64,
    /// The number of its last statement among all, if that was counted; 0: none.
    statement_number: AtomicI64,
    /// The number of its transaction among those of the session; 0 outside of one.
    transaction_number: AtomicU64,
    end_of_connection: OnceLock<EndOfConnection>,
    /// A [`CancelReason`](crate::interrupt::CancelReason), taken by the session at its next check; 0: none.
    pub(crate) cancel: AtomicU32,
    /// Whose turn it is to end the session's transaction, where replay may.
    pub(crate) turn: TransactionTurn,
    /// Memory that the session's thread has, in bytes, when it last looked at its interrupts.
    pub(crate) memory_bytes: AtomicU64,
    /// The time limit of the running statement, by `clock::running_us`; 0: none.
    pub(crate) deadline_us: AtomicU64,
    /// The address of the text that `texts` has as the query, so that the session need not lock them to find that it runs
    /// the same statement again; 0: none, or a text that is shown in part. Written by the session's own thread, while the
    /// text lives in `texts`: equal addresses are one text.
    shown_text: AtomicUsize,
    texts: Mutex<Texts>,
    /// The session whose transaction it waits for without a lock, as a [`ProcId`] plus 1; 0: none.
    waits_for: AtomicU32,
    /// The place in the lock table by which VACUUM locks tables for it, as a [`ProcId`] plus 1; 0: none.
    vacuums_as: AtomicU32,
    /// The work that the session has done, counted.
    pub(crate) counts: SessionCounts,
    /// The progress of its command.
    pub(crate) progress: Progress,
}

/// A session shows a place in the lock table that is not its own, for as long as this lives.
#[must_use]
#[derive(Debug)]
pub(crate) struct ToldPlace<'a>(&'a AtomicU32);

impl Drop for ToldPlace<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
struct Texts {
    application_name: String,
    query: Arc<str>,
}

impl ActivitySlot {
    pub(crate) fn new(process_id: u32, secret: u32, info: &SessionInfo) -> ActivitySlot {
        let now = crate::clock::now_us();
        ActivitySlot {
            process_id,
            secret,
            user: info.user.clone(),
            database: info.database.clone(),
            client_address: info.client_address,
            encryption: info.encryption.clone(),
            backend_start: now,
            worker: AtomicU32::new(WorkerId::NONE),
            backend_type: AtomicU32::new(BackendType::Client as u32),
            state: AtomicU32::new(SessionState::Idle as u32),
            next_state: AtomicU32::new(NO_STATE),
            transaction_start: AtomicI64::new(0),
            query_start: AtomicI64::new(0),
            state_change: AtomicI64::new(now),
            transaction_id: AtomicU64::new(0),
            statement_number: AtomicI64::new(0),
            transaction_number: AtomicU64::new(0),
            end_of_connection: OnceLock::new(),
            cancel: AtomicU32::new(0),
            turn: TransactionTurn::default(),
            memory_bytes: AtomicU64::new(0),
            deadline_us: AtomicU64::new(0),
            shown_text: AtomicUsize::new(0),
            texts: Mutex::default(),
            waits_for: AtomicU32::new(0),
            vacuums_as: AtomicU32::new(0),
            counts: SessionCounts::default(),
            progress: Progress::default(),
        }
    }

    /// The name that its client has logged in with.
    pub(crate) fn user(&self) -> &str {
        &self.user
    }

    /// The session as the server's log names it.
    pub(crate) fn logged(&self) -> LoggedSession {
        let texts = self.texts.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        LoggedSession {
            process_id: self.process_id,
            user: self.user.clone(),
            database: self.database.clone(),
            application_name: texts.application_name.clone(),
            client_address: self.client_address,
            start_us: self.backend_start,
            backend_type: self.backend_type().name(),
        }
    }

    /// A statement begins on the calling thread.
    pub(crate) fn begin_statement(&self, query: &Arc<str>, now_us: i64) {
        self.set_worker();
        self.query_start.store(now_us, Ordering::Relaxed);
        self.change_state(SessionState::Active as u32, now_us);
        self.next_state.store(NO_STATE, Ordering::Relaxed);
        // Relaxed: the session's own thread is the only one that reads and writes it.
        if self.shown_text.load(Ordering::Relaxed) != query.as_ptr().addr() {
            self.show_text(query);
        }
    }

    #[inline(never)]
    fn show_text(&self, query: &Arc<str>) {
        // Until the new one's is known.
        self.statement_number.store(0, Ordering::Relaxed);
        let mut texts = self.texts.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let address = if query.len() > SHOWN_QUERY_BYTES_MAX {
            texts.query = query[..query.floor_char_boundary(SHOWN_QUERY_BYTES_MAX)].into();
            0
        } else {
            texts.query = Arc::clone(query);
            texts.query.as_ptr().addr()
        };
        self.shown_text.store(address, Ordering::Relaxed);
    }

    /// The number of the statement whose text is shown.
    #[inline]
    pub(crate) fn set_statement_number(&self, number: i64) {
        self.statement_number.store(number, Ordering::Relaxed);
    }

    /// Shows that the session waits for another one's transaction, by other means than a lock.
    pub(crate) fn tell_wait_for(&self, other: ProcId) -> ToldPlace<'_> {
        // Relaxed: what is shown of a session need not be of one moment.
        self.waits_for.store(other.0 + 1, Ordering::Relaxed);
        ToldPlace(&self.waits_for)
    }

    /// The session whose transaction it waits for by other means than a lock.
    pub(crate) fn waits_for(&self) -> Option<ProcId> {
        self.waits_for.load(Ordering::Relaxed).checked_sub(1).map(ProcId)
    }

    /// Shows that VACUUM locks tables for the session by this place in the lock table.
    pub(crate) fn tell_vacuum(&self, vacuum: ProcId) -> ToldPlace<'_> {
        // Relaxed: what is shown of a session need not be of one moment.
        self.vacuums_as.store(vacuum.0 + 1, Ordering::Relaxed);
        ToldPlace(&self.vacuums_as)
    }

    /// The place by which VACUUM locks tables for the session.
    pub(crate) fn vacuums_as(&self) -> Option<ProcId> {
        self.vacuums_as.load(Ordering::Relaxed).checked_sub(1).map(ProcId)
    }

    /// The text of the running statement, as it is shown.
    pub(crate) fn shown_query(&self) -> Arc<str> {
        let texts = self.texts.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        Arc::clone(&texts.query)
    }

    /// The session's thread waits for its client.
    pub(crate) fn set_state(&self, state: SessionState, now_us: i64) {
        self.change_state(state as u32, now_us);
    }

    /// The session is in another state, or again in the same, from now on: the time in the one before is counted.
    #[inline]
    fn change_state(&self, state: u32, now_us: i64) {
        let elapsed_us = now_us - self.state_change.load(Ordering::Relaxed);
        match SessionState::from_number(self.state.load(Ordering::Relaxed)) {
            SessionState::Idle => {}
            SessionState::Active => self.counts.was_active(elapsed_us),
            SessionState::IdleInTransaction | SessionState::IdleInFailedTransaction => {
                self.counts.was_idle_in_transaction(elapsed_us);
            }
        }
        self.state_change.store(now_us, Ordering::Relaxed);
        self.state.store(state, Ordering::Relaxed);
    }

    /// The session is going to wait for its client, when its answer has left: a session that waits before its answer is
    /// at work.
    #[inline]
    pub(crate) fn set_state_after_answer(&self, state: SessionState) {
        self.next_state.store(state as u32, Ordering::Relaxed);
    }

    /// The answer leaves: the state that was set for this moment is that of the session.
    #[inline]
    pub(crate) fn answer_leaves(&self, now_us: impl FnOnce() -> i64) {
        let state = self.next_state.load(Ordering::Relaxed);
        if state != NO_STATE {
            self.next_state.store(NO_STATE, Ordering::Relaxed);
            self.change_state(state, now_us());
        }
    }

    /// The session sends the log, or analyzes tables in the background, from now on.
    pub(crate) fn set_backend_type(&self, backend_type: BackendType) {
        self.backend_type.store(backend_type as u32, Ordering::Relaxed);
    }

    /// The session closes: it is counted, if it is a client's.
    pub(crate) fn count_close(&self, now_us: i64) {
        if self.backend_type() == BackendType::Client {
            let is_killed = self.cancel.load(Ordering::Relaxed) == CancelReason::Terminate as u32;
            self.counts.closes(now_us - self.backend_start, is_killed);
        }
    }

    /// The time for which a client's session has been open; `None` for another one.
    pub(crate) fn open_us(&self, now_us: i64) -> Option<u64> {
        (self.backend_type() == BackendType::Client)
            .then(|| u64::try_from(now_us - self.backend_start).unwrap_or(0))
    }

    /// The kind of session.
    pub(crate) fn backend_type(&self) -> BackendType {
        match self.backend_type.load(Ordering::Relaxed) {
            1 => BackendType::WalSender,
            2 => BackendType::AutovacuumWorker,
            _ => BackendType::Client,
        }
    }

    /// The calling thread serves this session from now on.
    pub(crate) fn adopt_thread(&self) {
        self.set_worker();
    }

    fn set_worker(&self) {
        // Release: pairs with the Acquire in `worker`, so that a reader finds the slot (`Workers::slot`).
        self.worker.store(Native::worker().0, Ordering::Release);
    }

    /// The worker of the thread that serves the session, once it is known.
    pub(crate) fn worker(&self) -> Option<WorkerId> {
        Some(WorkerId(self.worker.load(Ordering::Acquire))).filter(|worker| worker.0 != WorkerId::NONE)
    }

    /// The number of the session's transaction among its own, while it is in one.
    pub(crate) fn set_transaction_number(&self, number: u64) {
        self.transaction_number.store(number, Ordering::Relaxed);
    }

    /// The number of its transaction, and its id if it has one; `None` outside of a transaction.
    pub(crate) fn transaction(&self) -> Option<(u64, Option<u64>)> {
        let number = self.transaction_number.load(Ordering::Relaxed);
        let xid = self.transaction_id.load(Ordering::Relaxed);
        (self.transaction_start.load(Ordering::Relaxed) != 0)
            .then_some((number, Some(xid).filter(|xid| *xid != 0)))
    }

    /// The id of its transaction; `None` if it has none.
    #[inline]
    pub(crate) fn transaction_id(&self) -> Option<Xid> {
        Some(Xid(self.transaction_id.load(Ordering::Relaxed))).filter(|xid| xid.0 != 0)
    }

    /// Its transaction, which runs, has this id from now on.
    pub(crate) fn set_transaction_id(&self, xid: Xid) {
        self.transaction_id.store(xid.0, Ordering::Relaxed);
    }

    /// The text of its last statement, as far as it is kept.
    pub(crate) fn query(&self) -> Arc<str> {
        let texts = self.texts.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        Arc::clone(&texts.query)
    }

    /// Has the end of the session call this, so that it does not wait for its client any longer.
    pub(crate) fn end_connection_by(&self, end: impl Fn() + Send + Sync + 'static) {
        let _ = self.end_of_connection.set(EndOfConnection(Box::new(end)));
    }

    /// The session is to end: it learns of it at its next look, or in its wait for its client.
    pub(crate) fn terminate(&self) {
        self.ask_to_stop(CancelReason::Terminate);
        if let Some(end) = self.end_of_connection.get() {
            (end.0)();
        }
    }

    /// The running statement is to stop. The weightier of two reasons stays. The one that was there before.
    pub(crate) fn ask_to_stop(&self, reason: CancelReason) -> u32 {
        // Release: pairs with the Acquire in `forget_request`.
        self.cancel.fetch_max(reason as u32, Ordering::Release)
    }

    /// Forgets the reason to stop, but for one that ends the session.
    #[inline]
    pub(crate) fn forget_request(&self) {
        // Mostly there is none, and nothing is written.
        if self.cancel.load(Ordering::Relaxed) != 0 {
            let reason = self.cancel.swap(0, Ordering::Acquire);
            if reason == CancelReason::Terminate as u32 {
                self.ask_to_stop(CancelReason::Terminate);
            }
        }
    }

    pub(crate) fn set_transaction(&self, start_us: i64, xid: u64) {
        self.transaction_start.store(start_us, Ordering::Relaxed);
        self.transaction_id.store(xid, Ordering::Relaxed);
    }

    /// The start of the running statement.
    pub(crate) fn statement_start_us(&self) -> i64 {
        self.query_start.load(Ordering::Relaxed)
    }

    /// True if a statement is running; sending the log is none.
    pub(crate) fn is_active(&self) -> bool {
        self.state.load(Ordering::Relaxed) == SessionState::Active as u32
            && self.backend_type() != BackendType::WalSender
    }

    pub(crate) fn set_application_name(&self, name: &str) {
        let mut texts = self.texts.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        texts.application_name = name.to_owned();
    }

    pub(crate) fn snapshot(&self) -> SessionActivity {
        let some = |time: &AtomicI64| match time.load(Ordering::Relaxed) {
            0 => None,
            time => Some(time),
        };
        let (application_name, query) = {
            let texts = self.texts.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            (
                texts.application_name.clone(),
                clearway_sql::masked(&texts.query).into_owned(),
            )
        };
        let event = self.worker().and_then(wait_event);
        SessionActivity {
            process_id: self.process_id,
            user: self.user.clone(),
            database: self.database.clone(),
            application_name,
            client_address: self.client_address,
            encryption: self.encryption.clone(),
            backend_start: self.backend_start,
            transaction_start: some(&self.transaction_start),
            query_start: some(&self.query_start),
            state_change: self.state_change.load(Ordering::Relaxed),
            state: SessionState::from_number(self.state.load(Ordering::Relaxed)),
            wait_event_type: event.map(|event| event.class().name()),
            wait_event: event.map(|event| event.name()),
            transaction_id: match self.transaction_id.load(Ordering::Relaxed) {
                0 => None,
                xid => Some(xid),
            },
            // Its slot in the array of running transactions is the engine's business.
            xmin: None,
            memory_bytes: self.memory_bytes.load(Ordering::Relaxed),
            backend_type: self.backend_type(),
            query_id: Some(self.statement_number.load(Ordering::Relaxed)).filter(|number| *number != 0),
            query,
        }
    }
}
