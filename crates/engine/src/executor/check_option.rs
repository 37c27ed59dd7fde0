//! WITH CHECK OPTION: the conditions of views on rows that are stored through them.

use clearway_sql::TableDef;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::RowCheck;
use clearway_sql::value::Value;

use crate::executor::Execution;
use crate::executor::shown_values::{GivenColumns, with_failing_row};

/// 44000 for the first view with a condition that is not true of a row.
pub(crate) fn check_row(
    execution: &mut Execution<'_>,
    table: &TableDef,
    checks: &[RowCheck],
    row: &[Value],
    given: GivenColumns<'_>,
) -> Result<()> {
    for check in checks {
        for condition in &check.conditions {
            let value = execution.evaluating(|context| condition.eval(row, context))?;
            if value.as_bool() != Some(true) {
                let error = EngineError::new(
                    SqlState::WITH_CHECK_OPTION_VIOLATION,
                    format!("new row violates check option for view \"{}\"", check.view),
                );
                return Err(with_failing_row(error, execution, table, row, given));
            }
        }
    }
    Ok(())
}
