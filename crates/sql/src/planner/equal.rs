//! Expressions of several relations that an inner join makes equal.
//!
//! # Example
//!
//! ```text
//! a.x = b.x and b.x = c.x                 one class {a.x, b.x, c.x}: a and c can be joined before b is there
//! a.x = b.x and a.x = 5                   a.x = 5 and b.x = 5: both sides may use an index
//! ```
//!
//! # Rules
//! - Q1. The equalities of a class are taken out of the conditions. A join whose sides both have members checks one pair of
//!   them; within a side all members are equal already, and those of one relation are compared where it is read. So each
//!   equality follows from what is checked, and none counts twice in an estimate.
//! - Q2. Of the pairs of a join the one that lets most rows through is taken. All are equally right, but an estimate from
//!   two columns whose common values are known sees that these meet, which one with a unique column between them does not.
//! - Q3. A class with a constant becomes comparisons with it, one for each member.
//! - Q4. Members are compared as one type, since `=` of different types need not be transitive, and evaluating them once more
//!   changes nothing.
//!
//! Two expressions alone stay the condition that they are. PostgreSQL has the idea under the name of equivalence classes.

use crate::expr::{CompareOp, Expr};
use crate::planner::facts::Facts;
use crate::planner::leaves::{LeafSet, Leaves};
use crate::value::DataType;

/// Expressions that are equal, each of one relation of the join.
#[derive(Debug)]
pub(super) struct Class {
    data_type: DataType,
    members: Vec<Member>,
}

#[derive(Debug, Clone)]
struct Member {
    expr: Expr,
    /// The leaves of its relation; none of a constant.
    set: LeafSet,
}

/// Expressions that are equal, and the places of the conditions that say so.
struct Found {
    class: Class,
    said_by: Vec<usize>,
}

fn equality(left: &Expr, right: &Expr, data_type: DataType) -> Expr {
    Expr::Compare {
        op: CompareOp::Equal,
        left: Box::new(left.clone()),
        right: Box::new(right.clone()),
        data_type,
    }
}

impl Class {
    fn add(&mut self, member: Member) {
        if !self.members.iter().any(|known| known.expr == member.expr) {
            self.members.push(member);
        }
    }

    /// The number of relations that have members.
    fn relations(&self) -> usize {
        let mut sets: Vec<LeafSet> = self.members.iter().map(|member| member.set).collect();
        sets.sort_unstable();
        sets.dedup();
        sets.iter().filter(|set| **set != 0).count()
    }

    /// The comparisons that are made before the relations are joined (Q1, Q3).
    fn within_relations(&self) -> Vec<Expr> {
        let mut all = Vec::new();
        let constant = self.members.iter().find(|member| member.set == 0);
        for (at, member) in self.members.iter().enumerate() {
            let other = match constant {
                Some(constant) if constant.expr == member.expr => None,
                Some(constant) => Some(constant),
                None => self.members[..at].iter().rfind(|before| before.set == member.set),
            };
            all.extend(other.map(|other| equality(&member.expr, &other.expr, self.data_type)));
        }
        all
    }

    fn has_constant(&self) -> bool {
        self.members.iter().any(|member| member.set == 0)
    }

    /// The equality that a join of two sets of leaves checks (Q2).
    fn between(&self, left: LeafSet, right: LeafSet, facts: &Facts) -> Option<Expr> {
        let of = |set: LeafSet| self.members.iter().filter(move |member| member.set & !set == 0);
        let pairs = of(left).flat_map(|one| of(right).map(move |other| (one, other)));
        let equalities = pairs.map(|(one, other)| equality(&one.expr, &other.expr, self.data_type));
        equalities
            .map(|equality| (facts.selectivity(&equality), equality))
            .reduce(|best, next| if next.0 > best.0 { next } else { best })
            .map(|(_, equality)| equality)
    }
}

/// Takes the classes out of the conditions of an inner join of these relations, and adds what they say of single ones.
pub(super) fn take_classes(conditions: &mut Vec<Expr>, leaves: &Leaves, relations: &[LeafSet]) -> Vec<Class> {
    let mut classes = Vec::new();
    let mut said = vec![false; conditions.len()];
    let mut more = Vec::new();
    for Found { class, said_by } in found(conditions, leaves, relations) {
        let is_wanted = match class.has_constant() {
            true => class.members.len() > 2,
            false => class.relations() > 2,
        };
        if !is_wanted {
            continue;
        }
        said_by.iter().for_each(|at| said[*at] = true);
        more.extend(class.within_relations());
        if !class.has_constant() {
            classes.push(class);
        }
    }
    let mut said = said.into_iter();
    conditions.retain(|_| !said.next().unwrap_or(false));
    conditions.extend(more);
    classes
}

fn found(conditions: &[Expr], leaves: &Leaves, relations: &[LeafSet]) -> Vec<Found> {
    let mut all: Vec<Found> = Vec::new();
    let member = |expr: &Expr| {
        let read = leaves.read_by(expr);
        let mut relations = relations.iter();
        let set = match read {
            0 => Some(0),
            read => relations.find(|set| read & !**set == 0).copied(),
        }?;
        let expr = expr.clone();
        expr.is_repeatable().then_some(Member { expr, set })
    };
    for (at, condition) in conditions.iter().enumerate() {
        let Expr::Compare {
            op: CompareOp::Equal,
            left,
            right,
            data_type,
        } = condition
        else {
            continue;
        };
        let (Some(one), Some(other)) = (member(left), member(right)) else {
            continue;
        };
        let knows = |found: &Found, expr: &Expr| {
            found.class.data_type == *data_type
                && found.class.members.iter().any(|member| member.expr == *expr)
        };
        // Those that this condition brings together.
        let (touched, rest) = all
            .into_iter()
            .partition(|found| knows(found, &one.expr) || knows(found, &other.expr));
        all = rest;
        let mut whole = Found {
            class: Class {
                data_type: *data_type,
                members: Vec::new(),
            },
            said_by: Vec::new(),
        };
        let touched: Vec<Found> = touched;
        for found in touched {
            found
                .class
                .members
                .into_iter()
                .for_each(|member| whole.class.add(member));
            whole.said_by.extend(found.said_by);
        }
        whole.class.add(one);
        whole.class.add(other);
        whole.said_by.push(at);
        all.push(whole);
    }
    all
}

/// The equalities of classes that a join of two sets of leaves checks.
pub(super) fn between(classes: &[Class], left: LeafSet, right: LeafSet, facts: &Facts) -> Vec<Expr> {
    let equalities = classes.iter().map(|class| class.between(left, right, facts));
    equalities.flatten().collect()
}
