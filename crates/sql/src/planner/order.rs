//! The order of inner joins.
//!
//! # Up to eight relations
//! Dynamic programming over sets of relations (Selinger and others 1979). The best plan of a set is the cheapest join of the
//! best plans of two sets that it consists of; a plan may be bushy. A pair of sets is joined if a condition reads both, or
//! one needs the other (LATERAL); if no plan comes of that, as for `from a, b` without a condition, any pair is.
//!
//! # Beyond
//! Greedy, once from each of the twelve relations with the fewest rows: again and again the relation that gives the fewest
//! rows comes next, one with a condition to those before it first. The cheapest of these orders is taken. From the smallest
//! relation alone the order may go the wrong way round: from a small table without a condition of its own through large
//! ones, before the table whose condition leaves a few rows. The tests hold chains and stars of twelve tables to a factor of
//! the best plan.
//!
//! # Invariants
//! - O1. Each condition is checked by exactly one join on the way from a relation to the whole: the lowest whose set has
//!   all that it reads. One that reads a single relation, which is left when it has a query inside it, is checked by the
//!   first join of that relation.
//! - O2. The rows of a set do not depend on the order in which it was joined, but for what is below one row.
//! - O3. The right side of a join may need the left one, and a set of several relations needs none outside of it.
//!
//! Costs: 3ⁿ pairs, 6,561 for eight relations, each a handful of additions.

use crate::error::{EngineError, Result};
use crate::expr::Expr;
use crate::plan::JoinKind;
use crate::planner::cost::Cost;
use crate::planner::equal;
use crate::planner::join::{Tree, take_conditions};
use crate::planner::leaves::LeafSet;
use crate::planner::planned::{Conditions, Input, Pair, Planned, RowOrder, Side};

/// Relations that a greedy order is begun with, at most.
const STARTS_MAX: usize = 12;

/// A set of the relations of an inner join, by their places.
type Sides = u16;

/// The best plan of a set of relations: its cost, the order of its rows, and the sets that it joins.
#[derive(Clone)]
struct Best {
    cost: Cost,
    order: RowOrder,
    left: Sides,
    right: Sides,
}

struct Search<'s> {
    tree: &'s Tree<'s, 's>,
    sides: &'s [Side],
    conditions: &'s Conditions<'s>,
    /// The relations that each condition reads.
    reads: Vec<Sides>,
    best: Vec<Option<Best>>,
}

fn is_one(set: Sides) -> bool {
    set.count_ones() == 1
}

impl Search<'_> {
    fn leaves(&self, set: Sides) -> LeafSet {
        self.each(set).fold(0, |leaves, side| leaves | side.planned.set)
    }

    fn each(&self, set: Sides) -> impl Iterator<Item = &Side> {
        let sides = self.sides.iter().enumerate();
        sides
            .filter(move |(at, _)| set & (1 << at) != 0)
            .map(|(_, side)| side)
    }

    /// The leaves outside of a set that it needs.
    fn needs(&self, set: Sides) -> LeafSet {
        let needs = self.each(set).fold(0, |needs, side| needs | side.needs);
        needs & self.conditions.within & !self.leaves(set)
    }

    /// The conditions that a join of two sets checks (O1).
    fn checked(&self, left: Sides, right: Sides) -> Vec<Expr> {
        let sets = (self.leaves(left), self.leaves(right));
        checked_by(&self.reads, left, right)
            .map(|at| self.conditions.pool[at].clone())
            .chain(self.tree.equalities(self.conditions, sets))
            .collect()
    }

    fn input(&self, set: Sides) -> Option<Input<'_>> {
        if is_one(set) {
            return self.each(set).next().map(|side| side.planned.input());
        }
        self.best[usize::from(set)].as_ref().map(|best| Input {
            cost: best.cost,
            set: self.leaves(set),
            order: &best.order,
            scans: &[],
        })
    }

    /// Finds the best plan of each set, in ascending order: the parts of a set come before it.
    fn run(&mut self, joins_any: bool) -> Result<()> {
        let all = (1u32 << self.sides.len()) - 1;
        for set in 3..=all as Sides {
            if is_one(set) {
                continue;
            }
            let mut left = (set - 1) & set;
            while left > 0 {
                self.look_at(left, set ^ left, joins_any)?;
                left = (left - 1) & set;
            }
        }
        Ok(())
    }

    fn look_at(&mut self, left: Sides, right: Sides, joins_any: bool) -> Result<()> {
        let (Some(of_left), Some(of_right)) = (self.input(left), self.input(right)) else {
            return Ok(());
        };
        let needed = self.needs(right);
        let is_met = self.needs(left) == 0 && needed & !self.leaves(left) == 0;
        let conditions = self.checked(left, right);
        if !is_met || (conditions.is_empty() && needed == 0 && !joins_any) {
            return Ok(());
        }
        let table = match is_one(right) {
            true => self.each(right).next().and_then(|side| side.table.as_ref()),
            false => None,
        };
        let chosen = self.tree.method(&Pair {
            kind: JoinKind::Inner,
            left: of_left,
            right: of_right,
            table,
            lateral: needed != 0,
            conditions: &conditions,
        })?;
        let place = &mut self.best[usize::from(left | right)];
        if place
            .as_ref()
            .is_none_or(|best| chosen.cost.total < best.cost.total)
        {
            *place = Some(Best {
                cost: chosen.cost,
                order: chosen.order,
                left,
                right,
            });
        }
        Ok(())
    }
}

/// The places of the conditions, which read these relations each, that a join of two sets checks (O1).
fn checked_by(reads: &[Sides], left: Sides, right: Sides) -> impl Iterator<Item = usize> {
    let is_checked = move |reads: Sides| {
        let before = |set: Sides| reads & !set == 0 && !is_one(set);
        reads & !(left | right) == 0 && !before(left) && !before(right)
    };
    let reads = reads.iter().enumerate();
    reads
        .filter(move |(_, reads)| is_checked(**reads))
        .map(|(at, _)| at)
}

impl Tree<'_, '_> {
    /// Joins relations in the best order that is found.
    pub(super) fn ordered(&self, sides: Vec<Side>, conditions: Conditions<'_>) -> Result<Planned> {
        if sides.len() > self.costs.settings.searched_relations.min(12) {
            return self.greedy(sides, conditions);
        }
        let read_by = |condition: &Expr| {
            let leaves = self.leaves.read_by(condition);
            let sides = sides.iter().enumerate();
            let read = sides.filter(|(_, side)| side.planned.set & leaves != 0);
            read.fold(0, |set: Sides, (at, _)| set | 1 << at)
        };
        let reads: Vec<Sides> = conditions.pool.iter().map(read_by).collect();
        let mut search = Search {
            tree: self,
            sides: &sides,
            conditions: &conditions,
            reads: reads.clone(),
            best: vec![None; 1 << sides.len()],
        };
        let all = ((1u32 << sides.len()) - 1) as Sides;
        search.run(false)?;
        if search.input(all).is_none() {
            search.run(true)?;
        }
        let best = std::mem::take(&mut search.best);
        let mut build = Build {
            tree: self,
            best,
            reads,
            conditions,
            sides: sides.into_iter().map(Some).collect(),
        };
        Ok(build.side(all)?.planned)
    }

    /// The equalities of the classes that a join of two sets of leaves checks.
    fn equalities(&self, conditions: &Conditions<'_>, (left, right): (LeafSet, LeafSet)) -> Vec<Expr> {
        equal::between(conditions.classes, left, right, &self.facts)
    }

    fn greedy(&self, sides: Vec<Side>, conditions: Conditions<'_>) -> Result<Planned> {
        let mut starts: Vec<usize> = (0..sides.len())
            .filter(|at| sides[*at].needs & conditions.within == 0)
            .collect();
        let rows = |at: &usize| sides[*at].planned.cost.rows;
        starts.sort_by(|one, other| rows(one).total_cmp(&rows(other)));
        starts.truncate(STARTS_MAX);
        let mut best: Option<(f64, Vec<usize>)> = None;
        for start in starts {
            let (total, order) = self.greedy_from(start, &sides, conditions.clone())?;
            if best.as_ref().is_none_or(|(least, _)| total < *least) {
                best = Some((total, order));
            }
        }
        let (_, order) = best.ok_or_else(|| EngineError::internal("a join has no side to start with"))?;
        self.in_order(&order, sides, conditions)
    }

    /// The greedy order from a side, and its cost.
    fn greedy_from(
        &self,
        start: usize,
        sides: &[Side],
        mut conditions: Conditions<'_>,
    ) -> Result<(f64, Vec<usize>)> {
        let first = &sides[start].planned;
        let (mut set, mut order) = (first.set, vec![start]);
        let mut rows_order = first.order.clone();
        let mut rest: Vec<usize> = (0..sides.len()).filter(|at| *at != start).collect();
        let ready = self.take_ready(&mut conditions, 0, set);
        let mut cost = ready.iter().fold(first.cost, |cost, condition| {
            self.costs.filtered(cost, &self.facts, condition)
        });
        while !rest.is_empty() {
            let at = rest.remove(self.next_side((cost.rows, set), sides, &rest, &conditions));
            let side = &sides[at];
            let left = Input {
                cost,
                set,
                order: &rows_order,
                scans: if order.len() == 1 { &first.scans } else { &[] },
            };
            let ready = self.take_ready(&mut conditions, set, side.planned.set);
            let chosen = self.method(&Pair {
                kind: JoinKind::Inner,
                left,
                right: side.planned.input(),
                table: side.table.as_ref(),
                lateral: side.needs & set != 0,
                conditions: &ready,
            })?;
            cost = chosen.cost;
            rows_order = chosen.order;
            set |= side.planned.set;
            order.push(at);
        }
        Ok((cost.total, order))
    }

    /// Takes the conditions that a join of a set with another one checks.
    fn take_ready(&self, conditions: &mut Conditions<'_>, before: LeafSet, set: LeafSet) -> Vec<Expr> {
        let outside = conditions.within & !(before | set);
        let mut ready = take_conditions(&mut conditions.pool, |condition| {
            self.leaves.read_by(condition) & outside == 0
        });
        ready.extend(self.equalities(conditions, (before, set)));
        ready
    }

    /// Joins the sides one after the other.
    fn in_order(&self, order: &[usize], sides: Vec<Side>, mut conditions: Conditions<'_>) -> Result<Planned> {
        let mut sides: Vec<Option<Side>> = sides.into_iter().map(Some).collect();
        let mut joined: Option<Planned> = None;
        for at in order {
            let side = sides[*at]
                .take()
                .ok_or_else(|| EngineError::internal("a side is joined twice"))?;
            let before = joined.as_ref().map_or(0, |joined| joined.set);
            let ready = self.take_ready(&mut conditions, before, side.planned.set);
            joined = Some(match joined {
                None => self.filtered(side.planned, ready),
                Some(left) => self.join(JoinKind::Inner, left, side, ready)?,
            });
        }
        let planned = joined.ok_or_else(|| EngineError::internal("a join has no sides"))?;
        Ok(self.filtered(planned, conditions.pool))
    }

    /// The side to join next to so many rows of a set; its place in `rest`.
    fn next_side(
        &self,
        (rows, before): (f64, LeafSet),
        sides: &[Side],
        rest: &[usize],
        conditions: &Conditions<'_>,
    ) -> usize {
        let within = conditions.within;
        let rank = |side: &Side| -> (bool, f64) {
            let set = before | side.planned.set;
            let equalities = self.equalities(conditions, (before, side.planned.set));
            let ready: Vec<Expr> = conditions
                .pool
                .iter()
                .filter(|condition| {
                    let read = self.leaves.read_by(condition);
                    read & within & !set == 0 && read & side.planned.set != 0
                })
                .cloned()
                .chain(equalities)
                .collect();
            let joined = rows * side.planned.cost.rows * self.facts.selectivity_of_all(&ready);
            (ready.is_empty(), joined)
        };
        rest.iter()
            .map(|at| &sides[*at])
            .enumerate()
            .filter(|(_, side)| side.needs & within & !before == 0)
            .map(|(place, side)| (place, rank(side)))
            .min_by(|(_, a), (_, b)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)))
            .map_or(0, |(place, _)| place)
    }
}

/// Makes the operators of the best plan.
struct Build<'b> {
    tree: &'b Tree<'b, 'b>,
    best: Vec<Option<Best>>,
    reads: Vec<Sides>,
    conditions: Conditions<'b>,
    sides: Vec<Option<Side>>,
}

impl Build<'_> {
    fn side(&mut self, set: Sides) -> Result<Side> {
        let missing = || EngineError::internal("a set of relations has no plan");
        if is_one(set) {
            let place = self.sides.get_mut(set.trailing_zeros() as usize);
            return place.and_then(Option::take).ok_or_else(missing);
        }
        let best = self.best[usize::from(set)].as_ref().ok_or_else(missing)?;
        let (left, right) = (best.left, best.right);
        let checked = checked_by(&self.reads, left, right);
        let mut conditions: Vec<Expr> = checked.map(|at| self.conditions.pool[at].clone()).collect();
        let left = self.side(left)?.planned;
        let right = self.side(right)?;
        let sets = (left.set, right.planned.set);
        conditions.extend(self.tree.equalities(&self.conditions, sets));
        Ok(Side {
            planned: self.tree.join(JoinKind::Inner, left, right, conditions)?,
            table: None,
            needs: 0,
        })
    }
}

#[cfg(test)]
mod tests;
