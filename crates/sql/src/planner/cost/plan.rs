//! A plan's costs, operator by operator.

use super::{Cost, Costs, JoinSides, at_least_one};
use crate::access::AccessPath;
use crate::expr::{CompareOp, Expr};
use crate::plan::{KeyJoin, LoopJoin, MergeJoin, Node, SelectPlan, SetOperator, SetPlan, Source};
use crate::planner::facts::{Facts, TableFacts};
use crate::stack::checkpoint;

/// Rows of functions that give some.
const FUNCTION_ROWS: f64 = 10.0;

/// Rows of the round before, in a recursive query.
const UNKNOWN_ROWS: f64 = 1_000.0;

/// Rounds of a recursive query.
const ROUNDS: f64 = 10.0;

/// Rows of a series whose bounds are not known.
const SERIES_ROWS: f64 = 1_000.0;

/// The costs of a SELECT after each of its stages, those that it has.
#[derive(Debug, Clone, Default)]
pub(crate) struct StageCosts {
    /// The facts of the source's columns.
    pub(crate) facts: Facts,
    pub(crate) source: Cost,
    pub(crate) aggregate: Option<Cost>,
    pub(crate) distinct: Option<Cost>,
    pub(crate) sort: Option<Cost>,
    /// Of all.
    pub(crate) top: Cost,
}

impl Costs<'_> {
    /// The costs of a SELECT.
    pub(crate) fn select(&self, plan: &SelectPlan) -> StageCosts {
        checkpoint(|| self.select_here(plan))
    }

    fn select_here(&self, plan: &SelectPlan) -> StageCosts {
        let (facts, source) = self.source(&plan.source);
        let source = match plan.stop_after {
            Some(most) => self.limit(source, Some(most as f64), None),
            None => source,
        };
        let mut costs = StageCosts {
            source,
            ..StageCosts::default()
        };
        let mut cost = source;
        let mut facts_above = &facts;
        let of_groups = Facts::default();
        if let Some(aggregate) = &plan.aggregate {
            let keys: Vec<&Expr> = aggregate.keys.iter().collect();
            let groups = self.groups(&facts, &keys, cost.rows);
            let width =
                keys.iter().map(|key| facts.width(key)).sum::<f64>() + 8.0 * aggregate.calls.len() as f64;
            cost = self.group(cost, groups, keys.len(), aggregate.calls.len(), width);
            if let Some(having) = &aggregate.having {
                cost = self.filtered(cost, &of_groups, having);
            }
            costs.aggregate = Some(cost);
            facts_above = &of_groups;
        }
        let shown = plan.projection.iter();
        cost.width = shown.map(|expr| facts_above.width(expr)).sum();
        let computed: f64 = plan.projection.iter().map(|expr| self.of_condition(expr)).sum();
        cost.total += cost.rows * computed;
        if plan.distinct {
            let keys: Vec<&Expr> = plan.projection[..plan.visible].iter().collect();
            let groups = self.groups(facts_above, &keys, cost.rows);
            cost = self.group(cost, groups, keys.len(), 0, cost.width);
            costs.distinct = Some(cost);
        }
        let number = |expr: &Option<Expr>| match expr {
            Some(Expr::Constant(value)) => value.as_i64().map(|rows| rows.max(0) as f64),
            // As PostgreSQL: a tenth of the rows.
            Some(_) => Some((cost.rows * 0.1).max(1.0)),
            None => None,
        };
        let (limit, offset) = (number(&plan.limit), number(&plan.offset));
        if !plan.sort.is_empty() {
            let most = limit.map(|limit| limit + offset.unwrap_or(0.0));
            cost = self.sort(cost, most);
            costs.sort = Some(cost);
        }
        costs.top = self.limit(cost, limit, offset);
        costs.facts = facts;
        costs
    }

    fn source(&self, source: &Source) -> (Facts, Cost) {
        match source.unmeasured() {
            Source::Measured(_) => (Facts::default(), self.one_row()),
            Source::OneRow => (Facts::default(), self.one_row()),
            Source::Table(scan) => {
                let around = Facts::default();
                let facts = Facts::of_table(TableFacts::of(self.catalog, &scan.table), &[], &around);
                (facts, self.scan(scan, &[], &around, 1.0))
            }
            Source::Series(series) => {
                let cost = self.rows_of_function(series_rows(&series.start, &series.stop), 1.0);
                let cost = match &series.filter {
                    Some(filter) => self.filtered(cost, &Facts::default(), filter),
                    None => cost,
                };
                (Facts::default(), cost)
            }
            Source::Rows(rows) => {
                let facts = Facts::of_node(self.catalog, &rows.node, rows.width);
                let cost = self.node(&rows.node, &facts, 1.0);
                (facts, cost)
            }
        }
    }

    /// The cost of one row without columns.
    pub(crate) fn one_row(&self) -> Cost {
        Cost {
            startup: 0.0,
            total: self.settings.row,
            rows: 1.0,
            width: 0.0,
        }
    }

    fn rows_of_function(&self, rows: f64, columns: f64) -> Cost {
        Cost {
            startup: 0.0,
            total: rows * self.settings.row,
            rows,
            width: 8.0 * columns,
        }
    }

    /// The cost of an operator that runs so many times.
    pub(crate) fn node(&self, node: &Node, facts: &Facts, runs: f64) -> Cost {
        checkpoint(|| self.node_here(node, facts, runs))
    }

    fn node_here(&self, node: &Node, facts: &Facts, runs: f64) -> Cost {
        match node {
            Node::OneRow => self.one_row(),
            Node::Table { scan, arguments, .. } => self.scan(scan, arguments, facts, runs),
            Node::Query { plan, .. } => {
                let top = self.select(plan).top;
                Cost {
                    total: top.total + top.rows * self.settings.row,
                    ..top
                }
            }
            Node::Series { series, .. } => {
                self.rows_of_function(series_rows(&series.start, &series.stop), 1.0)
            }
            Node::Functions { functions, .. } => {
                self.rows_of_function(FUNCTION_ROWS, functions.calls.len() as f64)
            }
            Node::Values { rows, .. } => {
                let columns = rows.first().map_or(0, Vec::len);
                self.rows_of_function(at_least_one(rows.len() as f64), columns as f64)
            }
            Node::Set(set) => self.set(set),
            Node::Shared { rows, .. } => self.rows_of_function(*rows, 1.0),
            Node::Working { .. } => self.rows_of_function(UNKNOWN_ROWS, 1.0),
            Node::Recursive(plan) => {
                let once = self.set(&plan.union);
                Cost {
                    total: once.total * ROUNDS,
                    rows: once.rows * ROUNDS,
                    ..once
                }
            }
            Node::Change => self.one_row(),
            Node::Gate { input, .. } => self.node(input, facts, runs),
            Node::Filter { input, condition } => {
                self.filtered(self.node(input, facts, runs), facts, condition)
            }
            Node::Loop(join) => self.loop_join_node(join, facts),
            Node::Hash(join) => self.hash_join_node(join, facts),
            Node::Merge(join) => self.merge_join_node(join, facts),
            Node::Measured(measured) => self.node(&measured.input, facts, runs),
        }
    }

    fn loop_join_node(&self, join: &LoopJoin, facts: &Facts) -> Cost {
        let left = self.node(&join.left, facts, 1.0);
        let runs = match join.keeps_right {
            true => 1.0,
            false => self.rounds(&join.left, left.rows, &join.right),
        };
        let right = self.node(&join.right, facts, runs);
        let conditions = conjuncts(join.condition.as_ref());
        // What a scan of the right side checks itself has had its effect on its rows: the whole condition decides if a
        // left row has a partner.
        let checked = checked_below(&join.right);
        let all: Vec<Expr> = conditions.iter().cloned().chain(checked).collect();
        let rows = match join.kind {
            crate::plan::JoinKind::Semi | crate::plan::JoinKind::Anti => {
                self.joined_rows(join.kind, left.rows, right.rows.max(1.0), facts, &all)
            }
            kind => self.joined_rows(kind, left.rows, right.rows, facts, &conditions),
        };
        let sides = JoinSides {
            kind: join.kind,
            left,
            right,
            rows,
        };
        match join.keeps_right {
            true => self.loop_kept(&sides, conditions.len()),
            false => self.loop_anew(&sides, conditions.len()),
        }
    }

    fn hash_join_node(&self, join: &KeyJoin, facts: &Facts) -> Cost {
        let (left, right) = (
            self.node(&join.left, facts, 1.0),
            self.node(&join.right, facts, 1.0),
        );
        let conditions = key_conditions(join);
        let sides = JoinSides {
            kind: join.kind,
            left,
            right,
            rows: self.joined_rows(join.kind, left.rows, right.rows, facts, &conditions),
        };
        let values: Vec<&Expr> = join.keys.iter().map(|(_, key, _)| key).collect();
        self.hash_join(
            &sides,
            join.keys.len(),
            conditions.len(),
            self.groups(facts, &values, right.rows),
        )
    }

    fn merge_join_node(&self, merge: &MergeJoin, facts: &Facts) -> Cost {
        let join = &merge.join;
        let side = |node: &Node, sorts: bool| {
            let cost = self.node(node, facts, 1.0);
            if sorts { self.sort(cost, None) } else { cost }
        };
        let (left, right) = (
            side(&join.left, merge.sorts_left),
            side(&join.right, merge.sorts_right),
        );
        let conditions = key_conditions(join);
        let sides = JoinSides {
            kind: join.kind,
            left,
            right,
            rows: self.joined_rows(join.kind, left.rows, right.rows, facts, &conditions),
        };
        self.merge_join(&sides, join.keys.len(), conditions.len())
    }

    fn set(&self, set: &SetPlan) -> Cost {
        let (left, right) = (self.select(&set.left.0).top, self.select(&set.right.0).top);
        let all = Cost {
            startup: left.startup,
            total: left.total + right.total,
            rows: left.rows + right.rows,
            width: left.width.max(right.width),
        };
        let groups = match (set.operator, set.all) {
            (SetOperator::Union, true) => return all,
            (SetOperator::Union, false) => all.rows,
            (SetOperator::Intersect, _) => left.rows.min(right.rows),
            (SetOperator::Except, _) => left.rows,
        };
        self.group(all, at_least_one(groups), set.types.len(), 0, all.width)
    }
}

/// All conditions of a join by keys, those of its keys included.
pub(crate) fn key_conditions(join: &KeyJoin) -> Vec<Expr> {
    let keys = join.keys.iter().map(|(left, right, data_type)| Expr::Compare {
        op: CompareOp::Equal,
        left: Box::new(left.clone()),
        right: Box::new(right.clone()),
        data_type: *data_type,
    });
    keys.chain(conjuncts(join.condition.as_ref())).collect()
}

fn conjuncts(condition: Option<&Expr>) -> Vec<Expr> {
    condition.map_or_else(Vec::new, |condition| {
        crate::planner::conditions::conjuncts(condition.clone())
    })
}

/// The equalities with columns of the left side that an index of the right side answers, over the block's row.
fn checked_below(node: &Node) -> Vec<Expr> {
    let Node::Table {
        scan,
        base,
        arguments,
        ..
    } = node.unmeasured()
    else {
        return Vec::new();
    };
    let index = match scan.access {
        AccessPath::Sequential | AccessPath::CurrentOf(_) => return Vec::new(),
        _ => super::scan::conditions_of(&scan.table, &scan.access),
    };
    let over_block = |condition: Expr| match condition {
        Expr::Compare {
            op: CompareOp::Equal,
            left,
            right,
            data_type,
        } => match (&*left, &*right) {
            (Expr::Column(column), Expr::Outer(number)) => Some(Expr::Compare {
                op: CompareOp::Equal,
                left: Box::new(arguments.get(usize::from(*number))?.clone()),
                right: Box::new(Expr::Column(base + column)),
                data_type,
            }),
            _ => None,
        },
        _ => None,
    };
    index.into_iter().filter_map(over_block).collect()
}

/// The rows of a series by its bounds.
fn series_rows(start: &Expr, stop: &Expr) -> f64 {
    match (start, stop) {
        (Expr::Constant(start), Expr::Constant(stop)) => match (start.as_i64(), stop.as_i64()) {
            (Some(start), Some(stop)) => at_least_one(stop as f64 - start as f64 + 1.0),
            _ => SERIES_ROWS,
        },
        _ => SERIES_ROWS,
    }
}
