//! Going back to a savepoint: the rows that a transaction has shared since then are free (H7).
//!
//! # An example
//! Alice shares row 1 for its key, sets a savepoint, and shares row 2 in the same way. Bob gives each a new version: the key
//! stays, so Alice does not keep him out.
//!
//! | place | Alice has it since | on Alice's list since |
//! | --- | --- | --- |
//! | row 1, version 1 | moment 0 | moment 0 |
//! | row 2, version 1 | moment 1 | moment 1 |
//! | row 1, version 2, Bob's | moment 0: it follows (H3) | moment 1 |
//! | row 2, version 2, Bob's | moment 1 | moment 1 |
//!
//! Alice goes back to the savepoint, which raised the moment to 1. Both versions of row 2 are free, and no version of row 1.
//!
//! # Rules
//! - K1: a holder knows since which moment it has each mode. A version that follows another has these moments from it.
//! - K2: the list is in the order of its moments. A mode that is stronger than what the transaction had is at a place that
//!   was listed at the moment at which it was got or later, or that was listed among the stronger ones at that moment. So
//!   going back looks at the ends of the two lists.
//! - K3: a version follows as its predecessor is held under the latch of the holder's list, which going back has to its end.
//! - K4: what the transaction changed since then is changed back before its locks go, and those that wait for it are woken
//!   after that. So one that goes past finds the row as it was at the savepoint.
//!
//! # Costs
//! A savepoint: the latch of the session's list. Going back: that of a part of the table for each row since the savepoint.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

use clearway_machine::{AtomicWord, Machine};

use super::entry::{Moment, RowPlace};
use super::{HeldRows, RowHolders};
use crate::{ProcId, Xid};

/// A place on a transaction's list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Listed {
    pub(super) place: RowPlace,
    /// The moment at which it was listed.
    pub(super) at: Moment,
}

/// A savepoint, for the rows that its transaction shares afterwards.
#[derive(Debug, Clone, Copy)]
pub struct RowMark(Moment);

/// The last moment, which the savepoints have in common that come when the numbers have run out: going back to one of them
/// gives nothing back.
const LAST: Moment = Moment::MAX - 1;

impl HeldRows {
    /// The transaction has got a stronger mode at a place that is listed already.
    pub(super) fn note_stronger(&mut self, place: RowPlace) {
        // Before its first savepoint there is none to go back to.
        if self.now != 0 {
            let at = self.now;
            self.stronger.push(Listed { place, at });
        }
    }
}

impl<M: Machine> RowHolders<M> {
    /// The transaction of `proc`, which calls this, sets a savepoint.
    pub fn savepoint(&self, proc: ProcId) -> RowMark {
        let session = self.list(proc);
        // Relaxed: read by the session itself. So the transaction's end forgets the moment.
        session.has_held.store(1, Relaxed);
        let mut list = session.held.exclusive();
        list.now = LAST.min(list.now + 1);
        RowMark(list.now)
    }

    /// The transaction of `proc`, which calls this, goes back to a savepoint: it gives back what it has got since, but for
    /// relations that it holds whole. The caller has changed back what it changed since, and wakes those that wait (K4).
    pub fn go_back(&self, proc: ProcId, RowMark(to): RowMark) {
        if to == LAST {
            return;
        }
        let mut list = self.list(proc).held.exclusive();
        let xid = list.xid;
        while let Some(listed) = list.stronger.pop_if(|listed| listed.at >= to) {
            self.take_back(listed.place, xid, to);
        }
        let mut kept = Vec::new();
        while let Some(listed) = list.places.pop_if(|listed| listed.at >= to) {
            if self.take_back(listed.place, xid, to) {
                kept.push(Listed { at: to - 1, ..listed });
            }
        }
        list.places.extend(kept);
    }

    /// Takes a transaction off a row as far as it has got there at a moment or later; true if it is still a holder.
    fn take_back(&self, place: RowPlace, xid: Xid, to: Moment) -> bool {
        let is_held = Cell::new(false);
        self.keep(place, |holder| {
            if holder.xid != xid {
                return true;
            }
            is_held.set(holder.go_back(to));
            is_held.get()
        });
        is_held.get()
    }
}
