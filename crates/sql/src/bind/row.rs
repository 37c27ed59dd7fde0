//! Row values: `(a, b)` where it is compared, looked for, or asked whether it is NULL.
//!
//! Such a row is no record: it exists only on both sides of an operator, which is bound to one over its columns. Where
//! there is no row on the other side it becomes a record ([`super::record`]).
//!
//! | text | is |
//! | --- | --- |
//! | `(a, b) = (c, d)`, IS NOT DISTINCT FROM | all pairs are |
//! | `(a, b) <> (c, d)`, IS DISTINCT FROM | one pair is |
//! | `(a, b) < (c, d)` | [`Expr::RowTest`]: the first pair that is not equal decides |
//! | `(a, b) in ((1, 2), (3, 4))` | [`Expr::RowTest`] |
//! | `(a, b) in (select …)`, `(a, b) < all (select …)` | [`SubqueryForm::Quantified`] |
//! | `(a, b) = (select …)` | [`SubqueryForm::Row`] |
//! | `(a, b) overlaps (c, d)` | a call of `overlaps` with the columns of both |
//! | `(a, b) is null`, `is not null` | all columns are |

use sqlparser::ast;

use crate::bind::predicate::comparison;
use crate::bind::row_columns::{RowColumn, columns_of, query_of};
use crate::bind::scope::Scope;
use crate::bind::types::comparison_type;
use crate::bind::{Binder, Typed, boolean};
use crate::error::{EngineError, Result, SqlState};
use crate::expr::{CompareOp, Expr, Quantified, SubqueryForm};
use crate::value::DataType;

/// 42601 for OVERLAPS with anything but a row on a side.
pub(super) fn no_rows_to_overlap(position: Option<u32>) -> EngineError {
    EngineError::new(SqlState::SYNTAX_ERROR, "syntax error at or near \"OVERLAPS\"").or_position(position)
}

impl Binder<'_> {
    /// An operator that has a row value on its left; `None` if it is none that takes one.
    pub(super) fn row_operator(
        &mut self,
        left: &[RowColumn<'_>],
        operator: &ast::Expr,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Option<Typed>> {
        let expr = match operator {
            ast::Expr::BinaryOp {
                op: ast::BinaryOperator::Overlaps,
                right,
                ..
            } => {
                return self.overlaps(left, right, scope, position).map(Some);
            }
            ast::Expr::BinaryOp { op, right, .. } => {
                let Some(op) = comparison(op) else {
                    return Ok(None);
                };
                if let Some(query) = query_of(right) {
                    let row = self.row_of(left, scope)?;
                    return self
                        .row_with_query(row, op, query, SubqueryForm::Row, scope, position)
                        .map(Some);
                }
                let Some(right) = columns_of(right) else {
                    return Ok(None);
                };
                self.compare_rows(left, op, &right, scope, position)?
            }
            ast::Expr::InSubquery {
                subquery, negated, ..
            } => {
                let row = self.row_of(left, scope)?;
                let form = SubqueryForm::Quantified;
                let typed = self.row_with_query(row, CompareOp::Equal, subquery, form, scope, position)?;
                match negated {
                    true => Expr::Not(Box::new(typed.expr)),
                    false => typed.expr,
                }
            }
            ast::Expr::AnyOp {
                compare_op: op,
                right,
                ..
            }
            | ast::Expr::AllOp {
                compare_op: op,
                right,
                ..
            } => {
                let (Some(op), Some(query)) = (comparison(op), query_of(right)) else {
                    return Ok(None);
                };
                let all = matches!(operator, ast::Expr::AllOp { .. });
                let row = self.row_of(left, scope)?;
                let form = |quantified| SubqueryForm::Quantified(Quantified { all, ..quantified });
                return self
                    .row_with_query(row, op, query, form, scope, position)
                    .map(Some);
            }
            ast::Expr::IsDistinctFrom(_, right) | ast::Expr::IsNotDistinctFrom(_, right) => {
                let Some(right) = columns_of(right) else {
                    return Ok(None);
                };
                let negated = matches!(operator, ast::Expr::IsNotDistinctFrom(..));
                self.distinct_rows(left, &right, negated, scope, position)?
            }
            ast::Expr::InList { list, negated, .. } => {
                let Some(rows) = list.iter().map(columns_of).collect::<Option<Vec<_>>>() else {
                    return Ok(None);
                };
                self.row_in(left, &rows, *negated, scope, position)?
            }
            ast::Expr::IsNull(_) | ast::Expr::IsNotNull(_) => {
                let negated = matches!(operator, ast::Expr::IsNotNull(_));
                let mut all = Vec::with_capacity(left.len());
                for column in self.row_of(left, scope)? {
                    all.push(self.is_null_column(column, negated)?);
                }
                Expr::And(all)
            }
            _ => return Ok(None),
        };
        Ok(Some(boolean(expr)))
    }

    /// `(a, b) OVERLAPS (c, d)`.
    fn overlaps(
        &mut self,
        left: &[RowColumn<'_>],
        right: &ast::Expr,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        let right_position = self.position_of(right);
        let right = columns_of(right).ok_or_else(|| no_rows_to_overlap(right_position))?;
        let mut arguments = Vec::with_capacity(4);
        for (side, columns, position) in [("left", left, position), ("right", &right, right_position)] {
            if columns.len() != 2 {
                return Err(EngineError::new(
                    SqlState::SYNTAX_ERROR,
                    format!("wrong number of parameters on {side} side of OVERLAPS expression"),
                )
                .or_position(position));
            }
            arguments.append(&mut self.row_of(columns, scope)?);
        }
        self.scalar_of("overlaps", arguments, position)
    }

    pub(super) fn row_of(&mut self, columns: &[RowColumn<'_>], scope: &mut Scope) -> Result<Vec<Typed>> {
        let mut all = Vec::with_capacity(columns.len());
        for column in columns {
            match &**column {
                ast::Expr::QualifiedWildcard(name, _) => all.extend(self.columns_of_relation(name, scope)?),
                column => all.push(self.expression(column, scope)?),
            }
        }
        Ok(all)
    }

    fn compare_rows(
        &mut self,
        left: &[RowColumn<'_>],
        op: CompareOp,
        right: &[RowColumn<'_>],
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Expr> {
        let left = self.row_of(left, scope)?;
        let right = self.row_of(right, scope)?;
        require_same_length(left.len(), right.len(), position)?;
        if left.is_empty() {
            return Err(EngineError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot compare rows of zero length",
            )
            .or_position(position));
        }
        if matches!(op, CompareOp::Equal | CompareOp::NotEqual) {
            let pairs = left.into_iter().zip(right);
            let pairs = pairs.map(|(left, right)| self.compare(left, op, right, position));
            let pairs = pairs.collect::<Result<Vec<_>>>()?;
            return Ok(match op {
                CompareOp::Equal => Expr::And(pairs),
                _ => Expr::Or(pairs),
            });
        }
        let (mut input, mut row, mut types) = (Vec::new(), Vec::new(), Vec::new());
        for (left, right) in left.into_iter().zip(right) {
            let (left, right, data_type) = self.both_sides(left, op.symbol(), right, position)?;
            input.push(left);
            row.push(right);
            types.push(data_type);
        }
        Ok(Expr::RowTest {
            input,
            op,
            rows: vec![row],
            types,
            negated: false,
        })
    }

    fn distinct_rows(
        &mut self,
        left: &[RowColumn<'_>],
        right: &[RowColumn<'_>],
        negated: bool,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Expr> {
        let left = self.row_of(left, scope)?;
        let right = self.row_of(right, scope)?;
        require_same_length(left.len(), right.len(), position)?;
        let mut pairs = Vec::with_capacity(left.len());
        for (left, right) in left.into_iter().zip(right) {
            let (left, right, data_type) = self.both_sides(left, "IS DISTINCT FROM", right, position)?;
            pairs.push(Expr::Distinct {
                left: Box::new(left),
                right: Box::new(right),
                data_type,
                negated,
            });
        }
        Ok(if negated {
            Expr::And(pairs)
        } else {
            Expr::Or(pairs)
        })
    }

    fn row_in(
        &mut self,
        left: &[RowColumn<'_>],
        rows: &[Vec<RowColumn<'_>>],
        negated: bool,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Expr> {
        let left = self.row_of(left, scope)?;
        let mut types: Vec<DataType> = left.iter().map(|column| column.data_type).collect();
        let mut bound = Vec::with_capacity(rows.len());
        for row in rows {
            let row = self.row_of(row, scope)?;
            require_same_length(left.len(), row.len(), position)?;
            for (data_type, column) in types.iter_mut().zip(&row) {
                *data_type = comparison_type(*data_type, column.data_type)
                    .ok_or_else(|| self.no_operator(*data_type, "=", column.data_type, position))?;
            }
            bound.push(row);
        }
        let mut sides = |row: Vec<Typed>| {
            let columns = row.into_iter().zip(&types);
            columns
                .map(|(column, data_type)| self.side(column, *data_type, position))
                .collect::<Result<Vec<_>>>()
        };
        let input = sides(left)?;
        let rows = bound.into_iter().map(sides).collect::<Result<Vec<_>>>()?;
        Ok(Expr::RowTest {
            input,
            op: CompareOp::Equal,
            rows,
            types,
            negated,
        })
    }
}

/// 42601 for rows of different lengths.
fn require_same_length(left: usize, right: usize, position: Option<u32>) -> Result<()> {
    if left == right {
        return Ok(());
    }
    let message = "unequal number of entries in row expressions";
    Err(EngineError::new(SqlState::SYNTAX_ERROR, message).or_position(position))
}
