//! The columns of tables whose long values are restored late ([`LateColumn`]).
//!
//! # Rules
//! - A column that an operator reads (a key, a condition, an argument) is restored by its scan. Every other one is left as it
//!   is stored, and restored when the topmost operator has a row, if a stage above reads it.
//! - A column that the projection only hands to a sort is restored behind the sort, and if it is a key, as long as the bytes
//!   of the key are written.
//! - A column that is only grouped by is restored for as long as its row looks for its group, and again in the group rows
//!   that come out. One that HAVING or a direct argument reads is not left.
//! - A column that the windows do not read is restored behind them.
//! - A SELECT that locks rows projects them anew, from versions that it has read itself: it restores nothing late.

use std::sync::Arc;

use crate::aggregate::AggregateCall;
use crate::catalog::TableKind;
use crate::expr::Expr;
use crate::plan::{AggregatePlan, LateColumn, Node, SelectPlan, Source, TableScan, WindowStage};
use crate::planner::columns::{ReadColumns, read_above, read_of_groups};
use crate::stack::checkpoint;
use crate::value::ColumnSet;

/// Decides for a plan whose source is there.
pub(super) fn place(plan: &mut SelectPlan) {
    if plan.lock.is_some() || plan.locked.is_some() {
        return;
    }
    let handed_on = match (&plan.aggregate, &plan.windows) {
        (Some(aggregate), _) => only_grouped_by(aggregate),
        (None, Some(stage)) => passed_by_windows(plan, stage),
        (None, None) => handed_to_sort(plan),
    };
    if handed_on.is_empty() && !matches!(plan.source, Source::Rows(_)) {
        return;
    }
    let mut source = std::mem::replace(&mut plan.source, Source::OneRow);
    let left = match &mut source {
        Source::Table(scan) => leave_in(scan, 0, |column| handed_on.contains(column)),
        Source::Rows(rows) => {
            let mut read_below = ReadColumns::none(rows.width);
            add_read(&rows.node, &mut read_below);
            let mut left = Vec::new();
            leave_below(&mut rows.node, &read_below, &mut left);
            let above = read_above(plan, rows.width);
            rows.late = left.clone();
            rows.late
                .retain(|late| above.contains(late.at) && !handed_on.contains(late.at));
            left
        }
        _ => Vec::new(),
    };
    plan.source = source;
    let handed_on = |column| {
        let late = left.iter().find(|late| late.at == column)?;
        handed_on.contains(column).then_some(late)
    };
    if let Some(aggregate) = &plan.aggregate {
        let read = read_of_groups(plan, aggregate.width());
        let late_keys = at_places(&aggregate.keys, handed_on);
        if let Some(aggregate) = &mut plan.aggregate {
            aggregate.late = late_keys.clone();
            aggregate.late.retain(|key| read.contains(key.at));
            aggregate.late_keys = late_keys;
        }
    } else if let Some(stage) = &mut plan.windows {
        stage.late = left
            .iter()
            .filter_map(|late| handed_on(late.at).cloned())
            .collect();
    } else {
        plan.late_keys = at_places(&plan.projection, handed_on);
        plan.late = plan.late_keys.clone();
        plan.late.retain(|late| usize::from(late.at) < plan.visible);
        let is_key = |at: usize| plan.sort.iter().any(|key| key.column == at);
        plan.late_keys.retain(|late| is_key(usize::from(late.at)));
    }
}

/// The late columns among expressions, at their places there.
fn at_places<'l>(exprs: &[Expr], late: impl Fn(u16) -> Option<&'l LateColumn>) -> Vec<LateColumn> {
    let places = exprs.iter().enumerate().filter_map(|(at, expr)| match expr {
        Expr::Column(column) => Some(LateColumn {
            at: at as u16,
            ..late(*column)?.clone()
        }),
        _ => None,
    });
    places.collect()
}

/// The columns of the input row that are keys of groups, and that nothing else reads before the groups come out.
fn only_grouped_by(aggregate: &AggregatePlan) -> ColumnSet {
    let (mut keys, mut read) = (ColumnSet::new(), ColumnSet::new());
    for key in &aggregate.keys {
        match key {
            Expr::Column(column) => keys.insert(*column),
            other => other.columns(&mut |column| read.insert(column)),
        }
    }
    let mut read_key = |key: u16| {
        if let Some(Expr::Column(column)) = aggregate.keys.get(usize::from(key)) {
            read.insert(*column);
        }
    };
    aggregate
        .having
        .iter()
        .chain(aggregate.calls.iter().flat_map(|call| &call.direct))
        .for_each(|expr| expr.columns(&mut read_key));
    let of_calls = aggregate.calls.iter().flat_map(AggregateCall::expressions);
    of_calls.for_each(|expr| expr.columns(&mut |column| read.insert(column)));
    read.iter().for_each(|column| keys.remove(column));
    keys
}

/// The columns of the input row that the projection reads and no window does.
fn passed_by_windows(plan: &SelectPlan, stage: &WindowStage) -> ColumnSet {
    let mut passed = ColumnSet::new();
    for expr in &plan.projection {
        expr.columns(&mut |column| {
            if usize::from(column) < stage.base {
                passed.insert(column);
            }
        });
    }
    stage.each_expression(&mut |expr| expr.columns(&mut |column| passed.remove(column)));
    passed
}

/// The columns of the input row that the projection does nothing with but hand them to the sort.
fn handed_to_sort(plan: &SelectPlan) -> ColumnSet {
    let (mut handed_on, mut read) = (ColumnSet::new(), ColumnSet::new());
    if plan.sort.is_empty() || plan.distinct {
        return handed_on;
    }
    for expr in &plan.projection {
        match expr {
            Expr::Column(column) => handed_on.insert(*column),
            other => other.columns(&mut |column| read.insert(column)),
        }
    }
    read.iter().for_each(|column| handed_on.remove(column));
    handed_on
}

/// Leaves the long values of all columns of the tables below an operator as they are stored, but those that are read there.
fn leave_below(node: &mut Node, read_below: &ReadColumns, left: &mut Vec<LateColumn>) {
    let sides = match node {
        Node::Table { scan, base, .. } => {
            let is_left = |column| !read_below.contains(*base + column);
            return left.extend(leave_in(scan, *base, is_left));
        }
        Node::Gate { input, .. } | Node::Filter { input, .. } => {
            return checkpoint(|| leave_below(input, read_below, left));
        }
        Node::Loop(join) => [&mut join.left, &mut join.right],
        Node::Hash(join) => [&mut join.left, &mut join.right],
        Node::Merge(merge) => [&mut merge.join.left, &mut merge.join.right],
        _ => return,
    };
    sides
        .into_iter()
        .for_each(|side| checkpoint(|| leave_below(side, read_below, left)));
}

/// Adds what an operator and those below it read.
fn add_read(node: &Node, read: &mut ReadColumns) {
    node.each_expression(&mut |expr| read.add(expr));
    node.each_input(&mut |input| checkpoint(|| add_read(input, read)));
}

/// Leaves the long values of some of a table's columns as they are stored; gives these, as columns of a row in which the
/// table begins at `base`.
fn leave_in(scan: &mut TableScan, base: u16, is_left: impl Fn(u16) -> bool) -> Vec<LateColumn> {
    if !matches!(scan.table.kind, TableKind::Heap { .. }) || scan.table.long_rel.is_none() {
        return Vec::new();
    }
    let varying = scan.table.codec.varying_columns();
    let columns: Vec<u16> = varying
        .filter(|column| scan.needed.contains(*column) && is_left(*column))
        .collect();
    columns.iter().for_each(|column| scan.late.insert(*column));
    let late = columns.into_iter().map(|column| LateColumn {
        at: base + column,
        table: Arc::clone(&scan.table),
        column,
    });
    late.collect()
}
