//! DISTINCT ON: its expressions as the first keys of the sort.
//!
//! The rows are sorted, and of those that are equal in the expressions the first comes out. So the expressions have to
//! be the first keys, in whatever order ORDER BY has them. An ORDER BY that is shorter is continued by the expressions
//! that it leaves out; one that has another key before them would ask for two orders at once.

use sqlparser::ast;

use super::list::Output;
use crate::bind::Binder;
use crate::bind::scope::Scope;
use crate::error::{EngineError, Result, SqlState};
use crate::plan::SortKey;

impl Binder<'_> {
    /// The number of the first keys of `sort` that are the expressions of DISTINCT ON; those that ORDER BY leaves out
    /// are added.
    pub(super) fn distinct_on(
        &mut self,
        trees: &[ast::Expr],
        scope: &mut Scope,
        outputs: &mut Vec<Output>,
        visible: usize,
        sort: &mut Vec<SortKey>,
    ) -> Result<usize> {
        let mut expressions: Vec<(usize, Option<u32>)> = Vec::with_capacity(trees.len());
        for tree in trees {
            let column = self.key_output(tree, "DISTINCT ON", scope, outputs, visible)?;
            if expressions.iter().all(|(known, _)| *known != column) {
                expressions.push((column, self.position_of(tree)));
            }
        }
        let is_expression = |key: &SortKey| expressions.iter().any(|(column, _)| *column == key.column);
        let first = sort.iter().take_while(|key| is_expression(key)).count();
        let is_first = |column: usize| sort[..first].iter().any(|key| key.column == column);
        let left_out: Vec<_> = expressions
            .iter()
            .filter(|(column, _)| !is_first(*column))
            .copied()
            .collect();
        if let Some((_, position)) = left_out.first()
            && first < sort.len()
        {
            return Err(EngineError::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
            )
            .or_position(*position));
        }
        sort.extend(left_out.into_iter().map(|(column, _)| SortKey {
            column,
            data_type: outputs[column].typed.data_type,
            descending: false,
            nulls_first: false,
        }));
        Ok(expressions.len())
    }
}
