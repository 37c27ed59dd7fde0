//! Reading all rows of a table whose definition changes, and writing them anew.
//!
//! W1. The statement has the table for itself, so the rows are those that a snapshot of this moment sees.
//! W2. The rows go into a new relation with new trees, and the old ones go when the transaction commits. A snapshot from
//! before finds its row versions in neither, which rule 4 of [`crate::catalog`] is about.

use std::sync::Arc;

use clearway_sql::value::{ColumnSet, Value};
use clearway_sql::{Attribute, CheckDef, IndexDef, TableDef, TableKind};
use clearway_storage::RelId;
use clearway_storage::heap::Heap;

use crate::catalog::TableEntry;
use crate::convert::storage_error;
use crate::definition::{DefinitionChange, ReadableBy};
use crate::executor::Execution;
use crate::executor::checks::holds;
use crate::executor::long_values::{self, restore};
use clearway_sql::context::EvalContext;
use clearway_sql::error::{EngineError, Result, SqlState};

/// Rows between two looks at the interrupts.
const ROWS_PER_CHECK: usize = 1_024;

/// Makes a row of the new table of one of the old.
type MakeRow<'m> = &'m mut dyn FnMut(Vec<Value>, &EvalContext<'_>) -> Result<Vec<Value>>;

/// Calls `look` for the rows of a table that a snapshot of now sees, up to the first that is an error.
pub(super) fn each_row(
    execution: &mut Execution<'_>,
    table: &TableDef,
    mut look: impl FnMut(&[Value], &EvalContext<'_>) -> Result<()>,
) -> Result<()> {
    let TableKind::Heap { rel } = table.kind else {
        return Ok(());
    };
    let Execution {
        txn,
        eval,
        interrupts,
        ..
    } = execution;
    txn.with_fresh_snapshot(|txn| {
        let context = txn.context();
        let mut rows = Heap::new(rel).scan(&context).map_err(storage_error)?;
        let mut count = 0usize;
        while let Some(row) = rows
            .next(&context, |_, bytes| table.codec.decode_all(bytes))
            .map_err(storage_error)?
        {
            let mut row = row?;
            restore(txn.storage(), interrupts, table, &mut row)?;
            look(&row, eval)?;
            count += 1;
            if count.is_multiple_of(ROWS_PER_CHECK) {
                interrupts.check()?;
            }
        }
        Ok(())
    })
}

impl DefinitionChange<'_, '_, '_> {
    /// 40001 for a snapshot that would not find what is written anew.
    pub(super) fn require_current_snapshot(&self) -> Result<()> {
        match self.execution.txn.snapshot_is_current() {
            true => Ok(()),
            false => Err(EngineError::new(
                SqlState::SERIALIZATION_FAILURE,
                "could not serialize access: a table cannot be rewritten for this transaction's snapshot",
            )),
        }
    }

    /// 23502 if a column is NULL in a row.
    pub(super) fn require_no_nulls(&mut self, table: &TableDef, column: u16) -> Result<()> {
        let TableKind::Heap { rel } = table.kind else {
            return Ok(());
        };
        let mut needed = ColumnSet::new();
        needed.insert(column);
        let mut row = vec![Value::Null; table.columns.len()];
        let interrupts = self.execution.interrupts;
        self.execution.txn.with_fresh_snapshot(|txn| {
            let context = txn.context();
            let mut rows = Heap::new(rel).scan(&context).map_err(storage_error)?;
            let mut count = 0usize;
            while let Some(read) = rows
                .next(&context, |_, bytes| table.codec.decode(bytes, &needed, &mut row))
                .map_err(storage_error)?
            {
                let _ = read?;
                if row[usize::from(column)].is_null() {
                    return Err(has_nulls(table, column));
                }
                count += 1;
                if count.is_multiple_of(ROWS_PER_CHECK) {
                    interrupts.check()?;
                }
            }
            Ok(())
        })
    }

    /// 23514 if one of the constraints that are `chosen` does not hold for a row.
    pub(super) fn require_checked(
        &mut self,
        table: &TableDef,
        chosen: impl Fn(&CheckDef) -> bool,
    ) -> Result<()> {
        let checks: Vec<_> = table.checks.iter().filter(|check| chosen(check)).collect();
        if checks.is_empty() {
            return Ok(());
        }
        each_row(self.execution, table, |row, eval| {
            for check in &checks {
                if !holds(check, row, eval)? {
                    return Err(is_violated(table, check));
                }
            }
            Ok(())
        })
    }

    /// Replaces the definition by `table`, whose rows are made of those that there are, read as those of `before`.
    pub(super) fn rewrite(
        &mut self,
        entry: &TableEntry,
        before: &TableDef,
        mut table: TableDef,
        make: MakeRow<'_>,
    ) -> Result<()> {
        self.require_current_snapshot()?;
        let mut state = self.state()?;
        let rel = self.create_rel(&entry.def.schema)?;
        table.kind = TableKind::Heap { rel: rel.0 };
        table.set_attributes(whole_rows(table.attributes()));
        self.replace_long_rel(&mut table)?;
        self.copy_rows((entry.rel(), before), &table, make)?;
        // The new rows are those of an earlier command for what reads them now.
        self.execution.txn.next_command();
        self.execution.txn.note_dropped(RelId(entry.rel()));
        self.execution.txn.coarsen_all_marks(before);
        table.finish_indexes();
        for place in 0..table.indexes.len() {
            let before = Arc::clone(&table.indexes[place]);
            self.execution.txn.note_dropped(RelId(before.rel));
            let index = IndexDef {
                rel: self.create_tree(&entry.def.schema)?,
                ..(*before).clone()
            };
            self.fill_index(&table, &index)?;
            table.indexes[place] = Arc::new(index);
        }
        let schema = table.schema.clone();
        let before = self.without_statistics(entry);
        self.replace(&mut state, &before, table, ReadableBy::NewSnapshots)?;
        self.keep(state, &schema);
        Ok(())
    }

    fn copy_rows(
        &mut self,
        (old, before): (u32, &TableDef),
        table: &TableDef,
        make: MakeRow<'_>,
    ) -> Result<()> {
        let TableKind::Heap { rel } = table.kind else {
            return Ok(());
        };
        let Execution {
            txn,
            eval,
            interrupts,
            ..
        } = &mut *self.execution;
        txn.with_fresh_snapshot(|txn| {
            let context = txn.context();
            let mut rows = Heap::new(old).scan(&context).map_err(storage_error)?;
            let new = Heap::new(rel);
            let mut payload = Vec::new();
            let mut count = 0usize;
            while let Some(row) = rows
                .next(&context, |_, bytes| before.codec.decode_all(bytes))
                .map_err(storage_error)?
            {
                let mut row = row?;
                restore(txn.storage(), interrupts, before, &mut row)?;
                let row = make(row, eval)?;
                let is_missing = |column: &usize| table.columns[*column].not_null && row[*column].is_null();
                if let Some(column) = (0..row.len()).find(is_missing) {
                    return Err(has_nulls(table, column as u16));
                }
                long_values::encode(txn, interrupts, table, &row, &mut payload)?;
                new.insert(&context, &payload).map_err(storage_error)?;
                count += 1;
                if count.is_multiple_of(ROWS_PER_CHECK) {
                    interrupts.check()?;
                }
            }
            Ok(())
        })
    }

    /// The entry without statistics, which are by the places of columns; their relation goes.
    pub(super) fn without_statistics(&mut self, entry: &TableEntry) -> TableEntry {
        let mut entry = entry.clone();
        if let Some(kept) = entry.statistics.take() {
            self.execution.txn.note_dropped(RelId(kept.rel));
        }
        entry
    }
}

/// The attributes of a table of which each row has all columns, and no place for what was dropped.
fn whole_rows(attributes: Vec<Attribute>) -> Vec<Attribute> {
    let whole = attributes.into_iter().map(|attribute| Attribute {
        segment: attribute.column.map(|_| 0),
        missing: None,
        ..attribute
    });
    whole.collect()
}

/// 23514 for a constraint that rows from before it do not satisfy.
fn is_violated(table: &TableDef, check: &CheckDef) -> EngineError {
    EngineError::new(
        SqlState::CHECK_VIOLATION,
        format!(
            "check constraint \"{}\" of relation \"{}\" is violated by some row",
            check.name, table.name
        ),
    )
    .with_table(&table.schema.name, &table.name)
    .with_constraint(&check.name)
}

/// 23502 for a column that is to be NOT NULL.
pub(super) fn has_nulls(table: &TableDef, column: u16) -> EngineError {
    let name = &table.columns[usize::from(column)].name;
    EngineError::new(
        SqlState::NOT_NULL_VIOLATION,
        format!(
            "column \"{name}\" of relation \"{}\" contains null values",
            table.name
        ),
    )
    .with_table(&table.schema.name, &table.name)
    .with_column(name)
}
