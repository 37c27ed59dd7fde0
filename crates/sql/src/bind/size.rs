//! Bounds for the size of a plan.
//!
//! A plan is planned, opened, run and dropped by recursion over its queries, set operations and joins. Three constructs
//! make it deep although the text does not nest: `q union q union q`, `a join b join c`, and common table expressions
//! or views that use one another. Views and NOT MATERIALIZED also make it large, since each use is a copy: twenty lines,
//! each of which uses the one before twice, are a million copies. A common table expression that is made once is not
//! copied.
//!
//! - B1: the queries, set operations and joins on the way from the statement to any relation are at most [`DEPTH_MAX`],
//!   those of common table expressions on the way included.
//! - B2: the copies of common table expressions and views have at most [`COPIED_MAX`] columns together.
//!
//! More than that is 54001.

use crate::bind::Binder;
use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::query::{Block, Relation, Rows};
use crate::stack::{checkpoint, too_deep};

/// The most levels of queries, set operations and joins.
const DEPTH_MAX: usize = 200;

/// The most columns of copies.
const COPIED_MAX: usize = 1 << 16;

/// The size of a query.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Size {
    /// Its levels of queries, set operations and joins.
    depth: usize,
    /// Its columns, with those of the queries inside it.
    columns: usize,
}

impl Size {
    /// Of one query by itself.
    pub(super) fn of_one(columns: usize) -> Size {
        Size { depth: 0, columns }
    }

    /// Of two parts at the same level.
    fn beside(self, other: Size) -> Size {
        Size {
            depth: self.depth.max(other.depth),
            columns: self.columns.saturating_add(other.columns),
        }
    }

    /// One level up.
    fn inside(self, columns: usize) -> Size {
        Size {
            depth: self.depth + 1,
            columns: self.columns.saturating_add(columns),
        }
    }
}

impl Binder<'_> {
    /// Binds what lies so many levels deeper; B1.
    pub(super) fn deeper<T>(
        &mut self,
        levels: usize,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        if self.depth + levels > DEPTH_MAX {
            return Err(too_deep());
        }
        self.depth += levels;
        let bound = checkpoint(|| bind(self));
        self.depth -= levels;
        bound
    }

    /// 54001 if a query that is read at the place that is being bound makes the plan too deep; B1.
    pub(super) fn check_depth(&self, size: Size) -> Result<()> {
        match self.depth + size.depth > DEPTH_MAX {
            true => Err(too_deep()),
            false => Ok(()),
        }
    }

    /// Notes one more copy of a query; B2.
    pub(super) fn note_copy(&mut self, size: Size) -> Result<()> {
        self.copied = self.copied.saturating_add(size.columns);
        if self.copied > COPIED_MAX {
            return Err(EngineError::new(
                SqlState::STATEMENT_TOO_COMPLEX,
                format!(
                    "common table expressions and views are used too often: {COPIED_MAX} columns at most, all uses together"
                ),
            ));
        }
        Ok(())
    }

    /// The size of a bound query.
    pub(super) fn size_of(&self, block: &Block) -> Size {
        checkpoint(|| {
            let mut size = self.size_of_relation(&block.from);
            block.each_expression(&mut |expr| {
                expr.walk(&mut |part| {
                    if let Expr::Subquery(subquery) = part
                        && let Some(inner) = self.subqueries.get(subquery.number)
                    {
                        size = size.beside(self.size_of(inner));
                    }
                });
            });
            size.inside(block.width + block.projection.len())
        })
    }

    fn size_of_relation(&self, relation: &Relation) -> Size {
        match relation {
            Relation::OneRow => Size::default(),
            Relation::Join(join) => {
                let (left, right) = (&join.left, &join.right);
                let sides = checkpoint(|| self.size_of_relation(left).beside(self.size_of_relation(right)));
                sides.inside(0)
            }
            Relation::Leaf(leaf) => match &leaf.rows {
                Rows::Query { block, .. } => self.size_of(block),
                Rows::Set(set) => self.size_of(&set.left).beside(self.size_of(&set.right)),
                Rows::Recursive(union) => {
                    let operation = &union.operation;
                    self.size_of(&operation.left)
                        .beside(self.size_of(&operation.right))
                }
                Rows::Shared { number, .. } => self.with.size(*number),
                Rows::Table(_)
                | Rows::Series(_)
                | Rows::Functions(_)
                | Rows::Values(_)
                | Rows::Working(_)
                | Rows::Change => Size::default(),
            },
        }
    }
}
