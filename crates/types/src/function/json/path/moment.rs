//! Dates and times of paths: `datetime()` makes them of strings.
//!
//! A date and a timestamp compare; so do times of day; a date and a time of day do not. One with a zone and one without
//! compare only where the function's name ends in `_tz`, since the answer depends on the session's `TimeZone`.

use std::cmp::Ordering;

use crate::context::SessionFacts;
use crate::error::{EngineError, Result, SqlState};
use crate::function::datetime::{Reading, read_standard};
use crate::value::datetime::{
    MICROS_PER_DAY, MICROS_PER_SECOND, NamedZone, format_json_date, format_json_time_with_zone,
    format_json_timestamp, format_json_timestamp_at, format_time, time_in_greenwich,
};

/// A date or time.
#[derive(Debug, Clone, Copy)]
pub(super) enum Moment {
    /// A day.
    Date(i32),
    /// A time of day.
    Time(i64),
    /// A time of day in a zone so many seconds west of Greenwich.
    TimeWithZone(i64, i32),
    /// A timestamp.
    Timestamp(i64),
    /// A moment, and the zone that it was given in, so many seconds east of Greenwich.
    TimestampWithZone(i64, i64),
}

impl Moment {
    /// The date or time of a text by a template.
    pub(super) fn read(text: &str, template: &str) -> Result<Moment> {
        let Reading {
            local,
            east,
            is_dated,
            is_timed,
            is_zoned,
        } = read_standard(text, template)?;
        let format = |message| EngineError::new(SqlState::INVALID_DATETIME_FORMAT, message);
        match (is_dated, is_timed, is_zoned) {
            (true, true, true) => Ok(Moment::TimestampWithZone(
                local.saturating_sub(east * MICROS_PER_SECOND),
                east,
            )),
            (true, true, false) => Ok(Moment::Timestamp(local)),
            (true, false, true) => Err(format("datetime format is zoned but not timed")),
            (true, false, false) => Ok(Moment::Date(local.div_euclid(MICROS_PER_DAY) as i32)),
            (false, true, true) => Ok(Moment::TimeWithZone(
                local.rem_euclid(MICROS_PER_DAY),
                -east as i32,
            )),
            (false, true, false) => Ok(Moment::Time(local.rem_euclid(MICROS_PER_DAY))),
            (false, false, _) => Err(format("datetime format is not dated and not timed")),
        }
    }

    /// The name that `type()` has for it.
    pub(super) fn type_name(self) -> &'static str {
        match self {
            Moment::Date(_) => "date",
            Moment::Time(_) => "time without time zone",
            Moment::TimeWithZone(..) => "time with time zone",
            Moment::Timestamp(_) => "timestamp without time zone",
            Moment::TimestampWithZone(..) => "timestamp with time zone",
        }
    }

    /// The name that an error has for its type.
    fn short_name(self) -> &'static str {
        match self {
            Moment::Date(_) => "date",
            Moment::Time(_) => "time",
            Moment::TimeWithZone(..) => "timetz",
            Moment::Timestamp(_) => "timestamp",
            Moment::TimestampWithZone(..) => "timestamptz",
        }
    }

    /// Its text.
    pub(super) fn text(self) -> String {
        let mut out = String::new();
        match self {
            Moment::Date(days) => format_json_date(days, &mut out),
            Moment::Time(micros) => format_time(micros, &mut out),
            Moment::TimeWithZone(micros, west) => format_json_time_with_zone(micros, west, &mut out),
            Moment::Timestamp(micros) => format_json_timestamp(micros, &mut out),
            Moment::TimestampWithZone(micros, east) => format_json_timestamp_at(micros, east, &mut out),
        }
        out
    }

    /// Its timestamp without a zone.
    fn local(self) -> Option<i128> {
        match self {
            Moment::Date(days) => Some(i128::from(days) * i128::from(MICROS_PER_DAY)),
            Moment::Timestamp(micros) => Some(micros.into()),
            _ => None,
        }
    }

    /// Its moment, by the session's zone if it has none.
    fn moment(self) -> Option<i128> {
        if let Moment::TimestampWithZone(micros, _) = self {
            return Some(micros.into());
        }
        let local = self.local()?;
        Some(match i64::try_from(local) {
            Ok(local) => NamedZone::of_session().moment(local).into(),
            Err(_) => local,
        })
    }

    /// Its time of day and zone, the zone of the session today if it has none.
    fn time(self, session: &dyn SessionFacts) -> Option<(i64, i32)> {
        match self {
            Moment::TimeWithZone(micros, west) => Some((micros, west)),
            Moment::Time(micros) => {
                let zone = NamedZone::of_session();
                let today = zone
                    .local(session.transaction_timestamp())
                    .div_euclid(MICROS_PER_DAY);
                Some((micros, -zone.offset_of_clock(today, micros) as i32))
            }
            _ => None,
        }
    }

    /// True if it has a zone.
    fn is_zoned(self) -> bool {
        matches!(self, Moment::TimeWithZone(..) | Moment::TimestampWithZone(..))
    }

    /// True if it is a time of day.
    fn is_time(self) -> bool {
        matches!(self, Moment::Time(_) | Moment::TimeWithZone(..))
    }

    /// The order of two; `None` if they do not compare, 0A000 if they do only where zones may be used.
    pub(super) fn order(
        &self,
        other: &Moment,
        with_zones: bool,
        session: &dyn SessionFacts,
    ) -> Result<Option<Ordering>> {
        let (left, right) = (*self, *other);
        if left.is_time() != right.is_time() {
            return Ok(None);
        }
        if left.is_zoned() != right.is_zoned() && !with_zones {
            let (from, to) = match left.is_zoned() {
                true => (right, left),
                false => (left, right),
            };
            return Err(zone_needed(from, to));
        }
        let zoned = left.is_zoned() || right.is_zoned();
        Ok(match (left, right) {
            (Moment::Time(left), Moment::Time(right)) => Some(left.cmp(&right)),
            _ if left.is_time() => left.time(session).zip(right.time(session)).map(|(left, right)| {
                let key = |(micros, west)| (time_in_greenwich(micros, west), west);
                key(left).cmp(&key(right))
            }),
            _ if zoned => left
                .moment()
                .zip(right.moment())
                .map(|(left, right)| left.cmp(&right)),
            _ => left
                .local()
                .zip(right.local())
                .map(|(left, right)| left.cmp(&right)),
        })
    }
}

#[cold]
fn zone_needed(from: Moment, to: Moment) -> EngineError {
    EngineError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!(
            "cannot convert value from {} to {} without time zone usage",
            from.short_name(),
            to.short_name()
        ),
    )
    .with_hint("Use *_tz() function for time zone support.")
}
