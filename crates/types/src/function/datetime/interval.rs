//! Functions of intervals, and those that give one.

use super::interval_template::to_char;
use super::operands::{interval, moment};
use super::unit::{Unit, not_recognized, not_supported};
use super::{extract, make};
use crate::context::SessionFacts;
use crate::error::{EngineError, Result, SqlState};
use crate::function::row::Implementation::{Pure, Session};
use crate::function::row::{FunctionRow, row};
use crate::function::{int, text_of};
use crate::value::DataType::{
    Bool, Float8, Int4, Interval as IntervalType, Numeric, Text, Timestamp, TimestampTz,
};
use crate::value::datetime::{
    MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, NamedZone, is_valid_timestamp,
};
use crate::value::{Interval, Value};

/// The functions.
pub(in crate::function) static ROWS: &[FunctionRow] = &[
    row(
        6204,
        "extract",
        &[Text, IntervalType],
        Numeric,
        Pure(extract::extract),
    ),
    row(
        1172,
        "date_part",
        &[Text, IntervalType],
        Float8,
        Pure(extract::date_part),
    ),
    row(
        1218,
        "date_trunc",
        &[Text, IntervalType],
        IntervalType,
        Pure(date_trunc),
    ),
    row(
        1175,
        "justify_hours",
        &[IntervalType],
        IntervalType,
        Pure(|x| of(x, Interval::justify_hours)),
    ),
    row(
        1295,
        "justify_days",
        &[IntervalType],
        IntervalType,
        Pure(|x| of(x, Interval::justify_days)),
    ),
    row(
        2711,
        "justify_interval",
        &[IntervalType],
        IntervalType,
        Pure(|x| of(x, Interval::justify)),
    ),
    row(2058, "age", &[Timestamp, Timestamp], IntervalType, Pure(age)),
    row(1199, "age", &[TimestampTz, TimestampTz], IntervalType, Pure(age)),
    row(2059, "age", &[Timestamp], IntervalType, Session(age_today)).stable(),
    row(1386, "age", &[TimestampTz], IntervalType, Session(age_today)).stable(),
    row(
        3464,
        "make_interval",
        &[Int4, Int4, Int4, Int4, Int4, Int4, Float8],
        IntervalType,
        Pure(make_interval),
    )
    .with_defaults(&["years", "months", "weeks", "days", "hours", "mins", "secs"]),
    row(
        6177,
        "date_bin",
        &[IntervalType, Timestamp, Timestamp],
        Timestamp,
        Pure(date_bin),
    ),
    row(
        6178,
        "date_bin",
        &[IntervalType, TimestampTz, TimestampTz],
        TimestampTz,
        Pure(date_bin),
    ),
    row(
        1390,
        "isfinite",
        &[IntervalType],
        Bool,
        Pure(|_| Ok(Value::Bool(true))),
    ),
    row(1768, "to_char", &[IntervalType, Text], Text, Pure(to_char)).stable(),
    row(
        2070,
        "timezone",
        &[IntervalType, Timestamp],
        TimestampTz,
        Pure(make::timezone),
    ),
    row(
        1026,
        "timezone",
        &[IntervalType, TimestampTz],
        Timestamp,
        Pure(make::timezone),
    ),
];

fn of(arguments: &[Value], change: fn(Interval) -> Result<Interval>) -> Result<Value> {
    change(interval(&arguments[0])?).map(Value::Interval)
}

/// `date_trunc(unit, interval)`
fn date_trunc(arguments: &[Value]) -> Result<Value> {
    let (name, interval) = (text_of(&arguments[0])?, interval(&arguments[1])?);
    let unit = Unit::of(name)
        .filter(|unit| !matches!(unit, Unit::Epoch | Unit::Julian | Unit::IsoYear))
        .filter(|unit| !matches!(unit, Unit::DayOfWeek | Unit::IsoDayOfWeek | Unit::DayOfYear))
        .ok_or_else(|| not_recognized(name, "interval"))?;
    let Interval { months, days, micros } = interval;
    let within = |length: i64| Interval::new(months, days, micros - micros % length);
    let of_months = |length: i32| Interval::new(months - months % length, 0, 0);
    Ok(Value::Interval(match unit {
        Unit::Microseconds => interval,
        Unit::Milliseconds => within(1_000),
        Unit::Second => within(1_000_000),
        Unit::Minute => within(MICROS_PER_MINUTE),
        Unit::Hour => within(MICROS_PER_HOUR),
        Unit::Day => Interval::new(months, days, 0),
        Unit::Month => Interval::new(months, 0, 0),
        Unit::Quarter => of_months(3),
        Unit::Year => of_months(12),
        Unit::Decade => of_months(120),
        Unit::Century => of_months(1_200),
        Unit::Millennium => of_months(12_000),
        Unit::Week => {
            return Err(not_supported(name, "interval")
                .with_detail("Months usually have fractional weeks.".to_owned()));
        }
        _ => return Err(not_supported(name, "interval")),
    }))
}

/// `age(later, earlier)`
fn age(arguments: &[Value]) -> Result<Value> {
    Interval::age(local(&arguments[0])?, local(&arguments[1])?).map(Value::Interval)
}

/// The time that the session's clocks show, of a timestamp of either kind.
fn local(value: &Value) -> Result<i64> {
    match value {
        Value::TimestampTz(moment) => Ok(NamedZone::of_session().local(*moment)),
        other => moment(other),
    }
}

/// `age(earlier)`: from then to the midnight with which today began.
fn age_today(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let now = NamedZone::of_session().local(session.transaction_timestamp());
    Interval::age(now - now.rem_euclid(MICROS_PER_DAY), local(&arguments[0])?).map(Value::Interval)
}

/// `make_interval(years, months, weeks, days, hours, mins, secs)`; whole numbers wrap, as in PostgreSQL.
fn make_interval(arguments: &[Value]) -> Result<Value> {
    let number = |at: usize| int(&arguments[at]);
    let Value::Float8(seconds) = arguments[6] else {
        return Err(EngineError::internal("seconds are no double"));
    };
    if !seconds.is_finite() {
        return Err(EngineError::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            "interval out of range",
        ));
    }
    let micros = (seconds * 1e6).round_ties_even() as i64;
    Ok(Value::Interval(Interval {
        months: number(0)?.wrapping_mul(12).wrapping_add(number(1)?),
        days: number(2)?.wrapping_mul(7).wrapping_add(number(3)?),
        micros: (i64::from(number(4)?) * MICROS_PER_HOUR)
            .wrapping_add(i64::from(number(5)?) * MICROS_PER_MINUTE)
            .wrapping_add(micros),
    }))
}

/// `date_bin(stride, time, origin)`: the start of the stride, counted from the origin, that a time is in.
fn date_bin(arguments: &[Value]) -> Result<Value> {
    let stride = interval(&arguments[0])?;
    let (micros, origin) = (moment(&arguments[1])?, moment(&arguments[2])?);
    let result = |micros| match arguments[1] {
        Value::Timestamp(_) => Value::Timestamp(micros),
        _ => Value::TimestampTz(micros),
    };
    let fault = |message: &'static str| EngineError::new(SqlState::DATETIME_FIELD_OVERFLOW, message);
    let infinite = |micros| micros == i64::MAX || micros == i64::MIN;
    if infinite(micros) {
        return Ok(result(micros));
    }
    if infinite(origin) {
        return Err(fault("origin out of range"));
    }
    if stride.months != 0 {
        return Err(EngineError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "timestamps cannot be binned into intervals containing months or years",
        ));
    }
    let length = i64::from(stride.days)
        .checked_mul(MICROS_PER_DAY)
        .and_then(|days| days.checked_add(stride.micros))
        .ok_or_else(|| fault("interval out of range"))?;
    if length <= 0 {
        return Err(fault("stride must be greater than zero"));
    }
    let distance = micros
        .checked_sub(origin)
        .ok_or_else(|| fault("interval out of range"))?;
    let start = micros.checked_sub(distance.rem_euclid(length));
    let start = start.filter(|start| distance >= 0 || is_valid_timestamp(*start));
    start.map(result).ok_or_else(|| fault("timestamp out of range"))
}
