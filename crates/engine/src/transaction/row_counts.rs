//! Counts of the rows that a session's transactions have added and changed and of the versions that have died, for the
//! background worker, which vacuums and analyzes by them.
//!
//! The numbers need not be exact, so a session saves them up and hands them over now and then: that spares all
//! sessions a shared cache line per row.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::catalog::{Catalog, CatalogState};

/// Row counts are handed over when this many have come together.
const COUNTED_MAX: u64 = 64;

/// Rows of one table that statements have changed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowChanges {
    pub(crate) inserted: u64,
    pub(crate) updated: u64,
    pub(crate) deleted: u64,
}

impl RowChanges {
    /// `count` rows were inserted.
    pub(crate) fn inserted(count: u64) -> RowChanges {
        RowChanges {
            inserted: count,
            ..RowChanges::default()
        }
    }

    /// `count` rows were updated.
    pub(crate) fn updated(count: u64) -> RowChanges {
        RowChanges {
            updated: count,
            ..RowChanges::default()
        }
    }

    /// `count` rows were deleted.
    pub(crate) fn deleted(count: u64) -> RowChanges {
        RowChanges {
            deleted: count,
            ..RowChanges::default()
        }
    }

    /// The number of rows that were changed.
    #[inline]
    pub(crate) fn count(self) -> u64 {
        self.inserted + self.updated + self.deleted
    }
}

impl std::ops::AddAssign for RowChanges {
    #[inline]
    fn add_assign(&mut self, other: RowChanges) {
        self.inserted += other.inserted;
        self.updated += other.updated;
        self.deleted += other.deleted;
    }
}

/// Rows of one table that came and went.
#[derive(Debug, Default)]
struct RowCount {
    oid: u32,
    /// Of transactions that have ended.
    live: i64,
    dead: u64,
    /// Of those that committed.
    changed: RowChanges,
    /// Of the running one, should it commit.
    now: RowChanges,
    /// Scans of the whole table that were begun.
    scans: u64,
}

impl RowCount {
    /// The running transaction has ended. Each INSERT gives a live row, each UPDATE a dead version, each DELETE turns a
    /// live row into a dead version. Rolled back, no row comes, goes or changes, and what dies is what INSERT and UPDATE
    /// have stored.
    fn settle(&mut self, committed: bool) {
        let now = std::mem::take(&mut self.now);
        if committed {
            self.live += now.inserted.cast_signed() - now.deleted.cast_signed();
            self.dead += now.updated + now.deleted;
            self.changed += now;
        } else {
            self.dead += now.inserted + now.updated;
        }
    }
}

/// Pieces of a table's long values that the running transaction has written and deleted.
#[derive(Debug, Clone, Copy)]
struct PieceCount {
    oid: u32,
    written: u64,
    deleted: u64,
}

/// Scans of an index that were begun.
#[derive(Debug, Clone, Copy)]
struct IndexScans {
    table: u32,
    index: u32,
    scans: u64,
}

/// The counts of the running transaction for a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct TableCount {
    pub(super) oid: u32,
    now: RowChanges,
}

/// The counts of a session that it has not handed over.
#[derive(Debug, Default)]
pub(super) struct RowCounts {
    tables: Vec<RowCount>,
    index_scans: Vec<IndexScans>,
    counted: u64,
    /// Tables that the running transaction has truncated.
    truncated: Vec<u32>,
    /// In a cell, since rows are encoded beside what reads the transaction.
    pieces: RefCell<Vec<PieceCount>>,
}

impl RowCounts {
    /// The running statement has changed rows of a table.
    #[inline]
    pub(super) fn count(&mut self, oid: u32, changes: RowChanges) {
        let count = changes.count();
        if count == 0 {
            return;
        }
        self.table(oid).now += changes;
        self.counted += count;
    }

    /// The running statement has begun to read all of a table.
    pub(super) fn count_scan(&mut self, oid: u32) {
        self.table(oid).scans += 1;
        self.counted += 1;
    }

    /// The running statement has begun to read a table by an index.
    #[inline]
    pub(super) fn count_index_scan(&mut self, table: u32, index: u32) {
        match self.index_scans.iter_mut().find(|count| count.index == index) {
            Some(count) => count.scans += 1,
            None => self.index_scans.push(IndexScans {
                table,
                index,
                scans: 1,
            }),
        }
        self.counted += 1;
    }

    #[inline]
    fn table(&mut self, oid: u32) -> &mut RowCount {
        let place = self.tables.iter().position(|count| count.oid == oid);
        let place = place.unwrap_or_else(|| {
            self.tables.push(RowCount {
                oid,
                ..RowCount::default()
            });
            self.tables.len() - 1
        });
        &mut self.tables[place]
    }

    /// The running transaction has written and deleted pieces of a table's long values.
    pub(super) fn count_pieces(&self, oid: u32, written: u64, deleted: u64) {
        let mut pieces = self.pieces.borrow_mut();
        match pieces.iter_mut().find(|count| count.oid == oid) {
            Some(count) => {
                count.written += written;
                count.deleted += deleted;
            }
            None => pieces.push(PieceCount {
                oid,
                written,
                deleted,
            }),
        }
    }

    /// The counts of the running transaction for a table.
    pub(super) fn of(&self, oid: u32) -> TableCount {
        let count = self.tables.iter().find(|count| count.oid == oid);
        TableCount {
            oid,
            now: count.map_or_else(RowChanges::default, |count| count.now),
        }
    }

    /// The number of tables that it has truncated.
    pub(super) fn truncation_count(&self) -> usize {
        self.truncated.len()
    }

    /// The transaction goes back to where the counts of these tables were those, and it had truncated so many. Of what it
    /// has counted since, as of a transaction that is rolled back, what was stored is dead.
    pub(super) fn go_back(&mut self, counts: impl Iterator<Item = TableCount>, truncated: usize) {
        for before in counts {
            if let Some(count) = self.tables.iter_mut().find(|count| count.oid == before.oid) {
                let (then, now) = (before.now, std::mem::replace(&mut count.now, before.now));
                count.dead += (now.inserted + now.updated).saturating_sub(then.inserted + then.updated);
            }
        }
        self.truncated.truncate(truncated);
    }

    /// The table has no rows any more, if the transaction commits.
    pub(super) fn count_truncation(&mut self, oid: u32) {
        self.tables.retain(|count| count.oid != oid);
        self.truncated.push(oid);
    }

    /// True if there is enough to hand over.
    #[inline]
    pub(super) fn are_many(&self) -> bool {
        self.counted >= COUNTED_MAX
    }

    /// The transaction has ended. Its session sees the tables of `overlay`, temporary ones among them, if it is there. The rows
    /// that it had changed.
    pub(super) fn settle(
        &mut self,
        committed: bool,
        catalog: &Catalog,
        overlay: Option<&Arc<CatalogState>>,
    ) -> RowChanges {
        let state = || overlay.map_or_else(|| catalog.state(), Arc::clone);
        for oid in self.truncated.drain(..) {
            if committed && let Some(entry) = state().table(oid) {
                entry.runtime.live_rows.store(0, Ordering::Relaxed);
                entry.runtime.dead_rows.store(0, Ordering::Relaxed);
                entry.runtime.dead_pieces.store(0, Ordering::Relaxed);
            }
        }
        for count in self.pieces.get_mut().drain(..) {
            let dead = if committed { count.deleted } else { count.written };
            if let Some(entry) = state().table(count.oid) {
                entry.runtime.dead_pieces.fetch_add(dead, Ordering::Relaxed);
            }
        }
        let mut changed = RowChanges::default();
        for count in &mut self.tables {
            changed += count.now;
            count.settle(committed);
        }
        if self.are_many() {
            self.hand_over(&state());
        }
        changed
    }

    /// Adds the counts of ended transactions to the tables'.
    pub(super) fn hand_over(&mut self, state: &CatalogState) {
        for count in self.tables.drain(..) {
            if let Some(entry) = state.table(count.oid) {
                entry.runtime.live_rows.fetch_add(count.live, Ordering::Relaxed);
                entry.runtime.dead_rows.fetch_add(count.dead, Ordering::Relaxed);
                let runtime = &entry.runtime;
                for (total, more) in [
                    (&runtime.changed_rows, count.changed.count()),
                    (&runtime.inserted, count.changed.inserted),
                    (&runtime.updated, count.changed.updated),
                    (&runtime.deleted, count.changed.deleted),
                    (&runtime.scans, count.scans),
                ] {
                    if more > 0 {
                        total.fetch_add(more, Ordering::Relaxed);
                    }
                }
            }
        }
        for count in self.index_scans.drain(..) {
            if let Some(entry) = state.table(count.table) {
                entry.runtime.count_index_scans(count.index, count.scans);
            }
        }
        self.counted = 0;
    }
}
