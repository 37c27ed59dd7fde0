//! Rules of an index's key that constraints and CREATE INDEX share.

use crate::error::{EngineError, SqlState};
use crate::value::DataType;

/// The most columns an index may have.
pub(super) const INDEX_COLUMNS_MAX: usize = 32;

/// 42704 for a key of a type whose values have no order.
pub(super) fn no_default_class(data_type: DataType) -> EngineError {
    EngineError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("data type {data_type} has no default operator class for access method \"btree\""),
    )
    .with_hint(
        "You must specify an operator class for the index or define a default operator class for the data type.",
    )
}
