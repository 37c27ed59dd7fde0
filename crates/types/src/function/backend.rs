//! Functions about other sessions: those that block one, and the end of a statement or of a session.

use std::time::Duration;

use super::int;
use super::row::Implementation::Session;
use super::row::{FunctionRow, row};
use crate::context::SessionFacts;
use crate::error::{EngineError, Result, SqlState};
use crate::value::DataType::{Bool, Int4, Int8};
use crate::value::{ArrayValue, DataType, Value};

/// The functions.
pub(super) static ROWS: &[FunctionRow] = &[
    row(2561, "pg_blocking_pids", &[Int4], NUMBERS, Session(blocking)).volatile(),
    row(
        3376,
        "pg_safe_snapshot_blocking_pids",
        &[Int4],
        NUMBERS,
        Session(blocking_a_safe_snapshot),
    )
    .volatile(),
    row(2171, "pg_cancel_backend", &[Int4], Bool, Session(cancel)).volatile(),
    row(0, "pg_terminate_backend", &[Int4], Bool, Session(terminate)).volatile(),
    row(
        2096,
        "pg_terminate_backend",
        &[Int4, Int8],
        Bool,
        Session(terminate),
    )
    .volatile(),
];

const NUMBERS: DataType = DataType::array_of(Int4);

fn numbers(numbers: Vec<i32>) -> Result<Value> {
    let numbers = numbers.into_iter().map(Value::Int4).collect();
    Ok(ArrayValue::of(NUMBERS, numbers)?.into())
}

fn blocking(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    numbers(session.blocking_pids(int(&arguments[0])?))
}

fn blocking_a_safe_snapshot(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    numbers(session.safe_snapshot_blocking_pids(int(&arguments[0])?))
}

fn cancel(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    session.cancel_backend(int(&arguments[0])?).map(Value::Bool)
}

fn terminate(arguments: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let patience = match arguments.get(1) {
        None | Some(Value::Int8(0)) => None,
        Some(Value::Int8(milliseconds)) => match u64::try_from(*milliseconds) {
            Ok(milliseconds) => Some(Duration::from_millis(milliseconds)),
            Err(_) => {
                return Err(EngineError::new(
                    SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                    "\"timeout\" must not be negative",
                ));
            }
        },
        Some(other) => return Err(EngineError::internal(format!("{other:?} is no time"))),
    };
    session
        .terminate_backend(int(&arguments[0])?, patience)
        .map(Value::Bool)
}
