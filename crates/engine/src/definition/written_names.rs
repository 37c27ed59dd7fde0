//! Names in the texts of definitions.

use clearway_sql::error::{EngineError, Result};
use clearway_sql::value::user_type::UserType;
use clearway_sql::{ColumnDefault, has_word};

use crate::catalog::CatalogState;

/// 0A000 if an expression or a query in a definition has this word, by which it may name the type or the label: texts of
/// definitions keep the words that they were written with.
pub(super) fn require_unwritten(state: &CatalogState, of: &UserType, word: &str, what: &str) -> Result<()> {
    let refused = |in_what: String| {
        EngineError::not_supported(format!("{what} of {}, which {in_what} names", of.data_type()))
    };
    for entry in state.tables().iter().chain(&state.views()) {
        let table = &entry.def;
        let defaults = table.columns.iter().filter_map(|column| match &column.default {
            Some(ColumnDefault::Expression { sql, .. } | ColumnDefault::Generated { sql, .. }) => Some(sql),
            _ => None,
        });
        let checks = table.checks.iter().map(|check| &check.sql);
        let view = table.view.iter().map(|view| &view.sql);
        if defaults.chain(checks).chain(view).any(|sql| has_word(sql, word)) {
            return Err(refused(format!("the definition of \"{}\"", table.name)));
        }
    }
    for other in state.user_types() {
        let domain = other.domain();
        let texts = domain.iter().flat_map(|domain| {
            let checks = domain.checks.iter().map(|check| &check.sql);
            domain.default.iter().chain(checks)
        });
        if texts.into_iter().any(|sql| has_word(sql, word)) {
            return Err(refused(format!("domain \"{}\"", other.name)));
        }
    }
    Ok(())
}
