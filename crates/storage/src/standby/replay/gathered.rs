//! Changes that several workers make, and the commits that wait for them.
//!
//! The worker that reads the log gathers a stretch of it: it copies each change, and lists it for the worker of its page,
//! by a hash of the page. Then it hands the stretch over: each worker goes through its list, and the reader gathers the
//! next stretch meanwhile. When that is to be handed over, it waits for the one before, and the commits of the one before
//! are seen, one after the other.
//!
//! | the reader | the workers |
//! | --- | --- |
//! | gathers 1 | |
//! | hands 1 over, gathers 2 | make the changes of 1 |
//! | waits for 1, hands 2 over, lets the commits of 1 be seen, gathers 3 | make the changes of 2 |
//! | no more log: waits for 2, hands 3 over, lets the commits of 2 be seen; waits for 3, lets its commits be seen | make those of 3 |
//!
//! # Rules
//! - G1: a page belongs to one worker, whose list has its changes in the order of the log. So each page gets them in that
//!   order, and by one worker at a time.
//! - G2: a change over several pages is in the lists of all of their workers. The last of these to come to it makes
//!   the whole change, with all pages latched (S5); the others wait for that. No two wait for each other: all lists are
//!   in the order of the log, so of the changes that are waited for, the workers of the first one come to it.
//! - G3: no end of a transaction of the stretch is seen before all of its changes are made. A session that sees changes
//!   of a transaction whose end is not seen regards it as running, as on the primary.
//! - G4: records that depend on more than pages (running transactions, clean-up, checkpoints, definitions) are replayed
//!   when all before them is made and seen.
//!
//! A stretch ends at 256 KiB, at a record of G4, and where there is no more log; so a standby that is up to date shows a
//! commit as soon as `serial` does.
//!
//! The reader changes no pages: if it took part in a stretch, nothing would be gathered meanwhile, and a transaction
//! would take the reader's time for it and the changes' time divided by the workers. So it takes the longer of the two.
//!
//! Cost: each change is copied once, and each stretch costs two wake-ups a worker.

use std::sync::Arc;

use clearway_machine::Machine;

use super::stretch::{ReplayedPages, Stretch};
use super::workers::Workers;
use crate::error::Result;
use crate::page::{Lsn, PageId};

/// Bytes of changes in a stretch.
const STRETCH_BYTES: usize = 256 << 10;

/// The rest of a stretch that is to be done when its changes are made.
#[derive(Debug)]
pub struct CompletedStretch<E> {
    /// The transactions that end in it, in their order: now they may be seen.
    pub ends: Vec<E>,
    /// The end of the stretch.
    pub reached: Lsn,
}

/// A stretch in the making, and the one that the workers are at. Transactions end as `E`.
#[derive(Debug)]
pub struct Gathered<'a, M: Machine, P, E> {
    pages: &'a Arc<P>,
    workers: &'a mut Workers<M, P>,
    stretch: Stretch<M>,
    ends: Vec<E>,
    reached: Option<Lsn>,
    handed_over: Option<CompletedStretch<E>>,
}

impl<'a, M: Machine, P: ReplayedPages, E> Gathered<'a, M, P, E> {
    /// Nothing yet.
    pub fn new(pages: &'a Arc<P>, workers: &'a mut Workers<M, P>) -> Self {
        Self {
            stretch: Stretch::new(workers.count()),
            pages,
            workers,
            ends: Vec::new(),
            reached: None,
            handed_over: None,
        }
    }

    /// Lists a change of these pages, which are there.
    pub fn change(&mut self, payload: &[u8], pages: impl Iterator<Item = PageId>, end: Lsn) {
        self.stretch.list(payload, pages, end);
    }

    /// A transaction ends here.
    pub fn end(&mut self, transaction: E) {
        self.ends.push(transaction);
    }

    /// The records before `end` are gathered.
    pub fn reached(&mut self, end: Lsn) {
        self.reached = Some(end);
    }

    /// True if the stretch ends here.
    pub fn is_full(&self) -> bool {
        self.stretch.bytes() >= STRETCH_BYTES
    }

    /// Ends the stretch: hands it to the workers once they are done with the one before, which is returned.
    pub fn hand_over(&mut self) -> Result<Option<CompletedStretch<E>>> {
        let made = self.wait()?;
        if !self.stretch.is_empty() {
            let next = Stretch::new(self.workers.count());
            let stretch = std::mem::replace(&mut self.stretch, next);
            self.workers.hand_over(self.pages, stretch)?;
        }
        let ends = std::mem::take(&mut self.ends);
        self.handed_over = self
            .reached
            .take()
            .map(|reached| CompletedStretch { ends, reached });
        Ok(made)
    }

    /// Waits for the stretch that was handed over last, and returns it; `None` if there is none.
    pub fn wait(&mut self) -> Result<Option<CompletedStretch<E>>> {
        self.workers.wait()?;
        Ok(self.handed_over.take())
    }
}

impl<M: Machine, P, E> Drop for Gathered<'_, M, P, E> {
    /// After an error of the reader the workers may be at a stretch; then the pages are not to be used.
    fn drop(&mut self) {
        let _ = self.workers.wait();
    }
}
