//! The words of other layers: errors of those below, and modes of locks.

use clearway_storage::StorageError;
use clearway_txn::{LockError, LockMode};

use crate::interrupt::{Interrupts, current_error};
use clearway_sql::error::{EngineError, SqlState};
use clearway_sql::plan::TableLockMode;

/// A storage error for the client.
#[cold]
pub(crate) fn storage_error(error: StorageError) -> EngineError {
    let sqlstate = SqlState::from_code(error.sqlstate());
    let shown = EngineError::new(sqlstate, error.to_string());
    match error {
        StorageError::TooLarge { what: "row", .. } => shown.with_hint(
            "A row, all its columns together, must fit on one page; long values are not stored elsewhere. \
             Divide it into several rows (docs/limits.md).",
        ),
        StorageError::TooLarge { .. } => {
            shown.with_hint("Index fewer columns, or columns with shorter values (docs/limits.md).")
        }
        StorageError::StopAsked => current_error().unwrap_or(shown),
        _ => shown,
    }
}

/// A lock error for the client.
#[cold]
pub(crate) fn lock_error(error: LockError, interrupts: &Interrupts) -> EngineError {
    match error {
        LockError::Deadlock { cycle } => {
            EngineError::new(SqlState::DEADLOCK_DETECTED, "deadlock detected").with_detail(cycle)
        }
        LockError::Timeout => EngineError::new(
            SqlState::LOCK_NOT_AVAILABLE,
            "canceling statement due to lock timeout",
        ),
        _ => interrupts.error(),
    }
}
/// The lock manager's mode of a mode of LOCK TABLE.
pub(crate) fn lock_mode(mode: TableLockMode) -> LockMode {
    match mode {
        TableLockMode::AccessShare => LockMode::AccessShare,
        TableLockMode::RowShare => LockMode::RowShare,
        TableLockMode::RowExclusive => LockMode::RowExclusive,
        TableLockMode::ShareUpdateExclusive => LockMode::ShareUpdateExclusive,
        TableLockMode::Share => LockMode::Share,
        TableLockMode::ShareRowExclusive => LockMode::ShareRowExclusive,
        TableLockMode::Exclusive => LockMode::Exclusive,
        TableLockMode::AccessExclusive => LockMode::AccessExclusive,
    }
}
