//! Leaves of a FROM, and which of them an expression reads.

use std::ops::Range;

use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::query::{Leaf, Relation, Rows};

/// A set of leaves, by their numbers.
pub(super) type LeafSet = u128;

/// The places of a FROM's leaves in its row, in order.
#[derive(Debug, Default)]
pub(super) struct Leaves {
    /// Per leaf its columns, and that of the place of its rows.
    ranges: Vec<(Range<u16>, Option<u16>)>,
}

impl Leaves {
    /// The leaves of a FROM, numbered by their places.
    pub(super) fn of(relation: &Relation) -> Result<Leaves> {
        let mut leaves = Leaves::default();
        leaves.add(relation);
        leaves.ranges.sort_by_key(|(range, _)| range.start);
        if leaves.ranges.len() > LeafSet::BITS as usize {
            return Err(EngineError::new(
                SqlState::STATEMENT_TOO_COMPLEX,
                format!("a FROM clause can have at most {} relations", LeafSet::BITS),
            ));
        }
        Ok(leaves)
    }

    fn add(&mut self, relation: &Relation) {
        match relation {
            Relation::OneRow => {}
            Relation::Leaf(leaf) => self.ranges.push((leaf.base..leaf.base + leaf.width, leaf.place)),
            Relation::Join(join) => {
                self.add(&join.left);
                self.add(&join.right);
            }
        }
    }

    /// The leaves that an expression reads.
    pub(super) fn read_by(&self, expr: &Expr) -> LeafSet {
        let mut set = 0;
        expr.columns(&mut |column| set |= self.with(column));
        set
    }

    fn with(&self, column: u16) -> LeafSet {
        let at = self.ranges.partition_point(|(range, _)| range.end <= column);
        match self.ranges.get(at) {
            Some((range, _)) if range.contains(&column) => 1 << at,
            _ => {
                let mut leaves = self.ranges.iter();
                let told = leaves.position(|(_, place)| *place == Some(column));
                told.map_or(0, |leaf| 1 << leaf)
            }
        }
    }

    /// A leaf as a set.
    pub(super) fn of_leaf(&self, leaf: &Leaf) -> LeafSet {
        let own = leaf.base..leaf.base + leaf.width;
        let at = self.ranges.iter().position(|(range, _)| *range == own);
        at.map_or(0, |at| 1 << at)
    }

    /// The leaves of a relation.
    pub(super) fn in_relation(&self, relation: &Relation) -> LeafSet {
        match relation {
            Relation::OneRow => 0,
            Relation::Leaf(leaf) => self.of_leaf(leaf),
            Relation::Join(join) => self.in_relation(&join.left) | self.in_relation(&join.right),
        }
    }

    /// The leaves outside a relation that it reads: those to its left, of LATERAL.
    pub(super) fn needed_by(&self, relation: &Relation) -> LeafSet {
        self.all_read_in(relation) & !self.in_relation(relation)
    }

    fn all_read_in(&self, relation: &Relation) -> LeafSet {
        let of = |exprs: &[Expr]| exprs.iter().fold(0, |set, expr| set | self.read_by(expr));
        match relation {
            Relation::OneRow => 0,
            Relation::Leaf(leaf) => match &leaf.rows {
                Rows::Table(_) => 0,
                Rows::Query { arguments, .. } | Rows::Shared { arguments, .. } => of(arguments),
                Rows::Series(series) => {
                    self.read_by(&series.start)
                        | self.read_by(&series.stop)
                        | series.step.as_ref().map_or(0, |step| self.read_by(step))
                }
                Rows::Functions(functions) => {
                    let mut set = 0;
                    let calls = functions.calls.iter();
                    calls.for_each(|call| call.each_argument(&mut |expr| set |= self.read_by(expr)));
                    set
                }
                Rows::Values(rows) => rows.iter().fold(0, |set, row| set | of(row)),
                Rows::Set(_) | Rows::Recursive(_) | Rows::Working(_) | Rows::Change => 0,
            },
            Relation::Join(join) => {
                of(&join.on) | self.all_read_in(&join.left) | self.all_read_in(&join.right)
            }
        }
    }

    /// The columns of these leaves in the row, with the places of their rows.
    pub(super) fn ranges(&self, set: LeafSet) -> impl Iterator<Item = Range<u16>> + '_ {
        let ranges = self.ranges.iter().enumerate();
        ranges
            .filter(move |(at, _)| set & (1 << at) != 0)
            .flat_map(|(_, (range, place))| {
                let place = place.map(|place| place..place + 1);
                std::iter::once(range.clone()).chain(place)
            })
    }
}

/// True if a condition is not true for a row in which all columns of these leaves are NULL: it takes away the rows that
/// an outer join adds.
pub(super) fn rejects_nulls(leaves: &Leaves, set: LeafSet, condition: &Expr) -> bool {
    let reads = |expr: &Expr| {
        // Through what gives NULL for NULL only.
        let mut inner = expr;
        while let Expr::Cast { input, .. } | Expr::Negate(input) = inner {
            inner = input;
        }
        matches!(inner, Expr::Column(column) if leaves.with(*column) & set != 0)
    };
    match condition {
        Expr::Compare { left, right, .. } => reads(left) || reads(right),
        Expr::Like { input, pattern, .. } => reads(input) || reads(pattern),
        Expr::InList {
            input,
            negated: false,
            ..
        } => reads(input),
        Expr::IsNull { input, negated: true } => reads(input),
        Expr::IsTruth {
            input,
            truth: Some(_),
            negated: false,
        } => reads(input),
        Expr::And(parts) => parts.iter().any(|part| rejects_nulls(leaves, set, part)),
        Expr::Or(parts) => parts.iter().all(|part| rejects_nulls(leaves, set, part)),
        other => reads(other),
    }
}
