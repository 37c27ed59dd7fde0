//! System columns: what a version of a row says of itself beside its columns.
//!
//! A statement that reads one has the version's place among the values of its row; each column is a function of the place.
//! No call can name these functions.

use super::Function;
use super::row::{FunctionRow, Implementation, row};
use crate::context::{RowVersion, SessionFacts};
use crate::error::{EngineError, Result};
use crate::value::place::place_of;
use crate::value::{DataType, Value};

static COLUMNS: [(&str, FunctionRow); 5] = [
    (
        "ctid",
        row(0, "ctid_of", &[], DataType::Tid, Implementation::Pure(ctid)),
    ),
    (
        "xmin",
        stored("xmin_of", DataType::Xid, |arguments, session| {
            fact(arguments, session, |version| version.xmin as u32)
        }),
    ),
    (
        "xmax",
        stored("xmax_of", DataType::Xid, |arguments, session| {
            fact(arguments, session, |version| version.xmax as u32)
        }),
    ),
    (
        "cmin",
        stored("cmin_of", DataType::Cid, |arguments, session| {
            fact(arguments, session, |version| version.cmin)
        }),
    ),
    (
        "cmax",
        stored("cmax_of", DataType::Cid, |arguments, session| {
            fact(arguments, session, |version| version.cmax)
        }),
    ),
];

const fn stored(
    name: &'static str,
    data_type: DataType,
    implementation: fn(&[Value], &dyn SessionFacts) -> Result<Value>,
) -> FunctionRow {
    row(0, name, &[], data_type, Implementation::Session(implementation)).stable()
}

/// The function that gives a system column of the version at a place (`ctid`), or at a place of the table of a number (the
/// others); `None` if no column has that name.
pub fn system_column(name: &str) -> Option<Function> {
    let mut columns = COLUMNS.iter();
    let found = columns.find(|(column, _)| *column == name)?;
    Some(Function::of_row(&found.1))
}

fn not_a_place() -> EngineError {
    EngineError::internal("a system column of something that is no place")
}

fn ctid(arguments: &[Value]) -> Result<Value> {
    let (block, slot) = arguments.first().and_then(place_of).ok_or_else(not_a_place)?;
    Ok(Value::Tid(block, slot))
}

fn fact(
    arguments: &[Value],
    session: &dyn SessionFacts,
    of: impl FnOnce(&RowVersion) -> u32,
) -> Result<Value> {
    let [place, Value::Oid(table)] = arguments else {
        return Err(not_a_place());
    };
    let place = place_of(place).ok_or_else(not_a_place)?;
    let version = session.row_version(*table, place)?;
    Ok(version.map_or(Value::Null, |version| Value::Oid(of(&version))))
}
