//! `date_trunc`.

use super::civil::{Civil, timestamp, valid};
use super::unit::{Unit, not_recognized, not_supported};
use crate::error::{EngineError, Result};
use crate::function::text_of;
use crate::value::Value;
use crate::value::datetime::{NamedZone, days_from_civil};

/// `date_trunc(unit, time [, zone])`; without a zone it is the session's.
pub(super) fn date_trunc(arguments: &[Value]) -> Result<Value> {
    let name = text_of(&arguments[0])?;
    match (&arguments[1], arguments.get(2)) {
        (Value::Timestamp(micros), _) => {
            let unit = unit(name, "timestamp without time zone")?;
            truncated(*micros, unit).map(Value::Timestamp)
        }
        (Value::TimestampTz(micros), zone) => {
            let zone = match zone {
                Some(zone) => NamedZone::of(text_of(zone)?)?,
                None => NamedZone::of_session(),
            };
            let unit = unit(name, "timestamp with time zone")?;
            if *micros == i64::MAX || *micros == i64::MIN {
                return Ok(Value::TimestampTz(*micros));
            }
            let local = zone.local(*micros);
            let start = truncated(local, unit)?;
            // Within a day the clock is not put back or forward; a day may begin under another offset.
            let moment = match unit >= Unit::Day {
                true => zone.moment(start),
                false => micros - (local - start),
            };
            valid(moment).map(Value::TimestampTz)
        }
        (other, _) => Err(EngineError::internal(format!("date_trunc of {other:?}"))),
    }
}

fn unit(name: &str, type_name: &str) -> Result<Unit> {
    match Unit::of(name) {
        Some(unit) if unit <= Unit::Millennium => Ok(unit),
        Some(Unit::Timezone | Unit::TimezoneHour | Unit::TimezoneMinute) => {
            Err(not_supported(name, type_name))
        }
        _ => Err(not_recognized(name, type_name)),
    }
}

/// The start of the unit that a time is in.
fn truncated(micros: i64, unit: Unit) -> Result<i64> {
    if micros == i64::MAX || micros == i64::MIN {
        return Ok(micros);
    }
    let civil = Civil::of(micros);
    let within = |length: i64| timestamp(civil.days, civil.in_day - civil.in_day % length);
    let day = |year: i64, month: u32| timestamp(days_from_civil(year, month, 1), 0);
    // Centuries and millennia begin with the year 1.
    let first_of = |number: i64, years: i64| match number {
        1.. => number * years - (years - 1),
        _ => (number + 1) * years - (years - 1),
    };
    match unit {
        Unit::Microseconds => Ok(micros),
        Unit::Milliseconds => within(1_000),
        Unit::Second => within(1_000_000),
        Unit::Minute => within(60_000_000),
        Unit::Hour => within(3_600_000_000),
        Unit::Day => timestamp(civil.days, 0),
        Unit::Week => timestamp(civil.days - civil.iso_day_of_week() + 1, 0),
        Unit::Month => day(civil.year, civil.month),
        Unit::Quarter => day(civil.year, civil.month - (civil.month - 1) % 3),
        Unit::Year => day(civil.year, 1),
        Unit::Decade => day(civil.decade() * 10, 1),
        Unit::Century => day(first_of(civil.century(), 100), 1),
        Unit::Millennium => day(first_of(civil.millennium(), 1_000), 1),
        _ => Err(EngineError::internal(format!("date_trunc to {unit:?}"))),
    }
}
