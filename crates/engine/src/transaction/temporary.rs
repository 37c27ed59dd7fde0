//! The temporary tables of a session.
//!
//! Their definitions are in no row of the catalog heap: the session alone has them, beside those that all sessions share.
//! So they need no catalog lock, they are no news to other sessions, and nothing is left of them after a crash but files
//! that no definition names, which the next start removes. Their rows are rows like any others, and are logged; standbys pass
//! over them.
//!
//! # The catalog that the session sees
//! ```text
//! published state ── copy, with the session's tables put in ──▶ overlay
//! ```
//! The overlay is made anew when another state has been published. While the transaction itself changes what all share, no
//! other state can be published (rule 1 of [`crate::catalog`]); at its commit the overlay without the session's tables is
//! published.
//!
//! # Rules
//! - X1: the temporary tables of the overlay are those that the transaction sees; `settled` has those that there are if it
//!   rolls back.
//! - X2: no temporary table is in a published state.
//!
//! # At a commit
//! A table of ON COMMIT DROP goes with the views over it, which are temporary too, and one of ON COMMIT DELETE ROWS gets new, empty relations, as TRUNCATE gives it: both are
//! changes of the transaction that commits.

use std::sync::Arc;

use clearway_machine::invariant;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::OnCommit;
use clearway_sql::{IndexDef, SchemaRef, TableKind};
use clearway_storage::RelId;
use clearway_storage::btree::BTree;

use super::Transaction;
use crate::catalog::schema::SchemaEntry;
use crate::catalog::{CatalogState, TableEntry};
use crate::convert::storage_error;

/// A session's temporary tables.
#[derive(Debug)]
pub(super) struct Temporary {
    schema: SchemaRef,
    /// Those that there were when the last transaction ended.
    settled: Vec<Arc<TableEntry>>,
    /// The published version that the overlay was made over.
    over: u64,
}

/// The definitions that a transaction saw at a savepoint.
#[derive(Debug)]
pub(super) struct SavedDefinitions {
    overlay: Option<Arc<CatalogState>>,
    redefines: bool,
    /// The published version that it was made over, if there were temporary tables.
    over: Option<u64>,
}

impl SavedDefinitions {
    pub(super) fn of(
        overlay: Option<&Arc<CatalogState>>,
        redefines: bool,
        temporary: Option<&Temporary>,
    ) -> SavedDefinitions {
        SavedDefinitions {
            overlay: overlay.cloned(),
            redefines,
            over: temporary.map(|temporary| temporary.over),
        }
    }
}

impl Transaction {
    /// The definitions are those of a savepoint again. An overlay over a state that is not published any more is made anew
    /// when it is used.
    pub(super) fn restore_definitions(&mut self, saved: &SavedDefinitions) {
        self.overlay.clone_from(&saved.overlay);
        self.redefines = saved.redefines;
        match (&mut self.temporary, saved.over) {
            (Some(temporary), Some(over)) => temporary.over = over,
            (temporary, _) => *temporary = None,
        }
    }

    /// The schema of the session's temporary tables, from now on if there was none.
    pub(crate) fn open_temporary(&mut self) {
        if self.temporary.is_some() {
            return;
        }
        let over = self.catalog.version();
        let mut state = self.catalog.changed_copy(&self.catalog_state());
        let schema = SchemaRef::temporary(self.slot.process_id);
        state.put_schema(SchemaEntry::temporary(schema.clone()));
        self.overlay = Some(Arc::new(state));
        self.temporary = Some(Box::new(Temporary {
            schema,
            settled: Vec::new(),
            over,
        }));
    }

    /// Replaces the catalog that the session sees; only temporary tables have changed.
    pub(crate) fn set_temporary_state(&mut self, state: CatalogState) {
        invariant!(
            X1,
            self.temporary.is_some() && self.xid.is_some(),
            "temporary tables change with id {:?}",
            self.xid
        );
        self.overlay = Some(Arc::new(state));
    }

    /// Makes the overlay anew if another state has been published since.
    #[cold]
    pub(super) fn refresh_overlay(&mut self) {
        let (Some(temporary), Some(overlay)) = (&self.temporary, &self.overlay) else {
            return;
        };
        if self.redefines || temporary.over == self.catalog.version() {
            return;
        }
        let tables = overlay.temporary_tables();
        self.put_over_published(&tables);
    }

    fn put_over_published(&mut self, tables: &[Arc<TableEntry>]) {
        let Some(temporary) = &mut self.temporary else {
            return;
        };
        // The version first: a state that is published in between is looked at again.
        temporary.over = self.catalog.version();
        let mut state = self.catalog.changed_copy(&self.catalog.state());
        state.put_schema(SchemaEntry::temporary(temporary.schema.clone()));
        for entry in tables {
            state.put((**entry).clone());
        }
        self.overlay = Some(Arc::new(state));
    }

    /// The state to be published at the commit, if the transaction has changed what all sessions share.
    pub(super) fn state_to_publish(&mut self) -> Option<Arc<CatalogState>> {
        if !self.redefines {
            return None;
        }
        if self.temporary.is_none() {
            return self.overlay.take();
        }
        let overlay = self.overlay.as_ref()?;
        let mut state = self.catalog.changed_copy(overlay);
        state.remove_temporary();
        invariant!(
            X2,
            state.temporary_tables().is_empty(),
            "temporary tables are published"
        );
        Some(Arc::new(state))
    }

    /// The transaction has ended: its temporary tables stay as they are, or are those of before.
    pub(super) fn settle_temporary(&mut self, committed: bool) {
        let redefined = std::mem::take(&mut self.redefines);
        let Some(temporary) = &mut self.temporary else {
            self.overlay = None;
            return;
        };
        if committed && let Some(overlay) = &self.overlay {
            temporary.settled = overlay.temporary_tables();
            if redefined {
                // What it was made over is not published any more.
                temporary.over = 0;
            }
        }
        if temporary.settled.is_empty() {
            (self.temporary, self.overlay) = (None, None);
        } else if !committed {
            let settled = temporary.settled.clone();
            self.put_over_published(&settled);
        }
    }

    /// Does what ON COMMIT asks for. An error: the transaction cannot commit.
    pub(super) fn apply_on_commit(&mut self) -> Result<()> {
        if self.temporary.is_none() {
            return Ok(());
        }
        let Some(overlay) = self.overlay.clone() else {
            return Ok(());
        };
        let mut state = None;
        for entry in overlay.temporary_tables() {
            let changed = || self.catalog.changed_copy(&overlay);
            match entry.on_commit {
                OnCommit::PreserveRows => {}
                OnCommit::Drop => {
                    let state = state.get_or_insert_with(changed);
                    for sequence in state.owned_sequences(entry.def.oid, None) {
                        state.remove(sequence.def.oid);
                        self.dropped.extend(sequence.relations().map(RelId));
                    }
                    remove_with_views(state, entry.def.oid);
                    self.dropped.extend(entry.relations().map(RelId));
                }
                OnCommit::DeleteRows => {
                    require_same_on_commit(state.as_ref().unwrap_or(&overlay), &entry)?;
                    let pages = self.storage.block_count(RelId(entry.rel()));
                    if pages.map_err(storage_error)? > 0 {
                        let mut kept = state.take().unwrap_or_else(changed);
                        kept.put(self.emptied(&entry)?);
                        self.count_truncation(entry.def.oid);
                        state = Some(kept);
                    }
                }
            }
        }
        if let Some(state) = state {
            self.overlay = Some(Arc::new(state));
        }
        Ok(())
    }

    /// The table with new relations for its rows, its long values and its indexes.
    fn emptied(&mut self, entry: &TableEntry) -> Result<TableEntry> {
        let mut table = (*entry.def).clone();
        self.dropped.push(RelId(entry.rel()));
        table.kind = TableKind::Heap {
            rel: self.new_relation()?.0,
        };
        if let Some(rel) = table.long_rel {
            self.dropped.push(RelId(rel));
            table.long_rel = Some(self.new_relation()?.0);
        }
        for index in &mut table.indexes {
            let rel = self.new_relation()?;
            BTree::create(&self.storage, rel).map_err(storage_error)?;
            self.dropped.push(RelId(index.rel));
            *index = Arc::new(IndexDef {
                rel: rel.0,
                ..(**index).clone()
            });
        }
        Ok(TableEntry {
            def: Arc::new(table),
            ..entry.clone()
        })
    }

    fn new_relation(&mut self) -> Result<RelId> {
        let rel = self.storage.create_temporary_rel().map_err(storage_error)?;
        self.created.push(rel);
        Ok(rel)
    }

    /// Removes all temporary tables, between transactions: at the end of the session, or because it asks for that.
    pub(crate) fn drop_temporary(&mut self) {
        let Some(temporary) = self.temporary.take() else {
            return;
        };
        self.overlay = None;
        for entry in temporary.settled {
            for rel in entry.relations() {
                self.unlink(RelId(rel));
            }
        }
    }
}

/// Removes a temporary table, and the views that read it or one another: they have no files.
fn remove_with_views(state: &mut CatalogState, table: u32) {
    let mut gone = vec![table];
    while let Some(oid) = gone.pop() {
        let views = state.views();
        let readers = views.iter().filter(|view| {
            let uses = view.def.view.iter().flat_map(|view| &view.uses);
            uses.into_iter().any(|used| used.table == oid)
        });
        gone.extend(readers.map(|view| view.def.oid));
        state.remove(oid);
    }
}

/// 0A000 for a table that loses its rows at the end of a transaction, and another one with a foreign key to it that keeps its
/// own.
fn require_same_on_commit(state: &CatalogState, entry: &TableEntry) -> Result<()> {
    let references = state.references_to(entry.def.oid);
    let keeps = references
        .iter()
        .find(|reference| reference.child.on_commit != OnCommit::DeleteRows);
    match keeps {
        None => Ok(()),
        Some(reference) => Err(EngineError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "unsupported ON COMMIT and foreign key combination",
        )
        .with_detail(format!(
            "Table \"{}\" references \"{}\", but they do not have the same ON COMMIT setting.",
            reference.child.def.name, entry.def.name
        ))),
    }
}
