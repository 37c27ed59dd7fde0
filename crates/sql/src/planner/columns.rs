//! The columns of a block's row that later stages read: what a join that keeps rows has to keep.

use crate::aggregate::AggregateCall;
use crate::expr::Expr;
use crate::plan::SelectPlan;

/// Columns of a block's row, a truth value each.
#[derive(Debug, Clone)]
pub(super) struct ReadColumns(Vec<bool>);

impl ReadColumns {
    /// None of a row's columns.
    pub(super) fn none(width: usize) -> ReadColumns {
        ReadColumns(vec![false; width])
    }

    /// Adds what an expression reads.
    pub(super) fn add(&mut self, expr: &Expr) {
        expr.columns(&mut |column| {
            if let Some(read) = self.0.get_mut(usize::from(column)) {
                *read = true;
            }
        });
    }

    /// True if a column is among them.
    pub(super) fn contains(&self, column: u16) -> bool {
        self.0.get(usize::from(column)).is_some_and(|read| *read)
    }

    /// Those of a leaf or of several, in order.
    pub(super) fn within(&self, ranges: impl Iterator<Item = std::ops::Range<u16>>) -> Vec<u16> {
        ranges.flatten().filter(|column| self.contains(*column)).collect()
    }
}

/// The columns that the stages above a plan's source read, of a row of `width` columns.
pub(super) fn read_above(plan: &SelectPlan, width: usize) -> ReadColumns {
    let mut read = ReadColumns::none(width);
    match &plan.aggregate {
        // What lies above the groups reads the row of groups.
        Some(aggregate) => {
            let calls = aggregate.calls.iter();
            let of_calls = calls.flat_map(AggregateCall::expressions);
            aggregate
                .keys
                .iter()
                .chain(of_calls)
                .for_each(|expr| read.add(expr));
        }
        None => add_above_groups(plan, &mut read),
    }
    read
}

/// The columns that the stages above a plan's groups read, of a group row of `width` columns.
pub(super) fn read_of_groups(plan: &SelectPlan, width: usize) -> ReadColumns {
    let mut read = ReadColumns::none(width);
    add_above_groups(plan, &mut read);
    read
}

fn add_above_groups(plan: &SelectPlan, read: &mut ReadColumns) {
    plan.projection.iter().for_each(|expr| read.add(expr));
    let windows = plan.windows.iter();
    windows.for_each(|stage| stage.each_expression(&mut |expr| read.add(expr)));
}
