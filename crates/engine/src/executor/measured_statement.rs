//! Statements that are run to be measured (EXPLAIN ANALYZE).

use std::sync::atomic::AtomicU64;
use std::time::Instant;

use crate::executor::measure::Used;
use crate::executor::{Execution, modify, modify_merge, select};
use clearway_sql::error::Result;
use clearway_sql::plan::{Counter, MeasuredStatement, RowsStatement};

/// Runs a statement, and counts what it does; the milliseconds that it took.
pub(crate) fn run(execution: &mut Execution<'_>, measured: &MeasuredStatement) -> Result<f64> {
    measured.tree.reset();
    let what = measured.tree.measured();
    let used = what.counts_work().then(Used::now);
    let mut sent: u64 = 0;
    let started = Instant::now();
    let mut first_ns = 0;
    let mut sink = |_: &mut Execution<'_>, _: &[clearway_sql::value::Value]| {
        if sent == 0 {
            first_ns = started.elapsed().as_nanos() as u64;
        }
        sent += 1;
        Ok(())
    };
    let count = match &measured.statement {
        RowsStatement::Select(plan) => select::run(execution, plan, &mut sink)?,
        RowsStatement::Insert(plan) => modify::insert(execution, plan, &mut sink)?,
        RowsStatement::Update(plan) => modify::update(execution, plan, &mut sink)?,
        RowsStatement::Delete(plan) => modify::delete(execution, plan, &mut sink)?,
        RowsStatement::Merge(plan) => modify_merge::merge(execution, plan)?,
        RowsStatement::Copy(_) | RowsStatement::Explain(_) | RowsStatement::Measured(_) => 0,
    };
    let elapsed = started.elapsed();
    let ns = elapsed.as_nanos() as u64;
    let note = |counter: &Counter, rows: u64| {
        let add = |count: &AtomicU64, number: u64| Counter::add(count, number);
        add(&counter.loops, 1);
        add(&counter.rows, rows);
        add(&counter.removed, u64::from(execution.removed));
        add(&counter.startup_ns, if sent == 0 { ns } else { first_ns });
        add(&counter.total_ns, ns);
    };
    note(&measured.top, sent);
    note(&measured.changed, count);
    for counter in [&measured.top, &measured.changed] {
        used.iter().for_each(|used| used.add_to(&counter.pages));
    }
    Ok(elapsed.as_secs_f64() * 1e3)
}
