//! Queries inside expressions, and common table expressions.

use sqlparser::ast::{self, BinaryOperator};

use crate::bind::predicate::comparison;
use crate::bind::scope::{Names, Scope};
use crate::bind::size::Size;
use crate::bind::types::comparison_type;
use crate::bind::{Binder, Typed, boolean, identifier, refuse, split_name};
use crate::error::{EngineError, Result, SqlState};
use crate::expr::{CompareOp, Expr, Quantified, Subquery, SubqueryForm};
use crate::plan::Column;
use crate::query::{Block, Rows};
use crate::value::DataType;

/// A common table expression in sight.
#[derive(Debug, Clone)]
pub(super) struct Cte {
    name: String,
    columns: Vec<Column>,
    block: Block,
    /// Number of frames around its WITH.
    depth: usize,
    /// True if a query has used it.
    used: bool,
    size: Size,
}

impl Binder<'_> {
    /// Binds a query of an expression; its number and arguments, and its columns.
    fn subquery(&mut self, query: &ast::Query, scope: &mut Scope) -> Result<(usize, Vec<Expr>, Vec<Column>)> {
        if let Some(place) = scope.without_queries() {
            return Err(EngineError::not_supported(format!("a query in {place}")));
        }
        let names: Names = scope.names.clone();
        let (block, arguments) = self.inside(names, |binder| binder.query(query, true))?;
        let columns = block.columns.clone();
        self.subqueries.push(block);
        Ok((self.subqueries.len() - 1, arguments, columns))
    }

    /// As [`subquery`](Self::subquery), of a query that must have one column; `otherwise`: the message if it does not.
    fn single_column(
        &mut self,
        query: &ast::Query,
        scope: &mut Scope,
        otherwise: &'static str,
        position: Option<u32>,
    ) -> Result<(usize, Vec<Expr>, Column)> {
        let (number, arguments, columns) = self.subquery(query, scope)?;
        match <[Column; 1]>::try_from(columns) {
            Ok([column]) => Ok((number, arguments, column)),
            Err(_) => Err(EngineError::new(SqlState::SYNTAX_ERROR, otherwise).or_position(position)),
        }
    }

    /// `(SELECT …)` as a value.
    pub(super) fn scalar_subquery(
        &mut self,
        query: &ast::Query,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        let (number, arguments, column) =
            self.single_column(query, scope, "subquery must return only one column", position)?;
        Ok(Typed {
            expr: Expr::Subquery(Box::new(Subquery {
                number,
                arguments,
                form: SubqueryForm::Scalar,
            })),
            data_type: column.data_type,
            typmod: column.type_modifier,
        })
    }

    /// `ARRAY(SELECT …)`
    pub(super) fn array_subquery(
        &mut self,
        query: &ast::Query,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        let (number, arguments, column) =
            self.single_column(query, scope, "subquery must return only one column", position)?;
        let data_type = column.data_type.array_type().ok_or_else(|| {
            EngineError::not_supported(format!("ARRAY over a query of {}", column.data_type))
                .or_position(position)
        })?;
        Ok(Typed::new(
            Expr::Subquery(Box::new(Subquery {
                number,
                arguments,
                form: SubqueryForm::Array(data_type),
            })),
            data_type,
        ))
    }

    /// \[NOT\] EXISTS
    pub(super) fn exists(&mut self, query: &ast::Query, negated: bool, scope: &mut Scope) -> Result<Typed> {
        let (number, arguments, _) = self.subquery(query, scope)?;
        Ok(negated_if(
            negated,
            Expr::Subquery(Box::new(Subquery {
                number,
                arguments,
                form: SubqueryForm::Exists,
            })),
        ))
    }

    /// \[NOT\] IN over a query.
    pub(super) fn in_subquery(
        &mut self,
        left: Typed,
        query: &ast::Query,
        negated: bool,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        let compared = self.compared_with_query(left, CompareOp::Equal, query, false, scope, position)?;
        Ok(negated_if(negated, compared))
    }

    /// `left op ANY (query)`, `left op ALL (query)`; the same with an array.
    pub(super) fn quantified(
        &mut self,
        left: Typed,
        op: &BinaryOperator,
        right: &ast::Expr,
        all: bool,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        let mut query = right;
        while let ast::Expr::Nested(inner) = query {
            query = inner;
        }
        let Some(op) = comparison(op) else {
            let word = if all { "ALL" } else { "ANY" };
            return Err(
                EngineError::not_supported(format!("the operator {op} with {word}")).or_position(position),
            );
        };
        let ast::Expr::Subquery(query) = query else {
            return self.quantified_over_array(left, op, right, all, scope, position);
        };
        Ok(boolean(
            self.compared_with_query(left, op, query, all, scope, position)?,
        ))
    }

    fn compared_with_query(
        &mut self,
        left: Typed,
        op: CompareOp,
        query: &ast::Query,
        all: bool,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Expr> {
        let (number, arguments, column) =
            self.single_column(query, scope, "subquery has too many columns", position)?;
        let right = Typed {
            expr: Expr::Column(0),
            data_type: column.data_type,
            typmod: column.type_modifier,
        };
        let data_type: DataType = comparison_type(left.data_type, right.data_type)
            .ok_or_else(|| self.no_operator(left.data_type, op.symbol(), right.data_type, position))?;
        let operand = self.side(left, data_type, position)?;
        let right = self.side(right, data_type, position)?;
        Ok(Expr::Subquery(Box::new(Subquery {
            number,
            arguments,
            form: SubqueryForm::Quantified(Quantified {
                op,
                all,
                operand: vec![operand],
                columns: vec![right],
                types: vec![data_type],
            }),
        })))
    }

    /// Binds the common table expressions of a WITH; they are in sight until [`Binder::forget_ctes`].
    pub(super) fn with(&mut self, with: &ast::With) -> Result<()> {
        refuse(with.recursive, "WITH RECURSIVE")?;
        for cte in &with.cte_tables {
            refuse(cte.from.is_some(), "this form of WITH")?;
            let name = identifier(&cte.alias.name)?;
            let mut block = self.query(&cte.query, true)?;
            if cte.alias.columns.len() > block.columns.len() {
                return Err(EngineError::new(
                    SqlState::INVALID_COLUMN_REFERENCE,
                    format!(
                        "WITH query \"{name}\" has {} columns available but {} columns specified",
                        block.columns.len(),
                        cte.alias.columns.len()
                    ),
                ));
            }
            for (column, renamed) in block.columns.iter_mut().zip(&cte.alias.columns) {
                column.name = identifier(&renamed.name)?;
            }
            let size = self.size_of(&block);
            self.ctes.push(Cte {
                name,
                columns: block.columns.clone(),
                block,
                depth: self.frames.len(),
                used: false,
                size,
            });
        }
        Ok(())
    }

    /// Number of common table expressions in sight.
    pub(super) fn ctes_in_sight(&self) -> usize {
        self.ctes.len()
    }

    /// True if a query may give other rows when it runs again: it calls a volatile function.
    fn changes(&self, block: &Block) -> bool {
        let mut changes = false;
        block.each_expression(&mut |expr| {
            expr.walk(&mut |part| {
                changes |= match part {
                    Expr::NextSerial { .. } => true,
                    Expr::Call { function, .. } => function.is_volatile(),
                    Expr::Subquery(subquery) => {
                        let inner = self.subqueries.get(subquery.number);
                        inner.is_some_and(|inner| self.changes(inner))
                    }
                    _ => false,
                };
            });
        });
        changes || block.from.queries().iter().any(|inner| self.changes(inner))
    }

    /// Takes the newest common table expressions out of sight, all but the first `count`.
    pub(super) fn forget_ctes(&mut self, count: usize) {
        self.ctes.truncate(count);
    }

    /// The common table expression of this name, if there is one: its columns and rows.
    pub(super) fn common_table(&mut self, name: &ast::ObjectName) -> Result<Option<(Vec<Column>, Rows)>> {
        let (None, name, _) = split_name(name)? else {
            return Ok(None);
        };
        let Some(at) = self.ctes.iter().rposition(|cte| cte.name == name) else {
            return Ok(None);
        };
        let used = std::mem::replace(&mut self.ctes[at].used, true);
        self.note_copy(self.ctes[at].size)?;
        let cte = self.ctes[at].clone();
        // Each use runs it, so it must give the same rows each time.
        refuse(
            used && self.changes(&cte.block),
            "a common table expression with a volatile function, used twice",
        )?;
        // Its arguments are those of the query that has the WITH, which is the one around it here.
        let mut arguments = Vec::new();
        let most = cte.block.arguments_read();
        if most > 0 && cte.depth != self.frames.len() {
            return Err(EngineError::not_supported(
                "a common table expression that depends on a query around it, inside another query",
            ));
        }
        for number in 0..most {
            arguments.push(Expr::Outer(number));
        }
        Ok(Some((
            cte.columns,
            Rows::Query {
                block: Box::new(cte.block),
                arguments,
            },
        )))
    }
}

fn negated_if(negated: bool, condition: Expr) -> Typed {
    boolean(match negated {
        true => Expr::Not(Box::new(condition)),
        false => condition,
    })
}
