//! The error for a call that no function fits.

use crate::error::{EngineError, SqlState};
use crate::function::Unresolved;
use crate::value::DataType;

/// The functions of full text search, which is refused by name.
const OF_TEXT_SEARCH: &[&str] = &[
    "array_to_tsvector",
    "get_current_ts_config",
    "json_to_tsvector",
    "jsonb_to_tsvector",
    "numnode",
    "phraseto_tsquery",
    "plainto_tsquery",
    "querytree",
    "setweight",
    "to_tsquery",
    "to_tsvector",
    "ts_debug",
    "ts_delete",
    "ts_filter",
    "ts_headline",
    "ts_lexize",
    "ts_parse",
    "ts_rank",
    "ts_rank_cd",
    "ts_rewrite",
    "ts_stat",
    "ts_token_type",
    "tsquery_phrase",
    "tsvector_to_array",
    "websearch_to_tsquery",
];

/// The error for an operator of full text search over these types, if it is one.
pub(super) fn text_search_operator(symbol: &str, types: &[DataType]) -> Option<EngineError> {
    let is_one = matches!(symbol, "@@" | "@@@") && types.iter().all(|data_type| *data_type == DataType::Text);
    is_one.then(|| EngineError::not_supported(format_args!("full text search (operator {symbol})")))
}

/// The error for a call that means no function, or several.
pub(super) fn no_function(name: &str, types: &[DataType], reason: Unresolved) -> EngineError {
    if reason == Unresolved::Missing && OF_TEXT_SEARCH.contains(&name) {
        return EngineError::not_supported(format_args!("full text search (function {name})"));
    }
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
