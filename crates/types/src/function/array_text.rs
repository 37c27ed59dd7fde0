//! Arrays put together to a text, and a text taken apart.

use crate::error::{EngineError, Result};
use crate::function::check_length;
use crate::value::text::encode_text;
use crate::value::{ArrayValue, DataType, Value};

/// `array_to_string`: the elements with the delimiter between them; NULLs are left out, or written as the third
/// argument says.
pub(super) fn to_string(arguments: &[Value]) -> Result<Value> {
    let (Value::Array(array), Value::Text(delimiter)) = (&arguments[0], &arguments[1]) else {
        return Ok(Value::Null);
    };
    let for_null = arguments.get(2).and_then(Value::as_str);
    let mut out = String::new();
    let mut first = true;
    for element in array.elements() {
        if element.is_null() && for_null.is_none() {
            continue;
        }
        if !first {
            out.push_str(delimiter);
        }
        first = false;
        match for_null {
            Some(text) if element.is_null() => out.push_str(text),
            _ => encode_text(element, &mut out),
        }
        check_length(out.len())?;
    }
    Ok(Value::text(out))
}

/// `string_to_array`: the parts between the delimiters; all characters without one, the whole text for an empty one.
/// Parts like the third argument are NULL.
pub(super) fn string_to_array(arguments: &[Value]) -> Result<Value> {
    let text = match &arguments[0] {
        Value::Null => return Ok(Value::Null),
        Value::Text(text) => &**text,
        other => return Err(EngineError::internal(format!("{other:?} is used as text"))),
    };
    let null = arguments.get(2).and_then(Value::as_str);
    let part = |part: &str| match null == Some(part) {
        true => Value::Null,
        false => Value::text(part),
    };
    check_length(text.len())?;
    let parts: Vec<Value> = match &arguments[1] {
        _ if text.is_empty() => Vec::new(),
        Value::Text(delimiter) if delimiter.is_empty() => vec![part(text)],
        Value::Text(delimiter) => text.split(&**delimiter).map(part).collect(),
        _ => text
            .chars()
            .map(|character| part(character.encode_utf8(&mut [0; 4])))
            .collect(),
    };
    ArrayValue::of(DataType::array_of(DataType::Text), parts).map(Value::from)
}
