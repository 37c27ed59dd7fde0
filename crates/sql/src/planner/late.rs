//! The columns of tables whose long values are restored late ([`LateColumn`]).
//!
//! # Rules
//! - A column that an operator reads (a key, a condition, an argument) is restored by its scan. Every other one is left as it
//!   is stored, and restored when the topmost operator has a row, if a stage above reads it.
//! - A column that the projection only hands to a sort, which does not read it, is restored behind the sort.
//! - A SELECT that locks rows projects them anew, from versions that it has read itself: it restores nothing late.

use std::sync::Arc;

use crate::catalog::TableKind;
use crate::expr::Expr;
use crate::plan::{LateColumn, Node, SelectPlan, Source, TableScan};
use crate::planner::columns::{ReadColumns, read_above};
use crate::stack::checkpoint;
use crate::value::ColumnSet;

/// Decides for a plan whose source is there.
pub(super) fn place(plan: &mut SelectPlan) {
    if plan.lock.is_some() || plan.locked.is_some() {
        return;
    }
    let handed_on = handed_to_sort(plan);
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
    let outputs = plan.projection[..plan.visible].iter().enumerate();
    plan.late = outputs
        .filter_map(|(at, expr)| match expr {
            Expr::Column(column) if handed_on.contains(*column) => {
                let late = left.iter().find(|late| late.at == *column)?;
                Some(LateColumn {
                    at: at as u16,
                    ..late.clone()
                })
            }
            _ => None,
        })
        .collect();
}

/// The columns of the input row that the projection does nothing with but hand them to the sort, which does not read them.
fn handed_to_sort(plan: &SelectPlan) -> ColumnSet {
    let mut handed_on = ColumnSet::new();
    if plan.sort.is_empty() || plan.distinct || plan.aggregate.is_some() || plan.windows.is_some() {
        return handed_on;
    }
    let is_key = |at: usize| plan.sort.iter().any(|key| key.column == at);
    let mut read = ColumnSet::new();
    for (at, expr) in plan.projection.iter().enumerate() {
        match expr {
            Expr::Column(column) if at < plan.visible && !is_key(at) => handed_on.insert(*column),
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
