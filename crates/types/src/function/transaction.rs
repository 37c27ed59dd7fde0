//! Functions about the running transaction.

use super::row::Implementation::Session;
use super::row::{FunctionRow, row};
use crate::context::SessionFacts;
use crate::error::{EngineError, Result};
use crate::value::DataType::Int8;
use crate::value::Value;

/// The number of the function that needs an id. A statement that calls it gets one before it runs.
pub(super) const TXID_CURRENT: u32 = 2943;

/// The functions.
pub(super) static ROWS: &[FunctionRow] = &[
    row(TXID_CURRENT, "txid_current", &[], Int8, Session(current)).stable(),
    row(
        3348,
        "txid_current_if_assigned",
        &[],
        Int8,
        Session(current_if_assigned),
    )
    .stable(),
];

/// 0A000 where no statement gets an id for it: in an argument of EXECUTE.
fn current(_: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    match session.transaction_id() {
        Some(id) => Ok(Value::Int8(id.cast_signed())),
        None => Err(EngineError::not_supported(
            "txid_current() in an argument of EXECUTE",
        )),
    }
}

fn current_if_assigned(_: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let id = session.transaction_id();
    Ok(id.map_or(Value::Null, |id| Value::Int8(id.cast_signed())))
}
