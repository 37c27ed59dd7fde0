//! Is a database sound? Asked after every recovery of the crash test, and by `clearway check`.
//!
//! 1. Every page of every relation is read from its file and checked (`storage::check`).
//! 2. Heaps and trees are checked by their own rules, where step 1 found nothing.
//! 3. Under one snapshot a table, its rows are compared with its indexes: every visible row has an entry with
//!    its key in every index; every entry leads to a line pointer that an index may lead to, and bears the
//!    key of the row if one is visible there; no two visible rows have the same key in a unique index.
//!
//! 4. The same snapshot sees as many pieces of long values as its rows lead to: none is missing, and none is left over.
//!
//! An entry that leads to a dead row is in order: vacuum removes it. The table is locked against changes and vacuums
//! meanwhile, so it is compared as it is.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use clearway_storage::btree::{BTree, Direction};
use clearway_storage::heap::{Heap, Tid};
use clearway_storage::{Findings, RelId};
use clearway_txn::LockMode;

use crate::activity::SessionInfo;
use crate::catalog::{CATALOG_REL, TableEntry, TableUse};
use crate::convert::storage_error;
use crate::engine::Engine;
use crate::executor::long_values::{piece_count, whole_row};
use crate::executor::shown_values::{describe, describe_key};
use crate::interrupt::Interrupts;
use crate::session::Session;
use crate::transaction::Phase;
use clearway_sql::context::{EvalContext, NoSession};
use clearway_sql::error::{EngineError, Result};
use clearway_sql::{IndexDef, IndexEntry};

/// Index entries that are read at a time.
const BATCH: usize = 256;

/// More problems than this in one comparison are not listed.
const PROBLEMS_MAX: usize = 20;

/// The result of [`Engine::check`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Tables looked at.
    pub tables: u64,
    /// Pages read, of all relations.
    pub pages: u64,
    /// Visible rows found by scanning the heaps.
    pub rows: u64,
    /// Index entries found to lead to a row with their key.
    pub index_entries: u64,
    /// The faults, in words; empty when all is well.
    pub problems: Vec<String>,
    /// Findings that are no faults, but worth knowing.
    pub notes: Vec<String>,
}

/// The progress of a check.
#[derive(Debug, Clone)]
pub struct CheckProgress<'a> {
    /// The relation that is being looked at.
    pub relation: &'a str,
    /// Pages looked at so far; a page of a table or index is looked at twice.
    pub pages_done: u64,
    /// Pages to look at.
    pub pages_total: u64,
}

/// A relation to check.
struct Relation {
    rel: RelId,
    /// In words.
    name: String,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    CommitLog,
    Heap,
    Tree,
    Sequence,
}

impl Engine {
    /// True if the database is sound: files, structures, and indexes against tables. Waits for transactions
    /// that have changed tables.
    pub fn check(self: &Arc<Self>) -> Result<CheckReport> {
        self.check_with(&mut |_| {})
    }

    /// As [`check`](Self::check); `progress` is called now and then.
    pub fn check_with(self: &Arc<Self>, progress: &mut dyn FnMut(&CheckProgress<'_>)) -> Result<CheckReport> {
        let mut session = self.session(SessionInfo::default())?;
        let lengths = self.storage.lengths_on_disk().map_err(storage_error)?;
        let relation_pages = lengths.values().map(|&blocks| u64::from(blocks));
        let mut check = Check {
            engine: self,
            interrupts: session.interrupts(),
            pages_total: 2 * relation_pages.sum::<u64>(),
            lengths,
            pages_done: 0,
            progress,
            report: CheckReport::default(),
        };
        for (rel, name, kind) in [
            (RelId::COMMIT_LOG, "commit log", Kind::CommitLog),
            (RelId(CATALOG_REL), "catalog", Kind::Heap),
        ] {
            let name = name.into();
            check.relation(&Relation { rel, name, kind })?;
        }
        for entry in self.catalog.state().tables() {
            check.table(&mut session, &entry)?;
        }
        for entry in self.catalog.state().sequences() {
            check.sequence(&entry)?;
        }
        let foreign = self.storage.foreign_names().map_err(storage_error)?;
        let notes = foreign
            .into_iter()
            .map(|name| format!("base/{name} is not the file of a relation"));
        check.report.notes.extend(notes);
        Ok(check.report)
    }
}

/// The relations of a table: its rows, its indexes, its statistics.
fn relations_of(entry: &TableEntry) -> Vec<Relation> {
    let table = &entry.def.name;
    let heap = Relation {
        rel: RelId(entry.rel()),
        name: format!("table \"{table}\""),
        kind: Kind::Heap,
    };
    let indexes = entry.def.all_indexes().map(|index| Relation {
        rel: RelId(index.rel),
        name: format!("index \"{}\" of table \"{table}\"", index.name),
        kind: Kind::Tree,
    });
    let statistics = entry.statistics.iter().map(|kept| Relation {
        rel: RelId(kept.rel),
        name: format!("the statistics of table \"{table}\""),
        kind: Kind::Heap,
    });
    let long_values = entry.def.long_rel.map(|rel| Relation {
        rel: RelId(rel),
        name: format!("the long values of table \"{table}\""),
        kind: Kind::Heap,
    });
    let heaps = std::iter::once(heap).chain(long_values);
    heaps.chain(indexes).chain(statistics).collect()
}

struct Check<'c> {
    engine: &'c Engine,
    interrupts: Interrupts,
    /// The lengths of the relations on disk.
    lengths: BTreeMap<RelId, u32>,
    pages_done: u64,
    pages_total: u64,
    progress: &'c mut dyn FnMut(&CheckProgress<'_>),
    report: CheckReport,
}

impl Check<'_> {
    fn sequence(&mut self, entry: &TableEntry) -> Result<()> {
        let sequence = entry.def.sequence.iter();
        for sequence in sequence {
            self.relation(&Relation {
                rel: RelId(sequence.rel),
                name: format!("sequence \"{}\"", entry.def.name),
                kind: Kind::Sequence,
            })?;
        }
        Ok(())
    }

    fn table(&mut self, session: &mut Session, entry: &TableEntry) -> Result<()> {
        session.begin(Phase::Implicit);
        let oid = entry.def.oid;
        session
            .txn
            .lock_relation(oid, LockMode::Share, &self.interrupts, None)?;
        let entry = session.txn.catalog_state().table(oid).cloned();
        let result = match entry {
            Some(entry) => {
                let table = TableUse::new(oid, LockMode::Share, Some(&entry));
                session.txn.take_snapshot_for(&[table], &self.interrupts, None)?;
                self.locked_table(session, &entry)
            }
            // Dropped meanwhile.
            None => Ok(()),
        };
        session.rollback();
        result
    }

    fn locked_table(&mut self, session: &Session, entry: &TableEntry) -> Result<()> {
        self.report.tables += 1;
        let mut damaged = HashSet::new();
        for relation in relations_of(entry) {
            if !self.relation(&relation)? {
                damaged.insert(relation.rel.0);
            }
        }
        if damaged.contains(&entry.rel()) {
            let table = &entry.def.name;
            let note = format!(
                "table \"{table}\": its rows and indexes were not compared, because its pages are damaged"
            );
            self.report.notes.push(note);
            return Ok(());
        }
        compare(session, entry, &damaged, &self.interrupts, &mut self.report)
    }

    /// Steps 1 and 2 for one relation; whether it is sound.
    fn relation(&mut self, relation: &Relation) -> Result<bool> {
        // Created after the lengths were taken.
        let Some(&blocks) = self.lengths.get(&relation.rel) else {
            return Ok(true);
        };
        let mut findings = self.engine.storage.findings(relation.rel);
        self.report.pages += u64::from(blocks);
        let (storage, rel) = (&self.engine.storage, relation.rel);
        let (done, total) = (&mut self.pages_done, self.pages_total);
        let (interrupts, progress) = (&self.interrupts, &mut *self.progress);
        let mut step = |pages: u32| -> Result<(), CheckError> {
            *done += u64::from(pages);
            progress(&CheckProgress {
                relation: &relation.name,
                pages_done: *done,
                pages_total: total,
            });
            Ok(interrupts.check()?)
        };
        storage
            .check_file(rel, blocks, &mut findings, &mut step)
            .map_err(engine_error)?;
        if findings.is_empty() {
            match relation.kind {
                Kind::CommitLog => storage
                    .check_commit_log(blocks, &mut findings)
                    .map_err(storage_error)?,
                Kind::Heap => storage
                    .check_heap(rel, blocks, &mut findings, &mut step)
                    .map_err(engine_error)?,
                Kind::Tree => {
                    let tree = BTree::new(rel.0);
                    let shape = tree
                        .check_structure(storage, blocks, &mut findings, &mut step)
                        .map_err(engine_error)?;
                    if shape.unnamed > 0 {
                        self.report.notes.push(format!(
                            "{}: {} pages of interrupted splits are reached from their neighbours only; the next insertions complete them",
                            relation.name, shape.unnamed
                        ));
                    }
                }
                Kind::Sequence => {}
            }
        }
        self.note(&relation.name, &findings);
        Ok(findings.is_empty())
    }

    fn note(&mut self, name: &str, findings: &Findings) {
        let list = findings.list();
        let problems = list.iter().map(|finding| format!("{name}: {finding}"));
        self.report.problems.extend(problems);
        let more = findings.count() - list.len() as u64;
        if more > 0 {
            self.report.problems.push(format!("{name}: {more} more problems"));
        }
    }
}

/// An error of the storage or of the engine; the storage's passes return it.
struct CheckError(EngineError);

impl From<clearway_storage::StorageError> for CheckError {
    fn from(error: clearway_storage::StorageError) -> Self {
        CheckError(storage_error(error))
    }
}

impl From<EngineError> for CheckError {
    fn from(error: EngineError) -> Self {
        CheckError(error)
    }
}

fn engine_error(error: CheckError) -> EngineError {
    error.0
}

/// Step 3, except for indexes that are `damaged`.
fn compare(
    session: &Session,
    entry: &TableEntry,
    damaged: &HashSet<u32>,
    interrupts: &Interrupts,
    report: &mut CheckReport,
) -> Result<()> {
    // Per index, the (key, root) pairs that must be found.
    let mut wanted: Vec<HashSet<(Vec<u8>, Tid)>> = vec![HashSet::new(); entry.def.indexes.len()];
    let context = session.txn.context();
    let mut problems = Vec::new();
    let mut pieces = 0;
    let mut rows = Heap::new(entry.rel()).scan(&context).map_err(storage_error)?;
    loop {
        let next = rows.next_with_root(&context, |root, bytes| {
            let codec = &entry.def.codec;
            codec.each_pointer(bytes, |pointer| pieces += piece_count(&pointer))?;
            let row = whole_row(session.txn.storage(), interrupts, &entry.def, bytes)?;
            if let Some(column) = row.iter().position(|value| !value.is_whole()) {
                let name = &entry.def.columns[column].name;
                problems.push(format!("a value of column \"{name}\" is damaged"));
            }
            for (index, wanted) in entry.def.indexes.iter().zip(&mut wanted) {
                let (entry, key) = entry_of(index, &row)?;
                if entry != IndexEntry::Absent {
                    wanted.insert((key, root));
                }
            }
            Ok::<(), EngineError>(())
        });
        match next.map_err(storage_error)? {
            None => break,
            Some(Ok(())) => {}
            Some(Err(error)) => problems.push(format!("a row cannot be read: {error}")),
        }
        report.rows += 1;
        if report.rows.is_multiple_of(1_024) {
            interrupts.check()?;
        }
    }
    if let Some(rel) = entry.def.long_rel.filter(|rel| !damaged.contains(rel)) {
        let mut seen = 0;
        let mut scan = Heap::new(rel).scan(&context).map_err(storage_error)?;
        while scan.next(&context, |_, _| ()).map_err(storage_error)?.is_some() {
            seen += 1;
            interrupts.check()?;
        }
        if seen != pieces {
            problems.push(format!(
                "its rows lead to {pieces} pieces of long values, and there are {seen}"
            ));
        }
    }
    for (index, wanted) in entry.def.indexes.iter().zip(wanted) {
        if damaged.contains(&index.rel) {
            continue;
        }
        let mut comparison = Comparison {
            session,
            entry,
            index,
            wanted,
            found: 0,
            last: None,
            problems: Vec::new(),
        };
        comparison.entries(interrupts)?;
        report.index_entries += comparison.found;
        problems.extend(comparison.finish());
    }
    let table = &entry.def.name;
    let listed = problems.into_iter().take(PROBLEMS_MAX);
    report
        .problems
        .extend(listed.map(|problem| format!("table \"{table}\": {problem}")));
    Ok(())
}

/// One index against the rows.
struct Comparison<'c> {
    session: &'c Session,
    entry: &'c TableEntry,
    index: &'c IndexDef,
    /// The entries that must still be found.
    wanted: HashSet<(Vec<u8>, Tid)>,
    found: u64,
    /// The last entry of a visible row, if its key counts for uniqueness.
    last: Option<(Vec<u8>, Tid)>,
    problems: Vec<String>,
}

impl Comparison<'_> {
    fn entries(&mut self, interrupts: &Interrupts) -> Result<()> {
        let mut cursor = BTree::new(self.index.rel).range(&[], None, Direction::Forward);
        let mut batch = Vec::new();
        let mut more = true;
        while more && self.problems.len() < PROBLEMS_MAX {
            interrupts.check()?;
            batch.clear();
            more = cursor
                .next_entries(&self.session.engine.storage, BATCH, &mut batch)
                .map_err(storage_error)?;
            for (key, tid) in batch.drain(..) {
                self.entry(key, tid, interrupts)?;
            }
        }
        Ok(())
    }

    fn entry(&mut self, key: Vec<u8>, tid: Tid, interrupts: &Interrupts) -> Result<()> {
        let heap = Heap::new(self.entry.rel());
        let storage = &self.session.engine.storage;
        let index = &self.index.name;
        if let Some(problem) = heap.entry_problem(storage, tid).map_err(storage_error)? {
            self.problems.push(format!(
                "index \"{index}\" has an entry that leads to {tid:?}: {problem}"
            ));
            return Ok(());
        }
        let context = self.session.txn.context();
        let found = heap.fetch(&context, tid, |_, bytes| bytes.to_vec());
        let Some(bytes) = found.map_err(storage_error)? else {
            return Ok(());
        };
        let Ok(row) = whole_row(storage, interrupts, &self.entry.def, &bytes) else {
            // The scan has said so.
            return Ok(());
        };
        let (row_entry, row_key) = entry_of(self.index, &row)?;
        if row_entry == IndexEntry::Absent || row_key != key {
            let values: Vec<String> = row.iter().map(describe).collect();
            self.problems.push(format!(
                "index \"{index}\" has an entry at {tid:?} with another key than its row ({})",
                values.join(", ")
            ));
            return Ok(());
        }
        if self.index.unique && row_entry == IndexEntry::Whole {
            if let Some((_, other)) = self.last.as_ref().filter(|(last, _)| *last == key) {
                self.problems.push(format!(
                    "unique index \"{index}\" has the key {} twice, for the rows at {other:?} and {tid:?}",
                    describe_key(&self.entry.def, self.index, &row, &without_session())
                ));
            }
            self.last = Some((key.clone(), tid));
        }
        if self.wanted.remove(&(key, tid)) {
            self.found += 1;
        } else {
            self.problems.push(format!(
                "index \"{index}\" leads to the row at {tid:?}, which the scan did not find or found twice"
            ));
        }
        Ok(())
    }

    /// The faults. Rows without an entry, if all entries were read.
    fn finish(mut self) -> Vec<String> {
        if self.problems.len() < PROBLEMS_MAX {
            let mut missing: Vec<Tid> = self.wanted.into_iter().map(|(_, root)| root).collect();
            missing.sort_unstable();
            let index = &self.index.name;
            self.problems.extend(
                missing
                    .iter()
                    .map(|root| format!("index \"{index}\" has no entry for the row at {root:?}")),
            );
        }
        self.problems
    }
}

/// The row's entry, and its key.
fn entry_of(index: &IndexDef, row: &[crate::Value]) -> Result<(IndexEntry, Vec<u8>)> {
    let mut key = Vec::new();
    let entry = index.entry(row, &without_session(), &mut key)?;
    Ok((entry, key))
}

/// A context for the expressions of indexes, which ask for nothing of a session.
fn without_session() -> EvalContext<'static> {
    EvalContext::new(&[], &NoSession)
}
