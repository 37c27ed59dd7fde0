//! One client's conversation with the engine.
//!
//! | protocol message | call |
//! | --- | --- |
//! | Query | [`Session::execute_simple`] |
//! | Parse | [`Session::prepare`] |
//! | Describe | [`Prepared::param_types`], [`Prepared::columns`] |
//! | Execute | [`Session::execute`], then [`Session::resume`] for a suspended portal |
//! | Sync | [`Session::sync`] |
//! | ReadyForQuery | [`Session::transaction_status`] |
//!
//! Outside a transaction block, what is executed up to the next `sync` is one implicit transaction. An error aborts
//! an implicit transaction at once and puts an explicit one into the failed state. COPY runs inside `execute` or
//! `execute_simple`, which pull the data through [`Output::copy_in_read`].
//!
//! A dropped session rolls its transaction back and frees its locks.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;

use crate::activity::{ActivitySlot, SessionInfo, SessionState};
use crate::engine::Engine;
use crate::error::{EngineError, Result, SqlState};
use crate::executor::{Execution, Scratch, modify, select};
use crate::facts::Facts;
use crate::interrupt::Interrupts;
use crate::output::Output;
pub use crate::prepared::Prepared;
use crate::prepared::{CachedPlan, TextCache};
use crate::settings::Settings;
use crate::sql::expr::EvalContext;
use crate::sql::plan::{CopyDirection, Statement};
use crate::sql::{self, ParsedStatement};
use crate::transaction::{Phase, Transaction};
use crate::value::{DataType, Value};
use crate::{catalog, clock, copy, ddl};

/// What ReadyForQuery reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionStatus {
    /// Not in a transaction block.
    Idle,
    /// In one.
    InTransaction,
    /// In one that has failed: only its end is accepted.
    Failed,
}

/// How far an execution got.
#[derive(Debug)]
pub enum Completion {
    /// Done; `Output::complete` (or `empty`) has been called.
    Complete,
    /// The row limit was reached and there may be more.
    Suspended(Portal),
}

/// The rows of a suspended execution; gone with its transaction.
#[derive(Debug)]
pub struct Portal {
    rows: VecDeque<Vec<Value>>,
    tag: String,
}

/// One client's conversation with the engine; see the [module](self).
#[derive(Debug)]
pub struct Session {
    pub(crate) engine: Arc<Engine>,
    slot: Arc<ActivitySlot>,
    pub(crate) interrupts: Interrupts,
    pub(crate) settings: Settings,
    pub(crate) txn: Transaction,
    texts: TextCache,
    pub(crate) named: HashMap<String, Arc<Prepared>>,
    scratch: Scratch,
    info: SessionInfo,
    tag: String,
    random: std::cell::Cell<u64>,
}

/// Who asks: decides whether row descriptions are sent and how many rows may come.
#[derive(Debug, Clone, Copy)]
struct Request {
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
        info: SessionInfo,
    ) -> Session {
        let seed = u64::from(slot.secret) << 32 | u64::from(slot.process_id) | 1;
        Session {
            engine,
            slot,
            interrupts,
            settings,
            txn,
            texts: TextCache::default(),
            named: HashMap::new(),
            scratch: Scratch::default(),
            info,
            tag: String::new(),
            random: std::cell::Cell::new(seed),
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

    /// Runs all statements in `sql`, as one implicit transaction unless they say otherwise.
    pub fn execute_simple(&mut self, sql: &str, out: &mut dyn Output) -> Result<(), EngineError> {
        let request = Request {
            describe: true,
            max_rows: 0,
        };
        if let Some(prepared) = self.texts.get(sql) {
            return self.run_last(&prepared, request, out);
        }
        let statements = match sql::parse(sql) {
            Ok(statements) => statements,
            Err(error) => return Err(self.fail(error)),
        };
        let count = statements.len();
        if count == 0 {
            return out.empty();
        }
        for (number, parsed) in statements.into_iter().enumerate() {
            let text: Arc<str> = if count == 1 {
                sql.into()
            } else {
                Arc::clone(&parsed.text)
            };
            let prepared = Arc::new(self.bind(text, Some(parsed), &[])?);
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
        self.bind(sql.into(), statements.pop(), param_types).map(Arc::new)
    }

    fn bind(
        &mut self,
        text: Arc<str>,
        parsed: Option<ParsedStatement>,
        types: &[Option<DataType>],
    ) -> Result<Prepared> {
        let ends = parsed.as_ref().is_none_or(ParsedStatement::ends_transaction);
        if self.txn.phase == Phase::Failed && !ends {
            return Err(failed_transaction());
        }
        let state = self.txn.catalog_state();
        Prepared::new(text, parsed, types, &state).map_err(|error| self.fail(error))
    }

    /// Runs a prepared statement; at most `max_rows` rows (0: all) go to `out` before it suspends.
    pub fn execute(
        &mut self,
        statement: &Arc<Prepared>,
        params: &[Value],
        max_rows: u32,
        out: &mut dyn Output,
    ) -> Result<Completion, EngineError> {
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

    /// Sends the next `max_rows` rows (0: all) of a suspended execution.
    pub fn resume(
        &mut self,
        mut portal: Portal,
        max_rows: u32,
        out: &mut dyn Output,
    ) -> Result<Completion, EngineError> {
        let most = if max_rows == 0 {
            usize::MAX
        } else {
            max_rows as usize
        };
        let mut sent = 0;
        while sent < most {
            let Some(row) = portal.rows.pop_front() else { break };
            out.row(&row)?;
            sent += 1;
        }
        if sent == most {
            return Ok(Completion::Suspended(portal));
        }
        let tag = match portal.tag.rsplit_once(' ') {
            Some((command, _)) => format!("{command} {sent}"),
            None => portal.tag,
        };
        out.complete(&tag)?;
        Ok(Completion::Complete)
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

    /// After an error: rolls back an implicit transaction, fails an explicit one. Gives the error back.
    fn fail(&mut self, error: EngineError) -> EngineError {
        match self.txn.phase {
            Phase::None | Phase::Failed => {}
            Phase::Implicit => self.rollback(),
            Phase::Block => {
                self.rollback();
                self.txn.phase = Phase::Failed;
            }
        }
        self.went_idle();
        error
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
        let now = clock::now_us();
        self.slot.begin_statement(&prepared.text, now);
        self.interrupts.begin(self.settings.statement_timeout);
        if self.txn.phase == Phase::Failed {
            let statement = &prepared.last_plan().plan.statement;
            if !statement.ends_transaction() && !matches!(statement, Statement::Empty) {
                self.went_idle();
                return Err(failed_transaction());
            }
        }
        match self.run_inner(prepared, params, request, out, last) {
            Ok(completion) => Ok(completion),
            Err(error) => Err(self.fail(error)),
        }
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
        let cached = self.current_plan(prepared)?;
        self.interrupts.check()?;
        if self.run_control(
            &cached.plan.statement,
            request.describe,
            cached.plan.columns.as_deref(),
            out,
        )? {
            if last && self.txn.phase == Phase::Implicit {
                self.commit(out)?;
            }
            return Ok(Completion::Complete);
        }
        if self.txn.phase == Phase::None {
            self.begin(Phase::Implicit);
        }
        let cached = self.lock_tables(prepared, cached)?;
        let mut held_back = VecDeque::new();
        let rows = self.run_plan(&cached, params, request, &mut held_back, out)?;
        self.txn.end_statement();
        self.tag.clear();
        let command = cached.plan.statement.tag();
        let _ = match rows {
            Some(rows) => write!(self.tag, "{command} {rows}"),
            None => write!(self.tag, "{command}"),
        };
        if request.max_rows > 0 && !held_back.is_empty() {
            let portal = Portal {
                rows: held_back,
                tag: self.tag.clone(),
            };
            return self.resume(portal, request.max_rows, out);
        }
        if last && self.txn.phase == Phase::Implicit {
            self.commit(out)?;
        }
        out.complete(&self.tag)?;
        Ok(Completion::Complete)
    }

    fn current_plan(&self, prepared: &Prepared) -> Result<Arc<CachedPlan>> {
        prepared.plan(self.txn.catalog_version(), || self.txn.catalog_state())
    }

    /// Takes the statement's table locks, and plans anew until no definition has changed since planning.
    fn lock_tables(&mut self, prepared: &Prepared, mut cached: Arc<CachedPlan>) -> Result<Arc<CachedPlan>> {
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
        for table in &cached.uses {
            self.txn.check_definition_age(table.changed, &table.name)?;
        }
        Ok(cached)
    }

    /// Runs a statement that works on rows or definitions; the count for its tag, if its tag has one.
    fn run_plan(
        &mut self,
        cached: &CachedPlan,
        params: &[Value],
        request: Request,
        held_back: &mut VecDeque<Vec<Value>>,
        out: &mut dyn Output,
    ) -> Result<Option<u64>> {
        let statement = &cached.plan.statement;
        if self.txn.read_only && statement.writes() {
            return Err(EngineError::new(
                SqlState::READ_ONLY_SQL_TRANSACTION,
                format!(
                    "cannot execute {} in a read-only transaction",
                    statement.tag().trim_end_matches(" 0")
                ),
            ));
        }
        self.txn.take_snapshot();
        let facts = Facts::new(
            &self.engine,
            &self.settings,
            &self.slot,
            &self.info,
            self.txn.start_us(),
            self.txn.overlay(),
            &self.random,
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
            scratch: &mut self.scratch,
            ticks: 0,
        };
        if request.describe
            && let Some(columns) = &cached.plan.columns
        {
            out.row_description(columns)?;
        }
        let execution = &mut execution;
        match statement {
            Statement::Copy(plan) => match plan.direction {
                CopyDirection::FromStdin => return copy::copy_in(execution, plan, out).map(Some),
                CopyDirection::ToStdout => return copy::copy_out(execution, plan, out).map(Some),
            },
            Statement::Select(_)
            | Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Canned(_)
            | Statement::Explain(_) => {}
            _ => {
                let outcome = ddl::run(execution, &self.engine.catalog, statement)?;
                for notice in &outcome.notices {
                    out.notice(notice)?;
                }
                return Ok(None);
            }
        }
        let mut sink = |_: &mut Execution<'_>, row: &[Value]| {
            if request.max_rows > 0 {
                held_back.push_back(row.to_vec());
                Ok(())
            } else {
                out.row(row)
            }
        };
        match statement {
            Statement::Select(plan) => select::run(execution, plan, &mut sink).map(Some),
            Statement::Insert(plan) => modify::insert(execution, plan, &mut sink).map(Some),
            Statement::Update(plan) => modify::update(execution, plan, &mut sink).map(Some),
            Statement::Delete(plan) => modify::delete(execution, plan, &mut sink).map(Some),
            Statement::Canned(canned) => {
                for row in &canned.rows {
                    sink(execution, row)?;
                }
                Ok(Some(canned.rows.len() as u64))
            }
            Statement::Explain(lines) => {
                for line in lines {
                    sink(execution, &[Value::text(line.as_str())])?;
                }
                Ok(None)
            }
            _ => unreachable!("handled above"),
        }
    }

    /// Runs an SQL-level EXECUTE.
    pub(crate) fn run_named(
        &mut self,
        prepared: &Arc<Prepared>,
        params: &[Value],
        describe: bool,
        out: &mut dyn Output,
    ) -> Result<()> {
        self.run_inner(
            prepared,
            params,
            Request {
                describe,
                max_rows: 0,
            },
            out,
            false,
        )
        .map(|_| ())
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
