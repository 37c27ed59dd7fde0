//! The queries whose cursors go backwards without SCROLL.
//!
//! PostgreSQL runs a plan backwards where each of its operators can: scans, a sort, LIMIT, UNION ALL. A cursor that says
//! neither SCROLL nor NO SCROLL goes backwards if its plan does, and a client sees that as an answer or as 55000. A join, a
//! group, DISTINCT or a window does not run backwards unless a sort is above it.

use crate::expr::Expr;
use crate::plan::{Node, SelectPlan, SetOperator, SetPlan, Source};

impl SelectPlan {
    /// True if a cursor over it goes backwards without SCROLL.
    pub fn runs_backwards(&self) -> bool {
        if self.lock.is_some() || self.locked.is_some() || self.distinct || self.distinct_on > 0 {
            return false;
        }
        if !self.sort.is_empty() {
            return true;
        }
        if self.aggregate.is_some() || self.windows.is_some() {
            return false;
        }
        match self.source.unmeasured() {
            Source::OneRow | Source::Measured(_) => false,
            Source::Table(_) | Source::Series(_) => true,
            Source::Rows(rows) => rows.node.runs_backwards(),
        }
    }

    /// True if it gives the same rows in the same order when it runs again under the same snapshot, and does nothing else:
    /// a plain scan, whose rows need not be kept to be seen again.
    pub fn can_run_again(&self) -> bool {
        let plain = self.lock.is_none()
            && self.locked.is_none()
            && !self.distinct
            && self.distinct_on == 0
            && self.sort.is_empty()
            && self.aggregate.is_none()
            && self.windows.is_none()
            && !self.has_subqueries;
        let expressions = |filter: &Option<Expr>| {
            let mut all = self
                .projection
                .iter()
                .chain(filter)
                .chain(&self.limit)
                .chain(&self.offset);
            all.all(|expr| expr.is_repeatable() && !expr.has_subquery())
        };
        plain
            && match &self.source {
                Source::Table(scan) => {
                    let is_stored = matches!(scan.table.kind, crate::catalog::TableKind::Heap { .. });
                    is_stored && expressions(&scan.filter)
                }
                Source::Series(series) => expressions(&series.filter),
                _ => false,
            }
    }
}

impl Node {
    fn runs_backwards(&self) -> bool {
        match self {
            Node::Table { .. }
            | Node::Series { .. }
            | Node::Functions { .. }
            | Node::Values { .. }
            | Node::Shared { .. } => true,
            Node::Query { plan, .. } => plan.runs_backwards(),
            Node::Gate { input, .. } | Node::Filter { input, .. } => input.runs_backwards(),
            Node::Set(set) => set.runs_backwards(),
            Node::Measured(measured) => measured.input.runs_backwards(),
            Node::OneRow
            | Node::Recursive(_)
            | Node::Working { .. }
            | Node::Change
            | Node::Loop(_)
            | Node::Hash(_)
            | Node::Merge(_) => false,
        }
    }
}

impl SetPlan {
    fn runs_backwards(&self) -> bool {
        self.operator == SetOperator::Union
            && self.all
            && self.left.0.runs_backwards()
            && self.right.0.runs_backwards()
    }
}
