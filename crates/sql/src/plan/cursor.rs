//! Cursors: DECLARE, FETCH, MOVE.

use super::stage::Stage;

/// A number of rows that means all that there are.
pub const ALL_ROWS: i64 = i64::MAX;

/// DECLARE.
#[derive(Debug, Clone)]
pub struct DeclareCursor<S: Stage> {
    /// The cursor's name.
    pub name: String,
    /// BINARY: a simple query gets its rows in binary form.
    pub binary: bool,
    /// SCROLL or NO SCROLL, if one of them is written.
    pub scroll: Option<bool>,
    /// INSENSITIVE, which all cursors are.
    pub insensitive: bool,
    /// WITH HOLD: it outlives its transaction.
    pub hold: bool,
    /// The query.
    pub query: S::Query,
}

/// FETCH or MOVE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchCursor {
    /// The cursor's name.
    pub name: String,
    /// The rows.
    pub direction: FetchDirection,
    /// MOVE: goes there, and gives no rows.
    pub is_move: bool,
}

/// The rows of FETCH and MOVE. A negative number is one in the other direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchDirection {
    /// This number of the next rows.
    Forward(i64),
    /// This number of the rows before.
    Backward(i64),
    /// The row of this number, counted from 1; from the end, if it is negative.
    Absolute(i64),
    /// The row that is so many behind this one.
    Relative(i64),
}
