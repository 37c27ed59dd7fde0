//! The actions that ALTER TABLE refuses of a typed table, whose columns are the attributes of its type.

use sqlparser::ast;

use crate::bind::normal;
use crate::catalog::TableDef;
use crate::error::{EngineError, Result, SqlState};

/// 42809 for an operation that would make a typed table's columns others than its type's attributes.
pub(super) fn require_untyped(table: &TableDef, operations: &[ast::AlterTableOperation]) -> Result<()> {
    use ast::AlterTableOperation as Operation;
    if table.of_type.is_none() {
        return Ok(());
    }
    let refused = |operation: &Operation| match operation {
        Operation::AddColumn { .. } => Some("cannot add column to typed table"),
        Operation::DropColumn { .. } => Some("cannot drop column from typed table"),
        Operation::RenameColumn { .. } => Some("cannot rename column of typed table"),
        Operation::AlterColumn {
            column_name,
            op: ast::AlterColumnOperation::SetDataType { .. },
        } => {
            let is_there = table.column_number(&normal(column_name)).is_some();
            is_there.then_some("cannot alter column type of typed table")
        }
        _ => None,
    };
    match operations.iter().find_map(refused) {
        Some(message) => Err(EngineError::new(SqlState::WRONG_OBJECT_TYPE, message)),
        None => Ok(()),
    }
}
