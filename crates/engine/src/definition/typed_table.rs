//! ALTER TABLE … OF and NOT OF: a table's columns become those of a composite type, and are its own again.
//!
//! CREATE TABLE … OF makes a table of the attributes, and ALTER TYPE … CASCADE changes both: the statement's plan has an
//! ALTER TABLE for each typed table, whose lock it holds.

use clearway_sql::TableDef;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::value::user_type::Field;

use crate::catalog::TableEntry;
use crate::definition::{DefinitionChange, raced};

impl DefinitionChange<'_, '_, '_> {
    /// Makes a table one of the composite type of this number, or of none.
    pub(super) fn set_type_of_table(&mut self, entry: &TableEntry, of: Option<u32>) -> Result<()> {
        let table = &entry.def;
        match of {
            Some(of) => {
                let state = self.execution.txn.catalog_state();
                let found = state.type_entry(of).ok_or_else(|| raced(&table.name))?;
                let composite = found.def.composite().ok_or_else(|| raced(&table.name))?;
                require_same_columns(table, &composite.fields)?;
            }
            None if table.of_type.is_none() => {
                return Err(EngineError::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!("\"{}\" is not a typed table", table.name),
                ));
            }
            None => {}
        }
        let mut table = (**table).clone();
        table.of_type = of;
        self.redefine(entry, table)
    }
}

/// 42804 unless a table's columns are these, in their order.
fn require_same_columns(table: &TableDef, fields: &[Field]) -> Result<()> {
    let mismatch = |text: String| Err(EngineError::new(SqlState::DATATYPE_MISMATCH, text));
    let mut columns = table.columns.iter();
    for field in fields {
        let Some(column) = columns.next() else {
            return mismatch(format!("table is missing column \"{}\"", field.name));
        };
        if column.name != field.name {
            return mismatch(format!(
                "table has column \"{}\" where type requires \"{}\"",
                column.name, field.name
            ));
        }
        if (column.data_type, column.typmod) != (field.data_type, field.typmod) {
            return mismatch(format!(
                "table \"{}\" has different type for column \"{}\"",
                table.name, column.name
            ));
        }
    }
    match columns.next() {
        Some(extra) => mismatch(format!("table has extra column \"{}\"", extra.name)),
        None => Ok(()),
    }
}
