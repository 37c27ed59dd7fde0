//! A key of ORDER BY over the columns of a row.

use std::cmp::Ordering;

use crate::value::{DataType, Value, compare};

/// One ORDER BY key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortKey {
    /// Position in the output row.
    pub column: usize,
    /// That column's type.
    pub data_type: DataType,
    /// DESC
    pub descending: bool,
    /// NULLs before all other values.
    pub nulls_first: bool,
}

impl SortKey {
    /// The order of two values of the column.
    pub fn compare(&self, left: &Value, right: &Value) -> Ordering {
        match (left.is_null(), right.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) if self.nulls_first => Ordering::Less,
            (true, false) => Ordering::Greater,
            (false, true) if self.nulls_first => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) if self.descending => compare(right, left, self.data_type),
            (false, false) => compare(left, right, self.data_type),
        }
    }
}
