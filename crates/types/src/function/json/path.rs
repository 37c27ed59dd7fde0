//! Functions and operators of SQL/JSON paths.

use super::{jsonb_of, owned};
use crate::error::{EngineError, Result, SqlState};
use crate::function::row::Implementation::Pure;
use crate::function::row::{FunctionRow, row};
use crate::function::text_of;
use crate::value::DataType::{Bool, JsonPath, Jsonb};
use crate::value::json::{Json, JsonbRef, Kind, Path, path_error};
use crate::value::{ArrayValue, DataType, Jsonb as JsonbValue, Value};

const JSONBS: DataType = DataType::array_of(Jsonb);

/// Rows of a function with two to four arguments, and of its form that compares times with zones.
macro_rules! forms {
    ($($oid:literal $with_zones:literal $name:literal $result:ident $code:ident;)*) => {
        &[
            row(4010, "jsonb_path_exists_opr", &[Jsonb, JsonPath], Bool, Pure(|x| silently(exists, x))).operator("@?"),
            row(4011, "jsonb_path_match_opr", &[Jsonb, JsonPath], Bool, Pure(|x| silently(matches, x))).operator("@@"),
            $(
                row($oid, $name, &[Jsonb, JsonPath], $result, Pure(|x| $code(x, false))),
                row($oid, $name, &[Jsonb, JsonPath, Jsonb], $result, Pure(|x| $code(x, false))),
                row($oid, $name, &[Jsonb, JsonPath, Jsonb, Bool], $result, Pure(|x| $code(x, false))),
                row($with_zones, concat!($name, "_tz"), &[Jsonb, JsonPath], $result, Pure(|x| $code(x, true))).stable(),
                row($with_zones, concat!($name, "_tz"), &[Jsonb, JsonPath, Jsonb], $result, Pure(|x| $code(x, true))).stable(),
                row($with_zones, concat!($name, "_tz"), &[Jsonb, JsonPath, Jsonb, Bool], $result, Pure(|x| $code(x, true))).stable(),
            )*
        ]
    };
}

/// The functions.
pub(super) static ROWS: &[FunctionRow] = forms! {
    4005 1177 "jsonb_path_exists" Bool exists;
    4009 2030 "jsonb_path_match" Bool matches;
    4006 1179 "jsonb_path_query" JSONBS all;
    4007 1180 "jsonb_path_query_array" Jsonb array;
    4008 2023 "jsonb_path_query_first" Jsonb first;
};

/// The items of a call: of value, path, and perhaps variables and the wish to be told of no error. `None` for an error
/// that is not told.
fn items(arguments: &[Value], with_zones: bool) -> Result<Option<Vec<JsonbValue>>> {
    let value = jsonb_of(&arguments[0])?;
    let path = Path::parse(text_of(&arguments[1])?)?;
    let none = owned(&Json::Object(Vec::new()))?;
    let variables = jsonb_of(arguments.get(2).unwrap_or(&none))?;
    let silent = arguments.get(3).and_then(Value::as_bool) == Some(true);
    match path.find(value, variables, with_zones) {
        Ok(items) => Ok(Some(items)),
        Err(error) if silent && error.can_silent() => Ok(None),
        Err(error) => Err(path_error(&error)),
    }
}

/// An operator: the function, told of no error.
fn silently(call: fn(&[Value], bool) -> Result<Value>, arguments: &[Value]) -> Result<Value> {
    let none = owned(&Json::Object(Vec::new()))?;
    call(
        &[
            arguments[0].clone(),
            arguments[1].clone(),
            none,
            Value::Bool(true),
        ],
        false,
    )
}

fn exists(arguments: &[Value], with_zones: bool) -> Result<Value> {
    let items = items(arguments, with_zones)?;
    Ok(items.map_or(Value::Null, |items| Value::Bool(!items.is_empty())))
}

fn matches(arguments: &[Value], with_zones: bool) -> Result<Value> {
    let silent = arguments.get(3).and_then(Value::as_bool) == Some(true);
    let Some(items) = items(arguments, with_zones)? else {
        return Ok(Value::Null);
    };
    if let [only] = items.as_slice() {
        let only: JsonbRef<'_> = only.as_ref();
        if let (Kind::Null, _) | (_, Some(_)) = (only.kind(), only.truth()) {
            return Ok(only.truth().map_or(Value::Null, Value::Bool));
        }
    }
    match silent {
        true => Ok(Value::Null),
        false => Err(EngineError::new(
            SqlState::from_code("22038"),
            "single boolean result is expected",
        )),
    }
}

fn all(arguments: &[Value], with_zones: bool) -> Result<Value> {
    let items = items(arguments, with_zones)?.unwrap_or_default();
    ArrayValue::of(JSONBS, items.into_iter().map(Value::Jsonb).collect()).map(Value::from)
}

fn array(arguments: &[Value], with_zones: bool) -> Result<Value> {
    let items = items(arguments, with_zones)?.unwrap_or_default();
    owned(&Json::Array(
        items.iter().map(|item| item.as_ref().tree()).collect(),
    ))
}

fn first(arguments: &[Value], with_zones: bool) -> Result<Value> {
    let items = items(arguments, with_zones)?.unwrap_or_default();
    Ok(items.into_iter().next().map_or(Value::Null, Value::Jsonb))
}
