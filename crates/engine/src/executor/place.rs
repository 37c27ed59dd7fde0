//! The place of a table's row as a value of a row that operators work on.

use clearway_sql::value::{Value, place};
use clearway_storage::heap::Tid;

/// A place as a value.
pub(crate) fn place_value(tid: Tid) -> Value {
    place::place_value(tid.block, tid.slot)
}

/// The place of a value that [`place_value`] made.
pub(crate) fn place_of(value: &Value) -> Option<Tid> {
    let (block, slot) = place::place_of(value)?;
    Some(Tid { block, slot })
}
