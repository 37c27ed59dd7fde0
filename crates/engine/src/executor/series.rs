//! The rows of `generate_series`.

use crate::executor::Execution;
use clearway_sql::context::EvalContext;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::Series;
use clearway_sql::value::{DataType, Interval, Numeric, Value};

/// The rows of one `generate_series`.
#[derive(Debug)]
pub(super) struct SeriesRows {
    numbers: Numbers,
    pub(super) row: [Value; 1],
}

/// The numbers still to come.
#[derive(Debug)]
enum Numbers {
    Whole {
        /// The next one; `None` when there is none.
        next: Option<i64>,
        stop: i64,
        step: i64,
    },
    Numeric {
        /// The next one; `None` when there is none.
        next: Option<Numeric>,
        stop: Numeric,
        step: Numeric,
    },
    Times {
        /// The next one; `None` when there is none.
        next: Option<i64>,
        stop: i64,
        step: Interval,
        /// True if the step leads backwards.
        backwards: bool,
    },
}

impl SeriesRows {
    /// `None` when one of the three numbers is NULL: no rows.
    pub(super) fn open(
        context: &EvalContext<'_>,
        series: &Series,
        row: &[Value],
    ) -> Result<Option<SeriesRows>> {
        let start = series.start.eval(row, context)?;
        let stop = series.stop.eval(row, context)?;
        let step = match &series.step {
            Some(step) => step.eval(row, context)?,
            None if series.data_type == DataType::Numeric => Value::Numeric(Numeric::ONE),
            None => Value::Int8(1),
        };
        let numbers = match (start, stop, step) {
            (Value::Numeric(start), Value::Numeric(stop), Value::Numeric(step)) => {
                let named = [
                    ("start value", &start),
                    ("stop value", &stop),
                    ("step size", &step),
                ];
                named
                    .iter()
                    .try_for_each(|(name, number)| check_finite(name, number))?;
                check_step(step.is_zero())?;
                Numbers::Numeric {
                    next: Some(start),
                    stop,
                    step,
                }
            }
            (
                Value::Timestamp(start) | Value::TimestampTz(start),
                Value::Timestamp(stop) | Value::TimestampTz(stop),
                Value::Interval(step),
            ) => {
                check_step(step.span() == 0)?;
                Numbers::Times {
                    next: Some(start),
                    stop,
                    step,
                    backwards: step.span() < 0,
                }
            }
            (start, stop, step) => {
                let (Some(start), Some(stop), Some(step)) = (start.as_i64(), stop.as_i64(), step.as_i64())
                else {
                    return Ok(None);
                };
                check_step(step == 0)?;
                Numbers::Whole {
                    next: Some(start),
                    stop,
                    step,
                }
            }
        };
        Ok(Some(SeriesRows {
            numbers,
            row: [Value::Null],
        }))
    }

    /// Makes the next row that passes the filter; `false` when there is none.
    pub(super) fn next(&mut self, execution: &mut Execution<'_>, series: &Series) -> Result<bool> {
        while let Some(value) = self.numbers.take(series.data_type)? {
            execution.tick()?;
            self.row = [value];
            match &series.filter {
                Some(filter) if !filter.passes(&self.row, &execution.eval)? => {}
                _ => return Ok(true),
            }
        }
        Ok(false)
    }
}

impl Numbers {
    #[inline]
    fn take(&mut self, data_type: DataType) -> Result<Option<Value>> {
        if let Numbers::Times {
            next,
            stop,
            step,
            backwards,
        } = self
        {
            let Some(current) = *next else {
                return Ok(None);
            };
            let past = if *backwards {
                current < *stop
            } else {
                current > *stop
            };
            if past {
                *next = None;
                return Ok(None);
            }
            if data_type == DataType::Timestamp {
                *next = Some(step.after(current)?);
                return Ok(Some(Value::Timestamp(current)));
            }
            *next = Some(step.after_in_session(current)?);
            return Ok(Some(Value::TimestampTz(current)));
        }
        Ok(self.take_number(data_type))
    }

    #[inline]
    fn take_number(&mut self, data_type: DataType) -> Option<Value> {
        match self {
            Numbers::Whole { next, stop, step } => {
                let current = (*next)?;
                let past = if *step > 0 {
                    current > *stop
                } else {
                    current < *stop
                };
                if past {
                    *next = None;
                    return None;
                }
                *next = current.checked_add(*step);
                Some(match data_type {
                    DataType::Int4 => Value::Int4(current as i32),
                    _ => Value::Int8(current),
                })
            }
            Numbers::Numeric { next, stop, step } => {
                let current = next.take()?;
                let order = current.compare(stop);
                if if step.signum() > 0 {
                    order.is_gt()
                } else {
                    order.is_lt()
                } {
                    return None;
                }
                // What no numeric can hold is beyond every stop.
                *next = current.add(step).ok();
                Some(Value::Numeric(current))
            }
            Numbers::Times { .. } => None,
        }
    }
}

fn check_step(is_zero: bool) -> Result<()> {
    match is_zero {
        true => Err(invalid("step size cannot equal zero".to_owned())),
        false => Ok(()),
    }
}

fn check_finite(name: &str, number: &Numeric) -> Result<()> {
    match (number.is_nan(), number.is_infinite()) {
        (true, _) => Err(invalid(format!("{name} cannot be NaN"))),
        (_, true) => Err(invalid(format!("{name} cannot be infinity"))),
        _ => Ok(()),
    }
}

#[cold]
fn invalid(message: String) -> EngineError {
    EngineError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}
