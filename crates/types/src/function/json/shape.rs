//! The same value in another shape: without nulls, or written over lines.

use super::{json_of, jsonb_of, owned};
use crate::error::Result;
use crate::function::row::Implementation::Pure;
use crate::function::row::{FunctionRow, row};
use crate::stack;
use crate::value::DataType::{Json, Jsonb, Text};
use crate::value::Value;
use crate::value::json::{self, Level, level, push_string, write_pretty};

/// The functions.
pub(super) static ROWS: &[FunctionRow] = &[
    row(3261, "json_strip_nulls", &[Json], Json, Pure(json_without_nulls)),
    row(3262, "jsonb_strip_nulls", &[Jsonb], Jsonb, Pure(without_nulls)),
    row(3306, "jsonb_pretty", &[Jsonb], Text, Pure(pretty)),
];

fn json_without_nulls(arguments: &[Value]) -> Result<Value> {
    let mut out = String::new();
    strip_piece(json_of(&arguments[0])?, &mut out)?;
    Ok(Value::Json(out.into()))
}

/// Appends the piece without the members that are null, and without blanks.
fn strip_piece(piece: &str, out: &mut String) -> Result<()> {
    let separate = |out: &mut String| {
        if !out.ends_with(['[', '{']) {
            out.push(',');
        }
    };
    stack::checkpoint(|| {
        match level(piece)? {
            Level::Scalar(piece) => match json::parse(piece)? {
                json::Json::String(text) => push_string(&text, out),
                _ => out.push_str(piece),
            },
            Level::Array(elements) => {
                out.push('[');
                for element in elements {
                    separate(out);
                    strip_piece(element, out)?;
                }
                out.push(']');
            }
            Level::Object(members) => {
                out.push('{');
                for (key, value) in members.into_iter().filter(|(_, value)| *value != "null") {
                    separate(out);
                    push_string(&key, out);
                    out.push(':');
                    strip_piece(value, out)?;
                }
                out.push('}');
            }
        }
        Ok(())
    })
}

fn without_nulls(arguments: &[Value]) -> Result<Value> {
    owned(&stripped(jsonb_of(&arguments[0])?.tree()))
}

fn stripped(tree: json::Json) -> json::Json {
    stack::checkpoint(|| match tree {
        json::Json::Array(elements) => json::Json::Array(elements.into_iter().map(stripped).collect()),
        json::Json::Object(members) => json::Json::Object(
            members
                .into_iter()
                .filter(|(_, value)| *value != json::Json::Null)
                .map(|(key, value)| (key, stripped(value)))
                .collect(),
        ),
        other => other,
    })
}

fn pretty(arguments: &[Value]) -> Result<Value> {
    let mut out = String::new();
    write_pretty(jsonb_of(&arguments[0])?, &mut out)?;
    Ok(Value::text(out))
}
