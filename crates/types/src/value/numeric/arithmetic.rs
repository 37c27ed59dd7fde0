//! `+ - * / %`. Sums, differences and products are exact; a quotient is rounded to the scale below.
//!
//! | operation | digits after the point of the result |
//! |---|---|
//! | `a + b`, `a - b`, `a % b` | the larger of the two scales |
//! | `a * b` | the sum of the two, at most 16,383 |
//! | `a / b` | at least 16 significant digits and the larger of the two scales, at most 1,000 |
//!
//! Results with values that are no numbers: NaN makes NaN; ∞ − ∞, 0 × ∞, ∞ / ∞ and ∞ % x are NaN; x / ∞ is 0.

use dashu_int::IBig;

use super::rounding::{Rounding, divide, divide_small};
use super::{
    Numeric, Operand, Repr, SCALE_MAX, align_small, digit_count, division_by_zero, power_of_ten, shift,
};
use crate::error::Result;

/// The least number of significant digits of a result that must be rounded.
pub(super) const SIGNIFICANT_DIGITS_MIN: i64 = 16;
/// The largest scale of a result that must be rounded.
pub(super) const RESULT_SCALE_MAX: i64 = 1_000;

impl Numeric {
    /// The sum.
    pub fn add(&self, other: &Numeric) -> Result<Numeric> {
        if let Some(((l, l_scale), (r, r_scale))) = self.both_small(other)
            && let Some((l, r)) = align_small(l, l_scale, r, r_scale)
        {
            return Ok(Numeric::new(l + r, l_scale.max(r_scale)));
        }
        match (self.operand(), other.operand()) {
            (Operand::Finite(l), Operand::Finite(r)) => {
                let scale = l.scale.max(r.scale);
                Numeric::checked(l.at_scale(scale) + r.at_scale(scale), u32::from(scale))
            }
            (Operand::NaN, _) | (_, Operand::NaN) => Ok(Numeric::NAN),
            (Operand::Infinite(l), Operand::Infinite(r)) if l != r => Ok(Numeric::NAN),
            (Operand::Infinite(sign), _) | (_, Operand::Infinite(sign)) => Ok(Numeric::infinite(sign)),
        }
    }

    /// The difference.
    pub fn subtract(&self, other: &Numeric) -> Result<Numeric> {
        self.add(&other.negate())
    }

    /// The product.
    pub fn multiply(&self, other: &Numeric) -> Result<Numeric> {
        if let Some(((l, l_scale), (r, r_scale))) = self.both_small(other)
            && l_scale + r_scale <= SCALE_MAX
        {
            return Ok(Numeric::new(i128::from(l) * i128::from(r), l_scale + r_scale));
        }
        match (self.operand(), other.operand()) {
            (Operand::Finite(l), Operand::Finite(r)) => {
                let scale = u32::from(l.scale) + u32::from(r.scale);
                let mut product = l.mantissa * r.mantissa;
                let kept = scale.min(u32::from(SCALE_MAX));
                if kept < scale {
                    product = divide(&product, &shift(&IBig::ONE, scale - kept), Rounding::HalfAway);
                }
                Numeric::checked(product, kept)
            }
            (Operand::NaN, _) | (_, Operand::NaN) => Ok(Numeric::NAN),
            _ => Ok(Numeric::infinite(self.signum() * other.signum())),
        }
    }

    /// The quotient, rounded to the scale PostgreSQL chooses for it.
    pub fn divide(&self, other: &Numeric) -> Result<Numeric> {
        match self.quotient_of_specials(other)? {
            Some(special) => Ok(special),
            None => self.quotient(other, self.division_scale(other), Rounding::HalfAway),
        }
    }

    /// The whole part of the quotient.
    pub fn divide_whole(&self, other: &Numeric) -> Result<Numeric> {
        match self.quotient_of_specials(other)? {
            Some(special) => Ok(special),
            None => self.quotient(other, 0, Rounding::Truncate),
        }
    }

    /// The remainder of the division to a whole quotient; its sign is the dividend's.
    pub fn remainder(&self, other: &Numeric) -> Result<Numeric> {
        if let Some(((l, l_scale), (r, r_scale))) = self.both_small(other)
            && let Some((l, r)) = align_small(l, l_scale, r, r_scale)
            && r != 0
        {
            return Ok(Numeric::new(l % r, l_scale.max(r_scale)));
        }
        match (self.operand(), other.operand()) {
            (Operand::NaN, _) | (_, Operand::NaN) => Ok(Numeric::NAN),
            _ if other.is_zero() => Err(division_by_zero()),
            (Operand::Infinite(_), _) => Ok(Numeric::NAN),
            (_, Operand::Infinite(_)) => Ok(self.clone()),
            (Operand::Finite(l), Operand::Finite(r)) => {
                let scale = l.scale.max(r.scale);
                Numeric::checked(l.at_scale(scale) % r.at_scale(scale), u32::from(scale))
            }
        }
    }

    /// The result of a division with NaN, infinity or a zero divisor; `None` for the others.
    fn quotient_of_specials(&self, other: &Numeric) -> Result<Option<Numeric>> {
        if self.is_nan() || other.is_nan() || (self.is_infinite() && other.is_infinite()) {
            return Ok(Some(Numeric::NAN));
        }
        if other.is_zero() {
            return Err(division_by_zero());
        }
        if self.is_infinite() {
            return Ok(Some(Numeric::infinite(self.signum() * other.signum())));
        }
        Ok(other.is_infinite().then_some(Numeric::ZERO))
    }

    /// The quotient of two numbers, the divisor not zero, at a scale.
    pub(super) fn quotient(&self, other: &Numeric, scale: u16, rounding: Rounding) -> Result<Numeric> {
        if let Some(((l, l_scale), (r, r_scale))) = self.both_small(other)
            && let Some(quotient) = small_quotient((l, l_scale), (r, r_scale), scale, rounding)
        {
            return Ok(quotient);
        }
        let (Operand::Finite(l), Operand::Finite(r)) = (self.operand(), other.operand()) else {
            return Ok(Numeric::NAN);
        };
        let power = i32::from(scale) + i32::from(r.scale) - i32::from(l.scale);
        let quotient = if power >= 0 {
            divide(&shift(&l.mantissa, power as u32), &r.mantissa, rounding)
        } else {
            divide(&l.mantissa, &shift(&r.mantissa, power.unsigned_abs()), rounding)
        };
        Numeric::checked(quotient, u32::from(scale))
    }

    /// The scale of a quotient: 16 significant digits, counted in groups of four.
    pub(super) fn division_scale(&self, other: &Numeric) -> u16 {
        let (l_weight, l_first) = self.leading_group();
        let (r_weight, r_first) = other.leading_group();
        let weight = l_weight - r_weight - i64::from(l_first <= r_first);
        result_scale(SIGNIFICANT_DIGITS_MIN - weight * 4, &[self, other])
    }

    /// Weight and value of the first group of four digits; zeros for zero.
    pub(super) fn leading_group(&self) -> (i64, u32) {
        if self.is_zero() {
            return (0, 0);
        }
        match &self.0 {
            Repr::Small { mantissa, .. } => {
                let power = self.magnitude();
                let first = leading_digits(u128::from(mantissa.unsigned_abs()), power.rem_euclid(4) + 1);
                (power.div_euclid(4), first)
            }
            Repr::Large(decimal) => leading_group_of(&decimal.mantissa, i64::from(decimal.scale)),
            _ => (0, 0),
        }
    }
}

/// The same of `mantissa / 10^scale`, which is not zero.
pub(super) fn leading_group_of(mantissa: &IBig, scale: i64) -> (i64, u32) {
    let digits = digit_count(mantissa);
    let power = digits as i64 - 1 - scale;
    // The first twenty digits are enough.
    let cut = digits.saturating_sub(20) as u32;
    let top = super::magnitude(&(mantissa / shift(&IBig::ONE, cut)));
    let first = leading_digits(u128::try_from(top).unwrap_or(0), power.rem_euclid(4) + 1);
    (power.div_euclid(4), first)
}

/// A scale that is at least the operands' own, within what a rounded result may have.
pub(super) fn result_scale(wanted: i64, operands: &[&Numeric]) -> u16 {
    let own = operands
        .iter()
        .filter_map(|operand| operand.scale())
        .max()
        .unwrap_or(0);
    wanted.max(i64::from(own)).clamp(0, RESULT_SCALE_MAX) as u16
}

/// The first `count` digits, as if zeros followed the number.
fn leading_digits(number: u128, count: i64) -> u32 {
    let digits = i64::from(number.ilog10()) + 1;
    let first = if digits >= count {
        number / 10u128.pow((digits - count) as u32)
    } else {
        number * 10u128.pow((count - digits) as u32)
    };
    first as u32
}

fn small_quotient(l: (i64, u16), r: (i64, u16), scale: u16, rounding: Rounding) -> Option<Numeric> {
    let power = i32::from(scale) + i32::from(r.1) - i32::from(l.1);
    let factor = i128::try_from(power_of_ten(power.unsigned_abs())?).ok()?;
    let (numerator, denominator) = if power >= 0 {
        (i128::from(l.0).checked_mul(factor)?, i128::from(r.0))
    } else {
        (i128::from(l.0), i128::from(r.0).checked_mul(factor)?)
    };
    Some(Numeric::new(
        divide_small(numerator, denominator, rounding)?,
        scale,
    ))
}
