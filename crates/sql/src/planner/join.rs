//! A FROM as a tree of operators.
//!
//! # Rules
//! 1. A condition is checked at the lowest operator whose rows have all its columns. One with a query inside it is
//!    checked by an operator of its own, since scans run no queries. One that has a query inside it and reads no column
//!    is checked before anything is read.
//! 2. A condition of WHERE goes below an outer join on the side that keeps all rows, never on the side that may be
//!    NULL; a condition of ON goes to the side that may be NULL, never to the other.
//! 3. A side that reads columns of the other (LATERAL) is opened again for each row of it.
//! 4. Inner joins are ordered by cost (`order`), and so is each join's method chosen (`method`).

use std::cell::RefCell;

use crate::error::Result;
use crate::expr::{CompareOp, Expr};
use crate::plan::{JoinKind, KeyJoin, LoopJoin, Node, RecursivePlan, SetPlan};
use crate::planner::Planner;
use crate::planner::alternatives;
use crate::planner::columns::ReadColumns;
use crate::planner::cost::{Costs, JoinMethod};
use crate::planner::equal;
use crate::planner::facts::Facts;
use crate::planner::fold;
use crate::planner::leaves::{LeafSet, Leaves, rejects_nulls};
use crate::planner::planned::{Conditions, Keys, Pair, Planned, Side};
use crate::planner::scan::{ScanFacts, all, need, plan_scan};
use crate::query::{Block, Join, Leaf, Relation, Rows, SetOperation, is_volatile};
use crate::stack::checkpoint;
use crate::value::Value;

impl Planner<'_> {
    /// The operators of a FROM with the conditions of WHERE. `read`: the columns that later stages read.
    pub(super) fn relation(
        &self,
        from: Relation,
        conditions: Vec<Expr>,
        mut read: ReadColumns,
    ) -> Result<Node> {
        let (gates, conditions): (Vec<Expr>, Vec<Expr>) = conditions.into_iter().partition(is_gate);
        conditions.iter().for_each(|condition| read.add(condition));
        add_read(&from, &mut read);
        let tree = self.tree(&from, read)?;
        let from = tree.without_needless_outer_joins(from, &conditions);
        let node = tree.plan(from, conditions)?.node;
        Ok(match all(gates) {
            None => node,
            Some(condition) => Node::Gate {
                input: Box::new(node),
                condition,
            },
        })
    }
}

impl<'c> Planner<'c> {
    pub(super) fn tree(&self, from: &Relation, read: ReadColumns) -> Result<Tree<'_, 'c>> {
        Ok(Tree {
            planner: self,
            leaves: Leaves::of(from)?,
            read,
            facts: Facts::of_relation(self.catalog, from),
            costs: self.costs(),
            own_rows: RefCell::default(),
        })
    }
}

/// True if a condition has the same value for all rows, which is not known yet.
pub(super) fn is_gate(condition: &Expr) -> bool {
    let mut same = !matches!(condition, Expr::Constant(_));
    condition.walk(&mut |part| match part {
        Expr::Column(_) | Expr::NextSerial { .. } => same = false,
        Expr::Call { function, .. } => same &= !function.is_volatile(),
        _ => {}
    });
    same
}

/// Adds the columns that a FROM's own expressions read.
fn add_read(relation: &Relation, read: &mut ReadColumns) {
    match relation {
        Relation::OneRow => {}
        Relation::Leaf(leaf) => match &leaf.rows {
            Rows::Table(_) | Rows::Set(_) | Rows::Recursive(_) | Rows::Working(_) | Rows::Change => {}
            Rows::Query { arguments, .. } | Rows::Shared { arguments, .. } => {
                arguments.iter().for_each(|expr| read.add(expr));
            }
            Rows::Series(series) => {
                read.add(&series.start);
                read.add(&series.stop);
                series.step.iter().for_each(|step| read.add(step));
            }
            Rows::Functions(functions) => {
                let calls = functions.calls.iter();
                calls.for_each(|call| call.each_argument(&mut |expr| read.add(expr)));
            }
            Rows::Values(rows) => rows.iter().flatten().for_each(|expr| read.add(expr)),
        },
        Relation::Join(join) => {
            join.on.iter().for_each(|expr| read.add(expr));
            add_read(&join.left, read);
            add_read(&join.right, read);
        }
    }
}

pub(super) struct Tree<'t, 'c> {
    planner: &'t Planner<'c>,
    pub(super) leaves: Leaves,
    read: ReadColumns,
    pub(super) facts: Facts,
    pub(super) costs: Costs<'t>,
    /// The rows of each table by its own conditions, with the places of its columns.
    pub(super) own_rows: RefCell<Vec<(std::ops::Range<u16>, f64)>>,
}

impl Tree<'_, '_> {
    /// Turns outer joins whose additional rows a condition takes away into inner joins.
    pub(super) fn without_needless_outer_joins(&self, relation: Relation, conditions: &[Expr]) -> Relation {
        let Relation::Join(join) = relation else {
            return relation;
        };
        let Join {
            mut kind,
            left,
            right,
            on,
        } = *join;
        let rejects = |set: LeafSet| {
            conditions
                .iter()
                .any(|condition| rejects_nulls(&self.leaves, set, condition))
        };
        let (left_set, right_set) = (self.leaves.in_relation(&left), self.leaves.in_relation(&right));
        kind = match kind {
            JoinKind::Left if rejects(right_set) => JoinKind::Inner,
            JoinKind::Right if rejects(left_set) => JoinKind::Inner,
            JoinKind::Full => match (rejects(left_set), rejects(right_set)) {
                (true, true) => JoinKind::Inner,
                (true, false) => JoinKind::Left,
                (false, true) => JoinKind::Right,
                (false, false) => JoinKind::Full,
            },
            same => same,
        };
        let with_on = || [conditions, &on].concat();
        let (for_left, for_right) = match kind {
            JoinKind::Inner | JoinKind::Semi => (with_on(), with_on()),
            JoinKind::Left | JoinKind::Anti => (conditions.to_vec(), on.clone()),
            JoinKind::Right => (on.clone(), conditions.to_vec()),
            JoinKind::Full => (Vec::new(), Vec::new()),
        };
        Relation::Join(Box::new(Join {
            kind,
            left: self.without_needless_outer_joins(left, &for_left),
            right: self.without_needless_outer_joins(right, &for_right),
            on,
        }))
    }

    fn plan(&self, relation: Relation, conditions: Vec<Expr>) -> Result<Planned> {
        checkpoint(|| self.plan_here(relation, conditions))
    }

    fn plan_here(&self, relation: Relation, conditions: Vec<Expr>) -> Result<Planned> {
        if conditions.iter().any(fold::is_never_true) {
            // What is inside it may fail or be refused all the same.
            let set = self.plan(relation, Vec::new())?.set;
            return Ok(self.nothing(set));
        }
        match relation {
            Relation::OneRow => Ok(self.filtered(self.one_row(), conditions)),
            Relation::Leaf(leaf) => self.leaf(leaf, conditions),
            Relation::Join(join) if join.kind == JoinKind::Inner => self.inner_joins(*join, conditions),
            Relation::Join(join) => self.outer_join(*join, conditions),
        }
    }

    fn side(&self, relation: Relation, conditions: Vec<Expr>) -> Result<Side> {
        let needs = self.leaves.needed_by(&relation);
        let table = match &relation {
            Relation::Leaf(leaf) if matches!(leaf.rows, Rows::Table(_)) => {
                Some((leaf.clone(), conditions.clone()))
            }
            _ => None,
        };
        Ok(Side {
            planned: self.plan(relation, conditions)?,
            table,
            needs,
        })
    }

    /// Inner joins, in the order of rule 4.
    fn inner_joins(&self, join: Join, conditions: Vec<Expr>) -> Result<Planned> {
        let mut relations = Vec::new();
        let mut pool = conditions;
        flatten(Relation::Join(Box::new(join)), &mut relations, &mut pool);
        let sets: Vec<LeafSet> = relations
            .iter()
            .map(|relation| self.leaves.in_relation(relation))
            .collect();
        let classes = equal::take_classes(&mut pool, &self.leaves, &sets);
        let mut sides = Vec::with_capacity(relations.len());
        for (relation, set) in relations.into_iter().zip(sets) {
            let mut own = take_conditions(&mut pool, |condition| {
                !condition.has_subquery() && self.leaves.read_by(condition) & !set == 0
            });
            own.extend(alternatives::on_one_side(&pool, &|part| {
                let read = self.leaves.read_by(part);
                read != 0 && read & !set == 0
            }));
            sides.push(self.side(relation, own)?);
        }
        let within: LeafSet = sides.iter().fold(0, |set, side| set | side.planned.set);
        // What reads none of the sides is looked at once, before all of them.
        let reads_none = |condition: &Expr| self.leaves.read_by(condition) & within == 0;
        let once = take_conditions(&mut pool, |condition| {
            reads_none(condition) && condition.is_repeatable()
        });
        // What may differ from row to row is looked at for each row of the whole.
        let last = take_conditions(&mut pool, reads_none);
        let conditions = Conditions {
            pool,
            classes: &classes,
            within,
        };
        let joined = self.ordered(sides, conditions)?;
        let joined = self.filtered(joined, last);
        if once.is_empty() {
            return Ok(joined);
        }
        let gate = self.filtered(self.one_row(), once);
        let (set, cost) = (joined.set, joined.cost);
        let node = self.loop_join(JoinKind::Inner, gate, joined, Vec::new(), false);
        Ok(Planned::new(node, set, cost))
    }

    /// No row of these leaves, none of which is read.
    fn nothing(&self, set: LeafSet) -> Planned {
        let node = Node::Gate {
            input: Box::new(Node::OneRow),
            condition: Expr::Constant(Value::Bool(false)),
        };
        let cost = self.costs.node(&node, &self.facts, 1.0);
        Planned::new(node, set, cost)
    }

    fn one_row(&self) -> Planned {
        Planned::new(Node::OneRow, 0, self.costs.one_row())
    }

    /// An outer, semi or anti join, by rule 2.
    fn outer_join(&self, join: Join, mut conditions: Vec<Expr>) -> Result<Planned> {
        let Join {
            kind,
            left,
            right,
            mut on,
        } = join;
        let (kind, left, right) = match kind {
            JoinKind::Right => (JoinKind::Left, right, left),
            kind => (kind, left, right),
        };
        if kind == JoinKind::Full {
            let left = self.plan(left, Vec::new())?;
            let right = self.side(right, Vec::new())?;
            return Ok(self.filtered(self.join(kind, left, right, on)?, conditions));
        }
        let right_set = self.leaves.in_relation(&right);
        let pushed = take_conditions(&mut conditions, |condition| {
            self.leaves.read_by(condition) & right_set == 0
        });
        let of_right = take_conditions(&mut on, |condition| {
            let read = self.leaves.read_by(condition);
            let is_its_own = !condition.has_subquery() && read != 0 && read & !right_set == 0;
            is_its_own || fold::is_never_true(condition)
        });
        let left = self.plan(left, pushed)?;
        let right = self.side(right, of_right)?;
        Ok(self.filtered(self.join(kind, left, right, on)?, conditions))
    }

    /// Joins two sides by the cheapest method.
    pub(super) fn join(
        &self,
        kind: JoinKind,
        left: Planned,
        right: Side,
        conditions: Vec<Expr>,
    ) -> Result<Planned> {
        let set = left.set | right.planned.set;
        let lateral = right.needs & left.set != 0;
        let chosen = self.method(&Pair {
            kind,
            left: left.input(),
            right: right.planned.input(),
            table: right.table.as_ref(),
            lateral,
            conditions: &conditions,
        })?;
        let (keys, right) = (chosen.keys, right.planned);
        let hash = |join: KeyJoin| Node::Hash(Box::new(join));
        let node = match (chosen.method, chosen.lookup, chosen.merge) {
            (JoinMethod::Lookup, Some((found, rest)), _) => self.loop_join(kind, left, found, rest, false),
            (JoinMethod::Merge, _, Some(choice)) => self.merge_join(kind, (left, right), choice, conditions),
            (JoinMethod::Hash, ..) => hash(self.key_join(kind, left, right, keys, conditions)),
            (JoinMethod::HashLeft, ..) => {
                let keys = keys.into_iter();
                let swapped = keys.map(|(one, two, data_type)| (two, one, data_type)).collect();
                hash(self.key_join(kind, right, left, swapped, conditions))
            }
            _ => self.loop_join(kind, left, right, conditions, self.keeps_right(lateral)),
        };
        Ok(Planned {
            order: chosen.order,
            ..Planned::new(node, set, chosen.cost)
        })
    }

    fn loop_join(
        &self,
        kind: JoinKind,
        left: Planned,
        right: Planned,
        conditions: Vec<Expr>,
        keeps_right: bool,
    ) -> Node {
        Node::Loop(Box::new(LoopJoin {
            kind,
            right_columns: self.read.within(self.leaves.ranges(right.set)),
            left: left.node,
            right: right.node,
            keeps_right,
            condition: all(conditions),
        }))
    }

    /// A join by keys; what they do not check of the conditions, the join does.
    pub(super) fn key_join(
        &self,
        kind: JoinKind,
        left: Planned,
        right: Planned,
        keys: Keys,
        conditions: Vec<Expr>,
    ) -> KeyJoin {
        let is_key = |condition: &Expr| match condition {
            Expr::Compare {
                op: CompareOp::Equal,
                left,
                right,
                ..
            } => keys
                .iter()
                .any(|(one, two, _)| (one, two) == (&**left, &**right) || (two, one) == (&**left, &**right)),
            _ => false,
        };
        let rest: Vec<Expr> = conditions
            .into_iter()
            .filter(|condition| !is_key(condition))
            .collect();
        let condition = all(rest);
        let columns = |planned: &Planned| self.read.within(self.leaves.ranges(planned.set));
        let (left_columns, right_columns) = (columns(&left), columns(&right));
        KeyJoin {
            kind,
            left: left.node,
            right: right.node,
            left_columns,
            right_columns,
            keys,
            condition,
        }
    }

    /// A leaf with conditions over the block's row.
    fn leaf(&self, leaf: Leaf, conditions: Vec<Expr>) -> Result<Planned> {
        let columns = leaf.base..leaf.base + leaf.width;
        let planned = self.leaf_for(leaf, conditions, 1.0)?;
        if let Node::Table { scan, .. } = leaf_of(&planned.node) {
            let rows = self.costs.own_rows(scan);
            self.own_rows.borrow_mut().push((columns, rows));
        }
        Ok(self.with_orders(planned))
    }

    /// A leaf that is opened so many times.
    pub(super) fn leaf_for(&self, leaf: Leaf, conditions: Vec<Expr>, runs: f64) -> Result<Planned> {
        let set = self.leaves.of_leaf(&leaf);
        let Leaf {
            base,
            width,
            place,
            name,
            rows,
            lock: _,
        } = leaf;
        let node = match rows {
            Rows::Table(table) => {
                let (own, above): (Vec<Expr>, Vec<Expr>) = conditions.into_iter().partition(|condition| {
                    !condition.has_subquery() && !place.is_some_and(|place| condition.reads(place))
                });
                let mut arguments = Vec::new();
                let own = own
                    .into_iter()
                    .map(|condition| localized(condition, base..base + width, &mut arguments))
                    .collect::<Result<Vec<_>>>()?;
                let facts = ScanFacts {
                    costs: self.costs,
                    arguments: &arguments,
                    around: &self.facts,
                    runs,
                };
                let mut scan = plan_scan(&facts, table, own, false);
                let columns = base..base + width;
                for column in self.read.within(std::iter::once(columns)) {
                    need(&mut scan.needed, &Expr::Column(column - base));
                }
                let node = Node::Table {
                    scan,
                    base,
                    arguments,
                    place,
                    name,
                };
                let cost = self.costs.node(&node, &self.facts, runs);
                return Ok(self.filtered(Planned::new(node, set, cost), above));
            }
            Rows::Query { block, arguments } => Node::Query {
                plan: std::sync::Arc::new(self.planner.block(self.without_unread(*block, base))?),
                base,
                arguments,
                name,
            },
            Rows::Series(series) => Node::Series { series, base },
            Rows::Functions(functions) => Node::Functions {
                functions,
                base,
                name,
            },
            Rows::Values(rows) => Node::Values { rows, base },
            Rows::Set(operation) => Node::Set(Box::new(self.set(*operation, base)?)),
            Rows::Shared { number, arguments } => Node::Shared {
                number,
                rows: self.planner.shared_rows(number)?,
                base,
                arguments,
                name,
            },
            Rows::Recursive(union) => Node::Recursive(Box::new(RecursivePlan {
                union: self.set(union.operation, base)?,
                working: union.working,
                dependent: union.dependent,
            })),
            Rows::Working(number) => Node::Working { number, base, name },
            Rows::Change => Node::Change,
        };
        let cost = self.costs.node(&node, &self.facts, runs);
        Ok(self.filtered(Planned::new(node, set, cost), conditions))
    }

    /// The rows that satisfy all conditions.
    pub(super) fn filtered(&self, planned: Planned, conditions: Vec<Expr>) -> Planned {
        match all(conditions) {
            None => planned,
            Some(condition) => Planned {
                cost: self.costs.filtered(planned.cost, &self.facts, &condition),
                node: Node::Filter {
                    input: Box::new(planned.node),
                    condition,
                },
                scans: std::rc::Rc::default(),
                ..planned
            },
        }
    }

    /// A query of FROM without the values that no later stage reads. They would be computed for nothing, and PostgreSQL
    /// shows none of their errors.
    fn without_unread(&self, mut block: Block, base: u16) -> Block {
        if block.distinct || block.distinct_on > 0 {
            return block;
        }
        for at in 0..block.visible {
            let place = base + at as u16;
            let is_read = !self.read.within(std::iter::once(place..place + 1)).is_empty();
            let is_key = block.sort.iter().any(|key| key.column == at);
            let value = &mut block.projection[at];
            let volatile = || is_volatile(value, self.planner.bound);
            let is_plain = matches!(value, Expr::Column(_) | Expr::Constant(_) | Expr::Outer(_));
            if !is_read && !is_key && !is_plain && !volatile() {
                *value = Expr::Constant(Value::Null);
            }
        }
        block
    }

    fn set(&self, operation: SetOperation, base: u16) -> Result<SetPlan> {
        Ok(SetPlan {
            operator: operation.operator,
            all: operation.all,
            left: (self.planner.block(operation.left)?, operation.left_columns),
            right: (self.planner.block(operation.right)?, operation.right_columns),
            types: operation.types,
            base,
        })
    }
}

/// The operator below filters.
fn leaf_of(node: &Node) -> &Node {
    match node {
        Node::Filter { input, .. } => leaf_of(input),
        leaf => leaf,
    }
}

/// The relations and conditions of nested inner joins.
fn flatten(relation: Relation, relations: &mut Vec<Relation>, conditions: &mut Vec<Expr>) {
    match relation {
        Relation::Join(join) if join.kind == JoinKind::Inner => {
            conditions.extend(join.on);
            flatten(join.left, relations, conditions);
            flatten(join.right, relations, conditions);
        }
        other => relations.push(other),
    }
}

/// Takes those of the conditions out that `wanted` picks, in their order.
pub(super) fn take_conditions(conditions: &mut Vec<Expr>, wanted: impl Fn(&Expr) -> bool) -> Vec<Expr> {
    let (taken, left) = std::mem::take(conditions)
        .into_iter()
        .partition(|condition| wanted(condition));
    *conditions = left;
    taken
}

/// A condition over the row of one leaf: its columns count from its base, and whatever else it reads is an argument.
fn localized(expr: Expr, range: std::ops::Range<u16>, arguments: &mut Vec<Expr>) -> Result<Expr> {
    match expr {
        Expr::Column(column) if range.contains(&column) => Ok(Expr::Column(column - range.start)),
        outside @ (Expr::Column(_) | Expr::Outer(_)) => {
            let number = arguments.iter().position(|known| *known == outside);
            let number = number.unwrap_or_else(|| {
                arguments.push(outside);
                arguments.len() - 1
            });
            Ok(Expr::Outer(number as u16))
        }
        other => other.map_children(&mut |child| localized(child, range.clone(), arguments)),
    }
}
