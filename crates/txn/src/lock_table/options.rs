//! The options of a lock manager.

use std::time::Duration;

use clearway_latch::LwLockOptions;

use super::RelationLocksVariant;
use crate::{ROWS_MAX, RowLocksVariant};

/// The options of a lock manager.
#[derive(Debug, Clone, Copy)]
pub struct LockOptions {
    /// The switch `relation_locks`.
    pub relation_locks: RelationLocksVariant,
    /// The switch `row_locks`.
    pub row_locks: RowLocksVariant,
    /// Rows that a transaction shares one by one (H6 of `row_holders`).
    pub rows_max: usize,
    /// The options of its LwLocks.
    pub lwlock: LwLockOptions,
    /// A worker that has waited longer than this looks for a deadlock, unless its session has set a time of its own.
    pub deadlock_timeout: Duration,
}

impl Default for LockOptions {
    fn default() -> Self {
        Self {
            relation_locks: RelationLocksVariant::default(),
            row_locks: RowLocksVariant::default(),
            rows_max: ROWS_MAX,
            lwlock: LwLockOptions::default(),
            deadlock_timeout: Duration::from_secs(1),
        }
    }
}
