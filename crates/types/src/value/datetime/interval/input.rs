//! Reading intervals.
//!
//! The text is cut into the tokens of a timestamp (`datetime::tokens`), which are read from right to left, so that a unit
//! is known before its number:
//!
//! ```text
//! @ 1 year 2 mons -3 days 04:05:06 ago
//! 1-2 3 4:05:06                            years and months, days, time: the SQL standard's
//! P1Y2M3DT4H5M6S                           ISO 8601: read by `iso`
//! ```
//!
//! 1. A time, or `hh:mm` with a sign, is hours, minutes and seconds; a number to its left without a unit is days.
//! 2. A number has the unit to its right. The last one may have none: then it is the last field of the type's modifier,
//!    or seconds.
//! 3. `years-months` is a number of months.
//! 4. A field that comes twice is an error, as is a text without any.
//! 5. AGO turns all signs around.
//!
//! In the style of the SQL standard a minus in front is that of all fields, unless another one has a sign of its own.

use super::super::tokens::{Fault, Token, fraction_of, tokens};
use super::super::unit::Unit;
use super::fields::{IntervalField, is_minute_to_second, last_field};
use super::sum::{Sum, too_large};
use super::{
    Interval, IntervalStyle, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND, iso, out_of_range,
};
use crate::error::{EngineError, Result, SqlState, shown};

/// Reads an interval; a modifier says what a number without a unit is.
pub fn parse_interval(text: &str, typmod: i32, style: IntervalStyle) -> Result<Interval> {
    let read = match read(text, typmod, style) {
        Err(Fault::Syntax) => iso::read(text),
        other => other,
    };
    match read {
        Ok(sum) => sum.interval().ok_or_else(out_of_range),
        Err(Fault::Field | Fault::MonthOrDay) => Err(EngineError::new(
            SqlState::from_code("22015"),
            format!("interval field value out of range: \"{}\"", shown(text)),
        )),
        Err(_) => Err(EngineError::new(
            SqlState::INVALID_DATETIME_FORMAT,
            format!("invalid input syntax for type interval: \"{}\"", shown(text)),
        )),
    }
}

/// True if the text means another interval in the style of the SQL standard.
pub fn depends_on_style(text: &str) -> bool {
    let trimmed = text.trim_start_matches(crate::value::is_space);
    trimmed.starts_with('-') && trimmed[1..].contains(crate::value::is_space)
}

/// The fields that a text has named already, so that none is named twice.
#[derive(Debug, Default)]
struct Seen(Vec<Unit>);

impl Seen {
    fn add(&mut self, units: &[Unit]) -> Result<(), Fault> {
        if units.iter().any(|unit| self.0.contains(unit)) {
            return Err(Fault::Syntax);
        }
        self.0.extend_from_slice(units);
        Ok(())
    }
}

const ALL_SECONDS: [Unit; 3] = [Unit::Second, Unit::Milliseconds, Unit::Microseconds];
const ALL_TIME: [Unit; 5] = [
    Unit::Hour,
    Unit::Minute,
    Unit::Second,
    Unit::Milliseconds,
    Unit::Microseconds,
];

fn read(text: &str, typmod: i32, style: IntervalStyle) -> Result<Sum, Fault> {
    let tokens = tokens(text)?;
    let negative = style == IntervalStyle::SqlStandard
        && tokens.first().is_some_and(is_negative)
        && !tokens[1..].iter().any(has_sign);
    let mut sum = Sum::default();
    let (mut seen, mut unit, mut ago) = (Seen::default(), None, false);
    for token in tokens.iter().rev() {
        match token {
            Token::Time(time) => {
                let micros = micros_of(time, typmod)?;
                sum.set_time(if negative { -micros } else { micros });
                seen.add(&ALL_TIME)?;
                unit = Some(Unit::Day);
            }
            Token::Zone(time) if time[1..].contains(':') => {
                let micros = micros_of(&time[1..], typmod)?;
                sum.set_time(if time.starts_with('-') { -micros } else { micros });
                seen.add(&ALL_TIME)?;
                unit = Some(Unit::Day);
            }
            Token::Zone(number) | Token::Date(number) | Token::Number(number) => {
                let known = unit.unwrap_or_else(|| unit_of_field(last_field(typmod)));
                unit = Some(add_number(&mut sum, &mut seen, number, known, negative)?);
            }
            Token::Word(word) if word == "ago" => ago = true,
            Token::Word(word) => unit = Some(Unit::of(word).ok_or(Fault::Syntax)?),
        }
    }
    if seen.0.is_empty() {
        return Err(Fault::Syntax);
    }
    if ago {
        sum.negate()?;
    }
    Ok(sum)
}

fn is_negative(token: &Token) -> bool {
    matches!(token, Token::Zone(text) | Token::Word(text) if text.starts_with('-'))
}

fn has_sign(token: &Token) -> bool {
    matches!(token, Token::Zone(_)) || matches!(token, Token::Word(text) if text.starts_with(['-', '+']))
}

/// The unit of the last number, if none is written: the modifier's last field.
fn unit_of_field(field: Option<IntervalField>) -> Unit {
    match field {
        Some(IntervalField::Year) => Unit::Year,
        Some(IntervalField::Month) => Unit::Month,
        Some(IntervalField::Day) => Unit::Day,
        Some(IntervalField::Hour) => Unit::Hour,
        Some(IntervalField::Minute) => Unit::Minute,
        Some(IntervalField::Second) | None => Unit::Second,
    }
}

/// Adds a number of units; the unit of a number to its left that has none.
fn add_number(sum: &mut Sum, seen: &mut Seen, text: &str, unit: Unit, negative: bool) -> Result<Unit, Fault> {
    let minus = text.starts_with('-');
    let body = text.trim_start_matches(['-', '+']).trim_start();
    let digits = body.find(|c: char| !c.is_ascii_digit()).unwrap_or(body.len());
    let (whole, rest) = body.split_at(digits);
    let mut number: i64 = match whole {
        "" => 0,
        // With its sign, so that the least of all fits.
        whole => format!("{}{whole}", if minus { "-" } else { "" })
            .parse()
            .map_err(|_| Fault::Field)?,
    };
    let (mut fraction, mut unit) = (0.0, unit);
    match rest.as_bytes().first() {
        None => {}
        Some(b'.') => fraction = fraction_of(&rest[1..])?,
        Some(b'-') => {
            let months = rest[1..].parse::<i64>();
            let months = months.map_err(|_| match rest[1..].bytes().all(|b| b.is_ascii_digit()) {
                true if rest.len() > 1 => Fault::Field,
                _ => Fault::Syntax,
            })?;
            if !(0..12).contains(&months) {
                return Err(Fault::Field);
            }
            unit = Unit::Month;
            let months = if minus { -months } else { months };
            number = too_large(number.checked_mul(12).and_then(|all| all.checked_add(months)))?;
        }
        Some(_) => return Err(Fault::Syntax),
    }
    if minus {
        fraction = -fraction;
    }
    if negative {
        (number, fraction) = (-number.saturating_abs(), -f64::abs(fraction));
    }
    match unit {
        Unit::Microseconds => sum.add_time(number, fraction, 1)?,
        Unit::Milliseconds => sum.add_time(number, fraction, 1_000)?,
        Unit::Second => sum.add_time(number, fraction, MICROS_PER_SECOND)?,
        Unit::Minute => sum.add_time(number, fraction, MICROS_PER_MINUTE)?,
        Unit::Hour => sum.add_time(number, fraction, MICROS_PER_HOUR)?,
        Unit::Day => sum.add_days(number, fraction)?,
        Unit::Week => sum.add_weeks(number, fraction)?,
        Unit::Month => sum.add_months(number, fraction)?,
        Unit::Year => sum.add_years(number, 1, fraction)?,
        Unit::Decade => sum.add_years(number, 10, fraction)?,
        Unit::Century => sum.add_years(number, 100, fraction)?,
        Unit::Millennium => sum.add_years(number, 1_000, fraction)?,
        _ => return Err(Fault::Syntax),
    }
    match unit {
        Unit::Second if fraction != 0.0 => seen.add(&ALL_SECONDS)?,
        unit => seen.add(&[unit])?,
    }
    Ok(if unit == Unit::Hour { Unit::Day } else { unit })
}

/// The microseconds of `hh:mm`, `hh:mm:ss` or `mm:ss.fraction`.
fn micros_of(text: &str, typmod: i32) -> Result<i64, Fault> {
    let (clock, after) = match text.split_once('.') {
        Some((clock, after)) => (clock, Some(after)),
        None => (text, None),
    };
    let numbers = clock.split(':').map(|part| match part {
        "" => Ok(0),
        part if part.bytes().all(|byte| byte.is_ascii_digit()) => {
            part.parse::<i64>().map_err(|_| Fault::Field)
        }
        _ => Err(Fault::Syntax),
    });
    let numbers = numbers.collect::<Result<Vec<i64>, Fault>>()?;
    let (hours, minutes, seconds) = match *numbers.as_slice() {
        [minutes, seconds] if after.is_some() || is_minute_to_second(typmod) => (0, minutes, seconds),
        [hours, minutes] => (hours, minutes, 0),
        [hours, minutes, seconds] => (hours, minutes, seconds),
        _ => return Err(Fault::Syntax),
    };
    let fraction = (fraction_of(after.unwrap_or(""))? * 1e6).round_ties_even() as i64;
    if minutes > 59 || seconds > 60 {
        return Err(Fault::Field);
    }
    let hours = hours.checked_mul(MICROS_PER_HOUR);
    let rest = minutes * MICROS_PER_MINUTE + seconds * MICROS_PER_SECOND + fraction;
    too_large(hours.and_then(|hours| hours.checked_add(rest)))
}
