//! Windows: the stage between grouping and projection that computes window functions.
//!
//! Each window is a step. It gets the rows of the one before it (the first those of the source or of the groups), sorted
//! by its partition and its order, and gives each row with the results of its calls behind it:
//!
//! ```text
//! row below          a b c
//! after the first    a b c │ x y      columns `base`, `base + 1`: the first window's two calls
//! after the second   a b c │ x y │ z
//! ```

use crate::aggregate::AggregateCall;
use crate::expr::Expr;
use crate::plan::LateColumn;
use crate::sort_key::SortKey;
use crate::value::DataType;

/// The windows of a SELECT.
#[derive(Debug, Clone)]
pub struct WindowStage {
    /// Number of columns of the row below.
    pub base: usize,
    /// The windows, in the order in which they are computed.
    pub windows: Vec<WindowPlan>,
    /// Columns of the row below that no window reads: their long values are restored behind the windows.
    pub late: Vec<LateColumn>,
}

impl WindowStage {
    /// Calls `visit` for each expression over the row below.
    pub fn each_expression(&self, visit: &mut dyn FnMut(&Expr)) {
        self.windows
            .iter()
            .for_each(|window| window.each_expression(visit));
    }
}

/// A window and its calls.
#[derive(Debug, Clone)]
pub struct WindowPlan {
    /// PARTITION BY, then ORDER BY, over the row below.
    pub keys: Vec<Expr>,
    /// The order of those keys; `column` is their number.
    pub sort: Vec<SortKey>,
    /// Number of keys of PARTITION BY.
    pub partition: usize,
    /// False if the rows come in this order anyway.
    pub sorts: bool,
    /// The frame.
    pub frame: WindowFrame,
    /// The calls.
    pub calls: Vec<WindowCall>,
}

impl WindowPlan {
    /// Calls `visit` for each expression over the row below.
    pub fn each_expression(&self, visit: &mut dyn FnMut(&Expr)) {
        self.keys.iter().for_each(&mut *visit);
        for bound in [&self.frame.start, &self.frame.end] {
            bound.offset().into_iter().for_each(&mut *visit);
        }
        for call in &self.calls {
            call.expressions().into_iter().for_each(&mut *visit);
        }
    }
}

/// The unit of a frame's bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameUnit {
    /// Rows.
    Rows,
    /// Values of the one key of ORDER BY; its type.
    Range(DataType),
    /// Groups of rows that are equal in ORDER BY.
    Groups,
}

/// A bound of a frame.
#[derive(Debug, Clone, PartialEq)]
pub enum FrameBound {
    /// The partition's first row, or its last one.
    Unbounded,
    /// Before the current row.
    Preceding(Expr),
    /// The current row; with RANGE and GROUPS the rows that are equal to it.
    CurrentRow,
    /// Behind the current row.
    Following(Expr),
}

impl FrameBound {
    /// Its offset, which reads no row.
    pub fn offset(&self) -> Option<&Expr> {
        match self {
            FrameBound::Preceding(offset) | FrameBound::Following(offset) => Some(offset),
            FrameBound::Unbounded | FrameBound::CurrentRow => None,
        }
    }
}

/// The rows that EXCLUDE takes out of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameExclusion {
    /// None.
    NoOthers,
    /// The current row.
    CurrentRow,
    /// The current row and those equal to it.
    Group,
    /// Those equal to the current row.
    Ties,
}

/// The rows of a partition that a call sees, from the point of view of one row.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowFrame {
    /// The unit of the offsets.
    pub unit: FrameUnit,
    /// The first row.
    pub start: FrameBound,
    /// The last row.
    pub end: FrameBound,
    /// EXCLUDE
    pub exclusion: FrameExclusion,
}

/// A call of a window function, or of an aggregate over a window.
#[derive(Debug, Clone, PartialEq)]
pub enum WindowCall {
    /// An aggregate over the frame.
    Aggregate(AggregateCall),
    /// `row_number()`
    RowNumber,
    /// `rank()`
    Rank,
    /// `dense_rank()`
    DenseRank,
    /// `percent_rank()`
    PercentRank,
    /// `cume_dist()`
    CumeDist,
    /// `ntile(buckets)`
    Ntile(Expr),
    /// `lag(value, offset, default)` and `lead`
    Neighbour {
        /// `lead`
        forward: bool,
        /// The value, over the other row.
        value: Expr,
        /// The distance, an integer; 1 if absent.
        offset: Option<Expr>,
        /// The value where there is no such row.
        default: Option<Expr>,
    },
    /// `first_value(value)`
    First(Expr),
    /// `last_value(value)`
    Last(Expr),
    /// `nth_value(value, n)`
    Nth(Expr, Expr),
}

impl WindowCall {
    /// Its expressions over the row below.
    pub fn expressions(&self) -> Vec<&Expr> {
        match self {
            WindowCall::Aggregate(call) => call.expressions().collect(),
            WindowCall::RowNumber
            | WindowCall::Rank
            | WindowCall::DenseRank
            | WindowCall::PercentRank
            | WindowCall::CumeDist => Vec::new(),
            WindowCall::Ntile(value) | WindowCall::First(value) | WindowCall::Last(value) => vec![value],
            WindowCall::Neighbour {
                value,
                offset,
                default,
                ..
            } => [value].into_iter().chain(offset).chain(default).collect(),
            WindowCall::Nth(value, number) => vec![value, number],
        }
    }

    /// Its expressions over the row below, to be replaced.
    pub fn expressions_mut(&mut self) -> Vec<&mut Expr> {
        match self {
            WindowCall::Aggregate(call) => call.expressions_mut().collect(),
            WindowCall::RowNumber
            | WindowCall::Rank
            | WindowCall::DenseRank
            | WindowCall::PercentRank
            | WindowCall::CumeDist => Vec::new(),
            WindowCall::Ntile(value) | WindowCall::First(value) | WindowCall::Last(value) => vec![value],
            WindowCall::Neighbour {
                value,
                offset,
                default,
                ..
            } => [value].into_iter().chain(offset).chain(default).collect(),
            WindowCall::Nth(value, number) => vec![value, number],
        }
    }

    /// The name of its function.
    pub fn name(&self) -> &'static str {
        match self {
            WindowCall::Aggregate(call) => call.function.name(),
            WindowCall::RowNumber => "row_number",
            WindowCall::Rank => "rank",
            WindowCall::DenseRank => "dense_rank",
            WindowCall::PercentRank => "percent_rank",
            WindowCall::CumeDist => "cume_dist",
            WindowCall::Ntile(_) => "ntile",
            WindowCall::Neighbour { forward: true, .. } => "lead",
            WindowCall::Neighbour { .. } => "lag",
            WindowCall::First(_) => "first_value",
            WindowCall::Last(_) => "last_value",
            WindowCall::Nth(..) => "nth_value",
        }
    }

    /// True if its result depends on the frame.
    pub fn reads_frame(&self) -> bool {
        matches!(
            self,
            WindowCall::Aggregate(_) | WindowCall::First(_) | WindowCall::Last(_) | WindowCall::Nth(..)
        )
    }
}
