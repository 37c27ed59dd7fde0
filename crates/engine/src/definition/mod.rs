//! Changing definitions.
//!
//! Every statement here holds the catalog lock (rule 1 of [`crate::catalog`]) and the table's own lock in the
//! mode that [`locks`] tells, changes rows of the catalog heap and the transaction's overlay, and leaves
//! files to be unlinked to the transaction's end.

mod comment;
mod drop;
mod index;
mod index_build;
mod schema;
mod statistics;
mod table;
mod view;

use std::sync::Arc;

use clearway_storage::RelId;
use clearway_storage::btree::BTree;
use clearway_storage::heap::{Heap, UpdateOutcome};
use clearway_txn::LockMode;

use crate::catalog::sequence::Sequence;
use crate::catalog::stored::{self, Definition};
use crate::catalog::{CATALOG_REL, Catalog, CatalogState, FIRST_OID, TableEntry};
use crate::convert::storage_error;
use crate::executor::Execution;
use crate::output::Notice;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::{DefinitionStatement, IndexSpec};
use clearway_sql::{IndexDef, TableDef};
use drop::Dropped;
pub(crate) use statistics::set_statistics;

/// The outcome of a statement for the client, beside its tag.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) notices: Vec<Notice>,
    /// The rows that CREATE TABLE … AS has made.
    pub(crate) rows: Option<u64>,
}

/// The relation locks a statement takes before it runs: table numbers and modes.
pub(crate) fn locks(statement: &DefinitionStatement) -> Vec<(u32, LockMode)> {
    let catalog = (CATALOG_REL, LockMode::ShareRowExclusive);
    let with = |tables: &mut dyn Iterator<Item = u32>, mode: LockMode| {
        let mut oids: Vec<u32> = tables.collect();
        oids.sort_unstable();
        let mut all = vec![catalog];
        all.extend(oids.into_iter().map(|oid| (oid, mode)));
        all
    };
    match statement {
        // What is commented on cannot go: that needs the catalog lock too.
        DefinitionStatement::CreateTable(_)
        | DefinitionStatement::CreateTableAs(_)
        | DefinitionStatement::CreateSchema { .. }
        | DefinitionStatement::RenameSchema { .. }
        | DefinitionStatement::SchemaOwner { .. }
        | DefinitionStatement::DropSchema { .. }
        | DefinitionStatement::Comment(_) => vec![catalog],
        DefinitionStatement::CreateView(create) => with(
            &mut create.replaced.iter().map(|view| view.oid),
            LockMode::AccessExclusive,
        ),
        DefinitionStatement::AlterView(alter) => with(
            &mut alter.view.iter().map(|view| view.oid),
            LockMode::AccessExclusive,
        ),
        DefinitionStatement::DropView { views, .. } => with(
            &mut views.iter().filter_map(|(_, def)| Some(def.as_ref()?.oid)),
            LockMode::AccessExclusive,
        ),
        DefinitionStatement::DropTable { tables, .. } => with(
            &mut tables.iter().filter_map(|(_, def)| Some(def.as_ref()?.oid)),
            LockMode::AccessExclusive,
        ),
        DefinitionStatement::DropIndex { indexes, .. } => with(
            &mut indexes.iter().filter_map(|(_, def)| Some(def.as_ref()?.oid)),
            LockMode::AccessExclusive,
        ),
        DefinitionStatement::Truncate { tables, .. } => {
            with(&mut tables.iter().map(|def| def.oid), LockMode::AccessExclusive)
        }
        DefinitionStatement::CreateIndex(create) => {
            with(&mut std::iter::once(create.table.oid), LockMode::Share)
        }
        DefinitionStatement::AddConstraint(create) => {
            with(&mut std::iter::once(create.table.oid), LockMode::AccessExclusive)
        }
        DefinitionStatement::DropConstraint { table, .. } => {
            with(&mut std::iter::once(table.oid), LockMode::AccessExclusive)
        }
        DefinitionStatement::SetFillfactor { table, .. } => {
            with(&mut std::iter::once(table.oid), LockMode::ShareUpdateExclusive)
        }
    }
}

/// Runs a statement that changes definitions.
pub(crate) fn run(
    execution: &mut Execution<'_>,
    catalog: &Catalog,
    statement: &DefinitionStatement,
) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut change = DefinitionChange {
        execution,
        catalog,
        outcome: &mut outcome,
    };
    match statement {
        DefinitionStatement::CreateTable(create) => {
            change.create_table(create)?;
        }
        DefinitionStatement::CreateTableAs(create) => change.create_table_as(create)?,
        DefinitionStatement::DropTable {
            tables,
            if_exists,
            cascade,
        } => change.drop_relations(Dropped::Table, tables, *if_exists, *cascade)?,
        DefinitionStatement::CreateView(create) => change.create_view(create)?,
        DefinitionStatement::AlterView(alter) => change.alter_view(alter)?,
        DefinitionStatement::DropView {
            views,
            if_exists,
            cascade,
        } => change.drop_relations(Dropped::View, views, *if_exists, *cascade)?,
        DefinitionStatement::Truncate {
            tables,
            restart_identity,
        } => {
            for table in tables {
                change.truncate(table, *restart_identity)?;
            }
        }
        DefinitionStatement::CreateIndex(create) | DefinitionStatement::AddConstraint(create) => {
            change.create_index(create)?
        }
        DefinitionStatement::DropIndex {
            indexes, if_exists, ..
        } => {
            for (name, def) in indexes {
                change.drop_index(name, def.as_deref(), *if_exists)?;
            }
        }
        DefinitionStatement::DropConstraint {
            table,
            name,
            if_exists,
            cascade,
        } => change.drop_constraint(table, name, *if_exists, *cascade)?,
        DefinitionStatement::CreateSchema {
            name,
            owner,
            if_not_exists,
        } => change.create_schema(name.as_deref(), owner.as_ref(), *if_not_exists)?,
        DefinitionStatement::RenameSchema { name, to } => change.rename_schema(name, to)?,
        DefinitionStatement::SchemaOwner { name, owner } => change.schema_owner(name, owner)?,
        DefinitionStatement::DropSchema {
            names,
            if_exists,
            cascade,
        } => change.drop_schemas(names, *if_exists, *cascade)?,
        DefinitionStatement::SetFillfactor { table, fillfactor } => {
            change.set_fillfactor(table, *fillfactor)?
        }
        DefinitionStatement::Comment(comment) => change.comment(comment)?,
    }
    Ok(outcome)
}

/// The snapshots that can read a table by its changed definition (rule 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadableBy {
    /// Those that see the change.
    NewSnapshots,
    /// Older ones as well.
    OlderSnapshots,
}

struct DefinitionChange<'e, 'x, 'c> {
    execution: &'e mut Execution<'x>,
    catalog: &'c Catalog,
    outcome: &'c mut Outcome,
}

impl DefinitionChange<'_, '_, '_> {
    /// A copy of the transaction's catalog to change.
    fn state(&mut self) -> Result<CatalogState> {
        self.execution.txn.assign_xid()?;
        Ok(self.catalog.changed_copy(&self.execution.txn.catalog_state()))
    }

    fn create_rel(&mut self) -> Result<RelId> {
        let rel = self.execution.storage.create_rel().map_err(storage_error)?;
        self.execution.txn.note_created(rel);
        Ok(rel)
    }

    /// A fresh relation with an empty tree.
    fn create_tree(&mut self) -> Result<u32> {
        let rel = self.create_rel()?;
        BTree::create(self.execution.storage, rel).map_err(storage_error)?;
        Ok(rel.0)
    }

    /// Puts a changed definition into the catalog heap and the state.
    fn replace(
        &mut self,
        state: &mut CatalogState,
        old: &TableEntry,
        table: TableDef,
        sequences: Vec<Option<Arc<Sequence>>>,
        readable: ReadableBy,
    ) -> Result<()> {
        let changed_by = match readable {
            ReadableBy::OlderSnapshots => old.changed_by,
            ReadableBy::NewSnapshots => self.execution.txn.assign_xid()?,
        };
        let mut entry = TableEntry {
            def: Arc::new(table),
            tid: old.tid,
            changed_by,
            runtime: Arc::clone(&old.runtime),
            sequences,
            statistics: old.statistics.clone(),
        };
        let bytes = stored::encode(&definition(&entry))?;
        let context = self.execution.txn.context();
        match Heap::new(CATALOG_REL)
            .update(&context, old.tid, &bytes, false)
            .map_err(storage_error)?
        {
            UpdateOutcome::Updated { tid, .. } => entry.tid = tid,
            _ => return Err(raced(&old.def.name)),
        }
        // A later step of the same statement may change the row again.
        self.execution.txn.next_command();
        state.put(entry);
        Ok(())
    }
}

fn notice(sqlstate: SqlState, message: String) -> Notice {
    Notice {
        severity: "NOTICE",
        sqlstate,
        message,
        detail: None,
    }
}

fn already_exists(name: &str) -> EngineError {
    EngineError::new(
        SqlState::DUPLICATE_TABLE,
        format!("relation \"{name}\" already exists"),
    )
}

/// The catalog lock should make this impossible.
fn raced(name: &str) -> EngineError {
    EngineError::internal(format!(
        "the definition of \"{name}\" was changed under the catalog lock"
    ))
}

fn definition(entry: &TableEntry) -> Definition {
    Definition {
        table: Arc::clone(&entry.def),
        sequences: entry
            .sequences
            .iter()
            .map(|sequence| sequence.as_ref().map(|s| s.rel()))
            .collect(),
        statistics: entry.statistics.as_ref().map(|kept| kept.rel),
    }
}

fn index_def(spec: &IndexSpec, rel: u32, table: &TableDef) -> IndexDef {
    IndexDef {
        oid: FIRST_OID + rel,
        name: spec.name.clone(),
        rel,
        unique: spec.unique,
        primary: spec.primary,
        constraint: spec.constraint,
        columns: spec.columns.clone(),
        types: spec
            .columns
            .iter()
            .map(|column| table.columns[usize::from(*column)].data_type)
            .collect(),
    }
}
