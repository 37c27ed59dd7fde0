//! Functions of times of day.

use super::{extract, make};
use crate::context::SessionFacts;
use crate::error::{EngineError, Result, SqlState};
use crate::function::int;
use crate::function::row::Implementation::{Pure, Session};
use crate::function::row::{FunctionRow, row};
use crate::value::DataType::{Float8, Int4, Interval, Numeric, Text, Time, TimeTz};
use crate::value::Value;
use crate::value::datetime::{MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, time_in_greenwich};

/// The functions.
pub(in crate::function) static ROWS: &[FunctionRow] = &[
    row(6200, "extract", &[Text, Time], Numeric, Pure(extract::extract)),
    row(6201, "extract", &[Text, TimeTz], Numeric, Pure(extract::extract)),
    row(1385, "date_part", &[Text, Time], Float8, Pure(extract::date_part)),
    row(
        1273,
        "date_part",
        &[Text, TimeTz],
        Float8,
        Pure(extract::date_part),
    ),
    row(3847, "make_time", &[Int4, Int4, Float8], Time, Pure(make_time)),
    row(2037, "timezone", &[Text, TimeTz], TimeTz, Session(in_zone)).stable(),
    row(2038, "timezone", &[Interval, TimeTz], TimeTz, Session(in_zone)),
];

/// `make_time(hour, minute, second)`
fn make_time(arguments: &[Value]) -> Result<Value> {
    let (hour, minute) = (int(&arguments[0])?, int(&arguments[1])?);
    let Value::Float8(seconds) = arguments[2] else {
        return Err(EngineError::internal("seconds are no double"));
    };
    let micros = (seconds * 1e6).round_ties_even();
    let time = i64::from(hour) * MICROS_PER_HOUR + i64::from(minute) * MICROS_PER_MINUTE + micros as i64;
    // A second may be the sixtieth, and the day may end with 24:00.
    let exists = (0..=24).contains(&hour)
        && (0..60).contains(&minute)
        && (0.0..=60e6).contains(&micros)
        && time <= MICROS_PER_DAY;
    if !exists {
        return Err(EngineError::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            format!("time field value out of range: {hour}:{minute:02}:{seconds:02}"),
        ));
    }
    Ok(Value::Time(time))
}

/// `timezone(zone, timetz)`: the time that clocks there show, if it is today in that zone.
fn in_zone(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let Value::TimeTz(micros, zone) = arguments[1] else {
        return Err(EngineError::internal(format!(
            "{:?} is used as a time",
            arguments[1]
        )));
    };
    let now = session.transaction_timestamp();
    let east = (make::zone(&arguments[0])?.local(now) - now) / 1_000_000;
    let there = (time_in_greenwich(micros, zone) + east * 1_000_000).rem_euclid(MICROS_PER_DAY);
    Ok(Value::TimeTz(there, -east as i32))
}
