//! The values of generated columns: made of the other values of a row that is to be stored, defaults among them, before
//! anything looks at the row.

use clearway_sql::TableDef;
use clearway_sql::context::EvalContext;
use clearway_sql::error::Result;
use clearway_sql::value::Value;

use crate::executor::Execution;

/// Makes the values of a row's generated columns.
pub(crate) fn generate(table: &TableDef, row: &mut [Value], context: &EvalContext<'_>) -> Result<()> {
    for (column, expr) in table.generated() {
        row[usize::from(column)] = expr.eval(row, context)?;
    }
    Ok(())
}

/// Adds the values of generated columns to the changed `values` of a row, whose others are in `old`.
#[cold]
pub(super) fn add_generated(
    execution: &Execution<'_>,
    table: &TableDef,
    old: &[u8],
    values: &mut Vec<(u16, Value)>,
) -> Result<()> {
    let mut row = execution.whole_row(table, old)?;
    for (column, value) in &*values {
        row[usize::from(*column)] = value.clone();
    }
    values.retain(|(column, _)| table.columns[usize::from(*column)].generated().is_none());
    for (column, expr) in table.generated() {
        values.push((column, expr.eval(&row, &execution.eval)?));
    }
    Ok(())
}
