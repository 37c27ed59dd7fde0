//! REINDEX: indexes with new trees, made of the rows that there are.
//!
//! The table is locked against readers too: their plans name the old tree, whose file goes with the commit. An index that a
//! statement has left unfinished is whole afterwards.

use std::sync::Arc;

use clearway_storage::RelId;

use crate::activity::Command;
use crate::definition::{DefinitionChange, ReadableBy, notice};
use crate::output::Notice;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::{Reindex, ReindexTarget};
use clearway_sql::{IndexDef, IndexStage, TableDef, TableKind};

impl DefinitionChange<'_, '_, '_> {
    /// One index of a table, or all.
    pub(super) fn reindex(&mut self, reindex: &Reindex) -> Result<()> {
        match &reindex.target {
            ReindexTarget::Index { table, index } => self.reindex_table(table, Some(*index), reindex.verbose),
            ReindexTarget::Table(table) => {
                let TableKind::Heap { .. } = table.kind else {
                    // A table of the system.
                    return Ok(());
                };
                if !self.execution.entry(table)?.def.has_indexes() {
                    let text = format!("table \"{}\" has no indexes to reindex", table.name);
                    self.outcome.notices.push(notice(SqlState::SUCCESS, text));
                }
                self.reindex_table(table, None, reindex.verbose)
            }
            ReindexTarget::Schema(_) | ReindexTarget::Database(_) | ReindexTarget::System(_) => Err(
                EngineError::internal("the indexes of several tables are one step"),
            ),
        }
    }

    fn reindex_table(&mut self, table: &TableDef, only: Option<u32>, verbose: bool) -> Result<()> {
        let _running = self
            .execution
            .interrupts
            .progress()
            .begin(Command::Reindex, table.oid);
        let entry = self.execution.entry(table)?;
        let mut table = (*entry.def).clone();
        let is_live = |index: &Arc<IndexDef>, stage: Option<IndexStage>| {
            stage != Some(IndexStage::Dead) && only.is_none_or(|only| only == index.oid)
        };
        let chosen = table.indexes_and_stages();
        let chosen: Vec<_> = chosen
            .filter(|(index, stage)| is_live(index, *stage))
            .map(|(index, _)| Arc::clone(index))
            .collect();
        if chosen.is_empty() {
            return match only {
                Some(_) => Err(EngineError::new(
                    SqlState::UNDEFINED_OBJECT,
                    "the index is dropped by another session",
                )),
                None => Ok(()),
            };
        }
        self.require_current_snapshot()?;
        let mut state = self.state()?;
        for old in chosen {
            let index = IndexDef {
                rel: self.create_tree(&table.schema)?,
                ..(*old).clone()
            };
            self.fill_index(&table, &index)?;
            self.execution.txn.note_dropped(RelId(old.rel));
            if verbose {
                self.outcome.notices.push(was_reindexed(&old.name));
            }
            let index = Arc::new(index);
            match table.indexes.iter().position(|other| other.oid == old.oid) {
                Some(place) => table.indexes[place] = index,
                None => {
                    table.unfinished.retain(|other| other.index.oid != old.oid);
                    table.indexes.push(index);
                }
            }
        }
        let schema = table.schema.clone();
        self.replace(&mut state, &entry, table, ReadableBy::NewSnapshots)?;
        self.keep(state, &schema);
        Ok(())
    }
}

/// The message of VERBOSE.
pub(crate) fn was_reindexed(name: &str) -> Notice {
    Notice::new(
        "INFO",
        SqlState::SUCCESS,
        format!("index \"{name}\" was reindexed"),
    )
}
