//! The order of inner joins.
//!
//! # Up to eight relations
//! Dynamic programming over sets of relations (Selinger and others 1979). The best plan of a set is the cheapest join of the
//! best plans of two sets that it consists of; a plan may be bushy. A pair of sets is joined if a condition reads both, or
//! one needs the other (LATERAL); if no plan comes of that, as for `from a, b` without a condition, any pair is.
//!
//! # Beyond
//! Greedy (of chains and stars of twelve tables the tests hold it to a factor of the best plan): first the relation with the fewest rows, then again and again the one that gives the fewest rows, one with a
//! condition to those before it first.
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
use crate::planner::join::{Pair, Planned, Side, Tree, take_conditions};
use crate::planner::leaves::LeafSet;

/// A set of the relations of an inner join, by their places.
type Sides = u16;

/// The best plan of a set of relations: its cost, and the sets that it joins.
#[derive(Clone, Copy)]
struct Best {
    cost: Cost,
    left: Sides,
    right: Sides,
}

struct Search<'s> {
    tree: &'s Tree<'s, 's>,
    sides: &'s [Side],
    conditions: &'s [Expr],
    /// The relations that each condition reads.
    reads: Vec<Sides>,
    within: LeafSet,
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
        needs & self.within & !self.leaves(set)
    }

    /// The conditions that a join of two sets checks (O1).
    fn checked(&self, left: Sides, right: Sides) -> Vec<Expr> {
        checked_by(&self.reads, left, right)
            .map(|at| self.conditions[at].clone())
            .collect()
    }

    fn cost(&self, set: Sides) -> Option<Cost> {
        match is_one(set) {
            true => self.each(set).next().map(|side| side.planned.cost),
            false => self.best[usize::from(set)].map(|best| best.cost),
        }
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
        let (Some(left_cost), Some(right_cost)) = (self.cost(left), self.cost(right)) else {
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
            left: left_cost,
            left_set: self.leaves(left),
            right: right_cost,
            right_set: self.leaves(right),
            table,
            lateral: needed != 0,
            conditions: &conditions,
        })?;
        let place = &mut self.best[usize::from(left | right)];
        if place.is_none_or(|best| chosen.cost.total < best.cost.total) {
            *place = Some(Best {
                cost: chosen.cost,
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
    pub(super) fn ordered(
        &self,
        sides: Vec<Side>,
        conditions: Vec<Expr>,
        within: LeafSet,
    ) -> Result<Planned> {
        if sides.len() > self.costs.settings.searched_relations.min(12) {
            return self.greedy(sides, conditions, within);
        }
        let read_by = |condition: &Expr| {
            let leaves = self.leaves.read_by(condition);
            let sides = sides.iter().enumerate();
            let read = sides.filter(|(_, side)| side.planned.set & leaves != 0);
            read.fold(0, |set: Sides, (at, _)| set | 1 << at)
        };
        let reads: Vec<Sides> = conditions.iter().map(read_by).collect();
        let mut search = Search {
            tree: self,
            sides: &sides,
            conditions: &conditions,
            reads: reads.clone(),
            within,
            best: vec![None; 1 << sides.len()],
        };
        let all = ((1u32 << sides.len()) - 1) as Sides;
        search.run(false)?;
        if search.cost(all).is_none() {
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

    fn greedy(&self, mut sides: Vec<Side>, mut pool: Vec<Expr>, within: LeafSet) -> Result<Planned> {
        let mut joined: Option<Planned> = None;
        while !sides.is_empty() {
            let at = self.next_side(joined.as_ref(), &sides, &pool, within);
            let side = sides.remove(at);
            let set = side.planned.set | joined.as_ref().map_or(0, |joined| joined.set);
            let ready = take_conditions(&mut pool, |condition| {
                self.leaves.read_by(condition) & within & !set == 0
            });
            joined = Some(match joined {
                None => self.filtered(side.planned, ready),
                Some(left) => self.join(JoinKind::Inner, left, side, ready)?,
            });
        }
        let planned = joined.ok_or_else(|| EngineError::internal("a join has no sides"))?;
        Ok(self.filtered(planned, pool))
    }

    /// The side to join next; its place.
    fn next_side(&self, joined: Option<&Planned>, sides: &[Side], pool: &[Expr], within: LeafSet) -> usize {
        let before = joined.map_or(0, |joined| joined.set);
        let candidates = sides
            .iter()
            .enumerate()
            .filter(|(_, side)| side.needs & within & !before == 0);
        let rank = |side: &Side| -> (bool, f64) {
            let Some(joined) = joined else {
                return (false, side.planned.cost.rows);
            };
            let set = before | side.planned.set;
            let ready: Vec<Expr> = pool
                .iter()
                .filter(|condition| {
                    let read = self.leaves.read_by(condition);
                    read & within & !set == 0 && read & side.planned.set != 0
                })
                .cloned()
                .collect();
            let (left, right) = (joined.cost.rows, side.planned.cost.rows);
            let rows = left * right * self.facts.selectivity_of_all(&ready);
            (ready.is_empty(), rows)
        };
        candidates
            .map(|(at, side)| (at, rank(side)))
            .min_by(|(_, a), (_, b)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)))
            .map_or(0, |(at, _)| at)
    }
}

/// Makes the operators of the best plan.
struct Build<'b> {
    tree: &'b Tree<'b, 'b>,
    best: Vec<Option<Best>>,
    reads: Vec<Sides>,
    conditions: Vec<Expr>,
    sides: Vec<Option<Side>>,
}

impl Build<'_> {
    fn side(&mut self, set: Sides) -> Result<Side> {
        let missing = || EngineError::internal("a set of relations has no plan");
        if is_one(set) {
            let place = self.sides.get_mut(set.trailing_zeros() as usize);
            return place.and_then(Option::take).ok_or_else(missing);
        }
        let Best { left, right, .. } = self.best[usize::from(set)].ok_or_else(missing)?;
        let conditions = checked_by(&self.reads, left, right)
            .map(|at| self.conditions[at].clone())
            .collect();
        let left = self.side(left)?.planned;
        let right = self.side(right)?;
        Ok(Side {
            planned: self.tree.join(JoinKind::Inner, left, right, conditions)?,
            table: None,
            needs: 0,
        })
    }
}

#[cfg(test)]
mod tests;
