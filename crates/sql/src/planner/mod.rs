//! From a bound query to a plan.
//!
//! # Steps
//! 1. Expressions are made simpler (`fold`). The queries inside them are planned with the statement's list of them
//!    (`Planner::subqueries`).
//! 2. A block over one table, one series or nothing keeps its short way: source, groups, projection, sort ([`SelectPlan`]).
//! 3. Every other FROM becomes a tree of operators (`join`): conditions are split at AND, each is checked as early as
//!    all its columns are there; an outer join whose missing rows a condition would take away is an inner join; inner
//!    joins are ordered by cost; each join takes an index of its inner side, a hash table, a merge of sorted sides, or a
//!    loop, whichever costs least.
//!
//! A plan follows from the statement's text, the catalog with its statistics and sizes, and the planner's settings, and
//! from nothing else.
//!
//! | module | job |
//! | --- | --- |
//! | `scan` | how one table is read |
//! | `fold` | expressions made simpler |
//! | `leaves` | which leaves an expression reads |
//! | `planned` | what is known of a relation that is planned |
//! | `join`, `order` | a tree of operators for a FROM; the order of inner joins |
//! | `method`, `merge` | the method of a join; merge joins |
//! | `lock` | FOR UPDATE over operators |
//! | `facts`, `selectivity` | what is known of tables and columns; the part of the rows that satisfies a condition |
//! | `cost` | the costs of operators |
//! | `conditions` | conditions that hold together |
//! | `pull_up` | queries of WHERE as joins |
//! | `alternatives` | conditions on one side that follow from an OR over several |
//! | `equal` | expressions of several relations that are equal |
//! | `columns` | the columns that later stages read |
//! | `late` | the columns whose long values are restored late |
//! | `windows` | columns for the calls over windows |

mod alternatives;
mod columns;
mod conditions;
pub(crate) mod cost;
mod equal;
pub(crate) mod facts;
pub(crate) mod fold;
mod join;
mod late;
mod leaves;
mod lock;
mod merge;
mod method;
mod order;
mod planned;
mod pull_up;
pub(crate) mod scan;
mod selectivity;
mod windows;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::access::AccessPath;
use crate::aggregate::AggregateCall;
use crate::catalog::{CatalogView, TableDef};
use crate::error::{EngineError, Result};
use crate::expr::Expr;
use crate::plan::{AggregatePlan, JoinKind, JoinedRows, RowsPlan, SelectPlan, Series, Source, TableScan};
use crate::query::{Block, Leaf, Relation, Rows};
use crate::stack::checkpoint;
use crate::value::{DataType, Value};
pub use cost::Cost;
pub(crate) use cost::Costs;
pub(crate) use facts::Facts;
pub(crate) use fold::Failure;
use scan::{ScanFacts, all, extreme, need, ordered_by_index, plan_scan};

/// Plans the blocks of one statement.
pub(crate) struct Planner<'c> {
    catalog: &'c dyn CatalogView,
    /// The queries inside the statement's expressions, by their numbers.
    bound: &'c [Block],
    failure: &'c Failure,
    /// The rows of common table expressions, by their numbers, as far as they were asked for.
    shared_rows: RefCell<BTreeMap<usize, f64>>,
}

impl<'c> Planner<'c> {
    /// `failure` gets the error of a constant part of an expression.
    pub(crate) fn new(catalog: &'c dyn CatalogView, bound: &'c [Block], failure: &'c Failure) -> Planner<'c> {
        Planner {
            catalog,
            bound,
            failure,
            shared_rows: RefCell::default(),
        }
    }

    /// The query of this number, as it was bound.
    fn bound(&self, number: usize) -> Option<Block> {
        self.bound.get(number).cloned()
    }

    /// The rows of a common table expression that is made once.
    fn shared_rows(&self, number: usize) -> Result<f64> {
        if let Some(rows) = self.shared_rows.borrow().get(&number) {
            return Ok(*rows);
        }
        let block = self.bound(number);
        let block = block.ok_or_else(|| EngineError::internal("a common table expression has no query"))?;
        let rows = self.costs().select(&self.block(block)?).top.rows;
        self.shared_rows.borrow_mut().insert(number, rows);
        Ok(rows)
    }

    /// Plans the queries of a statement's expressions.
    pub(crate) fn subqueries(&self) -> Result<Vec<Arc<SelectPlan>>> {
        let blocks = self.bound.iter().cloned();
        blocks.map(|block| self.block(block).map(Arc::new)).collect()
    }

    /// Plans a block.
    pub(crate) fn block(&self, block: Block) -> Result<SelectPlan> {
        checkpoint(|| self.block_here(block))
    }

    fn block_here(&self, block: Block) -> Result<SelectPlan> {
        let block = self.merged_for_locks(block)?;
        let looked_at_again = self.looked_at_again(&block)?;
        let Block {
            from,
            width,
            conditions,
            aggregate,
            windows,
            projection,
            visible,
            distinct,
            distinct_on,
            sort,
            limit,
            offset,
            columns,
            is_locked_from_outside: _,
        } = self.pulled_up(self.failure.simplified_block(block))?;
        let mut plan = SelectPlan {
            source: Source::OneRow,
            aggregate,
            windows: None,
            projection,
            visible,
            distinct,
            distinct_on,
            sort,
            limit,
            offset,
            stop_after: None,
            lock: None,
            locked: None,
            has_subqueries: false,
            late_keys: Vec::new(),
            late: Vec::new(),
            columns,
        };
        windows::place(&mut plan, windows, width)?;
        let mut above = false;
        each_expression(&plan, &mut |expr| above |= expr.has_subquery());
        plan.has_subqueries = above;
        let is_long = |condition: &Expr| {
            condition.has_subquery() || fold::is_never_true(condition) || join::is_gate(condition)
        };
        let simple = !above && !conditions.iter().any(is_long);
        plan.source = match from {
            Relation::OneRow if simple => one_row(conditions),
            Relation::Leaf(Leaf {
                rows: Rows::Series(mut series),
                ..
            }) if simple => {
                series.filter = all(conditions);
                Source::Series(series)
            }
            // The scan's expressions count in the table's row.
            Relation::Leaf(Leaf {
                base: 0,
                rows: Rows::Table(table),
                lock,
                place,
                ..
            }) if simple && !place.is_some_and(|place| reads(&plan, &conditions, place)) => {
                plan.lock = lock;
                Source::Table(self.table_under(&mut plan, table, conditions))
            }
            from => {
                if let Some(again) = looked_at_again {
                    again.place(&mut plan, width);
                }
                let read = columns::read_above(&plan, width);
                Source::Rows(Box::new(RowsPlan {
                    node: self.relation(from, conditions, read)?,
                    width,
                    late: Vec::new(),
                }))
            }
        };
        late::place(&mut plan);
        Ok(plan)
    }
}

impl Planner<'_> {
    fn costs(&self) -> Costs<'_> {
        Costs::new(self.catalog)
    }

    /// The scan of a table for what the plan does with its rows. An index may make the plan's sort needless, and tell that
    /// the first row is enough.
    fn table_under(&self, plan: &mut SelectPlan, table: Arc<TableDef>, conditions: Vec<Expr>) -> TableScan {
        let unconditional = conditions.is_empty();
        let (costs, around) = (self.costs(), Facts::default());
        let facts = ScanFacts {
            costs,
            arguments: &[],
            around: &around,
            runs: 1.0,
        };
        let mut scan = plan_scan(&facts, table, conditions, plan.lock.is_some());
        if let AccessPath::UniquePoint { .. } = scan.access {
            plan.stop_after = Some(1);
        }
        match &plan.aggregate {
            Some(aggregate) => {
                if unconditional && let Some(access) = extreme(&scan.table, aggregate) {
                    scan.access = access;
                    plan.stop_after = Some(1);
                }
                need_of_groups(&mut scan, aggregate);
            }
            None => {
                let prefers_order = plan.limit.is_some() || !costs.settings.sorts;
                if !plan.distinct
                    && plan.distinct_on == 0
                    && plan.windows.is_none()
                    && ordered_by_index(&mut scan, &plan.projection, &plan.sort, prefers_order)
                {
                    plan.sort.clear();
                }
                // Columns behind the table's are those of windows.
                let width = scan.table.columns.len();
                let mut read = |expr: &Expr| {
                    expr.columns(&mut |column| {
                        if usize::from(column) < width {
                            scan.needed.insert(column);
                        }
                    });
                };
                plan.projection.iter().for_each(&mut read);
                let windows = plan.windows.iter();
                windows.for_each(|stage| stage.each_expression(&mut read));
            }
        }
        scan
    }

    /// The rows that an UPDATE or DELETE changes, of a FROM whose first leaf is the changed table with the place of its
    /// rows. `read`: the expressions that are evaluated over them.
    pub(crate) fn joined(
        &self,
        from: Relation,
        width: usize,
        conditions: Vec<Expr>,
        table: &TableDef,
        read: &[&Expr],
    ) -> Result<JoinedRows> {
        let mut columns = columns::ReadColumns::none(width);
        // A new version has all columns of the old one, and its place.
        let of_table = 0..=table.columns.len() as u16;
        of_table.for_each(|column| columns.add(&Expr::Column(column)));
        read.iter().for_each(|expr| columns.add(expr));
        let mut recheck = conditions.clone();
        add_conditions(&from, &mut recheck);
        Ok(JoinedRows {
            rows: RowsPlan {
                node: self.relation(from, conditions, columns)?,
                width,
                late: Vec::new(),
            },
            recheck: all(recheck),
            row_queries: Vec::new(),
        })
    }
}

/// Adds the conditions of a FROM's inner joins: those that hold for each of its rows.
fn add_conditions(relation: &Relation, conditions: &mut Vec<Expr>) {
    if let Relation::Join(join) = relation
        && join.kind == JoinKind::Inner
    {
        conditions.extend(join.on.iter().cloned());
        add_conditions(&join.left, conditions);
        add_conditions(&join.right, conditions);
    }
}

/// True if a condition, or a stage above the source, reads that column of the block's row.
fn reads(plan: &SelectPlan, conditions: &[Expr], column: u16) -> bool {
    let mut found = conditions.iter().any(|condition| condition.reads(column));
    each_expression(plan, &mut |expr| found |= expr.reads(column));
    found
}

/// Calls `visit` for each expression of the stages above a plan's source.
fn each_expression(plan: &SelectPlan, visit: &mut dyn FnMut(&Expr)) {
    let aggregate = plan.aggregate.iter();
    aggregate
        .clone()
        .flat_map(|grouping| &grouping.keys)
        .for_each(&mut *visit);
    let calls = aggregate.clone().flat_map(|grouping| &grouping.calls);
    calls
        .clone()
        .flat_map(AggregateCall::expressions)
        .for_each(&mut *visit);
    calls.flat_map(|call| &call.direct).for_each(&mut *visit);
    aggregate
        .flat_map(|grouping| &grouping.having)
        .for_each(&mut *visit);
    plan.windows.iter().for_each(|stage| stage.each_expression(visit));
    plan.projection.iter().for_each(&mut *visit);
    plan.limit.iter().chain(&plan.offset).for_each(visit);
}

/// The source of a SELECT without FROM.
fn one_row(conditions: Vec<Expr>) -> Source {
    if conditions.is_empty() {
        return Source::OneRow;
    }
    // One row that a condition may take away: a series of one.
    Source::Series(Series {
        start: Expr::Constant(Value::Int4(1)),
        stop: Expr::Constant(Value::Int4(1)),
        step: None,
        data_type: DataType::Int4,
        filter: all(conditions),
    })
}

fn need_of_groups(scan: &mut TableScan, aggregate: &AggregatePlan) {
    let calls = aggregate.calls.iter();
    let of_calls = calls.flat_map(AggregateCall::expressions);
    let read = aggregate.keys.iter().chain(of_calls);
    read.for_each(|expr| need(&mut scan.needed, expr));
}
