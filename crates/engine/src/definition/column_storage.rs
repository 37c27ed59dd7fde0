//! ALTER TABLE … ALTER COLUMN … SET STORAGE, SET COMPRESSION: they concern values that are written from now on.

use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::value::format_type;
use clearway_sql::{ColumnCompression, ColumnStorage};

use crate::catalog::TableEntry;
use crate::definition::DefinitionChange;
use crate::definition::alter::column_named;

impl DefinitionChange<'_, '_, '_> {
    pub(super) fn set_storage(
        &mut self,
        entry: &TableEntry,
        name: &str,
        storage: ColumnStorage,
    ) -> Result<()> {
        let column = column_named(&entry.def, name)?;
        let mut table = (*entry.def).clone();
        let definition = &mut table.columns[usize::from(column)];
        if !storage.is_for(definition.data_type) {
            return Err(EngineError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!(
                    "column data type {} can only have storage PLAIN",
                    format_type(definition.data_type, -1)
                ),
            ));
        }
        let is_types_own = storage == ColumnStorage::of_type(definition.data_type);
        definition.chosen_storage = (!is_types_own).then_some(storage);
        self.redefine(entry, table)
    }

    pub(super) fn set_compression(
        &mut self,
        entry: &TableEntry,
        name: &str,
        compression: ColumnCompression,
    ) -> Result<()> {
        let column = column_named(&entry.def, name)?;
        let mut table = (*entry.def).clone();
        let definition = &mut table.columns[usize::from(column)];
        let has_any = ColumnStorage::of_type(definition.data_type) != ColumnStorage::Plain;
        if !has_any && !compression.is_default() {
            return Err(EngineError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!(
                    "column data type {} does not support compression",
                    format_type(definition.data_type, -1)
                ),
            ));
        }
        definition.compression = compression;
        self.redefine(entry, table)
    }
}
