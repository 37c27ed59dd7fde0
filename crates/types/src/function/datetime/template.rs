//! `to_char` of timestamps: a template of fields, and what stands between them.
//!
//! A field may have `FM` (no padding) or `TM` in front, and `TH` or `th` (an ordinal's letters) behind. Text in double
//! quotes is itself; a backslash in front of a double quote makes it one.

use super::civil::Civil;
use crate::error::{EngineError, Result};
use crate::function::{check_length, made_of};
use crate::value::Value;
use crate::value::datetime::{NamedZone, session_abbreviation};

/// The fields, a longer one before those that it begins with.
const FIELDS: &[&str] = &[
    "A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "CC", "DAY", "DDD", "DD", "DY", "Day", "Dy", "D", "FF1", "FF2",
    "FF3", "FF4", "FF5", "FF6", "FX", "HH24", "HH12", "HH", "IDDD", "ID", "IW", "IYYY", "IYY", "IY", "I",
    "J", "MI", "MM", "MONTH", "MON", "MS", "Month", "Mon", "OF", "P.M.", "PM", "Q", "RM", "SSSSS", "SSSS",
    "SS", "TZH", "TZM", "TZ", "US", "WW", "W", "Y,YYY", "YYYY", "YYY", "YY", "Y", "a.d.", "a.m.", "ad", "am",
    "b.c.", "bc", "cc", "day", "ddd", "dd", "dy", "d", "ff1", "ff2", "ff3", "ff4", "ff5", "ff6", "fx",
    "hh24", "hh12", "hh", "iddd", "id", "iw", "iyyy", "iyy", "iy", "i", "j", "mi", "mm", "month", "mon",
    "ms", "of", "p.m.", "pm", "q", "rm", "sssss", "ssss", "ss", "tzh", "tzm", "tz", "us", "ww", "w", "y,yyy",
    "yyyy", "yyy", "yy", "y",
];

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

pub(super) const ROMAN: [&str; 12] = [
    "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII",
];

/// A part of a template.
#[derive(Debug)]
pub(super) enum Part<'a> {
    Field {
        name: &'static str,
        /// FM, or TM, which leaves the padding out too
        short: bool,
        /// TM
        localized: bool,
        ordinal: Option<&'static str>,
    },
    Text {
        text: &'a str,
        quoted: bool,
    },
}

/// The session's clocks at the moment that is shown.
struct Clock {
    /// Seconds east of Greenwich.
    east: i64,
    letters: String,
}

/// `to_char(timestamp, template)`
pub(super) fn to_char(arguments: &[Value]) -> Result<Value> {
    let (micros, with_zone) = match arguments[0] {
        Value::Timestamp(micros) => (micros, false),
        Value::TimestampTz(micros) => (micros, true),
        ref other => return Err(EngineError::internal(format!("to_char of {other:?}"))),
    };
    let template = made_of(&arguments[1])?;
    if template.is_empty() || micros == i64::MAX || micros == i64::MIN {
        return Ok(Value::Null);
    }
    check_length(template.len().saturating_mul(9))?;
    let clock = with_zone.then(|| Clock {
        east: NamedZone::of_session().offset_at(micros),
        letters: session_abbreviation(micros),
    });
    let east = clock.as_ref().map_or(0, |clock| clock.east);
    let civil = Civil::of(micros.saturating_add(east * 1_000_000));
    let mut result = String::new();
    for part in parts(template) {
        match part {
            Part::Text { text, .. } => result.push_str(text),
            Part::Field {
                name, short, ordinal, ..
            } => {
                let shown = field(name, &civil, short, clock.as_ref());
                result.push_str(&shown);
                if let Some(letters) = ordinal {
                    result.push_str(ordinal_of(&shown, letters));
                }
            }
        }
    }
    Ok(Value::text(result))
}

/// Takes a template apart.
pub(super) fn parts(template: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some(first) = rest.chars().next() {
        let mut behind = rest;
        let (mut short, mut localized) = (false, false);
        while let Some(prefixed) = ["FM", "fm", "TM", "tm"]
            .iter()
            .find_map(|word| behind.strip_prefix(word))
        {
            localized |= behind.starts_with(['T', 't']);
            (behind, short) = (prefixed, true);
        }
        if let Some(name) = FIELDS.iter().find(|name| behind.starts_with(**name)) {
            behind = &behind[name.len()..];
            let ordinal = ["TH", "th"]
                .into_iter()
                .find(|letters| behind.starts_with(letters));
            behind = &behind[ordinal.map_or(0, str::len)..];
            rest = behind.strip_prefix("SP").unwrap_or(behind);
            parts.push(Part::Field {
                name,
                short,
                localized,
                ordinal,
            });
            continue;
        }
        if short {
            rest = behind;
            continue;
        }
        rest = match first {
            '"' => quoted(&rest[1..], &mut parts),
            '\\' if rest[1..].starts_with('"') => {
                parts.push(Part::Text {
                    text: &rest[1..2],
                    quoted: false,
                });
                &rest[2..]
            }
            other => {
                let (text, behind) = rest.split_at(other.len_utf8());
                parts.push(Part::Text { text, quoted: false });
                behind
            }
        };
    }
    parts
}

/// Takes text up to the closing quote; what is behind it.
fn quoted<'a>(text: &'a str, parts: &mut Vec<Part<'a>>) -> &'a str {
    let mut rest = text;
    while let Some(at) = rest.find(['"', '\\']) {
        parts.push(Part::Text {
            text: &rest[..at],
            quoted: true,
        });
        if rest[at..].starts_with('"') {
            return &rest[at + 1..];
        }
        let escaped = &rest[at + 1..];
        let length = escaped.chars().next().map_or(0, char::len_utf8);
        parts.push(Part::Text {
            text: &escaped[..length],
            quoted: true,
        });
        rest = &escaped[length..];
    }
    parts.push(Part::Text {
        text: rest,
        quoted: true,
    });
    ""
}

/// A number with zeros in front.
fn padded(number: i64, width: usize, short: bool) -> String {
    match (short, number < 0) {
        (true, _) => number.to_string(),
        (false, true) => format!("{number:0width$}", width = width + 1),
        (false, false) => format!("{number:0width$}"),
    }
}

/// A name in the letters of the field that asks for it.
fn named(name: &str, field: &str, width: usize, short: bool) -> String {
    let mut letters = field.chars();
    let first_is_upper = letters.next().is_some_and(char::is_uppercase);
    let second_is_upper = letters.next().is_some_and(char::is_uppercase);
    let cased = match (first_is_upper, second_is_upper) {
        (true, true) => name.to_uppercase(),
        (true, false) => name.to_owned(),
        _ => name.to_lowercase(),
    };
    match short {
        true => cased,
        false => format!("{cased:<width$}"),
    }
}

fn field(name: &'static str, civil: &Civil, short: bool, clock: Option<&Clock>) -> String {
    let upper = name.to_uppercase();
    let number = |number: i64, width: usize| padded(number, width, short);
    let half = |halves: [&str; 2]| in_case_of(name, halves[usize::from(civil.hour() >= 12)]);
    let era = |eras: [&str; 2]| in_case_of(name, eras[usize::from(civil.year <= 0)]);
    // Years before Christ are counted backwards.
    let shown = |year: i64| if year <= 0 { 1 - year } else { year };
    let year = shown(civil.year);
    let iso_year = shown(civil.iso_week().0);
    let east = clock.map_or(0, |clock| clock.east);
    let sign = if east < 0 { '-' } else { '+' };
    match upper.as_str() {
        "A.M." | "P.M." => half(["A.M.", "P.M."]),
        "AM" | "PM" => half(["AM", "PM"]),
        "A.D." | "B.C." => era(["A.D.", "B.C."]),
        "AD" | "BC" => era(["AD", "BC"]),
        "HH" | "HH12" => number((civil.hour() + 11) % 12 + 1, 2),
        "HH24" => number(civil.hour(), 2),
        "MI" => number(civil.minute(), 2),
        "SS" => number(civil.second(), 2),
        "MS" | "FF3" => format!("{:03}", civil.fraction() / 1_000),
        "US" | "FF6" => format!("{:06}", civil.fraction()),
        "FF1" => (civil.fraction() / 100_000).to_string(),
        "FF2" => format!("{:02}", civil.fraction() / 10_000),
        "FF4" => format!("{:04}", civil.fraction() / 100),
        "FF5" => format!("{:05}", civil.fraction() / 10),
        "SSSS" | "SSSSS" => (civil.in_day / 1_000_000).to_string(),
        "TZ" => clock.map_or_else(String::new, |clock| in_case_of(name, &clock.letters)),
        "TZH" => format!("{sign}{:02}", east.abs() / 3_600),
        "TZM" => format!("{:02}", east.abs() / 60 % 60),
        "OF" => {
            let hours = format!("{sign}{}", number(east.abs() / 3_600, 2));
            match east % 3_600 {
                0 => hours,
                _ => format!("{hours}:{:02}", east.abs() / 60 % 60),
            }
        }
        "MONTH" => named(MONTHS[civil.month as usize - 1], name, 9, short),
        "MON" => named(&MONTHS[civil.month as usize - 1][..3], name, 3, short),
        "DAY" => named(DAYS[civil.day_of_week() as usize], name, 9, short),
        "DY" => named(&DAYS[civil.day_of_week() as usize][..3], name, 3, short),
        "RM" => named(ROMAN[civil.month as usize - 1], name, 4, short),
        "MM" => number(i64::from(civil.month), 2),
        "DDD" => number(civil.day_of_year(), 3),
        "IDDD" => number(civil.iso_day_of_year(), 3),
        "DD" => number(i64::from(civil.day), 2),
        "D" => (civil.day_of_week() + 1).to_string(),
        "ID" => civil.iso_day_of_week().to_string(),
        "WW" => number((civil.day_of_year() - 1) / 7 + 1, 2),
        "IW" => number(civil.iso_week().1, 2),
        "W" => ((i64::from(civil.day) - 1) / 7 + 1).to_string(),
        "Q" => civil.quarter().to_string(),
        "CC" => number(civil.century(), 2),
        "Y,YYY" => format!("{},{:03}", year / 1_000, year % 1_000),
        "YYYY" => number(year, 4),
        "YYY" => number(year % 1_000, 3),
        "YY" => number(year % 100, 2),
        "Y" => (year % 10).to_string(),
        "IYYY" => number(iso_year, 4),
        "IYY" => number(iso_year % 1_000, 3),
        "IY" => number(iso_year % 100, 2),
        "I" => (iso_year % 10).to_string(),
        "J" => civil.julian_day().to_string(),
        // FX is about reading.
        _ => String::new(),
    }
}

/// A text in the case of a field that has one throughout.
pub(super) fn in_case_of(field: &str, text: &str) -> String {
    match field.starts_with(char::is_uppercase) {
        true => text.to_uppercase(),
        false => text.to_lowercase(),
    }
}

/// The letters that make a number an ordinal.
pub(super) fn ordinal_of(number: &str, letters: &str) -> &'static str {
    let digits = number.as_bytes();
    let last = digits.last().copied().unwrap_or(b'0');
    let is_teen = digits.len() > 1 && digits[digits.len() - 2] == b'1';
    let (upper, lower) = match last {
        b'1' if !is_teen => ("ST", "st"),
        b'2' if !is_teen => ("ND", "nd"),
        b'3' if !is_teen => ("RD", "rd"),
        _ => ("TH", "th"),
    };
    if letters == "TH" { upper } else { lower }
}
