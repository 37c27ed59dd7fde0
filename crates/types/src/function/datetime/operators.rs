//! The operators between dates, times and intervals, and the functions that PostgreSQL has them by.

use super::operands::{double, interval, moment};
use crate::error::{EngineError, Result, SqlState};
use crate::function::int;
use crate::function::row::Implementation::Pure;
use crate::function::row::{FunctionRow, row};
use crate::value::DataType::{Date, Float8, Int4, Interval as Span, Time, TimeTz, Timestamp, TimestampTz};
use crate::value::arithmetic::{self, ArithmeticOp};
use crate::value::datetime::{MICROS_PER_DAY, NamedZone, is_valid_timestamp};
use crate::value::{Interval, Value};

/// The functions.
pub(in crate::function) static ROWS: &[FunctionRow] = &[
    row(1169, "interval_pl", &[Span, Span], Span, Pure(add_intervals)).operator("+"),
    row(1170, "interval_mi", &[Span, Span], Span, Pure(subtract_intervals)).operator("-"),
    row(1168, "interval_um", &[Span], Span, Pure(negate)).operator("-"),
    row(1618, "interval_mul", &[Span, Float8], Span, Pure(multiply)).operator("*"),
    row(
        1624,
        "mul_d_interval",
        &[Float8, Span],
        Span,
        Pure(|x| multiply(&swapped(x))),
    )
    .operator("*"),
    row(1326, "interval_div", &[Span, Float8], Span, Pure(divide)).operator("/"),
    row(
        2032,
        "timestamp_pl_interval",
        &[Timestamp, Span],
        Timestamp,
        Pure(later),
    )
    .operator("+"),
    row(
        2033,
        "timestamp_mi_interval",
        &[Timestamp, Span],
        Timestamp,
        Pure(earlier),
    )
    .operator("-"),
    row(
        2548,
        "interval_pl_timestamp",
        &[Span, Timestamp],
        Timestamp,
        Pure(|x| later(&swapped(x))),
    )
    .operator("+"),
    row(
        1189,
        "timestamptz_pl_interval",
        &[TimestampTz, Span],
        TimestampTz,
        Pure(later),
    )
    .operator("+")
    .stable(),
    row(
        1190,
        "timestamptz_mi_interval",
        &[TimestampTz, Span],
        TimestampTz,
        Pure(earlier),
    )
    .operator("-")
    .stable(),
    row(
        2549,
        "interval_pl_timestamptz",
        &[Span, TimestampTz],
        TimestampTz,
        Pure(|x| later(&swapped(x))),
    )
    .operator("+")
    .stable(),
    row(2071, "date_pl_interval", &[Date, Span], Timestamp, Pure(later)).operator("+"),
    row(2072, "date_mi_interval", &[Date, Span], Timestamp, Pure(earlier)).operator("-"),
    row(
        2546,
        "interval_pl_date",
        &[Span, Date],
        Timestamp,
        Pure(|x| later(&swapped(x))),
    )
    .operator("+"),
    row(2031, "timestamp_mi", &[Timestamp, Timestamp], Span, Pure(between)).operator("-"),
    row(
        1188,
        "timestamptz_mi",
        &[TimestampTz, TimestampTz],
        Span,
        Pure(between),
    )
    .operator("-"),
    row(
        1141,
        "date_pli",
        &[Date, Int4],
        Date,
        Pure(|x| days(ArithmeticOp::Add, x)),
    )
    .operator("+"),
    row(
        1142,
        "date_mii",
        &[Date, Int4],
        Date,
        Pure(|x| days(ArithmeticOp::Subtract, x)),
    )
    .operator("-"),
    row(
        2550,
        "integer_pl_date",
        &[Int4, Date],
        Date,
        Pure(|x| days(ArithmeticOp::Add, x)),
    )
    .operator("+"),
    row(
        1140,
        "date_mi",
        &[Date, Date],
        Int4,
        Pure(|x| days(ArithmeticOp::Subtract, x)),
    )
    .operator("-"),
    row(1272, "datetime_pl", &[Date, Time], Timestamp, Pure(at_time)).operator("+"),
    row(
        1296,
        "timedate_pl",
        &[Time, Date],
        Timestamp,
        Pure(|x| at_time(&swapped(x))),
    )
    .operator("+"),
    row(2025, "timestamp", &[Date, Time], Timestamp, Pure(at_time)),
    row(1297, "datetimetz_pl", &[Date, TimeTz], TimestampTz, Pure(at_time)).operator("+"),
    row(
        1298,
        "timetzdate_pl",
        &[TimeTz, Date],
        TimestampTz,
        Pure(|x| at_time(&swapped(x))),
    )
    .operator("+"),
    row(1359, "timestamptz", &[Date, TimeTz], TimestampTz, Pure(at_time)),
    row(1747, "time_pl_interval", &[Time, Span], Time, Pure(time_later)).operator("+"),
    row(
        1748,
        "time_mi_interval",
        &[Time, Span],
        Time,
        Pure(|x| time_moved(x, -1)),
    )
    .operator("-"),
    row(
        1848,
        "interval_pl_time",
        &[Span, Time],
        Time,
        Pure(|x| time_moved(&swapped(x), 1)),
    )
    .operator("+"),
    row(
        1749,
        "timetz_pl_interval",
        &[TimeTz, Span],
        TimeTz,
        Pure(time_later),
    )
    .operator("+"),
    row(
        1750,
        "timetz_mi_interval",
        &[TimeTz, Span],
        TimeTz,
        Pure(|x| time_moved(x, -1)),
    )
    .operator("-"),
    row(
        2547,
        "interval_pl_timetz",
        &[Span, TimeTz],
        TimeTz,
        Pure(|x| time_moved(&swapped(x), 1)),
    )
    .operator("+"),
    row(1690, "time_mi_time", &[Time, Time], Span, Pure(time_between)).operator("-"),
];

/// Two arguments, the second first.
fn swapped(arguments: &[Value]) -> [Value; 2] {
    [arguments[1].clone(), arguments[0].clone()]
}

fn add_intervals(arguments: &[Value]) -> Result<Value> {
    interval(&arguments[0])?
        .plus(interval(&arguments[1])?)
        .map(Value::Interval)
}

fn subtract_intervals(arguments: &[Value]) -> Result<Value> {
    interval(&arguments[0])?
        .subtract(interval(&arguments[1])?)
        .map(Value::Interval)
}

fn negate(arguments: &[Value]) -> Result<Value> {
    interval(&arguments[0])?.negate().map(Value::Interval)
}

fn multiply(arguments: &[Value]) -> Result<Value> {
    interval(&arguments[0])?
        .multiply(double(&arguments[1])?)
        .map(Value::Interval)
}

fn divide(arguments: &[Value]) -> Result<Value> {
    interval(&arguments[0])?
        .divide(double(&arguments[1])?)
        .map(Value::Interval)
}

/// The first moment of a day.
fn midnight(days: i32) -> Result<i64> {
    match days {
        i32::MAX => Ok(i64::MAX),
        i32::MIN => Ok(i64::MIN),
        days => i64::from(days)
            .checked_mul(MICROS_PER_DAY)
            .filter(|micros| is_valid_timestamp(*micros))
            .ok_or_else(|| {
                EngineError::new(
                    SqlState::DATETIME_FIELD_OVERFLOW,
                    "date out of range for timestamp",
                )
            }),
    }
}

/// A timestamp or date moved by an interval; that of a date is a timestamp.
fn moved(arguments: &[Value], by: fn(Interval, i64) -> Result<i64>, back: bool) -> Result<Value> {
    let interval = interval(&arguments[1])?;
    match &arguments[0] {
        Value::Date(days) => by(interval, midnight(*days)?).map(Value::Timestamp),
        Value::TimestampTz(micros) => {
            let zone = NamedZone::of_session();
            let interval = if back { interval.reversed() } else { interval };
            interval.after_in(*micros, &zone).map(Value::TimestampTz)
        }
        other => by(interval, moment(other)?).map(Value::Timestamp),
    }
}

pub(super) fn later(arguments: &[Value]) -> Result<Value> {
    moved(arguments, Interval::after, false)
}

fn earlier(arguments: &[Value]) -> Result<Value> {
    moved(arguments, Interval::before, true)
}

fn between(arguments: &[Value]) -> Result<Value> {
    Interval::between(moment(&arguments[0])?, moment(&arguments[1])?).map(Value::Interval)
}

/// Dates and numbers of days.
fn days(op: ArithmeticOp, arguments: &[Value]) -> Result<Value> {
    if let (Value::Int4(_), other) = (&arguments[0], &arguments[1]) {
        int(&arguments[0])?;
        return arithmetic::apply(op, other, &arguments[0]);
    }
    arithmetic::apply(op, &arguments[0], &arguments[1])
}

/// A date and a time of that day.
fn at_time(arguments: &[Value]) -> Result<Value> {
    let Value::Date(days) = arguments[0] else {
        return Err(EngineError::internal(format!(
            "{:?} is used as a date",
            arguments[0]
        )));
    };
    let start = midnight(days)?;
    let infinite = start == i64::MAX || start == i64::MIN;
    let at = |micros: i64| match infinite {
        true => Ok(start),
        false => Some(start + micros)
            .filter(|micros| is_valid_timestamp(*micros))
            .ok_or_else(|| EngineError::new(SqlState::DATETIME_FIELD_OVERFLOW, "timestamp out of range")),
    };
    match arguments[1] {
        Value::Time(micros) => at(micros).map(Value::Timestamp),
        Value::TimeTz(micros, zone) => at(micros + i64::from(zone) * 1_000_000).map(Value::TimestampTz),
        ref other => Err(EngineError::internal(format!("{other:?} is used as a time"))),
    }
}

/// A time of day and an interval to the time of day after it, around midnight.
pub(super) fn time_later(arguments: &[Value]) -> Result<Value> {
    time_moved(arguments, 1)
}

/// A time of day moved by the time of an interval, around midnight.
fn time_moved(arguments: &[Value], sign: i64) -> Result<Value> {
    let by = sign * (interval(&arguments[1])?.micros % MICROS_PER_DAY);
    match arguments[0] {
        Value::Time(micros) => Ok(Value::Time((micros + by).rem_euclid(MICROS_PER_DAY))),
        Value::TimeTz(micros, zone) => Ok(Value::TimeTz((micros + by).rem_euclid(MICROS_PER_DAY), zone)),
        ref other => Err(EngineError::internal(format!("{other:?} is used as a time"))),
    }
}

fn time_between(arguments: &[Value]) -> Result<Value> {
    match (&arguments[0], &arguments[1]) {
        (Value::Time(later), Value::Time(earlier)) => {
            Ok(Value::Interval(Interval::new(0, 0, later - earlier)))
        }
        (other, _) => Err(EngineError::internal(format!("{other:?} is used as a time"))),
    }
}
