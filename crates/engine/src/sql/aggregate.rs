//! Aggregate functions: count, sum, avg, min, max.
//!
//! Result types follow PostgreSQL: `sum(smallint)` and `sum(integer)` are bigint, `sum(bigint)` is numeric, an average
//! of whole numbers is numeric. Sums of whole numbers are kept as 128-bit integers, so they cannot overflow before
//! their result does.

use std::collections::HashSet;

use crate::error::{EngineError, Result, SqlState};
use crate::sql::expr::{EvalContext, Expr};
use crate::value::arithmetic::divide_numeric;
use crate::value::{DataType, Decimal, Value, compare, encode_key};

/// Which aggregate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AggregateFunction {
    /// `count(*)`
    CountRows,
    /// `count(x)`
    Count,
    /// `sum(x)`
    Sum,
    /// `avg(x)`
    Avg,
    /// `min(x)`
    Min,
    /// `max(x)`
    Max,
}

impl AggregateFunction {
    /// The function of this name, if it is one of ours.
    pub fn by_name(name: &str) -> Option<AggregateFunction> {
        Some(match name {
            "count" => AggregateFunction::Count,
            "sum" => AggregateFunction::Sum,
            "avg" => AggregateFunction::Avg,
            "min" => AggregateFunction::Min,
            "max" => AggregateFunction::Max,
            _ => return None,
        })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            AggregateFunction::CountRows | AggregateFunction::Count => "count",
            AggregateFunction::Sum => "sum",
            AggregateFunction::Avg => "avg",
            AggregateFunction::Min => "min",
            AggregateFunction::Max => "max",
        }
    }

    /// The type of its result over arguments of this type; `None` if there is no such aggregate.
    pub fn result_type(self, argument: DataType) -> Option<DataType> {
        use DataType::*;
        Some(match self {
            AggregateFunction::CountRows | AggregateFunction::Count => Int8,
            AggregateFunction::Sum => match argument {
                Int2 | Int4 => Int8,
                Int8 | Numeric => Numeric,
                Float8 => Float8,
                _ => return None,
            },
            AggregateFunction::Avg => match argument {
                Int2 | Int4 | Int8 | Numeric => Numeric,
                Float8 => Float8,
                _ => return None,
            },
            AggregateFunction::Min | AggregateFunction::Max => match argument {
                Bool => return None,
                Varchar | Name | Unknown | CharByte => Text,
                other => other,
            },
        })
    }
}

/// One call of an aggregate in a query.
#[derive(Debug, Clone, PartialEq)]
pub struct AggregateCall {
    /// Which aggregate.
    pub function: AggregateFunction,
    /// Its argument over the input row; `None` for `count(*)`.
    pub argument: Option<Expr>,
    /// The argument's type.
    pub argument_type: DataType,
    /// DISTINCT: equal arguments count once.
    pub distinct: bool,
    /// FILTER (WHERE …)
    pub filter: Option<Expr>,
    /// The result's type.
    pub result_type: DataType,
}

impl AggregateCall {
    /// A fresh state for one group.
    pub fn start(&self) -> Accumulator {
        Accumulator {
            seen: self.distinct.then(HashSet::new),
            rows: 0,
            state: match (self.function, self.argument_type) {
                (AggregateFunction::CountRows | AggregateFunction::Count, _) => State::Count,
                (AggregateFunction::Min | AggregateFunction::Max, _) => State::Extreme(Value::Null),
                (_, DataType::Float8) => State::Float(0.0),
                (_, DataType::Numeric) => State::Numeric(Decimal::ZERO),
                _ => State::Integer(0),
            },
        }
    }

    /// Takes one input row into a group's state.
    pub fn take(
        &self,
        accumulator: &mut Accumulator,
        row: &[Value],
        context: &EvalContext<'_>,
    ) -> Result<()> {
        if let Some(filter) = &self.filter
            && !filter.passes(row, context)?
        {
            return Ok(());
        }
        match &self.argument {
            None => {
                accumulator.rows += 1;
                Ok(())
            }
            Some(Expr::Column(position)) => self.take_value(accumulator, &row[usize::from(*position)]),
            Some(argument) => self.take_value(accumulator, &argument.eval(row, context)?),
        }
    }

    /// Takes one argument value into a group's state; NULL changes nothing.
    pub fn take_value(&self, accumulator: &mut Accumulator, value: &Value) -> Result<()> {
        if value.is_null() {
            return Ok(());
        }
        if let Some(seen) = &mut accumulator.seen
            && !seen.insert(encode_key(std::slice::from_ref(value), &[self.argument_type]))
        {
            return Ok(());
        }
        accumulator.rows += 1;
        match &mut accumulator.state {
            State::Count => {}
            State::Integer(sum) => *sum += i128::from(value.as_i64().unwrap_or(0)),
            State::Float(sum) => {
                if let Value::Float8(v) = value {
                    *sum += v;
                }
            }
            State::Numeric(sum) => {
                if let Value::Numeric(v) = value {
                    *sum = sum.checked_add(*v).ok_or_else(numeric_overflow)?;
                }
            }
            State::Extreme(best) => {
                let better = best.is_null() || {
                    let ordering = compare(value, best, self.argument_type);
                    if self.function == AggregateFunction::Min {
                        ordering.is_lt()
                    } else {
                        ordering.is_gt()
                    }
                };
                if better {
                    *best = value.clone();
                }
            }
        }
        Ok(())
    }

    /// The group's result.
    pub fn finish(&self, accumulator: Accumulator) -> Result<Value> {
        let rows = accumulator.rows;
        let average = self.function == AggregateFunction::Avg;
        Ok(match accumulator.state {
            State::Count => Value::Int8(rows),
            _ if rows == 0 => Value::Null,
            State::Extreme(best) => best,
            State::Float(sum) => Value::Float8(if average { sum / rows as f64 } else { sum }),
            State::Numeric(sum) if average => Value::Numeric(divide_numeric(sum, Decimal::from(rows))?),
            State::Numeric(sum) => Value::Numeric(sum),
            State::Integer(sum) if self.result_type == DataType::Int8 => {
                Value::Int8(i64::try_from(sum).map_err(|_| {
                    EngineError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range")
                })?)
            }
            State::Integer(sum) => {
                let sum = Decimal::try_from_i128_with_scale(sum, 0).map_err(|_| numeric_overflow())?;
                Value::Numeric(if average {
                    divide_numeric(sum, Decimal::from(rows))?
                } else {
                    sum
                })
            }
        })
    }
}

/// One group's state of one aggregate call.
#[derive(Debug, Clone)]
pub struct Accumulator {
    seen: Option<HashSet<Vec<u8>>>,
    rows: i64,
    state: State,
}

#[derive(Debug, Clone)]
enum State {
    Count,
    Integer(i128),
    Float(f64),
    Numeric(Decimal),
    Extreme(Value),
}

fn numeric_overflow() -> EngineError {
    EngineError::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        "value overflows numeric format",
    )
}
