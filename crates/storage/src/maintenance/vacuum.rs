//! Vacuum: pruning every page, and giving back the line pointers of rows that are gone.
//!
//! 1. Prune each page; note its Dead line pointers and its free space.
//! 2. Remove the index entries that lead to them.
//! 3. Make them Unused.
//!
//! A page that has not changed since a vacuum saw it settled is passed over (`storage::settled_pages`).
//!
//! This order keeps R3 of the heap. Between 1 and 3 an index scan that still holds such an entry finds a Dead
//! line pointer. After 3 the scan's snapshot sees no row there, because a row put there later was inserted
//! after the snapshot.

use std::collections::HashSet;

use clearway_txn::Xid;

use crate::btree::BTree;
use crate::buffer::{FrameRing, PageExclusive};
use crate::error::Result;
use crate::heap::Tid;
use crate::heap::compaction::compact;
use crate::heap::layout::{Line, Tuple, free_space, line, lines, slot_count};
use crate::heap::prune::prune;
use crate::heap::visibility::{is_live, is_settled};
use crate::page::{self, PageId, RelId};
use crate::storage::Storage;
use crate::storage::settled_pages::{SettledPage, SettledPages};

/// Number of dead rows that vacuum notes before it goes through the indexes.
const BATCH: usize = 1 << 20;

/// Result of a vacuum.
#[derive(Debug, Default, Clone, Copy)]
#[non_exhaustive]
pub struct VacuumStats {
    /// Pages of the heap, as far as vacuum came.
    pub pages: u32,
    /// Those of them that were passed over: nothing has changed there since a vacuum found nothing to do.
    pub settled_pages: u32,
    /// Rows that a new snapshot sees, with a change that is under way counted when it commits. Older versions, kept for
    /// older snapshots, do not count.
    pub live_rows: u64,
    /// Versions removed.
    pub removed_versions: u64,
    /// Line pointers given back.
    pub removed_rows: u64,
}

/// The steps of a vacuum, in their order; after [`VacuumPhase::Lines`] it may go on with [`VacuumPhase::Pages`].
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum VacuumPhase {
    /// Step 1.
    #[default]
    Pages,
    /// Step 2.
    Indexes,
    /// Step 3.
    Lines,
}

/// The progress of a vacuum.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct VacuumProgress {
    /// Its step.
    pub phase: VacuumPhase,
    /// Pages of the heap at its begin.
    pub pages: u32,
    /// Pages that the vacuum has pruned or passed over.
    pub scanned: u32,
    /// Pages up to which it has given back line pointers.
    pub vacuumed: u32,
    /// Rounds through all indexes.
    pub index_rounds: u32,
    /// Dead rows whose line pointers are to be given back,
    pub dead: usize,
    /// and the number of them that ends step 1 early.
    pub dead_max: usize,
}

/// Follows a vacuum, and may end it. A function that tells whether it is to end follows nothing.
pub trait VacuumWatch {
    /// True if the vacuum is to end, at a page's end.
    fn is_cancelled(&self) -> bool;

    /// The vacuum begins another page or another step. Called without a latch.
    fn reached(&self, _at: VacuumProgress) {}
}

impl<F: Fn() -> bool> VacuumWatch for F {
    fn is_cancelled(&self) -> bool {
        self()
    }
}

/// Vacuums the heap `rel` with its indexes, as far as `horizon` allows. `watch` may end it early, at a page's
/// end; the caller holds a lock that keeps other vacuums and changes of definition away.
pub fn vacuum(
    storage: &Storage,
    rel: RelId,
    indexes: &[RelId],
    horizon: Xid,
    watch: &dyn VacuumWatch,
) -> Result<VacuumStats> {
    let mut settled = storage.settled_pages.take(rel);
    let mut run = Run {
        storage,
        rel,
        indexes,
        horizon,
        ring: storage.write_ring(),
        settled: &mut settled,
        dead: Vec::new(),
        stats: VacuumStats::default(),
        watch,
        at: VacuumProgress {
            dead_max: BATCH,
            ..VacuumProgress::default()
        },
    };
    let done = run.all_pages();
    let stats = run.stats;
    // Also after an error: what was noted is true.
    storage.settled_pages.put(rel, settled);
    done.map(|()| stats)
}

/// A vacuum that is under way.
struct Run<'r> {
    storage: &'r Storage,
    rel: RelId,
    indexes: &'r [RelId],
    horizon: Xid,
    ring: FrameRing,
    settled: &'r mut SettledPages,
    /// Dead line pointers whose index entries are still there.
    dead: Vec<Tid>,
    stats: VacuumStats,
    watch: &'r dyn VacuumWatch,
    at: VacuumProgress,
}

impl Run<'_> {
    fn all_pages(&mut self) -> Result<()> {
        self.at.pages = self.storage.block_count(self.rel)?;
        for block in 0..self.at.pages {
            self.reached(VacuumPhase::Pages);
            if self.watch.is_cancelled() {
                return Ok(());
            }
            if !self.is_settled(block)? {
                self.visit(block)?;
            }
            self.stats.pages += 1;
            self.at.scanned += 1;
            if self.dead.len() >= BATCH {
                self.remove()?;
            }
        }
        self.remove()
    }

    fn reached(&mut self, phase: VacuumPhase) {
        self.at.phase = phase;
        if phase != VacuumPhase::Lines {
            self.at.dead = self.dead.len();
        }
        self.watch.reached(self.at);
    }

    /// True if the page is as a vacuum has noted it (N1 and N3 of `settled_pages`).
    fn is_settled(&mut self, block: u32) -> Result<bool> {
        let Some(note) = self.settled.get(block).filter(|note| !note.dead) else {
            return Ok(false);
        };
        let page = PageId { rel: self.rel, block };
        let page = self.storage.pin_in(page, Some(&mut self.ring))?.into_shared();
        if page::lsn(page.header()) != note.lsn {
            return Ok(false);
        }
        self.stats.settled_pages += 1;
        self.stats.live_rows += u64::from(note.rows);
        self.storage
            .fsm
            .record(self.rel, block, free_space(page.header()));
        Ok(true)
    }

    /// Step 1.
    fn visit(&mut self, block: u32) -> Result<()> {
        let storage = self.storage;
        storage.make_log_room()?;
        let page = PageId { rel: self.rel, block };
        let mut page = storage.pin_in(page, Some(&mut self.ring))?.into_exclusive();
        let pruned = prune(storage, &mut page, self.horizon)?;
        let front = page.hinted().front();
        self.stats.removed_versions += pruned.removed as u64;
        let dead_before = self.dead.len();
        self.dead.extend(
            lines(front)
                .filter(|(_, line)| *line == Line::Dead)
                .map(|(slot, _)| Tid { block, slot }),
        );
        let rows = count_rows(storage, &page)?;
        self.stats.live_rows += u64::from(rows.live);
        let look = rows.settled.then(|| SettledPage {
            lsn: page::lsn(page.header()),
            rows: rows.live,
            dead: self.dead.len() > dead_before,
        });
        self.settled.note(block, look);
        storage.fsm.record(self.rel, block, free_space(front));
        Ok(())
    }

    /// Steps 2 and 3.
    fn remove(&mut self) -> Result<()> {
        if !self.dead.is_empty() {
            self.reached(VacuumPhase::Indexes);
            let set: HashSet<Tid> = self.dead.iter().copied().collect();
            for index in self.indexes {
                BTree::new(index.0).vacuum_delete(self.storage, &set)?;
            }
            self.at.index_rounds += 1;
            self.free_lines()?;
        }
        self.at.vacuumed = self.at.scanned;
        Ok(())
    }

    /// Step 3.
    fn free_lines(&mut self) -> Result<()> {
        let (storage, rel) = (self.storage, self.rel);
        let dead = std::mem::take(&mut self.dead);
        for tids in dead.chunk_by(|a, b| a.block == b.block) {
            let block = tids[0].block;
            self.at.vacuumed = block;
            self.reached(VacuumPhase::Lines);
            let mut change = storage.begin_change(Xid::INVALID)?;
            let mut page = storage
                .pin_in(PageId { rel, block }, Some(&mut self.ring))?
                .into_exclusive();
            let before = page::lsn(page.header());
            for tid in tids {
                debug_assert_eq!(line(page.hinted().front(), tid.slot), Line::Dead, "R3");
            }
            let unused = tids.iter().map(|tid| (tid.slot, Line::Unused));
            compact(&mut change, &mut page, unused);
            let lsn = change.finish()?;
            // N3: all Dead line pointers of that look are those freed now.
            let look = self.settled.get(block).filter(|look| look.lsn == before);
            let now = look.map(|look| SettledPage {
                lsn,
                dead: false,
                ..look
            });
            self.settled.note(block, now);
            storage.fsm.record(rel, block, free_space(page.header()));
        }
        self.stats.removed_rows += dead.len() as u64;
        Ok(())
    }
}

/// The rows of a page.
struct Rows {
    live: u16,
    /// True if all versions are settled. Then each is a live row.
    settled: bool,
}

fn count_rows(storage: &Storage, page: &PageExclusive<'_>) -> Result<Rows> {
    let hinted = page.hinted();
    let mut rows = Rows {
        live: 0,
        settled: !page::is_new(page.header()),
    };
    for slot in 1..=slot_count(page.header()) {
        let Some(tuple) = Tuple::at(hinted, slot) else {
            continue;
        };
        if is_settled(tuple.infomask(), Xid(tuple.xmax())) {
            rows.live += 1;
        } else {
            rows.settled = false;
            rows.live += u16::from(is_live(storage, &tuple)?);
        }
    }
    Ok(rows)
}
