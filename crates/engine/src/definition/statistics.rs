//! Putting a table's statistics into its definition.

use std::sync::Arc;

use clearway_storage::RelId;

use crate::catalog::statistics::{self, KeptStatistics};
use crate::catalog::{Catalog, TableEntry};
use crate::definition::{DefinitionChange, Outcome, ReadableBy};
use crate::executor::Execution;
use clearway_sql::error::Result;
use clearway_sql::statistics::TableStatistics;

/// Keeps statistics with the definition of a table. The catalog and the table are locked.
pub(crate) fn set_statistics(
    execution: &mut Execution<'_>,
    catalog: &Catalog,
    entry: &TableEntry,
    found: TableStatistics,
) -> Result<()> {
    let mut outcome = Outcome::default();
    let mut change = DefinitionChange {
        execution,
        catalog,
        outcome: &mut outcome,
    };
    change.set_statistics(entry, found)
}

impl DefinitionChange<'_, '_, '_> {
    fn set_statistics(&mut self, entry: &TableEntry, found: TableStatistics) -> Result<()> {
        let mut state = self.state()?;
        let rel = self.create_rel(&entry.def.schema)?.0;
        statistics::write(&self.execution.txn.context(), rel, &found)?;
        if let Some(old) = &entry.statistics {
            self.execution.txn.note_dropped(RelId(old.rel));
        }
        let entry = TableEntry {
            statistics: Some(KeptStatistics {
                rel,
                of_table: Arc::new(found),
            }),
            ..entry.clone()
        };
        let table = (*entry.def).clone();
        self.replace(&mut state, &entry, table, ReadableBy::OlderSnapshots)?;
        self.keep(state, &entry.def.schema);
        Ok(())
    }
}
