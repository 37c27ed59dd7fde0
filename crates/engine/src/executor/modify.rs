//! INSERT, UPDATE, DELETE.

use clearway_storage::heap::{ChangedColumns, DeleteOutcome, Heap, Tid, UpdateOutcome};

use crate::convert::storage_error;
use crate::executor::changed_columns::changed_columns;
use crate::executor::check_option::check_row;
use crate::executor::checks::check_constraints;
use crate::executor::generated::{add_generated, generate};
use crate::executor::long_values;
use crate::executor::marks::{mark_added, mark_written};
use crate::executor::modify_joined;
use crate::executor::not_null::check_not_null;
use crate::executor::on_conflict::{self, Stored};
use crate::executor::place::place_value;
use crate::executor::references::{self, concern_update, row_deleted, row_stored};
use crate::executor::scan::{self, LedBy, Scan, TO_CHANGE};
use crate::executor::shown_values::GivenColumns;
use crate::executor::unique::insert_entries;
use crate::executor::{Execution, Queued, evaluate_row, heap_rel, select};
use crate::transaction::RowChanges;
use clearway_sql::TableDef;
use clearway_sql::error::Result;
use clearway_sql::expr::Expr;
use clearway_sql::plan::{
    ConflictAction, DeletePlan, InsertPlan, InsertSource, LockWaitPolicy, Returning, TableScan, UpdatePlan,
};
use clearway_sql::value::sent::is_long;
use clearway_sql::value::{Decoded, Rewrite, TextsTogether, Value};

/// Runs an INSERT; the number of rows.
pub(crate) fn insert(
    execution: &mut Execution<'_>,
    plan: &InsertPlan,
    sink: &mut select::Sink<'_>,
) -> Result<u64> {
    let (mut inserted, mut updated, mut selected) = (0, 0, 0);
    let mut one = |execution: &mut Execution<'_>, exprs: &[Expr], input: &mut [Value]| -> Result<()> {
        let mut row = execution.scratch.rows.pop().unwrap_or_default();
        Value::clear_row(&mut row);
        if input.iter().any(is_long) {
            select::take_row(execution, exprs, input, &mut row)?;
        } else if execution.subqueries.is_empty() {
            evaluate_row(exprs, input, &execution.eval, &mut row)?;
        } else {
            execution.evaluating(|context| evaluate_row(exprs, input, context, &mut row))?;
        }
        if plan.generates {
            generate(&plan.table, &mut row, &execution.eval)?;
        }
        // The place, and whether the row has been locked before it was updated.
        let stored;
        let mut given = GivenColumns::Inserted;
        match &plan.conflict {
            None => {
                stored = (insert_row(execution, &plan.table, &row)?, false);
                inserted += 1;
            }
            Some(conflict) => match on_conflict::insert_or(execution, plan, conflict, &row)? {
                Stored::Inserted(tid) => {
                    stored = (tid, false);
                    inserted += 1;
                }
                Stored::Updated(new, tid) => {
                    stored = (tid, true);
                    updated += 1;
                    row = new;
                    given = GivenColumns::Assigned(conflict.action.assignments());
                }
                Stored::Selected(found, tid) => {
                    let is_locked = matches!(
                        &conflict.action,
                        ConflictAction::Select(select) if select.lock.is_some()
                    );
                    stored = (tid, is_locked);
                    selected += 1;
                    row = found;
                    given = GivenColumns::Assigned(conflict.action.assignments());
                }
                Stored::LeftOut => {
                    keep_buffer(execution, row);
                    return Ok(());
                }
            },
        }
        if let Some(checks) = &plan.checks {
            check_row(execution, &plan.table, checks, &row, given)?;
        }
        if let Some(returning) = &plan.returning {
            if returning.tells_place {
                let (tid, is_locked) = stored;
                let locker = execution.txn.context().xid.filter(|_| is_locked);
                row.push(place_value(tid));
                row.push(Value::Oid(locker.map_or(0, |xid| xid.0 as u32)));
            }
            if row.iter().any(is_long) {
                let mut output = Vec::new();
                select::take_row(execution, &returning.projection, &mut row, &mut output)?;
                sink(execution, &output)?;
            } else {
                send(execution, returning, &row, sink)?;
            }
        }
        keep_buffer(execution, row);
        Ok(())
    };
    match &plan.source {
        InsertSource::Rows(rows) => {
            for exprs in rows {
                execution.tick()?;
                one(execution, exprs, &mut [])?;
            }
        }
        InsertSource::Select {
            select: query,
            columns,
        } => {
            select::run_giving(execution, query, &mut |execution, row| {
                one(execution, columns, row)
            })?;
        }
    }
    let changes = RowChanges {
        inserted,
        updated,
        deleted: 0,
    };
    execution.txn.count_rows(plan.table.oid, changes);
    Ok(changes.count() + selected)
}

/// Keeps the buffer of a row for the next one, without what the row has on the heap: the session may have no other
/// statement for long.
#[inline]
fn keep_buffer(execution: &mut Execution<'_>, mut row: Vec<Value>) {
    Value::clear_row(&mut row);
    execution.scratch.rows.push(row);
}

/// Stores a row and its index entries.
pub(crate) fn insert_row(execution: &mut Execution<'_>, table: &TableDef, row: &[Value]) -> Result<Tid> {
    check_not_null(execution, table, row, GivenColumns::Inserted)?;
    check_constraints(execution, table, row, GivenColumns::Inserted)?;
    execution.txn.assign_xid()?;
    let mut payload = std::mem::take(&mut execution.scratch.payload);
    long_values::encode(execution.txn, execution.interrupts, table, row, &mut payload)?;
    let heap = Heap::new(heap_rel(table));
    let stored = heap.insert(&execution.txn.context(), &payload);
    execution.scratch.payload = payload;
    let tid = stored.map_err(storage_error)?;
    mark_added(execution, table)?;
    insert_entries(execution, table, row, tid)?;
    row_stored(execution, table, row, tid)?;
    Ok(tid)
}

fn send(
    execution: &mut Execution<'_>,
    returning: &Returning,
    row: &[Value],
    sink: &mut select::Sink<'_>,
) -> Result<()> {
    let mut output = Vec::with_capacity(returning.projection.len());
    execution.evaluating(|context| evaluate_row(&returning.projection, row, context, &mut output))?;
    sink(execution, &output)
}

/// Runs an UPDATE; the number of rows.
pub(crate) fn update(
    execution: &mut Execution<'_>,
    plan: &UpdatePlan,
    sink: &mut select::Sink<'_>,
) -> Result<u64> {
    if let Some(joined) = &plan.joined {
        return modify_joined::update(execution, plan, joined, sink);
    }
    let mut rows = Scan::open(execution, &plan.scan)?;
    rows.keep_payload(execution);
    let mut changes = std::mem::take(&mut execution.scratch.changes);
    let mut count = 0;
    while let Some(tid) = rows.next(execution)? {
        if update_row(execution, plan, tid, &rows, &mut changes)? {
            count += 1;
            if let Some(checks) = &plan.checks {
                let row = execution.whole_row(&plan.scan.table, &changes.payload)?;
                let given = GivenColumns::Assigned(&plan.assignments);
                check_row(execution, &plan.scan.table, checks, &row, given)?;
            }
            if let Some(returning) = &plan.returning {
                let row = execution.whole_row(&plan.scan.table, &changes.payload)?;
                send(execution, returning, &row, sink)?;
            }
        }
    }
    rows.close(execution);
    changes.forget_values();
    execution.scratch.changes = changes;
    execution
        .txn
        .count_rows(plan.scan.table.oid, RowChanges::updated(count));
    Ok(count)
}

/// Buffers of an UPDATE.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    values: Vec<(u16, Value)>,
    payload: Vec<u8>,
    /// The way in which the new version comes from the old one.
    rewrite: Rewrite,
    /// The values of the new version that were stored apart.
    written: long_values::Written,
}

/// Updates one row that the scan has found; `false` if it turned out that it is not to be updated.
fn update_row(
    execution: &mut Execution<'_>,
    plan: &UpdatePlan,
    tid: Tid,
    found: &Scan<'_>,
    changes: &mut Changes,
) -> Result<bool> {
    let table = &*plan.scan.table;
    let heap = Heap::new(heap_rel(table));
    // At the first row: a statement that changes nothing leaves no trace in the log.
    execution.txn.assign_xid()?;
    let mut queued = Queued::default();
    let mut target = tid;
    let mut newer: Option<scan::Newest> = None;
    let mut stale = true;
    let mut changed = ChangedColumns::NotIndexed;
    loop {
        if stale {
            let (row, payload) = match &newer {
                Some(newer) => (newer.row.as_slice(), newer.payload.as_slice()),
                None => (found.row(), found.payload()),
            };
            changes.assign(execution, plan, row, payload)?;
            changes.shorten(execution, table, payload)?;
            if plan.changes_indexed_columns {
                changed = changed_columns(execution, table, payload, &changes.payload)?;
            }
            stale = false;
        }
        let outcome = heap.update(&execution.txn.context(), target, &changes.payload, changed);
        match outcome.map_err(storage_error)? {
            UpdateOutcome::Updated { tid, hot } => {
                mark_written(execution, table, target)?;
                queued.release(execution.txn);
                changes.written.clear();
                if changes.rewrite != Rewrite::Patched {
                    let replaced = newer.as_ref().map_or(found.payload(), |newer| &newer.payload);
                    long_values::delete_replaced(execution, table, replaced, Some(&changes.payload))?;
                }
                if changed != ChangedColumns::NotIndexed {
                    execution.txn.note_in_tags();
                } else if execution.txn.row_is_unproven()
                    && plan.assignments.iter().all(|(_, expr)| expr.is_repeatable())
                    && table.checks.iter().all(|check| check.expr.is_repeatable())
                {
                    let mut other = Changes::default();
                    prove_row(
                        execution,
                        &plan.scan,
                        found.led_by(),
                        target,
                        |execution, row, payload| {
                            other.assign(execution, plan, row, payload)?;
                            Ok(other.rewrite != Rewrite::TooLong)
                        },
                    )?;
                }
                if !hot && table.has_indexes() {
                    let row = execution.row_for_indexes(table, &changes.payload)?;
                    insert_entries(execution, table, &row, tid)?;
                }
                if concern_update(execution, table, &plan.assignments) {
                    let before = newer.as_ref().map_or(found.payload(), |newer| &newer.payload);
                    let before = execution.whole_row(table, before)?;
                    let after = execution.whole_row(table, &changes.payload)?;
                    references::row_replaced(execution, table, (&before, &after), tid)?;
                }
                return Ok(true);
            }
            UpdateOutcome::SelfModified => {
                queued.release(execution.txn);
                changes.withdraw(execution, table)?;
                return Ok(false);
            }
            UpdateOutcome::Wait(other) => {
                execution.wait_for_row(table, target, other, LockWaitPolicy::Block, &mut queued)?;
            }
            UpdateOutcome::Deleted => {
                execution.check_concurrent("delete")?;
                queued.release(execution.txn);
                changes.withdraw(execution, table)?;
                return Ok(false);
            }
            UpdateOutcome::Changed { latest } => {
                execution.check_concurrent("update")?;
                changes.withdraw(execution, table)?;
                newer = scan::newest(execution, &plan.scan, latest, TO_CHANGE, &mut queued)?;
                let Some(found) = &newer else {
                    queued.release(execution.txn);
                    return Ok(false);
                };
                target = found.tid;
                stale = true;
            }
        }
    }
}

impl Changes {
    /// Its buffers stay with the session, and what the rows had on the heap does not.
    #[inline]
    fn forget_values(&mut self) {
        while let Some((_, value)) = self.values.pop() {
            value.discard();
        }
    }

    /// The new version of a row, by the plan's assignments.
    fn assign(
        &mut self,
        execution: &Execution<'_>,
        plan: &UpdatePlan,
        row: &[Value],
        payload: &[u8],
    ) -> Result<()> {
        let table = &*plan.scan.table;
        self.forget_values();
        let mut texts = TextsTogether::default();
        for (column, expr) in &plan.assignments {
            let value = expr.eval(row, &execution.eval)?;
            texts.add(&value)?;
            self.values.push((*column, value));
        }
        if plan.generates {
            add_generated(execution, table, payload, &mut self.values)?;
        }
        let given = GivenColumns::Assigned(&plan.assignments);
        check_assigned(execution, table, payload, &self.values, given)?;
        self.rewrite =
            table
                .codec
                .update_within(payload, &self.values, long_values::ROW_TARGET, &mut self.payload)?;
        Ok(())
    }

    /// Compresses the new version of the row `old`, or stores parts of it apart, if it is too long as it is.
    #[inline]
    fn shorten(&mut self, execution: &Execution<'_>, table: &TableDef, old: &[u8]) -> Result<()> {
        if self.rewrite == Rewrite::TooLong {
            let changed = (old, &mut self.values);
            let (txn, interrupts) = (&*execution.txn, execution.interrupts);
            self.written = long_values::encode_changed(txn, interrupts, table, changed, &mut self.payload)?;
        }
        Ok(())
    }

    /// Takes back what was stored apart for a version that is not stored (V2 of [`long_values`]).
    fn withdraw(&mut self, execution: &Execution<'_>, table: &TableDef) -> Result<()> {
        match self.written.is_empty() {
            true => Ok(()),
            false => long_values::withdraw(execution.txn, table, std::mem::take(&mut self.written)),
        }
    }
}

/// Proves, if it can, that the row changed just now counts as one whichever of the commits that were seen for it a
/// crash takes back: each version of it that a crash may leave satisfies WHERE, and `change` succeeds on it. `target`
/// is the version that was changed; the statement has evaluated both on it. The proof as a whole: `commit::answers` of
/// the storage.
#[cold]
fn prove_row(
    execution: &mut Execution<'_>,
    scan: &TableScan,
    led_by: Option<LedBy>,
    target: Tid,
    mut change: impl FnMut(&Execution<'_>, &[Value], &[u8]) -> Result<bool>,
) -> Result<()> {
    let Some(LedBy {
        root,
        row: row_in_hand,
    }) = led_by
    else {
        return Ok(());
    };
    if !scan.recheck.as_ref().is_none_or(Expr::is_repeatable) {
        return Ok(());
    }
    let table = &*scan.table;
    let mut payloads = Vec::new();
    let are_all = Heap::new(heap_rel(table))
        .survivors(&execution.txn.context(), root, target, &mut payloads)
        .map_err(storage_error)?;
    let mut row = vec![Value::Null; table.columns.len()];
    let mut counts = |payload: &[u8]| -> Result<bool> {
        // A value apart may be gone with a version that the snapshot does not see.
        if table.codec.decode(payload, &scan.needed, &mut row)? == Decoded::Apart {
            return Ok(false);
        }
        let passes = match &scan.recheck {
            Some(recheck) => recheck.passes(&row, &execution.eval)?,
            None => true,
        };
        Ok(passes && change(execution, &row, payload)?)
    };
    // An error on another version is not the statement's: the row is not proven.
    if are_all && payloads.iter().all(|payload| counts(payload).unwrap_or(false)) {
        execution.txn.prove_row(row_in_hand);
    }
    Ok(())
}

fn check_assigned(
    execution: &Execution<'_>,
    table: &TableDef,
    old: &[u8],
    values: &[(u16, Value)],
    given: GivenColumns<'_>,
) -> Result<()> {
    let missing =
        |(column, value): &(u16, Value)| value.is_null() && table.columns[usize::from(*column)].not_null;
    if !values.iter().any(missing) && table.checks.is_empty() {
        return Ok(());
    }
    let mut row = execution.whole_row(table, old)?;
    for (column, value) in values {
        row[usize::from(*column)] = value.clone();
    }
    check_not_null(execution, table, &row, given)?;
    check_constraints(execution, table, &row, given)
}

/// Runs a DELETE; the number of rows.
pub(crate) fn delete(
    execution: &mut Execution<'_>,
    plan: &DeletePlan,
    sink: &mut select::Sink<'_>,
) -> Result<u64> {
    if let Some(joined) = &plan.joined {
        return modify_joined::delete(execution, plan, joined, sink);
    }
    let mut rows = Scan::open(execution, &plan.scan)?;
    let mut count = 0;
    while let Some(tid) = rows.next(execution)? {
        if let Some(newer) = delete_row(execution, plan, tid, rows.led_by())? {
            count += 1;
            let row = newer.as_deref().unwrap_or(rows.row());
            row_deleted(execution, &plan.scan.table, row)?;
            if let Some(returning) = &plan.returning {
                let row = newer.unwrap_or_else(|| rows.row().to_vec());
                send(execution, returning, &row, sink)?;
            }
        }
    }
    rows.close(execution);
    execution
        .txn
        .count_rows(plan.scan.table.oid, RowChanges::deleted(count));
    Ok(count)
}

/// Deletes one row that the scan has found. `None`: it turned out that it is not to be deleted. The row inside is the
/// newer version, if it was that which was deleted.
fn delete_row(
    execution: &mut Execution<'_>,
    plan: &DeletePlan,
    tid: Tid,
    led_by: Option<LedBy>,
) -> Result<Option<Option<Vec<Value>>>> {
    let table = &*plan.scan.table;
    let heap = Heap::new(heap_rel(table));
    // At the first row: a statement that changes nothing leaves no trace in the log.
    execution.txn.assign_xid()?;
    let mut queued = Queued::default();
    let mut target = tid;
    let mut newer = None;
    let deleted = loop {
        match heap
            .delete(&execution.txn.context(), target)
            .map_err(storage_error)?
        {
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
                let found = scan::newest(execution, &plan.scan, latest, TO_CHANGE, &mut queued)?;
                let Some(found) = found else { break false };
                target = found.tid;
                newer = Some(found.row);
            }
        }
    };
    queued.release(execution.txn);
    if deleted {
        mark_written(execution, table, target)?;
        long_values::delete_of(execution, table, target, None)?;
    }
    if deleted && execution.txn.row_is_unproven() {
        prove_row(execution, &plan.scan, led_by, target, |_, _, _| Ok(true))?;
    }
    Ok(deleted.then_some(newer))
}
