//! The catalog: the definitions of tables.
//!
//! # Where definitions live
//!
//! Relation 1 is a heap whose rows are table definitions (see [`stored`]), written by the same code that writes user
//! rows and visible by the same rules. So DDL is transactional for free: `BEGIN; DROP TABLE t; ROLLBACK` keeps `t`,
//! a crash in the middle leaves what was committed, and nothing but the log needs to be replayed.
//!
//! # How they are found
//!
//! The engine reads relation 1 only at its start. After that all definitions are in memory, in an immutable
//! [`CatalogState`] that statements share by reference count. A transaction that changes definitions works on
//! a copy of its own (its *overlay*) beside the rows it writes. At its commit the copy becomes the state that
//! all sessions share. Every state has a version of its own, never used twice, and a plan remembers the
//! version it was made with: one comparison tells whether it still holds.
//!
//! A session's temporary tables are in no row and in no published state (`transaction::temporary` puts them over one). A
//! relation's name is one in its schema ([`schema`]).
//!
//! # Rules
//!
//! 1. A transaction that changes definitions holds the *catalog lock* (a relation lock on relation 1) to its
//!    end. So there is one overlay at a time, and publishing it loses no other transaction's change. It takes the lock
//!    when no lock of a table is to be waited for (L1 of `transaction::locks`).
//! 2. A statement that uses a table locks it first and then compares versions again, and plans anew if they moved:
//!    between planning and locking, the table may have been dropped. A commit publishes before it releases its locks.
//! 3. A dropped table's files go when the transaction has committed, a created table's when it rolls back. A crash in
//!    between leaves files that no definition names: they are removed at the next start.
//! 4. A statement's snapshot sees the transactions that last changed its tables' definitions. If it does not, old row
//!    versions that it sees may be gone (TRUNCATE) or not in the index (CREATE INDEX). A fresh snapshot is then taken
//!    again when that transaction has ended; a REPEATABLE READ transaction with an older one gets 40001. (PostgreSQL
//!    shows it an empty table after TRUNCATE, and leaves the index out.)

pub(crate) mod access;
pub(crate) mod comment;
pub(crate) mod owned_sequences;
pub(crate) mod references;
pub(crate) mod role;
mod row_format;
pub(crate) mod schema;
pub(crate) mod sequence;
mod shared_map;
pub(crate) mod statistics;
pub(crate) mod stored;
mod stored_index;
pub(crate) mod stored_roles;
pub(crate) mod stored_type;
pub(crate) mod system;
mod table_use;
pub(crate) mod types_in_force;
pub(crate) mod user_types;

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use clearway_machine::invariant;
use clearway_storage::heap::Tid;
use clearway_txn::Xid;

use crate::catalog::access::{Access, DefaultAcls};
use crate::catalog::comment::CommentEntry;
use crate::catalog::role::Roles;
use crate::catalog::schema::SchemaEntry;
use crate::catalog::sequence::Sequence;
use crate::catalog::shared_map::SharedMap;
use crate::catalog::statistics::KeptStatistics;
use crate::catalog::user_types::TypeEntry;
use crate::clock;
use clearway_sql::plan::OnCommit;
use clearway_sql::{ObjectAddress, TableDef, TableKind};
pub(crate) use table_use::TableUse;

/// The relation that holds the definitions.
pub(crate) const CATALOG_REL: u32 = 1;

pub(crate) use clearway_sql::FIRST_OID;

/// Counts that are kept about a table while the engine runs, whatever becomes of its definition.
#[derive(Debug, Default)]
pub(crate) struct TableRuntime {
    /// Row versions that died since the last vacuum, about.
    pub(crate) dead_rows: AtomicU64,
    /// Live rows, about.
    pub(crate) live_rows: AtomicI64,
    /// Pieces of long values that died since the last vacuum, about.
    pub(crate) dead_pieces: AtomicU64,
    /// Pieces that the last vacuum has left.
    pub(crate) live_pieces: AtomicU64,
    /// Rows that committed transactions have changed since the last ANALYZE of all columns, about.
    pub(crate) changed_rows: AtomicU64,
    /// Rows that committed transactions have changed since the start, about.
    pub(crate) inserted: AtomicU64,
    pub(crate) updated: AtomicU64,
    pub(crate) deleted: AtomicU64,
    /// Scans of the whole table that were begun since the start.
    pub(crate) scans: AtomicU64,
    /// Scans by an index that were begun since the start, by the index's number.
    index_scans: Mutex<Vec<(u32, u64)>>,
    pub(crate) vacuums: Maintenances,
    pub(crate) analyzes: Maintenances,
}

impl TableRuntime {
    /// Adds scans of an index that were begun.
    pub(crate) fn count_index_scans(&self, index: u32, scans: u64) {
        let mut counts = self.index_scans.lock().unwrap_or_else(PoisonError::into_inner);
        match counts.iter_mut().find(|(known, _)| *known == index) {
            Some((_, count)) => *count += scans,
            None => counts.push((index, scans)),
        }
    }

    /// Sets what is counted for readers alone to 0. What decides when the table is vacuumed and analyzed stays.
    pub(crate) fn reset_counts(&self) {
        for count in [&self.inserted, &self.updated, &self.deleted, &self.scans] {
            count.store(0, Ordering::Relaxed);
        }
        let mut index_scans = self.index_scans.lock().unwrap_or_else(PoisonError::into_inner);
        index_scans.clear();
        for runs in [&self.vacuums, &self.analyzes] {
            for runs in [&runs.requested, &runs.automatic] {
                runs.count.store(0, Ordering::Relaxed);
                runs.last_us.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Scans of an index that were begun, or of all indexes of the table.
    pub(crate) fn index_scans(&self, index: Option<u32>) -> u64 {
        let counts = self.index_scans.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = counts
            .iter()
            .filter(|(known, _)| index.is_none_or(|index| index == *known));
        wanted.map(|(_, count)| count).sum()
    }
}

/// Runs of VACUUM or ANALYZE.
#[derive(Debug, Default)]
pub(crate) struct Maintenances {
    pub(crate) requested: Runs,
    pub(crate) automatic: Runs,
}

impl Maintenances {
    /// Notes a run, which ends now.
    pub(crate) fn note(&self, is_automatic: bool) {
        let runs = if is_automatic {
            &self.automatic
        } else {
            &self.requested
        };
        runs.last_us.store(clock::now_us(), Ordering::Relaxed);
        runs.count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Number of runs and the time of the last, since the start.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    pub(crate) count: AtomicU64,
    pub(crate) last_us: AtomicI64,
}

/// A table with all that belongs to it.
#[derive(Debug, Clone)]
pub(crate) struct TableEntry {
    pub(crate) def: Arc<TableDef>,
    /// The place of its catalog row.
    pub(crate) tid: Tid,
    /// The transaction that last changed the definition in a way that older snapshots cannot follow; invalid when that
    /// was before the start.
    pub(crate) changed_by: Xid,
    pub(crate) runtime: Arc<TableRuntime>,
    /// The state, of a sequence.
    pub(crate) sequence: Option<Arc<Sequence>>,
    /// Of the last ANALYZE.
    pub(crate) statistics: Option<KeptStatistics>,
    /// Its fate at a commit, if it is temporary.
    pub(crate) on_commit: OnCommit,
    /// Its owner, and who may do what with it.
    pub(crate) access: Arc<Access>,
}

impl TableEntry {
    /// The heap's relation.
    pub(crate) fn rel(&self) -> u32 {
        match self.def.kind {
            TableKind::Heap { rel } => rel,
            TableKind::Virtual => unreachable!("virtual tables have no catalog entry"),
            TableKind::View => unreachable!("a view has no heap"),
        }
    }

    /// The lists of privileges of its columns, by their attributes' numbers; not of those that are dropped.
    pub(crate) fn lists_of_columns(&self) -> impl Iterator<Item = (u16, &access::Acl)> {
        let lists = self.access.columns.iter();
        let lists = lists.filter(|(number, _)| self.def.column_of_attribute(**number).is_some());
        lists.map(|(number, acl)| (*number, acl))
    }

    /// All relations that belong to the table.
    pub(crate) fn relations(&self) -> impl Iterator<Item = u32> + '_ {
        let heap = match self.def.kind {
            TableKind::Heap { rel } => Some(rel),
            TableKind::Virtual | TableKind::View => None,
        };
        heap.into_iter()
            .chain(self.def.long_rel)
            .chain(self.def.all_indexes().map(|index| index.rel))
            .chain(self.def.sequence.iter().map(|sequence| sequence.rel))
            .chain(self.statistics.iter().map(|kept| kept.rel))
    }
}

/// A schema's number, and a name in it.
type NameInSchema = (u32, String);

/// All definitions at one moment.
#[derive(Debug, Clone)]
pub(crate) struct CatalogState {
    version: u64,
    /// The schemas of users.
    schemas: Vec<SchemaEntry>,
    /// The temporary tables, of a state that one session sees.
    temporary: Vec<u32>,
    by_name: SharedMap<NameInSchema, Arc<TableEntry>>,
    by_oid: SharedMap<u32, Arc<TableEntry>>,
    /// The tables of the indexes, by the indexes' names.
    by_index: SharedMap<NameInSchema, u32>,
    /// The tables of the indexes, CHECK constraints, foreign keys and long values, by their numbers.
    owners: SharedMap<u32, u32>,
    comments: SharedMap<ObjectAddress, CommentEntry>,
    roles: Arc<Roles>,
    default_acls: Arc<DefaultAcls>,
    /// The owner of the database, and who may do what with it; the place of its row, if it has one.
    database: (Arc<Access>, Option<Tid>),
    /// The types that users have defined, by number.
    types: SharedMap<u32, TypeEntry>,
    type_names: SharedMap<NameInSchema, u32>,
    /// The tables with foreign keys, by the tables that they name rows of.
    references: SharedMap<u32, Vec<u32>>,
}

impl CatalogState {
    fn empty() -> CatalogState {
        CatalogState {
            version: 1,
            schemas: vec![SchemaEntry::public()],
            temporary: Vec::new(),
            by_name: SharedMap::new(),
            by_oid: SharedMap::new(),
            by_index: SharedMap::new(),
            owners: SharedMap::new(),
            comments: SharedMap::new(),
            roles: Arc::new(Roles::predefined()),
            default_acls: Arc::default(),
            database: (Arc::default(), None),
            types: SharedMap::new(),
            type_names: SharedMap::new(),
            references: SharedMap::new(),
        }
    }

    /// The number of this state.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// The table of this number.
    pub(crate) fn table(&self, oid: u32) -> Option<&Arc<TableEntry>> {
        self.by_oid.get(&oid)
    }

    /// All tables, by number.
    pub(crate) fn tables(&self) -> Vec<Arc<TableEntry>> {
        self.relations(|table| matches!(table.kind, TableKind::Heap { .. }))
    }

    /// All sequences, by number.
    pub(crate) fn sequences(&self) -> Vec<Arc<TableEntry>> {
        self.relations(|table| table.sequence.is_some())
    }

    /// All that have files, by number.
    pub(crate) fn with_files(&self) -> Vec<Arc<TableEntry>> {
        self.relations(|table| table.kind != TableKind::View)
    }

    /// All relations, by number.
    pub(crate) fn all_relations(&self) -> Vec<Arc<TableEntry>> {
        self.relations(|_| true)
    }

    /// All views, by number.
    pub(crate) fn views(&self) -> Vec<Arc<TableEntry>> {
        self.relations(|table| table.kind == TableKind::View)
    }

    fn relations(&self, wanted: impl Fn(&TableDef) -> bool) -> Vec<Arc<TableEntry>> {
        let relations = self.by_oid.values();
        let mut found: Vec<_> = relations.filter(|entry| wanted(&entry.def)).cloned().collect();
        found.sort_by_key(|entry| entry.def.oid);
        found
    }

    /// True if a relation or an index of a schema has this name: they share one space of names.
    pub(crate) fn is_taken(&self, schema: u32, name: &str) -> bool {
        let key = (schema, name.to_owned());
        self.by_name.contains_key(&key) || self.by_index.contains_key(&key)
    }

    /// Adds or replaces a table.
    pub(crate) fn put(&mut self, mut entry: TableEntry) {
        // The schema's own row has its name.
        if let Some(known) = self.schema_entry(entry.def.schema.oid)
            && known.schema != entry.def.schema
        {
            let mut table = (*entry.def).clone();
            table.schema = known.schema.clone();
            entry.def = Arc::new(table);
        }
        let parents = self.note_references(&mut entry);
        let entry = Arc::new(entry);
        let (table, schema) = (entry.def.oid, entry.def.schema.oid);
        if entry.def.schema.is_temporary() && !self.temporary.contains(&table) {
            self.temporary.push(table);
        }
        if let Some(old) = self.by_oid.insert(table, Arc::clone(&entry)) {
            self.forget_names(&old);
        }
        for index in entry.def.all_indexes() {
            self.by_index.insert((schema, index.name.clone()), table);
            self.owners.insert(index.oid, table);
        }
        if let Some(oid) = entry.def.long_oid() {
            self.owners.insert(oid, table);
        }
        for check in &entry.def.checks {
            self.owners.insert(check.oid, table);
        }
        for key in &entry.def.foreign_keys {
            self.owners.insert(key.oid, table);
        }
        self.by_name.insert((schema, entry.def.name.clone()), entry);
        self.mark_referenced(parents);
    }

    /// The temporary relations, of a state that one session sees.
    pub(crate) fn temporary_relations(&self) -> impl Iterator<Item = &Arc<TableEntry>> {
        self.temporary.iter().filter_map(|oid| self.by_oid.get(oid))
    }

    /// Takes a table out.
    pub(crate) fn remove(&mut self, oid: u32) {
        self.temporary.retain(|known| *known != oid);
        if let Some(old) = self.by_oid.remove(&oid) {
            self.forget_names(&old);
            let parents = self.forget_references(oid, Some(&old.def));
            self.mark_referenced(parents);
        }
    }

    fn forget_names(&mut self, entry: &TableEntry) {
        let schema = entry.def.schema.oid;
        self.by_name.remove(&(schema, entry.def.name.clone()));
        for index in entry.def.all_indexes() {
            self.by_index.remove(&(schema, index.name.clone()));
            self.owners.remove(&index.oid);
        }
        if let Some(oid) = entry.def.long_oid() {
            self.owners.remove(&oid);
        }
        for check in &entry.def.checks {
            self.owners.remove(&check.oid);
        }
        for key in &entry.def.foreign_keys {
            self.owners.remove(&key.oid);
        }
    }

    /// The table of the index of this name in a schema.
    pub(crate) fn owner_of_index(&self, schema: u32, name: &str) -> Option<&Arc<TableEntry>> {
        self.by_oid.get(self.by_index.get(&(schema, name.to_owned()))?)
    }

    /// The table whose long values have this number.
    pub(crate) fn owner_of_long_values(&self, oid: u32) -> Option<&Arc<TableEntry>> {
        self.owner(oid).filter(|entry| entry.def.long_oid() == Some(oid))
    }

    /// The table of the index, CHECK constraint, foreign key or long values of this number.
    pub(crate) fn owner(&self, oid: u32) -> Option<&Arc<TableEntry>> {
        self.by_oid.get(self.owners.get(&oid)?)
    }

    /// The table or view of this number, of the system too.
    pub(crate) fn table_numbered(&self, oid: u32) -> Option<Arc<TableDef>> {
        let entry = self.by_oid.get(&oid).map(|entry| Arc::clone(&entry.def));
        entry.or_else(|| system::by_oid(oid).map(|table| Arc::clone(&table.definition)))
    }
}

/// A version that no state in the process has: a thread tells by it whether the types of a state are in force.
fn next_version() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The catalog that all sessions share.
#[derive(Debug)]
pub(crate) struct Catalog {
    /// The published state's version, for a look without a lock.
    version: AtomicU64,
    state: RwLock<Arc<CatalogState>>,
    /// Sequences by relation, so that every state shares one counter.
    sequences: Mutex<HashMap<u32, Arc<Sequence>>>,
}

impl Catalog {
    /// A catalog without tables.
    pub(crate) fn new() -> Catalog {
        let state = CatalogState {
            version: next_version(),
            ..CatalogState::empty()
        };
        Catalog {
            version: AtomicU64::new(state.version),
            state: RwLock::new(Arc::new(state)),
            sequences: Mutex::default(),
        }
    }

    /// The published state.
    pub(crate) fn state(&self) -> Arc<CatalogState> {
        Arc::clone(&self.state.read().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    /// The published state's version.
    #[inline]
    pub(crate) fn version(&self) -> u64 {
        // Acquire: pairs with the Release in `publish`; a session that sees the version finds that state or a
        // later one.
        self.version.load(Ordering::Acquire)
    }

    /// A copy to change, under a version of its own.
    pub(crate) fn changed_copy(&self, state: &CatalogState) -> CatalogState {
        let mut copy = state.clone();
        copy.version = next_version();
        copy
    }

    /// Publishes a state: all sessions use it from now on.
    pub(crate) fn publish(&self, state: Arc<CatalogState>) {
        let version = state.version;
        let mut published = self
            .state
            .write()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        invariant!(
            1,
            version > published.version,
            "definitions of version {version} are published after those of {}",
            published.version
        );
        *published = state;
        drop(published);
        self.version.store(version, Ordering::Release);
    }

    /// The sequence in this relation, opened once.
    pub(crate) fn sequence(&self, rel: u32) -> Arc<Sequence> {
        let mut sequences = self
            .sequences
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        Arc::clone(
            sequences
                .entry(rel)
                .or_insert_with(|| Arc::new(Sequence::new(rel))),
        )
    }

    /// The sequence's relation is gone.
    pub(crate) fn forget_sequence(&self, rel: u32) {
        self.sequences
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .remove(&rel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_sql::value::DataType;
    use clearway_sql::{ColumnDef, IndexDef, SchemaRef};

    fn entry(oid: u32, name: &str) -> TableEntry {
        let columns = vec![ColumnDef::new("id", DataType::Int4)];
        TableEntry {
            def: Arc::new(TableDef::new(oid, name, TableKind::Heap { rel: oid }, columns)),
            tid: Tid { block: 0, slot: 1 },
            changed_by: Xid::INVALID,
            runtime: Arc::default(),
            sequence: None,
            statistics: None,
            on_commit: OnCommit::PreserveRows,
            access: Arc::default(),
        }
    }

    #[test]
    fn a_copy_is_seen_by_others_only_once_published() {
        let catalog = Catalog::new();
        let before = catalog.version();
        let mut copy = catalog.changed_copy(&catalog.state());
        copy.put(entry(16_384, "accounts"));
        assert!(
            catalog
                .state()
                .table_in(&SchemaRef::public(), "accounts")
                .is_none()
        );
        assert_eq!(catalog.version(), before);
        catalog.publish(Arc::new(copy));
        assert!(
            catalog
                .state()
                .table_in(&SchemaRef::public(), "accounts")
                .is_some()
        );
        assert!(catalog.version() > before);
    }

    #[test]
    fn renamed_and_removed_tables_leave_no_name_behind() {
        let catalog = Catalog::new();
        let mut state = catalog.changed_copy(&catalog.state());
        state.put(entry(16_384, "old"));
        state.put(entry(16_384, "new"));
        assert!(
            !state.is_taken(SchemaRef::PUBLIC_OID, "old") && state.is_taken(SchemaRef::PUBLIC_OID, "new")
        );
        state.remove(16_384);
        assert!(!state.is_taken(SchemaRef::PUBLIC_OID, "new"));
    }

    #[test]
    fn an_index_is_found_by_its_name_as_long_as_its_table_has_it() {
        let with_index = |name: &str| {
            let mut entry = entry(16_384, "notes");
            let mut table = (*entry.def).clone();
            table.indexes.push(Arc::new(IndexDef {
                oid: 16_385,
                name: name.to_owned(),
                rel: 1,
                unique: true,
                nulls_not_distinct: false,
                primary: true,
                constraint: true,
                check_time: clearway_sql::CheckTime::default(),
                keys: vec![clearway_sql::IndexKey::column(0)],
                included: Vec::new(),
                predicate: None,
                marks: clearway_sql::IndexMarks::default(),
                types: vec![DataType::Int4],
            }));
            entry.def = Arc::new(table);
            entry
        };
        let mut state = CatalogState::empty();
        state.put(with_index("notes_pkey"));
        let copy = state.clone();
        state.put(with_index("notes_key"));
        assert!(
            !state.is_taken(SchemaRef::PUBLIC_OID, "notes_pkey")
                && state.is_taken(SchemaRef::PUBLIC_OID, "notes_key")
        );
        assert_eq!(
            state
                .owner_of_index(SchemaRef::PUBLIC_OID, "notes_key")
                .unwrap()
                .def
                .oid,
            16_384
        );
        state.put(entry(16_384, "notes"));
        assert!(!state.is_taken(SchemaRef::PUBLIC_OID, "notes_key"));
        assert!(
            copy.is_taken(SchemaRef::PUBLIC_OID, "notes_pkey"),
            "the copy has what it had"
        );
        state.put(with_index("notes_key"));
        state.remove(16_384);
        assert!(!state.is_taken(SchemaRef::PUBLIC_OID, "notes_key"));
    }
}
