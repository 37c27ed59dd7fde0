//! GROUP BY, and expressions over the rows of groups.

use std::sync::Arc;

use sqlparser::ast;

use super::list::{Output, check_entries, output_number};
use crate::bind::scope::{Aggregates, Scope, ScopeColumn};
use crate::bind::{Binder, Typed, normal};
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
            let is_column = |name: &str, scope: &Scope| scope.names.has_column(name);
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
                .walk(&mut |part| aggregated |= matches!(part, Expr::Aggregate(_)));
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

    /// Turns an expression over input rows into one over group rows: keys and aggregate results by position. Of any
    /// other column nothing can be made: `missing` tells the first.
    pub(super) fn regroup(&mut self, expr: Expr, keys: &[Typed], missing: &mut Option<u16>) -> Result<Expr> {
        self.tick()?;
        if let Some(at) = keys.iter().position(|key| key.expr == expr) {
            return Ok(Expr::Column(at as u16));
        }
        match expr {
            Expr::Aggregate(number) => Ok(Expr::Column(keys.len() as u16 + number)),
            Expr::Column(column) => {
                missing.get_or_insert(column);
                Ok(Expr::Column(column))
            }
            other => other.map_children(&mut |child| self.regroup(child, keys, missing)),
        }
    }

    /// The column as a key, if it follows from the keys: they have the primary key of its table.
    pub(super) fn dependent(&mut self, column: u16, keys: &[Typed], scope: &Scope) -> Option<Typed> {
        let relations = &scope.names.relations;
        let is_it = |known: &&ScopeColumn| known.typed.expr == Expr::Column(column);
        let relation = relations
            .iter()
            .find(|relation| relation.columns.iter().any(|known| is_it(&known)))?;
        let table = &self
            .reads
            .iter()
            .find(|read| read.table.oid == relation.table_oid)?
            .table;
        let (table_oid, key) = (table.oid, Arc::clone(table.primary_key()?));
        let is_key = |number: &u16| {
            let column = &relation.columns[usize::from(*number)].typed.expr;
            keys.iter().any(|key| key.expr == *column)
        };
        let found = relation.columns.iter().find(is_it)?;
        if !key.columns.iter().all(is_key) {
            return None;
        }
        if let Some(view) = &mut self.view {
            view.note_constraint(table_oid, key.oid);
        }
        Some(found.typed.clone())
    }
}

/// 42803 for a column that is neither grouped by nor aggregated.
pub(super) fn not_grouped(column: u16, scope: &Scope) -> EngineError {
    let mut shown = "?".to_owned();
    for relation in &scope.names.relations {
        let found = relation
            .columns
            .iter()
            .find(|known| known.typed.expr == Expr::Column(column));
        if let Some(found) = found {
            shown = format!("{}.{}", relation.alias, found.name);
        }
    }
    EngineError::new(
        SqlState::GROUPING_ERROR,
        format!("column \"{shown}\" must appear in the GROUP BY clause or be used in an aggregate function"),
    )
}
