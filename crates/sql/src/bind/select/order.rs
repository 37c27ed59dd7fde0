//! ORDER BY, LIMIT and OFFSET.

use sqlparser::ast;

use super::list::{Output, check_entries, output_number};
use crate::bind::json::require_comparable;
use crate::bind::scope::Scope;
use crate::bind::{Binder, normal, refuse, split_name};
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::plan::SortKey;
use crate::value::{DataType, Value};

impl Binder<'_> {
    /// The keys of ORDER BY, each column once. What is not in the select list is added to `outputs`.
    pub(super) fn order_by(
        &mut self,
        order_by: Option<&ast::OrderBy>,
        scope: &mut Scope,
        outputs: &mut Vec<Output>,
        distinct: bool,
    ) -> Result<Vec<SortKey>> {
        let Some(order_by) = order_by else {
            return Ok(Vec::new());
        };
        refuse(order_by.interpolate.is_some(), "INTERPOLATE")?;
        let ast::OrderByKind::Expressions(keys) = &order_by.kind else {
            return Err(EngineError::not_supported("ORDER BY ALL"));
        };
        let visible = outputs.len();
        let mut sort: Vec<SortKey> = Vec::with_capacity(keys.len());
        for key in keys {
            refuse(key.with_fill.is_some(), "WITH FILL")?;
            let position = self.position_of(&key.expr);
            let column = self.key_output(&key.expr, "ORDER BY", scope, outputs, visible)?;
            if distinct && column >= visible {
                return Err(EngineError::new(
                    SqlState::INVALID_COLUMN_REFERENCE,
                    "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                )
                .or_position(position));
            }
            let (descending, nulls_first) =
                direction(&key.options).map_err(|error| error.or_position(position))?;
            if sort.iter().any(|other| other.column == column) {
                continue;
            }
            require_comparable(outputs[column].typed.data_type, "ordering", position)?;
            sort.push(SortKey {
                column,
                data_type: outputs[column].typed.data_type,
                descending,
                nulls_first,
            });
        }
        Ok(sort)
    }

    /// The number of the output that a key of ORDER BY or DISTINCT ON means: by its position or name among the visible
    /// ones, or as an expression, which is added to `outputs` if it is not there.
    pub(super) fn key_output(
        &mut self,
        tree: &ast::Expr,
        clause: &str,
        scope: &mut Scope,
        outputs: &mut Vec<Output>,
        visible: usize,
    ) -> Result<usize> {
        if let Some(number) = output_number(tree, visible, clause, self.position_of(tree))? {
            return Ok(number);
        }
        if let ast::Expr::Identifier(ident) = tree {
            let name = normal(ident);
            let named = outputs[..visible].iter().position(|output| output.name == name);
            if let Some(number) = named {
                return Ok(number);
            }
        }
        let typed = self.expression(tree, scope)?;
        let typed = self.settle(typed)?;
        if let Some(number) = outputs.iter().position(|output| output.typed.expr == typed.expr) {
            return Ok(number);
        }
        outputs.push(Output {
            typed,
            name: String::new(),
            origin: (0, 0),
        });
        check_entries(outputs.len())?;
        Ok(outputs.len() - 1)
    }

    /// LIMIT and OFFSET, or FETCH.
    pub(super) fn limit(&mut self, query: &ast::Query) -> Result<(Option<Expr>, Option<Expr>)> {
        let (mut limit, mut offset) = (None, None);
        match &query.limit_clause {
            None => {}
            Some(ast::LimitClause::LimitOffset {
                limit: l,
                offset: o,
                limit_by,
            }) => {
                refuse(!limit_by.is_empty(), "LIMIT BY")?;
                limit = l.as_ref();
                offset = o.as_ref().map(|offset| &offset.value);
            }
            Some(ast::LimitClause::OffsetCommaLimit { .. }) => {
                return Err(EngineError::not_supported("LIMIT #,#")
                    .with_hint("Use separate LIMIT and OFFSET clauses."));
            }
        }
        if let Some(fetch) = &query.fetch {
            refuse(
                fetch.with_ties || fetch.percent || limit.is_some(),
                "FETCH … WITH TIES or PERCENT",
            )?;
            let one = Expr::Constant(Value::Int8(1));
            let limit = match &fetch.quantity {
                Some(tree) => self.row_count(tree, "LIMIT")?,
                None => one,
            };
            return Ok((
                Some(limit),
                offset.map(|tree| self.row_count(tree, "OFFSET")).transpose()?,
            ));
        }
        Ok((
            limit.map(|tree| self.row_count(tree, "LIMIT")).transpose()?,
            offset.map(|tree| self.row_count(tree, "OFFSET")).transpose()?,
        ))
    }

    fn row_count(&mut self, tree: &ast::Expr, clause: &'static str) -> Result<Expr> {
        let position = self.position_of(tree);
        let typed = self.expression(tree, &mut Scope::empty(clause))?;
        self.assign(typed, DataType::Int8, -1, clause, position)
    }
}

/// The direction of a key of ORDER BY: true for a descending one, and true if NULLs come first. `USING <` is ASC, and
/// `USING >` is DESC.
pub(in crate::bind) fn direction(options: &ast::OrderByOptions) -> Result<(bool, bool)> {
    let descending = match &options.sort {
        None | Some(ast::OrderBySort::Asc) => false,
        Some(ast::OrderBySort::Desc) => true,
        Some(ast::OrderBySort::Using(operator)) => {
            let (schema, symbol, _) = split_name(operator)?;
            refuse(
                schema.is_some_and(|schema| schema != "pg_catalog"),
                "ORDER BY USING an operator of a schema",
            )?;
            match symbol.as_str() {
                "<" => false,
                ">" => true,
                "<=" | ">=" | "=" | "<>" => {
                    return Err(EngineError::new(
                        SqlState::WRONG_OBJECT_TYPE,
                        format!("operator {symbol} is not a valid ordering operator"),
                    )
                    .with_hint(
                        "Ordering operators must be \"<\" or \">\" members of btree operator families.",
                    ));
                }
                _ => return Err(EngineError::not_supported(format!("ORDER BY USING {symbol}"))),
            }
        }
    };
    Ok((descending, options.nulls_first.unwrap_or(descending)))
}
