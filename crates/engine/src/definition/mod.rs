//! Changing definitions.
//!
//! Every statement here holds the catalog lock (rule 1 of [`crate::catalog`]) and the table's own lock in the
//! mode that [`locks`] tells, changes rows of the catalog heap and the transaction's overlay, and leaves
//! files to be unlinked to the transaction's end.

mod index_build;

use std::sync::Arc;

use clearway_storage::RelId;
use clearway_storage::btree::BTree;
use clearway_storage::heap::{DeleteOutcome, Heap, Tid, UpdateOutcome};
use clearway_txn::LockMode;

use crate::catalog::sequence::Sequence;
use crate::catalog::stored::{self, Definition};
use crate::catalog::{CATALOG_REL, Catalog, CatalogState, FIRST_OID, TableEntry};
use crate::convert::storage_error;
use crate::error::{EngineError, Result, SqlState};
use crate::executor::Execution;
use crate::output::Notice;
use crate::sql::plan::{CreateIndex, CreateTable, DefinitionStatement, IndexSpec};
use crate::sql::{ColumnDefault, IndexDef, TableDef, TableKind};

/// What a DDL statement has to say.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) notices: Vec<Notice>,
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
        DefinitionStatement::CreateTable(_) => vec![catalog],
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
    let mut ddl = Ddl {
        execution,
        catalog,
        outcome: &mut outcome,
    };
    match statement {
        DefinitionStatement::CreateTable(create) => ddl.create_table(create)?,
        DefinitionStatement::DropTable { tables, if_exists } => {
            for (name, def) in tables {
                ddl.drop_table(name, def.as_deref(), *if_exists)?;
            }
        }
        DefinitionStatement::Truncate {
            tables,
            restart_identity,
        } => {
            for table in tables {
                ddl.truncate(table, *restart_identity)?;
            }
        }
        DefinitionStatement::CreateIndex(create) | DefinitionStatement::AddConstraint(create) => {
            ddl.create_index(create)?
        }
        DefinitionStatement::DropIndex {
            indexes, if_exists, ..
        } => {
            for (name, def) in indexes {
                ddl.drop_index(name, def.as_deref(), *if_exists)?;
            }
        }
        DefinitionStatement::DropConstraint {
            table,
            name,
            if_exists,
        } => ddl.drop_constraint(table, name, *if_exists)?,
        DefinitionStatement::SetFillfactor { table, fillfactor } => ddl.set_fillfactor(table, *fillfactor)?,
    }
    Ok(outcome)
}

/// Which snapshots can read a table by its changed definition (rule 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadableBy {
    /// Those that see the change.
    NewSnapshots,
    /// Older ones as well.
    OlderSnapshots,
}

struct Ddl<'e, 'x, 'c> {
    execution: &'e mut Execution<'x>,
    catalog: &'c Catalog,
    outcome: &'c mut Outcome,
}

impl Ddl<'_, '_, '_> {
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

    fn create_table(&mut self, create: &CreateTable) -> Result<()> {
        let mut state = self.state()?;
        if state.is_taken(&create.name) {
            if create.if_not_exists {
                let text = format!("relation \"{}\" already exists, skipping", create.name);
                self.outcome.notices.push(notice(SqlState::DUPLICATE_TABLE, text));
                return Ok(());
            }
            return Err(already_exists(&create.name));
        }
        let rel = self.create_rel()?;
        let kind = TableKind::Heap { rel: rel.0 };
        let mut table = TableDef::new(
            FIRST_OID + rel.0,
            create.name.clone(),
            kind,
            create.columns.clone(),
        );
        table.fillfactor = create.fillfactor;
        // This lock never waits: the relation is new. It keeps other sessions away between the commit's
        // publishing and its end.
        let (interrupts, timeout) = (self.execution.interrupts, self.execution.lock_timeout);
        self.execution
            .txn
            .lock_relation(table.oid, LockMode::AccessExclusive, interrupts, timeout)?;
        let mut sequences = Vec::with_capacity(table.columns.len());
        for column in &table.columns {
            sequences.push(match column.default {
                Some(ColumnDefault::Serial) => {
                    let rel = self.create_rel()?;
                    Sequence::create(self.execution.storage, rel)?;
                    Some(self.catalog.sequence(rel.0))
                }
                _ => None,
            });
        }
        for spec in &create.indexes {
            if state.is_taken(&spec.name) || table.indexes.iter().any(|index| index.name == spec.name) {
                return Err(already_exists(&spec.name));
            }
            let rel = self.create_tree()?;
            table.indexes.push(Arc::new(index_def(spec, rel, &table)));
        }
        let mut entry = TableEntry {
            def: Arc::new(table),
            tid: Tid { block: 0, slot: 0 },
            changed_by: self.execution.txn.assign_xid()?,
            runtime: Arc::default(),
            sequences,
        };
        let bytes = stored::encode(&definition(&entry))?;
        let context = self.execution.txn.context();
        entry.tid = Heap::new(CATALOG_REL)
            .insert(&context, &bytes)
            .map_err(storage_error)?;
        state.put(entry);
        self.execution.txn.set_catalog_state(state);
        Ok(())
    }

    fn drop_table(&mut self, name: &str, def: Option<&TableDef>, if_exists: bool) -> Result<()> {
        let Some(def) = def else {
            if !if_exists {
                return Err(EngineError::new(
                    SqlState::UNDEFINED_TABLE,
                    format!("table \"{name}\" does not exist"),
                ));
            }
            let text = format!("table \"{name}\" does not exist, skipping");
            self.outcome.notices.push(notice(SqlState::SUCCESS, text));
            return Ok(());
        };
        let mut state = self.state()?;
        let entry = self.execution.entry(def)?;
        self.delete_row(&entry)?;
        for rel in entry.relations() {
            self.execution.txn.note_dropped(RelId(rel));
        }
        state.remove(def.oid);
        self.execution.txn.set_catalog_state(state);
        Ok(())
    }

    fn truncate(&mut self, def: &TableDef, restart_identity: bool) -> Result<()> {
        let mut state = self.state()?;
        let entry = self.execution.entry(def)?;
        let mut table = (*entry.def).clone();
        let rel = self.create_rel()?;
        self.execution.txn.note_dropped(RelId(entry.rel()));
        table.kind = TableKind::Heap { rel: rel.0 };
        for index in &mut table.indexes {
            let rel = self.create_tree()?;
            self.execution.txn.note_dropped(RelId(index.rel));
            *index = Arc::new(IndexDef {
                rel,
                ..(**index).clone()
            });
        }
        let mut sequences = entry.sequences.clone();
        if restart_identity {
            for sequence in sequences.iter_mut().flatten() {
                let rel = self.create_rel()?;
                Sequence::create(self.execution.storage, rel)?;
                self.execution.txn.note_dropped(RelId(sequence.rel()));
                *sequence = self.catalog.sequence(rel.0);
            }
        }
        self.execution.txn.count_truncation(def.oid);
        self.replace(&mut state, &entry, table, sequences, ReadableBy::NewSnapshots)?;
        self.execution.txn.set_catalog_state(state);
        Ok(())
    }

    fn create_index(&mut self, create: &CreateIndex) -> Result<()> {
        let mut state = self.state()?;
        let spec = &create.index;
        if state.is_taken(&spec.name) {
            if create.if_not_exists {
                let text = format!("relation \"{}\" already exists, skipping", spec.name);
                self.outcome.notices.push(notice(SqlState::DUPLICATE_TABLE, text));
                return Ok(());
            }
            return Err(already_exists(&spec.name));
        }
        let entry = self.execution.entry(&create.table)?;
        let mut table = (*entry.def).clone();
        if spec.primary {
            if table.primary_key().is_some() {
                return Err(EngineError::new(
                    SqlState::INVALID_TABLE_DEFINITION,
                    format!(
                        "multiple primary keys for table \"{}\" are not allowed",
                        table.name
                    ),
                ));
            }
            for column in &spec.columns {
                table.columns[usize::from(*column)].not_null = true;
            }
        }
        if !self.execution.txn.snapshot_is_current() {
            return Err(EngineError::new(
                SqlState::SERIALIZATION_FAILURE,
                "could not serialize access: an index cannot lead to rows as this transaction's snapshot sees them",
            ));
        }
        let rel = self.create_tree()?;
        let index = index_def(spec, rel, &table);
        let spill = self.execution.spill.with_bytes(self.execution.maintenance_bytes);
        self.execution.txn.with_fresh_snapshot(|txn| {
            index_build::build(
                self.execution.storage,
                txn,
                self.execution.interrupts,
                &spill,
                &table,
                &index,
            )
        })?;
        table.indexes.push(Arc::new(index));
        self.replace(
            &mut state,
            &entry,
            table,
            entry.sequences.clone(),
            ReadableBy::NewSnapshots,
        )?;
        self.execution.txn.set_catalog_state(state);
        Ok(())
    }

    fn drop_index(&mut self, name: &str, def: Option<&TableDef>, if_exists: bool) -> Result<()> {
        let Some(def) = def else {
            if !if_exists {
                return Err(EngineError::new(
                    SqlState::UNDEFINED_OBJECT,
                    format!("index \"{name}\" does not exist"),
                ));
            }
            let text = format!("index \"{name}\" does not exist, skipping");
            self.outcome.notices.push(notice(SqlState::SUCCESS, text));
            return Ok(());
        };
        let entry = self.execution.entry(def)?;
        let Some(at) = entry.def.indexes.iter().position(|index| index.name == name) else {
            return Err(EngineError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("index \"{name}\" does not exist"),
            ));
        };
        if entry.def.indexes[at].constraint {
            let table = &entry.def.name;
            return Err(EngineError::new(
                SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
                format!("cannot drop index {name} because constraint {name} on table {table} requires it"),
            )
            .with_hint(format!(
                "You can drop constraint {name} on table {table} instead."
            )));
        }
        self.remove_index(&entry, at)
    }

    /// A constraint is its index. The columns of a primary key stay NOT NULL.
    fn drop_constraint(&mut self, def: &TableDef, name: &str, if_exists: bool) -> Result<()> {
        let entry = self.execution.entry(def)?;
        let found = |index: &Arc<IndexDef>| index.constraint && index.name == name;
        if let Some(at) = entry.def.indexes.iter().position(found) {
            return self.remove_index(&entry, at);
        }
        let text = format!(
            "constraint \"{name}\" of relation \"{}\" does not exist",
            def.name
        );
        if !if_exists {
            return Err(EngineError::new(SqlState::UNDEFINED_OBJECT, text));
        }
        self.outcome
            .notices
            .push(notice(SqlState::SUCCESS, format!("{text}, skipping")));
        Ok(())
    }

    fn remove_index(&mut self, entry: &TableEntry, at: usize) -> Result<()> {
        let mut state = self.state()?;
        let mut table = (*entry.def).clone();
        let index = table.indexes.remove(at);
        self.execution.txn.note_dropped(RelId(index.rel));
        self.replace(
            &mut state,
            entry,
            table,
            entry.sequences.clone(),
            ReadableBy::OlderSnapshots,
        )?;
        self.execution.txn.set_catalog_state(state);
        Ok(())
    }

    fn set_fillfactor(&mut self, def: &TableDef, fillfactor: u8) -> Result<()> {
        let mut state = self.state()?;
        let entry = self.execution.entry(def)?;
        let mut table = (*entry.def).clone();
        table.fillfactor = fillfactor;
        self.replace(
            &mut state,
            &entry,
            table,
            entry.sequences.clone(),
            ReadableBy::OlderSnapshots,
        )?;
        self.execution.txn.set_catalog_state(state);
        Ok(())
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

    fn delete_row(&mut self, entry: &TableEntry) -> Result<()> {
        let context = self.execution.txn.context();
        match Heap::new(CATALOG_REL)
            .delete(&context, entry.tid)
            .map_err(storage_error)?
        {
            DeleteOutcome::Deleted => Ok(()),
            _ => Err(raced(&entry.def.name)),
        }
    }
}

fn notice(sqlstate: SqlState, message: String) -> Notice {
    Notice {
        severity: "NOTICE",
        sqlstate,
        message,
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
