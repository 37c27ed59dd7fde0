//! Dates and times: the proleptic Gregorian calendar, counted from 2000-01-01 as PostgreSQL counts.
//!
//! | module | job |
//! |---|---|
//! | `input`, `tokens`, `output` | texts: the forms that PostgreSQL takes, and those that it gives |
//! | `style`, `session_zone` | the settings `DateStyle` and `TimeZone` |
//! | `in_force` | the settings of the running session, as the thread knows them |
//! | `zone`, `abbreviation` | time zones: distances from Greenwich, places, abbreviations |
//! | `interval`, `unit` | intervals; the parts of a time by their names |

mod abbreviation;
pub mod in_force;
mod input;
mod interval;
mod offset;
mod output;
mod session_zone;
mod style;
mod tokens;
mod unit;
mod zone;

use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::{EngineError, Result, SqlState, shown};

use input::Parsed;
use tokens::Fault;

pub use in_force::reads_by_default;
pub use interval::{
    Interval, IntervalField, IntervalStyle, depends_on_style, fit as fit_interval, format_interval,
    interval_typmod, parse_interval,
};
pub(crate) use interval::{MICROS_PER_HOUR, MICROS_PER_MINUTE, Parts, type_with_modifier};
pub use output::{
    format_date, format_json_date, format_json_timestamp, format_json_timestamptz, format_time,
    format_time_with_zone, format_timestamp, format_timestamptz,
};
pub(crate) use output::{format_json_time_with_zone, format_json_timestamp_at};
pub use session_zone::{SessionZone, ZoneFault};
pub use style::{DateStyle, FieldOrder, StyleFault, changed_date_style, shown_date_style};
pub use tokens::is_relative;
pub(crate) use unit::Unit;
pub use zone::{ZoneAtMoment, named_abbreviations, named_zones};

/// Microseconds in a day.
pub const MICROS_PER_DAY: i64 = 86_400_000_000;
pub(crate) const MICROS_PER_SECOND: i64 = 1_000_000;

/// Days from 1970-01-01 to 2000-01-01.
const UNIX_TO_OURS_DAYS: i64 = 10_957;

/// First and one past the last date: 4714-11-24 BC, where Julian days begin, and 5874898-01-01.
const DATE_FIRST: i64 = -2_451_545;
const DATE_END: i64 = 2_145_031_949;

/// First and one past the last timestamp: 4714-11-24 BC and 294277-01-01.
const TIMESTAMP_FIRST: i64 = DATE_FIRST * MICROS_PER_DAY;
const TIMESTAMP_END: i64 = 9_223_371_331_200_000_000;

/// Now, as a timestamptz.
pub fn clock() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_micros() as i64 - UNIX_TO_OURS_DAYS * MICROS_PER_DAY
}

/// True if a day number is a date we can show.
pub fn is_valid_date(days: i32) -> bool {
    (DATE_FIRST..DATE_END).contains(&i64::from(days))
}

/// True if a microsecond number is a timestamp we can show.
pub fn is_valid_timestamp(micros: i64) -> bool {
    (TIMESTAMP_FIRST..TIMESTAMP_END).contains(&micros)
}

/// The day number of a civil date; year 0 is 1 BC.
pub fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year =
        (153 * (i64::from(month) + if month > 2 { -3 } else { 9 }) + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468 - UNIX_TO_OURS_DAYS
}

/// The civil date of a day number.
pub fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let days = days + UNIX_TO_OURS_DAYS + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * shifted_month + 2) / 5 + 1) as u32;
    let month = (if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    }) as u32;
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        2 if year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// A time zone that a text names, or the session's; 22023 if there is none.
#[derive(Debug)]
pub(crate) struct NamedZone(zone::Zone);

impl NamedZone {
    /// The zone of the settings in force.
    pub(crate) fn of_session() -> NamedZone {
        NamedZone(input::session_zone(in_force::settings().as_deref()))
    }

    /// Seconds east of Greenwich at a moment.
    pub(crate) fn offset_at(&self, moment: i64) -> i64 {
        self.0.offset_at(moment)
    }

    pub(crate) fn of(text: &str) -> Result<NamedZone> {
        let found = zone::Zone::named(text).or_else(|| SessionZone::named(text).map(|named| named.zone));
        found.map(NamedZone).ok_or_else(|| {
            EngineError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("time zone \"{}\" not recognized", shown(text)),
            )
        })
    }

    /// The zone of an offset with a sign (`+02`, `-3:30`), as `make_timestamptz` takes it.
    pub(crate) fn of_offset(text: &str) -> Result<NamedZone> {
        match zone::offset(text) {
            Some(Ok(seconds)) => Ok(NamedZone(zone::Zone::Fixed(seconds))),
            Some(Err(())) => Err(refused(Fault::Zone, text, "timestamp with time zone")),
            None => Err(EngineError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!(
                    "invalid input syntax for type numeric time zone: \"{}\"",
                    shown(text)
                ),
            )
            .with_hint("Numeric time zones must have \"-\" or \"+\" as first character.")),
        }
    }

    /// The zone whose clocks are always so many seconds before those in Greenwich.
    pub(crate) fn east_of_greenwich(seconds: i64) -> NamedZone {
        NamedZone(zone::Zone::Fixed(seconds))
    }

    /// Seconds east of Greenwich on a clock of the zone that shows this day and this time.
    pub(crate) fn offset_of_clock(&self, days: i64, micros: i64) -> i64 {
        self.0.offset(days, micros)
    }

    /// The time that clocks of the zone show at a moment.
    pub(crate) fn local(&self, moment: i64) -> i64 {
        match moment {
            i64::MAX | i64::MIN => moment,
            moment => moment.saturating_add(self.0.offset_at(moment) * MICROS_PER_SECOND),
        }
    }

    /// The moment at which clocks of the zone show a time.
    pub(crate) fn moment(&self, local: i64) -> i64 {
        if local == i64::MAX || local == i64::MIN {
            return local;
        }
        let days = local.div_euclid(MICROS_PER_DAY);
        let offset = self.0.offset(days, local.rem_euclid(MICROS_PER_DAY));
        local.saturating_sub(offset * MICROS_PER_SECOND)
    }
}

/// The abbreviation of the session's zone at a moment.
pub(crate) fn session_abbreviation(moment: i64) -> String {
    in_force::settings().map_or_else(|| "UTC".to_owned(), |settings| settings.zone.at(moment).1)
}

/// The number of days of a month.
pub(crate) fn last_day(year: i64, month: u32) -> u32 {
    days_in_month(year, month)
}

/// Reads a date; `now` is the moment that `now` and `today` are counted from.
pub fn parse_date(text: &str, now: i64) -> Result<i32> {
    match input::parse(text, now).map_err(|fault| refused(fault, text, "date"))? {
        Parsed::Infinity => Ok(i32::MAX),
        Parsed::MinusInfinity => Ok(i32::MIN),
        Parsed::Civil { days, .. } => i32::try_from(days)
            .ok()
            .filter(|days| is_valid_date(*days))
            .ok_or_else(|| {
                EngineError::new(
                    SqlState::DATETIME_FIELD_OVERFLOW,
                    format!("date out of range: \"{text}\"", text = shown(text)),
                )
            }),
    }
}

/// Reads a timestamp; an offset in the text is taken into account only when `with_zone`. `now` is the moment that
/// `now` and `today` are counted from.
pub fn parse_timestamp(text: &str, with_zone: bool, now: i64) -> Result<i64> {
    let type_name = if with_zone {
        "timestamp with time zone"
    } else {
        "timestamp"
    };
    match input::parse(text, now).map_err(|fault| refused(fault, text, type_name))? {
        Parsed::Infinity => Ok(i64::MAX),
        Parsed::MinusInfinity => Ok(i64::MIN),
        Parsed::Civil {
            days,
            micros,
            offset_seconds,
        } => {
            let offset = match offset_seconds {
                _ if !with_zone => 0,
                Some(offset) => offset,
                None => input::session_zone(in_force::settings().as_deref()).offset(days, micros),
            };
            days.checked_mul(MICROS_PER_DAY)
                .and_then(|base| base.checked_add(micros - offset * MICROS_PER_SECOND))
                .filter(|micros| is_valid_timestamp(*micros))
                .ok_or_else(|| {
                    EngineError::new(
                        SqlState::DATETIME_FIELD_OVERFLOW,
                        format!("timestamp out of range: \"{text}\"", text = shown(text)),
                    )
                })
        }
    }
}

/// The time that it is in Greenwich, of a time in a zone that many seconds west of it: perhaps one of another day.
pub(crate) fn time_in_greenwich(micros: i64, zone: i32) -> i64 {
    micros + i64::from(zone) * MICROS_PER_SECOND
}

/// Reads a time of day; a zone is passed over.
pub fn parse_time(text: &str, now: i64) -> Result<i64> {
    let (micros, _) = input::parse_time(text, now).map_err(|fault| refused(fault, text, "time"))?;
    Ok(micros)
}

/// Reads a time of day and its zone, that of the session if there is none in the text.
pub fn parse_time_with_zone(text: &str, now: i64) -> Result<(i64, i32)> {
    let (micros, east) =
        input::parse_time(text, now).map_err(|fault| refused(fault, text, "time with time zone"))?;
    Ok((micros, -east as i32))
}

/// Rounds a time of day to `digits` digits of a second.
pub fn round_time(micros: i64, digits: i32) -> i64 {
    round_timestamp(micros, digits)
}

/// Rounds a timestamp to `digits` digits of a second.
pub fn round_timestamp(micros: i64, digits: i32) -> i64 {
    if !(0..6).contains(&digits) || micros == i64::MAX || micros == i64::MIN {
        return micros;
    }
    let unit = 10i64.pow((6 - digits) as u32);
    let half = if micros < 0 { -unit / 2 } else { unit / 2 };
    (micros + half) / unit * unit
}

/// The error that a text which is no date or timestamp makes.
#[cold]
fn refused(fault: Fault, text: &str, type_name: &str) -> EngineError {
    let field = || {
        EngineError::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            format!(
                "date/time field value out of range: \"{text}\"",
                text = shown(text)
            ),
        )
    };
    match fault {
        Fault::Syntax => EngineError::new(
            SqlState::INVALID_DATETIME_FORMAT,
            format!(
                "invalid input syntax for type {type_name}: \"{text}\"",
                text = shown(text)
            ),
        ),
        Fault::Field => field(),
        Fault::MonthOrDay => field().with_hint("Perhaps you need a different \"datestyle\" setting."),
        Fault::Zone => EngineError::new(
            SqlState::INVALID_TIME_ZONE_DISPLACEMENT,
            format!(
                "time zone displacement out of range: \"{text}\"",
                text = shown(text)
            ),
        ),
        Fault::UnknownZone(name) => EngineError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("time zone \"{name}\" not recognized"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> String {
        let mut out = String::new();
        format_date(parse_date(text, 0).unwrap(), &mut out);
        out
    }

    fn timestamp(text: &str, with_zone: bool) -> String {
        let mut out = String::new();
        let micros = parse_timestamp(text, with_zone, 0).unwrap();
        match with_zone {
            true => format_timestamptz(micros, &mut out),
            false => format_timestamp(micros, &mut out),
        }
        out
    }

    #[test]
    fn dates_go_in_and_out() {
        assert_eq!(parse_date("2000-01-01", 0).unwrap(), 0);
        assert_eq!(parse_date("1999-12-31", 0).unwrap(), -1);
        assert_eq!(parse_date("epoch", 0).unwrap(), -10_957);
        for text in [
            "2024-02-29",
            "0001-01-01",
            "0044-03-15 BC",
            "4713-01-01 BC",
            "infinity",
            "-infinity",
            "12345-06-07",
        ] {
            assert_eq!(date(text), text);
        }
        assert_eq!(date("20240229"), "2024-02-29");
        assert_eq!(date("2024/2/9"), "2024-02-09");
    }

    #[test]
    fn timestamps_go_in_and_out() {
        assert_eq!(
            timestamp("2024-02-29 12:34:56.789", false),
            "2024-02-29 12:34:56.789"
        );
        assert_eq!(timestamp("2024-02-29T12:34", false), "2024-02-29 12:34:00");
        assert_eq!(timestamp("2024-02-29 24:00:00", false), "2024-03-01 00:00:00");
        assert_eq!(
            timestamp("2024-02-29 01:00:00+02", true),
            "2024-02-28 23:00:00+00"
        );
        assert_eq!(timestamp("2024-02-29 01:00:00+02", false), "2024-02-29 01:00:00");
        assert_eq!(
            timestamp("2024-02-29 01:00:00 -05:30", true),
            "2024-02-29 06:30:00+00"
        );
        assert_eq!(
            timestamp("2024-02-29 23:59:59.9999999", false),
            "2024-03-01 00:00:00"
        );
        assert_eq!(
            timestamp("4713-01-01 00:00:00 BC", false),
            "4713-01-01 00:00:00 BC"
        );
    }

    #[test]
    fn a_date_may_be_written_in_many_ways() {
        for text in [
            "January 8, 1999",
            "1/8/1999",
            "8 Jan 1999",
            "19990108",
            "1999-Jan-08",
            "Jan-08-1999",
            "08-Jan-1999",
            "990108",
            "1999.008",
            "J2451187",
            "Friday, Jan 8 1999",
            "1999/1/8",
            "1.8.1999",
            "Jan 8 99",
            "1999 January 8",
            "08Jan1999",
            "1999-01-08 04:05:06 PST",
            "8 january 1999 ad",
        ] {
            assert_eq!(date(text), "1999-01-08", "{text}");
        }
        assert_eq!(date("January 8, 99 BC"), "0099-01-08 BC");
        assert_eq!(date("1/8/69"), "2069-01-08");
        assert_eq!(date("1/8/70"), "1970-01-08");
    }

    #[test]
    fn a_time_may_be_written_in_many_ways() {
        for (text, expected) in [
            ("1999-01-08 04:05 PM", "1999-01-08 16:05:00+00"),
            ("1999-01-08 12:05 am", "1999-01-08 00:05:00+00"),
            ("19990108 040506", "1999-01-08 04:05:06+00"),
            ("19990108T040506.789-08", "1999-01-08 12:05:06.789+00"),
            ("1999-01-08 04:05:06 PST", "1999-01-08 12:05:06+00"),
            ("1999-01-08 04:05:06-8", "1999-01-08 12:05:06+00"),
            ("1999-01-08 04:05:06-08:00", "1999-01-08 12:05:06+00"),
            ("1999-01-08T04:05:06z", "1999-01-08 04:05:06+00"),
            ("04:05:06 January 8, 1999 UTC", "1999-01-08 04:05:06+00"),
            ("Jan 8 04:05:06 1999 EST", "1999-01-08 09:05:06+00"),
        ] {
            assert_eq!(timestamp(text, true), expected, "{text}");
        }
    }

    #[test]
    fn relative_words_count_from_the_moment_that_is_given() {
        let now = 86_400_000_000 * 9 + 3_723_000_000;
        let at = |text| parse_timestamp(text, true, now).unwrap();
        assert_eq!(at("now"), now);
        assert_eq!(at("today"), 86_400_000_000 * 9);
        assert_eq!(at("tomorrow 01:00"), 86_400_000_000 * 10 + 3_600_000_000);
        assert_eq!(parse_date("yesterday", now).unwrap(), 8);
        assert!(
            is_relative(" Today 04:05")
                && is_relative("now")
                && !is_relative("epoch")
                && !is_relative("1999-01-08")
        );
    }

    #[test]
    fn what_is_no_date_is_told_from_what_is_out_of_range() {
        let code = |text| parse_date(text, 0).unwrap_err().sqlstate();
        assert_eq!(code("yesterdays"), SqlState::INVALID_DATETIME_FORMAT);
        assert_eq!(code("2024-02"), SqlState::INVALID_DATETIME_FORMAT);
        assert_eq!(code(""), SqlState::INVALID_DATETIME_FORMAT);
        assert_eq!(code("2023-02-29"), SqlState::DATETIME_FIELD_OVERFLOW);
        assert_eq!(code("99-01-08"), SqlState::DATETIME_FIELD_OVERFLOW);
        assert_eq!(
            code("1999-01-08 04:05 Nowhere/Land"),
            SqlState::INVALID_PARAMETER_VALUE
        );
        for text in [
            "January",
            "1999-01-08 1999-01-08",
            "8 8 8 8 8",
            "now now",
            "13:00 PM",
        ] {
            assert!(parse_date(text, 0).is_err(), "{text}");
        }
        assert_eq!(code("2023-13-01"), SqlState::DATETIME_FIELD_OVERFLOW);
    }
}
