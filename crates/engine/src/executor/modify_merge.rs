//! MERGE: for each row of the source the first WHEN that fits it.
//!
//! Invariant: each row of the target is changed at most once, and by a WHEN that fits its newest version.
//!
//! 1. A row with a place is matched. The first WHEN MATCHED whose condition is true of it tells what to do; nothing is
//!    locked before that.
//! 2. The heap finds another transaction in the way: it is waited for, as in `modify`. If the row is as it was, the action
//!    is tried again.
//! 3. The row was changed meanwhile: under REPEATABLE READ that is 40001. Under READ COMMITTED its newest version takes the
//!    place of the one that was found. If ON holds with it, go on with 1: another WHEN may fit now.
//! 4. If ON does not hold, or the row was deleted, the row of the source is not matched any more.
//! 5. A row that is not matched goes to the first WHEN NOT MATCHED whose condition is true of it.
//! 6. A row that this statement has changed is an error (21000), at whichever version it is met: the outcome would depend
//!    on the order of the source's rows.

use clearway_sql::TableDef;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::{LockWaitPolicy, MergeAction, MergeClause, MergePlan, RowAssignments};
use clearway_sql::value::Value;
use clearway_storage::heap::{ChangedColumns, DeleteOutcome, Heap, Tid, UpdateOutcome};

use crate::convert::storage_error;
use crate::executor::changed_columns::changed_between;
use crate::executor::generated::generate;
use crate::executor::long_values;
use crate::executor::marks::mark_written;
use crate::executor::modify::insert_row;
use crate::executor::modify_joined::{Found, assigned_by};
use crate::executor::references::{self, concern_update, row_deleted};
use crate::executor::scan::{self, Followed, TO_CHANGE};
use crate::executor::unique::insert_entries;
use crate::executor::{Execution, Queued, evaluate_row, heap_rel};
use crate::transaction::RowChanges;

/// Rows that a MERGE has changed.
/// Runs a MERGE; the number of rows that it has inserted, updated or deleted.
pub(crate) fn merge(execution: &mut Execution<'_>, plan: &MergePlan) -> Result<u64> {
    let mut found = Found::open(execution, &plan.joined, &plan.scan)?;
    let mut counts = RowChanges::default();
    while found.advance(execution)? {
        // The join may show the same row of the target again: as the snapshot has it.
        let before = found.row[..=found.width].to_vec();
        let matched = match found.place() {
            Some(tid) => merge_matched(execution, plan, tid, &mut found, &mut counts)?,
            None => false,
        };
        if !matched {
            found.row[..=found.width].fill(Value::Null);
            merge_unmatched(execution, plan, &found, &mut counts)?;
        }
        found.row[..=found.width].clone_from_slice(&before);
    }
    execution.txn.count_rows(plan.scan.table.oid, counts);
    Ok(counts.count())
}

/// The first WHEN of a kind whose condition is true of the row at hand.
fn fitting<'p>(
    execution: &mut Execution<'_>,
    plan: &'p MergePlan,
    matched: bool,
    row: &[Value],
) -> Result<Option<&'p MergeClause>> {
    for clause in plan.clauses.iter().filter(|clause| clause.matched == matched) {
        let fits = match &clause.condition {
            Some(condition) => execution.evaluating(|context| condition.passes(row, context))?,
            None => true,
        };
        if fits {
            return Ok(Some(clause));
        }
    }
    Ok(None)
}

/// Steps 1 to 4 and 6; `false` if the row of the source is not matched any more.
fn merge_matched(
    execution: &mut Execution<'_>,
    plan: &MergePlan,
    tid: Tid,
    found: &mut Found<'_>,
    counts: &mut RowChanges,
) -> Result<bool> {
    let table = &*plan.scan.table;
    let mut queued = Queued::default();
    let mut target = tid;
    let matched = loop {
        let clause = fitting(execution, plan, true, &found.row)?;
        let Some(clause) = clause else { break true };
        let outcome = match &clause.action {
            MergeAction::Nothing | MergeAction::Insert(_) => break true,
            MergeAction::Delete => delete(execution, table, target, found, &mut queued, counts)?,
            MergeAction::Update(set) => update(execution, table, set, target, found, &mut queued, counts)?,
        };
        let latest = match outcome {
            Outcome::Done => break true,
            Outcome::SelfModified => return Err(second_time()),
            Outcome::Deleted => {
                execution.check_concurrent("delete")?;
                break false;
            }
            Outcome::Changed(latest) => {
                execution.check_concurrent("update")?;
                latest
            }
        };
        let followed = scan::followed(execution, &plan.scan, latest, TO_CHANGE, &mut queued)?;
        match followed {
            Followed::Row(newest) if found.passes_with(execution, &newest)? => target = newest.tid,
            Followed::Row(_) | Followed::Left => break false,
            Followed::SelfModified => return Err(second_time()),
        }
    };
    queued.release(execution.txn);
    Ok(matched)
}

/// Step 5.
fn merge_unmatched(
    execution: &mut Execution<'_>,
    plan: &MergePlan,
    found: &Found<'_>,
    counts: &mut RowChanges,
) -> Result<()> {
    let clause = fitting(execution, plan, false, &found.row)?;
    if let Some(MergeAction::Insert(values)) = clause.map(|clause| &clause.action) {
        let mut row = Vec::with_capacity(values.len());
        execution.evaluating(|context| evaluate_row(values, &found.row, context, &mut row))?;
        generate(&plan.scan.table, &mut row, &execution.eval)?;
        insert_row(execution, &plan.scan.table, &row)?;
        counts.inserted += 1;
    }
    Ok(())
}

/// The outcome of an action on a row of the target.
enum Outcome {
    Done,
    SelfModified,
    Deleted,
    /// Replaced by this version.
    Changed(Tid),
}

fn update(
    execution: &mut Execution<'_>,
    table: &TableDef,
    set: &RowAssignments,
    target: Tid,
    found: &Found<'_>,
    queued: &mut Queued,
    counts: &mut RowChanges,
) -> Result<Outcome> {
    let heap = Heap::new(heap_rel(table));
    execution.txn.assign_xid()?;
    let new = assigned_by(execution, table, &set.values, &set.row_queries, &found.row)?;
    let mut payload = Vec::new();
    let is_assigned = long_values::assigned(table, &set.values);
    let written = long_values::encode_new(execution, table, target, &new, is_assigned, &mut payload)?;
    let changed = match set.changes_indexed_columns {
        true => changed_between(table, &found.row, &new, &execution.eval)?,
        false => ChangedColumns::NotIndexed,
    };
    let outcome = loop {
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
                if concern_update(execution, table, &set.values) {
                    let before = &found.row[..found.width];
                    references::row_replaced(execution, table, (before, &new), tid)?;
                }
                counts.updated += 1;
                return Ok(Outcome::Done);
            }
            UpdateOutcome::SelfModified => break Outcome::SelfModified,
            UpdateOutcome::Wait(other) => {
                execution.wait_for_row(table, target, other, LockWaitPolicy::Block, queued)?;
            }
            UpdateOutcome::Deleted => break Outcome::Deleted,
            UpdateOutcome::Changed { latest } => break Outcome::Changed(latest),
        }
    };
    long_values::withdraw(execution.txn, table, written)?;
    Ok(outcome)
}

fn delete(
    execution: &mut Execution<'_>,
    table: &TableDef,
    target: Tid,
    found: &Found<'_>,
    queued: &mut Queued,
    counts: &mut RowChanges,
) -> Result<Outcome> {
    let heap = Heap::new(heap_rel(table));
    execution.txn.assign_xid()?;
    loop {
        let outcome = heap.delete(&execution.txn.context(), target);
        match outcome.map_err(storage_error)? {
            DeleteOutcome::Deleted => {
                mark_written(execution, table, target)?;
                long_values::delete_of(execution, table, target, None)?;
                row_deleted(execution, table, &found.row[..found.width])?;
                counts.deleted += 1;
                return Ok(Outcome::Done);
            }
            DeleteOutcome::SelfModified => return Ok(Outcome::SelfModified),
            DeleteOutcome::Wait(other) => {
                execution.wait_for_row(table, target, other, LockWaitPolicy::Block, queued)?;
            }
            DeleteOutcome::Gone => return Ok(Outcome::Deleted),
            DeleteOutcome::Changed { latest } => return Ok(Outcome::Changed(latest)),
        }
    }
}

/// 21000; step 6.
#[cold]
fn second_time() -> EngineError {
    EngineError::new(
        SqlState::from_code("21000"),
        "MERGE command cannot affect row a second time",
    )
    .with_hint("Ensure that not more than one source row matches any one target row.")
}
