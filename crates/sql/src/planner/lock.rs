//! FOR UPDATE over joins, queries and conditions with queries inside them.
//!
//! # Steps
//! 1. A query in FROM that a lock reaches into, and that gives rows of its FROM one for one, becomes a part of the FROM
//!    around it: then the rows that its outer conditions take away are not locked. Other queries lock their rows by
//!    themselves.
//! 2. Outer joins whose additional rows a condition takes away are inner joins. The rows of a side that may be NULL
//!    cannot be locked (0A000).
//! 3. The output row gets the columns from which the row can be looked at again: those that the projection, ON and WHERE
//!    read, and the places of the locked rows.

use crate::access::AccessPath;
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::plan::{JoinKind, LockStrength, LockedRows, LockedTable, Recheck, SelectPlan, TableScan};
use crate::planner::Planner;
use crate::planner::columns::ReadColumns;
use crate::planner::pull_up::{is_plain, moved, moved_relation};
use crate::planner::scan::all;
use crate::query::{Block, Leaf, Relation, Rows};
use crate::value::ColumnSet;

/// FROM and WHERE of a block that locks rows, before conditions become joins.
pub(super) struct LookedAtAgain {
    from: Relation,
    conditions: Vec<Expr>,
}

impl Planner<'_> {
    /// Step 1.
    pub(super) fn merged_for_locks(&self, mut block: Block) -> Result<Block> {
        let takes_queries = block.aggregate.is_none() && block.windows.is_empty();
        if !takes_queries || block.distinct || block.distinct_on > 0 {
            return Ok(block);
        }
        while let Some(merged) = merge_first(&mut block.from, block.width)? {
            block.width = merged.width;
            let mut over = |expr: Expr| over_outputs(expr, merged.base, &merged.outputs);
            let mut each = |exprs: Vec<Expr>| exprs.into_iter().map(&mut over).collect::<Result<Vec<_>>>();
            block.conditions = each(block.conditions)?;
            block.projection = each(block.projection)?;
            block.conditions.extend(merged.conditions);
            block.from = moved_relation(block.from, 0, &mut over)?;
        }
        Ok(block)
    }

    /// FROM and WHERE of a block that locks rows of its tables, as they are looked at again; step 2.
    pub(super) fn looked_at_again(&self, block: &Block) -> Result<Option<LookedAtAgain>> {
        let mut locks = None;
        block.from.each_leaf(&mut |leaf| locks = locks.or(leaf.lock));
        if locks.is_none() {
            return Ok(None);
        }
        let tree = self.tree(&block.from, ReadColumns::none(block.width))?;
        let from = tree.without_needless_outer_joins(block.from.clone(), &block.conditions);
        if let Some(strength) = locked_where_null(&from, false) {
            return Err(EngineError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!(
                    "{} cannot be applied to the nullable side of an outer join",
                    strength.clause()
                ),
            ));
        }
        Ok(Some(LookedAtAgain {
            from,
            conditions: block.conditions.clone(),
        }))
    }
}

impl LookedAtAgain {
    /// Step 3. `width`: the number of columns of the block's row.
    pub(super) fn place(self, plan: &mut SelectPlan, width: usize) {
        let mut read = ReadColumns::none(width);
        plan.projection.iter().for_each(|expr| read.add(expr));
        self.conditions.iter().for_each(|expr| read.add(expr));
        add_joins(&self.from, &mut read);
        let mut leaves = Vec::new();
        self.from.each_leaf(&mut |leaf| leaves.push(leaf));
        leaves
            .iter()
            .filter_map(|leaf| leaf.place)
            .for_each(|place| read.add(&Expr::Column(place)));
        let kept = read.within(std::iter::once(0..width as u16));
        let tables = leaves.iter().filter_map(|leaf| locked_table(leaf, &kept));
        let locked = LockedRows {
            tables: tables.collect(),
            width,
            first: plan.projection.len(),
            from: recheck(&self.from, &kept),
            condition: all(self.conditions),
            kept,
        };
        plan.projection
            .extend(locked.kept.iter().map(|column| Expr::Column(*column)));
        plan.locked = Some(Box::new(locked));
    }
}

fn locked_table(leaf: &Leaf, kept: &[u16]) -> Option<LockedTable> {
    let (Rows::Table(table), Some(place), Some(lock)) = (&leaf.rows, leaf.place, leaf.lock) else {
        return None;
    };
    let own = leaf.base..leaf.base + leaf.width;
    let mut needed = ColumnSet::new();
    let of_table = kept.iter().filter(|column| own.contains(column));
    of_table.for_each(|column| needed.insert(column - leaf.base));
    Some(LockedTable {
        scan: TableScan {
            table: std::sync::Arc::clone(table),
            access: AccessPath::Sequential,
            filter: None,
            recheck: None,
            needed,
            late: ColumnSet::new(),
        },
        base: leaf.base,
        place,
        lock,
    })
}

/// Adds what the conditions of joins read.
fn add_joins(relation: &Relation, read: &mut ReadColumns) {
    if let Relation::Join(join) = relation {
        join.on.iter().for_each(|expr| read.add(expr));
        add_joins(&join.left, read);
        add_joins(&join.right, read);
    }
}

fn recheck(relation: &Relation, kept: &[u16]) -> Recheck {
    let Relation::Join(join) = relation else {
        return Recheck::Leaf;
    };
    let nullable = match join.kind {
        JoinKind::Left => columns_of(&join.right, kept),
        JoinKind::Right => columns_of(&join.left, kept),
        _ => Vec::new(),
    };
    Recheck::Join {
        kind: join.kind,
        left: Box::new(recheck(&join.left, kept)),
        right: Box::new(recheck(&join.right, kept)),
        on: all(join.on.clone()),
        nullable,
    }
}

/// The columns of a relation, of these.
fn columns_of(relation: &Relation, kept: &[u16]) -> Vec<u16> {
    let mut columns = Vec::new();
    relation.each_leaf(&mut |leaf| {
        let own = leaf.base..leaf.base + leaf.width;
        columns.extend(kept.iter().filter(|column| own.contains(column)));
    });
    columns
}

/// The lock of a table whose rows an outer join may lack. `lacked`: those of the whole relation may be.
fn locked_where_null(relation: &Relation, lacked: bool) -> Option<LockStrength> {
    match relation {
        Relation::OneRow => None,
        Relation::Leaf(leaf) => {
            let mut strength = leaf.lock.map(|lock| lock.strength);
            if let Rows::Query { block, .. } = &leaf.rows
                && block.is_locked_from_outside
            {
                strength = strength.or(first_lock(&block.from));
            }
            strength.filter(|_| lacked)
        }
        Relation::Join(join) => {
            let (left, right) = match join.kind {
                JoinKind::Left => (false, true),
                JoinKind::Right => (true, false),
                JoinKind::Full => (true, true),
                JoinKind::Inner | JoinKind::Semi | JoinKind::Anti => (false, false),
            };
            locked_where_null(&join.left, lacked || left)
                .or_else(|| locked_where_null(&join.right, lacked || right))
        }
    }
}

/// The first lock of a table.
fn first_lock(relation: &Relation) -> Option<LockStrength> {
    let mut found = None;
    relation.each_leaf(&mut |leaf| found = found.or(leaf.lock.map(|lock| lock.strength)));
    found
}

/// A query that has become a part of the FROM around it.
struct Merged {
    /// The first of its columns in the row as it was.
    base: u16,
    /// Its columns, over the row as it is.
    outputs: Vec<Expr>,
    conditions: Vec<Expr>,
    width: usize,
}

/// Puts the FROM of the first query that a lock reaches into in the query's place; the row has `width` columns before.
fn merge_first(relation: &mut Relation, width: usize) -> Result<Option<Merged>> {
    match relation {
        Relation::OneRow => return Ok(None),
        Relation::Join(join) => {
            if matches!(join.kind, JoinKind::Inner | JoinKind::Left)
                && let Some(merged) = merge_first(&mut join.left, width)?
            {
                return Ok(Some(merged));
            }
            return match join.kind {
                JoinKind::Inner | JoinKind::Right => merge_first(&mut join.right, width),
                _ => Ok(None),
            };
        }
        Relation::Leaf(_) => {}
    }
    let Relation::Leaf(Leaf {
        base,
        rows: Rows::Query { block, arguments },
        ..
    }) = relation
    else {
        return Ok(None);
    };
    let fits = block.is_locked_from_outside
        && is_plain(block)
        && block.sort.is_empty()
        && width + block.width <= usize::from(u16::MAX) / 2;
    if !fits {
        return Ok(None);
    }
    let (base, start) = (*base, width as u16);
    let inner = std::mem::replace(&mut **block, Block::one_row());
    let arguments = std::mem::take(arguments);
    let mut moved = |expr: Expr| moved(expr, start, &arguments);
    let mut outputs = inner.projection;
    outputs.truncate(inner.visible);
    let outputs = outputs.into_iter().map(&mut moved).collect::<Result<_>>()?;
    let conditions = inner
        .conditions
        .into_iter()
        .map(&mut moved)
        .collect::<Result<_>>()?;
    let from = moved_relation(inner.from, start, &mut moved)?;
    *relation = from;
    Ok(Some(Merged {
        base,
        outputs,
        conditions,
        width: width + inner.width,
    }))
}

/// An expression over a row in which a query's columns stand at `base`, over what these are.
fn over_outputs(expr: Expr, base: u16, outputs: &[Expr]) -> Result<Expr> {
    let own = base..base + outputs.len() as u16;
    match expr {
        Expr::Column(column) if own.contains(&column) => Ok(outputs[usize::from(column - base)].clone()),
        other => other.map_children(&mut |child| over_outputs(child, base, outputs)),
    }
}
