//! PostgreSQL's binary form of values: big-endian, as `*send` and `*recv` have it.
//!
//! | type | bytes |
//! |---|---|
//! | bool | 1: 0 or 1 |
//! | int2, int4, int8, oid | 2, 4, 8, 4 |
//! | float4, float8 | 4, 8, IEEE 754 |
//! | date | 4: days since 2000-01-01 |
//! | timestamp, timestamptz | 8: microseconds since 2000-01-01 |
//! | xid, cid, regclass and its kin | 4, as oid |
//! | pg_lsn; tid | 8; 4 for the page, 2 for the number in it |
//! | time; timetz | 8: microseconds; and 4: seconds west of Greenwich |
//! | interval | 8: microseconds, 4: days, 4: months |
//! | uuid | 16 |
//! | inet, cidr | see `network::binary` |
//! | macaddr, macaddr8 | 6, 8 |
//! | bytea | as it is |
//! | json; jsonb | the text; `01` and the text |
//! | strings, void | UTF-8 |
//! | arrays, records | see `array::binary`, `record` |
//! | enumerations | the label |
//! | domains | as their base types |
//! | numeric | digit count, weight, sign, scale (2 each), then digits in base 10,000 (2 each) |

use crate::error::{EngineError, Result, SqlState};
use crate::value::array::{decode_array_binary, encode_array_binary};
use crate::value::datetime::MICROS_PER_DAY;
use crate::value::network::binary::{decode_inet, encode_inet};
use crate::value::numeric::Groups;
use crate::value::record::RecordValue;
use crate::value::text::{check_text, decode_text};
use crate::value::user_type::write_label;
use crate::value::{DataType, Interval, Numeric, Value};

const NUMERIC_POSITIVE: u16 = 0x0000;
const NUMERIC_NEGATIVE: u16 = 0x4000;
const NUMERIC_NAN: u16 = 0xc000;
const NUMERIC_INFINITY: u16 = 0xd000;
const NUMERIC_NEGATIVE_INFINITY: u16 = 0xf000;
/// The scale that PostgreSQL sends for an infinity; it means nothing.
const NUMERIC_INFINITY_SCALE: u16 = 0x20;

/// The first byte of a `jsonb`.
pub(super) const JSONB_VERSION: u8 = 1;

/// Appends the binary form of a value that is not NULL.
pub fn encode_binary(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => debug_assert!(false, "NULL has no binary form"),
        Value::Stored(_) => unreachable!("L3 of `long`: a stored form has no binary form"),
        Value::Bool(v) => out.push(u8::from(*v)),
        Value::Int2(v) => out.extend_from_slice(&v.to_be_bytes()),
        Value::Int4(v) | Value::Date(v) => out.extend_from_slice(&v.to_be_bytes()),
        Value::Int8(v) | Value::Timestamp(v) | Value::TimestampTz(v) | Value::Time(v) => {
            out.extend_from_slice(&v.to_be_bytes())
        }
        Value::Oid(v) => out.extend_from_slice(&v.to_be_bytes()),
        Value::Lsn(v) => out.extend_from_slice(&v.to_be_bytes()),
        Value::Tid(page, number) => {
            out.extend_from_slice(&page.to_be_bytes());
            out.extend_from_slice(&number.to_be_bytes());
        }
        Value::TimeTz(time, zone) => {
            out.extend_from_slice(&time.to_be_bytes());
            out.extend_from_slice(&zone.to_be_bytes());
        }
        Value::Interval(v) => {
            out.extend_from_slice(&v.micros.to_be_bytes());
            out.extend_from_slice(&v.days.to_be_bytes());
            out.extend_from_slice(&v.months.to_be_bytes());
        }
        Value::Uuid(v) => out.extend_from_slice(v),
        Value::Inet(v) => encode_inet(*v, false, out),
        Value::Cidr(v) => encode_inet(*v, true, out),
        Value::MacAddr(v) => out.extend_from_slice(v),
        Value::MacAddr8(v) => out.extend_from_slice(v),
        Value::Bytes(v) => out.extend_from_slice(v),
        Value::Json(v) => out.extend_from_slice(v.as_bytes()),
        Value::Jsonb(v) => {
            let mut text = String::new();
            v.as_ref().write(&mut text);
            out.push(JSONB_VERSION);
            out.extend_from_slice(text.as_bytes());
        }
        Value::Float4(v) => out.extend_from_slice(&v.to_be_bytes()),
        Value::Float8(v) => out.extend_from_slice(&v.to_be_bytes()),
        Value::Text(v) => out.extend_from_slice(v.as_bytes()),
        Value::Numeric(v) => encode_numeric(v, out),
        Value::Array(v) => encode_array_binary(v, encode_binary, out),
        Value::Record(v) => v.encode_binary(encode_binary, out),
        Value::Enum(oid, position) => {
            let mut label = String::new();
            write_label(*oid, *position, &mut label);
            out.extend_from_slice(label.as_bytes());
        }
    }
}

/// Reads the binary form of a value of this type.
pub fn decode_binary(bytes: &[u8], data_type: DataType) -> Result<Value> {
    Ok(match data_type {
        DataType::Bool => match bytes {
            [byte] => Value::Bool(*byte != 0),
            _ => return Err(wrong_length(data_type)),
        },
        DataType::Int2 => Value::Int2(i16::from_be_bytes(fixed(bytes, data_type)?)),
        DataType::Int4 => Value::Int4(i32::from_be_bytes(fixed(bytes, data_type)?)),
        DataType::Int8 => Value::Int8(i64::from_be_bytes(fixed(bytes, data_type)?)),
        DataType::Oid
        | DataType::Xid
        | DataType::Cid
        | DataType::Regproc
        | DataType::Regprocedure
        | DataType::Regoper
        | DataType::Regoperator
        | DataType::Regclass
        | DataType::Regtype
        | DataType::Regnamespace
        | DataType::Regrole
        | DataType::Regcollation => Value::Oid(u32::from_be_bytes(fixed(bytes, data_type)?)),
        DataType::PgLsn => Value::Lsn(u64::from_be_bytes(fixed(bytes, data_type)?)),
        DataType::Tid => {
            let bytes: [u8; 6] = fixed(bytes, data_type)?;
            let [a, b, c, d, e, f] = bytes;
            Value::Tid(u32::from_be_bytes([a, b, c, d]), u16::from_be_bytes([e, f]))
        }
        DataType::Float4 => Value::Float4(f32::from_be_bytes(fixed(bytes, data_type)?)),
        DataType::Float8 => Value::Float8(f64::from_be_bytes(fixed(bytes, data_type)?)),
        DataType::Date => {
            let days = i32::from_be_bytes(fixed(bytes, data_type)?);
            if days != i32::MAX && days != i32::MIN && !crate::value::datetime::is_valid_date(days) {
                return Err(EngineError::new(
                    SqlState::DATETIME_FIELD_OVERFLOW,
                    "date out of range",
                ));
            }
            Value::Date(days)
        }
        DataType::Timestamp => Value::Timestamp(timestamp(bytes, data_type)?),
        DataType::TimestampTz => Value::TimestampTz(timestamp(bytes, data_type)?),
        DataType::Time => Value::Time(time(i64::from_be_bytes(fixed(bytes, data_type)?))?),
        DataType::TimeTz => {
            let (micros, zone) = bytes
                .split_first_chunk::<8>()
                .ok_or_else(|| wrong_length(data_type))?;
            let zone = i32::from_be_bytes(fixed(zone, data_type)?);
            if !(-ZONE_SECONDS_MAX..ZONE_SECONDS_MAX).contains(&zone) {
                return Err(EngineError::new(
                    SqlState::INVALID_TIME_ZONE_DISPLACEMENT,
                    "time zone displacement out of range",
                ));
            }
            Value::TimeTz(time(i64::from_be_bytes(*micros))?, zone)
        }
        DataType::Interval => {
            let number = u128::from_be_bytes(fixed(bytes, data_type)?);
            Value::Interval(Interval {
                micros: (number >> 64) as i64,
                days: (number >> 32) as i32,
                months: number as i32,
            })
        }
        DataType::Uuid => Value::Uuid(fixed(bytes, data_type)?),
        DataType::Inet => Value::Inet(decode_inet(bytes, data_type)?),
        DataType::Cidr => Value::Cidr(decode_inet(bytes, data_type)?),
        DataType::MacAddr => Value::MacAddr(fixed(bytes, data_type)?),
        DataType::MacAddr8 => Value::MacAddr8(match *bytes {
            // Six bytes are those of a macaddr.
            [a, b, c, d, e, f] => [a, b, c, 0xff, 0xfe, d, e, f],
            _ => fixed(bytes, data_type)?,
        }),
        DataType::Bytea => Value::Bytes(bytes.into()),
        DataType::Json => decode_text(utf8(bytes)?, data_type, 0)?,
        DataType::JsonPath => match bytes.split_first() {
            Some((&JSONB_VERSION, text)) => decode_text(utf8(text)?, data_type, 0)?,
            _ => decode_text(utf8(bytes)?, data_type, 0)?,
        },
        DataType::Jsonb => match bytes.split_first() {
            Some((&JSONB_VERSION, text)) => decode_text(utf8(text)?, data_type, 0)?,
            version => {
                let version = version.map_or(0, |(version, _)| *version);
                return Err(EngineError::internal(format!(
                    "unsupported jsonb version number {version}"
                )));
            }
        },
        DataType::Numeric => Value::Numeric(decode_numeric(bytes)?),
        DataType::Record => RecordValue::decode_binary(bytes, decode_binary)?.into(),
        DataType::Enum(_) => decode_text(utf8(bytes)?, data_type, 0)?,
        DataType::Domain(_) => match data_type.base() {
            DataType::Domain(_) => return Err(EngineError::internal("a domain is not in the catalog")),
            base => decode_binary(bytes, base)?,
        },
        DataType::Composite(oid) => RecordValue::decode_binary_of(bytes, oid, decode_binary)?.into(),
        DataType::AnyArray => return Err(EngineError::not_supported("anyarray in binary")),
        DataType::Array(_) | DataType::Int2Vector | DataType::OidVector => {
            decode_array_binary(bytes, data_type, decode_binary)?.into()
        }
        DataType::Text
        | DataType::Varchar
        | DataType::Char
        | DataType::Name
        | DataType::CharByte
        | DataType::PgNodeTree
        | DataType::AclItem
        | DataType::Void
        | DataType::Unknown => Value::Text(utf8(bytes)?.into()),
    })
}

fn utf8(bytes: &[u8]) -> Result<&str> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        EngineError::new(
            SqlState::CHARACTER_NOT_IN_REPERTOIRE,
            format!("invalid byte sequence for encoding \"UTF8\": 0x{:02x}", bytes[at]),
        )
    })?;
    check_text(text)?;
    Ok(text)
}

fn timestamp(bytes: &[u8], data_type: DataType) -> Result<i64> {
    let micros = i64::from_be_bytes(fixed(bytes, data_type)?);
    if micros != i64::MAX && micros != i64::MIN && !crate::value::datetime::is_valid_timestamp(micros) {
        return Err(EngineError::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            "timestamp out of range",
        ));
    }
    Ok(micros)
}

/// One past the seconds that a zone may be away from Greenwich.
const ZONE_SECONDS_MAX: i32 = 16 * 3_600;

fn time(micros: i64) -> Result<i64> {
    match (0..=MICROS_PER_DAY).contains(&micros) {
        true => Ok(micros),
        false => Err(EngineError::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            "time out of range",
        )),
    }
}

fn fixed<const N: usize>(bytes: &[u8], data_type: DataType) -> Result<[u8; N]> {
    bytes.try_into().map_err(|_| wrong_length(data_type))
}

#[cold]
fn wrong_length(data_type: DataType) -> EngineError {
    EngineError::new(
        SqlState::INVALID_BINARY_REPRESENTATION,
        format!("incorrect binary data format for type {data_type}"),
    )
}

fn encode_numeric(value: &Numeric, out: &mut Vec<u8>) {
    let groups = value.groups();
    let sign = match (value.is_finite(), value.signum()) {
        (true, ..0) => NUMERIC_NEGATIVE,
        (true, _) => NUMERIC_POSITIVE,
        (false, 0) => NUMERIC_NAN,
        (false, 1..) => NUMERIC_INFINITY,
        (false, _) => NUMERIC_NEGATIVE_INFINITY,
    };
    let fields = [
        groups.digits.len() as u16,
        groups.weight as i16 as u16,
        sign,
        value
            .scale()
            .unwrap_or(if value.is_nan() { 0 } else { NUMERIC_INFINITY_SCALE }),
    ];
    for field in fields.iter().chain(&groups.digits) {
        out.extend_from_slice(&field.to_be_bytes());
    }
}

fn decode_numeric(bytes: &[u8]) -> Result<Numeric> {
    let bad = || wrong_length(DataType::Numeric);
    let (header, digits) = bytes.split_at_checked(8).ok_or_else(bad)?;
    let field = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let (count, weight, sign, scale) = (field(0), field(2) as i16, field(4), field(6));
    if digits.len() != usize::from(count) * 2 || scale > crate::value::numeric::SCALE_MAX {
        return Err(bad());
    }
    match sign {
        NUMERIC_POSITIVE | NUMERIC_NEGATIVE => {}
        NUMERIC_NAN => return Ok(Numeric::NAN),
        NUMERIC_INFINITY => return Ok(Numeric::INFINITY),
        NUMERIC_NEGATIVE_INFINITY => return Ok(Numeric::NEGATIVE_INFINITY),
        _ => return Err(bad()),
    }
    let digits: Vec<u16> = digits
        .chunks_exact(2)
        .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
        .collect();
    if digits.iter().any(|digit| *digit >= 10_000) {
        return Err(bad());
    }
    let groups = Groups {
        weight: i32::from(weight),
        digits,
    };
    Numeric::from_groups(sign == NUMERIC_NEGATIVE, &groups, scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        encode_numeric(&text.parse().unwrap(), &mut out);
        out
    }

    #[test]
    fn numeric_matches_the_published_form() {
        // select numeric_send(12345.678)
        assert_eq!(
            bytes("12345.678"),
            [0, 3, 0, 1, 0, 0, 0, 3, 0, 1, 0x09, 0x29, 0x1a, 0x7c]
        );
        assert_eq!(bytes("0"), [0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes("0.00"), [0, 0, 0, 0, 0, 0, 0, 2]);
        assert_eq!(bytes("-1"), [0, 1, 0, 0, 0x40, 0, 0, 0, 0, 1]);
        assert_eq!(bytes("10000"), [0, 1, 0, 1, 0, 0, 0, 0, 0, 1]);
        assert_eq!(bytes("0.0001"), [0, 1, 0xff, 0xff, 0, 0, 0, 4, 0, 1]);
        assert_eq!(bytes("0.00001"), [0, 1, 0xff, 0xfe, 0, 0, 0, 5, 0x03, 0xe8]);
    }

    #[test]
    fn wrong_lengths_are_errors() {
        assert!(decode_binary(&[1, 2, 3], DataType::Int4).is_err());
        assert!(decode_binary(&[], DataType::Bool).is_err());
        assert!(decode_binary(&[0, 1, 0, 0, 0, 0, 0, 0], DataType::Numeric).is_err());
        assert!(decode_binary(&[0xff], DataType::Text).is_err());
        assert!(decode_binary(&[b'a', 0], DataType::Text).is_err());
    }
}
