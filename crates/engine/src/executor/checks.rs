//! CHECK constraints of a table on the rows that are stored in it.

use clearway_sql::context::EvalContext;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::value::Value;
use clearway_sql::{CheckDef, TableDef};

use crate::executor::Execution;
use crate::executor::shown_values::{GivenColumns, with_failing_row};

/// 23514 for the first constraint, in the order of names, whose condition is false; NULL passes.
#[inline]
pub(crate) fn check_constraints(
    execution: &Execution<'_>,
    table: &TableDef,
    row: &[Value],
    given: GivenColumns<'_>,
) -> Result<()> {
    if table.checks.is_empty() {
        return Ok(());
    }
    check_each(execution, table, row, given)
}

#[inline(never)]
fn check_each(
    execution: &Execution<'_>,
    table: &TableDef,
    row: &[Value],
    given: GivenColumns<'_>,
) -> Result<()> {
    for check in &table.checks {
        if !holds(check, row, &execution.eval)? {
            let error = EngineError::new(
                SqlState::CHECK_VIOLATION,
                format!(
                    "new row for relation \"{}\" violates check constraint \"{}\"",
                    table.name, check.name
                ),
            )
            .with_table(&table.schema.name, &table.name)
            .with_constraint(&check.name);
            return Err(with_failing_row(error, execution, table, row, given));
        }
    }
    Ok(())
}

/// False if the condition is false of a row.
pub(crate) fn holds(check: &CheckDef, row: &[Value], context: &EvalContext<'_>) -> Result<bool> {
    Ok(check.expr.eval(row, context)?.as_bool() != Some(false))
}
