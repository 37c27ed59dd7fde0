//! SET LOGGED and SET UNLOGGED.
//!
//! The rows of each table are logged, whatever is said of it ([limits](../../../../docs/limits.md)), so that nothing is written
//! anew: what is said is kept, shown, and held to PostgreSQL's rule that no logged table refers to one that a crash empties.

use crate::catalog::TableEntry;
use crate::definition::{DefinitionChange, ReadableBy};
use clearway_sql::error::{EngineError, Result, SqlState};

impl DefinitionChange<'_, '_, '_> {
    /// SET LOGGED, or SET UNLOGGED, of a table; the sequences of its columns go with it.
    pub(super) fn set_logged(&mut self, entry: &TableEntry, logged: bool) -> Result<()> {
        require_lasting(entry)?;
        if entry.def.unlogged != logged {
            return Ok(());
        }
        let mut state = self.state()?;
        let against = match logged {
            true => {
                let parents = entry.def.foreign_keys.iter();
                let mut parents = parents.filter_map(|key| state.table(key.parent));
                parents
                    .find(|parent| parent.def.oid != entry.def.oid && parent.def.unlogged)
                    .cloned()
            }
            false => {
                let mut children = state.references_to(entry.def.oid).into_iter();
                let found = children.find(|reference| {
                    reference.child.def.oid != entry.def.oid && !reference.child.def.unlogged
                });
                found.map(|reference| reference.child)
            }
        };
        if let Some(other) = against {
            let (to, refers) = match logged {
                true => ("logged", "unlogged"),
                false => ("unlogged", "logged"),
            };
            return Err(EngineError::new(
                SqlState::INVALID_TABLE_DEFINITION,
                format!(
                    "could not change table \"{}\" to {to} because it references {refers} table \"{}\"",
                    entry.def.name, other.def.name
                ),
            ));
        }
        for relation in state.owned_sequences(entry.def.oid, None) {
            let mut table = (*relation.def).clone();
            table.unlogged = !logged;
            self.replace(&mut state, &relation, table, ReadableBy::OlderSnapshots)?;
        }
        let mut table = (*entry.def).clone();
        table.unlogged = !logged;
        self.replace(&mut state, entry, table, ReadableBy::OlderSnapshots)?;
        self.keep(state, &entry.def.schema);
        Ok(())
    }

    /// SET LOGGED, or SET UNLOGGED, of a sequence.
    pub(super) fn set_sequence_logged(&mut self, entry: &TableEntry, logged: bool) -> Result<()> {
        require_lasting(entry)?;
        let mut table = (*entry.def).clone();
        table.unlogged = !logged;
        self.redefine(entry, table)
    }
}

/// 42P16 for a temporary table or sequence.
fn require_lasting(entry: &TableEntry) -> Result<()> {
    if !entry.def.schema.is_temporary() {
        return Ok(());
    }
    Err(EngineError::new(
        SqlState::INVALID_TABLE_DEFINITION,
        format!(
            "cannot change logged status of table \"{}\" because it is temporary",
            entry.def.name
        ),
    ))
}
