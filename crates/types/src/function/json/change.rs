//! A `jsonb` changed: joined with another, without a part, with a part replaced.
//!
//! Each function makes the value's tree, changes it, and writes the tree.

use super::extract::index;
use super::{invalid, jsonb_of, owned, place, texts_of};
use crate::error::{EngineError, Result, SqlState};
use crate::function::row::Implementation::Pure;
use crate::function::row::{FunctionRow, row};
use crate::function::{int, text_of};
use crate::value::DataType::{Bool, Int4, Jsonb, Text};
use crate::value::json::Json;
use crate::value::{DataType, Value};

const TEXTS: DataType = DataType::array_of(Text);

/// The functions.
pub(super) static ROWS: &[FunctionRow] = &[
    row(3301, "jsonb_concat", &[Jsonb, Jsonb], Jsonb, Pure(concatenated)).operator("||"),
    row(3302, "jsonb_delete", &[Jsonb, Text], Jsonb, Pure(without_key)).operator("-"),
    row(3303, "jsonb_delete", &[Jsonb, Int4], Jsonb, Pure(without_element)).operator("-"),
    row(3343, "jsonb_delete", &[Jsonb, TEXTS], Jsonb, Pure(without_keys)).operator("-"),
    row(
        3304,
        "jsonb_delete_path",
        &[Jsonb, TEXTS],
        Jsonb,
        Pure(without_path),
    )
    .operator("#-"),
    row(3305, "jsonb_set", &[Jsonb, TEXTS, Jsonb], Jsonb, Pure(set)),
    row(3305, "jsonb_set", &[Jsonb, TEXTS, Jsonb, Bool], Jsonb, Pure(set)),
    row(
        5054,
        "jsonb_set_lax",
        &[Jsonb, TEXTS, Jsonb],
        Jsonb,
        Pure(set_lax),
    )
    .called_on_null(),
    row(
        5054,
        "jsonb_set_lax",
        &[Jsonb, TEXTS, Jsonb, Bool],
        Jsonb,
        Pure(set_lax),
    )
    .called_on_null(),
    row(
        5054,
        "jsonb_set_lax",
        &[Jsonb, TEXTS, Jsonb, Bool, Text],
        Jsonb,
        Pure(set_lax),
    )
    .called_on_null(),
    row(3579, "jsonb_insert", &[Jsonb, TEXTS, Jsonb], Jsonb, Pure(insert)),
    row(
        3579,
        "jsonb_insert",
        &[Jsonb, TEXTS, Jsonb, Bool],
        Jsonb,
        Pure(insert),
    ),
];

fn concatenated(arguments: &[Value]) -> Result<Value> {
    let (left, right) = (jsonb_of(&arguments[0])?, jsonb_of(&arguments[1])?);
    let elements = |tree: Json| match tree {
        Json::Array(elements) => elements,
        other => vec![other],
    };
    owned(&match (left.tree(), right.tree()) {
        (Json::Object(mut left), Json::Object(right)) => {
            left.extend(right);
            Json::Object(left)
        }
        (left, right) => {
            let mut both = elements(left);
            both.extend(elements(right));
            Json::Array(both)
        }
    })
}

/// The tree of a value that is an array or an object; 22023 otherwise.
fn container(value: &Value) -> Result<Json> {
    let json = jsonb_of(value)?;
    match json.is_scalar() {
        true => Err(invalid("cannot delete from scalar")),
        false => Ok(json.tree()),
    }
}

fn without_key(arguments: &[Value]) -> Result<Value> {
    let mut tree = container(&arguments[0])?;
    remove_keys(&mut tree, &[text_of(&arguments[1])?]);
    owned(&tree)
}

fn without_keys(arguments: &[Value]) -> Result<Value> {
    let mut tree = container(&arguments[0])?;
    let keys: Vec<&str> = texts_of(&arguments[1])?.flatten().collect();
    remove_keys(&mut tree, &keys);
    owned(&tree)
}

fn remove_keys(tree: &mut Json, keys: &[&str]) {
    match tree {
        Json::Object(members) => members.retain(|(key, _)| !keys.contains(&&**key)),
        Json::Array(elements) => elements.retain(|element| match element {
            Json::String(text) => !keys.contains(&&**text),
            _ => true,
        }),
        _ => {}
    }
}

fn without_element(arguments: &[Value]) -> Result<Value> {
    let mut tree = container(&arguments[0])?;
    match &mut tree {
        Json::Array(elements) => {
            if let Some(place) = place(i64::from(int(&arguments[1])?), elements.len()) {
                elements.remove(place);
            }
        }
        _ => return Err(invalid("cannot delete from object using integer index")),
    }
    owned(&tree)
}

/// The purpose of going along a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Delete,
    /// Replaces what is there; puts it there if there is nothing, if so asked.
    Set {
        create: bool,
    },
    /// Puts it in front of an element, or behind it, or at a key that is not there.
    Insert {
        after: bool,
    },
    /// An assignment to `column[…]`: puts it there, and makes what is missing on the way.
    Fill,
}

/// A path: its steps, of which none is NULL.
fn path(value: &Value) -> Result<Vec<&str>> {
    let steps = texts_of(value)?.enumerate().map(|(at, step)| {
        step.ok_or_else(|| {
            EngineError::new(
                SqlState::NULL_VALUE_NOT_ALLOWED,
                format!("path element at position {} is null", at + 1),
            )
        })
    });
    steps.collect()
}

fn without_path(arguments: &[Value]) -> Result<Value> {
    let json = jsonb_of(&arguments[0])?;
    if json.is_scalar() {
        return Err(invalid("cannot delete path in scalar"));
    }
    changed(&arguments[0], &path(&arguments[1])?, Json::Null, Purpose::Delete)
}

fn set(arguments: &[Value]) -> Result<Value> {
    let create = arguments
        .get(3)
        .is_none_or(|create| create.as_bool() == Some(true));
    set_at(arguments, create)
}

fn set_at(arguments: &[Value], create: bool) -> Result<Value> {
    if jsonb_of(&arguments[0])?.is_scalar() {
        return Err(invalid("cannot set path in scalar"));
    }
    let new = jsonb_of(&arguments[2])?.tree();
    changed(&arguments[0], &path(&arguments[1])?, new, Purpose::Set { create })
}

fn set_lax(arguments: &[Value]) -> Result<Value> {
    let treatments = "\"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\"";
    let treatment = match arguments.get(4) {
        Some(treatment) => treatment.as_str(),
        None => Some("use_json_null"),
    };
    if arguments[..2].iter().chain(arguments.get(3)).any(Value::is_null) {
        return Ok(Value::Null);
    }
    let Some(treatment) = treatment else {
        return Err(invalid(format!("null_value_treatment must be {treatments}")));
    };
    let create = arguments
        .get(3)
        .is_none_or(|create| create.as_bool() == Some(true));
    if !arguments[2].is_null() {
        return set_at(arguments, create);
    }
    match treatment {
        "raise_exception" => Err(
            EngineError::new(SqlState::NULL_VALUE_NOT_ALLOWED, "JSON value must not be null")
                .with_detail("Exception was raised because null_value_treatment is \"raise_exception\".")
                .with_hint(
                    "To avoid, either change the null_value_treatment argument or ensure that an SQL NULL is not passed.",
                ),
        ),
        "return_target" => Ok(arguments[0].clone()),
        "delete_key" => without_path(&arguments[..2]),
        "use_json_null" => {
            let null = owned(&Json::Null)?;
            set_at(&[arguments[0].clone(), arguments[1].clone(), null], create)
        }
        _ => Err(invalid(format!("null_value_treatment must be {treatments}"))),
    }
}

fn insert(arguments: &[Value]) -> Result<Value> {
    if jsonb_of(&arguments[0])?.is_scalar() {
        return Err(invalid("cannot set path in scalar"));
    }
    let after = arguments.get(3).and_then(Value::as_bool).unwrap_or(false);
    let new = jsonb_of(&arguments[2])?.tree();
    changed(
        &arguments[0],
        &path(&arguments[1])?,
        new,
        Purpose::Insert { after },
    )
}

/// `column[…] = new`: the `jsonb`, or NULL for nothing yet; the new part, NULL for null; the path.
pub(crate) fn assign_part(arguments: &[Value]) -> Result<Value> {
    let steps = texts_of(&arguments[2])?.map(|step| {
        step.ok_or_else(|| {
            EngineError::new(
                SqlState::NULL_VALUE_NOT_ALLOWED,
                "jsonb subscript in assignment must not be null",
            )
        })
    });
    let steps = steps.collect::<Result<Vec<_>>>()?;
    let new = match &arguments[1] {
        Value::Null => Json::Null,
        new => jsonb_of(new)?.tree(),
    };
    match &arguments[0] {
        Value::Null => owned(&filled(&steps, new)),
        value => changed(value, &steps, new, Purpose::Fill),
    }
}

fn changed(value: &Value, steps: &[&str], new: Json, purpose: Purpose) -> Result<Value> {
    let mut tree = jsonb_of(value)?.tree();
    if steps.is_empty() {
        return Ok(value.clone());
    }
    change(&mut tree, steps, 0, new, purpose)?;
    owned(&tree)
}

/// Changes a tree at the steps of a path from `at` on.
fn change(tree: &mut Json, steps: &[&str], at: usize, new: Json, purpose: Purpose) -> Result<()> {
    let Some(step) = steps.get(at) else {
        return Ok(());
    };
    let is_last = at + 1 == steps.len();
    match tree {
        Json::Object(members) => match members.iter().position(|(key, _)| **key == **step) {
            Some(found) if is_last => change_member(members, found, new, purpose),
            Some(found) => change(&mut members[found].1, steps, at + 1, new, purpose),
            None => {
                add_member(members, step, at, (steps, new), purpose);
                Ok(())
            }
        },
        Json::Array(elements) => {
            let Some(index) = index(step) else {
                return Err(EngineError::new(
                    SqlState::INVALID_TEXT_REPRESENTATION,
                    format!(
                        "path element at position {} is not an integer: \"{step}\"",
                        at + 1
                    ),
                ));
            };
            match place(index, elements.len()) {
                Some(found) if is_last => {
                    change_element(elements, found, new, purpose);
                    Ok(())
                }
                Some(found) => change(&mut elements[found], steps, at + 1, new, purpose),
                None => add_element(elements, index, at, (steps, new), purpose),
            }
        }
        _ if purpose == Purpose::Fill => Err(EngineError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "cannot replace existing key",
        )
        .with_detail("The path assumes key is a composite object, but it is a scalar value.")),
        _ => Ok(()),
    }
}

fn change_member(
    members: &mut Vec<(Box<str>, Json)>,
    found: usize,
    new: Json,
    purpose: Purpose,
) -> Result<()> {
    match purpose {
        Purpose::Delete => {
            members.remove(found);
        }
        Purpose::Set { .. } | Purpose::Fill => members[found].1 = new,
        Purpose::Insert { .. } => {
            return Err(invalid("cannot replace existing key")
                .with_hint("Try using the function jsonb_set to replace key value."));
        }
    }
    Ok(())
}

fn change_element(elements: &mut Vec<Json>, found: usize, new: Json, purpose: Purpose) {
    match purpose {
        Purpose::Delete => {
            elements.remove(found);
        }
        Purpose::Set { .. } | Purpose::Fill => elements[found] = new,
        Purpose::Insert { after } => elements.insert(found + usize::from(after), new),
    }
}

/// The value for the missing rest of a path: arrays where a step is a number, otherwise objects.
fn filled(steps: &[&str], new: Json) -> Json {
    steps.iter().rev().fold(new, |inner, step| match index(step) {
        Some(index) => {
            let mut elements = vec![Json::Null; usize::try_from(index).unwrap_or(0)];
            elements.push(inner);
            Json::Array(elements)
        }
        None => Json::Object(vec![((*step).into(), inner)]),
    })
}

fn add_member(
    members: &mut Vec<(Box<str>, Json)>,
    key: &str,
    at: usize,
    (steps, new): (&[&str], Json),
    purpose: Purpose,
) {
    let is_last = at + 1 == steps.len();
    let new = match purpose {
        Purpose::Set { create: true } | Purpose::Insert { .. } if is_last => new,
        Purpose::Fill => filled(&steps[at + 1..], new),
        _ => return,
    };
    members.push((key.into(), new));
}

fn add_element(
    elements: &mut Vec<Json>,
    index: i64,
    at: usize,
    (steps, new): (&[&str], Json),
    purpose: Purpose,
) -> Result<()> {
    let is_last = at + 1 == steps.len();
    match purpose {
        Purpose::Set { create: true } | Purpose::Insert { .. } if is_last => match index < 0 {
            true => elements.insert(0, new),
            false => elements.push(new),
        },
        Purpose::Fill if index < 0 => {
            return Err(EngineError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("path element at position {} is out of range: {index}", at + 1),
            ));
        }
        Purpose::Fill => {
            crate::function::check_length(usize::try_from(index).unwrap_or(usize::MAX))?;
            elements.resize(usize::try_from(index).unwrap_or(0), Json::Null);
            elements.push(filled(&steps[at + 1..], new));
        }
        _ => {}
    }
    Ok(())
}
