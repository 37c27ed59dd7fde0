//! The announcements of scans: each worker says in a word of its own which garbage list's buckets it scans.
//!
//! A scan announces, passes a fence and walks. A reclaimer detaches a garbage list, passes a fence and looks at the
//! announcements. So either the reclaimer sees the announcement, or the scan sees that the nodes are unlinked (H3).

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use clearway_machine::{AtomicWord, GrowingTable, Machine, Native, Padded, WorkerId};

/// Announces no garbage list.
const NOT_SCANNING: u32 = 0;
/// Looks at an announcement before the reclaimer gives up its CPU for a moment.
const POLLS_MAX: u32 = 100;

pub(super) struct Scans<M: Machine = Native> {
    /// By worker slot: number + 1 of the garbage list of the bucket that the worker scans.
    announced: GrowingTable<M, Padded<M::U32>>,
    /// One past the highest worker slot that has ever announced a scan: how far reclaimers look.
    end: M::U32,
}

/// The announcement of a scan. What is found in it may be relied on until it is dropped.
pub(super) struct Scan<'m, M: Machine> {
    /// `None` before a simulation begins: then there is no other worker.
    announcement: Option<&'m M::U32>,
}

impl<M: Machine> Drop for Scan<'_, M> {
    #[inline]
    fn drop(&mut self) {
        if let Some(announcement) = self.announcement {
            announcement.store(NOT_SCANNING, Release);
        }
    }
}

impl<M: Machine> Scans<M> {
    pub(super) fn new() -> Self {
        Self {
            announced: GrowingTable::by_worker(|_| Padded(M::U32::new(NOT_SCANNING))),
            end: M::U32::new(0),
        }
    }

    /// Announces a scan of a bucket whose nodes go to this garbage list.
    #[inline]
    pub(super) fn announce(&self, list: usize) -> Scan<'_, M> {
        // A thread waits for a slot if it has none: a scan that is not announced could be passed by a reclaimer (H3).
        let worker = match M::THREADS_ARE_WORKERS {
            true => Some(M::worker()),
            false => M::known_worker(),
        };
        let announcement = worker.map(|worker| &**self.announced.get(worker.0 as usize));
        if let (Some(worker), Some(announcement)) = (worker, announcement) {
            if worker.0 >= self.end.load(Relaxed) {
                self.raise_end(worker);
            }
            debug_assert_eq!(announcement.load(Relaxed), NOT_SCANNING, "a scan within a scan");
            announcement.store(list as u32 + 1, Relaxed);
            // Fence: pairs with the one in `wait_for_scans` (H3).
            M::fence(SeqCst);
        }
        Scan { announcement }
    }

    /// Before the first scan of a worker with this slot. The fence of that scan comes after it, so a reclaimer that
    /// must see the announcement sees the new end too, and the table's segment.
    #[cold]
    fn raise_end(&self, worker: WorkerId) {
        let mut end = self.end.load(Relaxed);
        while end <= worker.0 {
            match self.end.compare_exchange(end, worker.0 + 1, Relaxed, Relaxed) {
                Ok(_) => return,
                Err(found) => end = found,
            }
        }
    }

    /// Returns when every scan has ended that may see a node of this garbage list. The caller does not scan, and has
    /// detached the list.
    pub(super) fn wait_for_scans(&self, list: usize) {
        // Fence: pairs with the one in `announce`. A scan whose announcement is not seen below sees that the nodes are
        // unlinked.
        M::fence(SeqCst);
        let end = self.end.load(Relaxed) as usize;
        for (_, announcement) in self.announced.below(end) {
            let mut polls = 0;
            // Acquire: pairs with the Release at the end of a scan (H3).
            while announcement.load(Acquire) == list as u32 + 1 {
                polls += 1;
                if polls % POLLS_MAX == 0 || M::EXPLORED {
                    M::yield_now();
                } else {
                    M::spin_hint();
                }
            }
            M::label(std::ptr::from_ref(&**announcement).cast(), "BufferMappingScans");
        }
    }
}
