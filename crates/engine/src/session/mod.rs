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

mod control;
mod facts;
mod named_statements;
mod open;
mod portal;
pub(crate) mod prepared;

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use crate::activity::{ActivitySlot, SessionInfo, SessionState};
use crate::engine::Engine;
use crate::error::{EngineError, Result, SqlState};
use crate::executor::select::{self, Select, Sink};
use crate::executor::{Execution, Scratch, modify};
use crate::interrupt::{Interrupts, StatementWatch};
use crate::output::{Notice, Output};
use crate::planning_memory::Reservation;
use crate::settings::Settings;
use crate::spill::record::write_row;
use crate::spill::{Sorter, SpillOptions};
use crate::sql::expr::EvalContext;
use crate::sql::plan::{CopyDirection, DefinitionStatement, RowsStatement, Statement};
use crate::sql::{self, ParsedStatement};
pub use crate::transaction::TransactionStatus;
use crate::transaction::{Phase, Transaction};
use crate::value::{DataType, Value};
use crate::{catalog, clock, copy, definition};
use facts::{ChangedSetting, Facts};
pub use portal::Portal;
use portal::PortalRows;
pub use prepared::Prepared;
use prepared::{CachedPlan, StatementMemory, TextCache, View};

/// How far an execution got.
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
    texts: TextCache,
    statements: StatementMemory,
    pub(crate) named: HashMap<String, Arc<Prepared>>,
    scratch: Scratch,
    info: SessionInfo,
    tag: String,
    random: std::cell::Cell<u64>,
    /// Whether the running statement is one of several in a query string: they are one transaction, even where the
    /// first of them has not begun it yet.
    among_others: bool,
    /// Whether the statement that runs next has begun already, when it was parsed: its time counts from there, and a
    /// cancel request that came meanwhile is not forgotten.
    begun: bool,
    /// Settings that functions of the running statement have changed: in force from its end.
    pub(crate) changed: RefCell<Vec<ChangedSetting>>,
}

/// What the caller asks for: whether row descriptions are sent, and how many rows may come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    describe: bool,
    max_rows: u32,
}

impl Session {
    pub(crate) fn new(
        engine: Arc<Engine>,
        slot: Arc<ActivitySlot>,
        txn: Transaction,
        interrupts: Interrupts,
        settings: Settings,
        spill: SpillOptions,
        info: SessionInfo,
    ) -> Session {
        let plans_max = engine.config.plan_cache_entries as usize;
        let seed = u64::from(slot.secret) << 32 | u64::from(slot.process_id) | 1;
        Session {
            engine,
            slot,
            interrupts,
            settings,
            spill,
            txn,
            texts: TextCache::default(),
            statements: StatementMemory::new(plans_max),
            named: HashMap::new(),
            scratch: Scratch::default(),
            info,
            tag: String::new(),
            random: std::cell::Cell::new(seed),
            among_others: false,
            begun: false,
            changed: RefCell::default(),
        }
    }

    /// The number and the secret by which [`Engine::cancel`](crate::Engine::cancel) knows this session.
    pub fn cancel_key(&self) -> (u32, u32) {
        (self.slot.process_id, self.slot.secret)
    }

    /// Says that the calling thread serves this session from now on, so that its waits (for the client, above all)
    /// are shown with the session before it has run a statement.
    pub fn adopt_thread(&self) {
        self.slot.adopt_thread();
    }

    /// Tells, from now on and from statement to statement, whether the running one is to stop.
    pub fn statement_watch(&self) -> StatementWatch {
        StatementWatch::new(self.interrupts.clone())
    }

    /// Runs all statements in `sql`, as one implicit transaction unless they say otherwise.
    pub fn execute_simple(&mut self, sql: &str, out: &mut dyn Output) -> Result<(), EngineError> {
        let request = Request {
            describe: true,
            max_rows: 0,
        };
        self.among_others = false;
        if let Some(prepared) = self.texts.get(sql) {
            return self.run_last(&prepared, request, out);
        }
        let whole: Arc<str> = sql.into();
        self.begin_statement(&whole);
        // Held to the end: the syntax trees of all statements, and the plan of the one that runs.
        let _memory = match self.engine.planning_memory.reserve(sql) {
            Ok(memory) => memory,
            Err(error) => return Err(self.fail(error)),
        };
        let statements = match sql::parse(sql) {
            Ok(statements) => statements,
            Err(error) => return Err(self.fail(error)),
        };
        let count = statements.len();
        if count == 0 {
            self.begun = false;
            self.went_idle();
            return out.empty();
        }
        self.among_others = count > 1;
        for (number, parsed) in statements.into_iter().enumerate() {
            let text = if count == 1 {
                Arc::clone(&whole)
            } else {
                Arc::clone(&parsed.text)
            };
            if number > 0 {
                self.begin_statement(&text);
            }
            let prepared = Arc::new(self.bind(text, Some(parsed), &[], None)?);
            if number + 1 < count {
                self.run(&prepared, &[], request, out, false)?;
            } else {
                self.run_last(&prepared, request, out)?;
            }
            if count == 1 {
                self.texts.offer(&prepared);
            }
        }
        Ok(())
    }

    /// Runs the last statement of a simple query: its implicit transaction is committed before it is complete.
    fn run_last(&mut self, prepared: &Arc<Prepared>, request: Request, out: &mut dyn Output) -> Result<()> {
        self.run(prepared, &[], request, out, true)?;
        self.went_idle();
        Ok(())
    }

    /// Parses and binds one statement (or none: an empty text is a statement that does nothing).
    ///
    /// `param_types` are the client's; `None` or missing ones are inferred.
    pub fn prepare(
        &mut self,
        sql: &str,
        param_types: &[Option<DataType>],
    ) -> Result<Arc<Prepared>, EngineError> {
        let text: Arc<str> = sql.into();
        self.begin_statement(&text);
        let prepared = self.prepare_text(text, param_types);
        self.begun = false;
        prepared
    }

    /// [`prepare`](Self::prepare) as a part of the statement that is running.
    pub(crate) fn prepare_text(
        &mut self,
        text: Arc<str>,
        param_types: &[Option<DataType>],
    ) -> Result<Arc<Prepared>> {
        let sql = &*text;
        self.statements
            .check(sql.len())
            .map_err(|error| self.fail(error))?;
        let memory = match self.engine.planning_memory.reserve(sql) {
            Ok(memory) => memory,
            Err(error) => return Err(self.fail(error)),
        };
        let mut statements = match sql::parse(sql) {
            Ok(statements) => statements,
            Err(error) => return Err(self.fail(error)),
        };
        if statements.len() > 1 {
            return Err(self.fail(EngineError::new(
                SqlState::SYNTAX_ERROR,
                "cannot insert multiple commands into a prepared statement",
            )));
        }
        let statement = statements.pop();
        let prepared = self.bind(text, statement, param_types, memory).map(Arc::new)?;
        match self.statements.add(&prepared) {
            Ok(()) => Ok(prepared),
            Err(error) => Err(self.fail(error)),
        }
    }

    /// A statement begins, as far as clients and limits are concerned: with its text, before it is parsed.
    fn begin_statement(&mut self, text: &Arc<str>) {
        self.slot.begin_statement(text, clock::now_us());
        self.interrupts.begin(self.settings.statement_timeout);
        self.begun = true;
    }

    fn bind(
        &mut self,
        text: Arc<str>,
        parsed: Option<ParsedStatement>,
        types: &[Option<DataType>],
        memory: Option<Reservation>,
    ) -> Result<Prepared> {
        let ends = parsed.as_ref().is_none_or(ParsedStatement::ends_transaction);
        if self.txn.phase == Phase::Failed && !ends {
            self.begun = false;
            self.went_idle();
            return Err(failed_transaction());
        }
        let state = self.txn.catalog_state();
        let view = View {
            state: &state,
            public_on_path: self.settings.public_on_path,
        };
        Prepared::new(text, parsed, types, view, &self.interrupts, memory).map_err(|error| self.fail(error))
    }

    /// Runs a prepared statement; at most `max_rows` rows (0: all) go to `out` before it suspends.
    pub fn execute(
        &mut self,
        statement: &Arc<Prepared>,
        params: &[Value],
        max_rows: u32,
        out: &mut dyn Output,
    ) -> Result<Completion, EngineError> {
        self.among_others = false;
        self.run(
            statement,
            params,
            Request {
                describe: false,
                max_rows,
            },
            out,
            false,
        )
    }

    /// Goes on with a portal: sends at most `max_rows` rows (0: all). 34000 when its transaction has ended.
    pub fn resume(
        &mut self,
        portal: Box<Portal>,
        max_rows: u32,
        out: &mut dyn Output,
    ) -> Result<Completion, EngineError> {
        self.slot.begin_statement(&portal.text, clock::now_us());
        self.interrupts.begin(self.settings.statement_timeout);
        if self.txn.phase == Phase::Failed {
            self.went_idle();
            return Err(failed_transaction());
        }
        if !self.txn.owns(&portal.snapshot) {
            return Err(self.fail(portal::ended_with_its_transaction()));
        }
        match self.resume_inner(portal, max_rows, out) {
            Ok(completion) => Ok(completion),
            Err(error) => Err(self.fail(error)),
        }
    }

    fn resume_inner(
        &mut self,
        mut portal: Box<Portal>,
        max_rows: u32,
        out: &mut dyn Output,
    ) -> Result<Completion> {
        self.interrupts.check()?;
        self.txn.exchange_snapshot(&mut portal.snapshot);
        let Portal { params, rows, .. } = &mut *portal;
        let sent = self.with_execution(params, |execution, _| rows.send(execution, max_rows, out));
        // On an error as well: what is left of the portal is dropped with its own snapshot.
        self.txn.exchange_snapshot(&mut portal.snapshot);
        let (sent, more) = sent?;
        if more {
            self.txn.end_statement();
            return Ok(Completion::Suspended(portal));
        }
        let Portal {
            cached,
            rows,
            snapshot,
            ..
        } = *portal;
        self.with_execution(&[], |execution, _| {
            rows.close(execution);
            Ok(())
        })?;
        // Before the statement ends: the horizon is not held back for a portal that is done.
        drop(snapshot);
        self.txn.end_statement();
        self.set_tag(&cached.plan.statement, Some(sent));
        out.complete(&self.tag)?;
        Ok(Completion::Complete)
    }

    /// The command tag of a statement, with the count of its rows where it has one.
    fn set_tag(&mut self, statement: &Statement, rows: Option<u64>) {
        self.tag.clear();
        self.tag.push_str(statement.tag());
        match rows.filter(|_| !matches!(statement, Statement::Rows(RowsStatement::Explain(_)))) {
            None => {}
            // The usual counts. Formatting is for any number, and costs some 300 instructions more.
            Some(digit @ 0..=9) => {
                self.tag.push(' ');
                self.tag.push(char::from(b'0' + digit as u8));
            }
            Some(rows) => {
                let _ = write!(self.tag, " {rows}");
            }
        }
    }

    /// Ends the implicit transaction, if one is open: commits it.
    pub fn sync(&mut self) -> Result<(), EngineError> {
        let result = if self.txn.phase == Phase::Implicit {
            self.commit(&mut crate::output::Discard::default())
        } else {
            Ok(())
        };
        self.went_idle();
        result
    }

    /// What ReadyForQuery reports.
    pub fn transaction_status(&self) -> TransactionStatus {
        self.txn.status()
    }

    /// How long the client may be silent now, and the error for a client that is silent for longer.
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
            out.notice(notice)?;
        }
        Ok(())
    }

    /// The value of a setting, as SHOW gives it.
    pub fn setting(&self, name: &str) -> Option<String> {
        self.settings.show(name).ok()
    }

    /// The settings a client is told at the start, and again when they change (ParameterStatus).
    pub fn reported_settings(&self) -> Vec<(&'static str, String)> {
        self.settings.reported()
    }

    /// Publishes that the session waits for its client.
    fn went_idle(&mut self) {
        let state = match self.txn.phase {
            Phase::None | Phase::Implicit => SessionState::Idle,
            Phase::Block => SessionState::IdleInTransaction,
            Phase::Failed => SessionState::IdleInFailedTransaction,
        };
        self.slot.set_state(state, clock::now_us());
    }

    /// An error that the session has not met itself, such as a parameter that cannot be read, ends its transaction as
    /// any other does.
    pub fn fail_transaction(&mut self) {
        self.end_failed();
    }

    /// After an error: rolls back an implicit transaction, fails an explicit one. Gives the error back.
    fn fail(&mut self, error: EngineError) -> EngineError {
        self.end_failed();
        error
    }

    fn end_failed(&mut self) {
        self.begun = false;
        match self.txn.phase {
            Phase::None | Phase::Failed => {}
            Phase::Implicit => self.rollback(),
            Phase::Block => {
                self.rollback();
                self.txn.phase = Phase::Failed;
            }
        }
        self.went_idle();
    }

    pub(crate) fn rollback(&mut self) {
        self.txn.rollback();
        self.settings.end_transaction(false);
        let name = self.settings.value("application_name").unwrap_or_default();
        self.slot.set_application_name(name);
    }

    pub(crate) fn commit(&mut self, out: &mut dyn Output) -> Result<()> {
        let committed = self.txn.commit(self.settings.synchronous_commit);
        for name in self.settings.end_transaction(committed.is_ok()) {
            self.report(name, out)?;
        }
        committed
    }

    /// Tells the client and the activity view of a setting's new value.
    pub(crate) fn report(&mut self, name: &str, out: &mut dyn Output) -> Result<()> {
        let value = self.settings.value(name).unwrap_or_default().to_owned();
        if name == "application_name" {
            self.slot.set_application_name(&value);
        }
        match Settings::shown_name(name) {
            "" => Ok(()),
            shown => out.parameter_status(shown, &value),
        }
    }

    pub(crate) fn begin(&mut self, phase: Phase) {
        let (isolation, read_only) = (self.settings.default_isolation, self.settings.default_read_only);
        self.txn.begin(phase, isolation, read_only, clock::now_us());
    }

    /// Runs one statement from its start to its tag, and after an error cleans up.
    fn run(
        &mut self,
        prepared: &Arc<Prepared>,
        params: &[Value],
        request: Request,
        out: &mut dyn Output,
        last: bool,
    ) -> Result<Completion> {
        if !std::mem::take(&mut self.begun) {
            self.slot.begin_statement(&prepared.text, clock::now_us());
            self.interrupts.begin(self.settings.statement_timeout);
        }
        if self.txn.phase == Phase::Failed && !prepared.fits_failed_transaction {
            self.went_idle();
            return Err(failed_transaction());
        }
        self.changed.get_mut().clear();
        let result = self
            .run_inner(prepared, params, request, out, last)
            .and_then(|completion| self.apply_changed(out).map(|()| completion));
        result.map_err(|error| self.fail(error))
    }

    fn run_inner(
        &mut self,
        prepared: &Arc<Prepared>,
        params: &[Value],
        request: Request,
        out: &mut dyn Output,
        last: bool,
    ) -> Result<Completion> {
        if params.len() != prepared.param_types().len() {
            return Err(EngineError::new(
                SqlState::PROTOCOL_VIOLATION,
                format!(
                    "bind message supplies {} parameters, but prepared statement requires {}",
                    params.len(),
                    prepared.param_types().len()
                ),
            ));
        }
        let mut cached = self.current_plan(prepared)?;
        self.interrupts.check()?;
        self.check_outside_transaction(&cached.plan.statement)?;
        if !matches!(cached.plan.statement, Statement::Control(_)) {
            if self.txn.phase == Phase::None {
                self.begin(Phase::Implicit);
            }
            cached = self.lock_tables(prepared, cached)?;
        }
        let ran = match &cached.plan.statement {
            Statement::Control(statement) => {
                let columns = cached.plan.columns.as_deref().filter(|_| request.describe);
                self.run_control(statement, columns, request, out)?;
                if last && self.txn.phase == Phase::Implicit {
                    self.commit(out)?;
                }
                return Ok(Completion::Complete);
            }
            Statement::Definition(statement) => self.run_definition(&cached, statement, out)?,
            Statement::Rows(statement) => self.run_rows(&cached, statement, params, request, out)?,
        };
        let rows = match ran {
            Ran::Complete(rows) => rows,
            Ran::Suspended(rows) => {
                let portal = Portal {
                    text: Arc::clone(&prepared.text),
                    cached,
                    params: params.to_vec(),
                    rows: *rows,
                    snapshot: self.txn.portal_snapshot(),
                };
                self.txn.end_statement();
                return Ok(Completion::Suspended(Box::new(portal)));
            }
        };
        self.txn.end_statement();
        self.set_tag(&cached.plan.statement, rows);
        if last && self.txn.phase == Phase::Implicit {
            self.commit(out)?;
        }
        out.complete(&self.tag)?;
        Ok(Completion::Complete)
    }

    /// 25001 for a statement that cannot be part of a transaction, where there is one: a block, a query string of
    /// several statements, or a pipeline up to its Sync.
    ///
    /// VACUUM, for one, takes its locks as a session of its own. It would wait for the locks of the transaction it
    /// stands in, which goes on when VACUUM is done.
    fn check_outside_transaction(&self, statement: &Statement) -> Result<()> {
        match statement.outside_transactions_only() {
            Some(name) if self.among_others || self.txn.phase != Phase::None => Err(EngineError::new(
                SqlState::ACTIVE_SQL_TRANSACTION,
                format!("{name} cannot run inside a transaction block"),
            )),
            _ => Ok(()),
        }
    }

    pub(crate) fn current_plan(&mut self, prepared: &Arc<Prepared>) -> Result<Arc<CachedPlan>> {
        let (plan, is_first) = prepared.plan(
            self.txn.catalog_version(),
            self.settings.public_on_path,
            || self.txn.catalog_state(),
            &self.interrupts,
            &self.engine.planning_memory,
        )?;
        if is_first {
            self.statements.planned(prepared);
        } else {
            self.statements.used(prepared);
        }
        Ok(plan)
    }

    /// Takes the statement's table locks, and plans anew until no definition has changed since planning.
    fn lock_tables(
        &mut self,
        prepared: &Arc<Prepared>,
        mut cached: Arc<CachedPlan>,
    ) -> Result<Arc<CachedPlan>> {
        loop {
            for table in &cached.uses {
                self.txn.lock_relation(
                    table.oid,
                    table.mode,
                    &self.interrupts,
                    self.settings.lock_timeout,
                )?;
            }
            if cached.version == self.txn.catalog_version() {
                break;
            }
            cached = self.current_plan(prepared)?;
        }
        Ok(cached)
    }

    /// 25006 for a statement that writes, in a read-only transaction.
    fn check_writable(&self, tag: &str) -> Result<()> {
        if !self.txn.read_only {
            return Ok(());
        }
        Err(EngineError::new(
            SqlState::READ_ONLY_SQL_TRANSACTION,
            format!(
                "cannot execute {} in a read-only transaction",
                tag.trim_end_matches(" 0")
            ),
        ))
    }

    /// Runs a statement that changes definitions.
    fn run_definition(
        &mut self,
        cached: &CachedPlan,
        statement: &DefinitionStatement,
        out: &mut dyn Output,
    ) -> Result<Ran> {
        self.check_writable(statement.tag())?;
        self.txn
            .take_snapshot_for(&cached.uses, &self.interrupts, self.settings.lock_timeout)?;
        let outcome = self.with_execution(&[], |execution, engine| {
            definition::run(execution, &engine.catalog, statement)
        })?;
        for notice in &outcome.notices {
            self.notice(notice, out)?;
        }
        Ok(Ran::Complete(None))
    }

    /// Runs a statement that reads or writes rows.
    fn run_rows(
        &mut self,
        cached: &CachedPlan,
        statement: &RowsStatement,
        params: &[Value],
        request: Request,
        out: &mut dyn Output,
    ) -> Result<Ran> {
        if statement.writes() {
            self.check_writable(statement.tag())?;
        }
        self.txn
            .take_snapshot_for(&cached.uses, &self.interrupts, self.settings.lock_timeout)?;
        if request.describe
            && let Some(columns) = &cached.plan.columns
        {
            out.row_description(columns)?;
        }
        // A statement without columns sends no rows, so a limit on them does not concern it.
        let max_rows = match cached.plan.columns {
            Some(_) => request.max_rows,
            None => 0,
        };
        self.with_execution(params, |execution, _| match statement {
            RowsStatement::Select(plan) => {
                let rows = Select::open(execution, plan)?;
                if max_rows > 0 {
                    let rows = PortalRows::Select {
                        plan: Arc::clone(plan),
                        select: Box::new(rows),
                    };
                    return send_first(execution, rows, max_rows, out);
                }
                let count = select::send(execution, plan, rows, &mut |_, row| out.row(row))?;
                Ok(Ran::Complete(Some(count)))
            }
            RowsStatement::Copy(plan) => match plan.direction {
                CopyDirection::FromStdin => copy::copy_in(execution, plan, out),
                CopyDirection::ToStdout => copy::copy_out(execution, plan, out),
            }
            .map(|count| Ran::Complete(Some(count))),
            RowsStatement::Insert(plan) => run_to_end(execution, max_rows, out, &|execution, sink| {
                modify::insert(execution, plan, sink)
            }),
            RowsStatement::Update(plan) => run_to_end(execution, max_rows, out, &|execution, sink| {
                modify::update(execution, plan, sink)
            }),
            RowsStatement::Delete(plan) => run_to_end(execution, max_rows, out, &|execution, sink| {
                modify::delete(execution, plan, sink)
            }),
            RowsStatement::Canned(canned) => run_to_end(execution, max_rows, out, &|execution, sink| {
                for row in &canned.rows {
                    sink(execution, row)?;
                }
                Ok(canned.rows.len() as u64)
            }),
            RowsStatement::Explain(lines) => run_to_end(execution, max_rows, out, &|execution, sink| {
                for line in lines {
                    sink(execution, &[Value::text(line.as_str())])?;
                }
                Ok(lines.len() as u64)
            }),
        })
    }

    /// Calls `work` with what a statement of this session runs with.
    fn with_execution<T>(
        &mut self,
        params: &[Value],
        work: impl FnOnce(&mut Execution<'_>, &Engine) -> Result<T>,
    ) -> Result<T> {
        self.spill.bytes_max = self.settings.work_mem;
        let facts = Facts::new(
            &self.engine,
            &self.settings,
            &self.slot,
            &self.info,
            self.txn.start_us(),
            self.txn.overlay(),
            &self.random,
            &self.interrupts,
            &self.changed,
        );
        let (engine, settings) = (&self.engine, &self.settings);
        let virtual_rows = |name: &str| {
            let sources = catalog::virtual_tables::Sources {
                activity: &|| engine.activity(),
                catalog: &engine.catalog.state(),
                settings,
            };
            catalog::virtual_tables::rows(name, &sources)
        };
        let mut execution = Execution {
            storage: &self.engine.storage,
            txn: &mut self.txn,
            eval: EvalContext::new(params, &facts),
            interrupts: &self.interrupts,
            lock_timeout: self.settings.lock_timeout,
            virtual_rows: &virtual_rows,
            spill: &self.spill,
            maintenance_bytes: self.settings.maintenance_work_mem,
            scratch: &mut self.scratch,
            ticks: 0,
        };
        work(&mut execution, engine)
    }

    /// Runs an SQL-level EXECUTE.
    pub(crate) fn run_named(
        &mut self,
        prepared: &Arc<Prepared>,
        params: &[Value],
        request: Request,
        out: &mut dyn Output,
    ) -> Result<()> {
        let request = Request {
            max_rows: 0,
            ..request
        };
        self.run_inner(prepared, params, request, out, false).map(|_| ())
    }

    /// What `now` means in a value that a client sends: when the open transaction began, or this moment if
    /// none is open.
    pub fn transaction_timestamp(&self) -> i64 {
        if self.txn.is_open() {
            self.txn.start_us()
        } else {
            crate::clock::now_us()
        }
    }

    /// A context for evaluating expressions outside of a row statement.
    pub(crate) fn evaluate(&self, expr: &sql::Expr) -> Result<Value> {
        let facts = Facts::new(
            &self.engine,
            &self.settings,
            &self.slot,
            &self.info,
            self.txn.start_us(),
            self.txn.overlay(),
            &self.random,
            &self.interrupts,
            &self.changed,
        );
        expr.eval(&[], &EvalContext::new(&[], &facts))
    }

    /// What may end a statement of this session, for work outside of statements.
    pub(crate) fn interrupts(&self) -> Interrupts {
        self.interrupts.clone()
    }

    /// Forgets the plans of the simple protocol.
    pub(crate) fn forget_texts(&mut self) {
        self.texts.clear();
    }
}

/// How far a plan got.
enum Ran {
    /// To its end; the count for its tag, if its tag has one.
    Complete(Option<u64>),
    /// To its row limit. Boxed: what a point SELECT has no use for is not to be moved with its count.
    Suspended(Box<PortalRows>),
}

/// Sends the first rows of a portal.
fn send_first(
    execution: &mut Execution<'_>,
    mut rows: PortalRows,
    max_rows: u32,
    out: &mut dyn Output,
) -> Result<Ran> {
    let (sent, more) = rows.send(execution, max_rows, out)?;
    if more {
        return Ok(Ran::Suspended(Box::new(rows)));
    }
    rows.close(execution);
    Ok(Ran::Complete(Some(sent)))
}

/// What gives a statement's rows to a sink; their number, or that of the rows changed.
type Work<'w> = &'w dyn Fn(&mut Execution<'_>, &mut Sink<'_>) -> Result<u64>;

/// Runs a statement that does its work whether its rows are wanted or not. With a limit the rows are held, and the first
/// of them sent.
fn run_to_end(
    execution: &mut Execution<'_>,
    max_rows: u32,
    out: &mut dyn Output,
    work: Work<'_>,
) -> Result<Ran> {
    if max_rows == 0 {
        let count = work(execution, &mut |_, row| out.row(row))?;
        return Ok(Ran::Complete(Some(count)));
    }
    // Equal keys keep the order in which they came: the sorter is a queue that spills.
    let mut held = Sorter::new(execution.spill);
    let mut bytes = Vec::new();
    work(execution, &mut |execution, row| {
        bytes.clear();
        write_row(row, &mut bytes);
        held.push(&[], &bytes, execution.interrupts)
    })?;
    let rows = PortalRows::held(held.finish(execution.interrupts)?);
    send_first(execution, rows, max_rows, out)
}

/// 25P02.
fn failed_transaction() -> EngineError {
    EngineError::new(
        SqlState::IN_FAILED_SQL_TRANSACTION,
        "current transaction is aborted, commands ignored until end of transaction block",
    )
}

impl Drop for Session {
    fn drop(&mut self) {
        if !matches!(self.txn.phase, Phase::None | Phase::Failed) {
            self.rollback();
        }
        self.txn.phase = Phase::None;
        self.engine.session_closed(self.slot.process_id, self.txn.proc);
    }
}
