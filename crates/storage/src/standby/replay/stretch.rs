//! The changes of a stretch of log, each in the lists of the workers that make it (G1 and G2 of `gathered`).

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::change_pages::change_pages;
use crate::change::{self, PagePart};
use crate::error::Result;
use crate::page::{Lsn, PageId};
use crate::storage::Storage;

/// A change in a worker's list.
#[derive(Debug)]
struct Listed {
    /// Its payload in the stretch's bytes.
    payload: Range<usize>,
    end: Lsn,
    /// G2.
    meeting: Option<Arc<Meeting>>,
}

/// Where the workers of a change over several pages wait for each other.
#[derive(Debug)]
struct Meeting {
    missing: AtomicU32,
    is_over: AtomicBool,
}

/// The changes of a stretch.
#[derive(Debug, Default)]
pub(super) struct Stretch {
    bytes: Vec<u8>,
    lists: Vec<Vec<Listed>>,
    has_failed: AtomicBool,
}

impl Stretch {
    pub(super) fn new(workers: usize) -> Self {
        Self {
            lists: (0..workers).map(|_| Vec::new()).collect(),
            ..Self::default()
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// How many bytes of changes it has.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Lists a change for the workers of its pages.
    pub(super) fn list(&mut self, payload: &[u8], parts: &[(PageId, PagePart<'_>)], end: Lsn) {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(payload);
        let payload = from..self.bytes.len();
        let count = self.lists.len();
        let mut workers: Vec<usize> = parts.iter().map(|(page, _)| worker_of(*page, count)).collect();
        workers.sort_unstable();
        workers.dedup();
        let meeting = (workers.len() > 1).then(|| {
            Arc::new(Meeting {
                missing: AtomicU32::new(workers.len() as u32),
                is_over: AtomicBool::new(false),
            })
        });
        for worker in workers {
            self.lists[worker].push(Listed {
                payload: payload.clone(),
                end,
                meeting: meeting.clone(),
            });
        }
    }

    /// No worker waits for another one any more.
    pub(super) fn give_up(&self) {
        self.has_failed.store(true, Ordering::Release);
    }

    /// Makes the changes of one worker's list.
    pub(super) fn work(&self, storage: &Storage, worker: usize) -> Result<()> {
        for listed in &self.lists[worker] {
            if self.has_failed.load(Ordering::Acquire) {
                break;
            }
            let changed = self.make(storage, listed);
            if changed.is_err() {
                // Those that wait at a meeting leave it.
                self.give_up();
                return changed;
            }
        }
        Ok(())
    }

    fn make(&self, storage: &Storage, listed: &Listed) -> Result<()> {
        if let Some(meeting) = &listed.meeting {
            // AcqRel: the last to come sees the changes that the others made before.
            if meeting.missing.fetch_sub(1, Ordering::AcqRel) > 1 {
                while !meeting.is_over.load(Ordering::Acquire) && !self.has_failed.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
                return Ok(());
            }
        }
        let mut rest = &self.bytes[listed.payload.clone()];
        let mut parts: Vec<(PageId, PagePart<'_>)> = Vec::with_capacity(2);
        while let Some(part) = (!rest.is_empty()).then(|| change::next_part(&mut rest)).flatten() {
            if storage.files.file_for_replay(part.0.rel)?.is_some() {
                parts.push(part);
            }
        }
        change_pages(storage, &parts, listed.end)?;
        if let Some(meeting) = &listed.meeting {
            meeting.is_over.store(true, Ordering::Release);
        }
        Ok(())
    }
}

/// G1: neighbouring pages have different workers.
fn worker_of(page: PageId, workers: usize) -> usize {
    let mixed = (u64::from(page.rel.0) << 32 | u64::from(page.block)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 33) as usize % workers
}
