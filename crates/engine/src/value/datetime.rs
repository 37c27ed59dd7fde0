//! Dates and times: the proleptic Gregorian calendar, counted from 2000-01-01 as PostgreSQL counts.
//!
//! The one time zone is UTC. Input takes ISO 8601 in its usual shapes (with a numeric offset, `Z` or `UTC` for
//! timestamptz) and the words `infinity`, `-infinity`, `epoch`, `now`, `today`, `tomorrow`, `yesterday`; output is
//! PostgreSQL's ISO style.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::{EngineError, Result, SqlState};

/// Microseconds in a day.
pub const MICROS_PER_DAY: i64 = 86_400_000_000;
const MICROS_PER_SECOND: i64 = 1_000_000;

/// Days from 1970-01-01 to 2000-01-01.
const UNIX_TO_OURS_DAYS: i64 = 10_957;

/// First and one past the last date: 4713-01-01 BC and 5874898-01-01.
const DATE_FIRST: i64 = -2_451_507;
const DATE_END: i64 = 2_145_031_949;

/// First and one past the last timestamp: 4713-01-01 BC and 294277-01-01.
const TIMESTAMP_FIRST: i64 = DATE_FIRST * MICROS_PER_DAY;
const TIMESTAMP_END: i64 = 9_223_371_331_200_000_000;

/// Now, as a timestamptz.
pub fn clock() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_micros() as i64 - UNIX_TO_OURS_DAYS * MICROS_PER_DAY
}

/// Whether a day number is a date we can show.
pub fn is_valid_date(days: i32) -> bool {
    (DATE_FIRST..DATE_END).contains(&i64::from(days))
}

/// Whether a microsecond number is a timestamp we can show.
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

/// Appends a date in ISO style.
pub fn format_date(days: i32, out: &mut String) {
    match days {
        i32::MAX => out.push_str("infinity"),
        i32::MIN => out.push_str("-infinity"),
        days => {
            let before_christ = push_civil(i64::from(days), out);
            if before_christ {
                out.push_str(" BC");
            }
        }
    }
}

/// Appends a timestamp in ISO style; `zone` is what stands for UTC at the end (`+00` or nothing).
pub fn format_timestamp(micros: i64, zone: &str, out: &mut String) {
    match micros {
        i64::MAX => return out.push_str("infinity"),
        i64::MIN => return out.push_str("-infinity"),
        _ => {}
    }
    let before_christ = push_civil(micros.div_euclid(MICROS_PER_DAY), out);
    let in_day = micros.rem_euclid(MICROS_PER_DAY);
    let seconds = in_day / MICROS_PER_SECOND;
    let _ = write!(
        out,
        " {:02}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    );
    let fraction = in_day % MICROS_PER_SECOND;
    if fraction != 0 {
        let digits = format!("{fraction:06}");
        out.push('.');
        out.push_str(digits.trim_end_matches('0'));
    }
    out.push_str(zone);
    if before_christ {
        out.push_str(" BC");
    }
}

fn push_civil(days: i64, out: &mut String) -> bool {
    let (year, month, day) = civil_from_days(days);
    let shown = if year <= 0 { 1 - year } else { year };
    let _ = write!(out, "{shown:04}-{month:02}-{day:02}");
    year <= 0
}

/// Reads a date.
pub fn parse_date(text: &str) -> Result<i32> {
    let parsed = parse(text, "date")?;
    match parsed {
        Parsed::Infinity => Ok(i32::MAX),
        Parsed::MinusInfinity => Ok(i32::MIN),
        Parsed::Civil { days, .. } => i32::try_from(days)
            .ok()
            .filter(|days| is_valid_date(*days))
            .ok_or_else(|| {
                EngineError::new(
                    SqlState::DATETIME_FIELD_OVERFLOW,
                    format!("date out of range: \"{text}\""),
                )
            }),
    }
}

/// Reads a timestamp; an offset in the text is taken into account only when `with_zone`.
pub fn parse_timestamp(text: &str, with_zone: bool) -> Result<i64> {
    let type_name = if with_zone {
        "timestamp with time zone"
    } else {
        "timestamp"
    };
    match parse(text, type_name)? {
        Parsed::Infinity => Ok(i64::MAX),
        Parsed::MinusInfinity => Ok(i64::MIN),
        Parsed::Civil {
            days,
            micros,
            offset_seconds,
        } => {
            let offset = if with_zone { offset_seconds.unwrap_or(0) } else { 0 };
            days.checked_mul(MICROS_PER_DAY)
                .and_then(|base| base.checked_add(micros - offset * MICROS_PER_SECOND))
                .filter(|micros| is_valid_timestamp(*micros))
                .ok_or_else(|| {
                    EngineError::new(
                        SqlState::DATETIME_FIELD_OVERFLOW,
                        format!("timestamp out of range: \"{text}\""),
                    )
                })
        }
    }
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

enum Parsed {
    Infinity,
    MinusInfinity,
    Civil {
        days: i64,
        micros: i64,
        offset_seconds: Option<i64>,
    },
}

fn parse(text: &str, type_name: &str) -> Result<Parsed> {
    let trimmed = text.trim();
    let now = |day: i64| Parsed::Civil {
        days: clock().div_euclid(MICROS_PER_DAY) + day,
        micros: 0,
        offset_seconds: None,
    };
    Ok(match trimmed.to_ascii_lowercase().as_str() {
        "infinity" | "+infinity" => Parsed::Infinity,
        "-infinity" => Parsed::MinusInfinity,
        "epoch" => Parsed::Civil {
            days: -UNIX_TO_OURS_DAYS,
            micros: 0,
            offset_seconds: None,
        },
        "today" => now(0),
        "tomorrow" => now(1),
        "yesterday" => now(-1),
        "now" => {
            let clock = clock();
            Parsed::Civil {
                days: clock.div_euclid(MICROS_PER_DAY),
                micros: clock.rem_euclid(MICROS_PER_DAY),
                offset_seconds: None,
            }
        }
        _ => return parse_civil(trimmed, text, type_name),
    })
}

fn parse_civil(trimmed: &str, text: &str, type_name: &str) -> Result<Parsed> {
    let bad = || {
        EngineError::new(
            SqlState::INVALID_DATETIME_FORMAT,
            format!("invalid input syntax for type {type_name}: \"{text}\""),
        )
    };
    let out_of_range = || {
        EngineError::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            format!("date/time field value out of range: \"{text}\""),
        )
    };
    let (rest, before_christ) = match trimmed
        .len()
        .checked_sub(3)
        .and_then(|at| trimmed.split_at_checked(at))
    {
        Some((rest, suffix)) if suffix.eq_ignore_ascii_case(" bc") => (rest.trim_end(), true),
        _ => (trimmed, false),
    };
    let mut scan = Scan {
        bytes: rest.as_bytes(),
        at: 0,
    };
    let (digits, number) = scan.number().ok_or_else(bad)?;
    let (year, month, day) = match scan.peek() {
        Some(separator @ (b'-' | b'/' | b'.')) if (3..=7).contains(&digits) => {
            scan.at += 1;
            let (_, month) = scan.number().ok_or_else(bad)?;
            if !scan.eat(separator) {
                return Err(bad());
            }
            let (_, day) = scan.number().ok_or_else(bad)?;
            (number, month, day)
        }
        None | Some(b' ' | b'T' | b't') if digits == 8 => (number / 10_000, number / 100 % 100, number % 100),
        _ => return Err(bad()),
    };
    if year == 0 || !(1..=12).contains(&month) {
        return Err(out_of_range());
    }
    let year = if before_christ { 1 - year } else { year };
    if !(1..=i64::from(days_in_month(year, month as u32))).contains(&day) {
        return Err(out_of_range());
    }
    let mut days = days_from_civil(year, month as u32, day as u32);
    let mut micros = 0;
    let mut offset_seconds = None;
    let spaced = scan.skip_blanks();
    if (spaced || matches!(scan.peek(), Some(b'T' | b't'))) && scan.at < scan.bytes.len() {
        if !spaced {
            scan.at += 1;
        }
        let mut parts = [0i64; 3];
        let (_, hour) = scan.number().ok_or_else(bad)?;
        parts[0] = hour;
        if !scan.eat(b':') {
            return Err(bad());
        }
        parts[1] = scan.number().ok_or_else(bad)?.1;
        let mut fraction = 0;
        if scan.eat(b':') {
            parts[2] = scan.number().ok_or_else(bad)?.1;
            if scan.eat(b'.') {
                fraction = scan.fraction();
            }
        }
        let in_range = parts[0] <= 24
            && parts[1] < 60
            && parts[2] <= 60
            && (parts[0] < 24 || (parts[1] == 0 && parts[2] == 0 && fraction == 0));
        if !in_range {
            return Err(out_of_range());
        }
        micros = (parts[0] * 3600 + parts[1] * 60 + parts[2]) * MICROS_PER_SECOND + fraction;
        days += micros.div_euclid(MICROS_PER_DAY);
        micros = micros.rem_euclid(MICROS_PER_DAY);
        scan.skip_blanks();
    }
    if scan.at < scan.bytes.len() {
        offset_seconds = Some(scan.offset().ok_or_else(bad)?);
    }
    if scan.at < scan.bytes.len() {
        return Err(bad());
    }
    Ok(Parsed::Civil {
        days,
        micros,
        offset_seconds,
    })
}

/// A cursor over the text of a date.
struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn skip_blanks(&mut self) -> bool {
        let start = self.at;
        while self.eat(b' ') {}
        self.at > start
    }

    /// A run of at most nine digits: how many, and their value.
    fn number(&mut self) -> Option<(usize, i64)> {
        let start = self.at;
        let mut value = 0i64;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            if self.at - start >= 9 {
                return None;
            }
            value = value * 10 + i64::from(digit - b'0');
            self.at += 1;
        }
        (self.at > start).then_some((self.at - start, value))
    }

    /// The digits after a decimal point, as microseconds, rounded.
    fn fraction(&mut self) -> i64 {
        let mut value = 0i64;
        let mut digits = 0;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            let digit = i64::from(digit - b'0');
            if digits < 6 {
                value = value * 10 + digit;
            } else if digits == 6 && digit >= 5 {
                value += 1;
            }
            digits += 1;
            self.at += 1;
        }
        value * 10i64.pow(6u32.saturating_sub(digits))
    }

    /// `Z`, `UTC`, `GMT`, `+hh`, `-hh:mm`, `+hhmm`, `+hh:mm:ss`: seconds east of Greenwich.
    fn offset(&mut self) -> Option<i64> {
        let rest = std::str::from_utf8(&self.bytes[self.at..]).ok()?;
        if ["z", "utc", "gmt", "zulu"]
            .iter()
            .any(|name| rest.eq_ignore_ascii_case(name))
        {
            self.at = self.bytes.len();
            return Some(0);
        }
        let sign = match self.peek()? {
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        self.at += 1;
        let (digits, number) = self.number()?;
        let (hours, mut minutes) = if digits > 2 {
            (number / 100, number % 100)
        } else {
            (number, 0)
        };
        let mut seconds = 0;
        if digits <= 2 && self.eat(b':') {
            minutes = self.number()?.1;
            if self.eat(b':') {
                seconds = self.number()?.1;
            }
        }
        (hours <= 15 && minutes < 60 && seconds < 60)
            .then_some(sign * (hours * 3600 + minutes * 60 + seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> String {
        let mut out = String::new();
        format_date(parse_date(text).unwrap(), &mut out);
        out
    }

    fn timestamp(text: &str, with_zone: bool) -> String {
        let mut out = String::new();
        format_timestamp(
            parse_timestamp(text, with_zone).unwrap(),
            if with_zone { "+00" } else { "" },
            &mut out,
        );
        out
    }

    #[test]
    fn dates_go_in_and_out() {
        assert_eq!(parse_date("2000-01-01").unwrap(), 0);
        assert_eq!(parse_date("1999-12-31").unwrap(), -1);
        assert_eq!(parse_date("epoch").unwrap(), -10_957);
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
    fn what_is_no_date_is_told_from_what_is_out_of_range() {
        let code = |text| parse_date(text).unwrap_err().sqlstate();
        assert_eq!(code("yesterdays"), SqlState::INVALID_DATETIME_FORMAT);
        assert_eq!(code("2024-02"), SqlState::INVALID_DATETIME_FORMAT);
        assert_eq!(code(""), SqlState::INVALID_DATETIME_FORMAT);
        assert_eq!(code("2023-02-29"), SqlState::DATETIME_FIELD_OVERFLOW);
        assert_eq!(code("2023-13-01"), SqlState::DATETIME_FIELD_OVERFLOW);
    }
}
