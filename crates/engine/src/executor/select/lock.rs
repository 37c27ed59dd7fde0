//! Locking the rows of a SELECT (FOR UPDATE and its relatives), after sorting and before the limit.
//!
//! Over operators all tables that a clause is for have the row of theirs locked that stands in the output row, one after
//! the other. Where a newer version was locked it takes the place of the one that was found, beside the same rows of the
//! other relations; then ON and WHERE are looked at again, and the row is projected anew or left out. The row keeps its
//! place in the order. An outer join whose ON does not hold any more has NULL on the side that may be NULL.

use clearway_sql::error::Result;
use clearway_sql::plan::{JoinKind, LockedRows, LockedTable, Recheck, RowLock, SelectPlan, Source};
use clearway_sql::value::Value;
use clearway_storage::heap::Tid;

use crate::executor::place::{place_of, place_value};
use crate::executor::scan::{Locked, lock_row};
use crate::executor::select::project;
use crate::executor::select::rows::set_null;
use crate::executor::{Execution, evaluate_row};

/// Locks the row of a table; `false` when it is to be left out.
#[inline(never)]
pub(super) fn lock(
    execution: &mut Execution<'_>,
    plan: &SelectPlan,
    (tid, row_lock): (Tid, RowLock),
    output: &mut Vec<Value>,
) -> Result<bool> {
    let Source::Table(scan) = plan.source.unmeasured() else {
        return Ok(true);
    };
    match lock_row(execution, scan, tid, row_lock)? {
        Locked::AsSeen => Ok(true),
        Locked::Gone => Ok(false),
        Locked::Newer(row, _) => {
            output.clear();
            evaluate_row(&plan.projection, &row, &execution.eval, output)?;
            Ok(true)
        }
    }
}

/// Locks the rows of tables that an output row comes from; `false` when it is to be left out.
pub(super) fn lock_all(
    execution: &mut Execution<'_>,
    plan: &SelectPlan,
    locked: &LockedRows,
    output: &mut Vec<Value>,
) -> Result<bool> {
    let kept = |output: &[Value], column: u16| -> Option<Value> {
        let at = locked.kept.binary_search(&column).ok()?;
        output.get(locked.first + at).cloned()
    };
    let mut newer: Vec<(&LockedTable, Vec<Value>, Tid)> = Vec::new();
    for table in &locked.tables {
        let place = kept(output, table.place);
        let Some(tid) = place.as_ref().and_then(place_of) else {
            continue;
        };
        match lock_row(execution, &table.scan, tid, table.lock)? {
            Locked::AsSeen => {}
            Locked::Gone => return Ok(false),
            Locked::Newer(row, tid) => newer.push((table, row, tid)),
        }
    }
    if newer.is_empty() {
        return Ok(true);
    }
    let mut row = vec![Value::Null; locked.width];
    for (column, value) in locked.kept.iter().zip(&output[locked.first..]) {
        row[usize::from(*column)].clone_from(value);
    }
    for (table, columns, tid) in newer {
        for (place, value) in row[usize::from(table.base)..].iter_mut().zip(columns) {
            *place = value;
        }
        row[usize::from(table.place)] = place_value(tid);
    }
    if !fits(execution, &locked.from, &mut row)? {
        return Ok(false);
    }
    if let Some(condition) = &locked.condition
        && !execution.evaluating(|context| condition.passes(&row, context))?
    {
        return Ok(false);
    }
    output.clear();
    project(execution, plan, &row, output)?;
    Ok(true)
}

/// True if a FROM has the row at hand.
fn fits(execution: &mut Execution<'_>, from: &Recheck, row: &mut [Value]) -> Result<bool> {
    let Recheck::Join {
        kind,
        left,
        right,
        on,
        nullable,
    } = from
    else {
        return Ok(true);
    };
    let (kept, other) = match kind {
        // No side of it has a row that is locked.
        JoinKind::Full => return Ok(true),
        JoinKind::Right => (right, left),
        _ => (left, right),
    };
    if !fits(execution, kept, row)? {
        return Ok(false);
    }
    let mut pairs = fits(execution, other, row)?;
    if let Some(on) = on
        && pairs
    {
        pairs = execution.evaluating(|context| on.passes(row, context))?;
    }
    match kind {
        JoinKind::Left | JoinKind::Right => {
            if !pairs {
                set_null(row, nullable);
            }
            Ok(true)
        }
        _ => Ok(pairs),
    }
}
