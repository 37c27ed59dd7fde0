//! The names of the parts of a time.

use crate::error::{EngineError, SqlState};

/// A part of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unit {
    Microseconds,
    Milliseconds,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
    Julian,
    IsoYear,
    DayOfWeek,
    IsoDayOfWeek,
    DayOfYear,
    Epoch,
    Timezone,
    TimezoneHour,
    TimezoneMinute,
}

impl Unit {
    /// The part of a name, of which ten characters count.
    pub(super) fn of(name: &str) -> Option<Unit> {
        use Unit::*;
        let name = name.to_lowercase();
        let end = name.char_indices().nth(10).map_or(name.len(), |(at, _)| at);
        Some(match &name[..end] {
            "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecon" => Microseconds,
            "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecon" => Milliseconds,
            "s" | "sec" | "secs" | "second" | "seconds" => Second,
            "m" | "min" | "mins" | "minute" | "minutes" => Minute,
            "h" | "hr" | "hrs" | "hour" | "hours" => Hour,
            "d" | "day" | "days" => Day,
            "w" | "week" | "weeks" => Week,
            "mon" | "mons" | "month" | "months" => Month,
            "qtr" | "quarter" => Quarter,
            "y" | "yr" | "yrs" | "year" | "years" => Year,
            "dec" | "decs" | "decade" | "decades" => Decade,
            "c" | "cent" | "century" | "centuries" => Century,
            "mil" | "mils" | "millennia" | "millennium" => Millennium,
            "j" | "jd" | "julian" => Julian,
            "isoyear" => IsoYear,
            "dow" => DayOfWeek,
            "isodow" => IsoDayOfWeek,
            "doy" => DayOfYear,
            "epoch" => Epoch,
            "timezone" => Timezone,
            "timezone_h" => TimezoneHour,
            "timezone_m" => TimezoneMinute,
            _ => return None,
        })
    }
}

/// 22023 for a name that means nothing.
#[cold]
pub(super) fn not_recognized(name: &str, type_name: &str) -> EngineError {
    EngineError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("unit \"{}\" not recognized for type {type_name}", shown(name)),
    )
}

/// 0A000 for a part that values of a type have not.
#[cold]
pub(super) fn not_supported(name: &str, type_name: &str) -> EngineError {
    EngineError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!("unit \"{}\" not supported for type {type_name}", shown(name)),
    )
}

fn shown(name: &str) -> String {
    crate::error::shown(name).to_lowercase()
}
