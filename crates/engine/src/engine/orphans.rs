//! Files and definitions, compared.

use std::collections::HashSet;

use clearway_storage::RelId;

use super::Engine;
use crate::catalog::{CATALOG_REL, CatalogState};
use crate::convert::storage_error;
use clearway_sql::error::{EngineError, Result, SqlState};

impl Engine {
    /// Compares the files with the definitions.
    ///
    /// - A definition whose file is missing is an error: a table was lost.
    /// - A file that no definition names is removed. It belongs to a table whose creation or drop a crash has cut off.
    ///   That is proven by three facts: the catalog was read whole, since its length is known and each page fitted its
    ///   checksum; the file's number was handed out by this database; and no transaction of before is running any more.
    pub(super) fn remove_orphans(&self) -> Result<()> {
        self.check_files()?;
        self.remove_files_without_definition(&self.catalog.state())
    }

    /// An error if a definition names a file that is missing.
    pub(super) fn check_files(&self) -> Result<()> {
        let files: HashSet<RelId> = self
            .storage
            .list_rels()
            .map_err(storage_error)?
            .into_iter()
            .collect();
        for entry in self.catalog.state().with_files() {
            let kind = if entry.def.sequence.is_some() {
                "sequence"
            } else {
                "table"
            };
            if let Some(rel) = entry.relations().find(|rel| !files.contains(&RelId(*rel))) {
                return Err(EngineError::new(
                    SqlState::DATA_CORRUPTED,
                    format!(
                        "the file base/{rel} of {kind} \"{}\" is missing; restore the directory from a backup",
                        entry.def.name
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Removes the file of a relation that no definition names.
    pub(super) fn remove_file(&self, rel: RelId) -> Result<()> {
        tracing::info!(rel = rel.0, "removing a relation that no definition names");
        self.catalog.forget_sequence(rel.0);
        self.storage.drop_rel(rel).map_err(storage_error)
    }

    /// Removes the files that belong to no definition. The caller knows that no transaction runs that has made one of
    /// them, and that no statement uses one.
    pub(super) fn remove_files_without_definition(&self, state: &CatalogState) -> Result<()> {
        let mut named = HashSet::from([RelId::COMMIT_LOG, RelId(CATALOG_REL)]);
        for entry in state.with_files() {
            named.extend(entry.relations().map(RelId));
        }
        for rel in self.storage.list_rels().map_err(storage_error)? {
            if named.contains(&rel) {
                continue;
            }
            if self.storage.was_handed_out(rel) {
                self.remove_file(rel)?;
            } else {
                tracing::warn!(
                    rel = rel.0,
                    "a file in base that this database did not make is left alone"
                );
            }
        }
        Ok(())
    }
}
