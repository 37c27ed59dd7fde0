//! INSERT … ON CONFLICT.
//!
//! Invariant: a row is stored under a key of an arbiter index only if no other row has the key. Where two transactions
//! insert the same key at once, the second one finds the row of the first: there is neither an error of uniqueness nor a
//! lost update.
//!
//! 1. The arbiters are asked for a row with the same key. One that depends on a running transaction is waited for, with
//!    nothing of this row stored: two that wait for each other's rows in one statement would be a deadlock without need.
//! 2. There is none: the row is stored, and its entries. The tree looks once more under the leaf's latch. If a row of
//!    another transaction has come meanwhile, this one is *withdrawn* ([`Heap::withdraw`]: no transaction will see it or
//!    wait for it), and all begins again.
//! 3. There is one, and DO NOTHING: the row is left out.
//! 4. There is one, and DO UPDATE: it is locked. If it has been changed or deleted meanwhile, all begins again. The
//!    snapshot does not matter in READ COMMITTED: the row is updated as it is now. WHERE may leave it as it is; its lock
//!    stays.
//! 5. There is one, and DO SELECT: with FOR it is locked as in step 4. Without, it is read as it is now: a row that has a key
//!    is there for a transaction of READ COMMITTED, whatever its statement's snapshot shows.
//!
//! A deferrable constraint is no arbiter: two rows may have its key until it is checked. A row that comes under a key of
//! one is noted once it is stored for good: a row that is withdrawn needs no check.
//!
//! REPEATABLE READ gives up with 40001 where the row that is there is not the one that its snapshot shows. A row that this
//! statement has stored or updated itself is not updated again (21000).

use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::{
    ConflictAction, ConflictSelect, ConflictUpdate, InsertPlan, LockWaitPolicy, OnConflict,
};
use clearway_sql::value::Value;
use clearway_sql::{IndexDef, IndexEntry, TableDef};
use clearway_storage::btree::{BTree, InsertOutcome};
use clearway_storage::heap::{ChangedColumns, Heap, LockOutcome, Rival, Tid, UpdateOutcome, VersionOutcome};
use clearway_txn::{RowLockMode, Xid};

use crate::convert::{index_error, storage_error};
use crate::executor::changed_columns::changed_between;
use crate::executor::checks::check_constraints;
use crate::executor::long_values;
use crate::executor::marks::{mark_added, mark_key, mark_read, mark_written};
use crate::executor::modify_joined::assigned_by;
use crate::executor::not_null::check_not_null;
use crate::executor::place::place_value;
use crate::executor::references::{self, concern_update, row_stored};
use crate::executor::scan::row_lock_mode;
use crate::executor::shown_values::GivenColumns;
use crate::executor::unique::{insert_entries, insert_in_doubt, note_doubt, refers_to, violation};
use crate::executor::{Execution, Queued, heap_rel};

/// The outcome for a row that was to be inserted.
pub(super) enum Stored {
    /// It is there, at this place.
    Inserted(Tid),
    /// The row that was there is this now, at this place.
    Updated(Vec<Value>, Tid),
    /// The row that was there, at this place.
    Selected(Vec<Value>, Tid),
    /// Nothing was changed.
    LeftOut,
}

/// The row that has a key of the one to be inserted.
#[derive(Clone, Copy)]
struct RowInTheWay {
    /// The place that index entries lead to.
    root: Tid,
    /// The place of its newest version.
    newest: Tid,
}

/// Inserts a row, or does what ON CONFLICT says.
pub(super) fn insert_or(
    execution: &mut Execution<'_>,
    plan: &InsertPlan,
    conflict: &OnConflict,
    row: &[Value],
) -> Result<Stored> {
    let table = &*plan.table;
    check_not_null(execution, table, row, GivenColumns::Inserted)?;
    check_constraints(execution, table, row, GivenColumns::Inserted)?;
    execution.txn.assign_xid()?;
    loop {
        execution.check_interrupts()?;
        let Some(rival) = find_rival(execution, table, conflict, row)? else {
            if let Some(tid) = store(execution, table, conflict, row)? {
                return Ok(Stored::Inserted(tid));
            }
            continue;
        };
        execution.txn.note_in_tags();
        mark_read(execution, table, rival.newest)?;
        let done = match &conflict.action {
            ConflictAction::Nothing => {
                check_seen(execution, table, rival, true)?;
                Some(Stored::LeftOut)
            }
            ConflictAction::Update(update) => update_rival(execution, table, update, rival, row)?,
            ConflictAction::Select(select) => select_rival(execution, table, select, rival, row)?,
        };
        if let Some(stored) = done {
            return Ok(stored);
        }
    }
}

/// Step 1: the row that has a key of this one in an arbiter.
fn find_rival(
    execution: &mut Execution<'_>,
    table: &TableDef,
    conflict: &OnConflict,
    row: &[Value],
) -> Result<Option<RowInTheWay>> {
    let heap = Heap::new(heap_rel(table));
    let (mut key, mut roots) = (Vec::new(), Vec::new());
    for at in &conflict.arbiters {
        let index = &table.indexes[*at];
        if index.check_time.deferrable {
            return Err(deferrable_arbiter(table, index));
        }
        if index.entry(row, &execution.eval, &mut key)? != IndexEntry::Whole {
            continue;
        }
        'again: loop {
            roots.clear();
            BTree::new(index.rel)
                .lookup_apart(execution.storage, &key, &mut roots)
                .map_err(storage_error)?;
            for root in &roots {
                let found = heap.rival(&execution.txn.context(), *root);
                match found.map_err(storage_error)? {
                    Rival::None => {}
                    Rival::Alive(newest) => return Ok(Some(RowInTheWay { root: *root, newest })),
                    Rival::DependsOn(xid) => {
                        wait(execution, xid)?;
                        continue 'again;
                    }
                }
            }
            break;
        }
    }
    Ok(None)
}

fn wait(execution: &mut Execution<'_>, xid: Xid) -> Result<()> {
    execution
        .txn
        .wait_for_transaction(xid, execution.interrupts, execution.lock_timeout)
}

/// Step 2: the row's place; `None` if another row has come meanwhile.
fn store(
    execution: &mut Execution<'_>,
    table: &TableDef,
    conflict: &OnConflict,
    row: &[Value],
) -> Result<Option<Tid>> {
    let heap = Heap::new(heap_rel(table));
    let mut payload = std::mem::take(&mut execution.scratch.payload);
    let written = long_values::encode(execution.txn, execution.interrupts, table, row, &mut payload)?;
    let stored = heap.insert(&execution.txn.context(), &payload);
    execution.scratch.payload = payload;
    let tid = stored.map_err(storage_error)?;
    mark_added(execution, table)?;
    let mut in_doubt = Vec::new();
    for (at, index) in table.written_indexes().enumerate() {
        let is_arbiter = conflict.arbiters.contains(&at);
        match enter(execution, table, index, is_arbiter, row, tid)? {
            Entered::Yes => {}
            Entered::InDoubt => in_doubt.push(index),
            Entered::Withdrawn => {
                long_values::withdraw(execution.txn, table, written)?;
                return Ok(None);
            }
        }
    }
    for index in in_doubt {
        note_doubt(execution, table, index, tid)?;
    }
    row_stored(execution, table, row, tid)?;
    Ok(Some(tid))
}

/// Result of entering a row into an index.
enum Entered {
    Yes,
    /// Under a key of a deferrable constraint that another row may have.
    InDoubt,
    /// The row had to be withdrawn.
    Withdrawn,
}

/// Enters a row into an index.
fn enter(
    execution: &mut Execution<'_>,
    table: &TableDef,
    index: &IndexDef,
    is_arbiter: bool,
    row: &[Value],
    tid: Tid,
) -> Result<Entered> {
    let (tree, heap) = (BTree::new(index.rel), Heap::new(heap_rel(table)));
    let mut key = Vec::new();
    let entry = index.entry(row, &execution.eval, &mut key)?;
    if entry == IndexEntry::Absent {
        return Ok(Entered::Yes);
    }
    mark_key(execution, table, index, &key)?;
    let unique = (index.unique && entry == IndexEntry::Whole).then_some(heap_rel(table));
    loop {
        let context = execution.txn.context();
        let outcome = tree.insert(&context, &key, tid, unique);
        let outcome = outcome.map_err(|error| refers_to(index_error(error, table, index), table, tid));
        match outcome? {
            InsertOutcome::Inserted => return Ok(Entered::Yes),
            _ if index.check_time.deferrable => {
                insert_in_doubt(execution, table, index, &key, tid)?;
                return Ok(Entered::InDoubt);
            }
            InsertOutcome::Duplicate { .. } if !is_arbiter => {
                execution.txn.check_serializable()?;
                return Err(violation(execution, table, index, row));
            }
            InsertOutcome::WaitFor(xid) if !is_arbiter => wait(execution, xid)?,
            // Step 1 waits.
            InsertOutcome::Duplicate { .. } | InsertOutcome::WaitFor(_) => {
                heap.withdraw(&context, tid).map_err(storage_error)?;
                return Ok(Entered::Withdrawn);
            }
        }
    }
}

/// Step 4; `None`: the row has changed, and all begins again.
fn update_rival(
    execution: &mut Execution<'_>,
    table: &TableDef,
    update: &ConflictUpdate,
    in_the_way: RowInTheWay,
    row: &[Value],
) -> Result<Option<Stored>> {
    let heap = Heap::new(heap_rel(table));
    let rival = in_the_way.newest;
    let set = &update.set;
    // As strong as the update that may follow.
    let mode = match table.may_change_row_key(set.values.iter().map(|(column, _)| *column)) {
        true => RowLockMode::Update,
        false => RowLockMode::NoKeyUpdate,
    };
    if !lock_rival(execution, table, rival, mode, "UPDATE")? {
        return Ok(None);
    }
    check_seen(execution, table, in_the_way, false)?;
    let found = heap.version(&execution.txn.context(), rival, mode, |bytes| bytes.to_vec());
    let VersionOutcome::NoConflict(payload) = found.map_err(storage_error)? else {
        return Err(EngineError::internal("a row that is locked has changed"));
    };
    let mut both = execution.whole_row(table, &payload)?;
    both.extend_from_slice(row);
    both.push(place_value(rival));
    if let Some(condition) = &update.condition
        && !execution.evaluating(|context| condition.passes(&both, context))?
    {
        return Ok(Some(Stored::LeftOut));
    }
    let new = assigned_by(execution, table, &set.values, &set.row_queries, &both)?;
    let changed = match set.changes_indexed_columns {
        true => changed_between(table, &both, &new, &execution.eval)?,
        false => ChangedColumns::NotIndexed,
    };
    let (old, mut payload) = (payload, Vec::new());
    let is_assigned = long_values::assigned(table, &set.values);
    let written = long_values::encode_new(execution, table, rival, &new, is_assigned, &mut payload)?;
    let outcome = heap.update(&execution.txn.context(), rival, &payload, changed);
    match outcome.map_err(storage_error)? {
        UpdateOutcome::Updated { tid, hot } => {
            mark_written(execution, table, rival)?;
            long_values::delete_replaced(execution, table, &old, Some(&payload))?;
            if !hot {
                insert_entries(execution, table, &new, tid)?;
            }
            if concern_update(execution, table, &set.values) {
                let before = &both[..table.columns.len()];
                references::row_replaced(execution, table, (before, &new), tid)?;
            }
            Ok(Some(Stored::Updated(new, tid)))
        }
        // A statement of WITH has changed it, for a query of SET: this one comes too late.
        UpdateOutcome::SelfModified => {
            long_values::withdraw(execution.txn, table, written)?;
            Ok(Some(Stored::LeftOut))
        }
        // No other transaction can.
        _ => Err(EngineError::internal("a row that is locked has changed")),
    }
}

/// Step 5; `None`: the row has changed, and all begins again.
fn select_rival(
    execution: &mut Execution<'_>,
    table: &TableDef,
    select: &ConflictSelect,
    in_the_way: RowInTheWay,
    row: &[Value],
) -> Result<Option<Stored>> {
    let rival = in_the_way.newest;
    if let Some(strength) = select.lock
        && !lock_rival(execution, table, rival, row_lock_mode(strength), "SELECT")?
    {
        return Ok(None);
    }
    check_seen(execution, table, in_the_way, select.lock.is_none())?;
    let heap = Heap::new(heap_rel(table));
    let found = heap.row_at(execution.storage, rival, <[u8]>::to_vec);
    let Some(payload) = found.map_err(storage_error)? else {
        return Ok(None);
    };
    let mut both = execution.whole_row(table, &payload)?;
    if let Some(condition) = &select.condition {
        both.extend_from_slice(row);
        both.push(place_value(rival));
        if !execution.evaluating(|context| condition.passes(&both, context))? {
            return Ok(Some(Stored::LeftOut));
        }
        both.truncate(table.columns.len());
    }
    Ok(Some(Stored::Selected(both, rival)))
}

/// Locks the row that is there; `false` if it has been changed or deleted meanwhile. `action`: the word behind DO.
fn lock_rival(
    execution: &mut Execution<'_>,
    table: &TableDef,
    rival: Tid,
    mode: RowLockMode,
    action: &str,
) -> Result<bool> {
    let heap = Heap::new(heap_rel(table));
    let mut queued = Queued::default();
    let mut at_front = false;
    let is_locked = loop {
        let outcome = heap.lock_row(&execution.txn.context(), rival, mode, at_front);
        match outcome.map_err(storage_error)? {
            LockOutcome::Locked => break true,
            LockOutcome::SelfModified => return Err(second_time(action)),
            LockOutcome::Wait(other) => {
                execution.wait_for_row(table, rival, other, LockWaitPolicy::Block, &mut queued)?;
            }
            LockOutcome::Queue => {
                execution.queue_for_row(table, rival, &mut queued)?;
                at_front = true;
            }
            LockOutcome::Deleted => {
                execution.check_concurrent("delete")?;
                break false;
            }
            LockOutcome::Changed { .. } => {
                execution.check_concurrent("update")?;
                break false;
            }
        }
    };
    queued.release(execution.txn);
    Ok(is_locked)
}

/// 40001 under REPEATABLE READ for a row that its snapshot does not show; `own`: unless this statement has made it.
fn check_seen(execution: &mut Execution<'_>, table: &TableDef, rival: RowInTheWay, own: bool) -> Result<()> {
    if !execution.txn.isolation.keeps_snapshot() {
        return Ok(());
    }
    let heap = Heap::new(heap_rel(table));
    let context = execution.txn.context();
    // From the root: a version behind HOT updates is found by no other place.
    let seen = heap.fetch(&context, rival.root, &mut |found, _: &[u8]| found);
    if seen.map_err(storage_error)? == Some(rival.newest) {
        return Ok(());
    }
    let state = heap.version(&context, rival.newest, RowLockMode::Update, |_| ());
    if own && state.map_err(storage_error)? == VersionOutcome::SelfModified {
        return Ok(());
    }
    execution.check_concurrent("update")
}

/// 55000
#[cold]
fn deferrable_arbiter(table: &TableDef, index: &IndexDef) -> EngineError {
    EngineError::new(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters",
    )
    .with_table(&table.schema.name, &table.name)
    .with_constraint(&index.name)
}

/// 21000
#[cold]
fn second_time(action: &str) -> EngineError {
    EngineError::new(
        SqlState::from_code("21000"),
        format!("ON CONFLICT DO {action} command cannot affect row a second time"),
    )
    .with_hint(
        "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.",
    )
}
