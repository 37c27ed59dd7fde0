//! Predicates: comparisons, BETWEEN, IN, LIKE, IS.

use sqlparser::ast::{self, BinaryOperator};

use crate::bind::chain::after;
use crate::bind::scope::Scope;
use crate::bind::types::comparison_type;
use crate::bind::{Binder, Typed, boolean};
use crate::error::{EngineError, Result, SqlState};
use crate::expr::{CompareOp, Expr};
use crate::value::DataType;
use crate::value::cast::{CastContext, can_cast};

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

    pub(super) fn is_truth(
        &mut self,
        input: Typed,
        truth: Option<bool>,
        negated: bool,
        position: Option<u32>,
    ) -> Result<Typed> {
        let input = self.condition(input, "IS TRUE, IS FALSE or IS UNKNOWN", position)?;
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

    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of one operator, taken apart once"
    )]
    pub(super) fn like(
        &mut self,
        input: Typed,
        pattern: &ast::Expr,
        escape: Option<&ast::Expr>,
        negated: bool,
        ignore_case: bool,
        scope: &mut Scope,
        position: Option<u32>,
    ) -> Result<Typed> {
        let escape = match escape {
            None => Some('\\'),
            Some(ast::Expr::Value(value)) => match value.value.clone().into_string() {
                Some(text) if text.chars().count() <= 1 => text.chars().next(),
                _ => {
                    return Err(
                        EngineError::new(SqlState::INVALID_ESCAPE_SEQUENCE, "invalid escape string")
                            .with_hint("Escape string must be empty or one character.")
                            .or_position(position),
                    );
                }
            },
            Some(_) => return Err(EngineError::not_supported("a computed ESCAPE").or_position(position)),
        };
        let symbol = if ignore_case { "~~*" } else { "~~" };
        let pattern = self.expression(pattern, scope)?;
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
