//! The variance of numerics, exact until its one rounding.
//!
//! Squares and sums of squares may lie beyond the range of the type though the variance does not (values near the
//! largest, or with the most digits after the point). So the sums are kept as whole numbers without a limit.

use dashu_int::IBig;

use super::arithmetic::{RESULT_SCALE_MAX, SIGNIFICANT_DIGITS_MIN, leading_group_of};
use super::rounding::{Rounding, divide};
use super::{Numeric, Operand, digit_bytes, shift, sign_of};
use crate::error::Result;

/// The sum of numerics, and the sum of their squares.
#[derive(Debug, Clone, Default)]
pub struct PowerSums {
    /// The largest scale so far: `sum` counts units of 10^-scale, `squares` of 10^(-2 × scale).
    scale: u16,
    sum: IBig,
    squares: IBig,
    /// A value was NaN or infinite.
    strange: bool,
}

impl PowerSums {
    /// Takes one value.
    pub fn take(&mut self, value: &Numeric) {
        let Operand::Finite(value) = value.operand() else {
            self.strange = true;
            return;
        };
        if value.scale > self.scale {
            let added = u32::from(value.scale - self.scale);
            self.sum = shift(&self.sum, added);
            self.squares = shift(&self.squares, 2 * added);
            self.scale = value.scale;
        }
        let mantissa = value.at_scale(self.scale);
        self.squares += &mantissa * &mantissa;
        self.sum += mantissa;
    }

    /// The bytes it has on the heap.
    pub fn heap_bytes(&self) -> usize {
        digit_bytes(&self.sum) + digit_bytes(&self.squares)
    }

    /// (n Σx² − (Σx)²) ÷ (n × divisor), or its square root; n is `rows`, more than 0.
    pub fn variance(&self, rows: i64, divisor: i64, root: bool) -> Result<Numeric> {
        if self.strange {
            return Ok(Numeric::NAN);
        }
        let numerator = IBig::from(rows) * &self.squares - &self.sum * &self.sum;
        if sign_of(&numerator) == 0 {
            return Ok(Numeric::ZERO);
        }
        let denominator = IBig::from(rows) * IBig::from(divisor);
        let own_scale = 2 * i64::from(self.scale);
        let (weight, first) = leading_group_of(&numerator, own_scale);
        let (divisor_weight, divisor_first) = leading_group_of(&denominator, 0);
        let weight = weight - divisor_weight - i64::from(first <= divisor_first);
        let scale = (SIGNIFICANT_DIGITS_MIN - weight * 4)
            .max(own_scale)
            .clamp(0, RESULT_SCALE_MAX);
        let power = scale - own_scale;
        let quotient = if power >= 0 {
            divide(&shift(&numerator, power as u32), &denominator, Rounding::HalfAway)
        } else {
            let denominator = shift(&denominator, power.unsigned_abs() as u32);
            divide(&numerator, &denominator, Rounding::HalfAway)
        };
        let variance = Numeric::checked(quotient, scale as u32)?;
        if root {
            variance.sqrt_at(scale as u16)
        } else {
            Ok(variance)
        }
    }
}
