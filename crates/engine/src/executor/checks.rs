//! CHECK constraints of a table on the rows that are stored in it.

use clearway_sql::context::EvalContext;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::value::Value;
use clearway_sql::{CheckDef, TableDef};

use crate::executor::unique::describe;

/// 23514 for the first constraint, in the order of names, whose condition is false; NULL passes.
#[inline]
pub(crate) fn check_constraints(table: &TableDef, row: &[Value], context: &EvalContext<'_>) -> Result<()> {
    if table.checks.is_empty() {
        return Ok(());
    }
    check_each(table, row, context)
}

#[inline(never)]
fn check_each(table: &TableDef, row: &[Value], context: &EvalContext<'_>) -> Result<()> {
    for check in &table.checks {
        if !holds(check, row, context)? {
            let values: Vec<String> = row.iter().map(describe).collect();
            return Err(EngineError::new(
                SqlState::CHECK_VIOLATION,
                format!(
                    "new row for relation \"{}\" violates check constraint \"{}\"",
                    table.name, check.name
                ),
            )
            .with_detail(format!("Failing row contains ({}).", values.join(", ")))
            .with_table(&table.schema.name, &table.name)
            .with_constraint(&check.name));
        }
    }
    Ok(())
}

/// False if the condition is false of a row.
pub(crate) fn holds(check: &CheckDef, row: &[Value], context: &EvalContext<'_>) -> Result<bool> {
    Ok(check.expr.eval(row, context)?.as_bool() != Some(false))
}
