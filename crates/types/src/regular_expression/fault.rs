//! The error of a text that is no regular expression.

use crate::error::{EngineError, SqlState};

/// 2201B in PostgreSQL's words.
#[cold]
pub(super) fn invalid(what: &str) -> EngineError {
    EngineError::new(
        SqlState::INVALID_REGULAR_EXPRESSION,
        format!("invalid regular expression: {what}"),
    )
}
