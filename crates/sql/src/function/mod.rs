//! The scalar functions we have.

pub mod array;
mod array_text;
mod math;
mod number_format;
mod recovery;
mod resolve;

use std::cmp::Ordering;

use crate::context::{EvalContext, SessionFacts};
use crate::error::{EngineError, Result, SqlState};
use crate::memory;
use crate::search_path::first_schema;
use crate::value::arithmetic::{self, ArithmeticOp};
use crate::value::{DataType, Numeric, Value, compare_checked, datetime};

pub use array::ArrayFunction;
pub use math::MathFunction;
pub use recovery::RecoveryFunction;
pub use recovery::shown as shown_position;
pub use resolve::{Signature, resolve};

/// The version we tell clients that ask.
pub const VERSION: &str = concat!(
    "PostgreSQL 15.0 (Clearway ",
    env!("CARGO_PKG_VERSION"),
    ") on x86_64-pc-linux-gnu, compiled by rustc, 64-bit"
);

/// A scalar function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// `version()`
    Version,
    /// `now()`, `current_timestamp`, `transaction_timestamp()`
    Now,
    /// `statement_timestamp()`
    StatementTimestamp,
    /// `clock_timestamp()`
    ClockTimestamp,
    /// `current_date`
    CurrentDate,
    /// `localtimestamp`
    LocalTimestamp,
    /// `current_database()`, `current_catalog`
    CurrentDatabase,
    /// `current_schema()`
    CurrentSchema,
    /// `current_user`, `session_user`, `user`
    CurrentUser,
    /// `pg_backend_pid()`
    BackendPid,
    /// `current_setting(name [, missing_ok])`
    CurrentSetting,
    /// A function about the log or a standby
    Recovery(RecoveryFunction),
    /// `pg_advisory_unlock_all()`, which pools call: there are no advisory locks.
    AdvisoryUnlockAll,
    /// `random()`
    Random,
    /// `abs(x)`
    Abs,
    /// `mod(x, y)`
    Mod,
    /// `length(text)`
    Length,
    /// `lower(text)`
    Lower,
    /// `upper(text)`
    Upper,
    /// `floor(x)`
    Floor,
    /// `ceil(x)`
    Ceil,
    /// `round(x)`
    Round,
    /// `coalesce(…)`
    Coalesce,
    /// `nullif(x, y)` over values of one type
    NullIf(DataType),
    /// `greatest(…)` over values of one type
    Greatest(DataType),
    /// `least(…)` over values of one type
    Least(DataType),
    /// `repeat(text, n)`
    Repeat,
    /// `concat(…)` over text
    Concat,
    /// `to_char(number, template)`
    ToChar,
    /// `to_number(text, template)`
    ToNumber,
    /// `pg_sleep(seconds)`
    Sleep,
    /// A function of numbers
    Math(MathFunction),
    /// A function of arrays
    Array(ArrayFunction),
    /// `set_config(name, value, is_local)`
    SetConfig,
}

impl Function {
    /// True if two calls in one statement may give different values.
    pub fn is_volatile(self) -> bool {
        matches!(
            self,
            Function::Random
                | Function::ClockTimestamp
                | Function::Sleep
                | Function::SetConfig
                | Function::Recovery(_)
        )
    }

    /// True if its value depends on its arguments only.
    pub fn is_immutable(self) -> bool {
        use Function::*;
        matches!(
            self,
            Abs | Mod
                | Length
                | Lower
                | Upper
                | Floor
                | Ceil
                | Round
                | Math(_)
                | Array(_)
                | Coalesce
                | NullIf(_)
                | Greatest(_)
                | Least(_)
                | Repeat
                | ToChar
                | ToNumber
                | Concat
        )
    }

    /// The name by which PostgreSQL has it; of several names of one function the first of [`resolve`].
    pub const fn name(self) -> &'static str {
        match self {
            Function::Version => "version",
            Function::Now => "now",
            Function::StatementTimestamp => "statement_timestamp",
            Function::ClockTimestamp => "clock_timestamp",
            Function::CurrentDate => "current_date",
            Function::LocalTimestamp => "localtimestamp",
            Function::CurrentDatabase => "current_database",
            Function::CurrentSchema => "current_schema",
            Function::CurrentUser => "current_user",
            Function::BackendPid => "pg_backend_pid",
            Function::CurrentSetting => "current_setting",
            Function::Recovery(function) => function.name(),
            Function::AdvisoryUnlockAll => "pg_advisory_unlock_all",
            Function::Random => "random",
            Function::Abs => "abs",
            Function::Mod => "mod",
            Function::Length => "length",
            Function::Lower => "lower",
            Function::Upper => "upper",
            Function::Floor => "floor",
            Function::Ceil => "ceil",
            Function::Round => "round",
            Function::Coalesce => "coalesce",
            Function::NullIf(_) => "nullif",
            Function::Greatest(_) => "greatest",
            Function::Least(_) => "least",
            Function::Repeat => "repeat",
            Function::Concat => "concat",
            Function::ToChar => "to_char",
            Function::ToNumber => "to_number",
            Function::Sleep => "pg_sleep",
            Function::Math(function) => function.name(),
            Function::Array(function) => function.name(),
            Function::SetConfig => "set_config",
        }
    }

    /// Its value.
    pub fn call(self, arguments: &[Value], context: &EvalContext<'_>) -> Result<Value> {
        let session = context.session;
        Ok(match self {
            Function::Version => Value::from(VERSION),
            Function::Now => Value::TimestampTz(session.transaction_timestamp()),
            Function::StatementTimestamp => Value::TimestampTz(session.statement_timestamp()),
            Function::ClockTimestamp => Value::TimestampTz(datetime::clock()),
            Function::CurrentDate => {
                let days = session
                    .transaction_timestamp()
                    .div_euclid(datetime::MICROS_PER_DAY);
                Value::Date(days as i32)
            }
            Function::LocalTimestamp => Value::Timestamp(session.transaction_timestamp()),
            Function::CurrentDatabase => Value::from(session.database()),
            Function::CurrentSchema => current_schema(session),
            Function::CurrentUser => Value::from(session.user()),
            Function::BackendPid => Value::Int4(session.backend_pid()),
            Function::CurrentSetting => current_setting(arguments, session)?,
            Function::SetConfig => set_config(arguments, session)?,
            Function::Recovery(function) => function.call(arguments, session)?,
            Function::AdvisoryUnlockAll => Value::text(""),
            Function::Random => Value::Float8(session.random()),
            Function::Coalesce => return Err(EngineError::internal("coalesce evaluates its own arguments")),
            Function::NullIf(data_type) => null_if(arguments, data_type)?,
            Function::Greatest(data_type) => extreme(arguments, data_type, Ordering::is_gt)?,
            Function::Least(data_type) => extreme(arguments, data_type, Ordering::is_lt)?,
            Function::Concat => concat(arguments)?,
            Function::Array(function) => function.call(arguments)?,
            // The rest give NULL for NULL.
            _ if arguments.iter().any(Value::is_null) => Value::Null,
            Function::Abs => abs(&arguments[0])?,
            Function::Mod => arithmetic::apply(ArithmeticOp::Remainder, &arguments[0], &arguments[1])?,
            Function::Length => Value::Int4(text(&arguments[0])?.chars().count() as i32),
            Function::Lower => Value::from(&*made_of(&arguments[0])?.to_lowercase()),
            Function::Upper => Value::from(&*made_of(&arguments[0])?.to_uppercase()),
            Function::Floor => rounded(&arguments[0], f64::floor, Numeric::floor)?,
            Function::Ceil => rounded(&arguments[0], f64::ceil, Numeric::ceil)?,
            Function::Round => {
                let places = match arguments.get(1) {
                    Some(Value::Int4(places)) => *places,
                    _ => 0,
                };
                rounded(&arguments[0], f64::round_ties_even, |number| number.round(places))?
            }
            Function::Math(function) => function.call(arguments)?,
            Function::Repeat => repeat(&arguments[0], &arguments[1])?,
            Function::ToChar => Value::text(number_format::to_char(&arguments[0], made_of(&arguments[1])?)?),
            Function::ToNumber => {
                let number = number_format::to_number(made_of(&arguments[0])?, made_of(&arguments[1])?)?;
                number.map_or(Value::Null, Value::Numeric)
            }
            Function::Sleep => sleep(&arguments[0], session)?,
        })
    }
}

/// The first schema of the search path that there is.
fn current_schema(session: &dyn SessionFacts) -> Value {
    let path = session.setting("search_path");
    let schema = path.as_deref().and_then(first_schema);
    schema.map_or(Value::Null, Value::from)
}

fn current_setting(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let Some(name) = arguments[0].as_str() else {
        return Ok(Value::Null);
    };
    match session.setting(&name.to_lowercase()) {
        Some(value) => Ok(Value::from(&*value)),
        None if arguments.get(1).and_then(Value::as_bool) == Some(true) => Ok(Value::Null),
        None => Err(EngineError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("unrecognized configuration parameter \"{name}\""),
        )),
    }
}

fn set_config(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let Some(name) = arguments[0].as_str() else {
        return Err(EngineError::new(
            SqlState::NULL_VALUE_NOT_ALLOWED,
            "SET requires parameter name",
        ));
    };
    let local = arguments[2].as_bool() == Some(true);
    let set = session.set_setting(name, arguments[1].as_str(), local)?;
    Ok(Value::from(&*set))
}

fn null_if(arguments: &[Value], data_type: DataType) -> Result<Value> {
    let same = !arguments[0].is_null()
        && !arguments[1].is_null()
        && compare_checked(&arguments[0], &arguments[1], data_type)?.is_eq();
    Ok(if same { Value::Null } else { arguments[0].clone() })
}

/// The value that `is_better` than the others, NULLs aside; the first of equal ones.
fn extreme(arguments: &[Value], data_type: DataType, is_better: fn(Ordering) -> bool) -> Result<Value> {
    let mut found = &Value::Null;
    for value in arguments.iter().filter(|value| !value.is_null()) {
        if found.is_null() || is_better(compare_checked(value, found, data_type)?) {
            found = value;
        }
    }
    Ok(found.clone())
}

fn concat(arguments: &[Value]) -> Result<Value> {
    let texts = || arguments.iter().filter_map(output_text);
    check_length(texts().map(str::len).sum())?;
    Ok(Value::from(&*texts().collect::<String>()))
}

fn abs(value: &Value) -> Result<Value> {
    Ok(match value {
        Value::Int2(v) => Value::Int2(v.checked_abs().ok_or_else(|| range("smallint"))?),
        Value::Int4(v) => Value::Int4(v.checked_abs().ok_or_else(|| range("integer"))?),
        Value::Int8(v) => Value::Int8(v.checked_abs().ok_or_else(|| range("bigint"))?),
        Value::Float4(v) => Value::Float4(v.abs()),
        Value::Float8(v) => Value::Float8(v.abs()),
        Value::Numeric(v) => Value::Numeric(v.abs()),
        other => return Err(EngineError::internal(format!("abs of {other:?}"))),
    })
}

/// A number made whole, or one of fewer places, in its own type.
fn rounded(
    value: &Value,
    of_float: fn(f64) -> f64,
    of_numeric: impl FnOnce(&Numeric) -> Result<Numeric>,
) -> Result<Value> {
    match value {
        Value::Float8(v) => Ok(Value::Float8(of_float(*v))),
        Value::Numeric(v) => of_numeric(v).map(Value::Numeric),
        other => Err(EngineError::internal(format!("rounding of {other:?}"))),
    }
}

fn repeat(unit: &Value, count: &Value) -> Result<Value> {
    let count = count
        .as_i64()
        .ok_or_else(|| EngineError::internal(format!("repeat {count:?} times")))?
        .max(0) as usize;
    let unit = text(unit)?;
    check_length(unit.len().saturating_mul(count))?;
    Ok(Value::from(&*unit.repeat(count)))
}

fn sleep(seconds: &Value, session: &dyn SessionFacts) -> Result<Value> {
    const LONGEST_SECONDS: f64 = 1e9;
    if let Value::Float8(seconds) = *seconds
        && seconds > 0.0
    {
        session.sleep(std::time::Duration::from_secs_f64(seconds.min(LONGEST_SECONDS)))?;
    }
    Ok(Value::from(""))
}

/// The most bytes that a text may have.
const TEXT_BYTES_MAX: usize = 256 << 20;

/// 54000 for a text that would be too long, before it is made, and 53200 if there is no memory for it.
pub(crate) fn check_length(bytes: usize) -> Result<()> {
    if bytes > TEXT_BYTES_MAX {
        return Err(EngineError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!(
                "requested length too large: a text may have {} MB",
                TEXT_BYTES_MAX >> 20
            ),
        ));
    }
    // It is made, and then copied into the value.
    memory::require(2 * bytes)
}

/// The text that `concat` writes for a value; `None` for NULL.
fn output_text(value: &Value) -> Option<&str> {
    match value {
        Value::Bool(true) => Some("t"),
        Value::Bool(false) => Some("f"),
        other => other.as_str(),
    }
}

/// A text of which one of about its length is made.
fn made_of(value: &Value) -> Result<&str> {
    let text = text(value)?;
    memory::require(2 * text.len())?;
    Ok(text)
}

fn text(value: &Value) -> Result<&str> {
    value
        .as_str()
        .ok_or_else(|| EngineError::internal(format!("{value:?} is used as text")))
}

fn range(type_name: &str) -> EngineError {
    EngineError::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        format!("{type_name} out of range"),
    )
}
