//! Parts of a value: by key, by index, by path; its type and its length.

use super::{
    array_of, invalid, json_of, jsonb_of, jsonb_value, place, text_of_json, text_of_jsonb, texts_of,
};
use crate::error::Result;
use crate::function::row::Implementation::{OfTwo, Pure};
use crate::function::row::{FunctionRow, row};
use crate::function::{int, text_of};
use crate::value::DataType::{Int4, Json, Jsonb, Text};
use crate::value::json::{JsonbRef, Kind, Level, level};
use crate::value::text::to_text;
use crate::value::{ArrayValue, DataType, Value};

const TEXTS: DataType = DataType::array_of(Text);

/// The functions.
pub(super) static ROWS: &[FunctionRow] = &[
    row(3947, "json_object_field", &[Json, Text], Json, OfTwo(json_field)).operator("->"),
    row(
        3948,
        "json_object_field_text",
        &[Json, Text],
        Text,
        OfTwo(|x, y| json_text(json_field(x, y)?)),
    )
    .operator("->>"),
    row(
        3949,
        "json_array_element",
        &[Json, Int4],
        Json,
        OfTwo(json_element),
    )
    .operator("->"),
    row(
        3950,
        "json_array_element_text",
        &[Json, Int4],
        Text,
        OfTwo(|x, y| json_text(json_element(x, y)?)),
    )
    .operator("->>"),
    row(3951, "json_extract_path", &[Json, TEXTS], Json, OfTwo(json_path)).operator("#>"),
    row(
        3953,
        "json_extract_path_text",
        &[Json, TEXTS],
        Text,
        OfTwo(|x, y| json_text(json_path(x, y)?)),
    )
    .operator("#>>"),
    row(
        3478,
        "jsonb_object_field",
        &[Jsonb, Text],
        Jsonb,
        OfTwo(|x, y| Ok(field(x, y)?.map_or(Value::Null, jsonb_value))),
    )
    .operator("->"),
    row(
        3214,
        "jsonb_object_field_text",
        &[Jsonb, Text],
        Text,
        OfTwo(|x, y| Ok(field(x, y)?.map_or(Value::Null, text_of_jsonb))),
    )
    .operator("->>"),
    row(
        3215,
        "jsonb_array_element",
        &[Jsonb, Int4],
        Jsonb,
        OfTwo(|x, y| Ok(element(x, y)?.map_or(Value::Null, jsonb_value))),
    )
    .operator("->"),
    row(
        3216,
        "jsonb_array_element_text",
        &[Jsonb, Int4],
        Text,
        OfTwo(|x, y| Ok(element(x, y)?.map_or(Value::Null, text_of_jsonb))),
    )
    .operator("->>"),
    row(
        3217,
        "jsonb_extract_path",
        &[Jsonb, TEXTS],
        Jsonb,
        OfTwo(|x, y| Ok(at_path(x, y)?.map_or(Value::Null, jsonb_value))),
    )
    .operator("#>"),
    row(
        3940,
        "jsonb_extract_path_text",
        &[Jsonb, TEXTS],
        Text,
        OfTwo(|x, y| Ok(at_path(x, y)?.map_or(Value::Null, text_of_jsonb))),
    )
    .operator("#>>"),
    row(3956, "json_array_length", &[Json], Int4, Pure(json_length)),
    row(3207, "jsonb_array_length", &[Jsonb], Int4, Pure(length)),
    row(3968, "json_typeof", &[Json], Text, Pure(json_typeof)),
    row(
        3210,
        "jsonb_typeof",
        &[Jsonb],
        Text,
        Pure(|x| Ok(Value::from(jsonb_of(&x[0])?.kind().name()))),
    ),
    row(
        3951,
        "json_extract_path",
        &[Json],
        Json,
        Pure(|x| along(x, json_path)),
    )
    .variadic(),
    row(
        3953,
        "json_extract_path_text",
        &[Json],
        Text,
        Pure(|x| along(x, |x, y| json_text(json_path(x, y)?))),
    )
    .variadic(),
    row(
        3217,
        "jsonb_extract_path",
        &[Jsonb],
        Jsonb,
        Pure(|x| along(x, |x, y| Ok(at_path(x, y)?.map_or(Value::Null, jsonb_value)))),
    )
    .variadic(),
    row(
        3940,
        "jsonb_extract_path_text",
        &[Jsonb],
        Text,
        Pure(|x| along(x, |x, y| Ok(at_path(x, y)?.map_or(Value::Null, text_of_jsonb)))),
    )
    .variadic(),
];

/// The value of a function for a path whose steps are arguments.
fn along(arguments: &[Value], call: fn(&Value, &Value) -> Result<Value>) -> Result<Value> {
    let steps = arguments[1..]
        .iter()
        .map(|step| to_text(step).map_or(Value::Null, Value::text));
    let path = ArrayValue::of(TEXTS, steps.collect())?;
    call(&arguments[0], &path.into())
}

/// The last value of a key of an object.
fn json_field(json: &Value, key: &Value) -> Result<Value> {
    let key = text_of(key)?;
    Ok(match level(json_of(json)?)? {
        Level::Object(members) => {
            let found = members.iter().rev().find(|(name, _)| **name == *key);
            found.map_or(Value::Null, |(_, piece)| Value::Json((*piece).into()))
        }
        _ => Value::Null,
    })
}

fn json_element(json: &Value, index: &Value) -> Result<Value> {
    let index = int(index)?;
    Ok(match level(json_of(json)?)? {
        Level::Array(elements) => {
            let found = place(i64::from(index), elements.len());
            found.map_or(Value::Null, |place| Value::Json(elements[place].into()))
        }
        _ => Value::Null,
    })
}

fn json_path(json: &Value, path: &Value) -> Result<Value> {
    let mut piece = json_of(json)?;
    for step in texts_of(path)? {
        let Some(step) = step else {
            return Ok(Value::Null);
        };
        let found = match level(piece)? {
            Level::Object(members) => {
                let mut members = members.iter().rev();
                members.find(|(name, _)| **name == *step).map(|(_, piece)| *piece)
            }
            Level::Array(elements) => index(step)
                .and_then(|index| place(index, elements.len()))
                .map(|place| elements[place]),
            Level::Scalar(_) => None,
        };
        match found {
            Some(found) => piece = found,
            None => return Ok(Value::Null),
        }
    }
    Ok(Value::Json(piece.into()))
}

/// The index that a step of a path is in an array.
pub(super) fn index(step: &str) -> Option<i64> {
    step.trim_start_matches(crate::value::is_space)
        .parse::<i32>()
        .ok()
        .map(i64::from)
}

fn json_text(value: Value) -> Result<Value> {
    match value {
        Value::Json(piece) => text_of_json(&piece),
        _ => Ok(Value::Null),
    }
}

fn field<'j>(json: &'j Value, key: &Value) -> Result<Option<JsonbRef<'j>>> {
    Ok(jsonb_of(json)?.get(text_of(key)?))
}

fn element<'j>(json: &'j Value, index: &Value) -> Result<Option<JsonbRef<'j>>> {
    let json = jsonb_of(json)?;
    let index = i64::from(int(index)?);
    Ok(match json.kind() {
        Kind::Array => place(index, json.count()).and_then(|place| json.at(place)),
        Kind::Object => None,
        // As in PostgreSQL it is an array of itself here.
        _ => place(index, 1).map(|_| json),
    })
}

fn at_path<'j>(json: &'j Value, path: &Value) -> Result<Option<JsonbRef<'j>>> {
    let mut found = jsonb_of(json)?;
    for step in texts_of(path)? {
        let next = step.and_then(|step| match found.kind() {
            Kind::Object => found.get(step),
            Kind::Array => place(index(step)?, found.count()).and_then(|place| found.at(place)),
            _ => None,
        });
        match next {
            Some(next) => found = next,
            None => return Ok(None),
        }
    }
    Ok(Some(found))
}

fn not_array(is_scalar: bool) -> crate::error::EngineError {
    invalid(match is_scalar {
        true => "cannot get array length of a scalar",
        false => "cannot get array length of a non-array",
    })
}

fn json_length(arguments: &[Value]) -> Result<Value> {
    let elements = array_of(json_of(&arguments[0])?, not_array)?;
    Ok(Value::Int4(elements.len() as i32))
}

fn length(arguments: &[Value]) -> Result<Value> {
    let json = jsonb_of(&arguments[0])?;
    match json.kind() {
        Kind::Array => Ok(Value::Int4(json.count() as i32)),
        _ => Err(not_array(json.is_scalar())),
    }
}

fn json_typeof(arguments: &[Value]) -> Result<Value> {
    Ok(Value::from(match level(json_of(&arguments[0])?)? {
        Level::Array(_) => "array",
        Level::Object(_) => "object",
        Level::Scalar(piece) => match piece.as_bytes().first() {
            Some(b'"') => "string",
            Some(b't' | b'f') => "boolean",
            Some(b'n') => "null",
            _ => "number",
        },
    }))
}
