//! Free space: where the next row goes.
//!
//! Each session keeps one target page for each relation, so that concurrent inserters do not meet on one
//! page. A session whose target is full looks for a page that vacuum or pruning has found to have room, and
//! else adds a page. The map is in memory only: after a start it is empty, and vacuum fills it again; until
//! then rows go to new pages. It is a hint: an inserter looks at the page itself.

use std::collections::HashMap;
use std::sync::{Mutex, RwLock};

use clearway_txn::ProcId;

use crate::page::RelId;

/// Bytes in one unit of the map.
const UNIT: usize = 32;
/// Sessions share targets by number modulo this.
const TARGETS: usize = 64;
const NO_TARGET: u32 = u32::MAX;

#[derive(Debug)]
struct RelSpace {
    targets: [u32; TARGETS],
    /// Free space by page, in units, rounded down.
    free: Vec<u8>,
    /// The end of the last search.
    cursor: usize,
    /// No page has more units than this.
    most: u8,
}

/// The free-space maps of all relations.
#[derive(Debug, Default)]
pub(crate) struct FreeSpaceMaps {
    rels: RwLock<HashMap<RelId, Mutex<RelSpace>>>,
}

impl RelSpace {
    fn new() -> Self {
        Self {
            targets: [NO_TARGET; TARGETS],
            free: Vec::new(),
            cursor: 0,
            most: 0,
        }
    }

    fn set(&mut self, block: u32, free: usize) {
        let units = (free / UNIT).min(255) as u8;
        let block = block as usize;
        if self.free.len() <= block {
            self.free.resize(block + 1, 0);
        }
        self.free[block] = units;
        self.most = self.most.max(units);
    }

    fn find(&mut self, need: usize) -> Option<u32> {
        let units = need.div_ceil(UNIT).min(255) as u8;
        if units > self.most {
            return None;
        }
        let pages = self.free.len();
        let found = (0..pages)
            .map(|step| (self.cursor + step) % pages)
            .find(|&page| self.free[page] >= units);
        match found {
            Some(page) => {
                self.cursor = page;
                // Taken off the map: two sessions should not get the same page.
                self.free[page] = 0;
                Some(page as u32)
            }
            None => {
                self.most = units - 1;
                None
            }
        }
    }
}

impl FreeSpaceMaps {
    fn with<R>(&self, rel: RelId, body: impl FnOnce(&mut RelSpace) -> R) -> R {
        // Under the shared lock: a reference of the caller's own would be counted up and down beside the mutex that all
        // inserters take.
        if let Some(space) = self.rels.read().unwrap_or_else(|e| e.into_inner()).get(&rel) {
            return body(&mut space.lock().unwrap_or_else(|e| e.into_inner()));
        }
        let mut rels = self.rels.write().unwrap_or_else(|e| e.into_inner());
        let space = rels.entry(rel).or_insert_with(|| Mutex::new(RelSpace::new()));
        body(space.get_mut().unwrap_or_else(|e| e.into_inner()))
    }

    /// A page that may have `need` bytes of room; `None`: add one.
    pub(crate) fn target(&self, rel: RelId, proc: ProcId, need: usize, blocks: u32) -> Option<u32> {
        self.with(rel, |space| {
            let mine = &mut space.targets[proc.0 as usize % TARGETS];
            if *mine != NO_TARGET && *mine < blocks {
                return Some(*mine);
            }
            let found = space.find(need).filter(|&block| block < blocks);
            if let Some(block) = found {
                space.targets[proc.0 as usize % TARGETS] = block;
            }
            found
        })
    }

    /// Makes `block` the target of the session.
    pub(crate) fn use_page(&self, rel: RelId, proc: ProcId, block: u32) {
        self.with(rel, |space| space.targets[proc.0 as usize % TARGETS] = block);
    }

    /// Notes that the session's target has no room for the next row, and has `free` bytes left.
    pub(crate) fn is_full(&self, rel: RelId, proc: ProcId, block: u32, free: usize) {
        self.with(rel, |space| {
            let mine = &mut space.targets[proc.0 as usize % TARGETS];
            if *mine == block {
                *mine = NO_TARGET;
            }
            // Less than what was needed, so a row as large is not sent here again; a smaller one may be.
            space.set(block, free.saturating_sub(UNIT));
        });
    }

    /// Notes that `block` has `free` bytes of room.
    pub(crate) fn record(&self, rel: RelId, block: u32, free: usize) {
        self.with(rel, |space| space.set(block, free));
    }

    /// Forgets the map of a relation that was dropped.
    pub(crate) fn forget(&self, rel: RelId) {
        self.rels.write().unwrap_or_else(|e| e.into_inner()).remove(&rel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REL: RelId = RelId(20);
    const BLOCKS: u32 = 1_000;

    /// A session that has no page of its own puts each row on another one, and one that does not leave a full page
    /// comes back to it for ever.
    #[test]
    fn each_session_has_a_page_of_its_own_until_that_is_full() {
        let maps = FreeSpaceMaps::default();
        let target = |session| maps.target(REL, ProcId(session), 100, BLOCKS);
        let sessions = [0, 1, 5, TARGETS as u32 - 1];
        for session in sessions {
            assert_eq!(target(session), None);
            maps.use_page(REL, ProcId(session), 10 + session);
        }
        for session in sessions {
            assert_eq!(target(session), Some(10 + session));
            maps.is_full(REL, ProcId(session), 10 + session, 40);
            assert_eq!(target(session), None, "of session {session}");
        }
    }

    /// A page with just as much room as is needed is found, by one session, which keeps it.
    #[test]
    fn room_is_found_to_the_last_unit() {
        let maps = FreeSpaceMaps::default();
        maps.record(REL, 3, 10 * UNIT);
        assert_eq!(maps.target(REL, ProcId(6), 10 * UNIT + 1, BLOCKS), None);
        maps.record(REL, 3, 10 * UNIT);
        assert_eq!(maps.target(REL, ProcId(5), 10 * UNIT, BLOCKS), Some(3));
        assert_eq!(maps.target(REL, ProcId(6), UNIT, BLOCKS), None);
        assert_eq!(maps.target(REL, ProcId(5), UNIT, BLOCKS), Some(3));
    }

    #[test]
    fn a_dropped_relation_leaves_nothing() {
        let maps = FreeSpaceMaps::default();
        maps.use_page(REL, ProcId(0), 1);
        maps.forget(REL);
        assert!(maps.rels.read().unwrap().is_empty());
    }
}
