//! Comments on objects: `obj_description` and its kin.

use super::catalog::{oid_of, optional};
use super::row::Implementation::Session;
use super::row::{FunctionRow, row};
use crate::context::SessionFacts;
use crate::error::Result;
use crate::object_address::ObjectAddress;
use crate::value::DataType::{Int4, Name, Oid, Text};
use crate::value::Value;

/// The functions.
pub(super) static ROWS: &[FunctionRow] = &[
    row(1348, "obj_description", &[Oid], Text, Session(of_any)).stable(),
    row(
        1215,
        "obj_description",
        &[Oid, Name],
        Text,
        Session(|x, s| of_catalog(x, s, false)),
    )
    .stable(),
    row(1216, "col_description", &[Oid, Int4], Text, Session(of_column)).stable(),
    row(
        1993,
        "shobj_description",
        &[Oid, Name],
        Text,
        Session(|x, s| of_catalog(x, s, true)),
    )
    .stable(),
];

/// Of the object of this number in any catalog.
fn of_any(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let object = oid_of(&arguments[0])?;
    Ok(optional(session.catalog()?.any_comment(object)))
}

fn of_catalog(arguments: &[Value], session: &dyn SessionFacts, shared: bool) -> Result<Value> {
    let catalog = session.catalog()?;
    let Some(number) = arguments[1]
        .as_str()
        .and_then(|name| catalog.relation_oid(Some("pg_catalog"), name))
    else {
        return Ok(Value::Null);
    };
    let on = ObjectAddress::new(number, oid_of(&arguments[0])?);
    let found = Some(on).filter(|on| on.is_shared() == shared);
    Ok(optional(found.and_then(|on| catalog.comment(on))))
}

fn of_column(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let Value::Int4(column) = arguments[1] else {
        return Ok(Value::Null);
    };
    let on = ObjectAddress {
        column,
        ..ObjectAddress::relation(oid_of(&arguments[0])?)
    };
    Ok(optional(session.catalog()?.comment(on)))
}
