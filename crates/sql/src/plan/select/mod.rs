//! SELECT: where its rows come from and what becomes of them. Operators of a FROM: `node`; windows: `window`; FOR
//! UPDATE: `lock`; long values: `late`.

mod backwards;
mod late;
mod lock;
mod node;
mod window;

use std::sync::Arc;

use crate::access::AccessPath;
use crate::aggregate::AggregateCall;
use crate::catalog::TableDef;
use crate::error::Result;
use crate::explained::StageCounters;
use crate::expr::Expr;
use crate::plan::Column;
use crate::sort_key::SortKey;
use crate::value::{ColumnSet, DataType};

pub use late::LateColumn;
pub use lock::{LockStrength, LockWaitPolicy, LockedRows, LockedTable, Recheck, RowLock};
pub use node::{
    JoinKind, KeyJoin, LoopJoin, MeasuredNode, MergeJoin, Node, RecursivePlan, RowsPlan, SetOperator, SetPlan,
};
pub use window::{FrameBound, FrameExclusion, FrameUnit, WindowCall, WindowFrame, WindowPlan, WindowStage};

/// SELECT
#[derive(Debug, Clone)]
pub struct SelectPlan {
    /// The source of the rows, already filtered.
    pub source: Source,
    /// Grouping and aggregates, if any.
    pub aggregate: Option<AggregatePlan>,
    /// Windows, if any.
    pub windows: Option<Box<WindowStage>>,
    /// The output row: the visible columns, then hidden ones for sorting.
    pub projection: Vec<Expr>,
    /// Number of output columns that are sent.
    pub visible: usize,
    /// DISTINCT over the visible columns.
    pub distinct: bool,
    /// DISTINCT ON: of the rows that are equal in so many of the first keys of `sort` the first; 0 = all rows.
    pub distinct_on: usize,
    /// ORDER BY; empty when absent or when the scan gives that order anyway.
    pub sort: Vec<SortKey>,
    /// LIMIT, a bigint; NULL = none.
    pub limit: Option<Expr>,
    /// OFFSET, a bigint; NULL = 0.
    pub offset: Option<Expr>,
    /// Stop the scan after this many rows that pass the filter (min and max over an index, one key of a unique index).
    pub stop_after: Option<u64>,
    /// FOR UPDATE and its relatives, of the table that is the source.
    pub lock: Option<RowLock>,
    /// The same over any other source.
    pub locked: Option<Box<LockedRows>>,
    /// True if an expression of the stages above the source has a query inside it.
    pub has_subqueries: bool,
    /// Columns of the projection that sorting has the places of long values of, as far as they are its keys.
    pub late_keys: Vec<LateColumn>,
    /// Output columns whose long values are restored when the row comes out of sorting.
    pub late: Vec<LateColumn>,
    /// The columns sent.
    pub columns: Vec<Column>,
}

/// Rows of a table, found one way or another.
#[derive(Debug, Clone)]
pub struct TableScan {
    /// The table.
    pub table: Arc<TableDef>,
    /// The path to its rows.
    pub access: AccessPath,
    /// The condition that a found row must still satisfy.
    pub filter: Option<Expr>,
    /// The whole WHERE clause, of a scan whose rows are locked or changed.
    pub recheck: Option<Expr>,
    /// The columns that any later stage reads, `filter` and `recheck` included.
    pub needed: ColumnSet,
    /// Those of them whose long values are left as they are stored: a later stage restores what it reads.
    pub late: ColumnSet,
}

/// The source of a SELECT's input rows.
#[derive(Debug, Clone)]
pub enum Source {
    /// No FROM: one empty row.
    OneRow,
    /// A table or virtual table.
    Table(TableScan),
    /// `generate_series(start, stop [, step])`: rows of one value.
    Series(Series),
    /// Joins, queries in FROM, and whatever else takes operators.
    Rows(Box<RowsPlan>),
    /// A source that is measured.
    Measured(Box<MeasuredSource>),
}

/// The source of a SELECT that is measured.
#[derive(Debug, Clone)]
pub struct MeasuredSource {
    /// A SELECT of the source alone, as far as it is to be read.
    pub plan: SelectPlan,
    /// The counters of the stages.
    pub counters: Arc<StageCounters>,
}

impl Source {
    /// The source itself, if it is one that is measured.
    pub fn unmeasured(&self) -> &Source {
        match self {
            Source::Measured(measured) => &measured.plan.source,
            source => source,
        }
    }
}

/// `generate_series` as a source of rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// First value.
    pub start: Expr,
    /// Last value, at most.
    pub stop: Expr,
    /// Step; 1 when absent. Zero is an error (22023).
    pub step: Option<Expr>,
    /// Int4, Int8, Numeric, Timestamp or TimestampTz; the three expressions have this type, but for the step between
    /// timestamps, which is an interval.
    pub data_type: DataType,
    /// WHERE
    pub filter: Option<Expr>,
}

/// Functions that give rows, side by side: as many rows as the longest gives, NULL where another has ended.
#[derive(Debug, Clone)]
pub struct SetFunctions {
    /// The calls, a column each.
    pub calls: Vec<SetCall>,
    /// WITH ORDINALITY: one more column, the row's number.
    pub ordinality: bool,
}

/// A call of a function that gives rows.
#[derive(Debug, Clone, PartialEq)]
pub enum SetCall {
    /// `unnest(array)`
    Unnest(Expr),
    /// The arrays that are the elements of an array of arrays
    Parts(Expr),
    /// `generate_subscripts(array, dimension [, reverse])`
    Subscripts {
        /// The array.
        array: Expr,
        /// The dimension, an integer.
        dimension: Expr,
        /// From the last to the first.
        reverse: Option<Expr>,
    },
    /// `generate_series`
    Series(Series),
}

impl SetCall {
    /// Calls `visit` for each argument.
    pub fn each_argument(&self, visit: &mut dyn FnMut(&Expr)) {
        match self {
            SetCall::Unnest(array) | SetCall::Parts(array) => visit(array),
            SetCall::Subscripts {
                array,
                dimension,
                reverse,
            } => [array, dimension].into_iter().chain(reverse).for_each(visit),
            SetCall::Series(series) => [&series.start, &series.stop]
                .into_iter()
                .chain(&series.step)
                .for_each(visit),
        }
    }

    /// The call with each argument replaced.
    pub(crate) fn map_arguments(self, map: &mut dyn FnMut(Expr) -> Result<Expr>) -> Result<SetCall> {
        Ok(match self {
            SetCall::Unnest(array) => SetCall::Unnest(map(array)?),
            SetCall::Parts(array) => SetCall::Parts(map(array)?),
            SetCall::Subscripts {
                array,
                dimension,
                reverse,
            } => SetCall::Subscripts {
                array: map(array)?,
                dimension: map(dimension)?,
                reverse: reverse.map(map).transpose()?,
            },
            SetCall::Series(mut series) => {
                series.start = map(series.start)?;
                series.stop = map(series.stop)?;
                series.step = series.step.map(map).transpose()?;
                SetCall::Series(series)
            }
        })
    }
}

/// Grouping and aggregates.
#[derive(Debug, Clone)]
pub struct AggregatePlan {
    /// GROUP BY, over the input row: the keys of all sets. None: one group, present even without rows.
    pub keys: Vec<Expr>,
    /// The keys' types, for comparing.
    pub key_types: Vec<DataType>,
    /// The grouping sets, of numbers of keys; none: one set of all keys. An empty set has a group without rows too. The
    /// keys that are not of a group's set are NULL in its row.
    pub sets: Vec<Vec<u16>>,
    /// The keys that each GROUPING is about.
    pub groupings: Vec<Vec<u16>>,
    /// The aggregate calls, over the input row.
    pub calls: Vec<AggregateCall>,
    /// HAVING, over the group row: keys, results of aggregates, values of GROUPING.
    pub having: Option<Expr>,
    /// Keys of which the groups keep the places of long values.
    pub late_keys: Vec<LateColumn>,
    /// Those of them that are restored in the group rows that come out, since a stage above reads them.
    pub late: Vec<LateColumn>,
}

impl AggregatePlan {
    /// The value of a GROUPING in a group of this set: a bit for each key, the first one highest, that is set if the set
    /// has no such key.
    pub fn grouping(&self, keys: &[u16], set: usize) -> i32 {
        let is_absent = |key: &u16| self.sets.get(set).is_some_and(|set| !set.contains(key));
        keys.iter()
            .fold(0, |bits, key| bits << 1 | i32::from(is_absent(key)))
    }

    /// Number of columns of the group row.
    pub fn width(&self) -> usize {
        self.keys.len() + self.calls.len() + self.groupings.len()
    }
}
