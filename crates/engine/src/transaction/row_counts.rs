//! Counts of the rows that a session's transactions have added and of the versions that have died, for the background
//! vacuum.
//!
//! The numbers need not be exact, so a session saves them up and hands them over now and then: that spares all
//! sessions a shared cache line per row.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::catalog::{Catalog, CatalogState};

/// Row counts are handed over when this many have come together.
const COUNTED_MAX: u64 = 64;

/// Rows of one table that came and went.
#[derive(Debug, Default)]
struct RowCount {
    oid: u32,
    /// Of transactions that have ended.
    live: i64,
    dead: u64,
    /// Of the running one, should it commit.
    now_live: i64,
    now_dead: u64,
}

impl RowCount {
    /// The running transaction has ended. Each INSERT counts one live row, each UPDATE one dead version, each
    /// DELETE one of both, taken from the live ones. Rolled back, no row comes or goes, and what dies is what
    /// INSERT and UPDATE have stored: the sum.
    fn settle(&mut self, committed: bool) {
        let (live, dead) = (
            std::mem::take(&mut self.now_live),
            std::mem::take(&mut self.now_dead),
        );
        if committed {
            self.live += live;
            self.dead += dead;
        } else {
            self.dead += dead.saturating_add_signed(live);
        }
    }
}

/// The counts of a session that it has not handed over.
#[derive(Debug, Default)]
pub(super) struct RowCounts {
    tables: Vec<RowCount>,
    counted: u64,
    /// Tables that the running transaction has truncated.
    truncated: Vec<u32>,
}

impl RowCounts {
    /// The running statement has added `live` rows to a table, and `dead` versions have died.
    #[inline]
    pub(super) fn count(&mut self, oid: u32, live: i64, dead: u64) {
        if live == 0 && dead == 0 {
            return;
        }
        match self.tables.iter_mut().find(|count| count.oid == oid) {
            Some(count) => {
                count.now_live += live;
                count.now_dead += dead;
            }
            None => self.tables.push(RowCount {
                oid,
                now_live: live,
                now_dead: dead,
                ..RowCount::default()
            }),
        }
        self.counted += live.unsigned_abs() + dead;
    }

    /// The table has no rows any more, if the transaction commits.
    pub(super) fn count_truncation(&mut self, oid: u32) {
        self.tables.retain(|count| count.oid != oid);
        self.truncated.push(oid);
    }

    /// The transaction has ended. Its session sees the tables of `overlay`, temporary ones among them, if it is there.
    pub(super) fn settle(&mut self, committed: bool, catalog: &Catalog, overlay: Option<&Arc<CatalogState>>) {
        let state = || overlay.map_or_else(|| catalog.state(), Arc::clone);
        for oid in self.truncated.drain(..) {
            if committed && let Some(entry) = state().table(oid) {
                entry.runtime.live_rows.store(0, Ordering::Relaxed);
                entry.runtime.dead_rows.store(0, Ordering::Relaxed);
            }
        }
        for count in &mut self.tables {
            count.settle(committed);
        }
        if self.counted >= COUNTED_MAX {
            self.hand_over(&state());
        }
    }

    /// Adds the counts of ended transactions to the tables'.
    pub(super) fn hand_over(&mut self, state: &CatalogState) {
        for count in self.tables.drain(..) {
            if let Some(entry) = state.table(count.oid) {
                entry.runtime.live_rows.fetch_add(count.live, Ordering::Relaxed);
                entry.runtime.dead_rows.fetch_add(count.dead, Ordering::Relaxed);
            }
        }
        self.counted = 0;
    }
}
