//! The text form of a numeric: plain digits, never an exponent.

use std::fmt;
use std::str::FromStr;

use dashu_int::{IBig, Sign, UBig};

use super::{Numeric, Repr, WHOLE_DIGITS_MAX, magnitude, overflow, shift, signs_negative};
use crate::error::{EngineError, Result, SqlState, shown};
use crate::value::DataType;

impl Numeric {
    /// Reads a numeric exactly: digits with at most one point, an exponent if there is one, or the name of one of the
    /// values that are no number. The scale is the number of digits after the point that the value needs.
    pub fn parse(text: &str) -> Result<Numeric> {
        let trimmed = text.trim_matches(crate::value::is_space);
        let (negative, unsigned) = match trimmed.as_bytes() {
            [b'-', ..] => (true, &trimmed[1..]),
            [b'+', ..] => (false, &trimmed[1..]),
            _ => (false, trimmed),
        };
        if !unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
            return special(trimmed, negative, unsigned).ok_or_else(|| invalid(text));
        }
        let (number, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((number, exponent)) => (number, parse_exponent(exponent).ok_or_else(|| invalid(text))??),
            None => (unsigned, 0),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.len() + fraction.len() == 0 || !all_digits(whole) || !all_digits(fraction) {
            return Err(invalid(text));
        }
        assemble(negative, whole, fraction, exponent)
    }
}

/// `whole.fraction × 10^exponent`
fn assemble(negative: bool, whole: &str, fraction: &str, exponent: i64) -> Result<Numeric> {
    let scale = fraction.len() as i64 - exponent;
    let whole = whole.trim_start_matches('0');
    if whole.len() + fraction.len() <= 18 && (0..=i64::from(super::SCALE_MAX)).contains(&scale) {
        let digits = whole.bytes().chain(fraction.bytes());
        let mantissa = digits.fold(0i64, |sum, digit| sum * 10 + i64::from(digit - b'0'));
        return Ok(Numeric::small(
            if negative { -mantissa } else { mantissa },
            scale as u16,
        ));
    }
    let digits = [whole, fraction].concat();
    let digits = digits.trim_start_matches('0');
    if scale > i64::from(super::SCALE_MAX)
        || digits.len() as i64 - scale > i64::from(WHOLE_DIGITS_MAX) && !digits.is_empty()
    {
        return Err(overflow());
    }
    let mantissa = if digits.is_empty() {
        UBig::ZERO
    } else {
        UBig::from_str_radix(digits, 10).map_err(|error| EngineError::internal(format!("digits: {error}")))?
    };
    let sign = if negative { Sign::Negative } else { Sign::Positive };
    let mantissa = IBig::from_parts(sign, mantissa);
    if scale >= 0 || mantissa.is_zero() {
        return Numeric::checked(mantissa, scale.max(0) as u32);
    }
    Numeric::checked(shift(&mantissa, -scale as u32), 0)
}

/// The number after `e`; an exponent that no numeric can have is an overflow.
fn parse_exponent(text: &str) -> Option<Result<i64>> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(match i32::from_str(text) {
        Ok(exponent) if exponent.unsigned_abs() < u32::MAX / 4 => Ok(i64::from(exponent)),
        _ => Err(overflow()),
    })
}

fn special(trimmed: &str, negative: bool, unsigned: &str) -> Option<Numeric> {
    if trimmed.eq_ignore_ascii_case("nan") {
        return Some(Numeric::NAN);
    }
    let infinite = unsigned.eq_ignore_ascii_case("infinity") || unsigned.eq_ignore_ascii_case("inf");
    infinite.then(|| Numeric::infinite(if negative { -1 } else { 1 }))
}

#[cold]
fn invalid(text: &str) -> EngineError {
    EngineError::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!(
            "invalid input syntax for type {}: \"{text}\"",
            DataType::Numeric,
            text = shown(text)
        ),
    )
}

impl FromStr for Numeric {
    type Err = EngineError;

    fn from_str(text: &str) -> Result<Numeric> {
        Numeric::parse(text)
    }
}

impl fmt::Display for Numeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Small { mantissa, scale } => write_digits(
                f,
                *mantissa < 0,
                &mantissa.unsigned_abs().to_string(),
                usize::from(*scale),
            ),
            Repr::Large(decimal) => write_digits(
                f,
                signs_negative(&decimal.mantissa),
                &magnitude(&decimal.mantissa).to_string(),
                usize::from(decimal.scale),
            ),
            Repr::NaN => f.write_str("NaN"),
            Repr::Infinity => f.write_str("Infinity"),
            Repr::NegativeInfinity => f.write_str("-Infinity"),
        }
    }
}

fn write_digits(f: &mut fmt::Formatter<'_>, negative: bool, digits: &str, scale: usize) -> fmt::Result {
    if negative {
        f.write_str("-")?;
    }
    if scale == 0 {
        return f.write_str(digits);
    }
    if let Some(whole) = digits.len().checked_sub(scale).filter(|whole| *whole > 0) {
        f.write_str(&digits[..whole])?;
        f.write_str(".")?;
        return f.write_str(&digits[whole..]);
    }
    f.write_str("0.")?;
    for _ in digits.len()..scale {
        f.write_str("0")?;
    }
    f.write_str(digits)
}
