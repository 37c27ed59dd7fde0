//! UPDATE … FROM and DELETE … USING, and those with queries inside: rows that operators find.
//!
//! A row of the changed table may come several times, with different partners; the first one changes it, and the heap
//! says of the others that this statement has done so. A row that another transaction has changed meanwhile is waited
//! for as in `modify`; its newest version takes the place of the one that was found, beside the same partners, and all
//! conditions are looked at again.

use clearway_sql::error::Result;
use clearway_sql::expr::Subquery;
use clearway_sql::plan::{DeletePlan, JoinedRows, LockWaitPolicy, Returning, TableScan, UpdatePlan};
use clearway_sql::value::{TextsTogether, Value};
use clearway_sql::{Expr, TableDef};
use clearway_storage::heap::{ChangedColumns, DeleteOutcome, Heap, Tid, UpdateOutcome};

use crate::convert::storage_error;
use crate::executor::changed_columns::changed_between;
use crate::executor::check_option::check_row;
use crate::executor::checks::check_constraints;
use crate::executor::generated::generate;
use crate::executor::long_values;
use crate::executor::marks::mark_written;
use crate::executor::not_null::check_not_null;
use crate::executor::place::{place_of, place_value};
use crate::executor::references::{self, concern_update, row_deleted};
use crate::executor::scan::{self, TO_CHANGE};
use crate::executor::select::rows::Rows;
use crate::executor::shown_values::GivenColumns;
use crate::executor::unique::insert_entries;
use crate::executor::{Execution, Queued, heap_rel, select};
use crate::transaction::RowChanges;

/// The rows that are found, one after the other.
pub(super) struct Found<'p> {
    plan: &'p JoinedRows,
    rows: Rows,
    pub(super) row: Vec<Value>,
    /// Number of columns of the changed table.
    pub(super) width: usize,
}

impl<'p> Found<'p> {
    pub(super) fn open(
        execution: &mut Execution<'_>,
        plan: &'p JoinedRows,
        scan: &TableScan,
    ) -> Result<Found<'p>> {
        let mut row = vec![Value::Null; plan.rows.width];
        Ok(Found {
            rows: Rows::open(execution, &plan.rows.node, &mut row)?,
            plan,
            row,
            width: scan.table.columns.len(),
        })
    }

    /// Goes to the next row, if there is one.
    pub(super) fn advance(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        self.rows.next(execution, &self.plan.rows.node, &mut self.row)
    }

    /// The place of the changed table's row; `None` if there is none.
    pub(super) fn place(&self) -> Option<Tid> {
        place_of(&self.row[self.width])
    }

    /// The place of the next row.
    fn next(&mut self, execution: &mut Execution<'_>) -> Result<Option<Tid>> {
        Ok(match self.advance(execution)? {
            true => self.place(),
            false => None,
        })
    }

    /// Puts the newest version of the row in the place of the one that was found: its place, or `None` if the row is
    /// to be left out.
    fn follow(
        &mut self,
        execution: &mut Execution<'_>,
        scan: &TableScan,
        latest: Tid,
        queued: &mut Queued,
    ) -> Result<Option<Tid>> {
        let newest = scan::newest(execution, scan, latest, TO_CHANGE, queued)?;
        let Some(newest) = newest else { return Ok(None) };
        Ok(self.passes_with(execution, &newest)?.then_some(newest.tid))
    }

    /// Puts a version of the row in the place of the one that was found; true if all conditions hold with it.
    pub(super) fn passes_with(
        &mut self,
        execution: &mut Execution<'_>,
        newest: &scan::Newest,
    ) -> Result<bool> {
        self.row[..self.width].clone_from_slice(&newest.row);
        self.row[self.width] = place_value(newest.tid);
        let row = &self.row;
        match &self.plan.recheck {
            Some(recheck) => execution.evaluating(|context| recheck.passes(row, context)),
            None => Ok(true),
        }
    }
}

/// Runs an UPDATE; the number of rows.
pub(super) fn update(
    execution: &mut Execution<'_>,
    plan: &UpdatePlan,
    joined: &JoinedRows,
    sink: &mut select::Sink<'_>,
) -> Result<u64> {
    let mut found = Found::open(execution, joined, &plan.scan)?;
    let mut count = 0;
    while let Some(tid) = found.next(execution)? {
        let before = found.row[..=found.width].to_vec();
        if let Some((new, stored)) = update_row(execution, plan, tid, &mut found)? {
            count += 1;
            if let Some(checks) = &plan.checks {
                let given = GivenColumns::Assigned(&plan.assignments);
                check_row(execution, &plan.scan.table, checks, &new, given)?;
            }
            if let Some(returning) = &plan.returning {
                found.row[..found.width].clone_from_slice(&new);
                found.row[found.width] = place_value(stored);
                send(execution, returning, &found.row, sink)?;
            }
        }
        // Other partners of the row are compared with the version that was seen.
        found.row[..=found.width].clone_from_slice(&before);
    }
    execution
        .txn
        .count_rows(plan.scan.table.oid, RowChanges::updated(count));
    Ok(count)
}

/// Updates the row at hand; its new columns and place, or `None` if it is not to be updated.
fn update_row(
    execution: &mut Execution<'_>,
    plan: &UpdatePlan,
    tid: Tid,
    found: &mut Found<'_>,
) -> Result<Option<(Vec<Value>, Tid)>> {
    let table = &*plan.scan.table;
    let heap = Heap::new(heap_rel(table));
    execution.txn.assign_xid()?;
    let mut queued = Queued::default();
    let mut target = tid;
    let mut new = assigned(execution, plan, found)?;
    loop {
        let mut payload = Vec::new();
        let is_assigned = long_values::assigned(table, &plan.assignments);
        let written = long_values::encode_new(execution, table, target, &new, is_assigned, &mut payload)?;
        let changed = match plan.changes_indexed_columns {
            true => changed_between(table, &found.row, &new, &execution.eval)?,
            false => ChangedColumns::NotIndexed,
        };
        let outcome = heap.update(&execution.txn.context(), target, &payload, changed);
        match outcome.map_err(storage_error)? {
            UpdateOutcome::Updated { tid, hot } => {
                mark_written(execution, table, target)?;
                execution.txn.note_in_tags();
                queued.release(execution.txn);
                long_values::delete_of(execution, table, target, Some(&payload))?;
                if !hot && table.has_indexes() {
                    insert_entries(execution, table, &new, tid)?;
                }
                if concern_update(execution, table, &plan.assignments) {
                    let before = &found.row[..found.width];
                    references::row_replaced(execution, table, (before, &new), tid)?;
                }
                return Ok(Some((new, tid)));
            }
            UpdateOutcome::SelfModified => {
                long_values::withdraw(execution.txn, table, written)?;
                break;
            }
            UpdateOutcome::Wait(other) => {
                long_values::withdraw(execution.txn, table, written)?;
                execution.wait_for_row(table, target, other, LockWaitPolicy::Block, &mut queued)?;
            }
            UpdateOutcome::Deleted => {
                execution.check_concurrent("delete")?;
                long_values::withdraw(execution.txn, table, written)?;
                break;
            }
            UpdateOutcome::Changed { latest } => {
                execution.check_concurrent("update")?;
                long_values::withdraw(execution.txn, table, written)?;
                let Some(newest) = found.follow(execution, &plan.scan, latest, &mut queued)? else {
                    break;
                };
                target = newest;
                new = assigned(execution, plan, found)?;
            }
        }
    }
    queued.release(execution.txn);
    Ok(None)
}

/// The columns of the new version of the row at hand.
fn assigned(execution: &mut Execution<'_>, plan: &UpdatePlan, found: &Found<'_>) -> Result<Vec<Value>> {
    let queries = &found.plan.row_queries;
    assigned_by(
        execution,
        &plan.scan.table,
        &plan.assignments,
        queries,
        &found.row,
    )
}

/// The columns of the new version of a table's row, by these assignments and the queries beside them. `row` begins with its
/// columns.
pub(super) fn assigned_by(
    execution: &mut Execution<'_>,
    table: &TableDef,
    assignments: &[(u16, Expr)],
    row_queries: &[(Subquery, usize)],
    row: &[Value],
) -> Result<Vec<Value>> {
    let mut new = row[..table.columns.len()].to_vec();
    let mut texts = TextsTogether::default();
    execution.evaluating(|context| {
        let mut extended = Vec::new();
        if !row_queries.is_empty() {
            extended.extend_from_slice(row);
            for (query, width) in row_queries {
                extended.extend(query.row_values(*width, row, context)?);
            }
        }
        let row = if extended.is_empty() { row } else { &extended };
        for (column, expr) in assignments {
            let value = Expr::eval(expr, row, context)?;
            texts.add(&value)?;
            new[usize::from(*column)] = value;
        }
        Ok(())
    })?;
    generate(table, &mut new, &execution.eval)?;
    let given = GivenColumns::Assigned(assignments);
    check_not_null(execution, table, &new, given)?;
    check_constraints(execution, table, &new, given)?;
    Ok(new)
}

/// Runs a DELETE; the number of rows.
pub(super) fn delete(
    execution: &mut Execution<'_>,
    plan: &DeletePlan,
    joined: &JoinedRows,
    sink: &mut select::Sink<'_>,
) -> Result<u64> {
    let mut found = Found::open(execution, joined, &plan.scan)?;
    let mut count = 0;
    while let Some(tid) = found.next(execution)? {
        let before = found.row[..=found.width].to_vec();
        if delete_row(execution, plan, tid, &mut found)? {
            count += 1;
            row_deleted(execution, &plan.scan.table, &found.row[..found.width])?;
            if let Some(returning) = &plan.returning {
                send(execution, returning, &found.row, sink)?;
            }
        }
        found.row[..=found.width].clone_from_slice(&before);
    }
    execution
        .txn
        .count_rows(plan.scan.table.oid, RowChanges::deleted(count));
    Ok(count)
}

/// Deletes the row at hand; `false` if it is not to be deleted.
fn delete_row(
    execution: &mut Execution<'_>,
    plan: &DeletePlan,
    tid: Tid,
    found: &mut Found<'_>,
) -> Result<bool> {
    let table = &*plan.scan.table;
    let heap = Heap::new(heap_rel(table));
    execution.txn.assign_xid()?;
    let mut queued = Queued::default();
    let mut target = tid;
    let deleted = loop {
        let outcome = heap.delete(&execution.txn.context(), target);
        match outcome.map_err(storage_error)? {
            DeleteOutcome::Deleted => break true,
            DeleteOutcome::SelfModified => break false,
            DeleteOutcome::Wait(other) => {
                execution.wait_for_row(table, target, other, LockWaitPolicy::Block, &mut queued)?;
            }
            DeleteOutcome::Gone => {
                execution.check_concurrent("delete")?;
                break false;
            }
            DeleteOutcome::Changed { latest } => {
                execution.check_concurrent("update")?;
                let Some(newest) = found.follow(execution, &plan.scan, latest, &mut queued)? else {
                    break false;
                };
                target = newest;
            }
        }
    };
    queued.release(execution.txn);
    if deleted {
        mark_written(execution, table, target)?;
        long_values::delete_of(execution, table, target, None)?;
    }
    Ok(deleted)
}

fn send(
    execution: &mut Execution<'_>,
    returning: &Returning,
    row: &[Value],
    sink: &mut select::Sink<'_>,
) -> Result<()> {
    let output = execution.evaluating(|context| {
        let exprs = returning.projection.iter();
        exprs
            .map(|expr| expr.eval(row, context))
            .collect::<Result<Vec<_>>>()
    })?;
    sink(execution, &output)
}
