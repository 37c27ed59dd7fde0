//! Functions about the running transaction.

use super::row::Implementation::Session;
use super::row::{FunctionRow, row};
use crate::context::SessionFacts;
use crate::error::Result;
use crate::value::DataType::Int8;
use crate::value::Value;

/// The functions.
pub(super) static ROWS: &[FunctionRow] = &[
    row(2943, "txid_current", &[], Int8, Session(current)).stable(),
    row(
        3348,
        "txid_current_if_assigned",
        &[],
        Int8,
        Session(current_if_assigned),
    )
    .stable(),
];

fn current(_: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let id = session.assigned_transaction_id()?;
    Ok(Value::Int8(id.cast_signed()))
}

fn current_if_assigned(_: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let id = session.transaction_id();
    Ok(id.map_or(Value::Null, |id| Value::Int8(id.cast_signed())))
}
