//! A query whose answer is one number.

use clearway_engine::{Collected, EngineError, Session, Value};

/// The number that a query answers in a session.
pub(super) fn one_number(session: &mut Session, sql: &str) -> Result<i64, EngineError> {
    let mut out = Collected::default();
    session.execute_simple(sql, &mut out)?;
    number_of(sql, &out.rows)
}

/// The number that is the answer to `sql`; 0 for NULL, which the sum of no rows is.
pub(super) fn number_of(sql: &str, rows: &[Vec<Value>]) -> Result<i64, EngineError> {
    let wrong =
        |what: String| EngineError::internal(format!("{sql} gave {what} where a number was expected"));
    match rows.first().and_then(|row| row.first()) {
        Some(Value::Null) => Ok(0),
        Some(Value::Int2(number)) => Ok(i64::from(*number)),
        Some(Value::Int4(number)) => Ok(i64::from(*number)),
        Some(Value::Int8(number)) => Ok(*number),
        Some(other) => Err(wrong(format!("{other:?}"))),
        None => Err(wrong("no row".to_owned())),
    }
}
