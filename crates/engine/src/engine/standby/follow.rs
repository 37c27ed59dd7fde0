//! Following the primary's definitions.
//!
//! # An example
//! The primary truncates `t` in transaction 100: the definition of `t` names relation 40 then, and not 30 any more.
//!
//! | time | replay | Bob reads `t` |
//! | --- | --- | --- |
//! | 1 | the new row of the definitions' heap, and relation 40 | a statement, planned with 30, holds its lock on `t` |
//! | 2 | the commit: commit log. Asks for `t` in AccessExclusive, and queues | sends rows |
//! | 3 | | the statement ends, or is cancelled; the lock is free |
//! | 4 | has the lock; publishes the new definition | the next statement is planned with 40, and queues for `t` |
//! | 5 | 100 leaves the known xids | |
//! | 6 | releases the lock; removes the file of 30 | takes a snapshot, which sees 100, and reads 40 |
//!
//! # Rules
//! - D1: the tables that lose a relation, which is one that their old definition names and the new one does not, are locked
//!   before the new definition is published, and until the commit is seen. A statement that uses such a relation holds its
//!   table's lock, so none does when the file goes (E3). The locks are asked for in the order of the tables' numbers.
//! - D2: what only adds to a table, such as an index, is published without a lock: plans made before go on to be right.
//! - D3: a snapshot is as new as the definitions that its statement was planned with (rule 4 of `catalog`). Between 4 and 5
//!   there are definitions whose maker no snapshot sees. The lock keeps statements away, and where there is none they take
//!   another snapshot until one sees it (`Transaction::take_snapshot_for`).
//! - D5: a table's statistics lie in a relation that nothing but this thread reads, so its change needs no lock (D1), and
//!   older snapshots may use the new ones (D4).
//! - D4: a table whose new definition can be read under older snapshots (fewer indexes, another fillfactor) keeps the
//!   transaction that changed it before.
//!
//! # What is looked at
//! The log tells which pages of the definitions' heap have changed since the last commit that was published, and which
//! relations were made. What lies on other pages is as it was, so a table that is made costs the same however many there
//! are. All of it is looked at once after the start, and at the commit of a transaction that may have changed definitions
//! before the log that was replayed here.
//!
//! # Which files go
//! All that no definition names any more, or names yet. On the primary a transaction that changes definitions holds the catalog's lock from before
//! it makes a relation until after its end was logged (rule 1 of `catalog`). So at the replay of its commit no other
//! transaction has relations of its own, and what has no name belongs to tables that are gone, to transactions that were
//! rolled back, or to the time before a crash. Temporary tables of the primary have no files here; those that came with a
//! copy of its directory go as well.
//!
//! # Waiting
//! Replay queues for the lock as a session does, so that no new reader comes before it, and a session that waits for a
//! table which replay has locked already finds the circle as any deadlock, by itself. Replay looks for circles too, and
//! cancels the sessions in its way when it finds one: whichever of them began to wait last has to look.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Instant;

use clearway_storage::heap::{Tid, TxnContext};
use clearway_storage::standby::{ChangedDefinitions, Conflict, ReplayObserver};
use clearway_storage::{Reader, RelId, Standby, StorageError};
use clearway_txn::{LockMode, LockTag, ProcId, Snapshot, Xid};

use crate::catalog::comment::CommentEntry;
use crate::catalog::role::{MembershipEntry, RoleEntry};
use crate::catalog::schema::SchemaEntry;
use crate::catalog::stored::{self, CatalogRow, Definition, RowKey};
use crate::catalog::user_types::TypeEntry;
use crate::catalog::{CATALOG_REL, CatalogState, TableEntry, TableRuntime};
use crate::engine::Engine;
use crate::engine::definitions::{
    DefinitionRow, RowDecoder, comment_entry, decoded_types, definition_rows, definition_rows_on,
    kept_statistics, table_entry,
};
use clearway_sql::error::{EngineError, Result};
use clearway_sql::{IndexStage, TableDef, TableKind};

type StorageResult<T> = std::result::Result<T, StorageError>;

/// Gets the commits and conflicts that replay reports.
#[derive(Debug)]
pub(super) struct DefinitionFollower {
    engine: Weak<Engine>,
    proc: ProcId,
    published: Mutex<Published>,
}

/// The rows behind the published definitions. Touched by the thread that replays, and no other.
#[derive(Debug)]
struct Published {
    rows: HashMap<RowKey, DefinitionRow>,
    by_place: BTreeMap<Tid, RowKey>,
    /// Relations that the last change has left without a name.
    nameless: BTreeSet<u32>,
    /// A file could not be removed: the next change looks for all that are to go.
    has_left_file: bool,
    /// The table whose lock replay waits for.
    awaited: Option<u32>,
}

impl Published {
    fn new(rows: impl IntoIterator<Item = (RowKey, DefinitionRow)>) -> Published {
        let rows: HashMap<RowKey, DefinitionRow> = rows.into_iter().collect();
        Published {
            by_place: rows.iter().map(|(key, row)| (row.tid, *key)).collect(),
            rows,
            nameless: BTreeSet::new(),
            has_left_file: false,
            awaited: None,
        }
    }

    /// The objects whose rows lie on these pages, or on any.
    fn on(&self, pages: Option<&BTreeSet<u32>>) -> Vec<RowKey> {
        let Some(pages) = pages else {
            return self.rows.keys().copied().collect();
        };
        let on_page = |&block: &u32| {
            let (first, last) = (
                Tid { block, slot: 0 },
                Tid {
                    block,
                    slot: u16::MAX,
                },
            );
            self.by_place.range(first..=last).map(|(_, key)| *key)
        };
        pages.iter().flat_map(on_page).collect()
    }

    /// Takes over what was looked at, which is published.
    fn take(&mut self, looked_at: HashMap<RowKey, DefinitionRow>, removed: &BTreeSet<RowKey>) {
        let moved = looked_at.keys().chain(removed);
        for old in moved.filter_map(|key| self.rows.remove(key)) {
            self.by_place.remove(&old.tid);
        }
        self.by_place
            .extend(looked_at.iter().map(|(key, row)| (row.tid, *key)));
        self.rows.extend(looked_at);
    }

    /// The object of a row that is in its place as it was.
    fn unchanged(&self, row: &DefinitionRow) -> Option<RowKey> {
        let key = *self.by_place.get(&row.tid)?;
        (self.rows[&key].bytes == row.bytes).then_some(key)
    }
}

/// The difference of the definitions to the published ones.
#[derive(Debug, Default)]
struct Change {
    /// Those that were looked at, as they are now.
    rows: HashMap<RowKey, DefinitionRow>,
    /// New definitions, and changed ones.
    defined: BTreeMap<RowKey, CatalogRow>,
    /// Definitions that are the same, in rows that are elsewhere.
    moved: Vec<(RowKey, Tid)>,
    removed: BTreeSet<RowKey>,
}

/// The numbers of the tables among these.
fn tables_of(keys: &BTreeSet<RowKey>) -> impl Iterator<Item = u32> + '_ {
    keys.iter().filter_map(|key| match key {
        RowKey::Table(oid) => Some(*oid),
        _ => None,
    })
}

impl Change {
    /// The difference that `now` makes, the rows on these pages, or on all. `known` has the types of these rows.
    fn between(
        engine: &Engine,
        known: &CatalogState,
        published: &Published,
        now: Vec<DefinitionRow>,
        pages: Option<&BTreeSet<u32>>,
    ) -> Result<Change> {
        let mut change = Change::default();
        let decoder = RowDecoder::new(&engine.catalog, known, &now);
        let mut keys = Vec::with_capacity(now.len());
        for row in &now {
            keys.push(match published.unchanged(row) {
                Some(key) => key,
                None => {
                    let decoded = decoder.decode(&row.bytes)?;
                    let key = decoded.key();
                    match published.rows.get(&key) {
                        Some(before) if before.bytes == row.bytes => change.moved.push((key, row.tid)),
                        _ => {
                            change.defined.insert(key, decoded);
                        }
                    }
                    key
                }
            });
        }
        change.rows.extend(keys.into_iter().zip(now));
        let mut before = published.on(pages);
        before.retain(|key| !change.rows.contains_key(key));
        change.removed = before.into_iter().collect();
        Ok(change)
    }

    /// The tables that are new or changed.
    fn defined_tables(&self) -> impl Iterator<Item = (u32, &Definition)> {
        self.defined.values().filter_map(|row| match row {
            CatalogRow::Table(definition) => Some((definition.table.oid, definition)),
            _ => None,
        })
    }

    /// D1: the tables to lock, in ascending order.
    fn locked(&self, state: &CatalogState) -> BTreeSet<u32> {
        let loses_one = |(oid, definition): &(u32, &Definition)| {
            state
                .table(*oid)
                .is_some_and(|before| !has_all_of(definition, before))
        };
        let changed = self.defined_tables().filter(loses_one).map(|(oid, _)| oid);
        changed.chain(tables_of(&self.removed)).collect()
    }

    /// Relations that no definition names after this change, of those that were named before or `made`.
    fn nameless(&self, before: &CatalogState, made: &BTreeSet<RelId>) -> BTreeSet<u32> {
        let changed = tables_of(&self.removed).chain(self.defined_tables().map(|(oid, _)| oid));
        let old = changed.filter_map(|oid| before.table(oid));
        let mut nameless: BTreeSet<u32> = old
            .flat_map(|entry| entry.relations().collect::<Vec<_>>())
            .collect();
        nameless.extend(made.iter().map(|rel| rel.0).filter(|rel| *rel > CATALOG_REL));
        for rel in self
            .defined_tables()
            .flat_map(|(_, definition)| relations_of(definition))
        {
            nameless.remove(&rel);
        }
        nameless
    }

    /// The state with the change made by `xid`, which `context` sees.
    fn apply(&mut self, engine: &Engine, xid: Xid, context: &TxnContext<'_>) -> Result<CatalogState> {
        let before = engine.catalog.state();
        let mut state = engine.catalog.changed_copy(&before);
        // First, so that names are free.
        for key in self.removed.iter().chain(self.defined.keys()) {
            match key {
                RowKey::Table(oid) => state.remove(*oid),
                RowKey::Comment(on) => state.remove_comment(on),
                RowKey::Schema(oid) => state.remove_schema(*oid),
                RowKey::Database => state.put_database(Arc::default(), None),
                RowKey::Defaults(key) => state.remove_default_acl(key),
                RowKey::Role(oid) => state.remove_role(*oid),
                RowKey::Member(role, member) => state.remove_membership((*role, *member)),
                RowKey::Type(oid) => state.remove_type(*oid),
            }
        }
        for (key, row) in std::mem::take(&mut self.defined) {
            let tid = self.rows[&key].tid;
            match row {
                CatalogRow::Table(definition) => {
                    state.put(followed(engine, &before, definition, tid, xid, context)?);
                }
                CatalogRow::Type(def) => state.put_type(TypeEntry { def, tid }),
                CatalogRow::Comment(comment) => state.put_comment(comment_entry(comment, tid)),
                CatalogRow::Database(access) => state.put_database(Arc::new(access), Some(tid)),
                CatalogRow::Defaults(key, acl) => state.put_default_acl(key, acl, Some(tid)),
                CatalogRow::Role(role) => state.put_role(RoleEntry { role, tid: Some(tid) }),
                CatalogRow::Member(membership) => state.put_membership(MembershipEntry {
                    membership,
                    tid: Some(tid),
                }),
                CatalogRow::Schema(entry) => state.put_schema(SchemaEntry {
                    tid: Some(tid),
                    ..entry
                }),
            }
        }
        for (key, tid) in std::mem::take(&mut self.moved) {
            match key {
                RowKey::Table(oid) => {
                    if let Some(entry) = before.table(oid) {
                        state.put(TableEntry {
                            tid,
                            ..(**entry).clone()
                        });
                    }
                }
                RowKey::Type(oid) => {
                    if let Some(entry) = before.type_entry(oid) {
                        state.put_type(TypeEntry { tid, ..entry.clone() });
                    }
                }
                RowKey::Schema(oid) => {
                    if let Some(entry) = before.schema_entry(oid) {
                        state.put_schema(SchemaEntry {
                            tid: Some(tid),
                            ..entry.clone()
                        });
                    }
                }
                RowKey::Database => state.put_database(before.database_access(), Some(tid)),
                RowKey::Defaults(key) => {
                    if let Some((acl, _)) = before.default_acl_for(&key) {
                        state.put_default_acl(key, acl.clone(), Some(tid));
                    }
                }
                RowKey::Role(oid) => {
                    if let Some(entry) = before.roles().get(oid) {
                        state.put_role(RoleEntry {
                            tid: Some(tid),
                            ..(**entry).clone()
                        });
                    }
                }
                RowKey::Member(role, member) => {
                    if let Some(entry) = before.roles().membership(role, member) {
                        state.put_membership(MembershipEntry {
                            tid: Some(tid),
                            ..entry.clone()
                        });
                    }
                }
                RowKey::Comment(on) => {
                    if let Some(comment) = before.comment(&on) {
                        state.put_comment(CommentEntry {
                            tid,
                            ..comment.clone()
                        });
                    }
                }
            }
        }
        Ok(state)
    }
}

/// The state with the types of these rows beside those that were there before; they are in force, for the rows that name them.
fn know_types(engine: &Engine, before: &CatalogState, rows: &[DefinitionRow]) -> Result<CatalogState> {
    let types = rows.iter().filter(|row| stored::is_type(&row.bytes));
    let copied = types.map(|row| DefinitionRow {
        tid: row.tid,
        bytes: row.bytes.clone(),
    });
    let mut known = before.clone();
    decoded_types(&engine.catalog, &mut known, copied.collect(), rows)?;
    Ok(known)
}

/// The entry of a table that `xid` has made or changed.
fn followed(
    engine: &Engine,
    before: &CatalogState,
    definition: Definition,
    tid: Tid,
    xid: Xid,
    context: &TxnContext<'_>,
) -> Result<TableEntry> {
    let (changed_by, runtime): (Xid, Arc<TableRuntime>) = match before.table(definition.table.oid) {
        None => (xid, Arc::default()),
        Some(old) => {
            let runtime = Arc::clone(&old.runtime);
            if old.relations().next().unwrap_or(0) != heap_of(&definition) {
                runtime.live_rows.store(0, Ordering::Relaxed);
                runtime.dead_rows.store(0, Ordering::Relaxed);
            }
            let changed_by = if is_read_by_older(&definition, old) {
                old.changed_by
            } else {
                xid
            };
            (changed_by, runtime)
        }
    };
    let old = before.table(definition.table.oid);
    let old = old.and_then(|old| old.statistics.clone());
    let kept = if old.as_ref().map(|kept| kept.rel) == definition.statistics {
        old
    } else {
        let kept = kept_statistics(context, &definition);
        if let Some(kept) = &kept {
            let rows = kept.of_table.rows as i64;
            runtime.live_rows.store(rows, Ordering::Relaxed);
        }
        kept
    };
    Ok(table_entry(
        &engine.catalog,
        definition,
        tid,
        changed_by,
        runtime,
        kept,
    ))
}

/// The relation of a definition's heap.
fn heap_of(definition: &Definition) -> u32 {
    relations_of(definition).next().unwrap_or(0)
}

fn relations_of(definition: &Definition) -> impl Iterator<Item = u32> + '_ {
    let heap = match definition.table.kind {
        TableKind::Heap { rel } => Some(rel),
        TableKind::Virtual | TableKind::View => None,
    };
    heap.into_iter()
        .chain(definition.table.long_rel)
        .chain(definition.table.all_indexes().map(|index| index.rel))
        .chain(definition.table.sequence.iter().map(|sequence| sequence.rel))
        .chain(definition.statistics)
}

/// The relations by which statements read, or may have read by an earlier definition: those of statistics are read here
/// only, and the tree of an index that is being built by none.
fn read_by_statements(entry: &TableEntry) -> impl Iterator<Item = u32> + '_ {
    let of_statistics = entry.statistics.iter().map(|kept| kept.rel);
    let unfinished = entry.def.unfinished.iter();
    let building = unfinished.filter(|index| index.stage == IndexStage::Building);
    let unread: Vec<u32> = building
        .map(|index| index.index.rel)
        .chain(of_statistics)
        .collect();
    entry.relations().filter(move |rel| !unread.contains(rel))
}

/// The relations by which a statement that is planned now reads.
fn read_from_now_on(table: &TableDef) -> impl Iterator<Item = u32> + '_ {
    let heap = match table.kind {
        TableKind::Heap { rel } => Some(rel),
        TableKind::Virtual | TableKind::View => None,
    };
    let indexes = table.indexes.iter().map(|index| index.rel);
    let sequence = table.sequence.iter().map(|sequence| sequence.rel);
    heap.into_iter()
        .chain(table.long_rel)
        .chain(indexes)
        .chain(sequence)
}

/// True if the definition names all relations of the one before, and has its columns: who reads by that one reads right.
fn has_all_of(definition: &Definition, before: &TableEntry) -> bool {
    let now: BTreeSet<u32> = relations_of(definition).collect();
    read_by_statements(before).all(|rel| now.contains(&rel)) && has_columns_of(definition, before)
}

/// D4: whether no relation is read by the definition that is not by the one before.
fn is_read_by_older(definition: &Definition, before: &TableEntry) -> bool {
    let then: BTreeSet<u32> = read_from_now_on(&before.def).collect();
    read_from_now_on(&definition.table).all(|rel| then.contains(&rel)) && has_columns_of(definition, before)
}

fn has_columns_of(definition: &Definition, before: &TableEntry) -> bool {
    let (now, then) = (&definition.table.columns, &before.def.columns);
    now.len() == then.len()
        && now.iter().zip(then).all(|(now, then)| {
            now.name == then.name && now.data_type == then.data_type && now.typmod == then.typmod
        })
}

impl DefinitionFollower {
    pub(super) fn new(
        engine: Weak<Engine>,
        proc: ProcId,
        rows: Vec<(RowKey, DefinitionRow)>,
    ) -> DefinitionFollower {
        DefinitionFollower {
            engine,
            proc,
            published: Mutex::new(Published::new(rows)),
        }
    }

    fn published(&self) -> MutexGuard<'_, Published> {
        self.published
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn publish(
        &self,
        engine: &Engine,
        standby: &Standby,
        xid: Xid,
        snapshot: &Snapshot,
        changed: &ChangedDefinitions,
    ) -> StorageResult<()> {
        let context = TxnContext {
            storage: &engine.storage,
            // Its xmin is not installed: what removes versions here is replay, that is this thread.
            proc: self.proc,
            xid: None,
            command: 0,
            reader: Reader::of_no_answer(snapshot),
            changes: None,
        };
        let pages = (!changed.is_incomplete).then_some(&changed.pages);
        let rows = pages.map_or_else(
            || definition_rows(&context),
            |pages| definition_rows_on(&context, pages),
        );
        let before = engine.catalog.state();
        let mut change = rows
            .and_then(|rows| {
                let known = know_types(engine, &before, &rows)?;
                Change::between(engine, &known, &self.published(), rows, pages)
            })
            .map_err(|error| not_followed(xid, &error))?;
        for oid in change.locked(&before) {
            self.lock(engine, standby, oid)?;
        }
        let nameless = change.nameless(&before, &changed.made);
        let state = change
            .apply(engine, xid, &context)
            .map_err(|error| not_followed(xid, &error))?;
        engine.catalog.publish(Arc::new(state));
        let mut published = self.published();
        published.take(change.rows, &change.removed);
        published.nameless = nameless;
        Ok(())
    }

    /// Takes a table's lock, and ends those who hold it for too long.
    fn lock(&self, engine: &Engine, standby: &Standby, oid: u32) -> StorageResult<()> {
        let tag = LockTag::Relation(oid);
        let request = engine
            .storage
            .locks
            .request(self.proc, tag, LockMode::AccessExclusive);
        let request = RefCell::new(request);
        let looks_next = Cell::new(Instant::now() + engine.config.deadlock_timeout.duration());
        let in_the_way = || {
            let mut request = request.borrow_mut();
            if request.is_granted() {
                return Vec::new();
            }
            let holders = request.holders_in_the_way();
            if Instant::now() >= looks_next.get() {
                looks_next.set(Instant::now() + engine.config.deadlock_timeout.duration());
                if request.is_deadlocked() {
                    for holder in &holders {
                        engine.cancel_for_replay(*holder, Conflict::Lock, Some(oid));
                    }
                }
            }
            holders
        };
        self.published().awaited = Some(oid);
        let mut waited = Ok(());
        // There may be no holder for a moment although the lock is not granted yet.
        while waited.is_ok() && !request.borrow_mut().is_granted() {
            waited = standby.wait_for_sessions(Conflict::Lock, in_the_way);
        }
        self.published().awaited = None;
        drop(request);
        if waited.is_err() {
            engine.storage.locks.release_all(self.proc);
        }
        waited
    }
}

/// Definitions that cannot be followed end replay: sessions would read by those of before.
#[cold]
fn not_followed(xid: Xid, error: &EngineError) -> StorageError {
    StorageError::Standby {
        problem: format!("the definitions that transaction {xid} has changed cannot be read: {error}"),
    }
}

impl ReplayObserver for DefinitionFollower {
    fn publish_definitions(
        &self,
        xid: Xid,
        snapshot: &Snapshot,
        changed: &ChangedDefinitions,
    ) -> StorageResult<()> {
        // Without an engine there are no sessions.
        let Some(engine) = self.engine.upgrade() else {
            return Ok(());
        };
        let Some(standby) = engine.storage.standby() else {
            return Ok(());
        };
        self.publish(&engine, standby, xid, snapshot, changed)
    }

    fn definitions_are_seen(&self, _xid: Xid, changed: &ChangedDefinitions) -> StorageResult<()> {
        let Some(engine) = self.engine.upgrade() else {
            return Ok(());
        };
        engine.storage.locks.release_all(self.proc);
        let (nameless, has_left_file) = {
            let mut published = self.published();
            (std::mem::take(&mut published.nameless), published.has_left_file)
        };
        let removed = if changed.is_incomplete || has_left_file {
            engine.remove_files_without_definition(&engine.catalog.state())
        } else {
            nameless
                .into_iter()
                .try_for_each(|rel| engine.remove_file(RelId(rel)))
        };
        self.published().has_left_file = removed.is_err();
        if let Err(error) = removed {
            // It stays behind, and is removed with the next ones.
            tracing::warn!(%error, "the file of a dropped relation could not be removed");
        }
        Ok(())
    }

    fn cancel(&self, proc: ProcId, conflict: Conflict) {
        if let Some(engine) = self.engine.upgrade() {
            let awaited = self.published().awaited;
            engine.cancel_for_replay(proc, conflict, awaited);
        }
    }
}
