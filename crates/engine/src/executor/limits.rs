//! What a statement may keep in memory.

use crate::error::{EngineError, Result, SqlState};

/// Rows that sorting, grouping or DISTINCT may hold: there is no spilling to disk.
const ROWS_MAX: usize = 50_000_000;

/// Fails when a statement holds too many rows.
#[inline]
pub(crate) fn check_rows(rows: usize) -> Result<()> {
    if rows > ROWS_MAX {
        return Err(EngineError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("a sort, grouping or DISTINCT holds more than {ROWS_MAX} rows"),
        ));
    }
    Ok(())
}
