//! Plans of slow statements in the server's log (`auto_explain`).
//!
//! 1. With `auto_explain.log_analyze` the statement runs by a copy of its plan that has counters, as EXPLAIN ANALYZE would run
//!    it; its rows go to the client as always.
//! 2. A statement that takes `auto_explain.log_min_duration` is told with its plan, when its rows have left and before its
//!    commit. The plan is made text only then.
//!
//! Told are SELECT, INSERT, UPDATE, DELETE and MERGE, also by EXECUTE. What is read in parts (a cursor, a portal with a limit) is
//! not, and neither are EXPLAIN and COPY.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::executor::measure::Used;
use crate::output::Output;
use crate::server_log::logged_text;
use crate::session::Session;
use crate::session::prepared::{CachedPlan, View};
use crate::session::run::{PlanProgress, Request};
use crate::settings::Settings;
use clearway_sql::error::Result;
use clearway_sql::explain::{StatementCounters, plan_tree};
use clearway_sql::explained::{Counter, ExplainOptions};
use clearway_sql::masked;
use clearway_sql::plan::{RowsStatement, Statement};

/// A statement that runs with counters.
struct MeasuredRun {
    cached: CachedPlan,
    counters: StatementCounters,
}

impl MeasuredRun {
    /// `None` for a statement that is not measured.
    fn of(cached: &CachedPlan, statement: &RowsStatement, options: ExplainOptions) -> Option<MeasuredRun> {
        let what = options.measured();
        let is_measured = options.analyze && cached.plan.changes.is_empty();
        is_measured.then(|| {
            let mut plan = cached.plan.clone();
            plan.statement = Statement::Rows(statement.measured(what));
            let queries = plan.subqueries.iter();
            plan.subqueries = queries.map(|query| Arc::new(query.measured(what))).collect();
            MeasuredRun {
                cached: cached.with_plan(plan),
                counters: StatementCounters::default(),
            }
        })
    }

    /// Counts what the statement as a whole has done.
    fn note(&self, statement: &RowsStatement, rows: u64, elapsed: Duration, used: Used) {
        let ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        let is_select = matches!(statement, RowsStatement::Select(_));
        let sent = if is_select || self.cached.plan.columns.is_some() {
            rows
        } else {
            0
        };
        let (top, changed) = &self.counters;
        for (counter, rows) in [(top, sent), (changed, rows)] {
            Counter::add(&counter.loops, 1);
            Counter::add(&counter.rows, rows);
            Counter::add(&counter.startup_ns, ns);
            Counter::add(&counter.total_ns, ns);
            used.add_to(&counter.pages);
        }
    }
}

/// True for a statement that has a plan to show.
fn has_plan(statement: &RowsStatement) -> bool {
    matches!(
        statement,
        RowsStatement::Select(_)
            | RowsStatement::Insert(_)
            | RowsStatement::Update(_)
            | RowsStatement::Delete(_)
            | RowsStatement::Merge(_)
    )
}

impl Session {
    /// Runs a statement that reads or writes rows, and tells the log of its plan if it takes `least` or more.
    #[cold]
    pub(super) fn run_rows_and_tell(
        &mut self,
        (cached, text): (&CachedPlan, &Arc<str>),
        statement: &RowsStatement,
        params: &[clearway_sql::value::Value],
        request: Request,
        least: Duration,
        out: &mut dyn Output,
    ) -> Result<PlanProgress> {
        if !has_plan(statement) {
            return self.run_rows(cached, statement, params, request, None, out);
        }
        let options = self.settings.auto_explain.options;
        // A portal goes on by the plan without counters, which finds none of what the first part has opened with them.
        let measured = match request.max_rows {
            0 => MeasuredRun::of(cached, statement, options),
            _ => None,
        };
        let (used, began) = (Used::now(), Instant::now());
        let progress = match &measured {
            Some(run) => match &run.cached.plan.statement {
                Statement::Rows(statement) => {
                    self.run_rows(&run.cached, statement, params, request, Some(&run.counters), out)?
                }
                _ => self.run_rows(cached, statement, params, request, None, out)?,
            },
            None => self.run_rows(cached, statement, params, request, None, out)?,
        };
        let elapsed = began.elapsed();
        if let PlanProgress::Complete(rows) = &progress
            && elapsed >= least
        {
            if let Some(run) = &measured {
                run.note(statement, rows.unwrap_or(0), elapsed, used);
            }
            self.tell_plan((cached, text), measured.as_ref(), options, elapsed);
        }
        Ok(progress)
    }

    fn tell_plan(
        &self,
        (cached, text): (&CachedPlan, &Arc<str>),
        measured: Option<&MeasuredRun>,
        options: ExplainOptions,
        elapsed: Duration,
    ) {
        // Counters that there are none of are not shown as zeros.
        let options = ExplainOptions {
            analyze: measured.is_some(),
            wal: options.wal && measured.is_some(),
            timing: options.timing.filter(|_| measured.is_some()),
            buffers: options.buffers && measured.is_some(),
            ..options
        };
        let plan = measured.map_or(&cached.plan, |run| &run.cached.plan);
        let state = self.txn.catalog_state();
        let view = View {
            state: &state,
            viewer: self.viewer(),
        };
        let counters = measured.map(|run| run.counters.clone());
        let Ok(mut tree) = plan_tree(&plan.statement, &plan.subqueries, &view, options, counters) else {
            return;
        };
        tree.map_texts(&|text| masked(text).into_owned());
        tree.set_query_text(logged_text(text));
        let settings = match options.settings {
            true => Settings::changed_planning(|name| self.settings.value(name).map(str::to_owned)),
            false => Vec::new(),
        };
        let ms = elapsed.as_secs_f64() * 1e3;
        let lines = tree.lines(measured.map(|_| ms), &settings);
        tracing::info!("duration: {ms:.3} ms  plan:\n{}", lines.join("\n"));
    }
}
