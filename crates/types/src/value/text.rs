//! PostgreSQL's text form of values, and LIKE.

use std::cell::Cell;
use std::fmt::{self, Write as _};
use std::str::FromStr;

use dashu_int::IBig;

use crate::error::{EngineError, Result, SqlState, shown};
use crate::value::array::{decode_array_text, encode_array_text};
use crate::value::modifier::apply_typmod;
use crate::value::network::{mac, text as network};
use crate::value::record::decode_record_text;
use crate::value::user_type::{position_of, write_label};
use crate::value::{DataType, Jsonb, NO_TYPMOD, Numeric, Value, bytes, datetime, json, lsn, uuid};

/// Appends the text form of a value that is not NULL.
pub fn encode_text(value: &Value, out: &mut String) {
    match value {
        Value::Null => debug_assert!(false, "NULL has no text form"),
        Value::Bool(v) => out.push(if *v { 't' } else { 'f' }),
        Value::Int2(v) => push_integer(i64::from(*v), out),
        Value::Int4(v) => push_integer(i64::from(*v), out),
        Value::Int8(v) => push_integer(*v, out),
        Value::Oid(v) => push_integer(i64::from(*v), out),
        Value::Float4(v) => push_float(*v, out),
        Value::Float8(v) => push_float(*v, out),
        Value::Numeric(v) => {
            let _ = write!(out, "{v}");
        }
        Value::Text(v) => out.push_str(v),
        Value::Lsn(v) => lsn::format_lsn(*v, out),
        Value::Tid(page, number) => lsn::format_tid(*page, *number, out),
        Value::Time(v) => datetime::format_time(*v, out),
        Value::TimeTz(time, zone) => datetime::format_time_with_zone(*time, *zone, out),
        Value::Interval(v) => datetime::format_interval(*v, datetime::IntervalStyle::Postgres, out),
        Value::Uuid(v) => uuid::format_uuid(v, out),
        Value::Inet(v) => network::format_inet(*v, out),
        Value::Cidr(v) => network::format_with_bits(*v, out),
        Value::MacAddr(v) => mac::format_mac(v, out),
        Value::MacAddr8(v) => mac::format_mac(v, out),
        Value::Bytes(v) => bytes::format_hex(v, out),
        Value::Json(v) => out.push_str(v),
        Value::Jsonb(v) => v.as_ref().write(out),
        Value::Array(v) => encode_array_text(v, encode_text, out),
        Value::Record(v) => v.encode_text(encode_text, out),
        Value::Enum(oid, position) => write_label(*oid, *position, out),
        Value::Date(v) => datetime::format_date(*v, out),
        Value::Timestamp(v) => datetime::format_timestamp(*v, out),
        Value::TimestampTz(v) => datetime::format_timestamptz(*v, out),
        Value::Stored(_) => unreachable!("L3 of `long`: a stored form has no text"),
    }
}

/// The text form as a string of its own; `None` for NULL.
pub fn to_text(value: &Value) -> Option<String> {
    if value.is_null() {
        return None;
    }
    let mut out = String::new();
    encode_text(value, &mut out);
    Some(out)
}

/// Reads the text form of a value of this type (without modifier: see [`crate::value::cast::apply_typmod`]). `now` is
/// what `now` and `today` are counted from: when the transaction began.
pub fn decode_text(text: &str, data_type: DataType, now: i64) -> Result<Value> {
    Ok(match data_type {
        DataType::Int4 => {
            Value::Int4(parse_integer(text, i64::from(i32::MIN), i64::from(i32::MAX), data_type)? as i32)
        }
        DataType::Int8 => Value::Int8(parse_integer(text, i64::MIN, i64::MAX, data_type)?),
        DataType::Int2 => {
            Value::Int2(parse_integer(text, i64::from(i16::MIN), i64::from(i16::MAX), data_type)? as i16)
        }
        DataType::Oid | DataType::Xid | DataType::Cid => {
            Value::Oid(parse_integer(text, i64::from(i32::MIN), i64::from(u32::MAX), data_type)? as u32)
        }
        DataType::Text | DataType::Varchar | DataType::Char | DataType::Unknown => {
            check_text(text)?;
            Value::Text(text.into())
        }
        DataType::Name => {
            check_text(text)?;
            Value::Text(fit_name(text).into())
        }
        DataType::PgLsn => Value::Lsn(lsn::parse_lsn(text)?),
        DataType::Tid => {
            let (page, number) = lsn::parse_tid(text)?;
            Value::Tid(page, number)
        }
        DataType::Void => Value::Text("".into()),
        DataType::Record => {
            return Err(EngineError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "input of anonymous composite types is not implemented",
            ));
        }
        DataType::Regproc
        | DataType::Regprocedure
        | DataType::Regoper
        | DataType::Regoperator
        | DataType::Regclass
        | DataType::Regtype
        | DataType::Regnamespace
        | DataType::Regrole
        | DataType::Regcollation => numbered_object(text, data_type)?,
        DataType::PgNodeTree | DataType::AclItem | DataType::AnyArray => {
            return Err(EngineError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("cannot accept a value of type {data_type}"),
            ));
        }
        DataType::CharByte => {
            check_text(text)?;
            Value::Text(one_byte(text).into())
        }
        DataType::Bool => Value::Bool(parse_bool(text).ok_or_else(|| invalid_syntax(text, data_type))?),
        DataType::Float4 => Value::Float4(parse_float(text)?),
        DataType::Float8 => Value::Float8(parse_float(text)?),
        DataType::Numeric => Value::Numeric(Numeric::parse(text)?),
        DataType::Date => Value::Date(datetime::parse_date(text, now)?),
        DataType::Timestamp => Value::Timestamp(datetime::parse_timestamp(text, false, now)?),
        DataType::TimestampTz => Value::TimestampTz(datetime::parse_timestamp(text, true, now)?),
        DataType::Time => Value::Time(datetime::parse_time(text, now)?),
        DataType::TimeTz => {
            let (time, zone) = datetime::parse_time_with_zone(text, now)?;
            Value::TimeTz(time, zone)
        }
        DataType::Interval => Value::Interval(datetime::parse_interval(
            text,
            NO_TYPMOD,
            datetime::IntervalStyle::Postgres,
        )?),
        DataType::Uuid => Value::Uuid(uuid::parse_uuid(text)?),
        DataType::Inet => Value::Inet(network::parse_inet(text)?),
        DataType::Cidr => Value::Cidr(network::parse_cidr(text)?),
        DataType::MacAddr => Value::MacAddr(mac::parse_mac(text)?),
        DataType::MacAddr8 => Value::MacAddr8(mac::parse_mac8(text)?),
        DataType::Bytea => Value::Bytes(bytes::parse_bytes(text)?),
        DataType::Json => {
            json::check(text)?;
            Value::Json(text.into())
        }
        DataType::JsonPath => {
            check_text(text)?;
            Value::text(json::Path::parse(text)?.text())
        }
        DataType::Jsonb => Value::Jsonb(Jsonb::of(&json::parse(text)?)?),
        DataType::Enum(oid) => Value::Enum(oid, position_of(text, oid)?),
        DataType::Domain(_) => match data_type.base() {
            DataType::Domain(_) => return Err(EngineError::internal("a domain is not in the catalog")),
            base => decode_text(text, base, now)?,
        },
        DataType::Composite(oid) => {
            let read = &mut |text: &str, data_type, typmod| {
                apply_typmod(decode_text(text, data_type, now)?, data_type, typmod, false)
            };
            decode_record_text(text, oid, read)?.into()
        }
        DataType::Array(_) | DataType::Int2Vector | DataType::OidVector => {
            let element_type = data_type.element().unwrap_or(DataType::Unknown);
            decode_array_text(text, data_type, &mut |element| {
                decode_text(element, element_type, now)
            })?
            .into()
        }
    })
}

/// Reads an interval, or an array of them, in a style.
pub fn decode_intervals(
    text: &str,
    data_type: DataType,
    typmod: i32,
    style: datetime::IntervalStyle,
) -> Result<Value> {
    match data_type {
        DataType::Array(_) => {
            let read = &mut |text: &str| datetime::parse_interval(text, typmod, style).map(Value::Interval);
            decode_array_text(text, data_type, read).map(Value::from)
        }
        _ => datetime::parse_interval(text, typmod, style).map(Value::Interval),
    }
}

/// The number of an object in digits. Names need the catalog: what may meet one reads it with a session.
fn numbered_object(text: &str, data_type: DataType) -> Result<Value> {
    if text == "-" {
        return Ok(Value::Oid(0));
    }
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(EngineError::not_supported(format!(
            "a name instead of a number of type {data_type} here"
        )));
    }
    decode_text(text, DataType::Oid, 0)
}

/// The most bytes of a `name`.
const NAME_BYTES_MAX: usize = 63;

/// A text as a `name`: cut after its last character that fits.
pub fn fit_name(text: &str) -> &str {
    &text[..text.floor_char_boundary(NAME_BYTES_MAX)]
}

/// A value of type "char", which is a byte: as it is if it is ASCII, empty for 0, else a backslash and three octal digits.
/// The same spelling is read, and of any other text the first byte.
pub(super) fn one_byte(text: &str) -> String {
    char_byte(byte_of(text))
}

/// The byte of a value of type "char", or of a text that becomes one.
pub(super) fn byte_of(text: &str) -> u8 {
    match *text.as_bytes() {
        // As in PostgreSQL, `\\400` and above lose their ninth bit.
        [b'\\', a @ b'0'..=b'7', b @ b'0'..=b'7', c @ b'0'..=b'7'] => {
            ((a & 7) << 6) | ((b & 7) << 3) | (c & 7)
        }
        [first, ..] => first,
        [] => 0,
    }
}

/// The text of a "char" of this byte.
pub(super) fn char_byte(byte: u8) -> String {
    match byte {
        0 => String::new(),
        1..=127 => char::from(byte).into(),
        128.. => format!("\\{byte:03o}"),
    }
}

/// Refuses what no text may hold.
pub fn check_text(text: &str) -> Result<()> {
    if text.as_bytes().contains(&0) {
        return Err(EngineError::new(
            SqlState::CHARACTER_NOT_IN_REPERTOIRE,
            "invalid byte sequence for encoding \"UTF8\": 0x00",
        ));
    }
    Ok(())
}

#[cold]
fn invalid_syntax(text: &str, data_type: DataType) -> EngineError {
    EngineError::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!(
            "invalid input syntax for type {data_type}: \"{text}\"",
            text = shown(text)
        ),
    )
}

fn push_integer(value: i64, out: &mut String) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push('-');
    }
    out.push_str(std::str::from_utf8(&digits[at..]).expect("digits are ASCII"));
}

/// The floating-point types: what their text forms differ in.
pub(crate) trait Float: Copy + fmt::Display + fmt::LowerExp + FromStr + Into<f64> {
    /// Its SQL type.
    const DATA_TYPE: DataType;
    /// The decimal digits that every value keeps; a number with more before the point is written with an exponent.
    const DIGITS: i32;
    /// The bits of the mantissa, the hidden one included.
    const MANTISSA_BITS: i32;
}

impl Float for f32 {
    const DATA_TYPE: DataType = DataType::Float4;
    const DIGITS: i32 = f32::DIGITS as i32;
    const MANTISSA_BITS: i32 = f32::MANTISSA_DIGITS as i32;
}

impl Float for f64 {
    const DATA_TYPE: DataType = DataType::Float8;
    const DIGITS: i32 = f64::DIGITS as i32;
    const MANTISSA_BITS: i32 = f64::MANTISSA_DIGITS as i32;
}

/// The `extra_float_digits` from which on floats are written with the fewest digits that read back.
pub const SHORTEST: i32 = 1;

thread_local! {
    /// `extra_float_digits` of the session whose statement this thread runs.
    static EXTRA_FLOAT_DIGITS: Cell<i32> = const { Cell::new(SHORTEST) };
}

/// While it lives, floats that this thread writes have other digits than the fewest that read back.
#[derive(Debug)]
pub struct FloatDigits(());

impl FloatDigits {
    /// As many digits as every value keeps, and `extra` more; `None` if that is the usual form.
    #[inline]
    pub fn rounded(extra: i32) -> Option<FloatDigits> {
        (extra < SHORTEST).then(|| {
            EXTRA_FLOAT_DIGITS.set(extra);
            FloatDigits(())
        })
    }
}

impl Drop for FloatDigits {
    fn drop(&mut self) {
        EXTRA_FLOAT_DIGITS.set(SHORTEST);
    }
}

/// Digits as C's `%g` writes them, so many at most: plain if the exponent is at least −4 and less than their number.
fn push_rounded(value: f64, digits: i32, out: &mut String) {
    let scientific = format!("{value:.*e}", digits as usize - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let without_zeros = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..digits).contains(&exponent) {
        let behind_point = (digits - 1 - exponent) as usize;
        return out.push_str(&without_zeros(&format!("{value:.behind_point$}")));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    let _ = write!(out, "{}e{sign}{:02}", without_zeros(mantissa), exponent.abs());
}

/// The shortest digits that read back as the same number, written as PostgreSQL writes them: plain between 1e-4 and
/// 1e15 (`real`: 1e6), else with an exponent of at least two digits.
fn push_float<F: Float>(value: F, out: &mut String) {
    let wide: f64 = value.into();
    if wide.is_nan() {
        return out.push_str("NaN");
    }
    if wide.is_infinite() {
        return out.push_str(if wide > 0.0 { "Infinity" } else { "-Infinity" });
    }
    let extra = EXTRA_FLOAT_DIGITS.get();
    if extra < SHORTEST {
        return push_rounded(wide, (F::DIGITS + extra).max(1), out);
    }
    let mut scientific = format!("{value:e}");
    // PostgreSQL wants digits that lie nearer to this number than to its neighbours; those of the library may lie
    // halfway when that is read as this number. Only large whole numbers have so few digits halfway.
    while is_halfway::<F>(wide.abs(), scientific.trim_start_matches('-')) {
        let more = scientific.bytes().filter(u8::is_ascii_digit).count() - exponent_of(&scientific).len();
        scientific = format!("{value:.more$e}");
    }
    let (digits, exponent) = scientific.split_once('e').expect("LowerExp writes an exponent");
    let exponent: i32 = exponent.parse().expect("LowerExp writes a number");
    if (-4..F::DIGITS).contains(&exponent) {
        let _ = write!(out, "{value}");
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "{digits}e{sign}{:02}", exponent.abs());
    }
}

fn exponent_of(scientific: &str) -> &str {
    scientific.split_once('e').map_or("", |(_, exponent)| exponent)
}

/// True if these digits (`1.25e7`), which read as `value`, lie halfway between it and a neighbour.
fn is_halfway<F: Float>(value: f64, scientific: &str) -> bool {
    if value < 2f64.powi(F::MANTISSA_BITS) {
        return false;
    }
    // All numbers below are whole: the neighbours of so large a float are at least 2 away.
    let bits = value.to_bits();
    let (fraction, exponent) = (bits & ((1 << 52) - 1), (bits >> 52) as i32 - 1_023);
    let whole = IBig::from(fraction | 1 << 52);
    // Four times everything, so that a quarter of the distance to a neighbour is whole as well.
    let value = if exponent >= 50 {
        whole << (exponent - 50) as usize
    } else {
        whole >> (50 - exponent) as usize
    };
    let distance = IBig::from(1) << (exponent - F::MANTISSA_BITS + 3) as usize;
    let (digits, power) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let (before, after) = digits.split_once('.').unwrap_or((digits, ""));
    let power = power.parse::<usize>().unwrap_or(0).saturating_sub(after.len());
    let Ok(mantissa) = format!("{before}{after}").parse::<u64>() else {
        return false;
    };
    let written = IBig::from(mantissa) * IBig::from(10).pow(power) * IBig::from(4);
    let (above, off) = (written > value, (&written - &value) * IBig::from(2));
    // Below a power of two the neighbours are half as far.
    let near = if fraction == 0 && !above {
        &distance >> 1
    } else {
        distance
    };
    off == near || off == -near
}

fn parse_integer(text: &str, min: i64, max: i64, data_type: DataType) -> Result<i64> {
    let trimmed = text.trim_matches(super::is_space);
    let (negative, digits) = match trimmed.as_bytes() {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(invalid_syntax(text, data_type));
    }
    let mut value = 0i64;
    for digit in digits {
        let digit = i64::from(digit - b'0');
        let next = value.checked_mul(10).and_then(|v| {
            if negative {
                v.checked_sub(digit)
            } else {
                v.checked_add(digit)
            }
        });
        value = next.ok_or_else(|| out_of_range(text, data_type))?;
    }
    if value < min || value > max {
        return Err(out_of_range(text, data_type));
    }
    Ok(value)
}

#[cold]
fn out_of_range(text: &str, data_type: DataType) -> EngineError {
    EngineError::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        format!(
            "value \"{text}\" is out of range for type {data_type}",
            text = shown(text)
        ),
    )
}

fn parse_bool(text: &str) -> Option<bool> {
    let word = text.trim().to_ascii_lowercase();
    let is_prefix = |of: &str, least: usize| word.len() >= least && of.starts_with(&word);
    if word == "1" || is_prefix("true", 1) || is_prefix("yes", 1) || word == "on" {
        Some(true)
    } else if word == "0" || is_prefix("false", 1) || is_prefix("no", 1) || is_prefix("off", 2) {
        Some(false)
    } else {
        None
    }
}

/// The float of this text, rounded once; 22003 for what would become infinite or zero.
pub(crate) fn parse_float<F: Float>(text: &str) -> Result<F> {
    let trimmed = text.trim();
    let value: F = trimmed.parse().map_err(|_| invalid_syntax(text, F::DATA_TYPE))?;
    let wide: f64 = value.into();
    let mantissa = trimmed.split(['e', 'E']).next().unwrap_or("");
    let has_digits = mantissa.bytes().any(|byte| byte.is_ascii_digit());
    let vanished = wide == 0.0 && mantissa.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    if (wide.is_infinite() && has_digits) || vanished {
        return Err(EngineError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            format!(
                "\"{text}\" is out of range for type {}",
                F::DATA_TYPE,
                text = shown(text)
            ),
        ));
    }
    Ok(value)
}

/// Steps of a match between two looks whether to stop.
const STEPS_PER_CHECK: u32 = 1 << 16;

/// True if `text` matches a LIKE pattern: `%` any run, `_` any one character, `escape` takes the next literally.
///
/// A match may take as many steps as the product of both lengths, so `go_on` is asked now and then; its error ends the
/// match.
pub fn like(
    mut text: &str,
    mut pattern: &str,
    escape: Option<char>,
    mut go_on: impl FnMut() -> Result<()>,
) -> Result<bool> {
    check_escapes(pattern, escape)?;
    // On a mismatch, only the last % can help: let it take one character more.
    let mut retry: Option<(&str, &str)> = None;
    let mut steps = 0;
    while let Some(character) = text.chars().next() {
        steps += 1;
        if steps % STEPS_PER_CHECK == 0 {
            go_on()?;
        }
        let mut items = pattern.chars();
        let matches = match items.next() {
            Some(item) if Some(item) == escape => items.next() == Some(character),
            Some('%') => {
                pattern = items.as_str();
                if pattern.is_empty() {
                    return Ok(true);
                }
                retry = Some((text, pattern));
                continue;
            }
            Some('_') => true,
            Some(item) => item == character,
            None => false,
        };
        if matches {
            text = &text[character.len_utf8()..];
            pattern = items.as_str();
            continue;
        }
        let Some((from, after)) = retry else {
            return Ok(false);
        };
        let mut shorter = from.chars();
        shorter.next();
        (text, pattern) = (shorter.as_str(), after);
        retry = Some((text, pattern));
    }
    let takes_nothing = escape != Some('%') && pattern.chars().all(|item| item == '%');
    Ok(takes_nothing || pattern.is_empty())
}

/// 22025 for a pattern that ends with its escape character.
fn check_escapes(pattern: &str, escape: Option<char>) -> Result<()> {
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        if Some(character) == escape && characters.next().is_none() {
            return Err(EngineError::new(
                SqlState::INVALID_ESCAPE_SEQUENCE,
                "LIKE pattern must not end with escape character",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::modifier::fit_length;

    fn round_trip(text: &str, data_type: DataType) -> String {
        to_text(&decode_text(text, data_type, 0).unwrap()).unwrap()
    }

    #[test]
    fn floats_are_written_as_postgresql_does() {
        for (input, expected) in [
            ("1", "1"),
            ("0.1", "0.1"),
            ("1e15", "1e+15"),
            ("1e14", "100000000000000"),
            ("123456789012345678", "1.2345678901234568e+17"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("-0", "-0"),
            ("nan", "NaN"),
            ("-infinity", "-Infinity"),
            ("1e-320", "1e-320"),
            // Halfway to a neighbour, which PostgreSQL does not take for the number.
            ("1e23", "9.999999999999999e+22"),
            ("1e22", "1e+22"),
            ("1e300", "1e+300"),
        ] {
            assert_eq!(round_trip(input, DataType::Float8), expected);
        }
        for (input, expected) in [
            ("0.1", "0.1"),
            ("123456", "123456"),
            ("1234567", "1.234567e+06"),
            ("0.00001", "1e-05"),
            ("16777217", "1.6777216e+07"),
            ("115817776", "1.15817776e+08"),
            ("-50331648", "-5.0331648e+07"),
            ("3.4028235e38", "3.4028235e+38"),
            ("1e-45", "1e-45"),
            ("infinity", "Infinity"),
        ] {
            assert_eq!(round_trip(input, DataType::Float4), expected);
        }
        for beyond in ["1e39", "1e-46"] {
            let error = decode_text(beyond, DataType::Float4, 0).unwrap_err();
            assert_eq!(error.sqlstate(), SqlState::NUMERIC_VALUE_OUT_OF_RANGE);
        }
        assert_eq!(
            decode_text("1e400", DataType::Float8, 0).unwrap_err().sqlstate(),
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE
        );
    }

    #[test]
    fn floats_may_have_fewer_digits() {
        let digits = FloatDigits::rounded(0);
        let written = |value: f64| to_text(&Value::Float8(value)).unwrap();
        assert_eq!(written(1.0 / 3.0), "0.333333333333333");
        assert_eq!(written(1e15), "1e+15");
        assert_eq!(written(100_000.0), "100000");
        assert_eq!(written(0.000_01), "1e-05");
        assert_eq!(written(999_999_999_999_999.9), "1e+15");
        assert_eq!(to_text(&Value::Float4(123_456.79)).unwrap(), "123457");
        drop(digits);
        assert_eq!(written(1.0 / 3.0), "0.3333333333333333");
        assert!(FloatDigits::rounded(3).is_none());
        let _digits = FloatDigits::rounded(-15);
        assert_eq!(written(12_345.0), "1e+04");
        assert_eq!(written(-0.5), "-0.5");
    }

    #[test]
    fn numbers_out_of_range_are_told_from_nonsense() {
        let code = |text, data_type| decode_text(text, data_type, 0).unwrap_err().sqlstate();
        assert_eq!(
            code("2147483648", DataType::Int4),
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE
        );
        assert_eq!(
            code("99999999999999999999", DataType::Int8),
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE
        );
        assert_eq!(code("1.5", DataType::Int4), SqlState::INVALID_TEXT_REPRESENTATION);
        assert_eq!(code("", DataType::Int4), SqlState::INVALID_TEXT_REPRESENTATION);
        assert_eq!(
            code("1_000", DataType::Numeric),
            SqlState::INVALID_TEXT_REPRESENTATION
        );
        assert_eq!(round_trip(" -42 ", DataType::Int2), "-42");
        assert_eq!(
            round_trip("-9223372036854775808", DataType::Int8),
            "-9223372036854775808"
        );
    }

    #[test]
    fn numerics_keep_their_digits() {
        for text in ["0", "1.50", "-0.001", "12345678901234567890.12345678", "100"] {
            assert_eq!(round_trip(text, DataType::Numeric), text);
        }
        assert_eq!(round_trip("1.5e3", DataType::Numeric), "1500");
        assert_eq!(round_trip("15e-3", DataType::Numeric), "0.015");
        assert_eq!(round_trip(".5", DataType::Numeric), "0.5");
    }

    #[test]
    fn truth_values_may_be_shortened() {
        for text in ["t", "tr", "true", "YES", "y", "on", "1"] {
            assert_eq!(round_trip(text, DataType::Bool), "t");
        }
        for text in ["f", "fal", "no", "n", "of", "off", "0"] {
            assert_eq!(round_trip(text, DataType::Bool), "f");
        }
        assert!(decode_text("o", DataType::Bool, 0).is_err());
        assert!(decode_text("", DataType::Bool, 0).is_err());
    }

    #[test]
    fn lengths_are_counted_in_characters() {
        let fit = |text: &str, data_type, length: i32, explicit| {
            fit_length(text.into(), data_type, length + 4, explicit).map(String::from)
        };
        assert_eq!(fit("ab", DataType::Char, 4, false).unwrap(), "ab  ");
        assert_eq!(fit("äöü", DataType::Varchar, 3, false).unwrap(), "äöü");
        assert_eq!(fit("ab   ", DataType::Varchar, 3, false).unwrap(), "ab ");
        assert_eq!(fit("abcd", DataType::Varchar, 3, true).unwrap(), "abc");
        assert_eq!(
            fit("abcd", DataType::Varchar, 3, false).unwrap_err().sqlstate(),
            SqlState::STRING_DATA_RIGHT_TRUNCATION
        );
    }

    #[test]
    fn like_patterns() {
        for (text, pattern, expected) in [
            ("abc", "abc", true),
            ("abc", "a%", true),
            ("abc", "%c", true),
            ("abc", "_b_", true),
            ("abc", "_", false),
            ("aXbXc", "a%b%c", true),
            ("mississippi", "%iss%ppi", true),
            ("", "%", true),
            ("", "_", false),
            ("50%", "50\\%", true),
            ("50x", "50\\%", false),
        ] {
            assert_eq!(
                like(text, pattern, Some('\\'), || Ok(())).unwrap(),
                expected,
                "{text} like {pattern}"
            );
        }
        assert!(like("a", "a\\", Some('\\'), || Ok(())).is_err());
        assert!(like("a%", "a%%", Some('%'), || Ok(())).unwrap());
        assert!(!like("a", "a%%", Some('%'), || Ok(())).unwrap());
    }
}
