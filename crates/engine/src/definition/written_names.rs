//! Names in the texts of definitions.
//!
//! Texts of definitions keep the words that they were written with, so a word by which a text may name a label or an
//! attribute of a type cannot change. A text can name one only with a value of the type at hand: out of a column that has
//! such values, or by a cast, whose type it names (by its number in the texts of defaults and conditions, by its name in
//! those of views). A word in any other text is another thing of that name.

use std::sync::Arc;

use clearway_sql::error::{EngineError, Result};
use clearway_sql::value::DataType;
use clearway_sql::value::user_type::{UserType, array_name, numbered};
use clearway_sql::{ColumnDefault, TableDef, has_word};

use crate::catalog::CatalogState;

/// 0A000 if an expression or a query in a definition may name the type, the label or the attribute by this word.
pub(super) fn require_unwritten(state: &CatalogState, of: &UserType, word: &str, what: &str) -> Result<()> {
    let refused = |in_what: String| {
        EngineError::not_supported(format!("{what} of {}, which {in_what} names", of.data_type()))
    };
    let holders = Holders::of(state, of.data_type());
    for entry in state.tables().iter().chain(&state.views()) {
        let table = &entry.def;
        let defaults = table.columns.iter().filter_map(|column| match &column.default {
            Some(ColumnDefault::Expression { sql, .. } | ColumnDefault::Generated { sql, .. }) => Some(sql),
            _ => None,
        });
        let checks = table.checks.iter().map(|check| &check.sql);
        let mut own = defaults.chain(checks);
        let mut views = table.view.iter();
        let is_named = own.any(|sql| has_word(sql, word) && holders.are_at_hand(sql, [&**table]))
            || views.any(|view| {
                let relations = view.tables.iter().filter_map(|named| state.table(named.table));
                has_word(&view.sql, word)
                    && holders.are_at_hand(&view.sql, relations.map(|entry| &*entry.def))
            });
        if is_named {
            return Err(refused(format!("the definition of \"{}\"", table.name)));
        }
    }
    for other in state.user_types() {
        let domain = other.domain();
        let texts = domain.iter().flat_map(|domain| {
            let checks = domain.checks.iter().map(|check| &check.sql);
            domain.default.iter().chain(checks)
        });
        let is_base = domain.is_some_and(|domain| holds(state, domain.base, of.data_type()));
        let mut texts = texts.into_iter();
        if texts.any(|sql| has_word(sql, word) && (is_base || holders.are_at_hand(sql, []))) {
            return Err(refused(format!("domain \"{}\"", other.name)));
        }
    }
    Ok(())
}

/// The types whose values have values of one type inside, itself among them.
struct Holders<'s> {
    state: &'s CatalogState,
    wanted: DataType,
    /// The words by which a text may name them.
    words: Vec<String>,
}

impl<'s> Holders<'s> {
    fn of(state: &'s CatalogState, wanted: DataType) -> Holders<'s> {
        let all: Vec<Arc<UserType>> = state.user_types().into_iter().chain(state.row_types()).collect();
        let holding = all.iter().filter(|found| holds(state, found.data_type(), wanted));
        let words =
            holding.flat_map(|found| [found.name.clone(), array_name(&found.name), numbered(found.oid)]);
        Holders {
            state,
            wanted,
            words: words.collect(),
        }
    }

    /// True if a text over these relations may have such a value at hand.
    fn are_at_hand<'t>(&self, sql: &str, relations: impl IntoIterator<Item = &'t TableDef>) -> bool {
        let mut columns = relations.into_iter().flat_map(|table| &table.columns);
        columns.any(|column| holds(self.state, column.data_type, self.wanted))
            || self.words.iter().any(|word| has_word(sql, word))
    }
}

/// True if values of a type have values of another one inside, or are such.
pub(super) fn holds(state: &CatalogState, data_type: DataType, wanted: DataType) -> bool {
    if data_type == wanted {
        return true;
    }
    let inside = match (data_type.element(), data_type.user_oid()) {
        (Some(element), _) => vec![element],
        (None, Some(oid)) => state.user_type(oid).map_or_else(Vec::new, |found| found.parts()),
        (None, None) => return false,
    };
    let mut inside = inside.into_iter();
    inside.any(|part| clearway_sql::checkpoint(|| holds(state, part, wanted)))
}
