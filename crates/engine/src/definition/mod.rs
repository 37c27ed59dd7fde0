//! Changing definitions.
//!
//! Every statement here, those about temporary tables apart (`transaction::temporary`), holds the catalog lock (rule 1 of
//! [`crate::catalog`]) and the table's own lock in the mode that [`locks`] tells, changes rows of the catalog heap and the
//! transaction's overlay, and leaves files to be unlinked to the transaction's end.

mod alter;
mod check;
mod column_storage;
mod comment;
mod composite;
pub(crate) mod concurrent_index;
mod default;
mod domain;
mod drop;
mod foreign_key;
mod generated;
mod grant;
mod index;
mod index_build;
mod index_validation;
mod kept_index;
mod key_using_index;
mod logged;
mod owned;
pub(crate) mod owner;
mod permission;
pub(crate) mod reindex;
mod rewrite;
mod role;
mod schema;
mod sequence;
mod statistics;
mod table;
mod table_mark;
mod table_schema;
mod typed_table;
mod user_type;
mod view;
mod view_names;
mod written_names;

use std::sync::Arc;

use clearway_storage::RelId;
use clearway_storage::btree::BTree;
use clearway_storage::heap::{Heap, Tid, UpdateOutcome};
use clearway_txn::{LockMode, Xid};

use crate::catalog::access::{Access, Kind};
use crate::catalog::stored::{self, Definition};
use crate::catalog::{CATALOG_REL, Catalog, CatalogState, FIRST_OID, TableEntry};
use crate::convert::storage_error;
use crate::executor::Execution;
use crate::output::Notice;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::{
    DefinitionStatement, NewForeignKey, OnCommit, ReindexTarget, TableAction, TableMark,
};
use clearway_sql::value::DataType;
use clearway_sql::{ColumnStorage, SchemaRef, TableDef, TableKind};
use drop::Dropped;
pub(crate) use statistics::set_statistics;
use written_names::require_lasting_table;

/// The outcome of a statement for the client, beside its tag.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) notices: Vec<Notice>,
    /// The rows that CREATE TABLE … AS has made.
    pub(crate) rows: Option<u64>,
    /// The foreign keys that must hold for the rows that there are, by number.
    pub(crate) to_validate: Vec<u32>,
    /// The schema that CREATE SCHEMA has made.
    pub(crate) schema: Option<NewSchema>,
}

/// A schema that has been made.
#[derive(Debug)]
pub(crate) struct NewSchema {
    pub(crate) name: String,
    /// True if it belongs to the role that runs the statement.
    pub(crate) is_own: bool,
}

/// The relation locks a statement takes before it runs: table numbers and modes.
pub(crate) fn locks(statement: &DefinitionStatement) -> Vec<(u32, LockMode)> {
    use LockMode::{AccessExclusive, Share, ShareUpdateExclusive};
    let only = |schema: &SchemaRef| locks_with(schema.is_temporary(), &[], AccessExclusive);
    let of = |tables: &[&Arc<TableDef>], mode: LockMode| {
        let temporary = tables.iter().all(|table| table.schema.is_temporary());
        let numbers: Vec<u32> = tables.iter().map(|table| table.oid).collect();
        locks_with(temporary && !tables.is_empty(), &numbers, mode)
    };
    let named = |found: &[(String, Option<Arc<TableDef>>)]| {
        let tables: Vec<&Arc<TableDef>> = found.iter().filter_map(|(_, table)| table.as_ref()).collect();
        of(&tables, AccessExclusive)
    };
    let shared = |view: Option<&Arc<TableDef>>| {
        let numbers: Vec<u32> = view.iter().map(|view| view.oid).collect();
        locks_with(false, &numbers, AccessExclusive)
    };
    match statement {
        DefinitionStatement::CreateTable(create) => {
            let mut locks = only(&create.schema);
            locks.extend(parent_locks(create.foreign_keys.iter(), None));
            locks
        }
        DefinitionStatement::CreateTableAs(create) => only(&create.create.schema),
        // What is commented on cannot go: that needs the catalog lock too.
        DefinitionStatement::CreateSchema { .. }
        | DefinitionStatement::RenameSchema { .. }
        | DefinitionStatement::SchemaOwner { .. }
        | DefinitionStatement::DropSchema { .. }
        | DefinitionStatement::Role(_)
        | DefinitionStatement::Grant(_)
        | DefinitionStatement::Comment(_) => locks_with(false, &[], AccessExclusive),
        DefinitionStatement::Type(statement) => {
            let typed = statement
                .of_tables()
                .iter()
                .filter_map(|alter| alter.table.as_ref());
            let numbers: Vec<u32> = typed.map(|table| table.oid).collect();
            locks_with(false, &numbers, AccessExclusive)
        }
        DefinitionStatement::CreateView(create) => shared(create.replaced.as_ref()),
        DefinitionStatement::AlterView(alter) => shared(alter.view.as_ref()),
        DefinitionStatement::DropView { views, .. } => named(views),
        DefinitionStatement::DropTable { tables, .. } => named(tables),
        DefinitionStatement::CreateSequence(create) => match &create.owner {
            None => only(&create.schema),
            Some(owner) => of(&[&owner.table], ShareUpdateExclusive),
        },
        DefinitionStatement::AlterSequence(alter) => {
            let sequence: Vec<_> = alter.sequence.iter().collect();
            of(&sequence, AccessExclusive)
        }
        DefinitionStatement::DropSequence { sequences, .. } => named(sequences),
        // Steps of several transactions: the first one adds or hides the index beside those that write.
        DefinitionStatement::DropIndex {
            indexes,
            concurrently: true,
            ..
        } => match indexes.first().and_then(|(_, table)| table.as_ref()) {
            Some(table) if table.schema.is_temporary() => named(indexes),
            Some(table) => of(&[table], ShareUpdateExclusive),
            None => Vec::new(),
        },
        DefinitionStatement::DropIndex { indexes, .. } => named(indexes),
        DefinitionStatement::Reindex(reindex) => match &reindex.target {
            ReindexTarget::Index { table, .. } | ReindexTarget::Table(table)
                if matches!(table.kind, TableKind::Heap { .. }) =>
            {
                match reindex.concurrently && !table.schema.is_temporary() {
                    true => of(&[table], ShareUpdateExclusive),
                    false => of(&[table], AccessExclusive),
                }
            }
            // A transaction for each table.
            _ => Vec::new(),
        },
        DefinitionStatement::Truncate { tables, cascaded, .. } => of(
            &tables.iter().chain(cascaded).collect::<Vec<_>>(),
            AccessExclusive,
        ),
        DefinitionStatement::CreateIndex(create) => {
            let concurrently = create.concurrently && !create.table.schema.is_temporary();
            of(
                &[&create.table],
                if concurrently { ShareUpdateExclusive } else { Share },
            )
        }
        DefinitionStatement::AlterTable(alter) => {
            let mut locks = of(
                &alter.table.iter().collect::<Vec<_>>(),
                alter_mode(&alter.actions),
            );
            let keys = alter.actions.iter().flat_map(TableAction::foreign_keys);
            locks.extend(parent_locks(keys, alter.table.as_deref()));
            locks
        }
        DefinitionStatement::SetParameters { table, .. } => of(&[table], ShareUpdateExclusive),
    }
}

/// The lock of the table that these actions of ALTER TABLE change: the strongest that one of them needs.
///
/// Foreign keys concern no reader. One that is being validated is enforced already: its rows may change meanwhile, as each
/// change is looked at by itself.
fn alter_mode(actions: &[TableAction]) -> LockMode {
    let modes = actions.iter().map(|action| match action {
        TableAction::ValidateConstraint(_)
        | TableAction::SetParameters(_)
        | TableAction::RenameIndex { .. }
        | TableAction::Mark(
            TableMark::Cluster(_) | TableMark::Statistics { .. } | TableMark::IndexStatistics { .. },
        ) => LockMode::ShareUpdateExclusive,
        TableAction::AddForeignKey(_) => LockMode::ShareRowExclusive,
        _ => LockMode::AccessExclusive,
    });
    modes.max().unwrap_or(LockMode::AccessExclusive)
}

/// The locks of the tables that new foreign keys of a table name rows of: no row of them changes until the keys are there.
fn parent_locks<'k>(
    keys: impl Iterator<Item = &'k NewForeignKey>,
    table: Option<&TableDef>,
) -> Vec<(u32, LockMode)> {
    let parents = keys.filter_map(|key| key.parent.as_deref());
    let others = parents.filter(|parent| {
        parent.kind != TableKind::Virtual && table.is_none_or(|table| table.oid != parent.oid)
    });
    let mut numbers: Vec<u32> = others.map(|parent| parent.oid).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let locks = numbers.into_iter();
    locks.map(|oid| (oid, LockMode::ShareRowExclusive)).collect()
}

/// The catalog lock, which temporary tables do without, and the tables' in the order of their numbers.
fn locks_with(temporary: bool, tables: &[u32], mode: LockMode) -> Vec<(u32, LockMode)> {
    let mut numbers = tables.to_vec();
    numbers.sort_unstable();
    let catalog = (!temporary).then_some((CATALOG_REL, LockMode::ShareRowExclusive));
    let tables = numbers.into_iter().map(|oid| (oid, mode));
    catalog.into_iter().chain(tables).collect()
}

/// 42501 unless the role that acts may run the statement.
pub(crate) fn check_permission(
    execution: &mut Execution<'_>,
    catalog: &Catalog,
    statement: &DefinitionStatement,
) -> Result<()> {
    let mut outcome = Outcome::default();
    let change = DefinitionChange {
        execution,
        catalog,
        outcome: &mut outcome,
    };
    change.check_permission(statement)
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
    change.check_permission(statement)?;
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
        DefinitionStatement::CreateSequence(create) => change.create_sequence(create)?,
        DefinitionStatement::AlterSequence(alter) => change.alter_sequence(alter)?,
        DefinitionStatement::DropSequence {
            sequences,
            if_exists,
            cascade,
        } => change.drop_relations(Dropped::Sequence, sequences, *if_exists, *cascade)?,
        DefinitionStatement::Truncate {
            tables,
            cascaded,
            restart_identity,
        } => {
            change.require_truncatable(tables, cascaded)?;
            for table in tables.iter().chain(cascaded) {
                change.truncate(table, *restart_identity)?;
            }
        }
        DefinitionStatement::CreateIndex(create) => change.create_index(create)?,
        DefinitionStatement::DropIndex {
            indexes, if_exists, ..
        } => {
            for (name, def) in indexes {
                change.drop_index(name, def.as_deref(), *if_exists)?;
            }
        }
        DefinitionStatement::Reindex(reindex) => change.reindex(reindex)?,
        DefinitionStatement::AlterTable(alter) => change.alter_table(alter)?,
        DefinitionStatement::CreateSchema {
            name,
            owner,
            if_not_exists,
            elements: _,
        } => change.create_schema(name.as_deref(), owner.as_ref(), *if_not_exists)?,
        DefinitionStatement::RenameSchema { name, to } => change.rename_schema(name, to)?,
        DefinitionStatement::SchemaOwner { name, owner } => change.schema_owner(name, owner)?,
        DefinitionStatement::DropSchema {
            names,
            if_exists,
            cascade,
        } => change.drop_schemas(names, *if_exists, *cascade)?,
        DefinitionStatement::SetParameters { table, changes } => change.set_parameters(table, changes)?,
        DefinitionStatement::Comment(comment) => change.comment(comment)?,
        DefinitionStatement::Role(statement) => change.role_statement(statement)?,
        DefinitionStatement::Grant(grant) => change.grant(grant)?,
        DefinitionStatement::Type(statement) => change.type_statement(statement)?,
    }
    Ok(outcome)
}

/// The snapshots that can read a table by its changed definition (rule 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadableBy {
    /// Those that see the change.
    NewSnapshots,
    /// Those that see this transaction.
    SnapshotsThatSee(Xid),
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
        // The newest: the session's overlay may be older.
        self.execution.txn.catalog_version();
        Ok(self.catalog.changed_copy(&self.execution.txn.catalog_state()))
    }

    /// The transaction sees this state from now on, in which a relation of `schema` has changed.
    fn keep(&mut self, state: CatalogState, schema: &SchemaRef) {
        match schema.is_temporary() {
            true => self.execution.txn.set_temporary_state(state),
            false => self.execution.txn.set_catalog_state(state),
        }
    }

    /// A fresh relation for something of this schema.
    fn create_rel(&mut self, schema: &SchemaRef) -> Result<RelId> {
        let storage = self.execution.storage;
        let rel = match schema.is_temporary() {
            true => storage.create_temporary_rel(),
            false => storage.create_rel(),
        }
        .map_err(storage_error)?;
        self.execution.txn.note_created(rel);
        Ok(rel)
    }

    /// The number of an object that has no file: that of a relation which this transaction makes and drops, so that nothing
    /// else gets it.
    fn fresh_number(&mut self) -> Result<u32> {
        let rel = self
            .execution
            .storage
            .create_temporary_rel()
            .map_err(storage_error)?;
        self.execution.txn.note_created(rel);
        self.execution.txn.note_dropped(rel);
        Ok(FIRST_OID + rel.0)
    }

    /// Makes the relation of a table's long values, if it has a column for them and no relation yet.
    fn add_long_rel(&mut self, table: &mut TableDef) -> Result<()> {
        let goes_apart = |column: u16| table.columns[usize::from(column)].storage() != ColumnStorage::Plain;
        let is_wanted =
            matches!(table.kind, TableKind::Heap { .. }) && table.codec.varying_columns().any(goes_apart);
        if is_wanted && table.long_rel.is_none() {
            table.long_rel = Some(self.create_rel(&table.schema)?.0);
        }
        Ok(())
    }

    /// Gives a table whose rows are written anew a new relation for its long values.
    fn replace_long_rel(&mut self, table: &mut TableDef) -> Result<()> {
        if let Some(rel) = table.long_rel.take() {
            self.execution.txn.note_dropped(RelId(rel));
        }
        self.add_long_rel(table)
    }

    /// Adds a relation with this definition: its entry, and its row unless it is temporary.
    fn add(
        &mut self,
        state: &mut CatalogState,
        mut table: TableDef,
        on_commit: OnCommit,
    ) -> Result<Arc<TableDef>> {
        self.add_long_rel(&mut table)?;
        let sequence = table
            .sequence
            .as_ref()
            .map(|sequence| self.catalog.sequence(sequence.rel));
        let owner = self.execution.identity.current;
        let kind = match table.sequence {
            Some(_) => Kind::Sequence,
            None => Kind::Table,
        };
        let access = Access {
            acl: state.acl_of_new(kind, owner, table.schema.oid),
            ..Access::of(owner)
        };
        let mut entry = TableEntry {
            def: Arc::new(table),
            tid: Tid { block: 0, slot: 0 },
            changed_by: self.execution.txn.assign_xid()?,
            runtime: Arc::default(),
            sequence,
            statistics: None,
            on_commit,
            access: Arc::new(access),
        };
        if !entry.def.schema.is_temporary() {
            require_lasting_table(state, &entry.def)?;
            let bytes = stored::encode(&definition(&entry))?;
            let context = self.execution.txn.context();
            entry.tid = Heap::new(CATALOG_REL)
                .insert(&context, &bytes)
                .map_err(storage_error)?;
        }
        let table = Arc::clone(&entry.def);
        state.put(entry);
        Ok(table)
    }

    /// A fresh relation with an empty tree, for a table of this schema.
    fn create_tree(&mut self, schema: &SchemaRef) -> Result<u32> {
        let rel = self.create_rel(schema)?;
        BTree::create(self.execution.storage, rel).map_err(storage_error)?;
        Ok(rel.0)
    }

    /// Puts a changed definition into the catalog heap and the state.
    fn replace(
        &mut self,
        state: &mut CatalogState,
        old: &TableEntry,
        mut table: TableDef,
        readable: ReadableBy,
    ) -> Result<()> {
        self.add_long_rel(&mut table)?;
        let changed_by = match readable {
            ReadableBy::OlderSnapshots => old.changed_by,
            ReadableBy::SnapshotsThatSee(xid) => xid,
            ReadableBy::NewSnapshots => self.execution.txn.assign_xid()?,
        };
        let sequence = table
            .sequence
            .as_ref()
            .map(|sequence| self.catalog.sequence(sequence.rel));
        let mut entry = TableEntry {
            def: Arc::new(table),
            tid: old.tid,
            changed_by,
            runtime: Arc::clone(&old.runtime),
            sequence,
            statistics: old.statistics.clone(),
            on_commit: old.on_commit,
            access: Arc::clone(&old.access),
        };
        if entry.def.schema.is_temporary() {
            state.put(entry);
            return Ok(());
        }
        require_lasting_table(state, &entry.def)?;
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

impl DefinitionChange<'_, '_, '_> {
    /// True if a relation of this name can be made; if there is one, 42P07, or a notice where that is no error.
    fn may_make(
        &mut self,
        state: &CatalogState,
        schema: u32,
        name: &str,
        if_not_exists: bool,
    ) -> Result<bool> {
        if !state.is_taken(schema, name) {
            if let Some(DataType::Composite(_)) = state.type_in(schema, name) {
                return Err(already_exists(name));
            }
            if state.type_in(schema, name).is_some() {
                return Err(user_type::type_exists(name).with_hint(
                    "A relation has an associated type of the same name, so you must use a name that doesn't \
                     conflict with any existing type.",
                ));
            }
            return Ok(true);
        }
        if !if_not_exists {
            return Err(already_exists(name));
        }
        let text = format!("relation \"{name}\" already exists, skipping");
        self.outcome.notices.push(notice(SqlState::DUPLICATE_TABLE, text));
        Ok(false)
    }
}

fn notice(sqlstate: SqlState, message: String) -> Notice {
    Notice::new("NOTICE", sqlstate, message)
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
        statistics: entry.statistics.as_ref().map(|kept| kept.rel),
        access: Arc::clone(&entry.access),
    }
}
