//! A FROM as a tree of operators.
//!
//! # Rules
//! 1. A condition is checked at the lowest operator whose rows have all its columns. One with a query inside it is
//!    checked by an operator of its own, since scans run no queries. One that has a query inside it and reads no column
//!    is checked before anything is read.
//! 2. A condition of WHERE goes below an outer join on the side that keeps all rows, never on the side that may be
//!    NULL; a condition of ON goes to the side that may be NULL, never to the other.
//! 3. A side that reads columns of the other (LATERAL) is opened again for each row of it.
//! 4. Inner joins are ordered from few rows to many: first the relation with the fewest, then again and again the one
//!    that keeps their number lowest, one with a condition to those before it first.

use crate::error::{EngineError, Result};
use crate::expr::{CompareOp, Expr};
use crate::plan::{HashJoin, JoinKind, LoopJoin, Node, RecursivePlan, SetPlan};
use crate::planner::columns::ReadColumns;
use crate::planner::leaves::{LeafSet, Leaves, rejects_nulls};
use crate::planner::scan::{all, need, plan_scan};
use crate::planner::{Planner, alternatives, estimate};
use crate::query::{Block, Join, Leaf, Relation, Rows, SetOperation, is_volatile};
use crate::stack::checkpoint;
use crate::value::{DataType, Value};

impl Planner<'_> {
    /// The operators of a FROM with the conditions of WHERE. `read`: the columns that later stages read.
    pub(super) fn relation(
        &self,
        from: Relation,
        conditions: Vec<Expr>,
        mut read: ReadColumns,
    ) -> Result<Node> {
        let leaves = Leaves::of(&from)?;
        let (gates, conditions): (Vec<Expr>, Vec<Expr>) = conditions.into_iter().partition(is_gate);
        conditions.iter().for_each(|condition| read.add(condition));
        add_read(&from, &mut read);
        let tree = Tree {
            planner: self,
            leaves,
            read,
        };
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

/// True if a condition has a query inside it, and the same value for all rows.
fn is_gate(condition: &Expr) -> bool {
    let mut same = condition.has_subquery();
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

struct Tree<'t, 'c> {
    planner: &'t Planner<'c>,
    leaves: Leaves,
    read: ReadColumns,
}

/// An operator with what is known of its rows.
struct Planned {
    node: Node,
    /// The leaves whose columns it gives.
    set: LeafSet,
    rows: f64,
    /// The cost of making all its rows, in rows read.
    cost: f64,
}

/// A side of a join before it is known how it is reached.
struct Side {
    /// By itself.
    planned: Planned,
    /// The leaf and its own conditions, if it is a table: an index may find the rows for a row of the other side.
    table: Option<(Leaf, Vec<Expr>)>,
    /// Leaves that must stand to its left.
    needs: LeafSet,
}

impl Tree<'_, '_> {
    /// Turns outer joins whose additional rows a condition takes away into inner joins.
    fn without_needless_outer_joins(&self, relation: Relation, conditions: &[Expr]) -> Relation {
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
        match relation {
            Relation::OneRow => Ok(filtered(
                Planned {
                    node: Node::OneRow,
                    set: 0,
                    rows: 1.0,
                    cost: 0.0,
                },
                conditions,
            )),
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
        let mut sides = Vec::with_capacity(relations.len());
        for relation in relations {
            let set = self.leaves.in_relation(&relation);
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
        let mut joined: Option<Planned> = None;
        while !sides.is_empty() {
            let at = self.next_side(joined.as_ref(), &sides, &pool, within);
            let side = sides.remove(at);
            let set = side.planned.set | joined.as_ref().map_or(0, |joined| joined.set);
            let ready = take_conditions(&mut pool, |condition| {
                self.leaves.read_by(condition) & within & !set == 0
            });
            joined = Some(match joined {
                None => filtered(side.planned, ready),
                Some(left) => self.join(JoinKind::Inner, left, side, ready)?,
            });
        }
        let planned = joined.ok_or_else(|| EngineError::internal("a join has no sides"))?;
        Ok(filtered(planned, pool))
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
                return (false, side.planned.rows);
            };
            let set = before | side.planned.set;
            let ready: Vec<&Expr> = pool
                .iter()
                .filter(|condition| {
                    let read = self.leaves.read_by(condition);
                    read & within & !set == 0 && read & side.planned.set != 0
                })
                .collect();
            (ready.is_empty(), self.joined_rows(joined, side, &ready))
        };
        candidates
            .map(|(at, side)| (at, rank(side)))
            .min_by(|(_, a), (_, b)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)))
            .map_or(0, |(at, _)| at)
    }

    /// Estimated rows of an inner join.
    fn joined_rows(&self, left: &Planned, side: &Side, conditions: &[&Expr]) -> f64 {
        if let Some((leaf, own)) = &side.table {
            let given = own.iter().chain(conditions.iter().copied()).cloned().collect();
            if let Ok(lookup) = self.leaf(leaf.clone(), given)
                && estimate::is_looked_up(&lookup.node)
            {
                return left.rows * lookup.rows;
            }
        }
        let most = left.rows.max(side.planned.rows).max(1.0);
        let part = |condition: &&Expr| match condition {
            Expr::Compare {
                op: CompareOp::Equal, ..
            } => 1.0 / most,
            other => estimate::selectivity(other),
        };
        left.rows * side.planned.rows * conditions.iter().map(part).product::<f64>()
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
            return Ok(filtered(self.join(kind, left, right, on)?, conditions));
        }
        let right_set = self.leaves.in_relation(&right);
        let pushed = take_conditions(&mut conditions, |condition| {
            self.leaves.read_by(condition) & right_set == 0
        });
        let of_right = take_conditions(&mut on, |condition| {
            let read = self.leaves.read_by(condition);
            !condition.has_subquery() && read != 0 && read & !right_set == 0
        });
        let left = self.plan(left, pushed)?;
        let right = self.side(right, of_right)?;
        Ok(filtered(self.join(kind, left, right, on)?, conditions))
    }

    /// Joins two sides by the cheapest method.
    fn join(&self, kind: JoinKind, left: Planned, right: Side, conditions: Vec<Expr>) -> Result<Planned> {
        let set = left.set | right.planned.set;
        let lateral = right.needs & left.set != 0;
        let rows = match kind {
            JoinKind::Semi | JoinKind::Anti => (left.rows / 2.0).max(1.0),
            JoinKind::Inner => self.joined_rows(&left, &right, &conditions.iter().collect::<Vec<_>>()),
            _ => {
                let inner = self.joined_rows(&left, &right, &conditions.iter().collect::<Vec<_>>());
                inner.max(left.rows)
            }
        };
        let lookup = match &right.table {
            Some(_) if matches!(kind, JoinKind::Full | JoinKind::Right) => None,
            Some((leaf, own)) => self.lookup(leaf, own, &conditions)?,
            None => None,
        };
        let keys = if lateral {
            Vec::new()
        } else if kind == JoinKind::Full && conditions.iter().all(|condition| self.is_constant(condition)) {
            // All rows are of one key; a constant condition lets all pairs through, or none.
            let one = || Expr::Constant(Value::Int4(1));
            vec![(one(), one(), DataType::Int4)]
        } else {
            self.equal_keys(&left, &right.planned, &conditions)
        };
        let by_lookup = lookup
            .as_ref()
            .map_or(f64::INFINITY, |(found, _)| left.rows * found.cost);
        let by_hash = if keys.is_empty() {
            f64::INFINITY
        } else {
            right.planned.cost + 2.0 * right.planned.rows + left.rows
        };
        let by_loop = match (kind, lateral) {
            (JoinKind::Full, _) => f64::INFINITY,
            (_, true) => left.rows * right.planned.cost.max(1.0),
            (_, false) => right.planned.cost + left.rows * right.planned.rows,
        };
        let cost = left.cost + by_lookup.min(by_hash).min(by_loop);
        let node = if kind == JoinKind::Full && keys.is_empty() {
            return Err(EngineError::new(
                crate::error::SqlState::FEATURE_NOT_SUPPORTED,
                "FULL JOIN is only supported with merge-joinable or hash-joinable join conditions",
            ));
        } else if by_lookup <= by_hash
            && by_lookup <= by_loop
            && let Some((found, rest)) = lookup
        {
            self.loop_join(kind, left, found, rest, false)
        } else if by_hash <= by_loop {
            self.hash_join(kind, left, right.planned, keys, conditions)
        } else {
            self.loop_join(kind, left, right.planned, conditions, !lateral)
        };
        Ok(Planned {
            node,
            set,
            rows,
            cost,
        })
    }

    /// A table's rows for a row of the other side, by an index, and the conditions that are left; `None` if no index
    /// serves.
    fn lookup(&self, leaf: &Leaf, own: &[Expr], conditions: &[Expr]) -> Result<Option<(Planned, Vec<Expr>)>> {
        let (given, rest): (Vec<Expr>, Vec<Expr>) = conditions
            .iter()
            .cloned()
            .partition(|condition| !condition.has_subquery());
        let given = own.iter().cloned().chain(given).collect();
        let found = self.leaf(leaf.clone(), given)?;
        let depends = matches!(&found.node, Node::Table { arguments, .. } if !arguments.is_empty());
        Ok((depends && estimate::is_looked_up(&found.node)).then_some((found, rest)))
    }

    /// True if an expression has one value for all rows.
    fn is_constant(&self, expr: &Expr) -> bool {
        self.leaves.read_by(expr) == 0 && !expr.has_subquery() && expr.is_repeatable()
    }

    /// The conditions that say that something of one side equals something of the other: left, right, type.
    fn equal_keys(
        &self,
        left: &Planned,
        right: &Planned,
        conditions: &[Expr],
    ) -> Vec<(Expr, Expr, DataType)> {
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
                    if only(one, left.set) && only(two, right.set) {
                        Some(((**one).clone(), (**two).clone(), *data_type))
                    } else if only(two, left.set) && only(one, right.set) {
                        Some(((**two).clone(), (**one).clone(), *data_type))
                    } else {
                        None
                    }
                }
                _ => None,
            })
            .collect()
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

    fn hash_join(
        &self,
        kind: JoinKind,
        left: Planned,
        right: Planned,
        keys: Vec<(Expr, Expr, DataType)>,
        conditions: Vec<Expr>,
    ) -> Node {
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
        // The smaller side lies in the table, where both sides are alike.
        if kind == JoinKind::Inner && left.rows < right.rows {
            let keys = keys
                .into_iter()
                .map(|(one, two, data_type)| (two, one, data_type))
                .collect();
            return Node::Hash(Box::new(HashJoin {
                kind,
                left: right.node,
                right: left.node,
                left_columns: right_columns,
                right_columns: left_columns,
                keys,
                condition,
            }));
        }
        Node::Hash(Box::new(HashJoin {
            kind,
            left: left.node,
            right: right.node,
            left_columns,
            right_columns,
            keys,
            condition,
        }))
    }

    /// A leaf with conditions over the block's row.
    fn leaf(&self, leaf: Leaf, conditions: Vec<Expr>) -> Result<Planned> {
        let set = self.leaves.in_relation(&Relation::Leaf(Leaf {
            rows: Rows::Values(Vec::new()),
            name: String::new(),
            ..leaf
        }));
        let estimated = estimate::rows(self.planner.catalog, &leaf);
        let Leaf {
            base,
            width,
            has_place,
            name,
            rows,
        } = leaf;
        let node = match rows {
            Rows::Table(table) => {
                let (own, above): (Vec<Expr>, Vec<Expr>) = conditions
                    .into_iter()
                    .partition(|condition| !condition.has_subquery());
                let mut arguments = Vec::new();
                let own = own
                    .into_iter()
                    .map(|condition| localized(condition, base..base + width, &mut arguments))
                    .collect::<Result<Vec<_>>>()?;
                let table_width = table.columns.len() as u16;
                let mut scan = plan_scan(table, own, false);
                let place = has_place.then(|| base + width - 1);
                let columns = base..base + table_width;
                for column in self.read.within(std::iter::once(columns)) {
                    need(&mut scan.needed, &Expr::Column(column - base));
                }
                let (rows, cost) = (
                    estimate::scanned(&scan, estimated),
                    estimate::scan_cost(&scan, estimated),
                );
                let node = Node::Table {
                    scan,
                    base,
                    arguments,
                    place,
                    name,
                };
                return Ok(filtered(
                    Planned {
                        node,
                        set,
                        rows,
                        cost,
                    },
                    above,
                ));
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
        let planned = Planned {
            node,
            set,
            rows: estimated,
            cost: estimated,
        };
        Ok(filtered(planned, conditions))
    }

    /// A query of FROM without the values that no later stage reads. Those of queries inside it would run for nothing,
    /// and PostgreSQL shows none of their errors.
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
            if !is_read && !is_key && value.has_subquery() && !volatile() {
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
fn take_conditions(conditions: &mut Vec<Expr>, wanted: impl Fn(&Expr) -> bool) -> Vec<Expr> {
    let (taken, left) = std::mem::take(conditions)
        .into_iter()
        .partition(|condition| wanted(condition));
    *conditions = left;
    taken
}

/// The rows that satisfy all conditions.
fn filtered(planned: Planned, conditions: Vec<Expr>) -> Planned {
    let part: f64 = conditions.iter().map(estimate::selectivity).product();
    match all(conditions) {
        None => planned,
        Some(condition) => Planned {
            rows: (planned.rows * part).max(1.0),
            node: Node::Filter {
                input: Box::new(planned.node),
                condition,
            },
            ..planned
        },
    }
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
