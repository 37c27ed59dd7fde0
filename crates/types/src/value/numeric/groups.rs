//! A numeric as PostgreSQL's binary form and our index keys write it: digits in base 10,000.
//!
//! Group i stands for `digit × 10,000^(weight − i)`; neither the first nor the last group is zero. Zero has no group.

use dashu_int::{IBig, Sign, UBig};

use super::{Numeric, Repr, SCALE_MAX, magnitude, overflow, power_of_ten, shift, sign_of};
use crate::error::{EngineError, Result};

/// Digits in base 10,000.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Groups {
    /// The power of 10,000 that the first group counts; 0 for zero.
    pub weight: i32,
    /// The groups, most significant first, each below 10,000.
    pub digits: Vec<u16>,
}

impl Numeric {
    /// The digits of its absolute value; none for NaN and the infinities.
    pub fn groups(&self) -> Groups {
        match &self.0 {
            Repr::Small { mantissa, scale } => {
                let padding = padding(*scale);
                let mut rest = u128::from(mantissa.unsigned_abs()) * 10u128.pow(padding);
                let mut digits = Vec::with_capacity(6);
                while rest > 0 {
                    digits.push((rest % 10_000) as u16);
                    rest /= 10_000;
                }
                digits.reverse();
                strip(digits, *scale)
            }
            Repr::Large(decimal) => {
                let padded = shift(&decimal.mantissa, padding(decimal.scale));
                let text = magnitude(&padded).to_string();
                let head = text.len() % 4;
                let (first, others) = text.as_bytes().split_at(head);
                let value = |group: &[u8]| {
                    group
                        .iter()
                        .fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0'))
                };
                let mut digits = Vec::with_capacity(text.len() / 4 + 1);
                if head > 0 {
                    digits.push(value(first));
                }
                digits.extend(others.chunks_exact(4).map(value));
                strip(digits, decimal.scale)
            }
            _ => Groups::default(),
        }
    }

    /// The number of these groups, cut to `scale` digits after the point; each group is below 10,000.
    pub fn from_groups(negative: bool, groups: &Groups, scale: u16) -> Result<Numeric> {
        if scale > SCALE_MAX || groups.weight >= 1 << 15 {
            return Err(overflow());
        }
        let mut text = String::with_capacity(groups.digits.len() * 4);
        for digit in &groups.digits {
            use std::fmt::Write;
            let _ = write!(text, "{digit:04}");
        }
        let digits = text.trim_start_matches('0');
        if digits.is_empty() {
            return Ok(Numeric::small(0, scale));
        }
        let mantissa = UBig::from_str_radix(digits, 10)
            .map_err(|error| EngineError::internal(format!("digits: {error}")))?;
        // The number is mantissa × 10,000^(weight − count + 1); bring it to `scale` digits after the point.
        let power = (groups.weight - groups.digits.len() as i32 + 1) * 4 + i32::from(scale);
        let mantissa = if power >= 0 {
            shift(&IBig::from(mantissa), power as u32)
        } else if power.unsigned_abs() as usize > digits.len() {
            IBig::ZERO
        } else {
            IBig::from(mantissa) / ten_to(power.unsigned_abs())
        };
        let sign = if negative && sign_of(&mantissa) != 0 {
            Sign::Negative
        } else {
            Sign::Positive
        };
        Numeric::checked(IBig::from_parts(sign, magnitude(&mantissa)), u32::from(scale))
    }
}

fn ten_to(power: u32) -> IBig {
    match power_of_ten(power) {
        Some(small) => IBig::from(small),
        None => shift(&IBig::ONE, power),
    }
}

/// Number of zeros that make the digits after the point a multiple of four.
fn padding(scale: u16) -> u32 {
    u32::from((4 - scale % 4) % 4)
}

fn strip(mut digits: Vec<u16>, scale: u16) -> Groups {
    let groups_after_point = i32::from(scale.div_ceil(4));
    let weight = digits.len() as i32 - 1 - groups_after_point;
    let used = digits
        .iter()
        .rposition(|digit| *digit != 0)
        .map_or(0, |last| last + 1);
    digits.truncate(used);
    Groups {
        weight: if used == 0 { 0 } else { weight },
        digits,
    }
}
