//! JSON made of SQL values: `to_json`, `json_build_object` and their kin.
//!
//! | SQL | JSON |
//! |---|---|
//! | NULL | null |
//! | boolean, numbers | the same; a string for NaN and the infinities |
//! | dates and timestamps | strings in the form of ISO 8601 |
//! | json, jsonb | itself |
//! | arrays | arrays, of arrays for each further dimension |
//! | records | objects: names of fields that the binder gives, otherwise `f1`, `f2` |
//! | anything else | its text as a string |
//!
//! A function that gives `json` writes text, and so leaves a `json` inside as it was written; one that gives `jsonb` makes
//! a tree.

use std::borrow::Cow;

use super::{invalid, owned, texts_of};
use crate::context::SessionFacts;
use crate::error::{EngineError, Result, SqlState};
use crate::function::array_arguments::or_null;
use crate::function::registered::with_names;
use crate::function::row::Implementation::{Pure, Session};
use crate::function::row::{FunctionRow, row};
use crate::function::{Function, Signature, check_length};
use crate::stack;
use crate::value::DataType::{Bool, Json as JsonType, Jsonb, Record, Text, Unknown};
use crate::value::datetime::{format_json_date, format_json_timestamp, format_json_timestamptz};
use crate::value::json::{Json, JsonbRef, Kind, parse, push_string};
use crate::value::text::{encode_text, to_text};
use crate::value::user_type::{UserType, definition_of};
use crate::value::{ArrayValue, DataType, RecordValue, Value};

const TEXTS: DataType = DataType::array_of(Text);

/// The functions with arguments of fixed types, or of any.
pub(super) static ROWS: &[FunctionRow] = &[
    row(
        3198,
        "json_build_array",
        &[],
        JsonType,
        Session(|x, s| build_array(&shown_records(x, s))),
    )
    .stable()
    .called_on_null()
    .variadic(),
    row(
        3199,
        "json_build_array",
        &[],
        JsonType,
        Session(|x, s| build_array(&shown_records(x, s))),
    )
    .stable()
    .called_on_null(),
    row(
        3200,
        "json_build_object",
        &[],
        JsonType,
        Session(|x, s| build_object(&shown_records(x, s))),
    )
    .stable()
    .called_on_null()
    .variadic(),
    row(
        3201,
        "json_build_object",
        &[],
        JsonType,
        Session(|x, s| build_object(&shown_records(x, s))),
    )
    .stable()
    .called_on_null(),
    row(
        3271,
        "jsonb_build_array",
        &[],
        Jsonb,
        Session(|x, s| build_jsonb_array(&shown_records(x, s))),
    )
    .stable()
    .called_on_null()
    .variadic(),
    row(
        3272,
        "jsonb_build_array",
        &[],
        Jsonb,
        Session(|x, s| build_jsonb_array(&shown_records(x, s))),
    )
    .stable()
    .called_on_null(),
    row(
        3273,
        "jsonb_build_object",
        &[],
        Jsonb,
        Session(|x, s| build_jsonb_object(&shown_records(x, s))),
    )
    .stable()
    .called_on_null()
    .variadic(),
    row(
        3274,
        "jsonb_build_object",
        &[],
        Jsonb,
        Session(|x, s| build_jsonb_object(&shown_records(x, s))),
    )
    .stable()
    .called_on_null(),
    row(
        3202,
        "json_object",
        &[TEXTS],
        JsonType,
        Pure(|x| Ok(json_text(&object_of_texts(x)?))),
    ),
    row(
        3203,
        "json_object",
        &[TEXTS, TEXTS],
        JsonType,
        Pure(|x| Ok(json_text(&object_of_texts(x)?))),
    ),
    row(
        3263,
        "jsonb_object",
        &[TEXTS],
        Jsonb,
        Pure(|x| owned(&object_of_texts(x)?)),
    ),
    row(
        3264,
        "jsonb_object",
        &[TEXTS, TEXTS],
        Jsonb,
        Pure(|x| owned(&object_of_texts(x)?)),
    ),
];

/// Those called with VARIADIC and an array.
pub(in crate::function) static SPREAD: [FunctionRow; 4] = [
    row(
        3198,
        "json_build_array",
        &[],
        JsonType,
        Session(|x, s| or_null(&shown_records(x, s), build_array)),
    )
    .stable()
    .called_on_null()
    .spread(),
    row(
        3200,
        "json_build_object",
        &[],
        JsonType,
        Session(|x, s| or_null(&shown_records(x, s), build_object)),
    )
    .stable()
    .called_on_null()
    .spread(),
    row(
        3271,
        "jsonb_build_array",
        &[],
        Jsonb,
        Session(|x, s| or_null(&shown_records(x, s), build_jsonb_array)),
    )
    .stable()
    .called_on_null()
    .spread(),
    row(
        3273,
        "jsonb_build_object",
        &[],
        Jsonb,
        Session(|x, s| or_null(&shown_records(x, s), build_jsonb_object)),
    )
    .stable()
    .called_on_null()
    .spread(),
];

static TO_JSON: FunctionRow = row(
    3176,
    "to_json",
    &[],
    JsonType,
    Session(|x, s| to_json(&shown_records(x, s))),
)
.stable();
static TO_JSONB: FunctionRow = row(
    3787,
    "to_jsonb",
    &[],
    Jsonb,
    Session(|x, s| to_jsonb(&shown_records(x, s))),
)
.stable();
static ARRAY_TO_JSON: FunctionRow = row(
    3153,
    "array_to_json",
    &[],
    JsonType,
    Session(|x, s| array_to_json(&shown_records(x, s))),
)
.stable();
static ROW_TO_JSON: FunctionRow = row(
    3155,
    "row_to_json",
    &[],
    JsonType,
    Session(|x, session| row_to_json(&shown_record(x, session))),
)
.stable();
static RECORD_TO_JSONB: FunctionRow = row(
    3787,
    "to_jsonb",
    &[],
    Jsonb,
    Session(|x, session| {
        row_to_json(&shown_record(x, session))
            .and_then(|json| tree_of(&json))
            .and_then(|tree| owned(&tree))
    }),
)
.stable();

/// The functions over values of any type, for arguments of these types.
pub(in crate::function) fn resolve(name: &str, arguments: &[DataType]) -> Option<Signature> {
    let signature = |row: &'static FunctionRow, of: &[DataType]| Signature {
        function: Function::over(row, of[0]),
        arguments: of.to_vec(),
        result: row.result,
    };
    match (name, arguments) {
        ("to_json" | "to_jsonb", [Unknown]) => None,
        ("to_json", [of]) => Some(signature(&TO_JSON, &[shown_as(*of)])),
        ("to_jsonb", [of]) => Some(signature(&TO_JSONB, &[shown_as(*of)])),
        ("array_to_json", [array]) if array.is_array() => {
            Some(signature(&ARRAY_TO_JSON, &[shown_as(*array)]))
        }
        ("array_to_json", [array, Bool | Unknown]) if array.is_array() => {
            Some(signature(&ARRAY_TO_JSON, &[shown_as(*array), Bool]))
        }
        _ => None,
    }
}

/// The type that a value is converted to first: that of its text where the session makes it.
pub(in crate::function) fn shown_as(data_type: DataType) -> DataType {
    match data_type {
        DataType::Unknown => Text,
        other if holds_records(other) => other,
        DataType::Array(_) if data_type.needs_session() => TEXTS,
        other if other.needs_session() => Text,
        other => other,
    }
}

/// True if values of the type are records or arrays of them, which JSON is made of field by field.
fn holds_records(data_type: DataType) -> bool {
    matches!(
        data_type.element().unwrap_or(data_type).base(),
        Record | DataType::Composite(_)
    )
}

/// The arguments with the fields of all records among them as the session shows them.
fn shown_records<'v>(arguments: &'v [Value], session: &dyn SessionFacts) -> Cow<'v, [Value]> {
    let type_of = |value: &Value| match value {
        Value::Record(record) => record
            .types()
            .iter()
            .any(|of| of.needs_session())
            .then(|| record.data_type()),
        Value::Array(array) if holds_records(array.data_type()) => Some(array.data_type()),
        _ => None,
    };
    if arguments.iter().all(|value| type_of(value).is_none()) {
        return Cow::Borrowed(arguments);
    }
    let shown = arguments.iter().map(|value| match type_of(value) {
        Some(of) => with_names(value, of, session).into_owned(),
        None => value.clone(),
    });
    Cow::Owned(shown.collect())
}

/// The arguments with the fields of the record, the first one, as the session shows them.
fn shown_record<'v>(arguments: &'v [Value], session: &dyn SessionFacts) -> Cow<'v, [Value]> {
    let Some(record @ Value::Record(of)) = arguments.first() else {
        return Cow::Borrowed(arguments);
    };
    if !of.types().iter().any(|data_type| data_type.needs_session()) {
        return Cow::Borrowed(arguments);
    }
    let mut shown = arguments.to_vec();
    shown[0] = with_names(record, of.data_type(), session).into_owned();
    Cow::Owned(shown)
}

/// The function of a record, the names of its fields, and perhaps the wish to have a field in each line.
pub fn of_record(is_jsonb: bool) -> Function {
    Function::over(if is_jsonb { &RECORD_TO_JSONB } else { &ROW_TO_JSON }, Record)
}

/// True if the function has the names of a record's fields in what it gives.
pub fn takes_names(name: &str) -> bool {
    matches!(
        name,
        "json_build_array"
            | "json_build_object"
            | "jsonb_build_array"
            | "jsonb_build_object"
            | "json_agg"
            | "jsonb_agg"
            | "json_object_agg"
            | "jsonb_object_agg"
    )
}

/// The string of a date or timestamp: with a T, and minutes of the zone.
fn time(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Date(days) => format_json_date(*days, &mut out),
        Value::Timestamp(micros) => format_json_timestamp(*micros, &mut out),
        Value::TimestampTz(micros) => format_json_timestamptz(*micros, &mut out),
        other => encode_text(other, &mut out),
    }
    out
}

fn is_number(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}

/// Appends the JSON of a value.
pub fn write_value(value: &Value, out: &mut String) -> Result<()> {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Value::Text(text) => push_string(text, out),
        Value::Json(text) => out.push_str(text),
        Value::Jsonb(json) => json.as_ref().write(out),
        Value::Array(array) => write_array(array, ",", out)?,
        Value::Record(record) => write_record(record, None, ",", out)?,
        Value::Int2(_) | Value::Int4(_) | Value::Int8(_) => encode_text(value, out),
        Value::Float4(_) | Value::Float8(_) | Value::Numeric(_) => {
            let text = to_text(value).unwrap_or_default();
            match is_number(&text) {
                true => out.push_str(&text),
                false => push_string(&text, out),
            }
        }
        Value::Date(_) | Value::Timestamp(_) | Value::TimestampTz(_) => push_string(&time(value), out),
        other => push_string(&to_text(other).unwrap_or_default(), out),
    }
    check_length(out.len())
}

/// The same as a tree.
pub fn tree_of(value: &Value) -> Result<Json> {
    Ok(match value {
        Value::Null => Json::Null,
        Value::Bool(truth) => Json::Bool(*truth),
        Value::Text(text) => Json::String(text.clone()),
        Value::Json(text) => parse(text)?,
        Value::Jsonb(json) => json.as_ref().tree(),
        other => {
            let mut text = String::new();
            write_value(other, &mut text)?;
            parse(&text)?
        }
    })
}

fn write_array(array: &ArrayValue, separator: &str, out: &mut String) -> Result<()> {
    let lengths: Vec<usize> = array
        .dimensions()
        .iter()
        .map(|dimension| dimension.length as usize)
        .collect();
    if lengths.is_empty() {
        out.push_str("[]");
        return Ok(());
    }
    write_dimension(array.elements(), &lengths, separator, out)
}

/// Appends one dimension; only the outermost may have another separator.
fn write_dimension(elements: &[Value], lengths: &[usize], separator: &str, out: &mut String) -> Result<()> {
    out.push('[');
    let each = (elements.len() / lengths[0].max(1)).max(1);
    for (at, part) in elements.chunks(each).enumerate() {
        if at > 0 {
            out.push_str(separator);
        }
        match &lengths[1..] {
            [] => write_value(&part[0], out)?,
            inner => write_dimension(part, inner, ",", out)?,
        }
    }
    out.push(']');
    Ok(())
}

/// The names of a record's fields: an array that has for each field its name, or an array of its name and the names of
/// the fields of the record that it is.
fn write_record(
    record: &RecordValue,
    names: Option<JsonbRef<'_>>,
    separator: &str,
    out: &mut String,
) -> Result<()> {
    let definition = definition_of(record.data_type());
    let composite = definition.as_deref().and_then(UserType::composite);
    out.push('{');
    for (at, field) in record.fields().iter().enumerate() {
        if at > 0 {
            out.push_str(separator);
        }
        let of_type = composite.and_then(|composite| composite.fields.get(at));
        let named = names.and_then(|names| names.at(at));
        let (name, inner) = match named {
            Some(pair) if pair.kind() == Kind::Array => (pair.at(0), pair.at(1)),
            name => (name, None),
        };
        match name
            .and_then(JsonbRef::text)
            .or(of_type.map(|field| field.name.as_str()))
        {
            Some(name) => push_string(name, out),
            None => match record.names().and_then(|names| names.get(at)) {
                Some(name) => push_string(name, out),
                None => push_string(&format!("f{}", at + 1), out),
            },
        }
        out.push(':');
        match field {
            Value::Record(record) => stack::checkpoint(|| write_record(record, inner, ",", out))?,
            other => write_value(other, out)?,
        }
    }
    out.push('}');
    Ok(())
}

fn json_value(out: String) -> Value {
    Value::Json(out.into())
}

fn to_json(arguments: &[Value]) -> Result<Value> {
    let mut out = String::new();
    write_value(&arguments[0], &mut out)?;
    Ok(json_value(out))
}

fn to_jsonb(arguments: &[Value]) -> Result<Value> {
    owned(&tree_of(&arguments[0])?)
}

fn separator(arguments: &[Value], at: usize) -> &'static str {
    match arguments.get(at).and_then(Value::as_bool) {
        Some(true) => ",\n ",
        _ => ",",
    }
}

fn array_to_json(arguments: &[Value]) -> Result<Value> {
    let mut out = String::new();
    match &arguments[0] {
        Value::Array(array) => write_array(array, separator(arguments, 1), &mut out)?,
        other => write_value(other, &mut out)?,
    }
    Ok(json_value(out))
}

fn row_to_json(arguments: &[Value]) -> Result<Value> {
    let mut out = String::new();
    match (&arguments[0], arguments.get(1)) {
        (Value::Record(record), Some(Value::Jsonb(names))) => {
            write_record(record, Some(names.as_ref()), separator(arguments, 2), &mut out)?;
        }
        (other, _) => write_value(other, &mut out)?,
    }
    Ok(json_value(out))
}

fn build_array(arguments: &[Value]) -> Result<Value> {
    let mut out = String::from("[");
    for (at, value) in arguments.iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        write_value(value, &mut out)?;
    }
    out.push(']');
    Ok(json_value(out))
}

fn build_jsonb_array(arguments: &[Value]) -> Result<Value> {
    let elements = arguments.iter().map(tree_of).collect::<Result<_>>()?;
    owned(&Json::Array(elements))
}

/// Pairs of arguments; 22023 if one is missing.
fn pairs<'v>(
    arguments: &'v [Value],
    name: &str,
) -> Result<impl Iterator<Item = (usize, &'v Value, &'v Value)>> {
    if !arguments.len().is_multiple_of(2) {
        return Err(
            invalid("argument list must have even number of elements").with_hint(format!(
                "The arguments of {name}() must consist of alternating keys and values."
            )),
        );
    }
    let pairs = arguments.chunks_exact(2).enumerate();
    Ok(pairs.map(|(at, pair)| (2 * at + 1, &pair[0], &pair[1])))
}

/// The key that a value is; 22023 for what has parts.
fn key_of(value: &Value) -> Result<String> {
    match value {
        Value::Array(_) | Value::Record(_) | Value::Json(_) | Value::Jsonb(_) => {
            Err(invalid("key value must be scalar, not array, composite, or json"))
        }
        Value::Bool(truth) => Ok(truth.to_string()),
        Value::Date(_) | Value::Timestamp(_) | Value::TimestampTz(_) => Ok(time(value)),
        other => Ok(to_text(other).unwrap_or_default()),
    }
}

fn build_object(arguments: &[Value]) -> Result<Value> {
    let mut out = String::from("{");
    for (number, key, value) in pairs(arguments, "json_build_object")? {
        if key.is_null() {
            return Err(
                invalid(format!("argument {number} cannot be null")).with_hint("Object keys should be text.")
            );
        }
        if number > 1 {
            out.push_str(", ");
        }
        push_string(&key_of(key)?, &mut out);
        out.push_str(" : ");
        write_value(value, &mut out)?;
    }
    out.push('}');
    Ok(json_value(out))
}

fn build_jsonb_object(arguments: &[Value]) -> Result<Value> {
    let mut members = Vec::new();
    for (number, key, value) in pairs(arguments, "jsonb_build_object")? {
        if key.is_null() {
            return Err(invalid(format!("argument {number}: key must not be null")));
        }
        members.push((key_of(key)?.into(), tree_of(value)?));
    }
    owned(&Json::Object(members))
}

/// Appends a member of `json_object_agg`.
pub fn write_member(key: &Value, value: &Value, out: &mut String) -> Result<()> {
    if key.is_null() {
        return Err(invalid("field name must not be null"));
    }
    push_string(&key_of(key)?, out);
    out.push_str(" : ");
    write_value(value, out)
}

/// A member of `jsonb_object_agg`.
pub fn member_of(key: &Value, value: &Value) -> Result<(Box<str>, Json)> {
    if key.is_null() {
        return Err(invalid("field name must not be null"));
    }
    Ok((key_of(key)?.into(), tree_of(value)?))
}

fn json_text(tree: &Json) -> Value {
    let mut out = String::from("{");
    if let Json::Object(members) = tree {
        for (at, (key, value)) in members.iter().enumerate() {
            if at > 0 {
                out.push_str(", ");
            }
            push_string(key, &mut out);
            out.push_str(" : ");
            match value {
                Json::String(text) => push_string(text, &mut out),
                _ => out.push_str("null"),
            }
        }
    }
    out.push('}');
    json_value(out)
}

/// The object of an array of keys and values, or of an array of keys and one of values.
fn object_of_texts(arguments: &[Value]) -> Result<Json> {
    let wrong = |message: &'static str| Err(EngineError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message));
    let lengths = |value: &Value| match value {
        Value::Array(array) => array
            .dimensions()
            .iter()
            .map(|dimension| dimension.length as usize)
            .collect(),
        _ => Vec::new(),
    };
    let keys: Vec<Option<&str>> = texts_of(&arguments[0])?.collect();
    let shape: Vec<usize> = lengths(&arguments[0]);
    let pairs: Vec<(Option<&str>, Option<&str>)> = match arguments.get(1) {
        Some(values) => {
            if shape.len() > 1 || lengths(values).len() > 1 {
                return wrong("wrong number of array subscripts");
            }
            let values: Vec<Option<&str>> = texts_of(values)?.collect();
            if keys.len() != values.len() {
                return wrong("mismatched array dimensions");
            }
            keys.into_iter().zip(values).collect()
        }
        None => {
            match *shape {
                [] => {}
                [count] if count % 2 == 0 => {}
                [_] => return wrong("array must have even number of elements"),
                [_, 2] => {}
                [_, _] => return wrong("array must have two columns"),
                _ => return wrong("wrong number of array subscripts"),
            }
            keys.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
        }
    };
    let members = pairs.into_iter().map(|(key, value)| {
        let key = key.ok_or_else(|| {
            EngineError::new(
                SqlState::NULL_VALUE_NOT_ALLOWED,
                "null value not allowed for object key",
            )
        })?;
        let value = value.map_or(Json::Null, |value| Json::String(value.into()));
        Ok((key.into(), value))
    });
    members.collect::<Result<_>>().map(Json::Object)
}

/// The names of fields as `write_record` reads them.
pub fn names_value(names: Vec<Json>) -> Result<Value> {
    owned(&Json::Array(names))
}
