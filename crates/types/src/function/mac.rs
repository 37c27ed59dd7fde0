//! Functions and operators of `macaddr` and `macaddr8`.

use std::cmp::Ordering;

use super::row::Implementation::Pure;
use super::row::{FunctionRow, row};
use crate::error::{EngineError, Result};
use crate::value::DataType::{Int4, MacAddr, MacAddr8};
use crate::value::Value;
use crate::value::cast::{CastContext, cast};

/// The functions.
pub(super) static ROWS: &[FunctionRow] = &[
    row(753, "trunc", &[MacAddr], MacAddr, Pure(trunc)),
    row(836, "macaddr_cmp", &[MacAddr, MacAddr], Int4, Pure(order)),
    row(3144, "macaddr_not", &[MacAddr], MacAddr, Pure(not)).operator("~"),
    row(3145, "macaddr_and", &[MacAddr, MacAddr], MacAddr, Pure(and)).operator("&"),
    row(3146, "macaddr_or", &[MacAddr, MacAddr], MacAddr, Pure(or)).operator("|"),
    row(4112, "trunc", &[MacAddr8], MacAddr8, Pure(trunc)),
    row(4119, "macaddr8_cmp", &[MacAddr8, MacAddr8], Int4, Pure(order)),
    row(4120, "macaddr8_not", &[MacAddr8], MacAddr8, Pure(not)).operator("~"),
    row(4121, "macaddr8_and", &[MacAddr8, MacAddr8], MacAddr8, Pure(and)).operator("&"),
    row(4122, "macaddr8_or", &[MacAddr8, MacAddr8], MacAddr8, Pure(or)).operator("|"),
    row(
        4123,
        "macaddr8",
        &[MacAddr],
        MacAddr8,
        Pure(|x| converted(x, MacAddr, MacAddr8)),
    ),
    row(
        4124,
        "macaddr",
        &[MacAddr8],
        MacAddr,
        Pure(|x| converted(x, MacAddr8, MacAddr)),
    ),
    row(
        4125,
        "macaddr8_set7bit",
        &[MacAddr8],
        MacAddr8,
        Pure(set_seventh_bit),
    ),
];

/// The bit of the first byte that says that an address was given by hand.
const GIVEN_BY_HAND: u8 = 0x02;

fn converted(arguments: &[Value], from: crate::value::DataType, to: crate::value::DataType) -> Result<Value> {
    cast(arguments[0].clone(), from, to, -1, CastContext::Explicit, 0)
}

fn bytes(value: &Value) -> Result<&[u8]> {
    match value {
        Value::MacAddr(bytes) => Ok(bytes),
        Value::MacAddr8(bytes) => Ok(bytes),
        other => Err(EngineError::internal(format!(
            "{other:?} is used as a device's address"
        ))),
    }
}

/// The value with each byte made anew of its place and itself.
fn map(value: &Value, byte: impl Fn(usize, u8) -> u8) -> Result<Value> {
    Ok(match value {
        Value::MacAddr(bytes) => Value::MacAddr(std::array::from_fn(|at| byte(at, bytes[at]))),
        Value::MacAddr8(bytes) => Value::MacAddr8(std::array::from_fn(|at| byte(at, bytes[at]))),
        other => bytes(other).map(|_| Value::Null)?,
    })
}

/// The maker's part of an address: the first three bytes.
fn trunc(arguments: &[Value]) -> Result<Value> {
    map(&arguments[0], |at, byte| if at < 3 { byte } else { 0 })
}

fn not(arguments: &[Value]) -> Result<Value> {
    map(&arguments[0], |_, byte| !byte)
}

fn and(arguments: &[Value]) -> Result<Value> {
    let other = bytes(&arguments[1])?;
    map(&arguments[0], |at, byte| byte & other[at])
}

fn or(arguments: &[Value]) -> Result<Value> {
    let other = bytes(&arguments[1])?;
    map(&arguments[0], |at, byte| byte | other[at])
}

fn set_seventh_bit(arguments: &[Value]) -> Result<Value> {
    map(
        &arguments[0],
        |at, byte| if at == 0 { byte | GIVEN_BY_HAND } else { byte },
    )
}

fn order(arguments: &[Value]) -> Result<Value> {
    let order: Ordering = bytes(&arguments[0])?.cmp(bytes(&arguments[1])?);
    Ok(Value::Int4(order as i32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_taken_bytewise() {
        let (one, other) = (
            Value::MacAddr([8, 0, 0x2b, 1, 2, 3]),
            Value::MacAddr([0xff, 0, 0x0f, 0, 0, 1]),
        );
        let pair = [one.clone(), other];
        assert_eq!(and(&pair).unwrap(), Value::MacAddr([8, 0, 0x0b, 0, 0, 1]));
        assert_eq!(or(&pair).unwrap(), Value::MacAddr([0xff, 0, 0x2f, 1, 2, 3]));
        assert_eq!(
            not(&pair).unwrap(),
            Value::MacAddr([0xf7, 0xff, 0xd4, 0xfe, 0xfd, 0xfc])
        );
        assert_eq!(trunc(&pair).unwrap(), Value::MacAddr([8, 0, 0x2b, 0, 0, 0]));
        let long = converted(&[one], MacAddr, MacAddr8).unwrap();
        assert_eq!(long, Value::MacAddr8([8, 0, 0x2b, 0xff, 0xfe, 1, 2, 3]));
        assert_eq!(
            set_seventh_bit(std::slice::from_ref(&long)).unwrap(),
            Value::MacAddr8([10, 0, 0x2b, 0xff, 0xfe, 1, 2, 3])
        );
        assert!(converted(&[not(&[long]).unwrap()], MacAddr8, MacAddr).is_err());
    }
}
