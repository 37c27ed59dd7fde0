//! SET SCHEMA of tables and views.
//!
//! A relation's number stays, and what refers to it does so by number. So names are looked at: those that come with it, of its
//! indexes and of the sequences of its columns, must be free in the other schema. And no text of a definition may name the
//! type of its rows, since such a text keeps the type's name.

use std::sync::Arc;

use crate::catalog::owned_sequences::owner_of;
use crate::catalog::{CatalogState, TableEntry};
use crate::definition::written_names::require_row_type_unwritten;
use crate::definition::{DefinitionChange, ReadableBy};
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::value::DataType;
use clearway_sql::{SchemaRef, TableKind};

impl DefinitionChange<'_, '_, '_> {
    /// Moves a table, its indexes and the sequences of its columns, or a view, into another schema.
    pub(super) fn move_table(&mut self, entry: &TableEntry, schema: &SchemaRef) -> Result<()> {
        require_movable(&entry.def.schema, schema)?;
        if *schema == entry.def.schema {
            return Ok(());
        }
        let mut state = self.state()?;
        require_row_type_unwritten(&state, &entry.def, "moving")?;
        let sequences = state.owned_sequences(entry.def.oid, None);
        require_free(&state, entry, &sequences, schema)?;
        let mut table = (*entry.def).clone();
        table.schema = schema.clone();
        self.replace(&mut state, entry, table, ReadableBy::OlderSnapshots)?;
        for sequence in &sequences {
            let mut table = (*sequence.def).clone();
            table.schema = schema.clone();
            self.replace(&mut state, sequence, table, ReadableBy::OlderSnapshots)?;
        }
        self.keep(state, schema);
        Ok(())
    }

    /// Moves a sequence that belongs to no column.
    pub(super) fn move_sequence(&mut self, entry: &TableEntry, schema: &SchemaRef) -> Result<()> {
        if let Some(owner) = owner_of(entry) {
            let detail = self.linked(entry, owner);
            return Err(EngineError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot move an owned sequence into another schema",
            )
            .with_detail(detail));
        }
        require_movable(&entry.def.schema, schema)?;
        if *schema == entry.def.schema {
            return Ok(());
        }
        require_free(&self.state()?, entry, &[], schema)?;
        let mut table = (*entry.def).clone();
        table.schema = schema.clone();
        self.redefine(entry, table)
    }
}

/// 0A000 for a schema of temporary tables on either side.
fn require_movable(from: &SchemaRef, to: &SchemaRef) -> Result<()> {
    match from.is_temporary() || to.is_temporary() {
        true => Err(EngineError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot move objects into or out of temporary schemas",
        )),
        false => Ok(()),
    }
}

/// 42P07 or 42710 if a name that comes with a relation is taken in the schema.
fn require_free(
    state: &CatalogState,
    entry: &TableEntry,
    sequences: &[Arc<TableEntry>],
    schema: &SchemaRef,
) -> Result<()> {
    let indexes = entry.def.all_indexes().map(|index| index.name.as_str());
    let sequences = sequences.iter().map(|sequence| sequence.def.name.as_str());
    let mut names = std::iter::once(entry.def.name.as_str())
        .chain(indexes)
        .chain(sequences);
    if let Some(taken) = names.find(|name| state.is_taken(schema.oid, name)) {
        return Err(EngineError::new(
            SqlState::DUPLICATE_TABLE,
            format!(
                "relation \"{taken}\" already exists in schema \"{}\"",
                schema.name
            ),
        ));
    }
    // The type of its rows has its name too.
    let has_type =
        entry.def.sequence.is_none() && matches!(entry.def.kind, TableKind::Heap { .. } | TableKind::View);
    let taken: Option<DataType> = has_type
        .then(|| state.type_in(schema.oid, &entry.def.name))
        .flatten();
    match taken {
        // Such a type is a relation in PostgreSQL.
        Some(DataType::Composite(_)) => Err(EngineError::new(
            SqlState::DUPLICATE_TABLE,
            format!(
                "relation \"{}\" already exists in schema \"{}\"",
                entry.def.name, schema.name
            ),
        )),
        Some(_) => Err(EngineError::new(
            SqlState::DUPLICATE_OBJECT,
            format!(
                "type \"{}\" already exists in schema \"{}\"",
                entry.def.name, schema.name
            ),
        )),
        None => Ok(()),
    }
}
