//! Queries inside expressions.

use sqlparser::ast;

use crate::bind::around::Around;
use crate::bind::check;
use crate::bind::copy_condition;
use crate::bind::scope::Scope;
use crate::bind::types::comparison_type;
use crate::bind::{Binder, Typed, boolean};
use crate::error::{EngineError, Result, SqlState};
use crate::expr::{CompareOp, Expr, Quantified, Subquery, SubqueryForm};
use crate::plan::Column;
use crate::query::Block;
use crate::value::{DataType, Value};

impl Binder<'_> {
    /// Binds a query of an expression; its number and arguments, and its columns.
    pub(super) fn subquery(
        &mut self,
        query: &ast::Query,
        scope: &mut Scope,
    ) -> Result<(usize, Vec<Expr>, Vec<Column>)> {
        let refused = match scope.clause {
            check::CLAUSE => Some("cannot use subquery in check constraint"),
            copy_condition::CLAUSE => Some("cannot use subquery in COPY FROM WHERE condition"),
            _ => None,
        };
        if let Some(message) = refused {
            return Err(EngineError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        if let Some(place) = scope.without_queries() {
            return Err(EngineError::not_supported(format!("a query in {place}")));
        }
        let before = self.with.working_uses;
        let (block, arguments) = self.within(Around::Subquery, |binder| {
            binder.inside_expression(scope, |binder| binder.query(query, true))
        })?;
        let columns = block.columns.clone();
        self.subqueries.push(block);
        let number = self.subqueries.len() - 1;
        self.note_dependence(number, before);
        Ok((number, arguments, columns))
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
        let array_type = match column.data_type {
            array @ DataType::Array(_) => Some(array),
            element => element.array_type(),
        };
        let data_type = array_type.ok_or_else(|| {
            EngineError::not_supported(format!("ARRAY over a query of {}", column.data_type))
                .or_position(position)
        })?;
        Ok(Typed::new(
            Expr::Subquery(Box::new(Subquery {
                number,
                arguments,
                form: match column.data_type {
                    DataType::Array(_) => SubqueryForm::Arrays(data_type),
                    _ => SubqueryForm::Array(data_type),
                },
            })),
            data_type,
        ))
    }

    /// \[NOT\] EXISTS
    pub(super) fn exists(&mut self, query: &ast::Query, negated: bool, scope: &mut Scope) -> Result<Typed> {
        let (number, arguments, _) = self.subquery(query, scope)?;
        if let Some(block) = self.subqueries.get_mut(number) {
            without_values(block);
        }
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

    /// `left op ANY (query)`; with `all`, ALL.
    pub(super) fn compared_with_query(
        &mut self,
        left: Typed,
        op: CompareOp,
        query: &ast::Query,
        all: bool,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Expr> {
        let form = |quantified| SubqueryForm::Quantified(Quantified { all, ..quantified });
        self.row_with_query(vec![left], op, query, form, scope, position)
            .map(|typed| typed.expr)
    }

    /// A row of values compared with the rows of a query. `form`: the use that is made of the comparison.
    pub(super) fn row_with_query(
        &mut self,
        left: Vec<Typed>,
        op: CompareOp,
        query: &ast::Query,
        form: impl FnOnce(Quantified) -> SubqueryForm,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        let (number, arguments, found) = self.subquery(query, scope)?;
        if left.len() != found.len() {
            let count = if left.len() > found.len() { "few" } else { "many" };
            let message = format!("subquery has too {count} columns");
            return Err(EngineError::new(SqlState::SYNTAX_ERROR, message).or_position(position));
        }
        let (mut operand, mut columns, mut types) = (Vec::new(), Vec::new(), Vec::new());
        for (at, (left, column)) in left.into_iter().zip(found).enumerate() {
            let right = Typed {
                expr: Expr::Column(at as u16),
                data_type: column.data_type,
                typmod: column.type_modifier,
            };
            let data_type: DataType = comparison_type(left.data_type, right.data_type)
                .ok_or_else(|| self.no_operator(left.data_type, op.symbol(), right.data_type, position))?;
            operand.push(self.side(left, data_type, position)?);
            columns.push(self.side(right, data_type, position)?);
            types.push(data_type);
        }
        let form = form(Quantified {
            op,
            all: false,
            operand,
            columns,
            types,
        });
        Ok(boolean(Expr::Subquery(Box::new(Subquery {
            number,
            arguments,
            form,
        }))))
    }

    /// A query whose only row gives several values; with its columns.
    pub(super) fn row_subquery(
        &mut self,
        query: &ast::Query,
        scope: &mut Scope,
    ) -> Result<(Subquery, Vec<Column>)> {
        let (number, arguments, columns) = self.subquery(query, scope)?;
        let form = SubqueryForm::Scalar;
        Ok((
            Subquery {
                number,
                arguments,
                form,
            },
            columns,
        ))
    }
}

fn negated_if(negated: bool, condition: Expr) -> Typed {
    boolean(match negated {
        true => Expr::Not(Box::new(condition)),
        false => condition,
    })
}

/// Leaves out the output values of a query whose rows are only counted, which nothing looks at.
fn without_values(block: &mut Block) {
    let is_plain = block.aggregate.is_none() && block.windows.is_empty() && block.limit.is_none();
    if is_plain && block.offset.is_none() && !block.distinct && block.distinct_on == 0 {
        block.sort.clear();
        let values = block.projection.iter_mut();
        let computed = values.filter(|value| !matches!(value, Expr::Column(_) | Expr::Constant(_)));
        computed.for_each(|value| *value = Expr::Constant(Value::Null));
    }
}
