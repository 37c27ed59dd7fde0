//! The values of generated columns: made of the other values of a row that is to be stored, defaults among them, before
//! anything looks at the row.

use clearway_sql::TableDef;
use clearway_sql::context::EvalContext;
use clearway_sql::error::Result;
use clearway_sql::value::Value;

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
    table: &TableDef,
    old: &[u8],
    values: &mut Vec<(u16, Value)>,
    context: &EvalContext<'_>,
) -> Result<()> {
    let mut row = table.codec.decode_all(old)?;
    for (column, value) in &*values {
        row[usize::from(*column)] = value.clone();
    }
    values.retain(|(column, _)| table.columns[usize::from(*column)].generated().is_none());
    for (column, expr) in table.generated() {
        values.push((column, expr.eval(&row, context)?));
    }
    Ok(())
}
