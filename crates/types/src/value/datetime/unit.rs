//! The names of the parts of a time.

/// A part of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unit {
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
    pub(crate) fn of(name: &str) -> Option<Unit> {
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
