//! Parts of a time that a type does not have.

use crate::error::{EngineError, SqlState};

pub(super) use crate::value::datetime::Unit;

/// 22023 for a name that means nothing.
#[cold]
pub(super) fn not_recognized(name: &str, type_name: &str) -> EngineError {
    EngineError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("unit \"{}\" not recognized for type {type_name}", shown(name)),
    )
}

/// 0A000 for a part that values of a type have not.
#[cold]
pub(super) fn not_supported(name: &str, type_name: &str) -> EngineError {
    EngineError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!("unit \"{}\" not supported for type {type_name}", shown(name)),
    )
}

fn shown(name: &str) -> String {
    crate::error::shown(name).to_lowercase()
}
