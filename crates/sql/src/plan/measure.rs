//! A plan with counters, to be run and measured (EXPLAIN ANALYZE).
//!
//! A plan that is only run has none of this: measuring is a rewriting of the plan. Each operator of a FROM is put into a
//! [`MeasuredNode`], and the source of each SELECT into a [`MeasuredSource`], which has the counters of the stages above it.

use std::sync::Arc;

use crate::explained::{Measured, StageCounters};
use crate::plan::{InsertSource, MeasuredNode, MeasuredSource, Node, RowsStatement, SelectPlan, Source};
use crate::stack::checkpoint;

impl SelectPlan {
    /// The same plan with counters.
    pub fn measured(&self, what: Measured) -> SelectPlan {
        checkpoint(|| {
            let mut plan = self.clone();
            let source = std::mem::replace(&mut plan.source, Source::OneRow);
            let source = match source {
                Source::Rows(mut rows) => {
                    rows.node = rows.node.measured(what);
                    Source::Rows(rows)
                }
                source => source,
            };
            let counters = StageCounters {
                what,
                ..StageCounters::default()
            };
            let alone = SelectPlan {
                source,
                aggregate: None,
                windows: None,
                projection: Vec::new(),
                visible: 0,
                distinct: false,
                distinct_on: 0,
                sort: Vec::new(),
                limit: None,
                offset: None,
                stop_after: plan.stop_after,
                lock: None,
                locked: None,
                has_subqueries: false,
                late_keys: Vec::new(),
                late: Vec::new(),
                columns: Vec::new(),
            };
            plan.source = Source::Measured(Box::new(MeasuredSource {
                plan: alone,
                counters: Arc::new(counters),
            }));
            plan
        })
    }
}

impl Node {
    /// The same operator with counters, and all below it.
    pub fn measured(self, what: Measured) -> Node {
        checkpoint(|| self.measured_here(what))
    }

    fn measured_here(self, what: Measured) -> Node {
        let input = match self {
            Node::Query {
                plan,
                base,
                arguments,
                name,
            } => Node::Query {
                plan: Arc::new(plan.measured(what)),
                base,
                arguments,
                name,
            },
            Node::Set(mut set) => {
                set.left.0 = set.left.0.measured(what);
                set.right.0 = set.right.0.measured(what);
                Node::Set(set)
            }
            Node::Recursive(mut plan) => {
                plan.union.left.0 = plan.union.left.0.measured(what);
                plan.union.right.0 = plan.union.right.0.measured(what);
                Node::Recursive(plan)
            }
            Node::Gate { input, condition } => Node::Gate {
                input: Box::new(input.measured(what)),
                condition,
            },
            Node::Filter { input, condition } => Node::Filter {
                input: Box::new(input.measured(what)),
                condition,
            },
            Node::Loop(mut join) => {
                join.left = join.left.measured(what);
                join.right = join.right.measured(what);
                Node::Loop(join)
            }
            Node::Hash(mut join) => {
                join.left = join.left.measured(what);
                join.right = join.right.measured(what);
                Node::Hash(join)
            }
            Node::Merge(mut merge) => {
                merge.join.left = merge.join.left.measured(what);
                merge.join.right = merge.join.right.measured(what);
                Node::Merge(merge)
            }
            leaf => leaf,
        };
        Node::Measured(Box::new(MeasuredNode {
            input,
            counter: Arc::default(),
            what,
        }))
    }
}

impl RowsStatement {
    /// The same statement with counters.
    pub fn measured(&self, what: Measured) -> RowsStatement {
        let mut statement = self.clone();
        match &mut statement {
            RowsStatement::Select(select) => *select = Arc::new(select.measured(what)),
            RowsStatement::Insert(insert) => {
                if let InsertSource::Select { select, .. } = &mut insert.source {
                    **select = select.measured(what);
                }
            }
            RowsStatement::Update(update) => {
                if let Some(joined) = &mut update.joined {
                    joined.rows.node = std::mem::replace(&mut joined.rows.node, Node::OneRow).measured(what);
                }
            }
            RowsStatement::Delete(delete) => {
                if let Some(joined) = &mut delete.joined {
                    joined.rows.node = std::mem::replace(&mut joined.rows.node, Node::OneRow).measured(what);
                }
            }
            RowsStatement::Merge(merge) => {
                let node = &mut merge.joined.rows.node;
                *node = std::mem::replace(node, Node::OneRow).measured(what);
            }
            RowsStatement::Copy(_) | RowsStatement::Explain(_) | RowsStatement::Measured(_) => {}
        }
        statement
    }
}
