//! Functions that give a row for each element or member.
//!
//! In PostgreSQL each gives rows; here it gives an array, whose elements the executor makes rows of. `json_each` and its
//! kin have two columns: in FROM the binder makes two calls of them, side by side ([`columns`]).

use std::sync::Arc;

use super::{array_of, invalid, json_of, jsonb_of, jsonb_value, text_of_json, text_of_jsonb};
use crate::error::{EngineError, Result};
use crate::function::Function;
use crate::function::row::Implementation::Pure;
use crate::function::row::{FunctionRow, row};
use crate::memory;
use crate::value::DataType::{Json, Jsonb, Record, Text};
use crate::value::json::{JsonbRef, Kind, Level, level};
use crate::value::{ArrayValue, DataType, RecordValue, Value};

const TEXTS: DataType = DataType::array_of(Text);
const JSONS: DataType = DataType::array_of(Json);
const JSONBS: DataType = DataType::array_of(Jsonb);
const RECORDS: DataType = DataType::array_of(Record);

/// The functions.
pub(super) static ROWS: &[FunctionRow] = &[
    row(
        3955,
        "json_array_elements",
        &[Json],
        JSONS,
        Pure(|x| elements(x, "json_array_elements", false)),
    ),
    row(
        3969,
        "json_array_elements_text",
        &[Json],
        TEXTS,
        Pure(|x| elements(x, "json_array_elements_text", true)),
    ),
    row(
        3219,
        "jsonb_array_elements",
        &[Jsonb],
        JSONBS,
        Pure(|x| elements_of_jsonb(x, false)),
    ),
    row(
        3465,
        "jsonb_array_elements_text",
        &[Jsonb],
        TEXTS,
        Pure(|x| elements_of_jsonb(x, true)),
    ),
    row(
        3957,
        "json_object_keys",
        &[Json],
        TEXTS,
        Pure(|x| array(TEXTS, json_keys(x, "json_object_keys")?)),
    ),
    row(
        3931,
        "jsonb_object_keys",
        &[Jsonb],
        TEXTS,
        Pure(|x| array(TEXTS, jsonb_keys(x, "jsonb_object_keys")?)),
    ),
    row(
        3958,
        "json_each",
        &[Json],
        RECORDS,
        Pure(|x| records(json_keys(x, "json_each")?, json_values(x, false)?, Json)),
    ),
    row(
        3959,
        "json_each_text",
        &[Json],
        RECORDS,
        Pure(|x| records(json_keys(x, "json_each_text")?, json_values(x, true)?, Text)),
    ),
    row(
        3208,
        "jsonb_each",
        &[Jsonb],
        RECORDS,
        Pure(|x| records(jsonb_keys(x, "jsonb_each")?, jsonb_values(x, false)?, Jsonb)),
    ),
    row(
        3932,
        "jsonb_each_text",
        &[Jsonb],
        RECORDS,
        Pure(|x| records(jsonb_keys(x, "jsonb_each_text")?, jsonb_values(x, true)?, Text)),
    ),
];

/// True if the function of this name gives a row for each element of its array.
pub fn is_name(name: &str) -> bool {
    ROWS.iter().any(|row| row.name == name) || matches!(name, "jsonb_path_query" | "jsonb_path_query_tz")
}

/// The name of the only column that the function declares.
pub fn column_name(function: &str) -> Option<&'static str> {
    function.contains("_array_elements").then_some("value")
}

/// A column of a function with two, hidden: no call can name it.
struct Columns {
    name: &'static str,
    of: DataType,
    keys: FunctionRow,
    values: FunctionRow,
}

static COLUMNS: [Columns; 4] = [
    Columns {
        name: "json_each",
        of: Json,
        keys: row(
            0,
            "keys",
            &[],
            TEXTS,
            Pure(|x| array(TEXTS, json_keys(x, "json_each")?)),
        ),
        values: row(
            0,
            "values",
            &[],
            JSONS,
            Pure(|x| array(JSONS, json_values(x, false)?)),
        ),
    },
    Columns {
        name: "json_each_text",
        of: Json,
        keys: row(
            0,
            "keys",
            &[],
            TEXTS,
            Pure(|x| array(TEXTS, json_keys(x, "json_each_text")?)),
        ),
        values: row(
            0,
            "values",
            &[],
            TEXTS,
            Pure(|x| array(TEXTS, json_values(x, true)?)),
        ),
    },
    Columns {
        name: "jsonb_each",
        of: Jsonb,
        keys: row(
            0,
            "keys",
            &[],
            TEXTS,
            Pure(|x| array(TEXTS, jsonb_keys(x, "jsonb_each")?)),
        ),
        values: row(
            0,
            "values",
            &[],
            JSONBS,
            Pure(|x| array(JSONBS, jsonb_values(x, false)?)),
        ),
    },
    Columns {
        name: "jsonb_each_text",
        of: Jsonb,
        keys: row(
            0,
            "keys",
            &[],
            TEXTS,
            Pure(|x| array(TEXTS, jsonb_keys(x, "jsonb_each_text")?)),
        ),
        values: row(
            0,
            "values",
            &[],
            TEXTS,
            Pure(|x| array(TEXTS, jsonb_values(x, true)?)),
        ),
    },
];

/// A column of a function: its name, the function that gives its values, their type.
pub(crate) type NamedColumn = (&'static str, Function, DataType);

/// The argument's type of a function with two columns, and these.
pub fn columns(name: &str) -> Option<(DataType, [NamedColumn; 2])> {
    let found = COLUMNS.iter().find(|columns| columns.name == name)?;
    let column = |name, row: &'static FunctionRow| {
        let element = row.result.element().unwrap_or(Text);
        (name, Function::over(row, row.result), element)
    };
    Some((
        found.of,
        [column("key", &found.keys), column("value", &found.values)],
    ))
}

fn array(data_type: DataType, values: Vec<Value>) -> Result<Value> {
    ArrayValue::of(data_type, values).map(Value::from)
}

fn records(keys: Vec<Value>, values: Vec<Value>, of_value: DataType) -> Result<Value> {
    let types: Arc<[DataType]> = [Text, of_value].into();
    let pairs = keys.into_iter().zip(values);
    let records =
        pairs.map(|(key, value)| RecordValue::new(vec![key, value], Arc::clone(&types)).map(Value::from));
    array(RECORDS, records.collect::<Result<_>>()?)
}

fn elements(arguments: &[Value], name: &str, as_text: bool) -> Result<Value> {
    let refused = |is_scalar: bool| {
        invalid(match is_scalar {
            true => format!("cannot call {name} on a scalar"),
            false => format!("cannot call {name} on a non-array"),
        })
    };
    let pieces = array_of(json_of(&arguments[0])?, refused)?;
    memory::require(pieces.len() * size_of::<Value>())?;
    let values = pieces.into_iter().map(|piece| json_value(piece, as_text));
    array(
        if as_text { TEXTS } else { JSONS },
        values.collect::<Result<_>>()?,
    )
}

fn json_value(piece: &str, as_text: bool) -> Result<Value> {
    match as_text {
        true => text_of_json(piece),
        false => Ok(Value::Json(piece.into())),
    }
}

fn value_of(value: JsonbRef<'_>, as_text: bool) -> Value {
    match as_text {
        true => text_of_jsonb(value),
        false => jsonb_value(value),
    }
}

fn elements_of_jsonb(arguments: &[Value], as_text: bool) -> Result<Value> {
    let json = jsonb_of(&arguments[0])?;
    match json.kind() {
        Kind::Array => {}
        Kind::Object => return Err(invalid("cannot extract elements from an object")),
        _ => return Err(invalid("cannot extract elements from a scalar")),
    }
    memory::require(json.count() * size_of::<Value>())?;
    let values = json
        .elements()
        .map(|element| value_of(element, as_text))
        .collect();
    array(if as_text { TEXTS } else { JSONBS }, values)
}

/// The members of an object; the error of a function for what is none.
fn members<'t>(arguments: &'t [Value], name: &str) -> Result<Vec<(Box<str>, &'t str)>> {
    let error = |what: &str| -> EngineError {
        match (name, what) {
            ("json_object_keys", what) => invalid(format!("cannot call {name} on {what}")),
            (_, "an array") => invalid("cannot deconstruct an array as an object"),
            _ => invalid("cannot deconstruct a scalar"),
        }
    };
    match level(json_of(&arguments[0])?)? {
        Level::Object(members) => Ok(members),
        Level::Array(_) => Err(error("an array")),
        Level::Scalar(_) => Err(error("a scalar")),
    }
}

fn json_keys(arguments: &[Value], name: &str) -> Result<Vec<Value>> {
    let members = members(arguments, name)?;
    memory::require(members.len() * size_of::<Value>())?;
    Ok(members.into_iter().map(|(key, _)| Value::Text(key)).collect())
}

fn json_values(arguments: &[Value], as_text: bool) -> Result<Vec<Value>> {
    let members = members(arguments, "json_each")?;
    members
        .into_iter()
        .map(|(_, piece)| json_value(piece, as_text))
        .collect()
}

fn jsonb_keys(arguments: &[Value], name: &str) -> Result<Vec<Value>> {
    let json = jsonb_of(&arguments[0])?;
    match (json.kind(), name) {
        (Kind::Object, _) => {}
        (Kind::Array, "jsonb_object_keys") => return Err(invalid(format!("cannot call {name} on an array"))),
        (_, "jsonb_object_keys") => return Err(invalid(format!("cannot call {name} on a scalar"))),
        _ => return Err(invalid(format!("cannot call {name} on a non-object"))),
    }
    memory::require(json.count() * size_of::<Value>())?;
    Ok(json.members().map(|(key, _)| Value::text(key)).collect())
}

fn jsonb_values(arguments: &[Value], as_text: bool) -> Result<Vec<Value>> {
    Ok(jsonb_of(&arguments[0])?
        .elements()
        .map(|value| value_of(value, as_text))
        .collect())
}
