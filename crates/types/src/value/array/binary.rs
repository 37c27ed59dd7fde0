//! The binary form of arrays, as `array_send` and `array_recv` have it, all numbers in 4 bytes, big-endian:
//!
//! | part | times |
//! |---|---|
//! | number of dimensions; 1 if an element is NULL, else 0; the elements' type | once |
//! | length; lower bound | per dimension |
//! | bytes of the element, or −1 for NULL; then these bytes | per element |

use crate::error::{EngineError, Result, SqlState};
use crate::value::array::{ArrayValue, DIMENSIONS_MAX, Dimension, check_dimensions, too_many_dimensions};
use crate::value::{DataType, Value};

/// Appends the binary form of an array.
pub(in crate::value) fn encode_array_binary(
    array: &ArrayValue,
    encode_binary: fn(&Value, &mut Vec<u8>),
    out: &mut Vec<u8>,
) {
    let mut number = |number: i32| out.extend_from_slice(&number.to_be_bytes());
    number(array.dimensions().len() as i32);
    number(i32::from(array.elements().iter().any(Value::is_null)));
    number(array.element_type().oid() as i32);
    for dimension in array.dimensions() {
        number(dimension.length);
        number(dimension.lower);
    }
    for element in array.elements() {
        let start = out.len();
        out.extend_from_slice(&(-1i32).to_be_bytes());
        if !element.is_null() {
            encode_binary(element, out);
            let length = (out.len() - start - 4) as u32;
            out[start..start + 4].copy_from_slice(&length.to_be_bytes());
        }
    }
}

/// Reads the binary form of an array of this type.
pub(in crate::value) fn decode_array_binary(
    mut bytes: &[u8],
    data_type: DataType,
    decode_binary: fn(&[u8], DataType) -> Result<Value>,
) -> Result<ArrayValue> {
    let element_type = data_type
        .element()
        .ok_or_else(|| EngineError::internal(format!("{data_type} is read as an array")))?;
    let count = number(&mut bytes)?;
    let flags = number(&mut bytes)?;
    let oid = number(&mut bytes)? as u32;
    let count = match usize::try_from(count) {
        Ok(count) if count <= DIMENSIONS_MAX => count,
        Ok(count) => return Err(too_many_dimensions(count)),
        Err(_) => return Err(invalid(format!("invalid number of dimensions: {count}"))),
    };
    if !matches!(flags, 0 | 1) {
        return Err(invalid("invalid array flags"));
    }
    if oid != element_type.oid() {
        let found = DataType::from_oid(oid).map_or("???".into(), DataType::name);
        return Err(EngineError::new(
            SqlState::DATATYPE_MISMATCH,
            format!(
                "binary data has array element type {oid} ({found}) instead of expected {} ({element_type})",
                element_type.oid()
            ),
        ));
    }
    let mut dimensions = Vec::with_capacity(count);
    for _ in 0..count {
        let length = number(&mut bytes)?;
        let lower = number(&mut bytes)?;
        dimensions.push(Dimension { lower, length });
    }
    let count = check_dimensions(&dimensions)?;
    // A row of bytes cannot announce more elements than it has lengths for.
    if bytes.len() / 4 < count {
        return Err(insufficient());
    }
    let mut elements = Vec::with_capacity(count);
    for at in 0..count {
        let length = number(&mut bytes)?;
        if length == -1 {
            elements.push(Value::Null);
            continue;
        }
        let content = usize::try_from(length)
            .ok()
            .and_then(|length| bytes.split_at_checked(length))
            .ok_or_else(insufficient)?;
        bytes = content.1;
        let element = decode_binary(content.0, element_type).map_err(|error| match error.sqlstate() {
            SqlState::INVALID_BINARY_REPRESENTATION => {
                invalid(format!("improper binary format in array element {}", at + 1))
            }
            _ => error,
        })?;
        elements.push(element);
    }
    if !bytes.is_empty() {
        return Err(invalid(format!(
            "incorrect binary data format for type {data_type}"
        )));
    }
    if elements.is_empty() {
        return Ok(ArrayValue::empty(data_type));
    }
    ArrayValue::new(data_type, dimensions, elements)
}

fn number(bytes: &mut &[u8]) -> Result<i32> {
    let (number, rest) = bytes.split_first_chunk::<4>().ok_or_else(insufficient)?;
    *bytes = rest;
    Ok(i32::from_be_bytes(*number))
}

#[cold]
fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> EngineError {
    EngineError::new(SqlState::INVALID_BINARY_REPRESENTATION, message)
}

#[cold]
fn insufficient() -> EngineError {
    EngineError::new(SqlState::PROTOCOL_VIOLATION, "insufficient data left in message")
}
