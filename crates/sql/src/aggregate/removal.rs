//! Taking values out of an aggregate's state again, for frames whose start moves.
//!
//! The result must be the one of a fresh state over the values that remain, digit for digit. That holds for counts and
//! for sums of whole numbers, of numerics and of intervals, which are exact; a sum of doubles depends on all that went through it, so
//! it is never reduced. A sum of numerics shows as many digits behind the point as the value with the most of them: when
//! the last such value goes, the sum is made anew. So it is while NaN or an infinity is among the values.

use super::state::State;
use super::{Accumulator, AggregateCall};
use crate::context::EvalContext;
use crate::error::Result;
use crate::expr::Expr;
use crate::value::{DataType, Value};

/// The properties of the values in a state that taking out depends on.
#[derive(Debug, Clone, Default)]
pub struct Removal {
    /// The most digits behind the point, and number of values that have them.
    scale: u16,
    at_scale: u64,
    /// True if a value was NaN or infinite.
    has_special: bool,
}

impl AggregateCall {
    /// True if values can be taken out of its state.
    pub fn can_remove(&self) -> bool {
        let exact = match self.function.name() {
            "count" => true,
            "sum" | "avg" => matches!(
                self.argument_types.first(),
                Some(
                    DataType::Int2 | DataType::Int4 | DataType::Int8 | DataType::Numeric | DataType::Interval
                )
            ),
            _ => false,
        };
        exact && !self.is_ordered() && self.expressions().all(Expr::is_repeatable)
    }

    /// The argument that a row brings, if the row counts: it passes the filter and the argument is not NULL.
    fn value_of(&self, row: &[Value], context: &EvalContext<'_>) -> Result<Option<Value>> {
        if !self.passes(row, context)? {
            return Ok(None);
        }
        match self.inputs.first() {
            // Any value counts.
            None => Ok(Some(Value::Bool(true))),
            Some(argument) => Ok(Some(argument.eval(row, context)?).filter(|value| !value.is_null())),
        }
    }

    /// Takes a row into a state from which it may be taken out again.
    pub fn take_for_now(
        &self,
        accumulator: &mut Accumulator,
        removal: &mut Removal,
        row: &[Value],
        context: &EvalContext<'_>,
    ) -> Result<()> {
        let Some(value) = self.value_of(row, context)? else {
            return Ok(());
        };
        if let Value::Numeric(number) = &value {
            match number.scale() {
                None => removal.has_special = true,
                Some(scale) if scale > removal.scale || removal.at_scale == 0 => {
                    removal.scale = scale;
                    removal.at_scale = 1;
                }
                Some(scale) => removal.at_scale += u64::from(scale == removal.scale),
            }
        }
        match self.inputs.is_empty() {
            true => self.take_values(accumulator, &[]),
            false => self.take_values(accumulator, &[value]),
        }
    }

    /// Takes a row out of a state that it was taken into; `false` if the state must be made anew.
    pub fn take_out(
        &self,
        accumulator: &mut Accumulator,
        removal: &mut Removal,
        row: &[Value],
        context: &EvalContext<'_>,
    ) -> Result<bool> {
        let Some(value) = self.value_of(row, context)? else {
            return Ok(true);
        };
        if let Value::Numeric(number) = &value {
            if removal.has_special {
                return Ok(false);
            }
            if number.scale() == Some(removal.scale) {
                removal.at_scale = removal.at_scale.saturating_sub(1);
                if removal.at_scale == 0 {
                    return Ok(false);
                }
            }
        }
        match (&mut accumulator.state, &value) {
            (State::Count, _) => {}
            (State::Numeric(sum), Value::Numeric(number)) => *sum = sum.subtract(number)?,
            (State::Interval(sum), Value::Interval(taken)) => *sum = sum.subtract(*taken)?,
            (State::Whole(sum), value) => match value.as_i64() {
                Some(number) => *sum -= i128::from(number),
                None => return Err(self.unexpected(value)),
            },
            _ => return Ok(false),
        }
        accumulator.rows -= 1;
        Ok(true)
    }
}
