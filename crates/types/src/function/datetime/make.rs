//! Dates and timestamps from their fields, and time zones.

use super::civil::{self, valid};
use crate::error::{EngineError, Result, SqlState};
use crate::function::{int, text_of};
use crate::value::Value;
use crate::value::datetime::{self, MICROS_PER_DAY, NamedZone, days_from_civil, last_day};
use crate::value::text::to_text;

/// `make_date(year, month, day)`; a negative year is one before Christ.
pub(super) fn make_date(arguments: &[Value]) -> Result<Value> {
    let days = date(arguments)?;
    let days = i32::try_from(days)
        .ok()
        .filter(|days| datetime::is_valid_date(*days));
    let (year, month, day) = fields(arguments)?;
    days.map(Value::Date).ok_or_else(|| {
        EngineError::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            format!("date out of range: {year}-{month:02}-{day:02}"),
        )
    })
}

fn fields(arguments: &[Value]) -> Result<(i32, i32, i32)> {
    Ok((int(&arguments[0])?, int(&arguments[1])?, int(&arguments[2])?))
}

fn date(arguments: &[Value]) -> Result<i64> {
    let (year, month, day) = fields(arguments)?;
    let astronomical = match year {
        ..0 => i64::from(year) + 1,
        year => i64::from(year),
    };
    let month_number = u32::try_from(month).unwrap_or(0);
    let exists = year != 0
        && (1..=12).contains(&month)
        && u32::try_from(day).is_ok_and(|day| (1..=last_day(astronomical, month_number)).contains(&day));
    if !exists {
        return Err(EngineError::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            format!("date field value out of range: {year}-{month:02}-{day:02}"),
        ));
    }
    Ok(days_from_civil(astronomical, month_number, day as u32))
}

fn local(arguments: &[Value]) -> Result<i64> {
    let days = date(arguments)?;
    let (hour, minute) = (int(&arguments[3])?, int(&arguments[4])?);
    let Value::Float8(seconds) = arguments[5] else {
        return Err(EngineError::internal("seconds are no double"));
    };
    let whole_day = hour == 24 && minute == 0 && seconds == 0.0;
    let exists = whole_day
        || ((0..24).contains(&hour) && (0..60).contains(&minute) && (0.0..=60.0).contains(&seconds));
    if !exists {
        return Err(EngineError::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            format!("time field value out of range: {hour}:{minute:02}:{seconds:02}"),
        ));
    }
    let micros = (seconds * 1e6).round_ties_even() as i64;
    civil::timestamp(days, i64::from(hour * 60 + minute) * 60_000_000 + micros)
}

/// `make_timestamp(year, month, day, hour, minute, second)`
pub(super) fn make_timestamp(arguments: &[Value]) -> Result<Value> {
    local(arguments).map(Value::Timestamp)
}

/// `make_timestamptz(year, month, day, hour, minute, second [, zone])`
pub(super) fn make_timestamptz(arguments: &[Value]) -> Result<Value> {
    let local = local(arguments)?;
    let Some(zone) = arguments.get(6) else {
        return valid(NamedZone::of_session().moment(local)).map(Value::TimestampTz);
    };
    let zone = text_of(zone)?;
    let is_offset = zone.starts_with(|first: char| first.is_ascii_digit() || "+-".contains(first));
    let zone = match is_offset {
        true => NamedZone::of_offset(zone)?,
        false => NamedZone::of(zone)?,
    };
    valid(zone.moment(local)).map(Value::TimestampTz)
}

/// The zone that a text names, or that an interval is the distance of from Greenwich.
pub(super) fn zone(value: &Value) -> Result<NamedZone> {
    let Value::Interval(interval) = value else {
        return NamedZone::of(text_of(value)?);
    };
    if interval.months != 0 || interval.days != 0 {
        return Err(EngineError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!(
                "interval time zone \"{}\" must not include months or days",
                to_text(value).unwrap_or_default()
            ),
        ));
    }
    Ok(NamedZone::east_of_greenwich(interval.micros / 1_000_000))
}

/// `timezone(zone, time)`, AT TIME ZONE: what clocks there show at a moment, or the moment at which they show a time.
pub(super) fn timezone(arguments: &[Value]) -> Result<Value> {
    let zone = zone(&arguments[0])?;
    match arguments[1] {
        Value::Timestamp(micros @ (i64::MAX | i64::MIN)) => Ok(Value::TimestampTz(micros)),
        Value::TimestampTz(micros @ (i64::MAX | i64::MIN)) => Ok(Value::Timestamp(micros)),
        Value::Timestamp(local) => valid(zone.moment(local)).map(Value::TimestampTz),
        Value::TimestampTz(moment) => valid(zone.local(moment)).map(Value::Timestamp),
        ref other => Err(EngineError::internal(format!("a time zone of {other:?}"))),
    }
}

/// `isfinite(time)`
pub(super) fn is_finite(arguments: &[Value]) -> Result<Value> {
    Ok(Value::Bool(match arguments[0] {
        Value::Date(days) => days != i32::MAX && days != i32::MIN,
        Value::Timestamp(micros) | Value::TimestampTz(micros) => micros != i64::MAX && micros != i64::MIN,
        ref other => return Err(EngineError::internal(format!("isfinite of {other:?}"))),
    }))
}

/// `to_timestamp(seconds since 1970)`
pub(super) fn from_seconds(arguments: &[Value]) -> Result<Value> {
    /// Microseconds from 1970-01-01 to 2000-01-01.
    const UNIX_MICROS: f64 = (10_957 * MICROS_PER_DAY) as f64;
    let Value::Float8(seconds) = arguments[0] else {
        return Err(EngineError::internal("seconds are no double"));
    };
    if seconds.is_nan() {
        return Err(EngineError::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            "timestamp cannot be NaN",
        ));
    }
    if seconds.is_infinite() {
        let end = if seconds > 0.0 { i64::MAX } else { i64::MIN };
        return Ok(Value::TimestampTz(end));
    }
    let micros = ((seconds - UNIX_MICROS / 1e6) * 1e6).round_ties_even();
    let out_of_range = || {
        EngineError::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            format!("timestamp out of range: \"{seconds}\""),
        )
    };
    if !(-9.3e18..9.3e18).contains(&micros) || !datetime::is_valid_timestamp(micros as i64) {
        return Err(out_of_range());
    }
    Ok(Value::TimestampTz(micros as i64))
}
