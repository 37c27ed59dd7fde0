//! Rounding to a number of digits after the point, and `numeric(p, s)`.

use dashu_int::IBig;
use dashu_int::ops::{Abs, DivRem};

use super::{Decimal, Numeric, Operand, Repr, SCALE_MAX, WHOLE_DIGITS_MAX, digit_count, shift, sign_of};
use crate::error::{EngineError, Result, SqlState};
use crate::value::datatype::numeric_of_typmod;

/// The treatment of the digits that are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// To the nearest; a half goes away from zero.
    HalfAway,
    /// They are dropped.
    Truncate,
}

/// `round` and `trunc` take no place further before the point than this: one more than there can be digits.
const PLACES_MIN: i32 = -(WHOLE_DIGITS_MAX as i32 + 1);
const PLACES_MAX: i32 = SCALE_MAX as i32;

impl Numeric {
    /// Rounded to `places` digits after the point; negative ones count before it. Halves go away from zero.
    pub fn round(&self, places: i32) -> Result<Numeric> {
        self.to_places(places.clamp(PLACES_MIN, PLACES_MAX), Rounding::HalfAway)
    }

    /// Cut to `places` digits after the point; negative ones count before it.
    pub fn truncate(&self, places: i32) -> Result<Numeric> {
        self.to_places(places.clamp(PLACES_MIN, PLACES_MAX), Rounding::Truncate)
    }

    /// The same with the rounding as an argument, and no limit to the places but the type's.
    pub(super) fn to_places(&self, places: i32, rounding: Rounding) -> Result<Numeric> {
        if let Repr::Small { mantissa, scale } = &self.0
            && let Some(done) = small_to_places(*mantissa, *scale, places, rounding)
        {
            return Ok(done);
        }
        match self.operand() {
            Operand::Finite(decimal) => decimal.to_places(places, rounding),
            _ => Ok(self.clone()),
        }
    }

    /// The greatest whole number that is not above it.
    pub fn floor(&self) -> Result<Numeric> {
        let whole = self.truncate(0)?;
        if self.signum() < 0 && whole.compare(self).is_ne() {
            return whole.subtract(&Numeric::ONE);
        }
        Ok(whole)
    }

    /// The least whole number that is not below it.
    pub fn ceil(&self) -> Result<Numeric> {
        let whole = self.truncate(0)?;
        if self.signum() > 0 && whole.compare(self).is_ne() {
            return whole.add(&Numeric::ONE);
        }
        Ok(whole)
    }

    /// The least scale that shows all its digits; `None` for NaN and the infinities.
    pub fn min_scale(&self) -> Option<u16> {
        let scale = self.scale()?;
        let groups = self.groups();
        let Some(last) = groups.digits.last() else {
            return Some(0);
        };
        let zeros = (0..4).take_while(|n| last % 10u16.pow(n + 1) == 0).count() as i32;
        let after_point = (groups.digits.len() as i32 - 1 - groups.weight) * 4 - zeros;
        Some(after_point.clamp(0, i32::from(scale)) as u16)
    }

    /// The same number with no zeros at the end of its fraction.
    pub fn trim_scale(&self) -> Result<Numeric> {
        match self.min_scale() {
            Some(scale) => self.to_places(i32::from(scale), Rounding::Truncate),
            None => Ok(self.clone()),
        }
    }

    /// Fits it to the modifier of a `numeric(p, s)`.
    pub fn fit(&self, typmod: i32) -> Result<Numeric> {
        let Some((precision, scale)) = numeric_of_typmod(typmod) else {
            return Ok(self.clone());
        };
        if self.is_nan() {
            return Ok(Numeric::NAN);
        }
        let field_overflow = |detail: String| {
            EngineError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow")
                .with_detail(detail)
        };
        if self.is_infinite() {
            return Err(field_overflow(format!(
                "A field with precision {precision}, scale {scale} cannot hold an infinite value."
            )));
        }
        let rounded = self.to_places(scale, Rounding::HalfAway)?;
        let whole_max = precision - scale;
        if rounded.magnitude() >= i64::from(whole_max) && !rounded.is_zero() {
            let bound = match whole_max {
                0 => "1".to_owned(),
                digits => format!("10^{digits}"),
            };
            return Err(field_overflow(format!(
                "A field with precision {precision}, scale {scale} must round to an absolute value less than {bound}."
            )));
        }
        Ok(rounded)
    }

    /// The power of ten of its first digit; 0 for zero and what is no number.
    pub(super) fn magnitude(&self) -> i64 {
        match &self.0 {
            Repr::Small { mantissa: 0, .. } => 0,
            Repr::Small { mantissa, scale } => {
                i64::from(mantissa.unsigned_abs().ilog10()) - i64::from(*scale)
            }
            Repr::Large(decimal) => digit_count(&decimal.mantissa) as i64 - 1 - i64::from(decimal.scale),
            _ => 0,
        }
    }
}

impl Decimal {
    fn to_places(&self, places: i32, rounding: Rounding) -> Result<Numeric> {
        let scale = places.clamp(0, i32::from(SCALE_MAX));
        let dropped = i32::from(self.scale) - places;
        if dropped <= 0 {
            return Numeric::checked(self.at_scale(scale as u16), scale as u32);
        }
        // One digit more than there are drops them all, whatever the number is.
        let dropped = (dropped as usize).min(digit_count(&self.mantissa) + 1) as u32;
        let kept = divide(&self.mantissa, &shift(&IBig::ONE, dropped), rounding);
        let missing = if places < 0 && sign_of(&kept) != 0 {
            places.unsigned_abs()
        } else {
            0
        };
        Numeric::checked(shift(&kept, missing), scale as u32)
    }
}

/// A quotient as a whole number.
pub(super) fn divide(numerator: &IBig, denominator: &IBig, rounding: Rounding) -> IBig {
    let (quotient, remainder) = numerator.div_rem(denominator);
    if rounding == Rounding::Truncate || (remainder.abs() << 1) < denominator.clone().abs() {
        return quotient;
    }
    if sign_of(numerator) * sign_of(denominator) < 0 {
        quotient - IBig::ONE
    } else {
        quotient + IBig::ONE
    }
}

/// The same within 128 bits; `None` when the numerator's double may not fit.
pub(super) fn divide_small(numerator: i128, denominator: i128, rounding: Rounding) -> Option<i128> {
    let quotient = numerator.checked_div(denominator)?;
    let remainder = numerator - quotient * denominator;
    if rounding == Rounding::Truncate
        || remainder.unsigned_abs() < denominator.unsigned_abs() - remainder.unsigned_abs()
    {
        return Some(quotient);
    }
    Some(
        quotient
            + if (numerator < 0) == (denominator < 0) {
                1
            } else {
                -1
            },
    )
}

fn small_to_places(mantissa: i64, scale: u16, places: i32, rounding: Rounding) -> Option<Numeric> {
    let to = u16::try_from(places).ok().filter(|to| *to <= SCALE_MAX)?;
    if to >= scale {
        let factor = (to - scale <= 18).then(|| 10i128.pow(u32::from(to - scale)))?;
        return Some(Numeric::new(i128::from(mantissa) * factor, to));
    }
    let factor = (scale - to <= 18).then(|| 10i128.pow(u32::from(scale - to)))?;
    Some(Numeric::new(
        divide_small(i128::from(mantissa), factor, rounding)?,
        to,
    ))
}
