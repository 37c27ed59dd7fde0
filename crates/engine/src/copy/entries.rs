//! Index entries of a batch's rows.
//!
//! Each index takes its entries in the order of keys, so that neighbours go into a leaf together. What a client sees is
//! what one row after the other would give, each with all its entries:
//!
//! - A conflict does not end the work on its index: a row in front of it may have one that sorts behind it. The first
//!   conflict in the order of rows, and of one row's indexes, is the statement's error.
//! - A key that depends on a running transaction is put off until all others are in. Such keys then wait one after the
//!   other, in the order of rows, up to the first row with a conflict.
//!
//! Within a batch, rows with one key meet in the unique check of the second, since entries of one key ascend by row. The
//! heap may have stored the later row at a lower place, and its entry comes first then: so of the two it is the later row
//! that has the conflict, whichever was refused.
//!
//! An entry of a deferrable constraint that meets another row goes in all the same, and its row is noted
//! ([`crate::executor::unique`]).

use clearway_storage::btree::{BTree, InsertOutcome, NewEntry};
use clearway_storage::heap::Tid;

use crate::convert::index_error;
use crate::copy::strings::Strings;
use crate::executor::marks::mark_key;
use crate::executor::unique::{insert_entry, insert_in_doubt, note_doubt, violation};
use crate::executor::{Execution, heap_rel};
use clearway_sql::error::{EngineError, Result};
use clearway_sql::value::Value;
use clearway_sql::{EvalContext, IndexDef, IndexEntry, TableDef};

/// The keys of a batch's rows in one index.
pub(super) struct IndexKeys<'t> {
    index: &'t IndexDef,
    keys: Strings,
    /// True for a key that no other row may have.
    unique: Vec<bool>,
    /// True for a row without an entry.
    is_absent: Vec<bool>,
}

impl<'t> IndexKeys<'t> {
    pub(super) fn new(index: &'t IndexDef) -> IndexKeys<'t> {
        IndexKeys {
            index,
            keys: Strings::default(),
            unique: Vec::new(),
            is_absent: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, row: &[Value], eval: &EvalContext<'_>, key: &mut Vec<u8>) -> Result<()> {
        let entry = self.index.entry(row, eval, key)?;
        self.keys.push(key);
        self.unique.push(self.index.unique && entry == IndexEntry::Whole);
        self.is_absent.push(entry == IndexEntry::Absent);
        Ok(())
    }

    pub(super) fn byte_count(&self) -> usize {
        self.keys.byte_count()
    }

    pub(super) fn clear(&mut self) {
        self.keys.clear();
        self.unique.clear();
        self.is_absent.clear();
    }

    /// The numbers of the rows in the order of their entries.
    fn order(&self, tids: &[Tid]) -> Vec<usize> {
        let rows = (0..tids.len()).filter(|row| !self.is_absent[*row]);
        let mut order: Vec<usize> = rows.collect();
        let entry = |row: usize| (self.keys.get(row), tids[row]);
        if !order.is_sorted_by(|a, b| entry(*a) < entry(*b)) {
            order.sort_unstable_by(|a, b| entry(*a).cmp(&entry(*b)));
        }
        order
    }
}

/// A row's entry in one of its table's indexes, in the order in which single rows would be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    row: usize,
    index: usize,
}

/// The entries that are not in their indexes.
#[derive(Debug, Default)]
struct Refused {
    /// The first one whose key another row has.
    first_duplicate: Option<Entry>,
    /// Those that depend on a running transaction.
    waiting: Vec<Entry>,
}

/// Enters the rows of a batch, which are stored at `tids`, into all indexes of their table. An error comes with the place
/// of its row, or of the last one where it is about no single row.
pub(super) fn insert_entries_of(
    execution: &mut Execution<'_>,
    table: &TableDef,
    rows: &Strings,
    keys: &[IndexKeys<'_>],
    tids: &[Tid],
) -> std::result::Result<(), (EngineError, usize)> {
    let last = tids.len().saturating_sub(1);
    let mut refused = Refused::default();
    for (index, keys) in keys.iter().enumerate() {
        insert_into_index(execution, table, (index, keys), tids, &mut refused)
            .map_err(|error| (error, last))?;
    }
    let Refused {
        first_duplicate,
        mut waiting,
    } = refused;
    waiting.retain(|entry| first_duplicate.is_none_or(|first| *entry < first));
    waiting.sort_unstable();
    for Entry { row, index } in waiting {
        let values = execution
            .whole_row(table, rows.get(row))
            .map_err(|error| (error, row))?;
        insert_entry(execution, table, keys[index].index, &values, tids[row])
            .map_err(|error| (error, row))?;
    }
    match first_duplicate {
        None => Ok(()),
        Some(Entry { row, index }) => {
            let values = execution
                .whole_row(table, rows.get(row))
                .map_err(|error| (error, row))?;
            execution.txn.check_serializable().map_err(|error| (error, row))?;
            Err((violation(execution, table, keys[index].index, &values), row))
        }
    }
}

/// Enters the rows into one index, as far as no other row is in the way.
fn insert_into_index(
    execution: &mut Execution<'_>,
    table: &TableDef,
    (index, keys): (usize, &IndexKeys<'_>),
    tids: &[Tid],
    refused: &mut Refused,
) -> Result<()> {
    let tree = BTree::new(keys.index.rel);
    let order = keys.order(tids);
    let entries: Vec<NewEntry<'_>> = order
        .iter()
        .map(|row| NewEntry {
            key: keys.keys.get(*row),
            tid: tids[*row],
            unique: keys.unique[*row],
        })
        .collect();
    if execution.txn.marks_writes() {
        for entry in &entries {
            mark_key(execution, table, keys.index, entry.key)?;
        }
    }
    let mut done = 0;
    while done < entries.len() {
        execution.tick()?;
        let run = tree
            .insert_run(&execution.txn.context(), &entries[done..], heap_rel(table))
            .map_err(|error| index_error(error, table, keys.index))?;
        done += run.count;
        match run.conflict {
            None | Some(InsertOutcome::Inserted) => continue,
            Some(_) if keys.index.check_time.deferrable => {
                let entry = &entries[done];
                insert_in_doubt(execution, table, keys.index, entry.key, entry.tid)?;
                note_doubt(execution, table, keys.index, entry.tid)?;
            }
            Some(InsertOutcome::WaitFor(_)) => refused.waiting.push(Entry {
                row: order[done],
                index,
            }),
            Some(InsertOutcome::Duplicate { tid }) => {
                let refused_row = order[done];
                let row = match tids.iter().position(|other| *other == tid) {
                    Some(other) => refused_row.max(other),
                    None => refused_row,
                };
                let found = Entry { row, index };
                refused.first_duplicate =
                    Some(refused.first_duplicate.map_or(found, |first| first.min(found)));
            }
        }
        done += 1;
    }
    Ok(())
}
