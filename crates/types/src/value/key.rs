//! Index keys: bytes whose order is the values' order.
//!
//! A B+tree compares keys with memcmp and knows nothing of types. So each column of a key is written such that
//! unsigned bytes order as values do, and such that no column's bytes are a prefix of another value's of the same
//! column (else the next column would be compared with the rest of this one):
//!
//! | value | bytes |
//! |---|---|
//! | not NULL | `01`, then the value |
//! | NULL | `02`: after all values |
//! | integers, date, timestamps | big-endian, sign bit flipped |
//! | float4, float8 | IEEE bits; sign bit flipped if positive, all bits if negative; −0 as 0, one NaN above infinity |
//! | enumerations | the label's position, as an integer |
//! | oid and its kin, pg_lsn, tid, uuid | big-endian |
//! | macaddr, macaddr8 | as they are |
//! | inet, cidr | bits of an address of the family, network, bits of the prefix, address |
//! | interval | its length where a month has 30 days, as an integer of 16 bytes |
//! | time; timetz | as integers; the time in Greenwich, then the zone |
//! | bytea | the bytes, `00` as `00 ff`, then `00 00` |
//! | bool | `00` or `01` |
//! | strings | UTF-8, then `00` (no string holds that byte); `char(n)` without its blanks |
//! | records | the fields, each as a column, `00` |
//! | arrays | the elements, each as a column, `00`, then the dimensions (`array`) |
//! | jsonb | see `json::order` |
//! | json | its text, then `00`: no operator orders it |
//! | numeric | a byte for the kind (below), then for a positive number weight, digits, `00`; for a negative one those bytes inverted |
//!
//! The kinds of a numeric are, in order, −∞ `00`, negative `01`, zero `02`, positive `03`, ∞ `04`, NaN `05`. The weight
//! is that of the first group of four digits, in two bytes; then each group is two base-100 digits, each digit + 1 in a
//! byte, without the zeros at the end. So any number of digits orders, and equal values of different scale (1.5, 1.50)
//! give one key.

use sha2::{Digest as _, Sha256};

use crate::value::compare::trim_blanks;
use crate::value::datetime::time_in_greenwich;
use crate::value::{DataType, Numeric, Value};

const PRESENT: u8 = 0x01;
const NULL: u8 = 0x02;
/// In front of a digest, in keys without an order.
const DIGEST: u8 = 0x03;

/// The most bytes of a value that stand in a key without an order: longer ones have their digest there.
const IDENTITY_BYTES_MAX: usize = 4_096;

/// A buffer to reuse from key to key.
pub type KeyBuffer = Vec<u8>;

/// The key of several columns.
pub fn encode_key(values: &[Value], types: &[DataType]) -> Vec<u8> {
    let mut key = Vec::with_capacity(values.len() * 9);
    for (value, data_type) in values.iter().zip(types) {
        encode_value(value, *data_type, &mut key);
    }
    key
}

/// Appends one column of a key.
#[inline]
pub fn encode_value(value: &Value, data_type: DataType, key: &mut Vec<u8>) {
    if value.is_null() {
        return key.push(NULL);
    }
    key.push(PRESENT);
    match value {
        Value::Null => {}
        Value::Stored(_) => unreachable!("L3 of `long`: a stored form is no key"),
        Value::Int2(v) => key.extend_from_slice(&((*v as u16) ^ (1 << 15)).to_be_bytes()),
        Value::Int4(v) | Value::Date(v) => key.extend_from_slice(&((*v as u32) ^ (1 << 31)).to_be_bytes()),
        Value::Int8(v) | Value::Timestamp(v) | Value::TimestampTz(v) => {
            key.extend_from_slice(&((*v as u64) ^ (1 << 63)).to_be_bytes());
        }
        Value::Oid(v) => key.extend_from_slice(&v.to_be_bytes()),
        Value::Lsn(v) => key.extend_from_slice(&v.to_be_bytes()),
        Value::Tid(page, number) => {
            key.extend_from_slice(&page.to_be_bytes());
            key.extend_from_slice(&number.to_be_bytes());
        }
        Value::Time(v) => key.extend_from_slice(&v.to_be_bytes()),
        Value::TimeTz(time, zone) => {
            let greenwich = time_in_greenwich(*time, *zone);
            key.extend_from_slice(&((greenwich as u64) ^ (1 << 63)).to_be_bytes());
            key.extend_from_slice(&((*zone as u32) ^ (1 << 31)).to_be_bytes());
        }
        Value::Interval(v) => key.extend_from_slice(&((v.span() as u128) ^ (1 << 127)).to_be_bytes()),
        Value::Uuid(v) => key.extend_from_slice(v),
        Value::Inet(v) | Value::Cidr(v) => v.push_key(key),
        Value::MacAddr(v) => key.extend_from_slice(v),
        Value::MacAddr8(v) => key.extend_from_slice(v),
        Value::Bytes(v) => encode_bytes(v, key),
        Value::Bool(v) => key.push(u8::from(*v)),
        Value::Float4(v) => key.extend_from_slice(&narrow_float_bits(*v).to_be_bytes()),
        Value::Float8(v) => key.extend_from_slice(&float_bits(*v).to_be_bytes()),
        Value::Text(v) => {
            let text: &str = if data_type == DataType::Char {
                trim_blanks(v)
            } else {
                v
            };
            key.extend_from_slice(text.as_bytes());
            key.push(0);
        }
        Value::Numeric(v) => encode_numeric(v, key),
        Value::Array(v) => v.encode_key(encode_value, key),
        Value::Jsonb(v) => v.as_ref().encode_key(encode_numeric, key),
        Value::Json(v) => {
            key.extend_from_slice(v.as_bytes());
            key.push(0);
        }
        Value::Record(v) => v.encode_key(encode_value, key),
        Value::Enum(_, position) => {
            key.extend_from_slice(&((*position as u64) ^ (1 << 63)).to_be_bytes());
        }
    }
}

/// The key of several columns that only tells equal values from others: see [`encode_identity`].
pub fn encode_identities(values: &[Value], types: &[DataType]) -> Vec<u8> {
    let mut key = Vec::with_capacity(values.len() * 9);
    for (value, data_type) in values.iter().zip(types) {
        encode_identity(value, *data_type, &mut key);
    }
    key
}

/// Appends one column of a key that only tells equal values from others: the bytes of [`encode_value`], or if they are
/// many, `03` and their SHA-256. Such keys have no order, and at most a few kilobytes a column.
///
/// Two values with one digest would count as equal; none are known. A string and a `bytea` are digested where they lie; the
/// bytes of every other value are made first.
#[inline]
pub fn encode_identity(value: &Value, data_type: DataType, key: &mut Vec<u8>) {
    match value {
        Value::Text(text) if text.len() > IDENTITY_BYTES_MAX => push_identity_of_text(text, data_type, key),
        Value::Bytes(bytes) if bytes.len() > IDENTITY_BYTES_MAX => push_digest(bytes, key),
        Value::Json(_) | Value::Jsonb(_) | Value::Array(_) | Value::Record(_) | Value::Numeric(_) => {
            encode_identity_of_parts(value, data_type, key);
        }
        other => encode_value(other, data_type, key),
    }
}

#[cold]
fn push_identity_of_text(text: &str, data_type: DataType, key: &mut Vec<u8>) {
    let counted = match data_type {
        DataType::Char => trim_blanks(text),
        _ => text,
    };
    match counted.len() > IDENTITY_BYTES_MAX {
        true => push_digest(counted.as_bytes(), key),
        false => {
            key.push(PRESENT);
            key.extend_from_slice(counted.as_bytes());
            key.push(0);
        }
    }
}

fn push_digest(bytes: &[u8], key: &mut Vec<u8>) {
    key.push(DIGEST);
    key.extend_from_slice(&Sha256::digest(bytes));
}

/// [`encode_identity`] of a value with parts. Equal ones may differ in length, so it is their keys that are measured.
fn encode_identity_of_parts(value: &Value, data_type: DataType, key: &mut Vec<u8>) {
    let start = key.len();
    encode_value(value, data_type, key);
    if key.len() - start > IDENTITY_BYTES_MAX {
        let digest = Sha256::digest(&key[start..]);
        key.truncate(start);
        key.push(DIGEST);
        key.extend_from_slice(&digest);
        // Its next use is hardly as long.
        key.shrink_to(IDENTITY_BYTES_MAX);
    }
}

fn encode_bytes(bytes: &[u8], key: &mut Vec<u8>) {
    for byte in bytes {
        key.push(*byte);
        if *byte == 0 {
            key.push(0xff);
        }
    }
    key.extend_from_slice(&[0, 0]);
}

/// The least byte string above all that begin with `prefix`; `None` if there is none.
pub fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut next = prefix[..=last].to_vec();
    next[last] += 1;
    Some(next)
}

fn float_bits(value: f64) -> u64 {
    let value = if value == 0.0 { 0.0 } else { value };
    let bits = if value.is_nan() {
        0x7fff_ffff_ffff_ffff
    } else {
        value.to_bits()
    };
    if bits >> 63 == 0 { bits ^ (1 << 63) } else { !bits }
}

fn narrow_float_bits(value: f32) -> u32 {
    let value = if value == 0.0 { 0.0 } else { value };
    let bits = if value.is_nan() {
        0x7fff_ffff
    } else {
        value.to_bits()
    };
    if bits >> 31 == 0 { bits ^ (1 << 31) } else { !bits }
}

/// Added to a weight so that none is negative: the least is −4,096, the greatest 32,767.
const WEIGHT_BIAS: i32 = 1 << 13;

fn encode_numeric(value: &Numeric, key: &mut Vec<u8>) {
    let negative = value.signum() < 0;
    if value.is_nan() || value.is_infinite() {
        return key.push(match value.signum() {
            0 => 0x05,
            1 => 0x04,
            _ => 0x00,
        });
    }
    let groups = value.groups();
    if groups.digits.is_empty() {
        return key.push(0x02);
    }
    key.push(if negative { 0x01 } else { 0x03 });
    let flip = if negative { 0xff } else { 0x00 };
    let weight = (groups.weight + WEIGHT_BIAS) as u16;
    key.extend(weight.to_be_bytes().map(|byte| byte ^ flip));
    let digits = groups.digits.iter().flat_map(|group| [group / 100, group % 100]);
    key.extend(digits.map(|digit| (digit as u8 + 1) ^ flip));
    // The second half of the last group may be zero; no other digit at the end is.
    if key.last() == Some(&(0x01 ^ flip)) {
        key.pop();
    }
    key.push(flip);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(value: Value, data_type: DataType) -> Vec<u8> {
        encode_key(&[value], &[data_type])
    }

    #[test]
    fn identities_of_long_values_are_short_and_those_of_equal_values_equal() {
        let identity = |value: Value, data_type| encode_identities(&[value], &[data_type]);
        let text = |text: &str| identity(Value::text(text), DataType::Text);
        for length in [1, IDENTITY_BYTES_MAX, IDENTITY_BYTES_MAX + 1, 1 << 20] {
            let long = "a".repeat(length);
            assert_eq!(text(&long), text(&long));
            assert!(text(&long).len() <= IDENTITY_BYTES_MAX + 2);
            assert_ne!(text(&long), text(&long.replacen('a', "b", 1)));
            assert_ne!(text(&long), text(&format!("{long}a")));
            // Behind another column too.
            let two = |last: &str| {
                let values = [Value::text(long.as_str()), Value::text(last)];
                encode_identities(&values, &[DataType::Text; 2])
            };
            assert_ne!(two("c"), two("d"));
            // Blanks at the end do not count in `char`, however many they are.
            let padded = |blanks: usize| {
                let padded = format!("{long}{}", " ".repeat(blanks));
                identity(Value::text(padded), DataType::Char)
            };
            assert_eq!(padded(0), padded(1));
            assert_eq!(padded(0), padded(5_000));
        }
        let json = |text: &str| {
            identity(
                crate::value::decode_text(text, DataType::Jsonb, 0).unwrap(),
                DataType::Jsonb,
            )
        };
        // Equal numbers of different lengths: one value is longer than the bound, the other is not.
        let (short, long) = ("1", format!("1.{}", "0".repeat(5_000)));
        assert_eq!(json(short), json(&long));
        let objects = |number: &str| json(&format!("{{\"a\": \"{}\", \"b\": {number}}}", "x".repeat(8_000)));
        assert_eq!(objects(short), objects(&long));
        assert_ne!(objects("1"), objects("2"));
        assert!(objects("1").len() < 64);
        let bytes = |byte: u8| identity(Value::Bytes(vec![byte; 5_000].into()), DataType::Bytea);
        assert_eq!(bytes(0), bytes(0));
        assert_ne!(bytes(0), bytes(1));
    }

    #[test]
    fn numerics_of_different_scale_share_a_key() {
        let numeric = |text: &str| key(Value::Numeric(text.parse().unwrap()), DataType::Numeric);
        assert_eq!(numeric("1.5"), numeric("1.500"));
        assert_eq!(numeric("0"), numeric("-0.00"));
        let ordered = [
            "-1000", "-100.5", "-100", "-1", "-0.5", "-0.01", "0", "0.001", "0.01", "0.5", "1", "99", "100",
            "100.01", "1000",
        ];
        for pair in ordered.windows(2) {
            assert!(numeric(pair[0]) < numeric(pair[1]), "{} < {}", pair[0], pair[1]);
        }
    }

    #[test]
    fn floats_order_with_nan_last() {
        let float = |v| key(Value::Float8(v), DataType::Float8);
        let ordered = [
            f64::NEG_INFINITY,
            -1e300,
            -1.0,
            -1e-300,
            0.0,
            1e-300,
            1.0,
            1e300,
            f64::INFINITY,
            f64::NAN,
        ];
        for pair in ordered.windows(2) {
            assert!(float(pair[0]) < float(pair[1]), "{} < {}", pair[0], pair[1]);
        }
        assert_eq!(float(0.0), float(-0.0));
    }

    #[test]
    fn a_shorter_string_does_not_borrow_from_the_next_column() {
        let two = |a: &str, b: &str| encode_key(&[a.into(), b.into()], &[DataType::Text, DataType::Text]);
        assert!(two("a", "z") < two("ab", "a"));
        assert_eq!(
            key("ab  ".into(), DataType::Char),
            key("ab".into(), DataType::Char)
        );
        assert!(key(Value::Null, DataType::Text) > key("\u{10ffff}".into(), DataType::Text));
    }

    #[test]
    fn successors() {
        assert_eq!(successor(&[1, 2]), Some(vec![1, 3]));
        assert_eq!(successor(&[1, 0xff]), Some(vec![2]));
        assert_eq!(successor(&[0xff]), None);
    }
}
