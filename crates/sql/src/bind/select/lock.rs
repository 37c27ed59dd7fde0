//! FOR UPDATE and its relatives: which relations a clause locks.
//!
//! 1. Without OF a clause is for all tables of FROM, and for those of the queries and views in it; functions, VALUES and
//!    common table expressions have no rows to be locked. With OF it is for the relations that are named, which must
//!    have some.
//! 2. A query whose rows are locked gives rows of tables one for one: no grouping, DISTINCT, set operations, windows.
//! 3. Of two clauses for one table the stronger lock counts, and of their policies the one that waits less.

use sqlparser::ast;

use crate::bind::scope::Names;
use crate::bind::{Binder, is_bare, refuse, split_name};
use crate::catalog::TableKind;
use crate::error::{EngineError, Result, SqlState};
use crate::parse::lock_of;
use crate::plan::{LockStrength, LockWaitPolicy, RowLock};
use crate::query::{Block, Leaf, Relation, Rows};
use crate::stack::checkpoint;

/// 0A000 for a lock of what is no SELECT.
pub(super) fn refuse_locks_around(query: &ast::Query) -> Result<()> {
    let Some(clause) = query.locks.first() else {
        return Ok(());
    };
    let (strength, _) = lock_of(clause);
    match &*query.body {
        ast::SetExpr::Values(_) => Err(refused(strength, "cannot be applied to VALUES")),
        body if is_set_operation(body) => {
            Err(refused(strength, "is not allowed with UNION/INTERSECT/EXCEPT"))
        }
        _ => Ok(()),
    }
}

/// True for a set operation, in needless parentheses too.
pub(super) fn is_set_operation(body: &ast::SetExpr) -> bool {
    match body {
        ast::SetExpr::SetOperation { .. } => true,
        ast::SetExpr::Query(query) => query.with.is_none() && is_bare(query) && is_set_operation(&query.body),
        _ => false,
    }
}

fn refused(strength: LockStrength, why: &str) -> EngineError {
    EngineError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!("{} {why}", strength.clause()),
    )
}

/// 0A000 by rule 2.
fn check_form(block: &Block, strength: LockStrength) -> Result<()> {
    let mut with = None;
    block.from.each_leaf(&mut |leaf| match &leaf.rows {
        Rows::Set(_) => with = Some("UNION/INTERSECT/EXCEPT"),
        Rows::Functions(_) if leaf.name == super::OF_SELECT_LIST => {
            with = Some("set-returning functions in the target list");
        }
        _ => {}
    });
    if !block.windows.is_empty() {
        with = Some("window functions");
    }
    if let Some(aggregate) = &block.aggregate {
        with = Some(match () {
            () if !aggregate.keys.is_empty() || !aggregate.sets.is_empty() => "GROUP BY clause",
            () if aggregate.having.is_some() => "HAVING clause",
            () => "aggregate functions",
        });
    }
    if block.distinct || block.distinct_on > 0 {
        with = Some("DISTINCT clause");
    }
    match with {
        None => Ok(()),
        Some(with) => Err(refused(strength, &format!("is not allowed with {with}"))),
    }
}

impl Binder<'_> {
    /// Locks the rows of a block as these clauses say. `names`: those of its FROM.
    pub(super) fn lock_rows(
        &mut self,
        clauses: &[ast::LockClause],
        names: &Names,
        block: &mut Block,
    ) -> Result<()> {
        for clause in clauses {
            let (strength, of) = lock_of(clause);
            check_form(block, strength)?;
            let wait = match clause.nonblock {
                None => LockWaitPolicy::Block,
                Some(ast::NonBlock::Nowait) => LockWaitPolicy::NoWait,
                Some(ast::NonBlock::SkipLocked) => LockWaitPolicy::SkipLocked,
            };
            let lock = RowLock { strength, wait };
            if of.is_empty() {
                self.lock_all(lock, block)?;
            }
            for name in &of {
                self.lock_named(name, lock, names, block)?;
            }
        }
        Ok(())
    }

    /// Locks what a clause without OF is for.
    fn lock_all(&mut self, lock: RowLock, block: &mut Block) -> Result<()> {
        let (from, width) = (&mut block.from, &mut block.width);
        each_leaf(from, &mut |leaf| match leaf.rows {
            Rows::Table(_) | Rows::Query { .. } => self.lock_leaf(lock, leaf, width),
            _ => Ok(()),
        })
    }

    /// Locks the relation that a name of OF means.
    fn lock_named(
        &mut self,
        name: &ast::ObjectName,
        lock: RowLock,
        names: &Names,
        block: &mut Block,
    ) -> Result<()> {
        let (qualifier, name, span) = split_name(name)?;
        let clause = lock.strength.clause();
        if qualifier.is_some() {
            return Err(EngineError::new(
                SqlState::SYNTAX_ERROR,
                format!("{clause} must specify unqualified relation names"),
            )
            .or_position(self.position(span)));
        }
        let position = self.position(span);
        let mut found = false;
        let (from, width) = (&mut block.from, &mut block.width);
        each_leaf(from, &mut |leaf| {
            if leaf.name != name {
                return Ok(());
            }
            found = true;
            let kind = match &leaf.rows {
                Rows::Table(_) | Rows::Query { .. } => return self.lock_leaf(lock, leaf, width),
                Rows::Shared { .. } | Rows::Recursive(_) | Rows::Working(_) | Rows::Change => "a WITH query",
                Rows::Values(_) | Rows::Set(_) => "VALUES",
                Rows::Series(_) | Rows::Functions(_) => "a function",
            };
            let why = format!("cannot be applied to {kind}");
            Err(refused(lock.strength, &why).or_position(position))
        })?;
        if found {
            return Ok(());
        }
        if names.relations.iter().any(|relation| relation.alias == name) {
            return Err(refused(lock.strength, "cannot be applied to a join").or_position(position));
        }
        Err(EngineError::new(
            SqlState::UNDEFINED_TABLE,
            format!("relation \"{name}\" in {clause} clause not found in FROM clause"),
        )
        .or_position(position))
    }

    /// Locks the rows of a table, or of a query in FROM. `width`: the number of columns of the block's row, which gets one
    /// for the place of a table's row.
    fn lock_leaf(&mut self, lock: RowLock, leaf: &mut Leaf, width: &mut usize) -> Result<()> {
        match &mut leaf.rows {
            Rows::Table(table) => {
                refuse(
                    table.kind == TableKind::Virtual,
                    &format!("{} over a system view", lock.strength.clause()),
                )?;
                if leaf.place.is_none() {
                    leaf.place = Some(*width as u16);
                    *width += 1;
                    super::from::check_width(*width)?;
                }
                leaf.lock = Some(leaf.lock.map_or(lock, |before| before.and(lock)));
                for access in self
                    .accesses
                    .iter_mut()
                    .filter(|access| access.table.oid == table.oid)
                {
                    access.updates = true;
                }
                let mut reads = self.reads.iter_mut();
                if let Some(read) = reads.find(|read| read.table.oid == table.oid) {
                    read.locked = read.locked.max(Some(lock.strength));
                }
                Ok(())
            }
            Rows::Query { block, .. } => checkpoint(|| {
                check_form(block, lock.strength)?;
                block.is_locked_from_outside = true;
                self.lock_all(lock, block)
            }),
            _ => Ok(()),
        }
    }
}

/// Calls `visit` for each leaf.
fn each_leaf(relation: &mut Relation, visit: &mut dyn FnMut(&mut Leaf) -> Result<()>) -> Result<()> {
    match relation {
        Relation::OneRow => Ok(()),
        Relation::Leaf(leaf) => visit(leaf),
        Relation::Join(join) => {
            each_leaf(&mut join.left, visit)?;
            each_leaf(&mut join.right, visit)
        }
    }
}
