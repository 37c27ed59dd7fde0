//! Questions to a `jsonb`: does it contain another, has it a key.

use super::{jsonb_of, texts_of};
use crate::error::Result;
use crate::function::row::Implementation::OfTwo;
use crate::function::row::{FunctionRow, row};
use crate::function::text_of;
use crate::stack;
use crate::value::DataType::{Bool, Jsonb, Text};
use crate::value::json::{JsonbRef, Kind};
use crate::value::{DataType, Value};

const TEXTS: DataType = DataType::array_of(Text);

/// The functions.
pub(super) static ROWS: &[FunctionRow] = &[
    row(4046, "jsonb_contains", &[Jsonb, Jsonb], Bool, OfTwo(contains)).operator("@>"),
    row(
        4050,
        "jsonb_contained",
        &[Jsonb, Jsonb],
        Bool,
        OfTwo(|inner, outer| contains(outer, inner)),
    )
    .operator("<@"),
    row(4047, "jsonb_exists", &[Jsonb, Text], Bool, OfTwo(exists)).operator("?"),
    row(4048, "jsonb_exists_any", &[Jsonb, TEXTS], Bool, OfTwo(exists_any)).operator("?|"),
    row(4049, "jsonb_exists_all", &[Jsonb, TEXTS], Bool, OfTwo(exists_all)).operator("?&"),
];

fn contains(outer: &Value, inner: &Value) -> Result<Value> {
    let (outer, inner) = (jsonb_of(outer)?, jsonb_of(inner)?);
    let truth = match (outer.kind(), inner.is_scalar()) {
        // An array contains a scalar that is one of its elements.
        (Kind::Array, true) => has_scalar(outer, inner),
        _ => contains_in(outer, inner),
    };
    Ok(Value::Bool(truth))
}

fn has_scalar(array: JsonbRef<'_>, scalar: JsonbRef<'_>) -> bool {
    array.elements().any(|element| equal_scalars(element, scalar))
}

fn equal_scalars(left: JsonbRef<'_>, right: JsonbRef<'_>) -> bool {
    left.is_scalar() && right.is_scalar() && left.order(right).is_eq()
}

/// Of two values of one kind: an object contains one whose members it contains, an array one whose elements it has.
fn contains_in(outer: JsonbRef<'_>, inner: JsonbRef<'_>) -> bool {
    match (outer.kind(), inner.kind()) {
        (Kind::Object, Kind::Object) => stack::checkpoint(|| {
            let mut members = inner.members();
            members.all(|(key, value)| outer.get(key).is_some_and(|found| contains_in(found, value)))
        }),
        (Kind::Array, Kind::Array) => stack::checkpoint(|| {
            inner.elements().all(|element| match element.is_scalar() {
                true => has_scalar(outer, element),
                false => outer
                    .elements()
                    .any(|found| !found.is_scalar() && contains_in(found, element)),
            })
        }),
        _ => equal_scalars(outer, inner),
    }
}

/// True if a text is a key of an object, an element of an array, or the string itself.
fn has(json: JsonbRef<'_>, wanted: &str) -> bool {
    match json.kind() {
        Kind::Object => json.get(wanted).is_some(),
        Kind::Array => json.elements().any(|element| element.text() == Some(wanted)),
        _ => json.text() == Some(wanted),
    }
}

fn exists(json: &Value, key: &Value) -> Result<Value> {
    let json = jsonb_of(json)?;
    Ok(Value::Bool(has(json, text_of(key)?)))
}

fn exists_any(json: &Value, keys: &Value) -> Result<Value> {
    let json = jsonb_of(json)?;
    let mut wanted = texts_of(keys)?.flatten();
    Ok(Value::Bool(wanted.any(|wanted| has(json, wanted))))
}

fn exists_all(json: &Value, keys: &Value) -> Result<Value> {
    let json = jsonb_of(json)?;
    let mut wanted = texts_of(keys)?.flatten();
    Ok(Value::Bool(wanted.all(|wanted| has(json, wanted))))
}
