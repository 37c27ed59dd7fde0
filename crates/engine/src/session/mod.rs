//! One client's conversation with the engine.
//!
//! | protocol message | call |
//! | --- | --- |
//! | Query | [`Session::execute_simple`] |
//! | Parse | [`Session::prepare`] |
//! | Describe | [`Prepared::param_types`], [`Prepared::columns`] |
//! | Execute | [`Session::execute`], then [`Session::resume`] for a suspended [`Portal`] |
//! | Sync | [`Session::sync`] |
//! | ReadyForQuery | [`Session::transaction_status`] |
//!
//! Outside a transaction block, what is executed up to the next `sync` is one implicit transaction. An error aborts
//! an implicit transaction at once and puts an explicit one into the failed state. COPY runs inside `execute` or
//! `execute_simple`, which pull the data through [`Output::copy_in_read`].
//!
//! A dropped session rolls its transaction back and frees its locks.
//!
//! | module | job |
//! | --- | --- |
//! | `open` | a session begins |
//! | `simple`, `prepare` | from a text to a prepared statement |
//! | `prepared`, `named_statements`, `text_cache`, `statement_memory` | prepared statements and their plans, by name and by text, and the memory they may take |
//! | `run` | one dispatch over the kinds of statements |
//! | `control`, `transaction_block`, `savepoint` | statements about settings and prepared statements; BEGIN to COMMIT; savepoints |
//! | `advisory_locks` | advisory locks: how often the session has asked for each |
//! | `analyze` | ANALYZE |
//! | `client_text` | a client's text as the engine reads it, under the session's settings |
//! | `command_tag` | the tag of the statement that has run |
//! | `cursors` | DECLARE, FETCH, MOVE, CLOSE; portals by name |
//! | `portal` | statements that have sent some of their rows |
//! | `recovery` | what is different on a standby: a transaction that replay has ended, the promotion |
//! | `expression_session`, `catalog_facts` | what an expression can ask of its session, and of the catalog |
//! | `identity` | the roles of the session: SET ROLE, SET SESSION AUTHORIZATION |
//! | `notifications` | LISTEN, UNLISTEN, NOTIFY, and what the client is told |
//! | `permission` | privileges on what a statement reads and changes |
//! | `references` | foreign keys: their checks and actions, at a statement's end and at the commit |
//! | `sequence_locks` | the sequences that the transaction has counted by |
//! | `statement_counts` | what the session's statements take, for `pg_stat_statements` |
//! | `statement_log` | statements and errors in the server's log |
//! | `serial_values` | the numbers that a session has got from sequences |

mod advisory_locks;
mod analyze;
mod catalog_facts;
mod checks;
mod client_text;
mod command_tag;
mod concurrent_index;
mod control;
mod cursors;
mod expression_session;
mod identity;
mod named_output;
mod named_statements;
mod notifications;
mod open;
mod permission;
mod plan_log;
mod portal;
mod prepare;
mod prepared;
mod recovery;
mod references;
mod run;
mod savepoint;
mod schema_elements;
mod sequence_locks;
mod serial_values;
mod simple;
mod statement_counts;
mod statement_log;
mod statement_memory;
mod text_cache;
mod transaction_block;
mod types_in_force;
mod wait_for_lsn;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use clearway_storage::SeenCommits;
use clearway_txn::ProcId;

use crate::activity::{ActivitySlot, BackendType, SessionInfo, SessionState};
use crate::clock;
use crate::engine::Engine;
use crate::executor::Scratch;
use crate::identity::Identity;
use crate::interrupt::{Interrupts, StatementWatch};
use crate::memory;
use crate::output::{Notice, Output};
use crate::server_log;
use crate::settings::Settings;
use crate::spill::SpillOptions;
use crate::transaction::{PendingNotifications, Phase, StandbyWait, Transaction, WaitedFor};
use advisory_locks::AdvisoryLocks;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::escapes::Places;
use command_tag::CommandTag;
use cursors::Cursors;
use expression_session::ChangedSetting;
use named_statements::NamedStatement;
use notifications::Channels;
use recovery::OnStandby;
use references::ReferenceStatements;
use sequence_locks::SequenceLocks;
use serial_values::SerialValues;
use statement_log::TimedStatement;
use statement_memory::StatementMemory;
use text_cache::TextCache;

pub use crate::transaction::{AnswerGate, TransactionStatus};
pub use notifications::ReceivedNotification;
pub use portal::Portal;
pub use prepared::Prepared;

/// The progress of an execution.
#[derive(Debug)]
pub enum Completion {
    /// Done; `Output::complete` (or `empty`) has been called.
    Complete,
    /// The row limit was reached and there may be more.
    Suspended(Box<Portal>),
}

/// One client's conversation with the engine; see the [module](self).
#[derive(Debug)]
pub struct Session {
    pub(crate) engine: Arc<Engine>,
    slot: Arc<ActivitySlot>,
    pub(crate) interrupts: Interrupts,
    pub(crate) settings: Settings,
    spill: SpillOptions,
    pub(crate) txn: Transaction,
    /// The transaction's.
    seen: Arc<SeenCommits>,
    texts: TextCache,
    statements: StatementMemory,
    named: HashMap<String, NamedStatement>,
    cursors: Cursors,
    channels: Channels,
    /// The part of the transaction's commit that is about notifications.
    pending: RefCell<PendingNotifications>,
    advisory: RefCell<AdvisoryLocks>,
    sequence_locks: RefCell<SequenceLocks>,
    /// Warnings of functions of the running statement.
    warnings: RefCell<Vec<Notice>>,
    scratch: Scratch,
    info: SessionInfo,
    pub(crate) identity: Identity,
    tag: CommandTag,
    random: std::cell::Cell<u64>,
    /// True if the running statement is one of several in a query string: they are one transaction, even where the
    /// first of them has not begun it yet.
    among_others: bool,
    /// True if the statement that runs next has begun already, when it was parsed: its time counts from there, and a
    /// cancel request that came meanwhile is not forgotten.
    begun: bool,
    /// Settings that functions of the running statement have changed: in force from its end.
    pub(crate) changed: RefCell<Vec<ChangedSetting>>,
    /// Reported settings that a rollback has put back, and that the client has not been told of.
    untold_settings: Vec<&'static str>,
    /// The numbers that it has got from sequences.
    serial_values: RefCell<SerialValues>,
    /// The statements by which foreign keys are checked.
    reference_statements: ReferenceStatements,
    standby: Option<OnStandby>,
    /// The reloads of the configuration whose values the settings have.
    reloads: u64,
    /// Places in the client's text of the text that is being read, if it was written out.
    client_places: Option<Places>,
    /// A statement whose answer has not left, and whose time is wanted.
    timed: Option<TimedStatement>,
}

impl Session {
    pub(crate) fn new(
        engine: Arc<Engine>,
        slot: Arc<ActivitySlot>,
        txn: Transaction,
        interrupts: Interrupts,
        settings: Settings,
        spill: SpillOptions,
        (info, identity): (SessionInfo, Identity),
    ) -> Session {
        let plans_max = engine.config.plan_cache_entries as usize;
        let seed = u64::from(slot.secret) << 32 | u64::from(slot.process_id) | 1;
        Session {
            slot,
            interrupts,
            settings,
            spill,
            seen: txn.seen(),
            txn,
            texts: TextCache::default(),
            statements: StatementMemory::new(plans_max),
            named: HashMap::new(),
            cursors: Cursors::default(),
            channels: Channels::default(),
            pending: RefCell::default(),
            advisory: RefCell::default(),
            sequence_locks: RefCell::default(),
            warnings: RefCell::default(),
            scratch: Scratch::default(),
            info,
            identity,
            tag: CommandTag::default(),
            random: std::cell::Cell::new(seed),
            among_others: false,
            begun: false,
            changed: RefCell::default(),
            untold_settings: Vec::new(),
            serial_values: RefCell::default(),
            reference_statements: ReferenceStatements::default(),
            standby: OnStandby::of(&engine),
            // At the next call: a reload may have come since the settings were made.
            reloads: 0,
            client_places: None,
            timed: None,
            engine,
        }
    }

    /// The configuration was read again: settings that the session has not set itself follow it.
    #[cold]
    fn take_reloaded(&mut self) {
        // The count first: a reload in between is taken at the next call.
        self.reloads = self.engine.reloads();
        if let Ok(settings) = self.engine.settings_of(&self.info) {
            let changed = self.settings.replace_defaults(&settings);
            self.untold_settings.extend(changed);
        }
    }

    /// The number and the secret by which [`Engine::cancel`](crate::Engine::cancel) knows this session.
    pub fn cancel_key(&self) -> (u32, u32) {
        (self.slot.process_id, self.slot.secret)
    }

    /// The session's slot in the array of running transactions.
    pub fn proc(&self) -> ProcId {
        self.txn.proc
    }

    /// Says that the calling thread serves this session from now on, so that its waits (for the client, above all)
    /// are shown with the session before it has run a statement.
    pub fn adopt_thread(&self) {
        self.slot.adopt_thread();
        server_log::thread_serves(&self.slot);
    }

    /// 42501 unless the session's role may copy the log and the files.
    pub fn require_replication(&self) -> Result<(), EngineError> {
        let state = self.engine.catalog.state();
        let role = state.roles().get(self.identity.authenticated);
        match role.is_none_or(|entry| entry.role.superuser || entry.role.replication) {
            true => Ok(()),
            false => Err(EngineError::new(
                SqlState::from_code("42501"),
                "must be superuser or replication role to start walsender",
            )),
        }
    }

    /// Says that the session sends the log or copies of the files, and runs no statements.
    pub fn is_wal_sender(&self) {
        self.slot.set_backend_type(BackendType::WalSender);
    }

    /// A command of a session that sends the log begins: it is shown as its statement, until
    /// [`command_ended`](Self::command_ended).
    pub fn command_begins(&self, text: &str) {
        self.slot.begin_statement(&text.into(), clock::now_us());
    }

    /// The command has ended, and the session waits for its client.
    pub fn command_ended(&self) {
        self.slot.set_state(SessionState::Idle, clock::now_us());
    }

    /// Tells, from now on and from statement to statement, whether the running one is to stop.
    pub fn statement_watch(&self) -> StatementWatch {
        StatementWatch::new(self.interrupts.clone())
    }

    /// Ends the implicit transaction, if one is open: commits it.
    pub fn sync(&mut self) -> Result<(), EngineError> {
        self.sync_to(&mut crate::output::Discard::default())
    }

    /// As [`sync`](Self::sync); further messages to the client go to `out`.
    pub fn sync_to(&mut self, out: &mut dyn Output) -> Result<(), EngineError> {
        self.begin_call();
        self.interrupts.begin_again(self.settings.statement_timeout);
        let result = if self.txn.phase == Phase::Implicit {
            self.commit(out)
        } else {
            Ok(())
        };
        let waited = self.wait_before_answer();
        self.went_idle();
        self.end_synced_call();
        result.and(waited)
    }

    /// A gate in which the session's answers wait from now on, and which the caller goes through before it shows any of
    /// them to the client. Otherwise the session waits itself: what [`execute`](Self::execute) or
    /// [`resume`](Self::resume) has given to an [`Output`] in a transaction block, and
    /// [`execute_simple`](Self::execute_simple) always, may be shown once the call has returned; what was given in an
    /// implicit transaction, once [`sync`](Self::sync) has.
    pub fn answer_gate(&mut self) -> AnswerGate {
        self.txn.answer_gate(self.interrupts.clone())
    }

    /// A statement's answer is complete: waits for what it depends on, unless the rest of the implicit transaction or
    /// of the query string is still to come.
    #[inline]
    fn end_answer(&mut self, last: bool) -> Result<()> {
        self.txn.end_answer();
        if last || !(self.among_others || self.txn.phase == Phase::Implicit) {
            return self.wait_before_answer();
        }
        Ok(())
    }

    /// Waits for what the answers so far depend on, unless the caller does. An error: the answers must not be shown.
    #[inline]
    fn wait_before_answer(&mut self) -> Result<()> {
        let waited = self.txn.wait_before_answer(&self.interrupts);
        if waited.is_err() {
            self.drop_answers();
        }
        waited
    }

    /// The caller shows none of the answers since it last passed the [`AnswerGate`], which has told it to: the client has
    /// canceled the wait, or its time is up. The transaction fails, if one is open.
    pub fn give_up_answers(&mut self) {
        self.begin_call();
        self.drop_answers();
        self.end_call();
    }

    fn drop_answers(&mut self) {
        self.end_failed();
        self.txn.give_up_answers();
        self.interrupts.take_cancel();
        self.went_idle();
    }

    /// The status in ReadyForQuery.
    pub fn transaction_status(&self) -> TransactionStatus {
        self.txn.status()
    }

    /// The time that the client may be silent now, and the error for a client that is silent for longer.
    pub fn idle_limit(&self) -> Option<(Duration, EngineError)> {
        let (limit, sqlstate, what) = match self.txn.status() {
            TransactionStatus::Idle => (
                self.settings.idle_session_timeout,
                SqlState::IDLE_SESSION_TIMEOUT,
                "idle-session",
            ),
            TransactionStatus::InTransaction | TransactionStatus::Failed => (
                self.settings.idle_in_transaction_timeout,
                SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
                "idle-in-transaction",
            ),
        };
        let message = format!("terminating connection due to {what} timeout");
        Some((limit?, EngineError::new(sqlstate, message)))
    }

    /// Sends a notice, if the client wants such.
    pub(crate) fn notice(&self, notice: &Notice, out: &mut dyn Output) -> Result<()> {
        if notice.reaches(self.settings.least_notice) {
            self.txn.answer_with_rows();
            out.notice(notice)?;
        }
        Ok(())
    }

    /// The value of a setting, as SHOW gives it.
    pub fn setting(&self, name: &str) -> Option<String> {
        self.settings.show(name).ok()
    }

    /// The settings that are reported to a client at the start, and again when they change (ParameterStatus).
    pub fn reported_settings(&self) -> Vec<(&'static str, String)> {
        self.settings.reported()
    }

    /// Publishes that the session waits for its client; if its caller sends the answers, from when that does.
    fn went_idle(&mut self) {
        memory::statement_ended();
        let state = match self.txn.phase {
            Phase::None | Phase::Implicit => SessionState::Idle,
            Phase::Block => SessionState::IdleInTransaction,
            Phase::Failed | Phase::FailedAtSavepoint => SessionState::IdleInFailedTransaction,
        };
        if self.txn.leaves_waits_to_caller() {
            self.slot.set_state_after_answer(state);
        } else {
            self.slot.set_state(state, clock::now_us());
        }
    }

    /// An error that the session has not met itself, such as a parameter that cannot be read, ends its transaction as
    /// any other does.
    pub fn fail_transaction(&mut self) {
        self.begin_call();
        self.end_failed();
        self.went_idle();
        self.end_call();
    }

    /// After an error: rolls back an implicit transaction, fails an explicit one. Gives the error back.
    fn fail(&mut self, error: EngineError) -> EngineError {
        let error = self.in_client_text(error);
        if error.sqlstate() == SqlState::OUT_OF_MEMORY {
            self.give_memory_back();
        }
        self.slot.counts.statement_failed();
        let stopped = error.sqlstate() == SqlState::QUERY_CANCELED;
        self.txn.fail_answer(stopped, &self.settings);
        self.end_failed();
        self.txn.end_answer();
        match self.wait_before_answer() {
            Ok(()) => {
                self.went_idle();
                error
            }
            Err(stopped) => stopped,
        }
    }

    /// Gives back what the session keeps to be quicker next time.
    #[cold]
    fn give_memory_back(&mut self) {
        self.texts = TextCache::default();
        self.statements.forget_all_plans();
        self.scratch = Scratch::default();
        self.reference_statements = ReferenceStatements::default();
        memory::after_refusal();
    }

    fn end_failed(&mut self) {
        self.begun = false;
        match self.txn.phase {
            Phase::None | Phase::Failed | Phase::FailedAtSavepoint => {}
            Phase::Implicit => self.rollback(),
            Phase::Block if self.txn.has_savepoints() => self.fail_at_savepoint(),
            Phase::Block => {
                self.rollback();
                self.txn.phase = Phase::Failed;
            }
        }
    }

    pub(crate) fn rollback(&mut self) {
        self.function_locks_end();
        self.txn.rollback();
        if self.has_pending_notifications() {
            self.end_pending_notifications(false);
        }
        self.cursors.rolled_back(self.txn.number());
        let changed = self.settings.end_transaction(false);
        self.untold_settings.extend(changed);
        let name = self.settings.value("application_name").unwrap_or_default();
        self.slot.set_application_name(name);
    }

    pub(crate) fn commit(&mut self, out: &mut dyn Output) -> Result<()> {
        let setting = self.settings.synchronous_commit;
        if self.txn.has_deferred_checks()
            && let Err(violated) = self.fire_deferred(None)
        {
            self.rollback();
            return Err(violated);
        }
        if self.cursors.has_some()
            && let Err(error) = self.hold_cursors()
        {
            self.rollback();
            return Err(error);
        }
        let notifies = self.has_pending_notifications();
        if notifies && let Err(refused) = self.prepare_notifications() {
            self.rollback();
            return Err(refused);
        }
        if let Err(stopped) = self.txn.wait_before_commit(setting, &self.interrupts) {
            self.rollback();
            return Err(stopped);
        }
        let engine = notifies.then(|| Arc::clone(&self.engine));
        let announced = match &engine {
            Some(engine) => self.announce_notifications(engine),
            None => Ok(None),
        };
        let announced = match announced {
            Ok(announced) => announced,
            Err(refused) => {
                self.rollback();
                return Err(refused);
            }
        };
        self.function_locks_end();
        let committed = self.txn.commit(setting, &self.interrupts, announced);
        if notifies {
            self.end_pending_notifications(committed.is_ok());
        }
        if self.cursors.has_some() {
            match committed {
                Ok(_) => self.cursors.committed(),
                Err(_) => self.cursors.rolled_back(self.txn.number()),
            }
        }
        for name in self.settings.end_transaction(committed.is_ok()) {
            self.report(name, out)?;
        }
        match committed? {
            StandbyWait::Replicated => Ok(()),
            StandbyWait::Canceled => self.notice(&WaitedFor::Commit.warning(), out),
            StandbyWait::Terminated => Err(WaitedFor::Commit.terminated()),
        }
    }

    /// The transaction is about to end, and the locks with it that functions have taken for it.
    #[inline]
    fn function_locks_end(&mut self) {
        if self.sequence_locks.get_mut().end() {
            self.txn.has_locked();
        }
        let advisory = self.advisory.get_mut();
        if !advisory.of_transaction().is_empty() {
            self.txn.has_locked();
            advisory.keep(0);
        }
    }

    /// Gives back the advisory locks of the session.
    fn unlock_all_advisory(&mut self) {
        let locks = &self.engine.storage.locks;
        self.advisory.get_mut().unlock_all(locks, self.txn.proc);
    }

    /// Sends the warnings of functions of the statement.
    #[inline(always)]
    fn tell_warnings(&mut self, out: &mut dyn Output) -> Result<()> {
        match self.warnings.get_mut().is_empty() {
            true => Ok(()),
            false => self.tell_all_warnings(out),
        }
    }

    #[cold]
    #[inline(never)]
    fn tell_all_warnings(&mut self, out: &mut dyn Output) -> Result<()> {
        let warnings = std::mem::take(self.warnings.get_mut());
        warnings.iter().try_for_each(|warning| self.notice(warning, out))
    }

    /// Has the end of the session, by `pg_terminate_backend`, call this: a session that waits for its client is to find
    /// its connection ended.
    pub fn end_connection_by(&self, end: impl Fn() + Send + Sync + 'static) {
        self.slot.end_connection_by(end);
    }

    /// True if the session is to end by the command of another.
    pub fn is_terminated(&self) -> bool {
        self.interrupts.is_to_end()
    }

    /// Tells the client and the activity view of a setting's new value.
    pub(crate) fn report(&mut self, name: &str, out: &mut dyn Output) -> Result<()> {
        self.txn.answer_with_rows();
        let value = self.settings.value(name).unwrap_or_default().to_owned();
        if name == "application_name" {
            self.slot.set_application_name(&value);
        }
        match Settings::shown_name(name) {
            "" => Ok(()),
            shown => out.parameter_status(shown, &value),
        }
    }

    /// Starts a transaction, as of the start of the running statement: `now()` in it is that statement's time.
    pub(crate) fn begin(&mut self, phase: Phase) {
        let (isolation, read_only) = (self.settings.default_isolation, self.settings.default_read_only);
        let now_us = self.slot.statement_start_us();
        self.txn.begin(phase, isolation, read_only, now_us);
        self.txn.deferrable = self.settings.default_deferrable;
    }

    /// The meaning of `now` in a value that a client sends: the start of the open transaction, or this moment if none
    /// is open.
    pub fn transaction_timestamp(&self) -> i64 {
        if self.txn.is_open() {
            self.txn.start_us()
        } else {
            crate::clock::now_us()
        }
    }

    /// The reasons that may end a statement of this session, for work outside of statements.
    pub(crate) fn interrupts(&self) -> Interrupts {
        self.interrupts.clone()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // It keeps the turn: no worker ends what is gone.
        self.begin_call();
        if !matches!(self.txn.phase, Phase::None | Phase::Failed) {
            self.rollback();
        }
        self.txn.phase = Phase::None;
        self.txn.drop_temporary();
        self.unlisten_all();
        self.unlock_all_advisory();
        self.engine.session_closed(self.slot.process_id, self.txn.proc);
        self.log_end();
        memory::statement_ended();
    }
}
