//! Privileges as lists: the default ones of an object, which its owner has and everybody.

use super::row::Implementation::Session;
use super::row::{FunctionRow, row};
use crate::context::SessionFacts;
use crate::error::{EngineError, Result, SqlState};
use crate::function::quote_identifier;
use crate::value::DataType::{AclItem, CharByte, Oid};
use crate::value::{ArrayValue, DataType, Value};

/// The functions.
pub(super) static ROWS: &[FunctionRow] = &[row(
    3943,
    "acldefault",
    &[CharByte, Oid],
    DataType::array_of(AclItem),
    Session(default_privileges),
)];

/// The kinds of objects by their letters, with the privileges of everybody and of the owner.
const DEFAULTS: [(char, &str, &str); 13] = [
    ('c', "", ""),
    ('r', "", "arwdDxt"),
    ('s', "", "rwU"),
    ('d', "Tc", "CTc"),
    ('f', "X", "X"),
    ('l', "U", "U"),
    ('L', "", "rw"),
    ('n', "", "UC"),
    ('p', "", "sA"),
    ('t', "", "C"),
    ('F', "", "U"),
    ('S', "", "U"),
    ('T', "U", "U"),
];

fn default_privileges(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let (letter, owner) = match arguments {
        [kind, Value::Oid(owner)] => (kind.as_str().and_then(|text| text.chars().next()), *owner),
        _ => return Ok(Value::Null),
    };
    let found = DEFAULTS.iter().find(|(known, _, _)| Some(*known) == letter);
    let Some((_, everybody, of_owner)) = found else {
        return Err(EngineError::new(
            SqlState::INTERNAL_ERROR,
            format!(
                "unrecognized objtype abbreviation: {}",
                letter.map(String::from).unwrap_or_default()
            ),
        ));
    };
    let name = session
        .catalog()
        .ok()
        .and_then(|catalog| catalog.role_name(owner));
    let owner = name.map_or_else(|| owner.to_string(), |name| quote_identifier(&name));
    let mut items = Vec::new();
    if !everybody.is_empty() {
        items.push(Value::text(format!("={everybody}/{owner}")));
    }
    if !of_owner.is_empty() {
        // Zero is everybody, who has no name in front.
        let holder = if owner == "0" { "" } else { &owner };
        items.push(Value::text(format!("{holder}={of_owner}/{owner}")));
    }
    ArrayValue::of(DataType::array_of(AclItem), items).map(Value::from)
}
