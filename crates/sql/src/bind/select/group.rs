//! The keys of GROUP BY, and expressions over the rows of groups.

use std::sync::Arc;

use sqlparser::ast;

use super::grouping_sets::{Groups, grouping_arguments};
use super::list::{Output, check_entries, output_number};
use crate::bind::json::require_comparable;
use crate::bind::scope::{Aggregates, Scope, ScopeColumn};
use crate::bind::{Binder, Typed, normal};
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;

/// The rows of groups, for expressions over them.
pub(super) struct OverGroups<'k> {
    pub(super) keys: &'k [Typed],
    /// Number of aggregates.
    pub(super) calls: usize,
    /// The first column that is no key.
    pub(super) missing: Option<u16>,
    /// True if it is an argument of a query in the expression.
    pub(super) missing_inside: bool,
    /// Number of queries whose arguments are being looked at.
    pub(super) inside: usize,
    /// The keys that each GROUPING is about.
    pub(super) groupings: Vec<Vec<u16>>,
}

impl OverGroups<'_> {
    /// The column of a GROUPING over these arguments; 42803 if one is no key.
    fn grouping(&mut self, arguments: &[Expr]) -> Result<Expr> {
        let key_of = |argument: &Expr| self.keys.iter().position(|key| key.expr == *argument);
        let of_keys: Option<Vec<u16>> = arguments
            .iter()
            .map(|argument| key_of(argument).map(|at| at as u16))
            .collect();
        let of_keys = of_keys.ok_or_else(|| {
            EngineError::new(
                SqlState::GROUPING_ERROR,
                "arguments to GROUPING must be grouping expressions of the associated query level",
            )
        })?;
        let known = self.groupings.iter().position(|known| *known == of_keys);
        let at = known.unwrap_or_else(|| {
            self.groupings.push(of_keys);
            self.groupings.len() - 1
        });
        Ok(Expr::Column((self.keys.len() + self.calls + at) as u16))
    }
}

impl Binder<'_> {
    /// The number of a key of GROUP BY, which is added to the others if it is new.
    pub(super) fn group_key(
        &mut self,
        tree: &ast::Expr,
        scope: &mut Scope,
        outputs: &[Output],
        groups: &mut Groups,
    ) -> Result<u16> {
        // A column of the table comes before an output's name here; in ORDER BY it is the other way round.
        let named = match tree {
            ast::Expr::Identifier(ident) if !scope.names.has_column(&normal(ident)) => {
                outputs.iter().position(|output| output.name == normal(ident))
            }
            _ => None,
        };
        let number = output_number(tree, outputs.len(), "GROUP BY", self.position_of(tree))?.or(named);
        let key = match number {
            Some(number) => outputs[number].typed.clone(),
            None => {
                let aggregates = std::mem::replace(&mut scope.aggregates, Aggregates::Refused);
                let windows = std::mem::take(&mut scope.windows);
                let clause = std::mem::replace(&mut scope.clause, "GROUP BY");
                let typed = self.expression(tree, scope)?;
                scope.windows = windows;
                scope.aggregates = aggregates;
                scope.clause = clause;
                self.settle(typed)?
            }
        };
        let mut refused = None;
        key.expr.walk(&mut |part| match part {
            Expr::Aggregate(_) => refused = Some((SqlState::GROUPING_ERROR, "aggregate functions")),
            Expr::Window(_) => refused = Some((SqlState::WINDOWING_ERROR, "window functions")),
            part if grouping_arguments(part).is_some() => {
                refused = Some((SqlState::GROUPING_ERROR, "grouping operations"));
            }
            _ => {}
        });
        if let Some((sqlstate, refused)) = refused {
            return Err(
                EngineError::new(sqlstate, format!("{refused} are not allowed in GROUP BY"))
                    .or_position(self.position_of(tree)),
            );
        }
        require_comparable(key.data_type, "equality", self.position_of(tree))?;
        self.tick()?;
        if let Some(known) = groups.keys.iter().position(|known| known.expr == key.expr) {
            let before = &mut groups.outputs[known];
            groups.has_two_names |= matches!((*before, number), (Some(one), Some(other)) if one != other);
            *before = before.or(number);
            return Ok(known as u16);
        }
        groups.keys.push(key);
        groups.outputs.push(number);
        check_entries(groups.keys.len())?;
        Ok(groups.keys.len() as u16 - 1)
    }

    /// Turns an expression over input rows into one over group rows: keys, aggregate results and values of GROUPING by
    /// position. Of any other column nothing can be made.
    pub(super) fn regroup(&mut self, expr: Expr, over: &mut OverGroups<'_>) -> Result<Expr> {
        self.tick()?;
        if let Some(at) = over.keys.iter().position(|key| key.expr == expr) {
            return Ok(Expr::Column(at as u16));
        }
        if let Some(arguments) = grouping_arguments(&expr) {
            return over.grouping(arguments);
        }
        match expr {
            Expr::Aggregate(number) => Ok(Expr::Column(over.keys.len() as u16 + number)),
            Expr::Column(column) => {
                if over.missing.is_none() {
                    over.missing_inside = over.inside > 0;
                }
                over.missing.get_or_insert(column);
                Ok(Expr::Column(column))
            }
            Expr::Subquery(subquery) => {
                over.inside += 1;
                let regrouped = Expr::Subquery(subquery).map_children(&mut |child| self.regroup(child, over));
                over.inside -= 1;
                regrouped
            }
            other => other.map_children(&mut |child| self.regroup(child, over)),
        }
    }

    /// The column as a key, if it follows from the keys: they have the primary key of its table.
    pub(super) fn dependent(&mut self, column: u16, keys: &[Typed], scope: &Scope) -> Option<Typed> {
        let relations = &scope.names.relations;
        let is_it = |known: &&ScopeColumn| known.typed.expr == Expr::Column(column);
        let relation = relations
            .iter()
            .find(|relation| relation.all_columns().any(|known| is_it(&known)))?;
        let table = &self
            .reads
            .iter()
            .find(|read| read.table.oid == relation.table_oid)?
            .table;
        let key = table.primary_key().filter(|key| key.is_always_unique())?;
        let (table_oid, key) = (table.oid, Arc::clone(key));
        let is_key = |number: &u16| {
            let column = relation.all_columns().nth(usize::from(*number));
            column.is_some_and(|column| keys.iter().any(|key| key.expr == column.typed.expr))
        };
        let found = relation.all_columns().find(is_it)?;
        if !key.key_columns().all(|column| is_key(&column)) {
            return None;
        }
        if let Some(view) = &mut self.view {
            view.note_constraint(table_oid, key.oid);
        }
        Some(found.typed.clone())
    }
}

/// 42803 for a column that is neither grouped by nor aggregated; `inside`: a query in the expression reads it.
pub(super) fn not_grouped(column: u16, inside: bool, scope: &Scope) -> EngineError {
    let mut shown = "?".to_owned();
    for relation in &scope.names.relations {
        let found = relation
            .all_columns()
            .find(|known| known.typed.expr == Expr::Column(column));
        if let Some(found) = found {
            shown = format!("{}.{}", relation.alias, found.name);
        }
    }
    let message = match inside {
        true => format!("subquery uses ungrouped column \"{shown}\" from outer query"),
        false => {
            format!(
                "column \"{shown}\" must appear in the GROUP BY clause or be used in an aggregate function"
            )
        }
    };
    EngineError::new(SqlState::GROUPING_ERROR, message)
}
