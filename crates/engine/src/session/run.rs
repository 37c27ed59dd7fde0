//! Running a statement: one dispatch over its kinds, from its plan to its tag.
//!
//! | kind | run by | before |
//! | --- | --- | --- |
//! | control | `control`: the session itself | |
//! | definition | `definition` | an implicit transaction, locks, a snapshot |
//! | definition of an index, CONCURRENTLY | `concurrent_index`, in several transactions | the same |
//! | rows | `executor`, `copy` | the same |

use std::sync::Arc;

use crate::engine::Engine;
use crate::executor::select::{self, Select, Sink};
use crate::executor::subquery::SubqueryResults;
use crate::executor::{Execution, InnerPlans, measured_statement, modify, modify_merge};
use crate::logging::LogStatement;
use crate::output::Output;
use crate::session::concurrent_index::in_steps;
use crate::session::expression_session::{Facts, SessionLocks};
use crate::session::named_output::NamedOutput;
use crate::session::named_statements::listed;
use crate::session::portal::{Portal, PortalRows};
use crate::session::prepared::{CachedPlan, Prepared, View, Viewer};
use crate::session::{Completion, Session};
use crate::settings::Settings;
use crate::spill::Sorter;
use crate::spill::record::write_row;
use crate::transaction::Phase;
use crate::{catalog, clock, copy, definition};
use clearway_sql as sql;
use clearway_sql::TableDef;
use clearway_sql::context::EvalContext;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::explain::StatementCounters;
use clearway_sql::explained::{Counter, PlanTree};
use clearway_sql::plan::{
    ControlStatement, CopyDirection, DefinitionStatement, Plan, RowsStatement, Statement, TableLockMode,
};
use clearway_sql::value::Value;
use clearway_sql::value::text::FloatDigits;

/// The caller's request: if row descriptions are sent, and how many rows may come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    pub(super) describe: bool,
    pub(super) max_rows: u32,
}

impl Session {
    /// Runs a prepared statement; at most `max_rows` rows (0: all) go to `out` before it suspends.
    pub fn execute(
        &mut self,
        statement: &Arc<Prepared>,
        params: &[Value],
        max_rows: u32,
        out: &mut dyn Output,
    ) -> Result<Completion, EngineError> {
        self.begin_call();
        self.tell_settings(out)?;
        self.among_others = false;
        let request = Request {
            describe: false,
            max_rows,
        };
        let completion = self.run(statement, params, request, out, false);
        self.end_call();
        completion
    }

    /// Runs one statement from its start to its tag, and after an error cleans up.
    pub(super) fn run(
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
            self.txn.set_deadlock_timeout(&self.settings);
        }
        if let Some(refusal) = self.refusal(prepared.fits_failed_transaction) {
            self.went_idle();
            return Err(refusal);
        }
        self.changed.get_mut().clear();
        self.warnings.get_mut().clear();
        let meter = self
            .settings
            .counts_statements
            .then(|| self.begin_counts(prepared));
        let result = self
            .tell_of_promotion(out)
            .and_then(|()| self.run_inner(prepared, params, request, out, last))
            .and_then(|completion| self.apply_changed(out).map(|()| completion));
        match result {
            Ok(completion) => {
                self.end_answer(last)?;
                self.slot.counts.statement_ended();
                if let Some(meter) = &meter {
                    self.end_counts(prepared, meter);
                }
                if self.settings.log_min_duration.is_some() {
                    self.time_statement(&prepared.text);
                }
                Ok(completion)
            }
            Err(error) => {
                self.end_times();
                Err(self.fail(error))
            }
        }
    }

    pub(super) fn run_inner(
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
        self.refresh_identity();
        let mut cached = self.current_plan(prepared)?;
        if self.settings.log_statement != LogStatement::None {
            self.log_statement(prepared, &cached.plan.statement);
        }
        self.txn
            .begin_answer(cached.traits.answers_with_rows, &self.settings);
        // What ends a transaction gives up what it holds, which is all that a cancel can achieve.
        if !prepared.fits_failed_transaction {
            self.interrupts.check()?;
        }
        self.check_outside_transaction(&cached)?;
        let locks = match &cached.plan.statement {
            Statement::Control(ControlStatement::Lock { mode, .. }) => {
                self.check_lock_table(*mode)?;
                true
            }
            Statement::Control(ControlStatement::Declare(declare)) => {
                self.check_declare(&declare.name, declare.hold)?;
                true
            }
            Statement::Control(_) => false,
            _ => true,
        };
        if locks {
            if self.txn.phase == Phase::None {
                self.begin(Phase::Implicit);
            }
            self.check_writable(&cached.plan)?;
            self.check_before_locks(&cached)?;
            cached = self.lock_tables(prepared, cached)?;
        }
        self.check_access(&cached)?;
        if let Statement::Control(statement) = &cached.plan.statement {
            self.check_control(statement)?;
        }
        if let Some(statement) = in_steps(&cached.plan.statement) {
            self.run_in_steps(&cached, statement, out)?;
            self.set_tag(&cached, None);
            if last && self.txn.phase == Phase::Implicit {
                self.commit(out)?;
            }
            out.complete(self.tag.as_str())?;
            return Ok(Completion::Complete);
        }
        let ran = match &cached.plan.statement {
            Statement::Control(ControlStatement::Declare(declare)) => {
                self.declare(&prepared.text, &cached, declare, params)?;
                PlanProgress::Complete(None)
            }
            Statement::Control(ControlStatement::Fetch(fetch)) => {
                PlanProgress::Complete(Some(self.fetch(fetch, request.describe, out)?))
            }
            Statement::Control(
                statement @ (ControlStatement::Listen(_)
                | ControlStatement::Unlisten(_)
                | ControlStatement::Notify { .. }),
            ) => {
                self.run_about_notifications(statement)?;
                PlanProgress::Complete(None)
            }
            Statement::Control(statement) => {
                let columns = cached.plan.columns.as_deref().filter(|_| request.describe);
                self.run_control(statement, columns, request, out)?;
                if last && self.txn.phase == Phase::Implicit {
                    self.commit(out)?;
                }
                return Ok(Completion::Complete);
            }
            Statement::Definition(statement) => self.run_definition(&cached, statement, params, out)?,
            Statement::Rows(statement) => match self.settings.auto_explain.least {
                None => self.run_rows(&cached, statement, params, request, None, out)?,
                Some(least) => {
                    let told = (&*cached, &prepared.text);
                    self.run_rows_and_tell(told, statement, params, request, least, out)?
                }
            },
        };
        let rows = match ran {
            PlanProgress::Complete(rows) => rows,
            PlanProgress::Suspended(rows, results) => {
                let portal = Portal {
                    results,
                    text: Arc::clone(&prepared.text),
                    prepared: Some(Arc::clone(prepared)),
                    cached,
                    params: params.to_vec(),
                    rows: *rows,
                    snapshot: self.txn.portal_snapshot(),
                };
                self.slot.counts.rows_told(u64::from(request.max_rows));
                self.txn.end_statement();
                return Ok(Completion::Suspended(Box::new(portal)));
            }
        };
        self.txn.end_statement();
        self.tell_warnings(out)?;
        self.set_tag(&cached, rows);
        if last && self.txn.phase == Phase::Implicit {
            self.commit(out)?;
        }
        out.complete(self.tag.as_str())?;
        Ok(Completion::Complete)
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

    /// 25001 for a statement that cannot be part of a transaction, where there is one: a block, a query string of
    /// several statements, or a pipeline up to its Sync.
    ///
    /// VACUUM, for one, takes its locks as a session of its own. It would wait for the locks of the transaction around
    /// it, which goes on when VACUUM is done.
    fn check_outside_transaction(&self, cached: &CachedPlan) -> Result<()> {
        match cached.traits.outside_only {
            Some(name) if self.among_others || self.txn.phase != Phase::None => Err(EngineError::new(
                SqlState::ACTIVE_SQL_TRANSACTION,
                format!("{name} cannot run inside a transaction block"),
            )),
            _ => Ok(()),
        }
    }

    /// 25P01 for LOCK TABLE where the lock would end with the statement, and 25006 for a mode that a standby has not.
    fn check_lock_table(&self, mode: TableLockMode) -> Result<()> {
        if !self.among_others && self.txn.phase == Phase::None {
            return Err(EngineError::new(
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "LOCK TABLE can only be used in transaction blocks",
            ));
        }
        match mode {
            TableLockMode::AccessShare | TableLockMode::RowShare | TableLockMode::RowExclusive => Ok(()),
            _ => self.check_not_in_recovery("LOCK TABLE"),
        }
    }

    /// 25006 for a statement that writes, in a read-only transaction; before it locks anything.
    #[inline]
    fn check_writable(&self, plan: &Plan) -> Result<()> {
        if !self.txn.read_only {
            return Ok(());
        }
        match plan.written_name() {
            None => Ok(()),
            Some(name) => Err(EngineError::new(
                SqlState::READ_ONLY_SQL_TRANSACTION,
                format!("cannot execute {name} in a read-only transaction"),
            )),
        }
    }

    /// 25006 for a statement that a standby cannot run, although it is allowed in a read-only transaction.
    pub(super) fn check_not_in_recovery(&self, name: &str) -> Result<()> {
        if !self.engine.is_standby() {
            return Ok(());
        }
        Err(EngineError::new(
            SqlState::READ_ONLY_SQL_TRANSACTION,
            format!("cannot execute {name} during recovery"),
        ))
    }

    /// Runs a statement that changes definitions.
    fn run_definition(
        &mut self,
        cached: &CachedPlan,
        statement: &DefinitionStatement,
        params: &[Value],
        out: &mut dyn Output,
    ) -> Result<PlanProgress> {
        cached.plan.check()?;
        self.txn
            .take_snapshot_for(&cached.uses, &self.interrupts, self.settings.lock_timeout)?;
        let mut results = SubqueryResults::default();
        let inner = InnerPlans::of(&cached.plan);
        let outcome = self.with_execution(params, inner, &mut results, |execution, engine| {
            definition::run(execution, &engine.catalog, statement)
        })?;
        for key in &outcome.to_validate {
            self.validate_reference(*key)?;
        }
        for notice in &outcome.notices {
            self.notice(notice, out)?;
        }
        if let (DefinitionStatement::CreateSchema { elements, .. }, Some(schema)) =
            (statement, &outcome.schema)
            && !elements.is_empty()
        {
            self.run_schema_elements(schema, elements, out)?;
        }
        Ok(PlanProgress::Complete(outcome.rows))
    }

    /// Runs a statement that reads or writes rows; `counters`: of its top, if it is measured.
    pub(super) fn run_rows(
        &mut self,
        cached: &CachedPlan,
        statement: &RowsStatement,
        params: &[Value],
        request: Request,
        counters: Option<&StatementCounters>,
        out: &mut dyn Output,
    ) -> Result<PlanProgress> {
        cached.plan.check()?;
        if self.standby.is_some() && !cached.uses.is_empty() {
            self.engine.check_not_diverged()?;
        }
        // EXPLAIN locks what its statement would, and looks at no row: its answer waits for no commit.
        let uses = if statement.runs() { &cached.uses[..] } else { &[] };
        self.txn
            .take_snapshot_for(uses, &self.interrupts, self.settings.lock_timeout)?;
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
        let mut results = SubqueryResults::default();
        let inner = InnerPlans::of(&cached.plan);
        let progress = self.with_execution(params, inner, &mut results, |execution, _| {
            let progress = if cached.has_names {
                let columns = cached.plan.columns.as_deref().unwrap_or_default();
                let mut named = NamedOutput::new(out, execution.eval.session, columns);
                run_statement(execution, &cached.plan, statement, max_rows, &mut named)?
            } else {
                run_statement(execution, &cached.plan, statement, max_rows, out)?
            };
            // The last first: it may read the rows of those before it, and then they have run.
            for change in cached.plan.changes.iter().rev() {
                execution.run_change(change.number)?;
            }
            if let Some((top, changed)) = counters {
                for counter in [top, changed] {
                    Counter::add(&counter.removed, u64::from(execution.removed));
                }
            }
            Ok(progress)
        })?;
        if self.txn.has_checks() {
            self.settle_checks()?;
        }
        Ok(match progress {
            PlanProgress::Suspended(rows, _) => PlanProgress::Suspended(rows, results),
            complete => complete,
        })
    }

    /// Calls `work` with what a statement of this session runs with.
    pub(super) fn with_execution<T>(
        &mut self,
        params: &[Value],
        inner: InnerPlans<'_>,
        results: &mut SubqueryResults,
        work: impl FnOnce(&mut Execution<'_>, &Engine) -> Result<T>,
    ) -> Result<T> {
        self.spill.bytes_max = self.settings.work_mem;
        self.spill.log_from = self.settings.log_temp_files;
        let _digits = FloatDigits::rounded(self.settings.float_digits);
        let facts = Facts::new(
            &self.engine,
            &self.settings,
            &self.slot,
            (&self.info, &self.identity),
            self.txn.start_us(),
            self.txn.overlay(),
            &self.random,
            &self.interrupts,
            &self.seen,
            &self.changed,
            &self.serial_values,
            &self.cursors,
            (&self.pending, &self.channels),
            SessionLocks {
                proc: self.txn.proc,
                advisory: &self.advisory,
                sequences: &self.sequence_locks,
                warnings: &self.warnings,
            },
            (self.txn.isolation, self.txn.read_only),
        );
        let (engine, settings) = (&self.engine, &self.settings);
        let identity = &self.identity;
        let login = self.info.user.as_str();
        let cursors = &self.cursors;
        let named = &self.named;
        let session = self.slot.process_id;
        let virtual_rows = |table: &TableDef| {
            let catalog = facts.definitions();
            let sources = catalog::system::Sources {
                activity: &|| engine.activity(),
                background: &|| engine.background_activity(),
                retention: &engine.storage.retention,
                flushed: &|| engine.storage.durable_log_end(),
                receiver: &|| engine.wal_receiver(),
                login_rules: &|| engine.login_rule_lines(),
                conflicts: &|| engine.conflict_counts(),
                catalog: &catalog,
                names: &View {
                    state: &catalog,
                    viewer: Viewer {
                        planning: &settings.planning,
                        identity,
                        session,
                    },
                },
                storage: &engine.storage,
                settings,
                in_force: &|| engine.in_force(),
                cursors: &|| cursors.listed(),
                prepared: &|| listed(named),
                database_counts: &|| engine.database_counts(),
                writer_counts: &|| engine.writer_counts(),
                log_counts: &|| engine.log_counts(),
                archiver_reset_us: &|| engine.archiver_reset_us(),
                statements: &engine.statements,
                commands: &|| engine.running_commands(),
                locks: &|| engine.listed_locks(),
                database: &engine.config.database,
                login,
                identity,
            };
            catalog::system::rows(table, &sources)
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
            identity: &self.identity,
            login: &self.info.user,
            subqueries: inner.subqueries,
            changes: inner.changes,
            accesses: inner.accesses,
            results,
            ticks: 0,
            removed: 0,
        };
        work(&mut execution, engine)
    }

    /// A context for evaluating expressions outside of a row statement.
    pub(crate) fn evaluate(&self, expr: &sql::Expr) -> Result<Value> {
        let facts = Facts::new(
            &self.engine,
            &self.settings,
            &self.slot,
            (&self.info, &self.identity),
            self.txn.start_us(),
            self.txn.overlay(),
            &self.random,
            &self.interrupts,
            &self.seen,
            &self.changed,
            &self.serial_values,
            &self.cursors,
            (&self.pending, &self.channels),
            SessionLocks {
                proc: self.txn.proc,
                advisory: &self.advisory,
                sequences: &self.sequence_locks,
                warnings: &self.warnings,
            },
            (self.txn.isolation, self.txn.read_only),
        );
        expr.eval(&[], &EvalContext::new(&[], &facts))
    }

    /// The command tag of a statement, with the count of its rows where it has one.
    #[inline(always)]
    pub(super) fn set_tag(&mut self, cached: &CachedPlan, rows: Option<u64>) {
        let traits = &cached.traits;
        self.slot.counts.rows_told(rows.unwrap_or(0));
        match (rows, traits.counted_tags) {
            (None, _) => self.tag.put(traits.tag_without_rows),
            (Some(_), _) if !traits.tells_rows => self.tag.put(traits.tag),
            (Some(rows @ 0..=9), Some(tags)) => self.tag.put(tags[rows as usize]),
            (Some(rows), _) => self.tag.count(traits.tag, rows),
        }
    }
}

/// Sends a plan, each of its lines a row; `ms`: the milliseconds that its statement has run.
fn send_plan(
    execution: &mut Execution<'_>,
    plan: &PlanTree,
    ms: Option<f64>,
    sink: &mut Sink<'_>,
) -> Result<u64> {
    let settings = match plan.shows_settings() {
        true => Settings::changed_planning(|name| execution.eval.session.setting(name)),
        false => Vec::new(),
    };
    let lines = plan.lines(ms, &settings);
    for line in &lines {
        sink(execution, &[Value::text(line.as_str())])?;
    }
    Ok(lines.len() as u64)
}

/// Runs a statement with rows, and sends them.
fn run_statement(
    execution: &mut Execution<'_>,
    plan: &Plan,
    statement: &RowsStatement,
    max_rows: u32,
    out: &mut dyn Output,
) -> Result<PlanProgress> {
    match statement {
        RowsStatement::Select(select) if !plan.changes.is_empty() => {
            run_to_end(execution, max_rows, out, &|execution, sink| {
                select::run(execution, select, sink)
            })
        }
        RowsStatement::Select(plan) => {
            if max_rows > 0 {
                let rows = PortalRows::Select {
                    plan: Arc::clone(plan),
                    select: Box::new(Select::open(execution, plan)?),
                };
                return send_first(execution, rows, max_rows, out);
            }
            let count = select::run(execution, plan, &mut |_, row| out.row(row))?;
            Ok(PlanProgress::Complete(Some(count)))
        }
        RowsStatement::Copy(plan) => match plan.direction {
            CopyDirection::FromStdin => copy::copy_in(execution, plan, out),
            CopyDirection::ToStdout => copy::copy_out(execution, plan, out),
        }
        .map(|count| PlanProgress::Complete(Some(count))),
        RowsStatement::Insert(plan) => run_to_end(execution, max_rows, out, &|execution, sink| {
            modify::insert(execution, plan, sink)
        }),
        RowsStatement::Update(plan) => run_to_end(execution, max_rows, out, &|execution, sink| {
            modify::update(execution, plan, sink)
        }),
        RowsStatement::Delete(plan) => run_to_end(execution, max_rows, out, &|execution, sink| {
            modify::delete(execution, plan, sink)
        }),
        RowsStatement::Merge(plan) => {
            let count = modify_merge::merge(execution, plan)?;
            Ok(PlanProgress::Complete(Some(count)))
        }
        RowsStatement::Explain(explained) => run_to_end(execution, max_rows, out, &|execution, sink| {
            send_plan(execution, &explained.tree, None, sink)
        }),
        RowsStatement::Measured(measured) => run_to_end(execution, max_rows, out, &|execution, sink| {
            let ms = measured_statement::run(execution, measured)?;
            send_plan(execution, &measured.tree, Some(ms), sink)
        }),
    }
}

/// The progress of a plan.
pub(super) enum PlanProgress {
    /// To its end; the count for its tag, if its tag has one.
    Complete(Option<u64>),
    /// To its row limit, with what its expressions' queries have given. Boxed: what a point SELECT has no use for is
    /// not to be moved with its count.
    Suspended(Box<PortalRows>, SubqueryResults),
}

/// Sends the first rows of a portal.
fn send_first(
    execution: &mut Execution<'_>,
    mut rows: PortalRows,
    max_rows: u32,
    out: &mut dyn Output,
) -> Result<PlanProgress> {
    let (sent, more) = rows.send(execution, max_rows, out)?;
    if more {
        return Ok(PlanProgress::Suspended(
            Box::new(rows),
            SubqueryResults::default(),
        ));
    }
    rows.close(execution);
    Ok(PlanProgress::Complete(Some(sent)))
}

/// The function that gives a statement's rows to a sink; returns their number, or that of the rows changed.
type Work<'w> = &'w dyn Fn(&mut Execution<'_>, &mut Sink<'_>) -> Result<u64>;

/// Runs a statement that does its work whether its rows are wanted or not. With a limit the rows are held, and the
/// first of them sent.
fn run_to_end(
    execution: &mut Execution<'_>,
    max_rows: u32,
    out: &mut dyn Output,
    work: Work<'_>,
) -> Result<PlanProgress> {
    if max_rows == 0 {
        let count = work(execution, &mut |_, row| out.row(row))?;
        return Ok(PlanProgress::Complete(Some(count)));
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
