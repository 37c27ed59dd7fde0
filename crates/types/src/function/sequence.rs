//! Functions of sequences: `nextval`, `setval`, `currval`, `lastval`.

use super::names::relation_argument;
use super::row::Implementation::Session;
use super::row::{FunctionRow, row};
use crate::context::SessionFacts;
use crate::error::{EngineError, Result};
use crate::value::DataType::{Bool, Int8, Oid, Text};
use crate::value::Value;

/// The functions. A sequence is given by its number or by its name.
pub(super) static ROWS: &[FunctionRow] = &[
    row(1574, "nextval", &[Oid], Int8, Session(next)).volatile(),
    row(0, "nextval", &[Text], Int8, Session(next)).volatile(),
    row(1575, "currval", &[Oid], Int8, Session(current)).volatile(),
    row(0, "currval", &[Text], Int8, Session(current)).volatile(),
    row(2559, "lastval", &[], Int8, Session(last)).volatile(),
    row(1576, "setval", &[Oid, Int8], Int8, Session(set)).volatile(),
    row(0, "setval", &[Text, Int8], Int8, Session(set)).volatile(),
    row(1765, "setval", &[Oid, Int8, Bool], Int8, Session(set)).volatile(),
    row(0, "setval", &[Text, Int8, Bool], Int8, Session(set)).volatile(),
    row(4032, "pg_sequence_last_value", &[Oid], Int8, Session(last_of)).volatile(),
    row(0, "pg_sequence_last_value", &[Text], Int8, Session(last_of)).volatile(),
];

fn next(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let catalog = session.catalog()?;
    let sequence = relation_argument(&arguments[0], catalog)?;
    catalog.next_value(sequence).map(Value::Int8)
}

fn current(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let catalog = session.catalog()?;
    let sequence = relation_argument(&arguments[0], catalog)?;
    catalog.current_value(Some(sequence)).map(Value::Int8)
}

fn last(_: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    session.catalog()?.current_value(None).map(Value::Int8)
}

fn set(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let catalog = session.catalog()?;
    let sequence = relation_argument(&arguments[0], catalog)?;
    let Value::Int8(value) = arguments[1] else {
        return Err(EngineError::internal("setval of no bigint"));
    };
    let is_called = arguments.get(2).and_then(Value::as_bool) != Some(false);
    catalog.set_value(sequence, value, is_called).map(Value::Int8)
}

fn last_of(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let catalog = session.catalog()?;
    let sequence = relation_argument(&arguments[0], catalog)?;
    Ok(catalog
        .sequence_last_value(sequence)?
        .map_or(Value::Null, Value::Int8))
}
