//! The newest of the commits that are seen before they are durable.
//!
//! A session that meets a row of such a commit sets a hint bit which says *committed*, so a page must not reach the disk
//! before that record does: rule B3 of `buffer`. Which commit a hint is from is not known, so a page waits for the newest
//! of them.
//!
//! Two kinds are kept apart: those that do not wait for the disk, which the log writer flushes, and under
//! `lock_release = early` all, which flush for themselves unless they are of the first kind. A log writer that flushed
//! for all would be at the disk when a commit comes, which would then wait for two syncs.

use std::sync::atomic::Ordering::{AcqRel, Acquire};

use clearway_machine::{AtomicWord, Machine};

use crate::page::Lsn;

/// The position after that commit's record.
#[derive(Debug)]
pub(super) struct NewestCommit<M: Machine>(M::U64);

impl<M: Machine> NewestCommit<M> {
    pub(super) fn new() -> Self {
        Self(M::U64::new(0))
    }

    /// A commit whose record ends at `end` does not wait. It never moves the position backwards.
    pub(super) fn note(&self, end: Lsn) {
        let mut newest = self.0.load(Acquire);
        while newest < end.0 {
            // Release: pairs with the Acquire in `get`.
            match self.0.compare_exchange_weak(newest, end.0, AcqRel, Acquire) {
                Ok(_) => return,
                Err(found) => newest = found,
            }
        }
    }

    pub(super) fn get(&self) -> Lsn {
        Lsn(self.0.load(Acquire))
    }
}
