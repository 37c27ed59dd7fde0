//! Roots, powers and logarithms, with as many digits as PostgreSQL gives, and a few functions of whole numbers.
//!
//! A result of these is rounded. Its scale is chosen such that at least 16 significant digits are shown and no fewer
//! digits after the point than the arguments have, but at most 1,000. The value itself is computed by `dashu-float`,
//! which rounds correctly at any precision: it is asked for [`GUARD_DIGITS`] more digits than are kept.

use dashu_float::round::mode::HalfEven;
use dashu_float::{Context, FBig, Repr as Real};
use dashu_int::ops::Gcd;
use dashu_int::{IBig, UBig};

use super::arithmetic::{RESULT_SCALE_MAX, SIGNIFICANT_DIGITS_MIN, result_scale};
use super::rounding::{Rounding, divide};
use super::{
    Decimal, Numeric, Operand, WHOLE_DIGITS_MAX, digit_count, division_by_zero, magnitude, overflow, shift,
    sign_of,
};
use crate::error::{EngineError, Result, SqlState};

/// Digits computed beyond those that are kept.
const GUARD_DIGITS: i64 = 10;
/// e to a power of this size is beyond what `exp` gives: an overflow, or zero.
const EXPONENT_MAX: f64 = 6_000.0;
const LOG10_E: f64 = std::f64::consts::LOG10_E;

impl Numeric {
    /// The square root.
    pub fn sqrt(&self) -> Result<Numeric> {
        if self.signum() < 0 {
            return Err(bad_power("cannot take square root of a negative number"));
        }
        let (weight, _) = self.leading_group();
        let scale = result_scale(SIGNIFICANT_DIGITS_MIN - ((weight + 1) * 2 - 1), &[self]);
        self.sqrt_at(scale)
    }

    /// The square root of what is not negative, rounded to a scale.
    pub fn sqrt_at(&self, scale: u16) -> Result<Numeric> {
        let Operand::Finite(decimal) = self.operand() else {
            return Ok(self.clone());
        };
        // The root of mantissa × 10^power, cut to a whole number, has one digit more than are kept; that digit decides.
        let power = 2 * (i32::from(scale) + 1) - i32::from(decimal.scale);
        let square = if power >= 0 {
            shift(&decimal.mantissa, power as u32)
        } else {
            divide(
                &decimal.mantissa,
                &shift(&IBig::ONE, power.unsigned_abs()),
                Rounding::Truncate,
            )
        };
        let root = IBig::from(dashu_int::ops::SquareRoot::sqrt(&magnitude(&square)));
        Numeric::checked(
            divide(&root, &IBig::from(10u8), Rounding::HalfAway),
            u32::from(scale),
        )
    }

    /// e to this power.
    pub fn exp(&self) -> Result<Numeric> {
        let Operand::Finite(decimal) = self.operand() else {
            return Ok(if self.compare(&Numeric::NEGATIVE_INFINITY).is_eq() {
                Numeric::ZERO
            } else {
                self.clone()
            });
        };
        let power = self.approximate();
        let digits = (power * LOG10_E).clamp(-2_000.0, 2_000.0) as i64;
        let scale = result_scale(SIGNIFICANT_DIGITS_MIN - digits, &[self]);
        if power.abs() >= EXPONENT_MAX {
            return if power > 0.0 {
                Err(overflow())
            } else {
                Ok(Numeric::small(0, scale))
            };
        }
        let context = context(power * LOG10_E, scale);
        rounded(context.exp(&decimal.real(), None), scale)
    }

    /// The natural logarithm.
    pub fn ln(&self) -> Result<Numeric> {
        self.logarithm_exists()?;
        let Operand::Finite(decimal) = self.operand() else {
            return Ok(self.clone());
        };
        let digits = self.logarithm_magnitude();
        let scale = result_scale(SIGNIFICANT_DIGITS_MIN - digits, &[self]);
        if self.compare(&Numeric::ONE).is_eq() {
            return Ok(Numeric::small(0, scale));
        }
        rounded(decimal.ln(&context(digits as f64, scale)), scale)
    }

    /// The logarithm of `number` to this base.
    pub fn log(&self, number: &Numeric) -> Result<Numeric> {
        if self.is_nan() || number.is_nan() {
            return Ok(Numeric::NAN);
        }
        let infinite = self.is_infinite() || number.is_infinite();
        if infinite && (self.signum() < 0 || number.signum() < 0) {
            return Err(bad_logarithm("cannot take logarithm of a negative number"));
        }
        self.logarithm_exists()?;
        number.logarithm_exists()?;
        let (Operand::Finite(base), Operand::Finite(value)) = (self.operand(), number.operand()) else {
            return Ok(match (self.is_infinite(), number.is_infinite()) {
                (true, true) => Numeric::NAN,
                (true, false) => Numeric::ZERO,
                _ => Numeric::INFINITY,
            });
        };
        let digits = number.logarithm_magnitude() - self.logarithm_magnitude();
        let scale = result_scale(SIGNIFICANT_DIGITS_MIN - digits, &[self, number]);
        if self.compare(&Numeric::ONE).is_eq() {
            return Err(division_by_zero());
        }
        if number.compare(&Numeric::ONE).is_eq() {
            return Ok(Numeric::small(0, scale));
        }
        let context = context(digits as f64 + 2.0, scale);
        let ln = |value: &Decimal| value.ln(&context).map_err(not_computed);
        let (base, value) = (ln(&base)?.value(), ln(&value)?.value());
        rounded(context.div(value.repr(), base.repr()), scale)
    }

    /// This number to the power of `exponent`.
    pub fn power(&self, exponent: &Numeric) -> Result<Numeric> {
        if let Some(special) = self.power_of_specials(exponent)? {
            return Ok(special);
        }
        let whole = exponent.truncate(0)?.compare(exponent).is_eq();
        if self.is_zero() && exponent.signum() < 0 {
            return Err(bad_power("zero raised to a negative power is undefined"));
        }
        if self.signum() < 0 && !whole {
            return Err(complex_power());
        }
        match exponent.as_whole().and_then(|power| i32::try_from(power).ok()) {
            Some(power) => self.power_of_whole(power),
            None => self.power_of_real(exponent),
        }
    }

    fn power_of_whole(&self, power: i32) -> Result<Numeric> {
        let scale = result_scale(SIGNIFICANT_DIGITS_MIN, &[self]);
        match power {
            0 => return Numeric::ONE.to_places(i32::from(scale), Rounding::Truncate),
            1 => return self.to_places(i32::from(scale), Rounding::HalfAway),
            _ if self.is_zero() => return Ok(Numeric::small(0, scale)),
            _ => {}
        }
        let digits = f64::from(power) * self.approximate_log10();
        if digits > 3.0 * 4.0 * 32_767.0 {
            return Err(overflow());
        }
        if digits + 1.0 < -f64::from(scale) {
            return Ok(Numeric::small(0, scale));
        }
        let Operand::Finite(base) = self.operand() else {
            return Ok(Numeric::NAN);
        };
        rounded(
            context(digits, scale).powi(&base.real(), IBig::from(power)),
            scale,
        )
    }

    /// e^(exponent × ln(self)), for an exponent that is no whole number of 32 bits.
    fn power_of_real(&self, exponent: &Numeric) -> Result<Numeric> {
        if self.is_zero() {
            return Ok(Numeric::small(0, SIGNIFICANT_DIGITS_MIN as u16));
        }
        let odd = self.signum() < 0
            && exponent
                .remainder(&Numeric::from(2i64))?
                .compare(&Numeric::ZERO)
                .is_ne();
        let (Operand::Finite(base), Operand::Finite(power)) = (self.abs().operand(), exponent.operand())
        else {
            return Ok(Numeric::NAN);
        };
        let exponent_times_ln = |context: Context<HalfEven>| {
            let ln = base.ln(&context).map_err(not_computed)?.value();
            let product = context.mul(ln.repr(), &power.real()).map_err(not_computed)?;
            Ok::<_, EngineError>(product.value())
        };
        let about = exponent_times_ln(Context::new(20))?.to_f64().value();
        if about.abs() > EXPONENT_MAX * 1.005 {
            return if about > 0.0 {
                Err(overflow())
            } else {
                Ok(Numeric::small(0, RESULT_SCALE_MAX as u16))
            };
        }
        let digits = (about * LOG10_E) as i64;
        let scale = result_scale(SIGNIFICANT_DIGITS_MIN - digits, &[self, exponent]);
        if about.abs() >= EXPONENT_MAX {
            return if about > 0.0 {
                Err(overflow())
            } else {
                Ok(Numeric::small(0, scale))
            };
        }
        let context = context(about * LOG10_E, scale);
        // An error of the logarithm grows with the exponent of e: at most 6,000, which is four digits.
        let exact = exponent_times_ln(Context::new(context.precision() + 5))?;
        let result = rounded(context.exp(exact.repr(), None), scale)?;
        Ok(if odd { result.negate() } else { result })
    }

    /// Powers where a side is NaN or infinite, as POSIX defines `pow`; `None` for the others.
    fn power_of_specials(&self, exponent: &Numeric) -> Result<Option<Numeric>> {
        if self.is_finite() && exponent.is_finite() {
            return Ok(None);
        }
        let is_one = self.compare(&Numeric::ONE).is_eq();
        if self.is_nan() || exponent.is_nan() {
            let one = exponent.is_zero() || is_one;
            return Ok(Some(if one { Numeric::ONE } else { Numeric::NAN }));
        }
        if self.is_zero() && exponent.signum() < 0 {
            return Err(bad_power("zero raised to a negative power is undefined"));
        }
        let whole = exponent.is_infinite() || exponent.truncate(0)?.compare(exponent).is_eq();
        if self.signum() < 0 && !whole {
            return Err(complex_power());
        }
        if is_one || exponent.is_zero() {
            return Ok(Some(Numeric::ONE));
        }
        if self.is_zero() {
            return Ok(Some(Numeric::ZERO));
        }
        let grows = exponent.signum() > 0;
        if exponent.is_infinite() {
            return Ok(Some(match self.abs().compare(&Numeric::ONE) {
                std::cmp::Ordering::Equal => Numeric::ONE,
                above if above.is_gt() == grows => Numeric::INFINITY,
                _ => Numeric::ZERO,
            }));
        }
        let odd = !exponent.remainder(&Numeric::from(2i64))?.is_zero();
        Ok(Some(match grows {
            false => Numeric::ZERO,
            true if self.signum() < 0 && odd => Numeric::NEGATIVE_INFINITY,
            true => Numeric::INFINITY,
        }))
    }

    /// The greatest common divisor.
    pub fn gcd(&self, other: &Numeric) -> Result<Numeric> {
        let (Operand::Finite(l), Operand::Finite(r)) = (self.operand(), other.operand()) else {
            return Ok(Numeric::NAN);
        };
        let scale = l.scale.max(r.scale);
        Numeric::checked(
            IBig::from(common_divisor(&l.at_scale(scale), &r.at_scale(scale))),
            u32::from(scale),
        )
    }

    /// The least common multiple.
    pub fn lcm(&self, other: &Numeric) -> Result<Numeric> {
        let (Operand::Finite(l), Operand::Finite(r)) = (self.operand(), other.operand()) else {
            return Ok(Numeric::NAN);
        };
        let scale = l.scale.max(r.scale);
        let (l, r) = (l.at_scale(scale), r.at_scale(scale));
        if sign_of(&l) == 0 || sign_of(&r) == 0 {
            return Ok(Numeric::small(0, scale));
        }
        let multiple = magnitude(&l) / common_divisor(&l, &r) * magnitude(&r);
        Numeric::checked(IBig::from(multiple), u32::from(scale))
    }

    /// 1 × 2 × … × `number`
    pub fn factorial(number: i64) -> Result<Numeric> {
        // 32,178! has more than 131,072 digits.
        match number {
            ..0 => Err(EngineError::new(
                SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                "factorial of a negative number is undefined",
            )),
            0..=32_177 => Numeric::checked(IBig::from(product(1, number as u64)), 0),
            _ => Err(overflow()),
        }
    }

    /// The number of the bucket, of `count` equal ones between two bounds, that it falls into; 0 below the first and
    /// `count` + 1 above the last.
    pub fn width_bucket(&self, low: &Numeric, high: &Numeric, count: i32) -> Result<i32> {
        let bad = |message: &'static str| {
            Err(EngineError::new(
                SqlState::INVALID_ARGUMENT_FOR_WIDTH_BUCKET,
                message,
            ))
        };
        if count <= 0 {
            return bad("count must be greater than zero");
        }
        if self.is_nan() || low.is_nan() || high.is_nan() {
            return bad("operand, lower bound, and upper bound cannot be NaN");
        }
        if low.is_infinite() || high.is_infinite() {
            return bad("lower and upper bounds must be finite");
        }
        let direction = low.compare(high);
        if direction.is_eq() {
            return bad("lower bound cannot equal upper bound");
        }
        if self.compare(low) == direction {
            return Ok(0);
        }
        let above_last = || EngineError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range");
        if self.compare(high) != direction {
            return count.checked_add(1).ok_or_else(above_last);
        }
        let distance = self.subtract(low)?.multiply(&Numeric::from(i64::from(count)))?;
        let bucket = distance
            .divide(&high.subtract(low)?)?
            .add(&Numeric::ONE)?
            .floor()?;
        bucket
            .as_whole()
            .and_then(|bucket| i32::try_from(bucket).ok())
            .ok_or_else(above_last)
    }

    fn logarithm_exists(&self) -> Result<()> {
        match self.signum() {
            _ if self.is_nan() => Ok(()),
            0 => Err(bad_logarithm("cannot take logarithm of zero")),
            ..0 => Err(bad_logarithm("cannot take logarithm of a negative number")),
            _ => Ok(()),
        }
    }

    /// About the power of ten of the natural logarithm's first digit. Only the scale of a result depends on it, and it
    /// is PostgreSQL's estimate: near one ln(x) is about x − 1; elsewhere the first two groups of digits decide.
    fn logarithm_magnitude(&self) -> i64 {
        if self.is_near_one() {
            return self
                .subtract(&Numeric::ONE)
                .map_or(0, |above_one| above_one.magnitude());
        }
        let groups = self.groups();
        let Some((first, rest)) = groups.digits.split_first() else {
            return 0;
        };
        let mut digits = f64::from(*first);
        let mut power = f64::from(groups.weight) * 4.0;
        if let Some(second) = rest.first() {
            digits = digits * 10_000.0 + f64::from(*second);
            power -= 4.0;
        }
        let logarithm = digits.ln() + power * std::f64::consts::LN_10;
        logarithm.abs().log10() as i64
    }

    /// True if it is from 0.9 to 1.1.
    fn is_near_one(&self) -> bool {
        let (low, high) = (Numeric::small(9, 1), Numeric::small(11, 1));
        self.compare(&low).is_ge() && self.compare(&high).is_le()
    }

    /// The nearest double, or an infinity beyond the range of doubles.
    fn approximate(&self) -> f64 {
        self.to_string().parse().unwrap_or(f64::NAN)
    }

    /// About log10 of its absolute value.
    fn approximate_log10(&self) -> f64 {
        let groups = self.groups();
        let first: f64 = groups
            .digits
            .iter()
            .take(4)
            .fold(0.0, |sum, group| sum * 10_000.0 + f64::from(*group));
        let taken = groups.digits.len().min(4) as f64;
        first.log10() + (f64::from(groups.weight) + 1.0 - taken) * 4.0
    }
}

impl Decimal {
    fn real(&self) -> Real<10> {
        Real::new(self.mantissa.clone(), -(self.scale as isize))
    }

    /// The natural logarithm of a positive number.
    ///
    /// Near one it is that of 1 + d with d given: 1 − 10^-16000 itself has 16,000 digits, all of which the
    /// logarithm of x would have to be computed with, while d has one.
    fn ln(&self, context: &Context<HalfEven>) -> dashu_float::FpResult<FBig<HalfEven, 10>> {
        let unit = shift(&IBig::ONE, u32::from(self.scale));
        let above_one = &self.mantissa - &unit;
        if (&above_one * IBig::from(10u8)).into_parts().1 <= magnitude(&unit) {
            let above_one = Real::new(above_one, -(self.scale as isize));
            return context.ln_1p(&above_one, None);
        }
        context.ln(&self.real(), None)
    }
}

/// The precision that a result of about 10^`power` needs for `scale` digits after the point.
fn context(power: f64, scale: u16) -> Context<HalfEven> {
    let digits = power.ceil() as i64 + 1 + i64::from(scale);
    Context::new((digits.max(0) + GUARD_DIGITS) as usize)
}

fn rounded(result: dashu_float::FpResult<FBig<HalfEven, 10>>, scale: u16) -> Result<Numeric> {
    let (mantissa, exponent) = result.map_err(not_computed)?.value().into_repr().into_parts();
    if sign_of(&mantissa) == 0 {
        return Ok(Numeric::small(0, scale));
    }
    let digits = digit_count(&mantissa) as i64;
    if digits + exponent as i64 > i64::from(WHOLE_DIGITS_MAX) + 1 {
        return Err(overflow());
    }
    let power = exponent as i64 + i64::from(scale);
    let kept = if power >= 0 {
        shift(&mantissa, power as u32)
    } else {
        let dropped = power.unsigned_abs().min(digits as u64 + 1);
        divide(&mantissa, &shift(&IBig::ONE, dropped as u32), Rounding::HalfAway)
    };
    Numeric::checked(kept, u32::from(scale))
}

fn common_divisor(l: &IBig, r: &IBig) -> UBig {
    match (sign_of(l), sign_of(r)) {
        (0, _) => magnitude(r),
        (_, 0) => magnitude(l),
        _ => magnitude(l).gcd(&magnitude(r)),
    }
}

/// The product of the whole numbers from `first` to `last`, halves multiplied so that the factors stay of one size.
fn product(first: u64, last: u64) -> UBig {
    if last < first {
        return UBig::ONE;
    }
    if last - first < 4 {
        return (first..=last).fold(UBig::ONE, |product, factor| product * UBig::from(factor));
    }
    let middle = first + (last - first) / 2;
    product(first, middle) * product(middle + 1, last)
}

#[cold]
fn not_computed(error: dashu_float::FpError) -> EngineError {
    match error {
        dashu_float::FpError::Overflow(_) => overflow(),
        other => EngineError::internal(format!("a numeric function: {other}")),
    }
}

#[cold]
fn bad_power(message: &'static str) -> EngineError {
    EngineError::new(SqlState::INVALID_ARGUMENT_FOR_POWER, message)
}

#[cold]
fn complex_power() -> EngineError {
    bad_power("a negative number raised to a non-integer power yields a complex result")
}

#[cold]
fn bad_logarithm(message: &'static str) -> EngineError {
    EngineError::new(SqlState::INVALID_ARGUMENT_FOR_LOGARITHM, message)
}
