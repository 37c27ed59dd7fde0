//! The columns of what is made of a query: a table, a view.

use crate::catalog::ColumnDef;
use crate::error::{EngineError, Result, SqlState};
use crate::plan::Column;

/// Columns for rows of these columns, the first of them under other names; 42701 if two have one name.
pub(super) fn named<'n>(
    described: &'n [Column],
    names: impl Iterator<Item = &'n String>,
) -> Result<Vec<ColumnDef>> {
    let mut names = names.fuse();
    let mut columns: Vec<ColumnDef> = Vec::with_capacity(described.len());
    for column in described {
        let name = names.next().unwrap_or(&column.name);
        if columns.iter().any(|other| other.name == *name) {
            return Err(EngineError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{name}\" specified more than once"),
            ));
        }
        if column.data_type.kind() == 'p' && column.data_type != crate::value::DataType::Unknown {
            return Err(EngineError::new(
                SqlState::INVALID_TABLE_DEFINITION,
                format!("column \"{name}\" has pseudo-type {}", column.data_type),
            ));
        }
        let mut definition = ColumnDef::new(name.clone(), column.data_type);
        definition.typmod = column.type_modifier;
        columns.push(definition);
    }
    Ok(columns)
}
