//! An array in a row.
//!
//! ```text
//! ┌────────────┬────────────────────────────────┬─────────────┬───────────────────────────────────────┐
//! │ dimensions │ lower bound, length of each    │ null bitmap │ the elements that are not NULL        │
//! └────────────┴────────────────────────────────┴─────────────┴───────────────────────────────────────┘
//!  1 byte        4 + 4 bytes, little-endian       if there are   as in a row: by width, or length, bytes
//! ```
//!
//! The first byte has its top bit set if there is a null bitmap; a bit set in that means NULL.

use crate::value::array::{ArrayValue, Dimension, check_dimensions};
use crate::value::{DataType, Value};

const HAS_NULLS: u8 = 0x80;

/// Appends an array's bytes, each element that is not NULL by `write`.
pub(in crate::value) fn write_array(
    array: &ArrayValue,
    write: fn(&Value, DataType, &mut Vec<u8>),
    out: &mut Vec<u8>,
) {
    let nulls = array.elements().iter().any(Value::is_null);
    out.push(array.dimensions().len() as u8 | if nulls { HAS_NULLS } else { 0 });
    for dimension in array.dimensions() {
        out.extend_from_slice(&dimension.lower.to_le_bytes());
        out.extend_from_slice(&dimension.length.to_le_bytes());
    }
    if nulls {
        let bitmap = out.len();
        out.resize(bitmap + array.elements().len().div_ceil(8), 0);
        for (at, element) in array.elements().iter().enumerate() {
            out[bitmap + at / 8] |= u8::from(element.is_null()) << (at % 8);
        }
    }
    let element_type = array.element_type();
    let elements = array.elements().iter().filter(|element| !element.is_null());
    elements.for_each(|element| write(element, element_type, out));
}

/// Seven bits a byte, least significant first, the top bit set while more follow.
pub(in crate::value) fn push_length(mut length: usize, out: &mut Vec<u8>) {
    while length > 0x7f {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
}

/// The length at the front of bytes, and how many of them it takes.
#[inline]
pub(in crate::value) fn read_length(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut length = 0;
    for (at, byte) in bytes.iter().take(5).enumerate() {
        length |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((length, at + 1));
        }
    }
    None
}

/// Appends what `write` appends, its length in front.
pub(in crate::value) fn with_length(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    // Nearly all are short: one byte holds the length. The others are moved to make room for it.
    out.push(0);
    write(out);
    let length = out.len() - start - 1;
    if length <= 0x7f {
        out[start] = length as u8;
        return;
    }
    let content = out.split_off(start + 1);
    out.pop();
    push_length(content.len(), out);
    out.extend_from_slice(&content);
}

/// Takes a value of a type off the front of bytes.
type Read = fn(&mut &[u8], DataType) -> Option<Value>;

/// Reads an array of this type, each element that is not NULL by `read`; `None` if the bytes are damaged.
pub(in crate::value) fn read_array(bytes: &[u8], data_type: DataType, read: Read) -> Option<ArrayValue> {
    let element_type = data_type.element()?;
    let (first, mut rest) = bytes.split_first()?;
    let mut dimensions = Vec::with_capacity(usize::from(first & !HAS_NULLS).min(8));
    for _ in 0..first & !HAS_NULLS {
        let (lower, after) = rest.split_first_chunk::<4>()?;
        let (length, after) = after.split_first_chunk::<4>()?;
        rest = after;
        dimensions.push(Dimension {
            lower: i32::from_le_bytes(*lower),
            length: i32::from_le_bytes(*length),
        });
    }
    let count = check_dimensions(&dimensions).ok()?;
    let bitmap = match first & HAS_NULLS {
        0 => None,
        _ => {
            let (bitmap, after) = rest.split_at_checked(count.div_ceil(8))?;
            rest = after;
            Some(bitmap)
        }
    };
    let is_null = |at: usize| bitmap.is_some_and(|bitmap| bitmap[at / 8] >> (at % 8) & 1 == 1);
    // Each element that is not NULL has a byte at least.
    if bitmap.is_none() && count > rest.len() {
        return None;
    }
    let mut elements = Vec::with_capacity(count);
    for at in 0..count {
        elements.push(match is_null(at) {
            true => Value::Null,
            false => read(&mut rest, element_type)?,
        });
    }
    if !rest.is_empty() {
        return None;
    }
    ArrayValue::new(data_type, dimensions, elements).ok()
}
