//! SELECT: rows from a source, through grouping, projection, DISTINCT, sorting and LIMIT, to a sink.
//!
//! ```text
//! source ─▶ [group] ─▶ project ─▶ [distinct] ─▶ [sort] ─▶ [lock] ─▶ offset, limit ─▶ sink
//! ```
//!
//! What needs no sorting and no grouping streams: one row is in memory. With a limit, sorting keeps no more than
//! twice the rows that can come out.
//!
//! FOR UPDATE locks after sorting and before the limit, so that `ORDER BY … LIMIT 1 FOR UPDATE SKIP LOCKED` locks what
//! it returns. A row that changed while its lock was waited for is looked at again (READ COMMITTED) and projected
//! anew, but keeps its place in the order.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use clearway_storage::heap::Tid;

use crate::error::{EngineError, Result, SqlState};
use crate::executor::scan::{Locked, Scan};
use crate::executor::{Execution, limits};
use crate::sql::aggregate::Accumulator;
use crate::sql::expr::Expr;
use crate::sql::plan::{AggregatePlan, SelectPlan, Series, SortKey, Source};
use crate::value::{DataType, Value, compare, encode_key};

/// Receives output rows.
pub(crate) type Sink<'s> = dyn FnMut(&mut Execution<'_>, &[Value]) -> Result<()> + 's;

/// Runs a SELECT; the number of rows that went to `sink`.
pub(crate) fn run(execution: &mut Execution<'_>, plan: &SelectPlan, sink: &mut Sink<'_>) -> Result<u64> {
    let limit = row_count(
        execution,
        plan.limit.as_ref(),
        SqlState::INVALID_ROW_COUNT_IN_LIMIT,
        "LIMIT",
    )?;
    let offset = row_count(
        execution,
        plan.offset.as_ref(),
        SqlState::INVALID_ROW_COUNT_IN_OFFSET,
        "OFFSET",
    )?
    .unwrap_or(0);
    let mut stage = Stage {
        plan,
        offset,
        remaining: limit.unwrap_or(u64::MAX),
        sent: 0,
        seen: plan.distinct.then(HashSet::new),
        sorted: (!plan.sort.is_empty()).then(Vec::new),
        keep: limit
            .and_then(|limit| limit.checked_add(offset))
            .filter(|_| plan.lock.is_none()),
        output: Vec::with_capacity(plan.projection.len()),
        sink,
    };
    if stage.remaining == 0 {
        return Ok(0);
    }
    match (&plan.source, &plan.aggregate) {
        (source, Some(aggregate)) => {
            let groups = group(execution, plan, source, aggregate)?;
            for row in groups {
                if let Some(having) = &aggregate.having
                    && !having.passes(&row, &execution.eval)?
                {
                    continue;
                }
                if !stage.take(execution, &row, None)? {
                    break;
                }
            }
        }
        (Source::OneRow, None) => {
            stage.take(execution, &[], None)?;
        }
        (Source::Series(series), None) => {
            each_of_series(execution, series, &mut |execution, row| {
                stage.take(execution, row, None)
            })?;
        }
        (Source::Table(scan), None) => {
            let mut rows = Scan::open(execution, scan)?;
            let mut passed = 0;
            while let Some(tid) = rows.next(execution)? {
                if !stage.take(execution, rows.row(), Some(tid))? {
                    break;
                }
                passed += 1;
                if plan.stop_after.is_some_and(|most| passed >= most) {
                    break;
                }
            }
            rows.close(execution);
        }
    }
    stage.finish(execution)
}

/// A non-negative count from LIMIT or OFFSET; NULL and absent are `None`.
fn row_count(
    execution: &Execution<'_>,
    expr: Option<&Expr>,
    sqlstate: SqlState,
    clause: &str,
) -> Result<Option<u64>> {
    let Some(expr) = expr else { return Ok(None) };
    let value = expr.eval(&[], &execution.eval)?;
    match value.as_i64() {
        None => Ok(None),
        Some(count) => u64::try_from(count)
            .map(Some)
            .map_err(|_| EngineError::new(sqlstate, format!("{clause} must not be negative"))),
    }
}

/// A projected row on its way through the sort, with where it came from.
struct SortRow {
    values: Vec<Value>,
    tid: Option<Tid>,
}

/// Everything after the source.
struct Stage<'p, 's, 'k> {
    plan: &'p SelectPlan,
    offset: u64,
    remaining: u64,
    sent: u64,
    seen: Option<HashSet<Vec<u8>>>,
    sorted: Option<Vec<SortRow>>,
    /// How many sorted rows can come out at most.
    keep: Option<u64>,
    output: Vec<Value>,
    sink: &'s mut Sink<'k>,
}

impl Stage<'_, '_, '_> {
    /// Takes a row from the source or a group; `false` when no more are wanted.
    fn take(&mut self, execution: &mut Execution<'_>, input: &[Value], tid: Option<Tid>) -> Result<bool> {
        self.output.clear();
        for expr in &self.plan.projection {
            self.output.push(expr.eval(input, &execution.eval)?);
        }
        if let Some(seen) = &mut self.seen {
            let types: Vec<DataType> = self.plan.columns.iter().map(|column| column.data_type).collect();
            if !seen.insert(encode_key(&self.output[..self.plan.visible], &types)) {
                return Ok(true);
            }
            limits::check_rows(seen.len())?;
        }
        let Some(sorted) = &mut self.sorted else {
            if let Some(tid) = tid
                && !lock(execution, self.plan, tid, &mut self.output)?
            {
                return Ok(true);
            }
            let mut output = std::mem::take(&mut self.output);
            let more = self.emit(execution, &output);
            output.clear();
            self.output = output;
            return more;
        };
        sorted.push(SortRow {
            values: std::mem::take(&mut self.output),
            tid,
        });
        if let Some(keep) = self.keep {
            let keep = usize::try_from(keep).unwrap_or(usize::MAX);
            if sorted.len() >= keep.saturating_mul(2).max(1_024) {
                sort(sorted, &self.plan.sort);
                sorted.truncate(keep);
            }
        }
        limits::check_rows(sorted.len())?;
        Ok(true)
    }

    /// Counts a finished row against OFFSET and LIMIT and sends it; `false` when no more are wanted.
    fn emit(&mut self, execution: &mut Execution<'_>, row: &[Value]) -> Result<bool> {
        if self.offset > 0 {
            self.offset -= 1;
            return Ok(true);
        }
        (self.sink)(execution, &row[..self.plan.visible])?;
        self.sent += 1;
        self.remaining -= 1;
        Ok(self.remaining > 0)
    }

    fn finish(mut self, execution: &mut Execution<'_>) -> Result<u64> {
        if let Some(mut sorted) = self.sorted.take() {
            execution.check_interrupts()?;
            sort(&mut sorted, &self.plan.sort);
            for mut row in sorted {
                if let Some(tid) = row.tid
                    && !lock(execution, self.plan, tid, &mut row.values)?
                {
                    continue;
                }
                if !self.emit(execution, &row.values)? {
                    break;
                }
            }
        }
        Ok(self.sent)
    }
}

/// Locks the row if the plan says so; `false` when it is to be left out.
fn lock(execution: &mut Execution<'_>, plan: &SelectPlan, tid: Tid, output: &mut Vec<Value>) -> Result<bool> {
    let (Some(row_lock), Source::Table(scan)) = (plan.lock, &plan.source) else {
        return Ok(true);
    };
    match crate::executor::scan::lock_row(execution, scan, tid, row_lock)? {
        Locked::AsSeen => Ok(true),
        Locked::Gone => Ok(false),
        Locked::Newer(row) => {
            output.clear();
            for expr in &plan.projection {
                output.push(expr.eval(&row, &execution.eval)?);
            }
            Ok(true)
        }
    }
}

fn sort(rows: &mut [SortRow], keys: &[SortKey]) {
    rows.sort_by(|left, right| order(&left.values, &right.values, keys));
}

/// The order of two output rows.
fn order(left: &[Value], right: &[Value], keys: &[SortKey]) -> Ordering {
    for key in keys {
        let (l, r) = (&left[key.column], &right[key.column]);
        let ordering = match (l.is_null(), r.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) if key.nulls_first => Ordering::Less,
            (true, false) => Ordering::Greater,
            (false, true) if key.nulls_first => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) if key.descending => compare(r, l, key.data_type),
            (false, false) => compare(l, r, key.data_type),
        };
        if ordering.is_ne() {
            return ordering;
        }
    }
    Ordering::Equal
}

/// Reads all input and makes one row a group: the keys, then the aggregates' results; in order of first appearance.
fn group(
    execution: &mut Execution<'_>,
    plan: &SelectPlan,
    source: &Source,
    aggregate: &AggregatePlan,
) -> Result<Vec<Vec<Value>>> {
    struct Group {
        keys: Vec<Value>,
        accumulators: Vec<Accumulator>,
    }
    let start = |keys: Vec<Value>| Group {
        keys,
        accumulators: aggregate.calls.iter().map(|call| call.start()).collect(),
    };
    let mut groups: Vec<Group> = Vec::new();
    let mut by_key: HashMap<Vec<u8>, usize> = HashMap::new();
    if aggregate.keys.is_empty() {
        groups.push(start(Vec::new()));
    }
    let mut passed = 0;
    let mut take = |execution: &mut Execution<'_>, row: &[Value]| -> Result<bool> {
        let at = if aggregate.keys.is_empty() {
            0
        } else {
            let mut keys = Vec::with_capacity(aggregate.keys.len());
            for expr in &aggregate.keys {
                keys.push(expr.eval(row, &execution.eval)?);
            }
            let encoded = encode_key(&keys, &aggregate.key_types);
            match by_key.get(&encoded) {
                Some(at) => *at,
                None => {
                    limits::check_rows(groups.len())?;
                    by_key.insert(encoded, groups.len());
                    groups.push(start(keys));
                    groups.len() - 1
                }
            }
        };
        for (call, accumulator) in aggregate.calls.iter().zip(&mut groups[at].accumulators) {
            call.take(accumulator, row, &execution.eval)?;
        }
        passed += 1;
        Ok(plan.stop_after.is_none_or(|most| passed < most))
    };
    match source {
        Source::OneRow => {
            take(execution, &[])?;
        }
        Source::Series(series) => each_of_series(execution, series, &mut take)?,
        Source::Table(scan) => {
            let mut rows = Scan::open(execution, scan)?;
            while rows.next(execution)?.is_some() {
                if !take(execution, rows.row())? {
                    break;
                }
            }
            rows.close(execution);
        }
    }
    groups
        .into_iter()
        .map(|group| {
            let mut row = group.keys;
            for (call, accumulator) in aggregate.calls.iter().zip(group.accumulators) {
                row.push(call.finish(accumulator)?);
            }
            Ok(row)
        })
        .collect()
}

/// Takes a source row; `false` when no more are wanted.
type TakeRow<'t> = dyn FnMut(&mut Execution<'_>, &[Value]) -> Result<bool> + 't;

fn each_of_series(execution: &mut Execution<'_>, series: &Series, take: &mut TakeRow<'_>) -> Result<()> {
    let mut ends = [None, None, Some(1)];
    for (end, expr) in ends
        .iter_mut()
        .zip([Some(&series.start), Some(&series.stop), series.step.as_ref()])
    {
        if let Some(expr) = expr {
            *end = expr.eval(&[], &execution.eval)?.as_i64();
        }
    }
    // A NULL among the three: no rows.
    let [Some(start), Some(stop), Some(step)] = ends else {
        return Ok(());
    };
    if step == 0 {
        return Err(EngineError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "step size cannot equal zero",
        ));
    }
    let mut current = start;
    while if step > 0 {
        current <= stop
    } else {
        current >= stop
    } {
        execution.tick()?;
        let value = match series.data_type {
            DataType::Int4 => Value::Int4(current as i32),
            _ => Value::Int8(current),
        };
        let row = [value];
        let passes = match &series.filter {
            Some(filter) => filter.passes(&row, &execution.eval)?,
            None => true,
        };
        if passes && !take(execution, &row)? {
            return Ok(());
        }
        match current.checked_add(step) {
            Some(next) => current = next,
            None => return Ok(()),
        }
    }
    Ok(())
}
