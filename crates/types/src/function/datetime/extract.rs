//! EXTRACT and `date_part`.

use super::civil::Civil;
use super::unit::{Unit, not_recognized, not_supported};
use crate::error::{EngineError, Result};
use crate::function::text_of;
use crate::value::datetime::{MICROS_PER_DAY, NamedZone};
use crate::value::{Interval, Numeric, Value};

/// Seconds from 1970-01-01 to 2000-01-01.
const UNIX_SECONDS: i64 = 10_957 * 86_400;

/// A part of a time, before it becomes a number of the one or the other type.
enum Part {
    Whole(i64),
    /// A number of units, the last digits of which are behind the point.
    Scaled(i128, i32),
    /// A Julian day and microseconds of the day.
    Julian(i64, i64),
    Infinite(bool),
    Null,
}

/// `extract(part from time)`: a numeric.
pub(super) fn extract(arguments: &[Value]) -> Result<Value> {
    let name = text_of(&arguments[0])?;
    let part = match &arguments[1] {
        Value::Date(days) => of_date(name, *days)?,
        Value::Interval(interval) => of_interval(name, *interval)?,
        Value::Time(micros) => of_time(name, *micros, None)?,
        Value::TimeTz(micros, zone) => of_time(name, *micros, Some(*zone))?,
        value => of_timestamp(name, value)?,
    };
    let number = match part {
        Part::Whole(number) => Numeric::from(number),
        Part::Scaled(number, digits) => {
            let unit = 10u128.pow(digits as u32);
            let sign = if number < 0 { "-" } else { "" };
            let (whole, rest) = (number.unsigned_abs() / unit, number.unsigned_abs() % unit);
            Numeric::parse(&format!("{sign}{whole}.{rest:0width$}", width = digits as usize))?
        }
        Part::Julian(day, micros) => {
            let fraction = Numeric::from(micros).divide(&Numeric::from(MICROS_PER_DAY))?;
            Numeric::from(day).add(&fraction)?
        }
        Part::Infinite(negative) => Numeric::parse(if negative { "-Infinity" } else { "Infinity" })?,
        Part::Null => return Ok(Value::Null),
    };
    Ok(Value::Numeric(number))
}

/// `date_part(part, time)`: a double.
pub(super) fn date_part(arguments: &[Value]) -> Result<Value> {
    let part = match &arguments[1] {
        // Of a date it is that of its first moment.
        Value::Date(i32::MAX) => of_timestamp(text_of(&arguments[0])?, &Value::Timestamp(i64::MAX))?,
        Value::Date(i32::MIN) => of_timestamp(text_of(&arguments[0])?, &Value::Timestamp(i64::MIN))?,
        Value::Date(days) => {
            let micros = super::civil::timestamp(i64::from(*days), 0)?;
            of_timestamp(text_of(&arguments[0])?, &Value::Timestamp(micros))?
        }
        Value::Interval(interval) => of_interval(text_of(&arguments[0])?, *interval)?,
        Value::Time(micros) => of_time(text_of(&arguments[0])?, *micros, None)?,
        Value::TimeTz(micros, zone) => of_time(text_of(&arguments[0])?, *micros, Some(*zone))?,
        value => of_timestamp(text_of(&arguments[0])?, value)?,
    };
    Ok(Value::Float8(match part {
        Part::Whole(number) => number as f64,
        Part::Scaled(number, digits) => number as f64 / 10f64.powi(digits),
        Part::Julian(day, micros) => day as f64 + micros as f64 / MICROS_PER_DAY as f64,
        Part::Infinite(negative) if negative => f64::NEG_INFINITY,
        Part::Infinite(_) => f64::INFINITY,
        Part::Null => return Ok(Value::Null),
    }))
}

fn of_date(name: &str, days: i32) -> Result<Part> {
    let unit = Unit::of(name).ok_or_else(|| not_recognized(name, "date"))?;
    use Unit::*;
    if matches!(
        unit,
        Microseconds | Milliseconds | Second | Minute | Hour | Timezone | TimezoneHour | TimezoneMinute
    ) {
        return Err(not_supported(name, "date"));
    }
    if days == i32::MAX || days == i32::MIN {
        return Ok(infinite(unit, days == i32::MIN));
    }
    let civil = Civil::of(i64::from(days) * MICROS_PER_DAY);
    Ok(match unit {
        Epoch => Part::Whole(i64::from(days) * 86_400 + UNIX_SECONDS),
        Julian => Part::Whole(civil.julian_day()),
        unit => of_civil(unit, &civil),
    })
}

fn of_timestamp(name: &str, value: &Value) -> Result<Part> {
    let (micros, with_zone) = match value {
        Value::Timestamp(micros) => (*micros, false),
        Value::TimestampTz(micros) => (*micros, true),
        other => return Err(EngineError::internal(format!("a part of {other:?}"))),
    };
    let type_name = match with_zone {
        true => "timestamp with time zone",
        false => "timestamp without time zone",
    };
    let unit = Unit::of(name).ok_or_else(|| not_recognized(name, type_name))?;
    if matches!(unit, Unit::Timezone | Unit::TimezoneHour | Unit::TimezoneMinute) {
        return match (with_zone, micros) {
            (false, _) => Err(not_supported(name, type_name)),
            (true, i64::MAX | i64::MIN) => Ok(Part::Null),
            (true, _) => {
                let east = NamedZone::of_session().offset_at(micros);
                Ok(Part::Whole(match unit {
                    Unit::Timezone => east,
                    Unit::TimezoneHour => east / 3_600,
                    _ => east / 60 % 60,
                }))
            }
        };
    }
    if micros == i64::MAX || micros == i64::MIN {
        return Ok(infinite(unit, micros == i64::MIN));
    }
    let civil = Civil::of(match with_zone {
        true => NamedZone::of_session().local(micros),
        false => micros,
    });
    Ok(match unit {
        // Microseconds since 1970 may be beyond 64 bits.
        Unit::Epoch => Part::Scaled(i128::from(micros) + i128::from(UNIX_SECONDS * 1_000_000), 6),
        Unit::Julian => Part::Julian(civil.julian_day(), civil.in_day),
        unit => of_civil(unit, &civil),
    })
}

fn of_interval(name: &str, interval: Interval) -> Result<Part> {
    let unit = Unit::of(name).ok_or_else(|| not_recognized(name, "interval"))?;
    let parts = interval.parts();
    let in_minute = parts.seconds * 1_000_000 + parts.micros;
    Ok(Part::Whole(match unit {
        Unit::Microseconds => in_minute,
        Unit::Milliseconds => return Ok(Part::Scaled(i128::from(in_minute), 3)),
        Unit::Second => return Ok(Part::Scaled(i128::from(in_minute), 6)),
        Unit::Minute => parts.minutes,
        Unit::Hour => parts.hours,
        Unit::Day => i64::from(parts.days),
        Unit::Month => i64::from(parts.months),
        Unit::Quarter => i64::from(parts.months / 3) + 1,
        Unit::Year => i64::from(parts.years),
        Unit::Decade => i64::from(parts.years / 10),
        Unit::Century => i64::from(parts.years / 100),
        Unit::Millennium => i64::from(parts.years / 1_000),
        Unit::Epoch => {
            // A year has 365.25 days here, and a month 30.
            let quarter_days =
                1_461 * i64::from(parts.years) + 120 * i64::from(parts.months) + 4 * i64::from(parts.days);
            let seconds = i128::from(quarter_days) * 21_600;
            return Ok(Part::Scaled(seconds * 1_000_000 + i128::from(interval.micros), 6));
        }
        _ => return Err(not_supported(name, "interval")),
    }))
}

/// A part of a time of day, in a zone that many seconds west of Greenwich.
fn of_time(name: &str, micros: i64, zone: Option<i32>) -> Result<Part> {
    let type_name = match zone {
        None => "time without time zone",
        Some(_) => "time with time zone",
    };
    let unit = Unit::of(name).ok_or_else(|| not_recognized(name, type_name))?;
    let in_minute = micros % 60_000_000;
    Ok(Part::Whole(match (unit, zone) {
        (Unit::Microseconds, _) => in_minute,
        (Unit::Milliseconds, _) => return Ok(Part::Scaled(i128::from(in_minute), 3)),
        (Unit::Second, _) => return Ok(Part::Scaled(i128::from(in_minute), 6)),
        (Unit::Minute, _) => micros / 60_000_000 % 60,
        (Unit::Hour, _) => micros / 3_600_000_000,
        (Unit::Epoch, None) => return Ok(Part::Scaled(i128::from(micros), 6)),
        (Unit::Epoch, Some(zone)) => {
            return Ok(Part::Scaled(i128::from(micros) + i128::from(zone) * 1_000_000, 6));
        }
        (Unit::Timezone, Some(zone)) => i64::from(-zone),
        (Unit::TimezoneHour, Some(zone)) => i64::from(-zone / 3_600),
        (Unit::TimezoneMinute, Some(zone)) => i64::from(-zone / 60 % 60),
        _ => return Err(not_supported(name, type_name)),
    }))
}

/// A part of infinity: the same, if it grows with the time; NULL if it comes again and again.
fn infinite(unit: Unit, negative: bool) -> Part {
    use Unit::*;
    match unit {
        Year | Decade | Century | Millennium | Julian | IsoYear | Epoch => Part::Infinite(negative),
        _ => Part::Null,
    }
}

fn of_civil(unit: Unit, civil: &Civil) -> Part {
    // There is no year 0.
    let shown = |year: i64| if year <= 0 { year - 1 } else { year };
    let in_minute = civil.in_day % 60_000_000;
    Part::Whole(match unit {
        Unit::Microseconds => in_minute,
        Unit::Milliseconds => return Part::Scaled(i128::from(in_minute), 3),
        Unit::Second => return Part::Scaled(i128::from(in_minute), 6),
        Unit::Minute => civil.minute(),
        Unit::Hour => civil.hour(),
        Unit::Day => i64::from(civil.day),
        Unit::Week => civil.iso_week().1,
        Unit::Month => i64::from(civil.month),
        Unit::Quarter => civil.quarter(),
        Unit::Year => shown(civil.year),
        Unit::Decade => civil.decade(),
        Unit::Century => civil.century(),
        Unit::Millennium => civil.millennium(),
        Unit::IsoYear => shown(civil.iso_week().0),
        Unit::DayOfWeek => civil.day_of_week(),
        Unit::IsoDayOfWeek => civil.iso_day_of_week(),
        Unit::DayOfYear => civil.day_of_year(),
        Unit::Julian => civil.julian_day(),
        Unit::Epoch | Unit::Timezone | Unit::TimezoneHour | Unit::TimezoneMinute => return Part::Null,
    })
}
