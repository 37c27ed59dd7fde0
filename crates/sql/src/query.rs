//! A query after binding and before planning: a logical tree, with names and types settled and nothing chosen.
//!
//! # The row of a block
//! All relations of a [`Block`]'s FROM have a place in one row, given in the order of the text: `base` and `width` of
//! a [`Leaf`]. `Expr::Column(n)` counts in that row, whatever order and methods of joining are chosen later, so no
//! expression is ever renumbered because of a join.
//!
//! ```text
//! from a (x, y) join b (z) on x = z          a: base 0, width 2      b: base 2, width 1      x = z: Column(0) = Column(2)
//! ```

use std::sync::Arc;

use crate::aggregate::AggregateCall;
use crate::catalog::TableDef;
use crate::expr::Expr;
use crate::plan::{AggregatePlan, Column, RowLock, Series, SetFunctions, SetOperator, SortKey, WindowPlan};
use crate::stack::checkpoint;
use crate::value::DataType;

/// A SELECT with its clauses.
#[derive(Debug)]
pub struct Block {
    /// FROM
    pub from: Relation,
    /// Number of columns of FROM's row.
    pub width: usize,
    /// WHERE: all of these.
    pub conditions: Vec<Expr>,
    /// Grouping and aggregates, if any.
    pub aggregate: Option<AggregatePlan>,
    /// Windows; the number of a call counts through all of them.
    pub windows: Vec<WindowPlan>,
    /// The output row: the visible columns, then hidden ones for sorting.
    pub projection: Vec<Expr>,
    /// Number of output columns that are sent.
    pub visible: usize,
    /// DISTINCT over the visible columns.
    pub distinct: bool,
    /// DISTINCT ON, as [`SelectPlan`](crate::plan::SelectPlan) has it.
    pub distinct_on: usize,
    /// ORDER BY
    pub sort: Vec<SortKey>,
    /// LIMIT, a bigint.
    pub limit: Option<Expr>,
    /// OFFSET, a bigint.
    pub offset: Option<Expr>,
    /// True if a lock of the query around it is one of its own rows too.
    pub is_locked_from_outside: bool,
    /// The columns sent.
    pub columns: Vec<Column>,
}

/// FROM, or a part of it.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a statement has few")]
pub enum Relation {
    /// No FROM: one empty row.
    OneRow,
    /// A source of rows.
    Leaf(Leaf),
    /// Two relations, joined.
    Join(Box<Join>),
}

/// A source of rows and its place in the block's row.
#[derive(Debug, Clone)]
pub struct Leaf {
    /// Its first column in the block's row.
    pub base: u16,
    /// Number of its columns.
    pub width: u16,
    /// The column of the block's row that has the place of its row in the table (as `plan::Node` has it), if that is wanted.
    pub place: Option<u16>,
    /// FOR UPDATE and its relatives, of a table.
    pub lock: Option<RowLock>,
    /// The name it is known by.
    pub name: String,
    /// Its rows.
    pub rows: Rows,
}

/// The rows of a leaf.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a statement has few")]
pub enum Rows {
    /// A table's.
    Table(Arc<TableDef>),
    /// A query's: in FROM, or of a common table expression.
    Query {
        /// The query.
        block: Box<Block>,
        /// The values of `Expr::Outer(n)` inside it, over the row of the block that this leaf belongs to.
        arguments: Vec<Expr>,
    },
    /// `generate_series`; its bounds may read columns of leaves to the left.
    Series(Series),
    /// Functions that give rows; their arguments may read columns of leaves to the left.
    Functions(SetFunctions),
    /// VALUES, or one row with the value of a function; expressions over the block's row.
    Values(Vec<Vec<Expr>>),
    /// UNION, INTERSECT, EXCEPT.
    Set(Box<SetOperation>),
    /// Those of a common table expression, which are made once for all that read them.
    Shared {
        /// Its number in the statement's list of queries.
        number: usize,
        /// The values of `Expr::Outer(n)` inside it, over the row of the block that this leaf belongs to.
        arguments: Vec<Expr>,
    },
    /// Those of a recursive query.
    Recursive(Box<RecursiveUnion>),
    /// Those that the recursive query of this number gave in the round before.
    Working(usize),
    /// RETURNING of a statement that changes rows. Its block is a common table expression's, and the plan lists the
    /// statement by that number.
    Change,
}

/// A recursive query: the right side of the operation runs again and again, over the rows that the round before gave.
#[derive(Debug, Clone)]
pub struct RecursiveUnion {
    /// UNION: the left side is the term that does not refer to the query, the right side the one that does.
    pub operation: SetOperation,
    /// The number of the query's working table.
    pub working: usize,
    /// The numbers of the queries whose rows depend on the working table.
    pub dependent: Vec<usize>,
}

/// UNION, INTERSECT or EXCEPT of two queries.
#[derive(Debug, Clone)]
pub struct SetOperation {
    /// The operator.
    pub operator: SetOperator,
    /// ALL: equal rows are kept apart.
    pub all: bool,
    /// Left side.
    pub left: Block,
    /// Right side.
    pub right: Block,
    /// The columns of the result over the left side's output row.
    pub left_columns: Vec<Expr>,
    /// The columns of the result over the right side's output row.
    pub right_columns: Vec<Expr>,
    /// The types of the result.
    pub types: Vec<DataType>,
}

/// Two relations, joined.
#[derive(Debug, Clone)]
pub struct Join {
    /// The kind.
    pub kind: JoinKind,
    /// Left side.
    pub left: Relation,
    /// Right side.
    pub right: Relation,
    /// ON: all of these.
    pub on: Vec<Expr>,
}

pub use crate::plan::JoinKind;

impl Clone for Block {
    /// A copy, with room to recurse: a query may have others inside it.
    fn clone(&self) -> Block {
        checkpoint(|| Block {
            from: self.from.clone(),
            width: self.width,
            conditions: self.conditions.clone(),
            aggregate: self.aggregate.clone(),
            windows: self.windows.clone(),
            projection: self.projection.clone(),
            visible: self.visible,
            distinct: self.distinct,
            distinct_on: self.distinct_on,
            sort: self.sort.clone(),
            limit: self.limit.clone(),
            offset: self.offset.clone(),
            is_locked_from_outside: self.is_locked_from_outside,
            columns: self.columns.clone(),
        })
    }
}

impl Block {
    /// Calls `visit` for each expression that belongs to this block: not those inside queries of its FROM or of its
    /// expressions, but with their arguments.
    pub fn each_expression(&self, visit: &mut dyn FnMut(&Expr)) {
        self.from.each_expression(visit);
        self.conditions.iter().for_each(&mut *visit);
        if let Some(aggregate) = &self.aggregate {
            aggregate
                .keys
                .iter()
                .chain(&aggregate.having)
                .for_each(&mut *visit);
            let calls = aggregate.calls.iter();
            calls
                .clone()
                .flat_map(AggregateCall::expressions)
                .for_each(&mut *visit);
            calls.flat_map(|call| &call.direct).for_each(&mut *visit);
        }
        self.windows
            .iter()
            .for_each(|window| window.each_expression(visit));
        self.projection.iter().for_each(&mut *visit);
        self.limit.iter().chain(&self.offset).for_each(visit);
    }
}

impl SetOperation {
    /// Calls `visit` for each expression of both queries, which have the arguments of the block around them.
    fn each_expression(&self, visit: &mut dyn FnMut(&Expr)) {
        self.left.each_expression(visit);
        self.right.each_expression(visit);
    }
}

/// True if an expression may have another value when it is evaluated again: it calls a volatile function, or a query
/// inside it does. `queries`: those of the statement, by their numbers.
pub(crate) fn is_volatile(expr: &Expr, queries: &[Block]) -> bool {
    let mut volatile = false;
    expr.walk(&mut |part| {
        volatile |= match part {
            Expr::NextSerial { .. } => true,
            Expr::Call { function, .. } => function.is_volatile(),
            Expr::Subquery(subquery) => {
                let inner = queries.get(subquery.number);
                inner.is_some_and(|inner| inner.is_volatile(queries))
            }
            _ => false,
        };
    });
    volatile
}

impl Block {
    /// True if it may give other rows when it runs again.
    pub(crate) fn is_volatile(&self, queries: &[Block]) -> bool {
        let mut volatile = false;
        checkpoint(|| self.each_expression(&mut |expr| volatile |= is_volatile(expr, queries)));
        let inner = self.from.queries();
        volatile
            || inner
                .into_iter()
                .any(|inner| checkpoint(|| inner.is_volatile(queries)))
    }

    /// One empty row.
    pub(crate) fn one_row() -> Block {
        Block {
            from: Relation::OneRow,
            width: 0,
            conditions: Vec::new(),
            aggregate: None,
            windows: Vec::new(),
            projection: Vec::new(),
            visible: 0,
            distinct: false,
            distinct_on: 0,
            sort: Vec::new(),
            limit: None,
            offset: None,
            is_locked_from_outside: false,
            columns: Vec::new(),
        }
    }

    /// One more than the number of the last argument that its own expressions read.
    pub fn arguments_read(&self) -> u16 {
        let mut most = 0;
        self.each_expression(&mut |expr| {
            expr.walk(&mut |part| {
                if let Expr::Outer(number) = part {
                    most = most.max(number + 1);
                }
            });
        });
        most
    }
}

impl Relation {
    /// Calls `visit` for each leaf.
    pub fn each_leaf<'r>(&'r self, visit: &mut dyn FnMut(&'r Leaf)) {
        match self {
            Relation::OneRow => {}
            Relation::Leaf(leaf) => visit(leaf),
            Relation::Join(join) => {
                join.left.each_leaf(visit);
                join.right.each_leaf(visit);
            }
        }
    }

    /// True if it is RETURNING of a statement that changes rows.
    pub(crate) fn is_change(&self) -> bool {
        matches!(self, Relation::Leaf(leaf) if matches!(leaf.rows, Rows::Change))
    }

    /// True if rows of its tables are locked, or rows of queries inside it.
    pub fn locks_rows(&self) -> bool {
        let mut locks = false;
        self.each_leaf(&mut |leaf| locks |= leaf.lock.is_some());
        locks
            || self
                .queries()
                .into_iter()
                .any(|inner| checkpoint(|| inner.from.locks_rows()))
    }

    /// The queries among its leaves.
    pub fn queries(&self) -> Vec<&Block> {
        match self {
            Relation::OneRow => Vec::new(),
            Relation::Join(join) => [join.left.queries(), join.right.queries()].concat(),
            Relation::Leaf(leaf) => match &leaf.rows {
                Rows::Query { block, .. } => vec![block],
                Rows::Set(operation) => vec![&operation.left, &operation.right],
                Rows::Recursive(union) => vec![&union.operation.left, &union.operation.right],
                _ => Vec::new(),
            },
        }
    }

    /// Calls `visit` for each expression of this FROM; of a set operation those of both queries, which have the block's
    /// arguments.
    pub fn each_expression(&self, visit: &mut dyn FnMut(&Expr)) {
        match self {
            Relation::OneRow => {}
            Relation::Join(join) => {
                join.on.iter().for_each(&mut *visit);
                join.left.each_expression(visit);
                join.right.each_expression(visit);
            }
            Relation::Leaf(leaf) => match &leaf.rows {
                Rows::Table(_) | Rows::Working(_) | Rows::Change => {}
                Rows::Query { arguments, .. } | Rows::Shared { arguments, .. } => {
                    arguments.iter().for_each(visit)
                }
                Rows::Series(series) => [&series.start, &series.stop]
                    .into_iter()
                    .chain(&series.step)
                    .for_each(visit),
                Rows::Functions(functions) => {
                    functions.calls.iter().for_each(|call| call.each_argument(visit))
                }
                Rows::Values(rows) => rows.iter().flatten().for_each(visit),
                Rows::Set(operation) => operation.each_expression(visit),
                Rows::Recursive(union) => union.operation.each_expression(visit),
            },
        }
    }
}
