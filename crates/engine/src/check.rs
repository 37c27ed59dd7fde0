//! Do the indexes agree with the heaps? Asked after every recovery of the crash test.
//!
//! For each table, under one snapshot: every visible row must have an entry with its key in every index, and every entry
//! that leads to a visible row must bear that row's key. Entries that lead to dead rows are nobody's business but
//! vacuum's.

use std::collections::HashSet;
use std::sync::Arc;

use clearway_storage::btree::{BTree, Direction};
use clearway_storage::heap::{Heap, Tid};
use clearway_txn::LockMode;

use crate::activity::SessionInfo;
use crate::catalog::TableEntry;
use crate::convert::storage_error;
use crate::engine::Engine;
use crate::error::Result;
use crate::executor::unique::describe;
use crate::interrupt::Interrupts;
use crate::session::Session;
use crate::sql::IndexDef;
use crate::transaction::Phase;
use crate::value::key::encode_key_of_row;

/// How many index entries are read at a time.
const BATCH: usize = 256;

/// More problems than this in one table are not listed.
const PROBLEMS_MAX: usize = 20;

/// What [`Engine::check`] looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Tables looked at.
    pub tables: u64,
    /// Visible rows found by scanning the heaps.
    pub rows: u64,
    /// Index entries found to lead to a row with their key.
    pub index_entries: u64,
    /// What does not agree, in words; empty when all is well.
    pub problems: Vec<String>,
}

impl Engine {
    /// Whether every index agrees with its heap, over all tables.
    pub fn check(self: &Arc<Self>) -> Result<CheckReport> {
        let mut report = CheckReport::default();
        let mut session = self.session(SessionInfo::default())?;
        for entry in self.catalog.state().tables() {
            check_table(&mut session, &entry, &mut report)?;
        }
        Ok(report)
    }
}

fn check_table(session: &mut Session, entry: &TableEntry, report: &mut CheckReport) -> Result<()> {
    session.begin(Phase::Implicit);
    let interrupts = session.interrupts();
    session
        .txn
        .lock_relation(entry.def.oid, LockMode::AccessShare, &interrupts, None)?;
    session.txn.take_snapshot();
    let result = compare(session, entry, &interrupts, report);
    session.rollback();
    result
}

fn compare(
    session: &Session,
    entry: &TableEntry,
    interrupts: &Interrupts,
    report: &mut CheckReport,
) -> Result<()> {
    let Some(entry) = session.txn.catalog_state().table(entry.def.oid).cloned() else {
        return Ok(());
    };
    report.tables += 1;
    // Per index, the (key, root) pairs that must be found.
    let mut wanted: Vec<HashSet<(Vec<u8>, Tid)>> = vec![HashSet::new(); entry.def.indexes.len()];
    let context = session.txn.context();
    let heap = Heap::new(entry.rel());
    let mut rows = heap.scan(&context).map_err(storage_error)?;
    loop {
        let next = rows.next_with_root(&context, |root, bytes| {
            let row = entry.def.codec.decode_all(bytes)?;
            for (index, wanted) in entry.def.indexes.iter().zip(&mut wanted) {
                wanted.insert((key_of(index, &row), root));
            }
            Ok(())
        });
        match next.map_err(storage_error)? {
            None => break,
            Some(result) => result?,
        }
        report.rows += 1;
        if report.rows.is_multiple_of(1_024) {
            interrupts.check()?;
        }
    }
    let mut problems = Vec::new();
    for (index, mut wanted) in entry.def.indexes.iter().zip(wanted) {
        let mut cursor = BTree::new(index.rel).range(&[], None, Direction::Forward);
        let mut batch = Vec::new();
        let mut more = true;
        while more {
            interrupts.check()?;
            batch.clear();
            more = cursor
                .next_entries(&session.engine.storage, BATCH, &mut batch)
                .map_err(storage_error)?;
            for (key, tid) in batch.drain(..) {
                let found = heap.fetch(&context, tid, |_, bytes| entry.def.codec.decode_all(bytes));
                let Some(row) = found.map_err(storage_error)? else {
                    continue;
                };
                let row = row?;
                if key_of(index, &row) != key {
                    let values: Vec<String> = row.iter().map(describe).collect();
                    problems.push(format!(
                        "index \"{}\" has an entry at {tid:?} with another key than its row ({})",
                        index.name,
                        values.join(", ")
                    ));
                } else if wanted.remove(&(key, tid)) {
                    report.index_entries += 1;
                } else {
                    problems.push(format!(
                        "index \"{}\" leads to the row at {tid:?}, which the scan did not find or found twice",
                        index.name
                    ));
                }
            }
        }
        for (_, root) in wanted {
            problems.push(format!(
                "index \"{}\" has no entry for the row at {root:?}",
                index.name
            ));
        }
    }
    let table = &entry.def.name;
    report.problems.extend(
        problems
            .into_iter()
            .take(PROBLEMS_MAX)
            .map(|problem| format!("{table}: {problem}")),
    );
    Ok(())
}

fn key_of(index: &IndexDef, row: &[crate::Value]) -> Vec<u8> {
    let mut key = Vec::new();
    encode_key_of_row(row, &index.columns, &index.types, &mut key);
    key
}
