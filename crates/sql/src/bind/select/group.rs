//! GROUP BY, and expressions over the rows of groups.

use sqlparser::ast;

use super::list::{Output, check_entries, output_number};
use crate::bind::{AGGREGATE_BASE, Aggregates, Binder, Scope, Typed, normal};
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;

impl Binder<'_> {
    /// The keys of GROUP BY, each once.
    pub(super) fn group_by(
        &mut self,
        group_by: &ast::GroupByExpr,
        scope: &mut Scope,
        outputs: &[Output],
    ) -> Result<Vec<Typed>> {
        let trees = match group_by {
            ast::GroupByExpr::Expressions(trees, modifiers) if modifiers.is_empty() => trees,
            _ => return Err(EngineError::not_supported("GROUP BY ALL, ROLLUP or CUBE")),
        };
        let mut keys = Vec::with_capacity(trees.len());
        for tree in trees {
            // A column of the table comes before an output's name here; in ORDER BY it is the other way round.
            let is_column =
                |name: &str, scope: &Scope| scope.columns.iter().any(|column| column.name == name);
            let named = match tree {
                ast::Expr::Identifier(ident) if !is_column(&normal(ident), scope) => outputs
                    .iter()
                    .find(|output| output.name == normal(ident))
                    .map(|output| output.typed.clone()),
                _ => None,
            };
            let key = match (
                output_number(tree, outputs.len(), "GROUP BY", self.position_of(tree))?,
                named,
            ) {
                (Some(number), _) => outputs[number].typed.clone(),
                (None, Some(typed)) => typed,
                (None, None) => {
                    let aggregates = std::mem::replace(&mut scope.aggregates, Aggregates::Refused);
                    let clause = std::mem::replace(&mut scope.clause, "GROUP BY");
                    let typed = self.expression(tree, scope)?;
                    scope.aggregates = aggregates;
                    scope.clause = clause;
                    self.settle(typed)?
                }
            };
            let mut aggregated = false;
            key.expr
                .columns(&mut |column| aggregated |= column >= AGGREGATE_BASE);
            if aggregated {
                return Err(EngineError::new(
                    SqlState::GROUPING_ERROR,
                    "aggregate functions are not allowed in GROUP BY",
                )
                .or_position(self.position_of(tree)));
            }
            self.tick()?;
            if !keys.iter().any(|known: &Typed| known.expr == key.expr) {
                keys.push(key);
                check_entries(keys.len())?;
            }
        }
        Ok(keys)
    }

    /// Turns an expression over input rows into one over group rows: keys and aggregate results by position; any other
    /// column is an error.
    pub(super) fn regroup(&mut self, expr: Expr, keys: &[Typed], names: &[String]) -> Result<Expr> {
        self.tick()?;
        if let Some(at) = keys.iter().position(|key| key.expr == expr) {
            return Ok(Expr::Column(at as u16));
        }
        match expr {
            Expr::Column(column) if column >= AGGREGATE_BASE => {
                Ok(Expr::Column(keys.len() as u16 + column - AGGREGATE_BASE))
            }
            Expr::Column(column) => Err(EngineError::new(
                SqlState::GROUPING_ERROR,
                format!(
                    "column \"{}\" must appear in the GROUP BY clause or be used in an aggregate function",
                    names.get(usize::from(column)).map_or("?", String::as_str)
                ),
            )),
            other => other.map_children(&mut |child| self.regroup(child, keys, names)),
        }
    }
}
