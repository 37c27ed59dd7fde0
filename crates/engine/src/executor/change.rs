//! Statements of WITH that change rows.
//!
//! Each runs once and to its end: at the first row of RETURNING that is asked for, or when the main statement has ended.
//! The rules are those of the common table expressions beside it (`select::rows::shared`, S4).

use clearway_sql::error::{EngineError, Result};
use clearway_sql::plan::RowsStatement;

use crate::executor::{Execution, modify};

impl Execution<'_> {
    /// Runs a statement of WITH, by its number, unless it has run.
    pub(crate) fn run_change(&mut self, number: usize) -> Result<()> {
        let change = self.changes.iter().find(|change| change.number == number);
        let change = change.ok_or_else(|| EngineError::internal("a statement of WITH was lost"))?;
        self.make_all(number, |execution, rows| {
            let mut keep = |_: &mut Execution<'_>, row: &[_]| rows.push(row);
            match &*change.statement {
                RowsStatement::Insert(plan) => modify::insert(execution, plan, &mut keep),
                RowsStatement::Update(plan) => modify::update(execution, plan, &mut keep),
                RowsStatement::Delete(plan) => modify::delete(execution, plan, &mut keep),
                RowsStatement::Select(_)
                | RowsStatement::Merge(_)
                | RowsStatement::Copy(_)
                | RowsStatement::Explain(_)
                | RowsStatement::Measured(_) => {
                    Err(EngineError::internal("a statement of WITH changes no rows"))
                }
            }
            .map(|_| ())
        })
    }
}
