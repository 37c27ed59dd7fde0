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

use std::sync::Arc;

use super::TransactionEnd;
use super::stretch::Stretch;
use super::workers::Workers;
use crate::change::PagePart;
use crate::error::Result;
use crate::page::{Lsn, PageId};
use crate::storage::Storage;

/// Bytes of changes in a stretch.
const STRETCH_BYTES: usize = 256 << 10;

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
        self.stretch.list(payload, parts, end);
    }

    pub(super) fn end(&mut self, transaction: TransactionEnd) {
        self.ends.push(transaction);
    }

    pub(super) fn reached(&mut self, end: Lsn) {
        self.reached = Some(end);
    }

    pub(super) fn is_full(&self) -> bool {
        self.stretch.bytes() >= STRETCH_BYTES
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
