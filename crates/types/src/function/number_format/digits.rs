//! A number as the digits for a template's places.

use super::parse::Template;
use crate::error::{EngineError, Result, SqlState};
use crate::value::{Numeric, Value};

/// The digits for the places of a template.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Digits {
    /// Less than zero; for a double the sign of zero counts.
    pub negative: bool,
    /// The digits, with a point if there are any behind it: `12.50`, `NaN`, or `##.##` for what does not fit.
    pub text: String,
    /// Number of digits before the point.
    pub whole: usize,
    /// Number of digits behind the point that were asked for, if the type has them.
    pub fraction: usize,
}

impl Digits {
    /// The digits of a number, rounded to the template's places.
    pub(super) fn of(number: &Value, template: &Template<'_>) -> Result<Digits> {
        let fraction = template.fraction;
        let (text, fraction) = match number {
            Value::Int4(v) => {
                let shifted = i32::try_from(template.shift)
                    .ok()
                    .and_then(|shift| 10i32.checked_pow(shift as u32));
                let product = match (template.shift, shifted) {
                    (0, _) => Some(*v),
                    (_, Some(power)) => v.checked_mul(power),
                    (_, None) => None,
                };
                (
                    whole_text(product.ok_or_else(|| range("integer"))?, fraction),
                    fraction,
                )
            }
            Value::Int8(v) => {
                let power = u32::try_from(template.shift)
                    .ok()
                    .and_then(|shift| 10i64.checked_pow(shift));
                let product = power.and_then(|power| v.checked_mul(power));
                (
                    whole_text(product.ok_or_else(|| range("bigint"))?, fraction),
                    fraction,
                )
            }
            Value::Numeric(v) => {
                let shifted = match template.shift {
                    0 => v.clone(),
                    shift => v.multiply(&Numeric::parse(&format!("1e{shift}"))?)?,
                };
                (shifted.round(fraction as i32)?.to_string(), fraction)
            }
            Value::Float4(v) => {
                let shifted = match template.shift {
                    0 => *v,
                    shift => *v * power_of_ten(shift) as f32,
                };
                float_text(f64::from(shifted), fraction, f32::DIGITS as usize)
            }
            Value::Float8(v) => {
                let shifted = match template.shift {
                    0 => *v,
                    shift => *v * power_of_ten(shift),
                };
                float_text(shifted, fraction, f64::DIGITS as usize)
            }
            other => return Err(unexpected(other)),
        };
        let negative = text.starts_with('-');
        let text = text.trim_start_matches('-').to_owned();
        let whole = text.find('.').unwrap_or(text.len());
        if whole <= template.whole {
            return Ok(Digits {
                negative,
                text,
                whole,
                fraction,
            });
        }
        let text = format!("{}.{}", "#".repeat(template.whole), "#".repeat(fraction));
        Ok(Digits {
            negative,
            text,
            whole: template.whole,
            fraction,
        })
    }
}

fn whole_text(number: impl std::fmt::Display, fraction: usize) -> String {
    match fraction {
        0 => number.to_string(),
        _ => format!("{number}.{}", "0".repeat(fraction)),
    }
}

/// The text of a float with no more digits than its type keeps, and how many are behind its point.
fn float_text(number: f64, fraction: usize, digits: usize) -> (String, usize) {
    let whole = fixed(number.abs(), 0).len();
    let fraction = fraction.min(digits.saturating_sub(whole));
    (fixed(number, fraction), fraction)
}

fn fixed(number: f64, fraction: usize) -> String {
    if number.is_nan() {
        "NaN".to_owned()
    } else if number.is_infinite() {
        if number < 0.0 { "-Infinity" } else { "Infinity" }.to_owned()
    } else {
        format!("{number:.fraction$}")
    }
}

/// 10^power, correctly rounded.
fn power_of_ten(power: usize) -> f64 {
    format!("1e{power}").parse().unwrap_or(f64::INFINITY)
}

/// The number in scientific form, with a blank for a plus sign.
pub(super) fn scientific(number: &Value, template: &Template<'_>) -> Result<String> {
    let fraction = template.fraction;
    let text = match number {
        Value::Int4(v) => float_scientific(f64::from(*v), fraction),
        Value::Float4(v) => float_scientific(f64::from(*v), fraction),
        Value::Float8(v) => float_scientific(*v, fraction),
        Value::Int8(v) => Some(exact_scientific(&v.to_string(), fraction)),
        Value::Numeric(v) if v.is_finite() => Some(exact_scientific(&v.to_string(), fraction)),
        Value::Numeric(_) => None,
        other => return Err(unexpected(other)),
    };
    Ok(text.unwrap_or_else(|| {
        let after = "#".repeat(fraction + 4);
        format!(" {}.{after}", "#".repeat(template.whole))
    }))
}

fn float_scientific(number: f64, fraction: usize) -> Option<String> {
    if !number.is_finite() {
        return None;
    }
    let text = format!("{number:.fraction$e}");
    let (digits, exponent) = text.split_once('e')?;
    let exponent: i32 = exponent.parse().ok()?;
    Some(with_exponent(digits, exponent))
}

/// The scientific form of decimal digits. The power of ten is that of the number before it is rounded, so 9.96 is 10.0.
fn exact_scientific(text: &str, fraction: usize) -> String {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text),
    };
    let (whole, after) = text.split_once('.').unwrap_or((text, ""));
    let digits: Vec<u8> = whole.bytes().chain(after.bytes()).collect();
    let Some(first) = digits.iter().position(|digit| *digit != b'0') else {
        return with_exponent(&whole_text(0, fraction), 0);
    };
    let exponent = whole.len() as i32 - 1 - first as i32;
    let mut kept: Vec<u8> = digits[first..].iter().copied().take(fraction + 1).collect();
    kept.resize(fraction + 1, b'0');
    let mut before_point = 1;
    if digits.get(first + fraction + 1).is_some_and(|next| *next >= b'5') && round_up(&mut kept) {
        before_point = 2;
    }
    let digits = String::from_utf8(kept).unwrap_or_default();
    let (whole, after) = digits.split_at(before_point);
    let point = if after.is_empty() { "" } else { "." };
    with_exponent(&format!("{sign}{whole}{point}{after}"), exponent)
}

/// Adds one to the last digit; whether there is a digit more now.
fn round_up(digits: &mut Vec<u8>) -> bool {
    for digit in digits.iter_mut().rev() {
        if *digit != b'9' {
            *digit += 1;
            return false;
        }
        *digit = b'0';
    }
    digits.insert(0, b'1');
    true
}

fn with_exponent(digits: &str, exponent: i32) -> String {
    let blank = if digits.starts_with('-') { "" } else { " " };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{blank}{digits}e{sign}{:02}", exponent.abs())
}

/// The whole number whose Roman numeral is wanted; what has none may come out as 0.
pub(super) fn roman_value(number: &Value) -> Result<i32> {
    let whole = match number {
        Value::Int4(v) => return Ok(*v),
        Value::Int8(v) => i32::try_from(*v).ok(),
        Value::Float4(v) => return Ok(f64::from(*v).round_ties_even() as i32),
        Value::Float8(v) => return Ok(v.round_ties_even() as i32),
        Value::Numeric(v) if !v.is_finite() => {
            let kind = if v.is_nan() { "NaN" } else { "infinity" };
            let message = format!("cannot convert {kind} to integer");
            return Err(EngineError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        Value::Numeric(v) => v.to_i128().and_then(|whole| i32::try_from(whole).ok()),
        other => return Err(unexpected(other)),
    };
    whole.ok_or_else(|| range("integer"))
}

#[cold]
fn range(type_name: &str) -> EngineError {
    EngineError::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        format!("{type_name} out of range"),
    )
}

#[cold]
fn unexpected(number: &Value) -> EngineError {
    EngineError::internal(format!("to_char of {number:?}"))
}
