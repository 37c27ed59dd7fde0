//! `numeric`: exact decimals of PostgreSQL's range, and the three values that are no number.
//!
//! A finite numeric is `mantissa / 10^scale`. The scale is part of the value: it says how many digits after the point
//! are shown, so `1.5` and `1.50` are equal and look different. Up to 131,072 digits are before the point and up to
//! 16,383 after it; a result beyond that is an error (22003), never a rounded value. How many digits a result has is
//! PostgreSQL's rule for each operation (`arithmetic`, `functions`).
//!
//! ```text
//! value      mantissa  scale
//! 12.50          1250      2
//! 0.00              0      2
//! 5e3            5000      0
//! ```
//!
//! | form | when | cost |
//! |---|---|---|
//! | `Small` | the mantissa fits in 64 bits: nearly all numbers that people store | no allocation |
//! | `Large` | the others; big-integer arithmetic is `dashu-int`'s | one box and the digits |
//! | `NaN`, `Infinity`, `-Infinity` | as in PostgreSQL 14 and later | |
//!
//! Invariants:
//! - N1: a mantissa that fits in 64 bits is always `Small`, so equal forms are equal values of equal scale.
//! - N2: `scale` ≤ 16,383, and no more than 131,072 digits are before the point. `Numeric::checked` keeps it.
//! - N3: zero has no sign.
//!
//! `==` is the sameness of value *and* scale; the order that SQL knows is [`Numeric::compare`], where `1.5` equals
//! `1.50`, NaN equals NaN, and NaN is above infinity.

mod arithmetic;
mod functions;
mod groups;
mod rounding;
mod spread;
#[cfg(test)]
mod tests;
mod text;

use std::cmp::Ordering;
use std::fmt;

use dashu_int::{IBig, Sign, UBig};

use crate::error::{EngineError, Result, SqlState};

pub use groups::Groups;
pub use rounding::Rounding;
pub use spread::PowerSums;

/// The most digits before the decimal point.
pub const WHOLE_DIGITS_MAX: u32 = 131_072;
/// The most digits after the decimal point.
pub const SCALE_MAX: u16 = 16_383;

/// A `numeric` value.
#[derive(Clone, PartialEq, Eq)]
pub struct Numeric(Repr);

#[derive(Clone, PartialEq, Eq)]
enum Repr {
    Small { scale: u16, mantissa: i64 },
    Large(Box<Decimal>),
    NaN,
    Infinity,
    NegativeInfinity,
}

const _: () = assert!(size_of::<Numeric>() == 16);

/// A finite value of any size.
#[derive(Clone, PartialEq, Eq)]
struct Decimal {
    mantissa: IBig,
    scale: u16,
}

/// A value as operations of more than 64 bits see it.
enum Operand {
    Finite(Decimal),
    NaN,
    /// The sign: 1 or −1.
    Infinite(i32),
}

impl Numeric {
    /// 0
    pub const ZERO: Numeric = Numeric::small(0, 0);
    /// 1
    pub const ONE: Numeric = Numeric::small(1, 0);
    /// Not a number
    pub const NAN: Numeric = Numeric(Repr::NaN);
    /// Infinity
    pub const INFINITY: Numeric = Numeric(Repr::Infinity);
    /// -Infinity
    pub const NEGATIVE_INFINITY: Numeric = Numeric(Repr::NegativeInfinity);

    const fn small(mantissa: i64, scale: u16) -> Numeric {
        Numeric(Repr::Small { scale, mantissa })
    }

    fn infinite(sign: i32) -> Numeric {
        match sign {
            0 => Numeric::NAN,
            1.. => Numeric::INFINITY,
            _ => Numeric::NEGATIVE_INFINITY,
        }
    }

    /// `mantissa / 10^scale`; the scale is at most [`SCALE_MAX`].
    pub fn new(mantissa: i128, scale: u16) -> Numeric {
        assert!(scale <= SCALE_MAX, "scale {scale} is beyond {SCALE_MAX}");
        match i64::try_from(mantissa) {
            Ok(mantissa) => Numeric::small(mantissa, scale),
            Err(_) => Numeric(Repr::Large(Box::new(Decimal {
                mantissa: IBig::from(mantissa),
                scale,
            }))),
        }
    }

    /// `mantissa / 10^scale`, or 22003 when that is beyond the range.
    fn checked(mantissa: IBig, scale: u32) -> Result<Numeric> {
        let too_wide = || {
            // A number of this many bits cannot have too many digits; the exact count is asked for beyond it.
            let bits_within = WHOLE_DIGITS_MAX as usize * 3;
            mantissa.as_sign_words().1.len() * 64 > bits_within
                && digit_count(&mantissa) > WHOLE_DIGITS_MAX as usize + scale as usize
        };
        if scale > u32::from(SCALE_MAX) || too_wide() {
            return Err(overflow());
        }
        let scale = scale as u16;
        Ok(match i64::try_from(&mantissa) {
            Ok(mantissa) => Numeric::small(mantissa, scale),
            Err(_) => Numeric(Repr::Large(Box::new(Decimal { mantissa, scale }))),
        })
    }

    fn operand(&self) -> Operand {
        match &self.0 {
            Repr::Small { mantissa, scale } => Operand::Finite(Decimal {
                mantissa: IBig::from(*mantissa),
                scale: *scale,
            }),
            Repr::Large(decimal) => Operand::Finite((**decimal).clone()),
            Repr::NaN => Operand::NaN,
            Repr::Infinity => Operand::Infinite(1),
            Repr::NegativeInfinity => Operand::Infinite(-1),
        }
    }

    /// True if it is the value "not a number".
    pub fn is_nan(&self) -> bool {
        matches!(self.0, Repr::NaN)
    }

    /// True if it is one of the infinities.
    pub fn is_infinite(&self) -> bool {
        matches!(self.0, Repr::Infinity | Repr::NegativeInfinity)
    }

    /// True if it is a number: neither NaN nor infinite.
    pub fn is_finite(&self) -> bool {
        matches!(self.0, Repr::Small { .. } | Repr::Large(_))
    }

    /// True if it is zero, of any scale.
    pub fn is_zero(&self) -> bool {
        matches!(self.0, Repr::Small { mantissa: 0, .. })
    }

    /// −1, 0 or 1; 0 for NaN.
    pub fn signum(&self) -> i32 {
        match &self.0 {
            Repr::Small { mantissa, .. } => mantissa.signum() as i32,
            Repr::Large(decimal) if decimal.mantissa.sign() == Sign::Negative => -1,
            Repr::Large(_) | Repr::Infinity => 1,
            Repr::NegativeInfinity => -1,
            Repr::NaN => 0,
        }
    }

    /// Number of digits after the point that are shown; `None` for NaN and the infinities.
    pub fn scale(&self) -> Option<u16> {
        match &self.0 {
            Repr::Small { scale, .. } => Some(*scale),
            Repr::Large(decimal) => Some(decimal.scale),
            _ => None,
        }
    }

    /// The bytes it has on the heap.
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Repr::Large(decimal) => size_of::<Decimal>() + digit_bytes(&decimal.mantissa),
            _ => 0,
        }
    }

    /// Mantissa and scale of both values, if both are small.
    #[inline]
    fn both_small(&self, other: &Numeric) -> Option<((i64, u16), (i64, u16))> {
        match (&self.0, &other.0) {
            (
                &Repr::Small {
                    mantissa: l,
                    scale: l_scale,
                },
                &Repr::Small {
                    mantissa: r,
                    scale: r_scale,
                },
            ) => Some(((l, l_scale), (r, r_scale))),
            _ => None,
        }
    }

    /// SQL's order: the scale does not matter, NaN equals NaN and is above all else.
    pub fn compare(&self, other: &Numeric) -> Ordering {
        if let Some(((l, l_scale), (r, r_scale))) = self.both_small(other) {
            if l_scale == r_scale {
                return l.cmp(&r);
            }
            if let Some((l, r)) = align_small(l, l_scale, r, r_scale) {
                return l.cmp(&r);
            }
        }
        let rank = |value: &Numeric| match value.0 {
            Repr::NegativeInfinity => 0,
            Repr::Infinity => 2,
            Repr::NaN => 3,
            _ => 1,
        };
        match (self.operand(), other.operand()) {
            (Operand::Finite(l), Operand::Finite(r)) => l.compare(&r),
            _ => rank(self).cmp(&rank(other)),
        }
    }

    /// Its absolute value.
    pub fn abs(&self) -> Numeric {
        if self.signum() < 0 {
            self.negate()
        } else {
            self.clone()
        }
    }

    /// Unary minus.
    pub fn negate(&self) -> Numeric {
        match &self.0 {
            Repr::Small { mantissa, scale } => Numeric::new(-i128::from(*mantissa), *scale),
            Repr::Large(decimal) => {
                let mantissa = -&decimal.mantissa;
                // -(2^63) is the one large mantissa whose negation is small.
                match i64::try_from(&mantissa) {
                    Ok(mantissa) => Numeric::small(mantissa, decimal.scale),
                    Err(_) => Numeric(Repr::Large(Box::new(Decimal {
                        mantissa,
                        scale: decimal.scale,
                    }))),
                }
            }
            Repr::NaN => Numeric::NAN,
            Repr::Infinity => Numeric::NEGATIVE_INFINITY,
            Repr::NegativeInfinity => Numeric::INFINITY,
        }
    }

    /// The nearest whole number, halves away from zero; `None` when it is no number or beyond 128 bits.
    pub fn to_i128(&self) -> Option<i128> {
        match self.round(0).ok()?.0 {
            Repr::Small { mantissa, .. } => Some(i128::from(mantissa)),
            Repr::Large(decimal) => i128::try_from(&decimal.mantissa).ok(),
            _ => None,
        }
    }

    /// The whole number it is; `None` when it has a fraction, is no number, or is beyond 64 bits.
    fn as_whole(&self) -> Option<i64> {
        let whole = self.truncate(0).ok()?;
        if whole.compare(self).is_ne() {
            return None;
        }
        match whole.0 {
            Repr::Small { mantissa, .. } => Some(mantissa),
            _ => None,
        }
    }

    /// The nearest double; `None` when it is beyond the range of doubles or too near to zero for one.
    pub fn to_f64(&self) -> Option<f64> {
        match &self.0 {
            Repr::NaN => Some(f64::NAN),
            Repr::Infinity => Some(f64::INFINITY),
            Repr::NegativeInfinity => Some(f64::NEG_INFINITY),
            // Both parts are exact as doubles, so one division rounds once.
            Repr::Small { mantissa, scale } if *scale <= 22 && mantissa.unsigned_abs() < 1 << 53 => {
                Some(*mantissa as f64 / 10f64.powi(i32::from(*scale)))
            }
            _ => {
                let value: f64 = self.to_string().parse().ok()?;
                (value.is_finite() && (value != 0.0 || self.is_zero())).then_some(value)
            }
        }
    }

    /// The number a double stands for to 15 significant digits, as PostgreSQL converts it.
    pub fn from_f64(value: f64) -> Result<Numeric> {
        Numeric::of_digits(value, f64::DIGITS)
    }

    /// The number a `real` stands for to 6 significant digits, as PostgreSQL converts it.
    pub fn from_f32(value: f32) -> Result<Numeric> {
        Numeric::of_digits(f64::from(value), f32::DIGITS)
    }

    /// The number of a double's first `digits` significant digits.
    fn of_digits(value: f64, digits: u32) -> Result<Numeric> {
        if value.is_nan() {
            return Ok(Numeric::NAN);
        }
        if value.is_infinite() {
            return Ok(Numeric::infinite(if value > 0.0 { 1 } else { -1 }));
        }
        let text = format!("{value:.*e}", digits as usize - 1);
        let (digits, exponent) = text.split_once('e').expect("LowerExp writes an exponent");
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        Numeric::parse(&format!("{digits}e{exponent}"))
    }

    /// The form in which a table row keeps it: see [`Numeric::from_stored`].
    pub(crate) fn to_stored(&self, out: &mut Vec<u8>) {
        let head = match &self.0 {
            Repr::Small { mantissa, scale } => {
                let bytes = mantissa.unsigned_abs().to_le_bytes();
                let used = 8 - (mantissa.unsigned_abs().leading_zeros() / 8) as usize;
                out.extend_from_slice(&stored_head(*mantissa < 0, *scale));
                return out.extend_from_slice(&bytes[..used]);
            }
            Repr::Large(decimal) => {
                let negative = decimal.mantissa.sign() == Sign::Negative;
                out.extend_from_slice(&stored_head(negative, decimal.scale));
                return out.extend_from_slice(&magnitude(&decimal.mantissa).to_le_bytes());
            }
            Repr::NaN => STORED_NAN,
            Repr::Infinity => STORED_INFINITY,
            Repr::NegativeInfinity => STORED_NEGATIVE_INFINITY,
        };
        out.extend_from_slice(&head.to_le_bytes());
    }

    /// True if [`from_stored`](Self::from_stored) reads a number from these bytes.
    #[inline]
    pub(crate) fn is_stored(bytes: &[u8]) -> bool {
        let Some((head, digits)) = bytes.split_first_chunk::<2>() else {
            return false;
        };
        let is_number = u16::from_le_bytes(*head) & STORED_NAN == 0;
        // Every mantissa of so few bytes is one.
        is_number && digits.len() <= 8 || Numeric::from_stored(bytes).is_some()
    }

    /// Reads what [`Numeric::to_stored`] wrote: two bytes (bits 0–13 the scale, bit 14 "no number", bit 15 the sign),
    /// then the mantissa's bytes, least significant first, without leading zeros. `None` when the bytes are damaged.
    pub(crate) fn from_stored(bytes: &[u8]) -> Option<Numeric> {
        let (head, digits) = bytes.split_first_chunk::<2>()?;
        let head = u16::from_le_bytes(*head);
        match head {
            STORED_NAN if digits.is_empty() => return Some(Numeric::NAN),
            STORED_INFINITY if digits.is_empty() => return Some(Numeric::INFINITY),
            STORED_NEGATIVE_INFINITY if digits.is_empty() => return Some(Numeric::NEGATIVE_INFINITY),
            _ if head & STORED_NAN != 0 => return None,
            _ => {}
        }
        let (negative, scale) = (head & STORED_SIGN != 0, head & SCALE_MAX);
        if digits.len() <= 8 {
            let mut mantissa = [0u8; 8];
            mantissa[..digits.len()].copy_from_slice(digits);
            let mantissa = i128::from(u64::from_le_bytes(mantissa));
            return Some(Numeric::new(if negative { -mantissa } else { mantissa }, scale));
        }
        let sign = if negative { Sign::Negative } else { Sign::Positive };
        let mantissa = IBig::from_parts(sign, UBig::from_le_bytes(digits));
        Numeric::checked(mantissa, u32::from(scale)).ok()
    }
}

const STORED_SIGN: u16 = 0x8000;
const STORED_NAN: u16 = 0x4000;
const STORED_INFINITY: u16 = 0x4001;
const STORED_NEGATIVE_INFINITY: u16 = 0xc001;
const _: () = assert!(SCALE_MAX == 0x3fff);

fn stored_head(negative: bool, scale: u16) -> [u8; 2] {
    (scale | if negative { STORED_SIGN } else { 0 }).to_le_bytes()
}

impl Decimal {
    /// The mantissa this value has at a scale that is not less than its own.
    fn at_scale(&self, scale: u16) -> IBig {
        debug_assert!(scale >= self.scale);
        shift(&self.mantissa, u32::from(scale - self.scale))
    }

    fn compare(&self, other: &Decimal) -> Ordering {
        let signs = sign_of(&self.mantissa).cmp(&sign_of(&other.mantissa));
        if signs.is_ne() || self.mantissa.is_zero() {
            return signs;
        }
        // Numbers of different magnitude need not be brought to one scale.
        let magnitude = |d: &Decimal| digit_count(&d.mantissa) as i64 - i64::from(d.scale);
        let by_magnitude = magnitude(self).cmp(&magnitude(other));
        if by_magnitude.is_ne() {
            return if signs_negative(&self.mantissa) {
                by_magnitude.reverse()
            } else {
                by_magnitude
            };
        }
        let scale = self.scale.max(other.scale);
        self.at_scale(scale).cmp(&other.at_scale(scale))
    }
}

fn sign_of(mantissa: &IBig) -> i32 {
    match (mantissa.is_zero(), mantissa.sign()) {
        (true, _) => 0,
        (_, Sign::Positive) => 1,
        (_, Sign::Negative) => -1,
    }
}

fn signs_negative(mantissa: &IBig) -> bool {
    mantissa.sign() == Sign::Negative
}

fn magnitude(mantissa: &IBig) -> UBig {
    mantissa.clone().into_parts().1
}

/// The bytes that a whole number's digits take on the heap: none for two machine words or fewer.
fn digit_bytes(mantissa: &IBig) -> usize {
    match mantissa.as_sign_words().1.len() {
        0..=2 => 0,
        words => words * size_of::<dashu_int::Word>(),
    }
}

/// Number of decimal digits of a whole number; 0 for zero.
fn digit_count(mantissa: &IBig) -> usize {
    match u128::try_from(magnitude(mantissa)) {
        Ok(0) => 0,
        Ok(small) => small.ilog10() as usize + 1,
        Err(_) => mantissa.ilog(&UBig::from(10u8)) + 1,
    }
}

/// 10^power, for powers a `u128` holds.
const fn power_of_ten(power: u32) -> Option<u128> {
    10u128.checked_pow(power)
}

/// `mantissa × 10^power`
fn shift(mantissa: &IBig, power: u32) -> IBig {
    match power {
        0 => mantissa.clone(),
        1..=38 => mantissa * IBig::from(10u128.pow(power)),
        // 10 = 5 × 2, and doubling is a shift of bits.
        _ => (mantissa * IBig::from(5u8).pow(power as usize)) << power as usize,
    }
}

/// Two small mantissas at the larger of their scales; `None` when that may not fit in 128 bits.
fn align_small(l: i64, l_scale: u16, r: i64, r_scale: u16) -> Option<(i128, i128)> {
    let scale = l_scale.max(r_scale);
    let at = |mantissa: i64, own: u16| {
        (scale - own <= 18).then(|| i128::from(mantissa) * 10i128.pow(u32::from(scale - own)))
    };
    Some((at(l, l_scale)?, at(r, r_scale)?))
}

impl From<i128> for Numeric {
    fn from(value: i128) -> Numeric {
        Numeric::new(value, 0)
    }
}

impl From<i64> for Numeric {
    fn from(value: i64) -> Numeric {
        Numeric::small(value, 0)
    }
}

impl fmt::Debug for Numeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Numeric({self})")
    }
}

#[cold]
fn overflow() -> EngineError {
    EngineError::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        "value overflows numeric format",
    )
}

#[cold]
fn division_by_zero() -> EngineError {
    EngineError::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}
