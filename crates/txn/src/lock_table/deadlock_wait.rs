//! The waits that a deadlock is made of, as the session that gives up is told of them.

use super::LockTag;
use crate::{LockMode, ProcId, Xid};

/// A lock in a mode, or the end of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitTarget {
    /// A lock.
    Lock(LockTag, LockMode),
    /// A transaction.
    Transaction(Xid),
}

/// One wait of a deadlock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadlockWait {
    /// The session that waits.
    pub waiter: ProcId,
    /// The target of its wait.
    pub target: WaitTarget,
    /// The session that it waits for.
    pub blocker: ProcId,
}
