//! Projection: the values of a SELECT's output row from its input row.
//!
//! A row whose long values were restored gives them away: the last expression that is such a column takes the value, and it
//! goes to the client from there. So a value of 1 GB is in memory once.

use clearway_sql::error::Result;
use clearway_sql::plan::SelectPlan;
use clearway_sql::value::{ColumnSet, TextsTogether, Value};
use clearway_sql::{EvalContext, Expr};

use crate::executor::{Execution, evaluate_row};

/// Appends the projection of a row.
#[inline]
pub(super) fn project(
    execution: &mut Execution<'_>,
    plan: &SelectPlan,
    row: &[Value],
    output: &mut Vec<Value>,
) -> Result<()> {
    if plan.has_subqueries {
        return execution.evaluating(|context| evaluate_row(&plan.projection, row, context, output));
    }
    evaluate_row(&plan.projection, row, &execution.eval, output)
}

/// An input row with long values that were restored.
pub(super) struct RestoredRow<'r> {
    pub(super) row: &'r mut [Value],
    /// The columns that were, if nothing else may be taken out: operators read the others again.
    pub(super) restored: Option<&'r [(u16, Value)]>,
}

impl RestoredRow<'_> {
    /// A column's value, if it may be taken.
    fn take(&mut self, column: u16) -> Option<Value> {
        let is_restored = |columns: &[(u16, Value)]| columns.iter().any(|(restored, _)| *restored == column);
        self.restored
            .is_none_or(is_restored)
            .then(|| std::mem::take(&mut self.row[usize::from(column)]))
    }
}

/// The same, of a row whose restored values nothing reads afterwards.
#[cold]
pub(super) fn project_taking(
    execution: &mut Execution<'_>,
    plan: &SelectPlan,
    row: RestoredRow<'_>,
    output: &mut Vec<Value>,
) -> Result<()> {
    if plan.has_subqueries {
        return execution.evaluating(|context| take(&plan.projection, row, context, output));
    }
    take(&plan.projection, row, &execution.eval, output)
}

/// Appends the values of expressions for a row that nothing reads afterwards, and takes columns out of it.
#[cold]
pub(crate) fn take_row(
    execution: &mut Execution<'_>,
    exprs: &[Expr],
    row: &mut [Value],
    output: &mut Vec<Value>,
) -> Result<()> {
    let row = RestoredRow { row, restored: None };
    execution.evaluating(|context| take(exprs, row, context, output))
}

fn take(
    exprs: &[Expr],
    mut row: RestoredRow<'_>,
    context: &EvalContext<'_>,
    output: &mut Vec<Value>,
) -> Result<()> {
    let mut texts = TextsTogether::default();
    for (expr, is_last) in exprs.iter().zip(last_uses(exprs)) {
        let taken = match expr {
            Expr::Column(column) if is_last => row.take(*column),
            _ => None,
        };
        let value = match taken {
            Some(value) => value,
            None => expr.eval(row.row, context)?,
        };
        texts.add(&value)?;
        output.push(value);
    }
    Ok(())
}

/// Of each expression, whether it is a column that no later one reads.
fn last_uses(exprs: &[Expr]) -> Vec<bool> {
    let mut read_later = ColumnSet::new();
    let mut last: Vec<bool> = exprs
        .iter()
        .rev()
        .map(|expr| {
            let is_last = matches!(expr, Expr::Column(column) if !read_later.contains(*column));
            expr.columns(&mut |column| read_later.insert(column));
            is_last
        })
        .collect();
    last.reverse();
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_taken_by_its_last_use_alone() {
        let not = |column| Expr::Not(Box::new(Expr::Column(column)));
        let exprs = [
            Expr::Column(1),
            not(1),
            Expr::Column(2),
            Expr::Column(1),
            Expr::Column(2),
            not(2),
        ];
        assert_eq!(last_uses(&exprs), [false, false, false, true, false, false]);
    }
}
