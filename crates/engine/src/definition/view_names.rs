//! Renaming a column that views read.
//!
//! A view keeps its text, and the names that columns of its tables have in it (`clearway_sql::view`). So a column that gets
//! another name changes no view's rows, and the text that is shown has the new one. Refused are a view that cannot be shown
//! so, and a text that names the column as a field of a row.

use std::sync::Arc;

use clearway_sql::deparse::view_definition;
use clearway_sql::error::{EngineError, Result};
use clearway_sql::{CatalogView, TableDef};

use crate::catalog::{CatalogState, TableEntry};
use crate::definition::DefinitionChange;
use crate::definition::written_names::require_no_field_written;

/// The relations of a state, by number alone: a view's text has no other names.
struct ByNumber<'s>(&'s CatalogState);

impl CatalogView for ByNumber<'_> {
    fn lookup_table(&self, _schema: Option<&str>, _name: &str) -> Option<Arc<TableDef>> {
        None
    }

    fn table_numbered(&self, oid: u32) -> Option<Arc<TableDef>> {
        self.0.table_numbered(oid)
    }
}

impl DefinitionChange<'_, '_, '_> {
    /// Gives the column at this place of a table or view another name, and lets the views that read it know.
    pub(super) fn rename_read_column(
        &mut self,
        entry: &TableEntry,
        place: u16,
        to: &str,
        mut renamed: TableDef,
    ) -> Result<()> {
        let from = entry.def.columns[usize::from(place)].name.clone();
        let (table, column) = (entry.def.oid, entry.def.attribute_number(place));
        require_no_field_written(&self.state()?, &entry.def, &from)?;
        to.clone_into(&mut renamed.columns[usize::from(place)].name);
        self.redefine(entry, renamed)?;
        let views = self.state()?.views();
        let mut told = Vec::new();
        for view in views {
            let changed = view.def.view.as_ref();
            let changed = changed.and_then(|view| view.with_renamed(table, column, &from));
            if let Some(changed) = changed {
                let mut definition = (*view.def).clone();
                definition.view = Some(Arc::new(changed));
                self.redefine(&view, definition)?;
                told.push(view.def.oid);
            }
        }
        let state = self.state()?;
        for view in told {
            let Some(view) = state.table(view) else { continue };
            view_definition(&view.def, &ByNumber(&state), true).map_err(|_| {
                EngineError::not_supported(format!(
                    "renaming column \"{from}\" of \"{}\", which view \"{}\" reads in this form,",
                    entry.def.name, view.def.name
                ))
            })?;
        }
        Ok(())
    }
}
