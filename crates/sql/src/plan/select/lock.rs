//! FOR UPDATE and its relatives.
//!
//! Over operators ([`LockedRows`]) a row of the output carries what is needed to look at it again: the columns of the
//! block's row that the projection and the conditions read, and the places of the locked rows.

use crate::expr::Expr;
use crate::plan::{JoinKind, TableScan};

/// The strength of the row locks of FOR ….
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockStrength {
    /// FOR KEY SHARE
    KeyShare,
    /// FOR SHARE
    Share,
    /// FOR NO KEY UPDATE
    NoKeyUpdate,
    /// FOR UPDATE
    Update,
}

impl LockStrength {
    /// The clause.
    pub fn clause(self) -> &'static str {
        &self.statement()["SELECT ".len()..]
    }

    /// The statement that has the clause, as a refusal to write names it.
    pub fn statement(self) -> &'static str {
        match self {
            LockStrength::KeyShare => "SELECT FOR KEY SHARE",
            LockStrength::Share => "SELECT FOR SHARE",
            LockStrength::NoKeyUpdate => "SELECT FOR NO KEY UPDATE",
            LockStrength::Update => "SELECT FOR UPDATE",
        }
    }
}

/// The treatment of a row that someone else has locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockWaitPolicy {
    /// Wait.
    Block,
    /// SKIP LOCKED: leave it out.
    SkipLocked,
    /// NOWAIT: error 55P03.
    NoWait,
}

/// A FOR UPDATE clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowLock {
    /// The strength.
    pub strength: LockStrength,
    /// The treatment of a row that is taken.
    pub wait: LockWaitPolicy,
}

impl RowLock {
    /// The lock of a relation that two clauses lock.
    pub(crate) fn and(self, other: RowLock) -> RowLock {
        RowLock {
            strength: self.strength.max(other.strength),
            wait: self.wait.max(other.wait),
        }
    }
}

/// The rows that a SELECT over operators locks.
#[derive(Debug, Clone)]
pub struct LockedRows {
    /// The tables.
    pub tables: Vec<LockedTable>,
    /// Number of columns of the block's row.
    pub width: usize,
    /// The columns of the block's row that the output row ends with, from `first` on.
    pub kept: Vec<u16>,
    /// The place of the first of them in the output row.
    pub first: usize,
    /// FROM, for newer versions of locked rows.
    pub from: Recheck,
    /// WHERE, over the block's row.
    pub condition: Option<Expr>,
}

/// A table whose rows are locked.
#[derive(Debug, Clone)]
pub struct LockedTable {
    /// A scan of the table with the columns that are needed of a newer version.
    pub scan: TableScan,
    /// Its first column in the block's row.
    pub base: u16,
    /// The column with the place of its row.
    pub place: u16,
    /// The lock.
    pub lock: RowLock,
}

/// A FROM as it is looked at again with newer versions of some of its rows, beside the same rows of its other relations.
#[derive(Debug, Clone)]
pub enum Recheck {
    /// A relation that has its row.
    Leaf,
    /// A join.
    Join {
        /// The kind.
        kind: JoinKind,
        /// Left side.
        left: Box<Recheck>,
        /// Right side.
        right: Box<Recheck>,
        /// ON, over the block's row.
        on: Option<Expr>,
        /// The columns of the side that may be NULL.
        nullable: Vec<u16>,
    },
}
