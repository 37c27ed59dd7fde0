//! The text of an interval, in the styles of the setting `IntervalStyle`.
//!
//! | style | `interval '1 year -2 days 03:04:05'` |
//! |---|---|
//! | `postgres` | `1 year -2 days +03:04:05` |
//! | `postgres_verbose` | `@ 1 year -2 days 3 hours 4 mins 5 secs` |
//! | `sql_standard` | `+1-0 -2 +3:04:05` |
//! | `iso_8601` | `P1Y-2DT3H4M5S` |

use std::fmt::Write as _;

use super::{Interval, Parts};

/// A style of intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IntervalStyle {
    /// `postgres`
    #[default]
    Postgres,
    /// `postgres_verbose`
    Verbose,
    /// `sql_standard`
    SqlStandard,
    /// `iso_8601`
    Iso8601,
}

impl IntervalStyle {
    /// The style of this name.
    pub fn named(name: &str) -> Option<IntervalStyle> {
        Some(match name {
            "postgres" => IntervalStyle::Postgres,
            "postgres_verbose" => IntervalStyle::Verbose,
            "sql_standard" => IntervalStyle::SqlStandard,
            "iso_8601" => IntervalStyle::Iso8601,
            _ => return None,
        })
    }
}

/// Appends the text of an interval.
pub fn format_interval(interval: Interval, style: IntervalStyle, out: &mut String) {
    let parts = interval.parts();
    match style {
        IntervalStyle::Postgres => postgres(&parts, out),
        IntervalStyle::Verbose => verbose(&parts, out),
        IntervalStyle::SqlStandard => sql_standard(&parts, out),
        IntervalStyle::Iso8601 => iso_8601(&parts, out),
    }
}

impl Parts {
    fn has_time(&self) -> bool {
        self.hours != 0 || self.minutes != 0 || self.seconds != 0 || self.micros != 0
    }

    fn is_time_negative(&self) -> bool {
        self.hours < 0 || self.minutes < 0 || self.seconds < 0 || self.micros < 0
    }
}

/// Seconds and their fraction, without a sign; two digits at least if `padded`.
fn push_seconds(parts: &Parts, padded: bool, out: &mut String) {
    let seconds = parts.seconds.abs();
    let _ = match padded {
        true => write!(out, "{seconds:02}"),
        false => write!(out, "{seconds}"),
    };
    if parts.micros != 0 {
        let digits = format!("{:06}", parts.micros.abs());
        out.push('.');
        out.push_str(digits.trim_end_matches('0'));
    }
}

fn postgres(parts: &Parts, out: &mut String) {
    let (mut first, mut after_negative) = (true, false);
    for (number, unit) in [(parts.years, "year"), (parts.months, "mon"), (parts.days, "day")] {
        if number == 0 {
            continue;
        }
        // What follows something negative tells its sign.
        let _ = write!(
            out,
            "{}{}{number} {unit}{}",
            if first { "" } else { " " },
            if after_negative && number > 0 { "+" } else { "" },
            if number == 1 { "" } else { "s" },
        );
        (first, after_negative) = (false, number < 0);
    }
    if first || parts.has_time() {
        let sign = match (parts.is_time_negative(), after_negative) {
            (true, _) => "-",
            (false, true) => "+",
            (false, false) => "",
        };
        let blank = if first { "" } else { " " };
        let _ = write!(
            out,
            "{blank}{sign}{:02}:{:02}:",
            parts.hours.abs(),
            parts.minutes.abs()
        );
        push_seconds(parts, true, out);
    }
}

fn verbose(parts: &Parts, out: &mut String) {
    out.push('@');
    // The first part decides if all of it is "ago".
    let (mut first, mut ago) = (true, false);
    let whole = [
        (i64::from(parts.years), "year"),
        (i64::from(parts.months), "mon"),
        (i64::from(parts.days), "day"),
        (parts.hours, "hour"),
        (parts.minutes, "min"),
    ];
    for (number, unit) in whole {
        if number == 0 {
            continue;
        }
        if first {
            ago = number < 0;
        }
        let shown = if ago { -number } else { number };
        let _ = write!(out, " {shown} {unit}{}", if shown == 1 { "" } else { "s" });
        first = false;
    }
    if parts.seconds != 0 || parts.micros != 0 {
        out.push(' ');
        let negative = parts.seconds < 0 || (parts.seconds == 0 && parts.micros < 0);
        if first {
            ago = negative;
        } else if negative != ago {
            out.push('-');
        }
        push_seconds(parts, false, out);
        let one = parts.seconds.abs() == 1 && parts.micros == 0;
        out.push_str(if one { " sec" } else { " secs" });
        first = false;
    }
    if first {
        out.push_str(" 0");
    }
    if ago {
        out.push_str(" ago");
    }
}

fn sql_standard(parts: &Parts, out: &mut String) {
    let has_months = parts.years != 0 || parts.months != 0;
    let has_rest = parts.days != 0 || parts.has_time();
    let negative = parts.years < 0 || parts.months < 0 || parts.days < 0 || parts.is_time_negative();
    let time_positive = parts.has_time() && !parts.is_time_negative();
    let positive = parts.years > 0 || parts.months > 0 || parts.days > 0 || time_positive;
    if !negative && !positive {
        return out.push('0');
    }
    let sign = |negative: bool| if negative { '-' } else { '+' };
    let (years, months, days) = (parts.years.abs(), parts.months.abs(), parts.days.unsigned_abs());
    let (hours, minutes) = (parts.hours.abs(), parts.minutes.abs());
    if (negative && positive) || (has_months && has_rest) {
        // No value of the standard, which has one sign and either kind of fields: all signs are told.
        let _ = write!(
            out,
            "{}{years}-{months} {}{days} {}{hours}:{minutes:02}:",
            sign(parts.years < 0 || parts.months < 0),
            sign(parts.days < 0),
            sign(parts.is_time_negative()),
        );
        return push_seconds(parts, true, out);
    }
    if negative {
        out.push('-');
    }
    if has_months {
        let _ = write!(out, "{years}-{months}");
        return;
    }
    if parts.days != 0 {
        let _ = write!(out, "{days} ");
    }
    let _ = write!(out, "{hours}:{minutes:02}:");
    push_seconds(parts, true, out);
}

fn iso_8601(parts: &Parts, out: &mut String) {
    let has_date = parts.years != 0 || parts.months != 0 || parts.days != 0;
    if !has_date && !parts.has_time() {
        return out.push_str("PT0S");
    }
    let push = |number: i64, unit: char, out: &mut String| {
        if number != 0 {
            let _ = write!(out, "{number}{unit}");
        }
    };
    out.push('P');
    push(i64::from(parts.years), 'Y', out);
    push(i64::from(parts.months), 'M', out);
    push(i64::from(parts.days), 'D', out);
    if parts.has_time() {
        out.push('T');
    }
    push(parts.hours, 'H', out);
    push(parts.minutes, 'M', out);
    if parts.seconds != 0 || parts.micros != 0 {
        if parts.seconds < 0 || parts.micros < 0 {
            out.push('-');
        }
        push_seconds(parts, false, out);
        out.push('S');
    }
}
