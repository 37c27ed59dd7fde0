//! Merge joins: which of a join's keys they go by, and how each side comes into their order.
//!
//! # Orders
//! Rows come in an order by chance (a table read by an index, a loop over such a table, another merge), by another way of
//! reading a table, or by sorting. For each order that a side has or may have, the keys that it begins with are tried: the
//! other keys are conditions then. All keys with both sides sorted are tried too, and the cheapest is taken.
//!
//! # Rules
//! - M1. An order is ascending by the bytes of the keys, as a sort by the operators of the comparison's type is: an index of
//!   another type has another order, but for the types of whole numbers.
//! - M2. Rows of one key stand together. A row that has a NULL among its keys equals none, and may stand anywhere: an index
//!   has it behind all others of its first columns, a sort before them.

use crate::access;
use crate::catalog::{TableDef, TableKind};
use crate::expr::Expr;
use crate::plan::{JoinKind, KeyJoin, MergeJoin, Node};
use crate::planner::cost::{Cost, JoinSides};
use crate::planner::join::Tree;
use crate::planner::planned::{Input, Keys, OrderedScan, Pair, Planned, RowOrder};
use crate::value::DataType;

/// A way for a side of a merge join to come into the order of its keys.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    /// It has the order.
    AsItIs,
    Sorted,
    /// By one of its other scans.
    Scan(usize),
}

/// A merge join by some of a join's keys.
pub(super) struct MergeChoice {
    keys: Keys,
    left: Way,
    right: Way,
}

impl MergeChoice {
    /// The order of the join's rows.
    pub(super) fn order(&self, kind: JoinKind) -> RowOrder {
        match kind {
            // Right rows that have no partner have no left row either.
            JoinKind::Full | JoinKind::Right => RowOrder::default(),
            _ => {
                let keys = self.keys.iter();
                keys.map(|(left, _, data_type)| (left.clone(), *data_type))
                    .collect()
            }
        }
    }
}

/// True if two expressions have the same values: widening a whole number does not change it.
fn is_same(one: &Expr, other: &Expr) -> bool {
    bare(one) == bare(other)
}

fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast { input, from, to, .. } if from.is_whole() && to.is_whole() => bare(input),
        other => other,
    }
}

/// True if values of one type ascend as those of the other (M1).
fn is_same_order(one: DataType, other: DataType) -> bool {
    one == other || (one.is_whole() && other.is_whole())
}

/// The keys that an order begins with, by their places. `of`: a key's expression on the side that has the order.
fn led_by(order: &RowOrder, keys: &Keys, of: fn(&(Expr, Expr, DataType)) -> &Expr) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    for (expr, data_type) in order.iter() {
        let next = keys
            .iter()
            .position(|key| is_same(of(key), expr) && is_same_order(key.2, *data_type));
        match next {
            Some(place) if !found.contains(&place) => found.push(place),
            _ => break,
        }
    }
    found
}

fn left_of(key: &(Expr, Expr, DataType)) -> &Expr {
    &key.0
}

fn right_of(key: &(Expr, Expr, DataType)) -> &Expr {
    &key.1
}

impl Tree<'_, '_> {
    /// The cheapest merge join by these keys.
    pub(super) fn merge(
        &self,
        pair: &Pair<'_>,
        sides: &JoinSides,
        keys: &Keys,
    ) -> Option<(MergeChoice, Cost)> {
        let mut orders: Vec<Vec<usize>> = vec![(0..keys.len()).collect()];
        let led = |input: &Input<'_>, of| {
            let scans = input.scans.iter().map(|scan| &scan.order);
            let all = std::iter::once(input.order).chain(scans);
            all.map(|order| led_by(order, keys, of)).collect::<Vec<_>>()
        };
        for order in led(&pair.left, left_of)
            .into_iter()
            .chain(led(&pair.right, right_of))
        {
            if !order.is_empty() && !orders.contains(&order) {
                orders.push(order);
            }
        }
        let mut best: Option<(MergeChoice, Cost)> = None;
        for order in orders {
            let keys: Keys = order.iter().map(|place| keys[*place].clone()).collect();
            let (left, left_cost) = self.way(&pair.left, &keys, left_of);
            let (right, right_cost) = self.way(&pair.right, &keys, right_of);
            let sides = JoinSides {
                left: left_cost,
                right: right_cost,
                ..*sides
            };
            let cost = self.costs.merge_join(&sides, keys.len(), pair.conditions.len());
            if best.as_ref().is_none_or(|(_, least)| cost.total < least.total) {
                best = Some((MergeChoice { keys, left, right }, cost));
            }
        }
        best
    }

    /// The cheapest way for a side to come in the order of the keys.
    fn way(&self, input: &Input<'_>, keys: &Keys, of: fn(&(Expr, Expr, DataType)) -> &Expr) -> (Way, Cost) {
        let has_order = |order: &RowOrder| led_by(order, keys, of).iter().copied().eq(0..keys.len());
        if has_order(input.order) {
            return (Way::AsItIs, input.cost);
        }
        let mut best = (Way::Sorted, self.costs.sort(input.cost, None));
        for (number, scan) in input.scans.iter().enumerate() {
            if scan.cost.total <= best.1.total && has_order(&scan.order) {
                best = (Way::Scan(number), scan.cost);
            }
        }
        best
    }

    /// The operator of a merge join. `rest`: the conditions that it leaves of the join's.
    pub(super) fn merge_join(
        &self,
        kind: JoinKind,
        (left, right): (Planned, Planned),
        choice: MergeChoice,
        conditions: Vec<Expr>,
    ) -> Node {
        let reached = |side: Planned, way: Way| match way {
            Way::Scan(number) => Planned {
                node: side.scans[number].node.clone(),
                ..side
            },
            _ => side,
        };
        let (sorts_left, sorts_right) = (choice.left == Way::Sorted, choice.right == Way::Sorted);
        let (left, right) = (reached(left, choice.left), reached(right, choice.right));
        let join: KeyJoin = self.key_join(kind, left, right, choice.keys, conditions);
        Node::Merge(Box::new(MergeJoin {
            join,
            sorts_left,
            sorts_right,
        }))
    }

    /// Adds a table's orders: that of its scan, and other scans in the order of an index.
    pub(super) fn with_orders(&self, mut planned: Planned) -> Planned {
        let Node::Table { scan, base, .. } = &planned.node else {
            return planned;
        };
        if !matches!(scan.table.kind, TableKind::Heap { .. }) {
            return planned;
        }
        match &scan.access {
            access::AccessPath::Range {
                index,
                prefix,
                reverse: false,
                ..
            } => planned.order = order_of_index(&scan.table, *index, prefix.len(), *base),
            access::AccessPath::Sequential => {
                // One with a predicate does not lead to all rows.
                let has_all = |index: &usize| scan.table.indexes[*index].predicate.is_none();
                let indexes = (0..scan.table.indexes.len()).filter(has_all);
                planned.scans = indexes
                    .map(|index| self.ordered_scan(&planned.node, &scan.table, index, *base))
                    .collect();
            }
            _ => {}
        }
        planned
    }

    /// A table's scan by an index, from its start to its end.
    fn ordered_scan(&self, node: &Node, table: &TableDef, index: usize, base: u16) -> OrderedScan {
        let mut node = node.clone();
        if let Node::Table { scan, .. } = &mut node {
            scan.access = access::ordered(index, false);
        }
        OrderedScan {
            cost: self.costs.node(&node, &self.facts, 1.0),
            node,
            order: order_of_index(table, index, 0, base),
        }
    }
}

/// The order of an index's columns behind those that are fixed, up to a part of the key that is an expression.
fn order_of_index(table: &TableDef, index: usize, fixed: usize, base: u16) -> RowOrder {
    let index = &table.indexes[index];
    let parts = (fixed..index.keys.len()).map_while(|at| Some((index.column(at)?, index.types[at])));
    parts
        .map(|(column, data_type)| (Expr::Column(base + column), data_type))
        .collect()
}
