//! Removing dead versions from one page.
//!
//! Pruning removes the dead versions at the front of each HOT chain. The root becomes a Redirect to the first
//! version that stays, or Dead if none stays. At the end of a chain, pruning removes the versions of an updater that
//! rolled back; the version before them still names the first of them, and R2 tells a reader that the slot is used
//! again. The line pointers of removed heap-only versions become Unused; roots do not (R3). Then the remaining tuples
//! move together (`compaction`). One log record holds the moves and the line pointers. Before it, the log names the
//! newest transaction that deleted one of the versions, for the snapshots of standbys (`cleanup`).
//!
//! Under `page_room = compact` a full page is pruned once for each update on it, and has some sixty rows of which one
//! changed. So a chain of one version that stays is recognised by one look at its header, and what pruning learns of
//! inserters is noted in hints. Under `replace` few updates come here.

use clearway_txn::Xid;
use smallvec::SmallVec;

use crate::buffer::PageExclusive;
use crate::error::Result;
use crate::heap::chain::chain;
use crate::heap::compaction::compact;
use crate::heap::layout::{HEAP_ONLY, LINE_POINTER, Line, Tuple, lines};
use crate::heap::once_durable::OnceDurable;
use crate::heap::visibility::{Removable, is_settled, removable, rolled_back};
use crate::page::{self, PAGE_SIZE};
use crate::storage::Storage;

/// Result of pruning a page.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Pruned {
    /// Versions removed.
    pub(crate) removed: usize,
    /// Versions that only the disk keeps.
    pub(crate) once_durable: OnceDurable,
}

/// Some of a page's line pointers.
#[derive(Default)]
struct Slots([u64; PAGE_SIZE / LINE_POINTER / 64]);

impl Slots {
    fn insert(&mut self, slot: u16) {
        self.0[usize::from(slot) / 64] |= 1 << (slot % 64);
    }

    /// Those that are not in `others`.
    fn without(&self, others: &Slots) -> impl Iterator<Item = u16> {
        self.0
            .iter()
            .zip(others.0)
            .enumerate()
            .flat_map(|(group, (these, those))| {
                let mut rest = these & !those;
                std::iter::from_fn(move || {
                    let bit = rest.checked_ilog2()?;
                    rest ^= 1 << bit;
                    Some((group * 64) as u16 + bit as u16)
                })
            })
    }
}

/// The findings of pruning on a page.
#[derive(Default)]
struct Findings {
    replaced: SmallVec<[(u16, Line); 4]>,
    removed: usize,
    newest_deleter: Xid,
    once_durable: OnceDurable,
}

impl Findings {
    /// True if no snapshot can see a version. Whatever is found removable is removed.
    fn is_removable(
        &mut self,
        storage: &Storage,
        page: &PageExclusive<'_>,
        tuple: &Tuple<'_>,
        horizon: Xid,
    ) -> Result<bool> {
        match removable(storage, page, tuple, horizon)? {
            Removable::No => return Ok(false),
            Removable::OnceDurable(position) => {
                self.once_durable.add(position);
                return Ok(false);
            }
            Removable::NeverSeen => {}
            Removable::DeletedBy(deleter) => self.newest_deleter = self.newest_deleter.max(deleter),
        }
        Ok(true)
    }

    /// Counts a version behind one that only the disk keeps, if it is another such one.
    #[cold]
    fn count_kept(
        &mut self,
        storage: &Storage,
        page: &PageExclusive<'_>,
        tuple: &Tuple<'_>,
        horizon: Xid,
    ) -> Result<()> {
        if let Removable::OnceDurable(position) = removable(storage, page, tuple, horizon)? {
            self.once_durable.add(position);
        }
        Ok(())
    }

    fn remove(&mut self, slot: u16) {
        self.replaced.push((slot, Line::Unused));
        self.removed += 1;
    }
}

/// Removes what no snapshot can see. The page is latched exclusively.
pub(crate) fn prune(storage: &Storage, page: &mut PageExclusive<'_>, horizon: Xid) -> Result<Pruned> {
    if page::is_new(page.header()) {
        return Ok(Pruned::default());
    }
    let found = look(storage, page, horizon)?;
    if found.removed > 0 {
        let mut change = storage.begin_change_latched(Xid::INVALID)?;
        // H4 of `row_holders`.
        let id = page.page_id();
        let slots = found.replaced.iter().map(|(slot, _)| *slot);
        storage.locks.rows().forget(id.rel.0, id.block, slots);
        // R1 of `cleanup`; `begin_change_latched` has made sure of its room.
        storage
            .newest_cleanup
            .log_before_removal(&storage.wal, found.newest_deleter);
        compact(&mut change, page, found.replaced);
        change.finish()?;
    }
    Ok(Pruned {
        removed: found.removed,
        once_durable: found.once_durable,
    })
}

fn look(storage: &Storage, page: &PageExclusive<'_>, horizon: Xid) -> Result<Findings> {
    let hinted = page.hinted();
    let mut found = Findings::default();
    let (mut heap_only, mut visited) = (Slots::default(), Slots::default());
    for (root, line) in lines(hinted.front()) {
        let (start, first) = match line {
            Line::Redirect(slot) => (slot, Tuple::at(hinted, slot)),
            Line::Normal { offset, length } => (root, Some(Tuple::new(hinted, offset, length))),
            Line::Unused | Line::Dead => continue,
        };
        if let Some(first) = first {
            let infomask = first.infomask();
            if start == root && infomask & HEAP_ONLY != 0 {
                heap_only.insert(root);
                continue;
            }
            visited.insert(start);
            if is_settled(infomask, Xid(first.xmax())) {
                continue;
            }
        }
        let (mut first_live, mut removes_front) = (None, false);
        let kept_by_disk = found.once_durable.count();
        for (slot, tuple) in chain(hinted, start) {
            visited.insert(slot);
            if first_live.is_none() && found.is_removable(storage, page, &tuple, horizon)? {
                found.remove(slot);
                removes_front = true;
            } else if first_live.is_some() && rolled_back(storage, page, &tuple, horizon)? {
                found.remove(slot);
            } else if first_live.is_none() {
                first_live = Some(slot);
            } else if found.once_durable.count() > kept_by_disk {
                found.count_kept(storage, page, &tuple, horizon)?;
            }
        }
        // Without a version at all: a Redirect to one that was rolled back and removed below.
        if removes_front || first_live.is_none() {
            // Behind what is removed, which may be the root: the later entry counts.
            found
                .replaced
                .push((root, first_live.map_or(Line::Dead, Line::Redirect)));
        }
    }
    // Versions that no chain leads to any more: successors whose updater rolled back.
    for slot in heap_only.without(&visited) {
        if let Some(tuple) = Tuple::at(hinted, slot)
            && found.is_removable(storage, page, &tuple, horizon)?
        {
            found.remove(slot);
        }
    }
    Ok(found)
}
