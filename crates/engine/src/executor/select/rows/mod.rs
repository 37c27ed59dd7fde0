//! Rows of a FROM with more than one table: running operators over one row.
//!
//! An operator is pulled: [`Rows::next`] puts the next combination of its columns into the block's row and leaves the
//! columns of all other operators alone. Between two calls it holds no latch, no pin and no borrow of its plan. What it
//! keeps (the table of a hash join, the inner side of a loop) has `work_mem` bytes, and temporary files beyond.
//!
//! | module | job |
//! | --- | --- |
//! | `leaf` | tables, queries, series, values |
//! | `functions` | functions that give rows |
//! | `repeat` | joins by a loop |
//! | `hash`, `keys` | joins by a hash table |
//! | `merge` | joins of sorted sides, and a hash join whose table does not fit |
//! | `set` | UNION, INTERSECT, EXCEPT |
//! | `recursive` | recursive queries and their working tables |
//! | `shared` | common table expressions that are made once |
//! | `measured` | any of these, measured |

mod functions;
mod hash;
mod keys;
mod leaf;
mod measured;
mod merge;
mod recursive;
mod repeat;
mod set;
pub(crate) mod shared;

use clearway_sql::checkpoint;
use clearway_sql::error::{EngineError, Result};
use clearway_sql::plan::Node;
use clearway_sql::value::Value;

use crate::executor::Execution;
use functions::FunctionRows;
use hash::HashRows;
use leaf::{QueryRows, SeriesLeaf, TableRows, ValuesRows};
use measured::MeasuredRows;
use merge::MergeRows;
use recursive::{RecursiveRows, WorkingRows};
use repeat::LoopRows;
use set::SetRows;
use shared::SharedReader;

/// A running operator apart from its plan, which each call is given.
#[derive(Debug)]
pub(crate) enum Rows {
    /// One row, which may have been given.
    One {
        given: bool,
    },
    Table(Box<TableRows>),
    Query(Box<QueryRows>),
    Series(Box<SeriesLeaf>),
    Values(ValuesRows),
    Functions(Box<FunctionRows>),
    Set(Box<SetRows>),
    Shared(Box<SharedReader>),
    Recursive(Box<RecursiveRows>),
    Working(Box<WorkingRows>),
    /// `None`: the condition does not hold.
    Gate(Option<Box<Rows>>),
    Filter(Box<Rows>),
    Loop(Box<LoopRows>),
    Hash(Box<HashRows>),
    Merge(Box<MergeRows>),
    Measured(Box<MeasuredRows>),
}

impl Rows {
    /// Starts an operator. `row` has the columns of the operators to its left, if it reads them.
    pub(crate) fn open(execution: &mut Execution<'_>, node: &Node, row: &mut [Value]) -> Result<Rows> {
        checkpoint(|| Rows::open_here(execution, node, row))
    }

    fn open_here(execution: &mut Execution<'_>, node: &Node, row: &mut [Value]) -> Result<Rows> {
        Ok(match node {
            Node::OneRow => Rows::One { given: false },
            Node::Table { scan, arguments, .. } => {
                Rows::Table(Box::new(TableRows::open(execution, scan, arguments, row)?))
            }
            Node::Query { plan, arguments, .. } => {
                Rows::Query(Box::new(QueryRows::open(execution, plan, arguments, row)?))
            }
            Node::Series { series, .. } => Rows::Series(Box::new(SeriesLeaf::open(execution, series, row)?)),
            Node::Values { .. } => Rows::Values(ValuesRows::default()),
            Node::Functions { functions, .. } => {
                Rows::Functions(Box::new(FunctionRows::open(execution, functions, row)?))
            }
            Node::Set(plan) => Rows::Set(Box::new(SetRows::open(execution, plan)?)),
            Node::Shared {
                number, arguments, ..
            } => {
                let arguments = leaf::evaluated(execution, arguments, row)?;
                Rows::Shared(Box::new(SharedReader::open(execution, *number, arguments)))
            }
            Node::Recursive(plan) => Rows::Recursive(Box::new(RecursiveRows::open(execution, plan)?)),
            Node::Working { .. } => Rows::Working(Box::default()),
            Node::Change => return Err(EngineError::internal("a statement of WITH is run as a query")),
            Node::Gate { input, condition } => {
                let open = execution.evaluating(|context| condition.passes(row, context))?;
                Rows::Gate(match open {
                    true => Some(Box::new(Rows::open(execution, input, row)?)),
                    false => None,
                })
            }
            Node::Filter { input, .. } => Rows::Filter(Box::new(Rows::open(execution, input, row)?)),
            Node::Loop(join) => Rows::Loop(Box::new(LoopRows::open(execution, join, row)?)),
            Node::Hash(join) => Rows::Hash(Box::new(HashRows::open(execution, join, row)?)),
            Node::Merge(merge) => Rows::Merge(Box::new(MergeRows::open(execution, merge, row)?)),
            Node::Measured(measured) => {
                Rows::Measured(Box::new(MeasuredRows::open(execution, measured, row)?))
            }
        })
    }

    /// Goes to the next row, if there is one.
    pub(crate) fn next(
        &mut self,
        execution: &mut Execution<'_>,
        node: &Node,
        row: &mut [Value],
    ) -> Result<bool> {
        checkpoint(|| self.next_here(execution, node, row))
    }

    fn next_here(&mut self, execution: &mut Execution<'_>, node: &Node, row: &mut [Value]) -> Result<bool> {
        match (self, node) {
            (Rows::One { given }, _) => Ok(!std::mem::replace(given, true)),
            (
                Rows::Table(rows),
                Node::Table {
                    scan, base, place, ..
                },
            ) => rows.next(execution, scan, *base, *place, row),
            (Rows::Query(rows), Node::Query { plan, base, .. }) => rows.next(execution, plan, *base, row),
            (Rows::Series(rows), Node::Series { series, base }) => rows.next(execution, series, *base, row),
            (Rows::Values(rows), Node::Values { rows: plan, base }) => rows.next(execution, plan, *base, row),
            (Rows::Functions(rows), Node::Functions { functions, base, .. }) => {
                rows.next(execution, functions, *base, row)
            }
            (Rows::Set(rows), Node::Set(plan)) => rows.next(execution, plan, row),
            (Rows::Shared(rows), Node::Shared { base, .. }) => rows.next(execution, *base, row),
            (Rows::Recursive(rows), Node::Recursive(plan)) => rows.next(execution, plan, row),
            (Rows::Working(rows), Node::Working { number, base, .. }) => {
                rows.next(execution, *number, *base, row)
            }
            (Rows::Gate(None), _) => Ok(false),
            (Rows::Gate(Some(rows)), Node::Gate { input, .. }) => rows.next(execution, input, row),
            (Rows::Filter(rows), Node::Filter { input, condition }) => {
                while rows.next(execution, input, row)? {
                    if execution.evaluating(|context| condition.passes(row, context))? {
                        return Ok(true);
                    }
                    execution.removed = execution.removed.wrapping_add(1);
                }
                Ok(false)
            }
            (Rows::Loop(rows), Node::Loop(join)) => rows.next(execution, join, row),
            (Rows::Hash(rows), Node::Hash(join)) => rows.next(execution, join, row),
            (Rows::Merge(rows), Node::Merge(merge)) => rows.next(execution, &merge.join, row),
            (Rows::Measured(rows), Node::Measured(measured)) => rows.next(execution, measured, row),
            _ => unreachable!("an operator runs with the plan that it was opened with"),
        }
    }
}

/// Sets columns to NULL.
pub(super) fn set_null(row: &mut [Value], columns: &[u16]) {
    for column in columns {
        row[usize::from(*column)] = Value::Null;
    }
}

/// Puts values into columns.
fn put(row: &mut [Value], columns: &[u16], values: &mut [Value]) {
    for (column, value) in columns.iter().zip(values) {
        row[usize::from(*column)] = std::mem::take(value);
    }
}

/// The values of columns.
fn copied(row: &[Value], columns: &[u16]) -> Vec<Value> {
    columns
        .iter()
        .map(|column| row[usize::from(*column)].clone())
        .collect()
}
