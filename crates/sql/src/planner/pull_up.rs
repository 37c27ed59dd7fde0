//! Queries of WHERE as joins: `EXISTS` and `IN` become semi joins, `NOT EXISTS` an anti join.
//!
//! A query of an expression runs once for each row that asks. As a join it is read once, by a hash table, or by an index
//! for each row, whichever is cheaper. `NOT IN` stays an expression: a NULL among the values makes it unknown, which no
//! join says.
//!
//! # Steps
//! 1. The query's FROM goes to the right of the block's, its columns behind those of the block.
//! 2. Its conditions become conditions of the join: its arguments are what they stand for, expressions over the block's
//!    row.
//! 3. Of `IN`, the left side equals the query's column.
//! 4. Conditions of a semi join that read nothing of its right side are the block's: they hold for all of its pairs or
//!    for none. So are those with queries inside, which become joins in their turn, one beside the other:
//!
//! ```text
//! from a where exists (select 1 from c where c.x = a.x and not exists (select 1 from d where d.x = a.x))
//! from a where exists (select 1 from c where c.x = a.x) and not exists (select 1 from d where d.x = a.x)
//! ```
//!
//! 5. If no two rows of the query of `IN` are equal in the columns compared, as with GROUP BY over them, the semi join is an
//!    inner join, whose order is chosen with the others'.
//!
//! An anti join has no rule as the fourth. A query inside it that reads nothing of its right side keeps the outer one an
//! expression. It is then evaluated once for each row, before the rest is read (`plan::Node::Gate`), and so is any query
//! in WHERE that reads nothing of its own FROM.

use std::collections::VecDeque;

use crate::error::Result;
use crate::expr::{CompareOp, Expr, Quantified, Subquery, SubqueryForm};
use crate::plan::JoinKind;
use crate::planner::Planner;
use crate::query::{Block, Join, Leaf, Relation, Rows};
use crate::value::DataType;

/// The most columns of a block's row.
const WIDTH_MAX: usize = 1 << 15;

/// The most relations of a FROM with those of its queries: what is beyond stays an expression.
const LEAVES_MAX: usize = 64;

/// Number of relations.
fn leaves_of(relation: &Relation) -> usize {
    match relation {
        Relation::OneRow => 0,
        Relation::Leaf(_) => 1,
        Relation::Join(join) => leaves_of(&join.left) + leaves_of(&join.right),
    }
}

/// A join that stands for a query: its kind, its right side, the width of the row with it, and its conditions.
type Joined = (JoinKind, Relation, usize, Vec<Expr>);

impl Planner<'_> {
    /// Turns the queries among a block's conditions into joins, where that is right.
    pub(super) fn pulled_up(&self, mut block: Block) -> Result<Block> {
        let mut conditions = VecDeque::from(std::mem::take(&mut block.conditions));
        while let Some(condition) = conditions.pop_front() {
            if let Some((kind, subquery)) = join_of(&condition)
                && reads_columns(&condition)
                && let Some(joined) = self.joined_with(&block, kind, subquery)?
            {
                let (kind, right, width, mut on) = joined;
                if kind == JoinKind::Semi {
                    let (of_right, of_block) = on
                        .into_iter()
                        .partition(|condition| !is_decided_before(condition, block.width));
                    on = of_right;
                    conditions.extend::<Vec<Expr>>(of_block);
                }
                let left = std::mem::replace(&mut block.from, Relation::OneRow);
                block.from = Relation::Join(Box::new(Join {
                    kind,
                    left,
                    right,
                    on,
                }));
                block.width = width;
                continue;
            }
            block.conditions.push(condition);
        }
        Ok(block)
    }

    /// The join that stands for a query.
    fn joined_with(&self, block: &Block, kind: JoinKind, subquery: &Subquery) -> Result<Option<Joined>> {
        let Some(inner) = self.bound(subquery.number) else {
            return Ok(None);
        };
        let inner = self.pulled_up(inner)?;
        let base = block.width;
        let wide = base + inner.width + 1 > WIDTH_MAX;
        let many = leaves_of(&block.from) + leaves_of(&inner.from) > LEAVES_MAX;
        if wide || many || matches!(block.from, Relation::OneRow) {
            return Ok(None);
        }
        let quantified = match &subquery.form {
            SubqueryForm::Quantified(quantified) => Some(quantified),
            _ => None,
        };
        let keeps_queries = kind == JoinKind::Anti
            && inner
                .conditions
                .iter()
                .any(|condition| condition.has_subquery() && !reads_columns(condition));
        if keeps_queries {
            return Ok(None);
        }
        if can_merge(&inner) {
            let merged = merged(inner, base, kind, subquery, quantified)?;
            return Ok(merged.map(|(right, width, on)| (kind, right, width, on)));
        }
        // Rows that a query of its own gives, the same for all rows around it.
        let Some(quantified) = quantified.filter(|_| subquery.arguments.is_empty()) else {
            return Ok(None);
        };
        let outputs: Vec<Expr> = (0..inner.visible)
            .map(|at| Expr::Column((base + at) as u16))
            .collect();
        let on = equalities(quantified, &outputs)?;
        let visible = inner.visible;
        let kind = match kind {
            JoinKind::Semi if gives_each_once(&inner, quantified) => JoinKind::Inner,
            kind => kind,
        };
        let leaf = Leaf {
            base: base as u16,
            width: visible as u16,
            place: None,
            lock: None,
            name: "ANY_subquery".to_owned(),
            rows: Rows::Query {
                block: Box::new(inner),
                arguments: Vec::new(),
            },
        };
        Ok(Some((kind, Relation::Leaf(leaf), base + visible, on)))
    }
}

/// True if no two rows of a query are equal in the columns that IN compares (step 5).
fn gives_each_once(inner: &Block, quantified: &Quantified) -> bool {
    // In another type than its own, values may be equal that the query tells apart.
    let types = quantified.types.iter();
    let compared = || {
        let columns = quantified.columns.iter().zip(types.clone());
        columns.filter_map(|(column, data_type)| match column {
            Expr::Column(at) => Some((usize::from(*at), *data_type)),
            _ => None,
        })
    };
    if inner.distinct {
        let is_compared = |at: usize| compared().any(|found| found == (at, inner.columns[at].data_type));
        return (0..inner.visible).all(is_compared);
    }
    let Some(aggregate) = inner
        .aggregate
        .as_ref()
        .filter(|aggregate| aggregate.sets.is_empty())
    else {
        return false;
    };
    let is_compared = |(key, key_type): (usize, &DataType)| {
        compared().any(|(at, data_type)| {
            data_type == *key_type
                && matches!(inner.projection.get(at), Some(Expr::Column(column)) if usize::from(*column) == key)
        })
    };
    aggregate.key_types.iter().enumerate().all(is_compared)
}

/// True if an expression reads a column of its block.
fn reads_columns(expr: &Expr) -> bool {
    let mut reads = false;
    expr.columns(&mut |_| reads = true);
    reads
}

/// True if a condition of a join reads nothing of its right side, whose columns begin at `base`, and does not change
/// from one evaluation to the next.
fn is_decided_before(condition: &Expr, base: usize) -> bool {
    let mut decided = true;
    condition.walk(&mut |part| match part {
        Expr::Column(column) => decided &= usize::from(*column) < base,
        Expr::NextSerial { .. } => decided = false,
        Expr::Call { function, .. } => decided &= !function.is_volatile(),
        _ => {}
    });
    decided
}

/// The kind of join that a condition can be, and its query.
fn join_of(condition: &Expr) -> Option<(JoinKind, &Subquery)> {
    match condition {
        Expr::Subquery(subquery) => match &subquery.form {
            SubqueryForm::Exists => Some((JoinKind::Semi, subquery)),
            SubqueryForm::Quantified(quantified) if quantified.op == CompareOp::Equal && !quantified.all => {
                Some((JoinKind::Semi, subquery))
            }
            _ => None,
        },
        Expr::Not(inner) => match &**inner {
            Expr::Subquery(subquery) if subquery.form == SubqueryForm::Exists => {
                Some((JoinKind::Anti, subquery))
            }
            _ => None,
        },
        _ => None,
    }
}

/// True if a query's rows are those of its FROM that satisfy its conditions, one for one, and none is locked.
fn can_merge(block: &Block) -> bool {
    is_plain(block) && !block.from.locks_rows()
}

/// True if a query's rows are those of its FROM that satisfy its conditions, one for one.
pub(super) fn is_plain(block: &Block) -> bool {
    let plain = block.aggregate.is_none()
        && block.windows.is_empty()
        && block.distinct_on == 0
        && block.limit.is_none()
        && block.offset.is_none();
    let repeatable = |expr: &Expr| {
        let mut changes = false;
        expr.walk(&mut |part| {
            changes |= match part {
                Expr::NextSerial { .. } => true,
                Expr::Call { function, .. } => function.is_volatile(),
                _ => false,
            };
        });
        !changes
    };
    plain
        && !matches!(block.from, Relation::OneRow)
        && has_no_sets(&block.from)
        && block.projection.iter().all(repeatable)
}

/// True if no leaf is a set operation or recursive: its queries read the arguments of the block around them.
fn has_no_sets(relation: &Relation) -> bool {
    match relation {
        Relation::OneRow => true,
        Relation::Leaf(leaf) => !matches!(leaf.rows, Rows::Set(_) | Rows::Recursive(_)),
        Relation::Join(join) => has_no_sets(&join.left) && has_no_sets(&join.right),
    }
}

/// Steps 1 to 3.
fn merged(
    inner: Block,
    base: usize,
    kind: JoinKind,
    subquery: &Subquery,
    quantified: Option<&Quantified>,
) -> Result<Option<(Relation, usize, Vec<Expr>)>> {
    let mut moved = |expr: Expr| moved(expr, base as u16, &subquery.arguments);
    let mut on = inner
        .conditions
        .into_iter()
        .map(&mut moved)
        .collect::<Result<Vec<_>>>()?;
    if let Some(quantified) = quantified {
        let outputs = inner
            .projection
            .into_iter()
            .map(&mut moved)
            .collect::<Result<Vec<_>>>()?;
        on.extend(equalities(quantified, &outputs)?);
    }
    debug_assert!(matches!(kind, JoinKind::Semi | JoinKind::Anti));
    let right = moved_relation(inner.from, base as u16, &mut moved)?;
    Ok(Some((right, base + inner.width, on)))
}

/// The left side of IN equals the query's columns.
fn equalities(quantified: &Quantified, outputs: &[Expr]) -> Result<Vec<Expr>> {
    let sides = quantified
        .operand
        .iter()
        .zip(&quantified.columns)
        .zip(&quantified.types);
    sides
        .map(|((operand, column), data_type)| {
            Ok(Expr::Compare {
                op: CompareOp::Equal,
                left: Box::new(operand.clone()),
                right: Box::new(over_outputs(column.clone(), outputs)?),
                data_type: *data_type,
            })
        })
        .collect()
}

/// An expression over a query's output row, over what the outputs are.
fn over_outputs(expr: Expr, outputs: &[Expr]) -> Result<Expr> {
    match expr {
        Expr::Column(column) => Ok(outputs[usize::from(column)].clone()),
        other => other.map_children(&mut |child| over_outputs(child, outputs)),
    }
}

/// An expression of the query over the block's row.
pub(super) fn moved(expr: Expr, base: u16, arguments: &[Expr]) -> Result<Expr> {
    match expr {
        Expr::Column(column) => Ok(Expr::Column(base + column)),
        Expr::Outer(number) => Ok(arguments[usize::from(number)].clone()),
        other => other.map_children(&mut |child| moved(child, base, arguments)),
    }
}

pub(super) fn moved_relation(
    relation: Relation,
    base: u16,
    moved: &mut dyn FnMut(Expr) -> Result<Expr>,
) -> Result<Relation> {
    let mut all = |exprs: Vec<Expr>| exprs.into_iter().map(&mut *moved).collect::<Result<Vec<_>>>();
    Ok(match relation {
        Relation::OneRow => Relation::OneRow,
        Relation::Join(join) => {
            let on = all(join.on)?;
            Relation::Join(Box::new(Join {
                kind: join.kind,
                left: moved_relation(join.left, base, moved)?,
                right: moved_relation(join.right, base, moved)?,
                on,
            }))
        }
        Relation::Leaf(leaf) => Relation::Leaf(Leaf {
            base: leaf.base + base,
            place: leaf.place.map(|place| place + base),
            rows: match leaf.rows {
                Rows::Query { block, arguments } => Rows::Query {
                    block,
                    arguments: all(arguments)?,
                },
                Rows::Values(rows) => Rows::Values(rows.into_iter().map(all).collect::<Result<_>>()?),
                Rows::Series(mut series) => {
                    series.start = moved(series.start)?;
                    series.stop = moved(series.stop)?;
                    series.step = series.step.map(&mut *moved).transpose()?;
                    Rows::Series(series)
                }
                Rows::Functions(mut functions) => {
                    let calls = functions.calls.into_iter();
                    functions.calls = calls
                        .map(|call| call.map_arguments(moved))
                        .collect::<Result<_>>()?;
                    Rows::Functions(functions)
                }
                Rows::Shared { number, arguments } => Rows::Shared {
                    number,
                    arguments: all(arguments)?,
                },
                same @ (Rows::Table(_)
                | Rows::Set(_)
                | Rows::Recursive(_)
                | Rows::Working(_)
                | Rows::Change) => same,
            },
            ..leaf
        }),
    })
}
