//! NULL in columns that refuse it.

use clearway_sql::TableDef;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::value::Value;

use crate::executor::Execution;
use crate::executor::shown_values::{GivenColumns, with_failing_row};

/// 23502 for the first column that is NULL and must not be.
pub(crate) fn check_not_null(
    execution: &Execution<'_>,
    table: &TableDef,
    row: &[Value],
    given: GivenColumns<'_>,
) -> Result<()> {
    for (column, value) in table.columns.iter().zip(row) {
        if column.not_null && value.is_null() {
            let error = EngineError::new(
                SqlState::NOT_NULL_VIOLATION,
                format!(
                    "null value in column \"{}\" of relation \"{}\" violates not-null constraint",
                    column.name, table.name
                ),
            )
            .with_table(&table.schema.name, &table.name)
            .with_column(&column.name);
            return Err(with_failing_row(error, execution, table, row, given));
        }
    }
    Ok(())
}
