//! One scan serves all sessions until a transaction with an xid ends.
//!
//! # An example
//! Transaction 100 runs. Three sessions want a snapshot, under the shared latch.
//!
//! | time | Alice | Bob | Carol | the copy |
//! | --- | --- | --- | --- | --- |
//! | 1 | finds no copy, scans | finds no copy, scans | | empty |
//! | 2 | may fill, and writes her list | may not, and returns with his own | | being filled |
//! | 3 | releases the latch | | | full |
//! | 4 | | | takes Alice's list: 100 runs | full |
//! | 5 | ends 101, under the exclusive latch | | | empty |
//!
//! # States
//! | state | the words of the copy | changed by |
//! | --- | --- | --- |
//! | `EMPTY` | mean nothing | |
//! | `FILLING` | are written by one session, which holds ProcArray shared | `EMPTY` → by CAS, under ProcArray shared |
//! | `FULL` | are what a scan of this moment would find | `FILLING` → by the session that filled it, under the same hold |
//! | `EMPTY` | again | `FULL` → by an end, under ProcArray exclusive |
//!
//! # Steps
//! 1. Acquire ProcArray shared.
//! 2. `FULL` → copy the list. Otherwise scan, as the baseline does; and if the state is `EMPTY` and a CAS makes it
//!    `FILLING`, sort the list, write it, and make the state `FULL`.
//! 3. Install the xmin (R3 of the array), release the latch.
//!
//! # Invariants
//! - C1: the copy is `FULL` only while no transaction has ended since it was scanned: who scanned it held the latch
//!   until it was `FULL`, and each end empties it.
//! - C2: no end meets the state `FILLING`, since an end needs the latch that the filling session holds.
//! - C3: no session reads the words while they are written. A reader has found `FULL`, and while it holds the latch the
//!   state stays so: only an end changes it.
//!
//! Two sessions that filled at once would write the same words, since their scans find the same. `FILLING` is there so
//! that only one of a busy moment's sessions writes lines that all others read.
//!
//! # Why it is that of a scan (S1 to S3)
//! By C1 the list is what a scan under the same hold of the latch would find: what begins meanwhile is above
//! `latest_completed`. So the argument of the baseline holds, its horizon included: the xmin is installed under the
//! latch. S5: an end empties the copy before it releases the latch, which the session acquires.
//!
//! # Linearization
//! A snapshot is taken at any moment of its hold of the latch, as the baseline's.
//!
//! # Orderings
//! `FULL` is stored by a Release and found by an Acquire: its reader sees the words. `EMPTY` is stored and found under
//! the latch, which orders it.
//!
//! # Costs
//! The baseline's latch; instead of a scan of all sessions a copy of the running ones, sorted already. One session
//! after each end writes the list, 8 bytes for each running transaction, under the shared latch; the line with the
//! state is written three times for each end that a snapshot follows. 8 bytes a session.
//!
//! # What it does not do
//! Two sessions that scan at once do not wait for each other: a wait would cost more than the scan.
//!
//! Origin: a patch for PostgreSQL that was never accepted (Andres Freund 2013, Mithun Cy 2016).

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, Machine, Padded};

use super::running_list::RunningList;
use super::{ArrayParameters, SnapshotSource};
use crate::session_array::SessionArray;
use crate::{ProcId, Xid};

pub(crate) type View = RunningList;

/// The words of the copy mean nothing.
const EMPTY: u32 = 0;
/// A session writes them.
const FILLING: u32 = 1;
/// They are the list of this moment.
const FULL: u32 = 2;

/// Says what the words are, beside those that every reader of them reads.
#[derive(Debug)]
struct Head<M: Machine> {
    state: M::U32,
    /// Running transactions in the list.
    length: M::U32,
    xmin: M::U64,
    xmax: M::U64,
}

/// The copy.
#[derive(Debug)]
pub(crate) struct Source<M: Machine> {
    head: Padded<Head<M>>,
    running: Box<[M::U64]>,
}

impl<M: Machine> Source<M> {
    /// Copies the list into `view`. The caller holds ProcArray, and has found `FULL` by an Acquire (C3).
    #[inline]
    fn read(&self, view: &mut RunningList) {
        let head = &self.head;
        view.xmin = Xid(head.xmin.load(Relaxed));
        view.xmax = Xid(head.xmax.load(Relaxed));
        let words = &self.running[..head.length.load(Relaxed) as usize];
        view.running.clear();
        view.running
            .extend(words.iter().map(|word| Xid(word.load(Relaxed))));
    }

    /// Writes a list of this moment, in order, unless another session does. The caller holds ProcArray shared.
    fn fill(&self, list: &mut RunningList) {
        let head = &self.head;
        let is_empty = head.state.load(Relaxed) == EMPTY;
        if !is_empty
            || head
                .state
                .compare_exchange(EMPTY, FILLING, Relaxed, Relaxed)
                .is_err()
        {
            return;
        }
        list.sort();
        head.xmin.store(list.xmin.0, Relaxed);
        head.xmax.store(list.xmax.0, Relaxed);
        head.length.store(list.running.len() as u32, Relaxed);
        for (word, xid) in self.running.iter().zip(&list.running) {
            word.store(xid.0, Relaxed);
        }
        // Release: pairs with the Acquire in `take`.
        head.state.store(FULL, Release);
    }
}

impl<M: Machine> SnapshotSource<M> for Source<M> {
    type View = View;

    fn new(parameters: ArrayParameters) -> Self {
        let head = Head {
            state: M::U32::new(EMPTY),
            length: M::U32::new(0),
            xmin: M::U64::new(0),
            xmax: M::U64::new(0),
        };
        Self {
            head: Padded(head),
            running: (0..parameters.capacity).map(|_| M::U64::new(0)).collect(),
        }
    }

    #[inline]
    fn take(&self, array: &SessionArray<M>, proc: ProcId, view: &mut View) {
        {
            let shared = array.shared();
            // Acquire: pairs with the Release in `fill`.
            if self.head.state.load(Acquire) == FULL {
                self.read(view);
                // R3.
                shared.hold_back_horizon(proc, view.xmin);
                return;
            }
            view.scan(&shared);
            // R3.
            shared.hold_back_horizon(proc, view.xmin);
            self.fill(view);
        }
        view.sort();
    }

    #[inline]
    fn transaction_ends(&self, _: Xid) {
        // C1. Looked at first: most ends of a busy moment find it empty, and leave the line with its readers.
        if self.head.state.load(Relaxed) != EMPTY {
            debug_assert_eq!(self.head.state.load(Relaxed), FULL, "C2");
            self.head.state.store(EMPTY, Relaxed);
        }
    }
}
