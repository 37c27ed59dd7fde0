//! Rows of a FROM with more than one table: a tree of operators over one row.
//!
//! All operators of a tree work on the same row, that of the block ([`crate::query`]): each leaf writes its columns, at
//! its base, and a join only decides which combinations of its sides' columns stand there when it has a row. Nothing is
//! copied from one operator to the next. What has to be kept (the smaller side of a hash join, the inner side of a
//! loop) keeps the columns that later stages read.

use std::sync::Arc;

use crate::explained::{Counter, Measured};
use crate::expr::Expr;
use crate::plan::{LateColumn, SelectPlan, Series, SetFunctions, TableScan};
use crate::value::DataType;

/// A FROM as operators, and the width of its row.
#[derive(Debug, Clone)]
pub struct RowsPlan {
    /// The topmost operator.
    pub node: Node,
    /// Number of columns of the row.
    pub width: usize,
    /// Columns of the row whose long values are restored when the topmost operator has a row.
    pub late: Vec<LateColumn>,
}

/// An operator.
#[derive(Debug, Clone)]
pub enum Node {
    /// One row, without columns.
    OneRow,
    /// A table's rows.
    Table {
        /// The scan. Its expressions count in the table's row; other columns are its arguments.
        scan: TableScan,
        /// Its first column in the row.
        base: u16,
        /// The values of `Expr::Outer(n)` in the scan, over the row.
        arguments: Vec<Expr>,
        /// The column of the row that gets the place of the table's row, if that is wanted: block and slot as a bigint.
        place: Option<u16>,
        /// The name it is known by.
        name: String,
    },
    /// A query's rows.
    Query {
        /// The query.
        plan: Arc<SelectPlan>,
        /// Its first column in the row.
        base: u16,
        /// The values of `Expr::Outer(n)` in the query, over the row.
        arguments: Vec<Expr>,
        /// The name it is known by.
        name: String,
    },
    /// `generate_series`, its bounds over the row.
    Series {
        /// The series, without a filter.
        series: Series,
        /// Its column in the row.
        base: u16,
    },
    /// Functions that give rows, their arguments over the row.
    Functions {
        /// The functions.
        functions: SetFunctions,
        /// The first column in the row.
        base: u16,
        /// The name it is known by.
        name: String,
    },
    /// Rows of expressions over the row.
    Values {
        /// The rows.
        rows: Vec<Vec<Expr>>,
        /// The first column in the row.
        base: u16,
    },
    /// UNION, INTERSECT, EXCEPT.
    Set(Box<SetPlan>),
    /// The rows of a common table expression, made once and kept.
    Shared {
        /// Its number in the statement's list of queries.
        number: usize,
        /// The rows that it is expected to have.
        rows: f64,
        /// Its first column in the row.
        base: u16,
        /// The values of `Expr::Outer(n)` in the query, over the row.
        arguments: Vec<Expr>,
        /// The name it is known by.
        name: String,
    },
    /// A recursive query.
    Recursive(Box<RecursivePlan>),
    /// The rows that a recursive query gave in the round before.
    Working {
        /// The number of its working table.
        number: usize,
        /// The first column in the row.
        base: u16,
        /// The name it is known by.
        name: String,
    },
    /// RETURNING of a statement of WITH, one of those that the plan lists. It is read by way of [`Node::Shared`] only,
    /// which runs the statement.
    Change,
    /// All rows, or none: the condition reads no column, and is looked at once.
    Gate {
        /// The rows.
        input: Box<Node>,
        /// The condition.
        condition: Expr,
    },
    /// The rows that satisfy a condition.
    Filter {
        /// The rows.
        input: Box<Node>,
        /// The condition, over the row.
        condition: Expr,
    },
    /// For each row of one side, the other side anew.
    Loop(Box<LoopJoin>),
    /// One side in a hash table.
    Hash(Box<KeyJoin>),
    /// Both sides in the order of their keys.
    Merge(Box<MergeJoin>),
    /// An operator that is measured.
    Measured(Box<MeasuredNode>),
}

/// An operator that is measured.
#[derive(Debug, Clone)]
pub struct MeasuredNode {
    /// The operator.
    pub input: Node,
    /// Its counter.
    pub counter: Arc<Counter>,
    /// The subject of the measurement beside rows.
    pub what: Measured,
}

impl Node {
    /// The operator itself, if it is one that is measured.
    pub(crate) fn unmeasured(&self) -> &Node {
        match self {
            Node::Measured(measured) => measured.input.unmeasured(),
            node => node,
        }
    }

    /// True if each row of it is written whole: nothing that it left in the block's row before is looked at again.
    pub fn writes_each_row(&self) -> bool {
        match self {
            Node::Table { .. } => true,
            Node::Filter { input, .. } | Node::Gate { input, .. } => input.writes_each_row(),
            Node::Measured(measured) => measured.input.writes_each_row(),
            _ => false,
        }
    }

    /// Calls `visit` for each expression over the block's row that it evaluates itself.
    pub(crate) fn each_expression(&self, visit: &mut dyn FnMut(&Expr)) {
        match self {
            Node::Table { arguments, .. }
            | Node::Query { arguments, .. }
            | Node::Shared { arguments, .. } => {
                arguments.iter().for_each(visit);
            }
            Node::Series { series, .. } => [&series.start, &series.stop]
                .into_iter()
                .chain(&series.step)
                .for_each(visit),
            Node::Functions { functions, .. } => {
                let calls = functions.calls.iter();
                calls.for_each(|call| call.each_argument(&mut *visit));
            }
            Node::Values { rows, .. } => rows.iter().flatten().for_each(visit),
            Node::Gate { condition, .. } | Node::Filter { condition, .. } => visit(condition),
            Node::Loop(join) => join.condition.iter().for_each(visit),
            Node::Hash(join) => join.each_expression(visit),
            Node::Merge(merge) => merge.join.each_expression(visit),
            Node::OneRow
            | Node::Set(_)
            | Node::Recursive(_)
            | Node::Working { .. }
            | Node::Change
            | Node::Measured(_) => {}
        }
    }

    /// Calls `visit` for each operator that it reads.
    pub(crate) fn each_input<'n>(&'n self, visit: &mut dyn FnMut(&'n Node)) {
        match self {
            Node::Filter { input, .. } | Node::Gate { input, .. } => visit(input),
            Node::Loop(join) => [&join.left, &join.right].into_iter().for_each(visit),
            Node::Hash(join) => [&join.left, &join.right].into_iter().for_each(visit),
            Node::Merge(join) => [&join.join.left, &join.join.right].into_iter().for_each(visit),
            Node::Measured(measured) => visit(&measured.input),
            Node::OneRow
            | Node::Table { .. }
            | Node::Query { .. }
            | Node::Series { .. }
            | Node::Functions { .. }
            | Node::Values { .. }
            | Node::Shared { .. }
            | Node::Recursive(_)
            | Node::Working { .. }
            | Node::Change
            | Node::Set(_) => {}
        }
    }
}

/// A kind of join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    /// Pairs that fit.
    Inner,
    /// Each left row at least once.
    Left,
    /// Each right row at least once.
    Right,
    /// Each row of both sides at least once.
    Full,
    /// Each left row that fits at least one right row, once.
    Semi,
    /// Each left row that fits no right row.
    Anti,
}

/// A join by a loop.
#[derive(Debug, Clone)]
pub struct LoopJoin {
    /// Inner, left, semi or anti.
    pub kind: JoinKind,
    /// The outer side.
    pub left: Node,
    /// The inner side, opened for each row of the outer side.
    pub right: Node,
    /// The inner side's columns in the row, NULL where a left row has no partner.
    pub right_columns: Vec<u16>,
    /// True if the inner side reads no column of the outer one: its rows are kept, and not made anew.
    pub keeps_right: bool,
    /// ON, over the row; what the inner side does not check itself.
    pub condition: Option<Expr>,
}

/// A join by keys that are equal.
#[derive(Debug, Clone)]
pub struct KeyJoin {
    /// The kind.
    pub kind: JoinKind,
    /// The side that is read row by row.
    pub left: Node,
    /// The side of which the rows of a key are kept; the one in the table, if there is a hash table.
    pub right: Node,
    /// The left side's columns in the row that later stages read.
    pub left_columns: Vec<u16>,
    /// The right side's columns in the row that later stages read.
    pub right_columns: Vec<u16>,
    /// Expressions that are equal: over the left side, over the right side, and the type of comparison.
    pub keys: Vec<(Expr, Expr, DataType)>,
    /// The rest of ON, over the row.
    pub condition: Option<Expr>,
}

impl KeyJoin {
    fn each_expression(&self, visit: &mut dyn FnMut(&Expr)) {
        for (left, right, _) in &self.keys {
            visit(left);
            visit(right);
        }
        self.condition.iter().for_each(visit);
    }
}

/// A join of sides that are both read in the ascending order of their keys. Rows with a NULL among the keys may stand
/// anywhere.
#[derive(Debug, Clone)]
pub struct MergeJoin {
    /// The sides, their keys and the rest.
    pub join: KeyJoin,
    /// True if the left side has to be sorted.
    pub sorts_left: bool,
    /// True if the right side has to be sorted.
    pub sorts_right: bool,
}

/// A recursive query: UNION whose right side runs again and again.
#[derive(Debug, Clone)]
pub struct RecursivePlan {
    /// Both terms.
    pub union: SetPlan,
    /// The number of its working table.
    pub working: usize,
    /// The numbers of the queries whose rows depend on the working table.
    pub dependent: Vec<usize>,
}

/// A set operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetOperator {
    /// UNION
    Union,
    /// INTERSECT
    Intersect,
    /// EXCEPT
    Except,
}

/// UNION, INTERSECT or EXCEPT.
#[derive(Debug, Clone)]
pub struct SetPlan {
    /// The operator.
    pub operator: SetOperator,
    /// ALL
    pub all: bool,
    /// Left side, and its columns over its output row.
    pub left: (SelectPlan, Vec<Expr>),
    /// Right side, and its columns over its output row.
    pub right: (SelectPlan, Vec<Expr>),
    /// The types of the result.
    pub types: Vec<DataType>,
    /// The first column in the row.
    pub base: u16,
}
