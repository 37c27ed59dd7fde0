//! Changes that several workers make, and the commits that wait for them.
//!
//! The worker that reads the log gathers a stretch of it: it copies each change, and lists it for the worker of its page,
//! by a hash of the page. Then all workers go through their lists at once, the reader through its own; and when all are
//! done, the commits of the stretch are seen, one after the other.
//!
//! # Rules
//! - G1: a page belongs to one worker, whose list has its changes in the order of the log. So each page gets them in that
//!   order, and by one worker at a time.
//! - G2: a change over several pages stands in the lists of all of their workers. The last of these to come to it makes
//!   the whole change, with all pages latched (S5); the others wait for that. No two wait for each other: all lists are
//!   in the order of the log, so of the changes that are waited for, the workers of the first one come to it.
//! - G3: no end of a transaction of the stretch is seen before all of its changes are made. A session that sees changes
//!   of a transaction whose end is not seen regards it as running, as on the primary.
//! - G4: records that depend on more than pages (running transactions, clean-up, checkpoints, definitions) are replayed
//!   between two stretches.
//!
//! A stretch ends at 256 KiB, at a record of G4, and where there is no more log; so a standby that is up to date shows a
//! commit as soon as `serial` does.
//!
//! Cost: each change is copied once, and each stretch costs two wake-ups a worker.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::TransactionEnd;
use super::change_pages::change_pages;
use super::workers::Workers;
use crate::change::{self, PagePart};
use crate::error::Result;
use crate::page::{Lsn, PageId};
use crate::storage::Storage;

/// Bytes of changes in a stretch.
const STRETCH_BYTES: usize = 256 << 10;

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
    fn new(workers: usize) -> Self {
        Self {
            lists: (0..workers).map(|_| Vec::new()).collect(),
            ..Self::default()
        }
    }

    fn is_empty(&self) -> bool {
        self.bytes.is_empty()
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

/// A stretch in the making.
pub(super) struct Gathered<'a> {
    storage: &'a Arc<Storage>,
    workers: &'a mut Workers,
    stretch: Stretch,
    ends: Vec<TransactionEnd>,
    reached: Option<Lsn>,
}

impl<'a> Gathered<'a> {
    pub(super) fn new(storage: &'a Arc<Storage>, workers: &'a mut Workers) -> Self {
        Self {
            stretch: Stretch::new(workers.count()),
            storage,
            workers,
            ends: Vec::new(),
            reached: None,
        }
    }

    /// Lists a change of these pages, which are there.
    pub(super) fn change(&mut self, payload: &[u8], parts: &[(PageId, PagePart<'_>)], end: Lsn) {
        let from = self.stretch.bytes.len();
        self.stretch.bytes.extend_from_slice(payload);
        let payload = from..self.stretch.bytes.len();
        let count = self.stretch.lists.len();
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
            self.stretch.lists[worker].push(Listed {
                payload: payload.clone(),
                end,
                meeting: meeting.clone(),
            });
        }
    }

    pub(super) fn end(&mut self, transaction: TransactionEnd) {
        self.ends.push(transaction);
    }

    pub(super) fn reached(&mut self, end: Lsn) {
        self.reached = Some(end);
    }

    pub(super) fn is_full(&self) -> bool {
        self.stretch.bytes.len() >= STRETCH_BYTES
    }

    /// Has all workers make the changes, and waits for them.
    pub(super) fn change_pages(&mut self) -> Result<()> {
        if self.stretch.is_empty() {
            return Ok(());
        }
        let count = self.workers.count();
        let stretch = Arc::new(std::mem::replace(&mut self.stretch, Stretch::new(count)));
        self.workers.work(self.storage, &stretch)
    }

    pub(super) fn take_ends(&mut self) -> Vec<TransactionEnd> {
        std::mem::take(&mut self.ends)
    }

    pub(super) fn take_reached(&mut self) -> Option<Lsn> {
        self.reached.take()
    }
}

/// G1: neighbouring pages have different workers.
fn worker_of(page: PageId, workers: usize) -> usize {
    let mixed = (u64::from(page.rel.0) << 32 | u64::from(page.block)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 33) as usize % workers
}
