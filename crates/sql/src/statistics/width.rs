//! The bytes of values as PostgreSQL stores them: what `avg_width` and the widths of EXPLAIN count.

use crate::value::{DataType, Value};

/// The bytes of a value in a row of PostgreSQL's. A value of varying length has a header, of one byte up to 126 bytes of
/// content, of four beyond.
pub fn stored_width(value: &Value, data_type: DataType) -> usize {
    match data_type.wire_size() {
        -1 => with_header(content(value)),
        -2 => content(value) + 1,
        fixed => usize::from(fixed.unsigned_abs()),
    }
}

const fn with_header(content: usize) -> usize {
    if content < 127 { content + 1 } else { content + 4 }
}

/// The bytes of a value of varying length without its header.
fn content(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Numeric(number) => 2 + 2 * number.groups().digits.len(),
        Value::Array(array) => {
            // Number of dimensions, offset of the data, type of the elements; then length and lower bound of each
            // dimension.
            let dimensions = 12 + 8 * array.dimensions().len();
            let element = array.element_type();
            let elements = array.elements().iter().filter(|element| !element.is_null());
            let bytes = elements.map(|value| match element.wire_size() {
                // In an array each has a header of four bytes and is aligned.
                -1 => (content(value) + 4).next_multiple_of(4),
                _ => stored_width(value, element),
            });
            dimensions + bytes.sum::<usize>()
        }
        // The header of a row, a bit a field if one is NULL, and the fields.
        Value::Record(record) => {
            let fields = record.typed_fields().filter(|(field, _)| !field.is_null());
            24 + fields.map(|(field, of)| stored_width(field, of)).sum::<usize>()
        }
        other => other.heap_bytes(),
    }
}

/// The bytes that values of a type have on average where nothing is known of them; as PostgreSQL guesses.
pub fn average_width(data_type: DataType, typmod: i32) -> usize {
    let declared = crate::value::datatype::length_of_typmod(typmod);
    match (data_type.wire_size(), declared) {
        (fixed @ 0.., _) => fixed.unsigned_abs().into(),
        // All values of char(n) have the length; of varchar(n) half of it is a guess beyond 32.
        (_, Some(length)) if data_type == DataType::Char => length + 4,
        (_, Some(length)) if data_type == DataType::Varchar && length + 4 <= 32 => length + 4,
        (_, Some(length)) if data_type == DataType::Varchar && length + 4 < 1_000 => {
            32 + (length + 4 - 32) / 2
        }
        (_, Some(_)) if data_type == DataType::Varchar => 32 + (1_000 - 32) / 2,
        _ => 32,
    }
}
