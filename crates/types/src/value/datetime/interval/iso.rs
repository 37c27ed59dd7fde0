//! Intervals in the form of ISO 8601.
//!
//! | form | |
//! |---|---|
//! | with units | `P1Y2M3W4DT5H6M7.5S` |
//! | alternative, extended | `P0001-02-03T04:05:06` |
//! | alternative, basic | `P00010203T040506` |

use super::super::tokens::Fault;
use super::sum::Sum;
use super::{MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND};

/// A larger number would lose digits behind the point.
const NUMBER_MAX: f64 = 1.0e15;

/// Reads an interval that begins with `P`.
pub(super) fn read(text: &str) -> Result<Sum, Fault> {
    let mut rest = text
        .strip_prefix('P')
        .filter(|rest| !rest.is_empty())
        .ok_or(Fault::Syntax)?;
    let mut sum = Sum::default();
    let (mut in_date, mut has_field) = (true, false);
    while !rest.is_empty() {
        if let Some(time) = rest.strip_prefix('T') {
            (rest, in_date, has_field) = (time, false, false);
            continue;
        }
        let number = Number::take(&mut rest)?;
        let unit = rest.chars().next();
        let done = match in_date {
            true => date_field(&mut sum, &number, unit, &mut rest, has_field)?,
            false => time_field(&mut sum, &number, unit, &mut rest, has_field)?,
        };
        has_field = !done;
    }
    Ok(sum)
}

/// A number of such a text.
struct Number {
    whole: i64,
    fraction: f64,
    /// Digits before the point.
    digits: usize,
}

impl Number {
    /// Takes a number off the front of the text.
    fn take(rest: &mut &str) -> Result<Number, Fault> {
        let text = *rest;
        let sign = usize::from(text.starts_with('-'));
        let digits = run_of_digits(&text[sign..]);
        let mut end = sign + digits;
        let mut has_digits = digits > 0;
        if text[end..].starts_with('.') {
            let behind = run_of_digits(&text[end + 1..]);
            has_digits |= behind > 0;
            end += 1 + behind;
        }
        if !has_digits {
            return Err(Fault::Syntax);
        }
        let exponent = text[end..].strip_prefix(['e', 'E']);
        if let Some(exponent) = exponent {
            let sign = usize::from(exponent.starts_with(['-', '+']));
            match run_of_digits(&exponent[sign..]) {
                0 => {}
                length => end += 1 + sign + length,
            }
        }
        let value: f64 = text[..end].parse().map_err(|_| Fault::Syntax)?;
        if !(-NUMBER_MAX..=NUMBER_MAX).contains(&value) {
            return Err(Fault::Field);
        }
        *rest = &text[end..];
        Ok(Number {
            whole: value.trunc() as i64,
            fraction: value.fract(),
            digits,
        })
    }
}

fn run_of_digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// A field before `T`; true if the date is complete with it.
fn date_field(
    sum: &mut Sum,
    number: &Number,
    unit: Option<char>,
    rest: &mut &str,
    has_field: bool,
) -> Result<bool, Fault> {
    let Number { whole, fraction, .. } = *number;
    match unit {
        Some('Y') => sum.add_years(whole, 1, fraction)?,
        Some('M') => sum.add_months(whole, fraction)?,
        Some('W') => sum.add_weeks(whole, fraction)?,
        Some('D') => sum.add_days(whole, fraction)?,
        None | Some('T') if number.digits == 8 && !has_field => {
            sum.add_years(whole / 10_000, 1, 0.0)?;
            sum.add_months(whole / 100 % 100, 0.0)?;
            sum.add_days(whole % 100, fraction)?;
            return Ok(true);
        }
        None | Some('T' | '-') if !has_field => {
            sum.add_years(whole, 1, fraction)?;
            let Some(months) = rest.strip_prefix('-') else {
                return Ok(true);
            };
            *rest = months;
            let months = Number::take(rest)?;
            sum.add_months(months.whole, months.fraction)?;
            if let Some(days) = rest.strip_prefix('-') {
                *rest = days;
                let days = Number::take(rest)?;
                sum.add_days(days.whole, days.fraction)?;
            }
            return match rest.is_empty() || rest.starts_with('T') {
                true => Ok(true),
                false => Err(Fault::Syntax),
            };
        }
        _ => return Err(Fault::Syntax),
    }
    *rest = &rest[1..];
    Ok(false)
}

/// A field behind `T`; true if the time is complete with it.
fn time_field(
    sum: &mut Sum,
    number: &Number,
    unit: Option<char>,
    rest: &mut &str,
    has_field: bool,
) -> Result<bool, Fault> {
    let Number { whole, fraction, .. } = *number;
    match unit {
        Some('H') => sum.add_time(whole, fraction, MICROS_PER_HOUR)?,
        Some('M') => sum.add_time(whole, fraction, MICROS_PER_MINUTE)?,
        Some('S') => sum.add_time(whole, fraction, MICROS_PER_SECOND)?,
        None if number.digits == 6 && !has_field => {
            sum.add_time(whole / 10_000, 0.0, MICROS_PER_HOUR)?;
            sum.add_time(whole / 100 % 100, 0.0, MICROS_PER_MINUTE)?;
            // PostgreSQL counts what is behind the point in microseconds here, which is nothing.
            sum.add_time(whole % 100, 0.0, MICROS_PER_SECOND)?;
            sum.add_time(0, fraction, 1)?;
            return Ok(true);
        }
        None | Some(':') if !has_field => {
            sum.add_time(whole, fraction, MICROS_PER_HOUR)?;
            for unit in [MICROS_PER_MINUTE, MICROS_PER_SECOND] {
                let Some(behind) = rest.strip_prefix(':') else {
                    break;
                };
                *rest = behind;
                let number = Number::take(rest)?;
                sum.add_time(number.whole, number.fraction, unit)?;
            }
            return match rest.is_empty() {
                true => Ok(true),
                false => Err(Fault::Syntax),
            };
        }
        _ => return Err(Fault::Syntax),
    }
    *rest = &rest[1..];
    Ok(false)
}
