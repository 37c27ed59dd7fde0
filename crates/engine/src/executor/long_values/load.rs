//! Reading values that are stored apart: step 3.

use clearway_sql::TableDef;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::memory;
use clearway_sql::plan::LateColumn;
use clearway_sql::value::long::{Restoring, StoredForm};
use clearway_sql::value::row_value::value_of;
use clearway_sql::value::{ColumnSet, Decoded, Value};
use clearway_storage::Storage;

use crate::convert::storage_error;
use crate::executor::Execution;
use crate::executor::long_values::{heap_of, pieces_of};
use crate::interrupt::Interrupts;

/// Restores all values of a row.
#[cold]
pub(crate) fn restore(
    storage: &Storage,
    interrupts: &Interrupts,
    table: &TableDef,
    row: &mut [Value],
) -> Result<()> {
    for (column, value) in row.iter_mut().enumerate().take(table.columns.len()) {
        restore_value(storage, interrupts, table, column as u16, value)?;
    }
    Ok(())
}

/// Restores the values of a row but those of some columns.
pub(crate) fn restore_all_but(
    storage: &Storage,
    interrupts: &Interrupts,
    table: &TableDef,
    left: &ColumnSet,
    row: &mut [Value],
) -> Result<()> {
    for (column, value) in row.iter_mut().enumerate().take(table.columns.len()) {
        if !left.contains(column as u16) {
            restore_value(storage, interrupts, table, column as u16, value)?;
        }
    }
    Ok(())
}

impl Execution<'_> {
    /// Restores the values of late columns in a row; what stood in their places goes to `places`, with their columns.
    #[inline]
    pub(crate) fn restore_late(
        &self,
        late: &[LateColumn],
        row: &mut [Value],
        places: &mut Vec<(u16, Value)>,
    ) -> Result<()> {
        let is_stored = |late: &LateColumn| matches!(row.get(usize::from(late.at)), Some(Value::Stored(_)));
        if late.iter().any(is_stored) {
            return self.restore_late_here(late, row, places);
        }
        Ok(())
    }

    #[cold]
    fn restore_late_here(
        &self,
        late: &[LateColumn],
        row: &mut [Value],
        places: &mut Vec<(u16, Value)>,
    ) -> Result<()> {
        for LateColumn { at, table, column } in late {
            let value = &mut row[usize::from(*at)];
            if let Value::Stored(_) = value {
                places.push((*at, value.clone()));
                restore_value(self.storage, self.interrupts, table, *column, value)?;
            }
        }
        Ok(())
    }
}

/// The value whose place stands in a late column.
#[cold]
pub(crate) fn restored(
    storage: &Storage,
    interrupts: &Interrupts,
    late: &LateColumn,
    place: &Value,
) -> Result<Value> {
    let mut value = place.clone();
    restore_value(storage, interrupts, &late.table, late.column, &mut value)?;
    Ok(value)
}

/// Restores the values of some columns of a row.
pub(crate) fn restore_columns(
    storage: &Storage,
    interrupts: &Interrupts,
    table: &TableDef,
    columns: &ColumnSet,
    row: &mut [Value],
) -> Result<()> {
    for column in columns.iter() {
        let value = &mut row[usize::from(column)];
        restore_value(storage, interrupts, table, column, value)?;
    }
    Ok(())
}

impl Execution<'_> {
    /// All columns of a row.
    pub(crate) fn whole_row(&self, table: &TableDef, bytes: &[u8]) -> Result<Vec<Value>> {
        whole_row(self.storage, self.interrupts, table, bytes)
    }

    /// A row with those columns that its indexes read.
    pub(crate) fn row_for_indexes(&self, table: &TableDef, bytes: &[u8]) -> Result<Vec<Value>> {
        let mut needed = ColumnSet::new();
        for index in table.all_indexes() {
            index.each_read_column(|column| needed.insert(column));
        }
        let mut row = vec![Value::Null; table.columns.len()];
        if table.codec.decode(bytes, &needed, &mut row)? == Decoded::Apart {
            restore(self.storage, self.interrupts, table, &mut row)?;
        }
        Ok(row)
    }
}

/// All columns of a row.
pub(crate) fn whole_row(
    storage: &Storage,
    interrupts: &Interrupts,
    table: &TableDef,
    bytes: &[u8],
) -> Result<Vec<Value>> {
    let mut row = vec![Value::Null; table.columns.len()];
    let needed = ColumnSet::all(table.columns.len());
    if table.codec.decode(bytes, &needed, &mut row)? == Decoded::Apart {
        restore(storage, interrupts, table, &mut row)?;
    }
    Ok(row)
}

fn restore_value(
    storage: &Storage,
    interrupts: &Interrupts,
    table: &TableDef,
    column: u16,
    value: &mut Value,
) -> Result<()> {
    let Value::Stored(stored) = value else {
        return Ok(());
    };
    let (Some(StoredForm::Apart(pointer)), Some(rel)) = (StoredForm::parse(stored), table.long_rel) else {
        return Err(damaged(table, column));
    };
    memory::require(pointer.raw_length as usize)?;
    let mut content = Restoring::new(pointer.raw_length, pointer.is_compressed);
    heap_of(rel)
        .read_pieces(storage, &pieces_of(&pointer), &|| interrupts.pending(), |piece| {
            content.push(piece).is_some()
        })
        .map_err(storage_error)?;
    let content = content.finish();
    let restored = content.and_then(|content| value_of(content, table.codec.column_type(column)));
    *value = restored.ok_or_else(|| damaged(table, column))?;
    Ok(())
}

/// XX001
#[cold]
fn damaged(table: &TableDef, column: u16) -> EngineError {
    EngineError::new(
        SqlState::DATA_CORRUPTED,
        format!(
            "a long value of column \"{}\" of relation \"{}\" is damaged",
            table.columns[usize::from(column)].name,
            table.name
        ),
    )
}
