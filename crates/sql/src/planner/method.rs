//! The method of a join: a loop, a hash table of one side, lookups by an index, a merge, whichever costs least.

use crate::access::AccessPath;
use crate::error::{EngineError, Result};
use crate::expr::{CompareOp, Expr};
use crate::plan::{JoinKind, Node};
use crate::planner::cost::{Cost, JoinMethod, JoinSides, rounds_of};
use crate::planner::join::Tree;
use crate::planner::leaves::LeafSet;
use crate::planner::merge::MergeChoice;
use crate::planner::planned::{Keys, Pair, Planned, RowOrder};
use crate::query::Leaf;
use crate::value::{DataType, Value};

/// The cheapest method for a pair.
pub(super) struct Method {
    pub(super) method: JoinMethod,
    pub(super) cost: Cost,
    /// The order in which the join's rows come.
    pub(super) order: RowOrder,
    /// The right side as it is looked up, and the conditions that this leaves.
    pub(super) lookup: Option<(Planned, Vec<Expr>)>,
    pub(super) merge: Option<MergeChoice>,
    pub(super) keys: Keys,
}

/// The best of the methods that were looked at.
struct Offers {
    best: Option<(JoinMethod, Cost)>,
}

impl Offers {
    /// Takes a method that costs no more than the best so far.
    fn offer(&mut self, method: JoinMethod, cost: Cost) {
        if self.best.is_none_or(|(_, other)| cost.total <= other.total) {
            self.best = Some((method, cost));
        }
    }
}

impl Tree<'_, '_> {
    /// The cheapest method of a join.
    pub(super) fn method(&self, pair: &Pair<'_>) -> Result<Method> {
        let (costs, conditions) = (&self.costs, pair.conditions);
        let (kind, left, right) = (pair.kind, pair.left.cost, pair.right.cost);
        let sides = JoinSides {
            kind,
            left,
            right,
            rows: costs.joined_rows(kind, left.rows, right.rows, &self.facts, conditions),
        };
        let keys = self.keys(pair)?;
        let mut offers = Offers { best: None };
        self.offer_loops(&mut offers, &sides, pair);
        let mut merge = None;
        if !keys.is_empty() {
            // Rows that are all of one key are one group: a hash table reads it faster than what a merge keeps.
            let is_one_key = keys.iter().all(|(left, _, _)| self.is_constant(left));
            merge = self.merge(pair, &sides, &keys).filter(|_| !is_one_key);
            if let Some((_, cost)) = &merge {
                offers.offer(JoinMethod::Merge, *cost);
            }
            self.offer_hash_tables(&mut offers, &sides, &keys, conditions.len());
        }
        let lookup = match pair.table {
            Some((leaf, own)) if !matches!(kind, JoinKind::Full | JoinKind::Right) => {
                self.lookup(leaf, own, conditions, left.rows)?
            }
            _ => None,
        };
        if let Some((found, rest)) = &lookup {
            let right = found.cost;
            let cost = costs.loop_anew(&JoinSides { right, ..sides }, rest.len());
            offers.offer(JoinMethod::Lookup, cost);
        }
        let best = offers.best;
        let (method, cost) = best.ok_or_else(|| EngineError::internal("a join has no method"))?;
        let merge = merge.map(|(choice, _)| choice);
        Ok(Method {
            method,
            cost,
            order: match (method, &merge) {
                (JoinMethod::Merge, Some(choice)) => choice.order(kind),
                (JoinMethod::Loop | JoinMethod::Lookup, _) => pair.left.order.clone(),
                _ => RowOrder::default(),
            },
            lookup,
            merge,
            keys,
        })
    }

    fn offer_loops(&self, offers: &mut Offers, sides: &JoinSides, pair: &Pair<'_>) {
        if pair.kind == JoinKind::Full {
            return;
        }
        let count = pair.conditions.len();
        offers.offer(
            JoinMethod::Loop,
            match self.keeps_right(pair.lateral) {
                true => self.costs.loop_kept(sides, count),
                false => self.costs.loop_anew(sides, count),
            },
        );
    }

    /// True if a loop keeps the rows of its right side.
    pub(super) fn keeps_right(&self, lateral: bool) -> bool {
        !lateral && self.costs.settings.keeps_rows
    }

    fn offer_hash_tables(&self, offers: &mut Offers, sides: &JoinSides, keys: &Keys, conditions: usize) {
        let costs = &self.costs;
        let values = |of: fn(&(Expr, Expr, DataType)) -> &Expr, rows: f64| {
            let keys: Vec<&Expr> = keys.iter().map(of).collect();
            costs.groups(&self.facts, &keys, rows)
        };
        let of_right = values(|(_, right, _)| right, sides.right.rows);
        if sides.kind == JoinKind::Inner {
            let of_left = values(|(left, _, _)| left, sides.left.rows);
            let swapped = JoinSides {
                left: sides.right,
                right: sides.left,
                ..*sides
            };
            let cost = costs.hash_join(&swapped, keys.len(), conditions, of_left);
            offers.offer(JoinMethod::HashLeft, cost);
        }
        let cost = costs.hash_join(sides, keys.len(), conditions, of_right);
        offers.offer(JoinMethod::Hash, cost);
    }

    /// The keys of a pair; a FULL JOIN without any is refused, as in PostgreSQL.
    fn keys(&self, pair: &Pair<'_>) -> Result<Keys> {
        let is_full = pair.kind == JoinKind::Full;
        if pair.lateral {
            return Ok(Vec::new());
        }
        if is_full
            && pair
                .conditions
                .iter()
                .all(|condition| self.is_constant(condition))
        {
            // All rows are of one key; a constant condition lets all pairs through, or none.
            let one = || Expr::Constant(Value::Int4(1));
            return Ok(vec![(one(), one(), DataType::Int4)]);
        }
        let keys = self.equal_keys(pair.left.set, pair.right.set, pair.conditions);
        if is_full && keys.is_empty() {
            return Err(EngineError::new(
                crate::error::SqlState::FEATURE_NOT_SUPPORTED,
                "FULL JOIN is only supported with merge-joinable or hash-joinable join conditions",
            ));
        }
        Ok(keys)
    }

    /// A table's rows for a row of the other side, which has so many, by an index, and the conditions that are left; `None`
    /// if no index serves.
    fn lookup(
        &self,
        leaf: &Leaf,
        own: &[Expr],
        conditions: &[Expr],
        runs: f64,
    ) -> Result<Option<(Planned, Vec<Expr>)>> {
        let (given, rest): (Vec<Expr>, Vec<Expr>) = conditions
            .iter()
            .cloned()
            .partition(|condition| !condition.has_subquery());
        let runs = rounds_of(runs, self.fewest_rows_behind(leaf, &given));
        let given = own.iter().cloned().chain(given).collect();
        let found = self.leaf_for(leaf.clone(), given, runs)?;
        let is_looked_up = matches!(&found.node, Node::Table { arguments, scan, .. }
            if !arguments.is_empty() && !matches!(scan.access, AccessPath::Sequential));
        Ok(is_looked_up.then_some((found, rest)))
    }

    /// The least of the rows of the tables that conditions of a join read beside a leaf.
    fn fewest_rows_behind(&self, leaf: &Leaf, conditions: &[Expr]) -> f64 {
        let of_leaf = leaf.base..leaf.base + leaf.width;
        let known = self.own_rows.borrow();
        let mut fewest = f64::INFINITY;
        for condition in conditions {
            condition.columns(&mut |column| {
                let found = known.iter().find(|(columns, _)| columns.contains(&column));
                if let Some((_, rows)) = found.filter(|_| !of_leaf.contains(&column)) {
                    fewest = fewest.min(*rows);
                }
            });
        }
        fewest
    }

    /// True if an expression has one value for all rows.
    fn is_constant(&self, expr: &Expr) -> bool {
        self.leaves.read_by(expr) == 0 && !expr.has_subquery() && expr.is_repeatable()
    }

    /// The conditions that say that something of one side equals something of the other: left, right, type.
    fn equal_keys(&self, left: LeafSet, right: LeafSet, conditions: &[Expr]) -> Keys {
        let only = |expr: &Expr, set: LeafSet| {
            let read = self.leaves.read_by(expr);
            read != 0 && read & !set == 0 && expr.is_repeatable()
        };
        conditions
            .iter()
            .filter_map(|condition| match condition {
                Expr::Compare {
                    op: CompareOp::Equal,
                    left: one,
                    right: two,
                    data_type,
                } => {
                    if only(one, left) && only(two, right) {
                        Some(((**one).clone(), (**two).clone(), *data_type))
                    } else if only(two, left) && only(one, right) {
                        Some(((**two).clone(), (**one).clone(), *data_type))
                    } else {
                        None
                    }
                }
                _ => None,
            })
            .collect()
    }
}
