//! Statistics of a table's columns: what ANALYZE finds in a sample of the rows, and what the planner's estimates rest on.
//!
//! | module | job |
//! | --- | --- |
//! | `sample` | which rows of a table are looked at |
//! | `column` | from the values of a column in the sample to its statistics |
//! | `width` | the bytes of a value as PostgreSQL stores it |

mod column;
mod sample;
mod width;

use crate::value::{DataType, Value};

pub use column::{ColumnSample, SampledTable};
pub use sample::{BlockSample, RowSample, Seed};
pub use width::{average_width, stored_width};

/// Rows of the sample per unit of the statistics target. A histogram of k steps is within half a step of the table's, at
/// 99 in 100, with about 305 k rows (Chaudhuri, Motwani and Narasayya 1998, for a million rows); PostgreSQL rounds that
/// to 300, and so do we.
pub const ROWS_PER_TARGET: usize = 300;

/// Values beyond so many bytes count as different from all others, and are not kept.
pub const WIDTH_MAX: usize = 1_024;

/// Statistics of a table, as of the last ANALYZE.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TableStatistics {
    /// Rows.
    pub rows: f64,
    /// Pages of its heap.
    pub pages: u32,
    /// One entry a column; absent for one that was not analyzed.
    pub columns: Vec<Option<ColumnStatistics>>,
}

/// Statistics of a column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnStatistics {
    /// The column's type when it was analyzed.
    pub data_type: DataType,
    /// Part of the rows that have NULL.
    pub null_fraction: f32,
    /// Average bytes of a value as PostgreSQL stores it.
    pub width: i32,
    /// Number of distinct values if it is positive; if negative, the same as a part of the rows; 0 if not known.
    pub distinct: f32,
    /// The most common values, each with its part of the rows, the most common first.
    pub common: Vec<(Value, f32)>,
    /// Values, in order, between which lie equal parts of those that are not among the most common.
    pub bounds: Vec<Value>,
    /// Correlation of the order of values with the order of rows in the table: 1 is the same, −1 the opposite.
    pub correlation: Option<f32>,
}

impl TableStatistics {
    /// The statistics of a column, if it was analyzed.
    pub fn column(&self, number: u16) -> Option<&ColumnStatistics> {
        self.columns.get(usize::from(number))?.as_ref()
    }
}

impl ColumnStatistics {
    /// The number of distinct values in a table of so many rows; `None` if it is not known.
    pub fn distinct_in(&self, rows: f64) -> Option<f64> {
        match self.distinct {
            0.0 => None,
            part @ ..0.0 => Some((-f64::from(part) * rows).max(1.0)),
            count => Some(f64::from(count).max(1.0)),
        }
    }
}
