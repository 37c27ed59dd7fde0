//! Predicates: comparisons, BETWEEN, IN, LIKE, IS.

use sqlparser::ast::{self, BinaryOperator};

use crate::bind::chain::after;
use crate::bind::record::is_row;
use crate::bind::scope::Scope;
use crate::bind::types::comparison_type;
use crate::bind::{Binder, Typed, boolean};
use crate::error::Result;
use crate::expr::{CompareOp, Expr};
use crate::value::cast::{CastContext, can_cast};
use crate::value::{DataType, Value};

impl Binder<'_> {
    pub(super) fn between(
        &mut self,
        input: Typed,
        low: &ast::Expr,
        high: &ast::Expr,
        negated: bool,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        let low = self.expression(low, scope)?;
        let high = self.expression(high, scope)?;
        let (input, step) = self.used_often(input);
        let lower = self.compare(input.clone(), CompareOp::GreaterOrEqual, low, position)?;
        let input = self.used_again(input);
        let upper = self.compare(input, CompareOp::LessOrEqual, high, position)?;
        let both = Expr::And(vec![lower, upper]);
        Ok(boolean(after(
            step,
            if negated { Expr::Not(Box::new(both)) } else { both },
        )))
    }

    /// BETWEEN SYMMETRIC: the bounds may be in either order.
    pub(super) fn between_symmetric(
        &mut self,
        input: Typed,
        low: &ast::Expr,
        high: &ast::Expr,
        negated: bool,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        let low = self.expression(low, scope)?;
        let high = self.expression(high, scope)?;
        let mut common = input.data_type;
        for bound in [low.data_type, high.data_type] {
            common = comparison_type(common, bound)
                .ok_or_else(|| self.no_operator(input.data_type, ">=", bound, position))?;
        }
        let arguments = [input, low, high]
            .into_iter()
            .map(|side| self.side(side, common, position))
            .collect::<Result<Vec<_>>>()?;
        let between = Expr::Call {
            function: crate::function::between_symmetric(common),
            arguments,
        };
        Ok(boolean(if negated {
            Expr::Not(Box::new(between))
        } else {
            between
        }))
    }

    /// A comparison, both sides brought to one type. Integers of different widths are compared as they are.
    pub(super) fn compare(
        &mut self,
        left: Typed,
        op: CompareOp,
        right: Typed,
        position: Option<u32>,
    ) -> Result<Expr> {
        let (left, right, data_type) = self.both_sides(left, op.symbol(), right, position)?;
        Ok(Expr::Compare {
            op,
            left: Box::new(left),
            right: Box::new(right),
            data_type,
        })
    }

    pub(super) fn both_sides(
        &mut self,
        left: Typed,
        symbol: &str,
        right: Typed,
        position: Option<u32>,
    ) -> Result<(Expr, Expr, DataType)> {
        // Transactions' numbers equal integers or not, and have no order.
        if let (DataType::Xid, DataType::Int2 | DataType::Int4) = (left.data_type, right.data_type)
            && matches!(symbol, "=" | "<>")
        {
            return Ok((left.expr, right.expr, DataType::Int8));
        }
        let common = comparison_type(left.data_type, right.data_type)
            .ok_or_else(|| self.no_operator(left.data_type, symbol, right.data_type, position))?;
        Ok((
            self.side(left, common, position)?,
            self.side(right, common, position)?,
            common,
        ))
    }

    pub(super) fn side(&mut self, side: Typed, common: DataType, position: Option<u32>) -> Result<Expr> {
        if side.data_type.is_whole() && common.is_whole() {
            return Ok(side.expr);
        }
        self.coerce(side, common, position)
    }

    pub(super) fn distinct(
        &mut self,
        left: Typed,
        right: &ast::Expr,
        negated: bool,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        let right = self.expression(right, scope)?;
        let (left, right, data_type) = self.both_sides(left, "IS DISTINCT FROM", right, position)?;
        Ok(boolean(Expr::Distinct {
            left: Box::new(left),
            right: Box::new(right),
            data_type,
            negated,
        }))
    }

    pub(super) fn is_null(&mut self, input: Typed, negated: bool) -> Result<Typed> {
        let input = self.settle(input)?;
        Ok(boolean(Expr::IsNull {
            input: Box::new(input.expr),
            negated,
        }))
    }

    /// IS NULL of a column of a row value: a record in there is not asked for its fields.
    pub(super) fn is_null_column(&mut self, column: Typed, negated: bool) -> Result<Expr> {
        if !is_row(column.data_type) {
            return Ok(self.is_null(column, negated)?.expr);
        }
        Ok(Expr::Distinct {
            left: Box::new(column.expr),
            right: Box::new(Expr::Constant(Value::Null)),
            data_type: DataType::Record,
            negated: !negated,
        })
    }

    pub(super) fn is_truth(
        &mut self,
        input: Typed,
        truth: Option<bool>,
        negated: bool,
        position: Option<u32>,
    ) -> Result<Typed> {
        let test = match (truth, negated) {
            (Some(true), false) => "IS TRUE",
            (Some(true), true) => "IS NOT TRUE",
            (Some(false), false) => "IS FALSE",
            (Some(false), true) => "IS NOT FALSE",
            (None, false) => "IS UNKNOWN",
            (None, true) => "IS NOT UNKNOWN",
        };
        let input = self.condition(input, test, position)?;
        Ok(boolean(Expr::IsTruth {
            input: Box::new(input),
            truth,
            negated,
        }))
    }

    pub(super) fn in_list(
        &mut self,
        input: Typed,
        list: &[ast::Expr],
        negated: bool,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        let list = list
            .iter()
            .map(|tree| self.expression(tree, scope))
            .collect::<Result<Vec<_>>>()?;
        let mut data_type = input.data_type;
        // Several constants are brought to the type of a real together; a single one makes doubles of both sides.
        let as_real = data_type == DataType::Float4
            && list.len() > 1
            && list.iter().all(|candidate| {
                matches!(candidate.expr, Expr::Constant(_) | Expr::Parameter(_))
                    && candidate.data_type != DataType::Float8
                    && can_cast(candidate.data_type, DataType::Float4, CastContext::Implicit)
            });
        for candidate in list.iter().filter(|_| !as_real) {
            data_type = comparison_type(data_type, candidate.data_type)
                .ok_or_else(|| self.no_operator(input.data_type, "=", candidate.data_type, position))?;
        }
        let input = self.side(input, data_type, position)?;
        let list = list
            .into_iter()
            .map(|candidate| self.side(candidate, data_type, position))
            .collect::<Result<Vec<_>>>()?;
        Ok(boolean(Expr::InList {
            input: Box::new(input),
            list,
            data_type,
            negated,
        }))
    }

    /// The pattern of LIKE and its escape character. A computed one is put into the pattern.
    pub(super) fn pattern(
        &mut self,
        pattern: &ast::Expr,
        escape: Option<&ast::Expr>,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<(Typed, Option<char>)> {
        let pattern = self.expression(pattern, scope)?;
        let Some(escape) = escape else {
            return Ok((pattern, Some('\\')));
        };
        let escape = self.expression(escape, scope)?;
        match &escape.expr {
            Expr::Constant(Value::Text(text)) if text.chars().count() < 2 => {
                let escape = text.chars().next();
                Ok((pattern, escape))
            }
            _ => {
                let escaped = self.scalar_of("like_escape", vec![pattern, escape], position)?;
                Ok((escaped, Some('\\')))
            }
        }
    }

    pub(super) fn like(
        &mut self,
        input: Typed,
        pattern: Typed,
        escape: Option<char>,
        negated: bool,
        ignore_case: bool,
        position: Option<u32>,
    ) -> Result<Typed> {
        let symbol = if ignore_case { "~~*" } else { "~~" };
        for side in [&input, &pattern] {
            if !side.data_type.is_string() && side.data_type != DataType::Unknown {
                return Err(self.no_operator(input.data_type, symbol, pattern.data_type, position));
            }
        }
        // A char keeps its blanks here: LIKE looks at them.
        let input = match input.data_type {
            DataType::Char => input.expr,
            _ => self.coerce(input, DataType::Text, position)?,
        };
        let pattern = self.coerce(pattern, DataType::Text, position)?;
        Ok(boolean(Expr::Like {
            input: Box::new(input),
            pattern: Box::new(pattern),
            escape,
            ignore_case,
            negated,
        }))
    }
}

pub(super) fn comparison(op: &BinaryOperator) -> Option<CompareOp> {
    Some(match op {
        BinaryOperator::Eq => CompareOp::Equal,
        BinaryOperator::NotEq => CompareOp::NotEqual,
        BinaryOperator::Lt => CompareOp::Less,
        BinaryOperator::LtEq => CompareOp::LessOrEqual,
        BinaryOperator::Gt => CompareOp::Greater,
        BinaryOperator::GtEq => CompareOp::GreaterOrEqual,
        _ => return None,
    })
}
