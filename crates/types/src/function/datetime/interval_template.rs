//! `to_char` of intervals, and of times of day, which are intervals to it.
//!
//! Fields that only a calendar has, as names of months, are errors. Numbers are those of the interval's parts; a negative
//! one is padded to one character more.

use super::civil::Civil;
use super::operands::interval;
use super::template::{Part, ROMAN, in_case_of, ordinal_of, parts};
use crate::error::{EngineError, Result, SqlState};
use crate::function::{check_length, made_of};
use crate::value::datetime::{MICROS_PER_DAY, Parts, days_from_civil};
use crate::value::{Interval, Value};

/// `to_char(interval, template)`
pub(super) fn to_char(arguments: &[Value]) -> Result<Value> {
    let parts_of_interval = Fields::of(interval(&arguments[0])?);
    let template = made_of(&arguments[1])?;
    if template.is_empty() {
        return Ok(Value::Null);
    }
    check_length(template.len().saturating_mul(9))?;
    let mut result = String::new();
    for part in parts(template) {
        match part {
            Part::Text { text, .. } => result.push_str(text),
            Part::Field {
                name, short, ordinal, ..
            } => {
                let shown = parts_of_interval.field(name, short)?;
                result.push_str(&shown);
                if let Some(letters) = ordinal.filter(|_| !shown.is_empty()) {
                    result.push_str(ordinal_of(&shown, letters));
                }
            }
        }
    }
    Ok(Value::text(result))
}

struct Fields {
    parts: Parts,
    /// All of its months and days, as days.
    total_days: i64,
}

/// A number with zeros in front: this many digits, and a sign before them.
fn padded(number: i64, width: usize, short: bool) -> String {
    match (short, number < 0) {
        (true, _) => number.to_string(),
        (false, true) => format!("{number:0width$}", width = width + 1),
        (false, false) => format!("{number:0width$}"),
    }
}

/// The same, with the sign among the digits.
fn narrow(number: i64, width: usize, short: bool) -> String {
    match short {
        true => number.to_string(),
        false => format!("{number:0width$}"),
    }
}

impl Fields {
    fn of(interval: Interval) -> Fields {
        Fields {
            parts: interval.parts(),
            total_days: i64::from(interval.months) * 30 + i64::from(interval.days),
        }
    }

    fn field(&self, name: &'static str, short: bool) -> Result<String> {
        let parts = &self.parts;
        let (years, months, days) = (
            i64::from(parts.years),
            i64::from(parts.months),
            i64::from(parts.days),
        );
        let number = |number: i64, width: usize| padded(number, width, short);
        let upper = name.to_uppercase();
        let seconds = parts.hours * 3_600 + parts.minutes * 60 + parts.seconds;
        Ok(match upper.as_str() {
            "A.M." | "P.M." | "AM" | "PM" => {
                let afternoon = parts.hours % 24 >= 12;
                let dots = upper.contains('.');
                let half = match (afternoon, dots) {
                    (false, false) => "AM",
                    (true, false) => "PM",
                    (false, true) => "A.M.",
                    (true, true) => "P.M.",
                };
                in_case_of(name, half)
            }
            "HH" | "HH12" => {
                let hour = if parts.hours % 12 == 0 {
                    12
                } else {
                    parts.hours % 12
                };
                match short {
                    true => hour.to_string(),
                    false => format!("{hour:0width$}", width = if parts.hours < 0 { 3 } else { 2 }),
                }
            }
            "HH24" => number(parts.hours, 2),
            "MI" => number(parts.minutes, 2),
            "SS" => number(parts.seconds, 2),
            "MS" | "FF3" => format!("{:03}", parts.micros / 1_000),
            "US" | "FF6" => format!("{:06}", parts.micros),
            "FF1" => (parts.micros / 100_000).to_string(),
            "FF2" => format!("{:02}", parts.micros / 10_000),
            "FF4" => format!("{:04}", parts.micros / 100),
            "FF5" => format!("{:05}", parts.micros / 10),
            "SSSS" | "SSSSS" => seconds.to_string(),
            "MM" => number(months, 2),
            "DDD" => narrow(self.total_days, 3, short),
            "DD" => narrow(days, 2, short),
            "WW" => narrow((self.total_days - 1) / 7 + 1, 2, short),
            "W" => ((days - 1) / 7 + 1).to_string(),
            "Q" if months == 0 => String::new(),
            "Q" => ((months - 1) / 3 + 1).to_string(),
            "CC" => number(years / 100, 2),
            "Y,YYY" => format!("{},{:03}", years / 1_000, years % 1_000),
            "YYYY" => number(years, 4),
            "YYY" => self.last_digits(1_000, 3, short),
            "YY" => self.last_digits(100, 2, short),
            "Y" => (years % 10).to_string(),
            "IYYY" => number(self.day().iso_week().0, 4),
            "IYY" => number(self.day().iso_week().0 % 1_000, 3),
            "IY" => number(self.day().iso_week().0 % 100, 2),
            "I" => (self.day().iso_week().0 % 10).to_string(),
            "IW" => narrow(self.day().iso_week().1, 2, short),
            "IDDD" => narrow(self.day().iso_day_of_year(), 3, short),
            "J" => self.day().julian_day().to_string(),
            "RM" => self.roman(name, short),
            "FX" => String::new(),
            _ => {
                return Err(EngineError::new(
                    SqlState::INVALID_DATETIME_FORMAT,
                    "invalid format specification for an interval value",
                )
                .with_hint("Intervals are not tied to specific calendar dates."));
            }
        })
    }

    /// The date with the interval's years, months and days, which a few fields are numbers of.
    fn day(&self) -> Civil {
        let months = self.parts.months;
        let year = i64::from(self.parts.years) + i64::from(months.div_euclid(12));
        let first = days_from_civil(year, months.rem_euclid(12) as u32, 1);
        Civil::of((first + i64::from(self.parts.days) - 1).saturating_mul(MICROS_PER_DAY))
    }

    fn last_digits(&self, of: i64, width: usize, short: bool) -> String {
        padded(i64::from(self.parts.years) % of, width, short)
    }

    /// The months as a Roman number; those of whole years are December or, backwards, January.
    fn roman(&self, name: &str, short: bool) -> String {
        let (years, months) = (self.parts.years, self.parts.months);
        let place = match months {
            0 if years == 0 => return String::new(),
            0 if years > 0 => 11,
            0 => 0,
            ..0 => 12 + months,
            _ => months - 1,
        };
        let roman = in_case_of(name, ROMAN[place as usize]);
        match short {
            true => roman,
            false => format!("{roman:<4}"),
        }
    }
}
