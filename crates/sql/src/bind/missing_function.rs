//! The error for a call that no function fits.

use crate::error::{EngineError, SqlState};
use crate::function::Unresolved;
use crate::value::DataType;

/// The error for a call that means no function, or several.
pub(super) fn no_function(name: &str, types: &[DataType], reason: Unresolved) -> EngineError {
    if matches!(name, "coalesce" | "greatest" | "least") && !types.is_empty() {
        return EngineError::new(
            SqlState::DATATYPE_MISMATCH,
            format!("the types in {} cannot be matched", name.to_uppercase()),
        );
    }
    let shown: Vec<_> = types.iter().map(|data_type| data_type.name()).collect();
    let call = format!("{name}({})", shown.join(", "));
    match reason {
        Unresolved::Missing => EngineError::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("function {call} does not exist"),
        )
        .with_hint(
            "No function matches the given name and argument types. You might need to add explicit type casts.",
        ),
        Unresolved::Ambiguous => EngineError::new(
            SqlState::AMBIGUOUS_FUNCTION,
            format!("function {call} is not unique"),
        )
        .with_hint("Several functions fit equally well. You might need to add explicit type casts."),
    }
}
