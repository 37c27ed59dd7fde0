//! The names that columns have in the text of a view, which may be others by now.
//!
//! ```text
//! create view v as select b from t;  alter table t rename b to c
//!
//! the view's text     select b from t                 and: `b` is the second column of t
//! shown               SELECT t.c AS b FROM t
//! ```

use sqlparser::ast;

use crate::bind::Binder;
use crate::bind::scope::Names;
use crate::catalog::{CatalogView, TableDef};
use crate::view::{NamedTable, TextName};

impl Binder<'_> {
    /// Gives columns of a table in FROM the names by which the text of a view calls them, if no alias names them.
    pub(super) fn name_as_in_text(
        &mut self,
        table: &TableDef,
        alias: Option<&ast::TableAlias>,
        names: &mut Names,
    ) {
        let Some(given) = self.view.as_ref().and_then(|view| view.given.clone()) else {
            return;
        };
        let aliased = alias.map_or(0, |alias| alias.columns.len());
        let relation = &mut names.relations[0];
        for known in given.names.iter().filter(|known| known.table == table.oid) {
            let place = table.column_of_attribute(known.column).map(usize::from);
            let Some(place) = place.filter(|place| (aliased..relation.columns.len()).contains(place)) else {
                continue;
            };
            if relation.columns[place].name != known.name {
                let now = std::mem::replace(&mut relation.columns[place].name, known.name.clone());
                relation.since.renamed.push((place, now));
                self.note_old_name();
                names.visible[place].name.clone_from(&known.name);
            }
        }
    }
}

/// The names of all columns of tables.
pub(super) fn text_names(tables: &[NamedTable], catalog: &dyn CatalogView) -> Vec<TextName> {
    let mut numbers: Vec<u32> = tables.iter().map(|named| named.table).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let tables = numbers
        .into_iter()
        .filter_map(|number| catalog.table_numbered(number));
    let names = tables.flat_map(|table| {
        let columns = (0..).zip(&table.columns);
        let names = columns.map(|(place, column)| TextName {
            table: table.oid,
            column: table.attribute_number(place),
            name: column.name.clone(),
        });
        names.collect::<Vec<_>>()
    });
    names.collect()
}
