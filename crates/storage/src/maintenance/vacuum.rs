//! Vacuum: pruning every page, and giving back the line pointers of rows that are gone.
//!
//! 1. Prune each page; note its Dead line pointers and its free space.
//! 2. Remove the index entries that lead to them.
//! 3. Make them Unused.
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
use crate::heap::visibility::is_live;
use crate::page::{PageId, RelId};
use crate::storage::Storage;

/// Number of dead rows that vacuum notes before it goes through the indexes.
const BATCH: usize = 1 << 20;

/// Result of a vacuum.
#[derive(Debug, Default, Clone, Copy)]
#[non_exhaustive]
pub struct VacuumStats {
    /// Pages looked at.
    pub pages: u32,
    /// Rows that a new snapshot sees, with a change that is under way counted when it commits. Older versions, kept for
    /// older snapshots, do not count.
    pub live_rows: u64,
    /// Versions removed.
    pub removed_versions: u64,
    /// Line pointers given back.
    pub removed_rows: u64,
}

/// Vacuums the heap `rel` with its indexes, as far as `horizon` allows. `cancel` ends it early, at a page's
/// end; the caller holds a lock that keeps other vacuums and changes of definition away.
pub fn vacuum(
    storage: &Storage,
    rel: RelId,
    indexes: &[RelId],
    horizon: Xid,
    cancel: &dyn Fn() -> bool,
) -> Result<VacuumStats> {
    let mut stats = VacuumStats::default();
    let mut dead: Vec<Tid> = Vec::new();
    let mut ring = storage.write_ring();
    for block in 0..storage.block_count(rel)? {
        if cancel() {
            return Ok(stats);
        }
        storage.make_log_room()?;
        let mut page = storage
            .pin_in(PageId { rel, block }, Some(&mut ring))?
            .into_exclusive();
        let pruned = prune(storage, &mut page, horizon)?;
        let front = page.hinted().front();
        stats.pages += 1;
        stats.removed_versions += pruned.removed as u64;
        stats.live_rows += live_rows(storage, &page)?;
        dead.extend(
            lines(front)
                .filter(|(_, line)| *line == Line::Dead)
                .map(|(slot, _)| Tid { block, slot }),
        );
        storage.fsm.record(rel, block, free_space(front));
        drop(page);
        if dead.len() >= BATCH {
            stats.removed_rows += remove(storage, rel, indexes, &mut dead, &mut ring)?;
        }
    }
    stats.removed_rows += remove(storage, rel, indexes, &mut dead, &mut ring)?;
    Ok(stats)
}

fn live_rows(storage: &Storage, page: &PageExclusive<'_>) -> Result<u64> {
    let hinted = page.hinted();
    let mut count = 0;
    for slot in 1..=slot_count(page.header()) {
        if let Some(tuple) = Tuple::at(hinted, slot) {
            count += u64::from(is_live(storage, &tuple)?);
        }
    }
    Ok(count)
}

/// Steps 2 and 3.
fn remove(
    storage: &Storage,
    rel: RelId,
    indexes: &[RelId],
    dead: &mut Vec<Tid>,
    ring: &mut FrameRing,
) -> Result<u64> {
    if dead.is_empty() {
        return Ok(0);
    }
    let set: HashSet<Tid> = dead.iter().copied().collect();
    for index in indexes {
        BTree::new(index.0).vacuum_delete(storage, &set)?;
    }
    for tids in dead.chunk_by(|a, b| a.block == b.block) {
        let mut change = storage.begin_change(Xid::INVALID)?;
        let mut page = storage
            .pin_in(
                PageId {
                    rel,
                    block: tids[0].block,
                },
                Some(&mut *ring),
            )?
            .into_exclusive();
        for tid in tids {
            debug_assert_eq!(line(page.hinted().front(), tid.slot), Line::Dead, "R3");
        }
        let unused = tids.iter().map(|tid| (tid.slot, Line::Unused));
        compact(&mut change, &mut page, unused);
        change.finish()?;
        storage.fsm.record(rel, tids[0].block, free_space(page.header()));
    }
    Ok(dead.drain(..).count() as u64)
}
