//! Aggregate functions: count, sum, avg, min, max, and the variances and standard deviations.
//!
//! Result types follow PostgreSQL: `sum(smallint)` and `sum(integer)` are bigint, `sum(bigint)` is numeric, an average
//! of whole numbers is numeric. Sums of whole numbers are kept as 128-bit integers, so they cannot overflow before
//! their result does. A variance of whole numbers or numerics is computed exactly, from the sum and the sum of squares,
//! and rounded once; one of doubles from the mean's deviations, which loses less than squares do.

use crate::context::EvalContext;
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::value::numeric::PowerSums;
use crate::value::{DataType, Numeric, Value, compare_checked};

/// The aggregate functions.
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
    /// `stddev(x)`, `variance(x)` and their kin
    Spread(Spread),
}

/// A measure of how far values lie apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spread {
    /// Over a sample, so that n − 1 counts instead of n.
    pub sample: bool,
    /// The square root: the standard deviation instead of the variance.
    pub root: bool,
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
            "stddev" | "stddev_samp" => AggregateFunction::spread(true, true),
            "stddev_pop" => AggregateFunction::spread(false, true),
            "variance" | "var_samp" => AggregateFunction::spread(true, false),
            "var_pop" => AggregateFunction::spread(false, false),
            _ => return None,
        })
    }

    fn spread(sample: bool, root: bool) -> AggregateFunction {
        AggregateFunction::Spread(Spread { sample, root })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            AggregateFunction::CountRows | AggregateFunction::Count => "count",
            AggregateFunction::Sum => "sum",
            AggregateFunction::Avg => "avg",
            AggregateFunction::Min => "min",
            AggregateFunction::Max => "max",
            AggregateFunction::Spread(Spread {
                sample: true,
                root: true,
            }) => "stddev",
            AggregateFunction::Spread(Spread {
                sample: false,
                root: true,
            }) => "stddev_pop",
            AggregateFunction::Spread(Spread {
                sample: true,
                root: false,
            }) => "variance",
            AggregateFunction::Spread(Spread {
                sample: false,
                root: false,
            }) => "var_pop",
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
                Float4 => Float4,
                Float8 => Float8,
                _ => return None,
            },
            AggregateFunction::Avg | AggregateFunction::Spread(_) => match argument {
                Int2 | Int4 | Int8 | Numeric => Numeric,
                Float4 | Float8 => Float8,
                _ => return None,
            },
            AggregateFunction::Min | AggregateFunction::Max => match argument {
                Bool => return None,
                Varchar | Name | Unknown | CharByte => Text,
                kind if kind.is_oid() => Oid,
                other => other,
            },
        })
    }
}

/// One call of an aggregate in a query.
#[derive(Debug, Clone, PartialEq)]
pub struct AggregateCall {
    /// The aggregate function.
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
            rows: 0,
            state: match (self.function, self.argument_type) {
                (AggregateFunction::CountRows | AggregateFunction::Count, _) => State::Count,
                (AggregateFunction::Min | AggregateFunction::Max, _) => State::Extreme(Value::Null),
                (AggregateFunction::Spread(_), DataType::Float4 | DataType::Float8) => State::FloatSpread {
                    sum: 0.0,
                    squares: 0.0,
                },
                (AggregateFunction::Spread(_), _) => State::NumericSpread(PowerSums::default()),
                (AggregateFunction::Sum, DataType::Float4) => State::ShortFloat(0.0),
                (_, DataType::Float4 | DataType::Float8) => State::Float(0.0),
                (_, DataType::Numeric) => State::Numeric(Numeric::ZERO),
                _ => State::Integer(0),
            },
        }
    }

    /// Takes one input row into a group's state. With DISTINCT, `first` is asked whether the argument is to be taken
    /// now: what a group has seen is kept by the executor, which has a bound for it.
    pub fn take(
        &self,
        accumulator: &mut Accumulator,
        row: &[Value],
        context: &EvalContext<'_>,
        first: impl FnOnce(&Value) -> Result<bool>,
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
            Some(Expr::Column(position)) => self.take_first(accumulator, &row[usize::from(*position)], first),
            Some(argument) => self.take_first(accumulator, &argument.eval(row, context)?, first),
        }
    }

    #[inline]
    fn take_first(
        &self,
        accumulator: &mut Accumulator,
        value: &Value,
        first: impl FnOnce(&Value) -> Result<bool>,
    ) -> Result<()> {
        if self.distinct && !value.is_null() && !first(value)? {
            return Ok(());
        }
        self.take_value(accumulator, value)
    }

    /// Takes one argument value into a group's state; NULL changes nothing.
    pub fn take_value(&self, accumulator: &mut Accumulator, value: &Value) -> Result<()> {
        if value.is_null() {
            return Ok(());
        }
        accumulator.rows += 1;
        match &mut accumulator.state {
            State::Count => {}
            State::Integer(sum) => *sum += i128::from(value.as_i64().ok_or_else(|| self.unexpected(value))?),
            State::Float(sum) => {
                let value = self.float(value)?;
                let before = std::mem::replace(sum, *sum + value);
                if sum.is_infinite() && before.is_finite() && value.is_finite() {
                    return Err(overflow());
                }
            }
            State::ShortFloat(sum) => match value {
                Value::Float4(v) => {
                    let before = std::mem::replace(sum, *sum + v);
                    if sum.is_infinite() && before.is_finite() && v.is_finite() {
                        return Err(overflow());
                    }
                }
                other => return Err(self.unexpected(other)),
            },
            State::Numeric(sum) => match value {
                Value::Numeric(v) => *sum = sum.add(v)?,
                other => return Err(self.unexpected(other)),
            },
            State::FloatSpread { sum, squares } => {
                take_deviation(sum, squares, accumulator.rows as f64, self.float(value)?)?;
            }
            State::NumericSpread(sums) => match (value, value.as_i64()) {
                (Value::Numeric(v), _) => sums.take(v),
                (_, Some(whole)) => sums.take(&Numeric::from(whole)),
                (other, None) => return Err(self.unexpected(other)),
            },
            State::Extreme(best) => {
                let better = best.is_null() || {
                    let ordering = compare_checked(value, best, self.argument_type)?;
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
            State::ShortFloat(sum) => Value::Float4(sum),
            State::Numeric(sum) if average => Value::Numeric(sum.divide(&Numeric::from(rows))?),
            State::Numeric(sum) => Value::Numeric(sum),
            State::Integer(sum) if self.result_type == DataType::Int8 => {
                Value::Int8(i64::try_from(sum).map_err(|_| {
                    EngineError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range")
                })?)
            }
            State::Integer(sum) => {
                let sum = Numeric::from(sum);
                Value::Numeric(if average {
                    sum.divide(&Numeric::from(rows))?
                } else {
                    sum
                })
            }
            State::FloatSpread { squares, .. } => self.spread(rows, |spread, divisor| {
                let variance = squares / divisor as f64;
                Ok(Value::Float8(if spread.root {
                    variance.sqrt()
                } else {
                    variance
                }))
            })?,
            State::NumericSpread(sums) => self.spread(rows, |spread, divisor| {
                sums.variance(rows, divisor, spread.root).map(Value::Numeric)
            })?,
        })
    }

    /// Calls `result` with the divisor of the sum of squared deviations; NULL when a sample has one value only.
    fn spread(&self, rows: i64, result: impl FnOnce(Spread, i64) -> Result<Value>) -> Result<Value> {
        let AggregateFunction::Spread(spread) = self.function else {
            return Err(EngineError::internal(format!(
                "{} has no spread",
                self.function.name()
            )));
        };
        match (spread.sample, rows) {
            (true, 1) => Ok(Value::Null),
            (sample, rows) => result(spread, rows - i64::from(sample)),
        }
    }

    fn float(&self, value: &Value) -> Result<f64> {
        match value {
            Value::Float4(v) => Ok(f64::from(*v)),
            Value::Float8(v) => Ok(*v),
            other => Err(self.unexpected(other)),
        }
    }

    #[cold]
    fn unexpected(&self, value: &Value) -> EngineError {
        EngineError::internal(format!(
            "{} over {} is given {value:?}",
            self.function.name(),
            self.argument_type
        ))
    }
}

/// One group's state of one aggregate call.
#[derive(Debug, Clone)]
pub struct Accumulator {
    rows: i64,
    state: State,
}

impl Accumulator {
    /// The bytes that it has on the heap beside itself: a text that is the least or the greatest, long numbers.
    pub fn heap_bytes(&self) -> usize {
        match &self.state {
            State::Extreme(value) => value.heap_bytes(),
            State::Numeric(number) => number.heap_bytes(),
            State::NumericSpread(sums) => sums.heap_bytes(),
            _ => 0,
        }
    }
}

#[derive(Debug, Clone)]
enum State {
    Count,
    Integer(i128),
    Float(f64),
    /// A sum of `real`, rounded to one after each addition as in PostgreSQL
    ShortFloat(f32),
    Numeric(Numeric),
    /// The sum, and the sum of the squared deviations from the mean so far
    FloatSpread {
        sum: f64,
        squares: f64,
    },
    NumericSpread(PowerSums),
    Extreme(Value),
}

#[cold]
fn overflow() -> EngineError {
    EngineError::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        "value out of range: overflow",
    )
}

/// Takes the `rows`-th value into the sum of squared deviations (Youngs and Cramer, 1971); 22003 when finite values make
/// it infinite.
fn take_deviation(sum: &mut f64, squares: &mut f64, rows: f64, value: f64) -> Result<()> {
    let before = std::mem::replace(sum, *sum + value);
    if !value.is_finite() {
        *squares = f64::NAN;
    } else if rows > 1.0 {
        let deviation = value * rows - *sum;
        *squares += deviation * deviation / (rows * (rows - 1.0));
        if (sum.is_infinite() || squares.is_infinite()) && !before.is_infinite() {
            return Err(overflow());
        }
    }
    Ok(())
}
