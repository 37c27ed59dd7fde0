//! Functions of `uuid`.

use super::row::Implementation::Session;
use super::row::{FunctionRow, row};
use crate::context::SessionFacts;
use crate::error::Result;
use crate::value::DataType::Uuid;
use crate::value::Value;

/// The functions.
pub(super) static ROWS: &[FunctionRow] =
    &[row(3432, "gen_random_uuid", &[], Uuid, Session(random)).volatile()];

/// A uuid of version 4: random but for the bits that say so.
fn random(_: &[Value], session: &dyn SessionFacts) -> Result<Value> {
    let mut bytes = session.random_bytes()?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Ok(Value::Uuid(bytes))
}
