//! The words of other layers: errors of those below, and modes of locks.

use clearway_storage::StorageError;
use clearway_txn::LockMode;

use crate::interrupt::current_error;
use clearway_sql::error::{EngineError, SqlState};
use clearway_sql::plan::TableLockMode;
use clearway_sql::{IndexDef, TableDef};

/// A storage error for the client.
#[cold]
pub(crate) fn storage_error(error: StorageError) -> EngineError {
    let sqlstate = SqlState::from_code(error.sqlstate());
    let shown = EngineError::new(sqlstate, error.to_string());
    match error {
        StorageError::StopAsked => current_error().unwrap_or(shown),
        _ => shown,
    }
}

/// An error of a change of an index for the client.
#[cold]
pub(crate) fn index_error(error: StorageError, table: &TableDef, index: &IndexDef) -> EngineError {
    match error {
        StorageError::TooLarge { size, max, .. } => EngineError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!(
                "index row size {size} exceeds btree version 4 maximum {max} for index \"{}\"",
                index.name
            ),
        )
        .with_hint(
            "Values larger than 1/3 of a buffer page cannot be indexed.\nConsider a function index of an MD5 hash \
             of the value, or use full text indexing.",
        )
        .with_table(&table.schema.name, &table.name)
        .with_constraint(&index.name),
        error => storage_error(error),
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
