//! SERIALIZABLE: serializable snapshot isolation.
//!
//! Protects: the promise that the serializable transactions that commit could have run one after the other, in some order,
//! with the same answers. It says nothing of transactions of other levels, which pay nothing and are not looked at.
//!
//! # An example
//! Alice and Bob are on call, and one of them has to stay. Each counts who is on call, and takes the own name off.
//!
//! | time | Alice | Bob | marks | conflicts |
//! | --- | --- | --- | --- | --- |
//! | 1 | reads both rows | | rows 1, 2: read by Alice | |
//! | 2 | | reads both rows | and by Bob | |
//! | 3 | changes row 1 | | row 1: written by Alice; Bob has read it | Bob → Alice |
//! | 4 | | changes row 2 | row 2: written by Bob; Alice has read it | Alice → Bob |
//! | 5 | commits: Bob is a pivot, Alice → Bob → Alice | | | Bob is doomed |
//! | 6 | | 40001 | | |
//!
//! Under snapshot isolation both would commit, and none be on call.
//!
//! # Conflicts
//! *R → W*: R has read under a snapshot that does not show what W wrote. In a serial order R comes before W. Each history
//! under snapshot isolation that has no serial order has a *dangerous structure*: conflicts T1 → T2 → T3 between
//! transactions that overlap, where T3 committed before T1 and T2 (T3 may be T1). T2 is the *pivot*. If T1 only reads, T3
//! has committed before T1's snapshot. So to prevent these structures is to prevent all such histories, and some that do
//! no harm.
//!
//! # Steps of a transaction
//! 1. Register ([`Serializable::begin`]), take the snapshot, say so ([`snapshot_taken`](Serializable::snapshot_taken)).
//! 2. Reads and writes leave *marks*. The one that marks second, of a reader and a writer, finds the mark of the first, and
//!    enters the conflict.
//! 3. The check before the commit ([`prepare`](Serializable::prepare)). It may refuse; otherwise the transaction is *let
//!    through*.
//! 4. The commit record, and all that belongs to it. No latch of this module is held.
//! 5. New snapshots see the commit: say so ([`finish`](Serializable::finish)). The marks stay until no transaction runs that
//!    overlaps it.
//!
//! # Rules of the marks
//! - M1: a mark is made, and marks of others are looked for on the same target, in one step under one latch. So of a reader
//!   and a writer of one target, the second finds the first, whatever they do with pages meanwhile: neither looks at a
//!   version's xids, and reading and writing rows costs no latch more.
//! - M2: a target is a version of a row, a page, a table; or a key or a range of keys of an index. A reader marks one
//!   level: that on which it reads. A writer of a version marks all three (*part of it written* on page and table). A reader
//!   of a page or table looks for *part written* there, and a reader of a finer level looks at the coarser ones too, from
//!   the fine one to the coarse one.
//! - M3: when marks of a transaction become many, a coarser one takes their place. It is made first, with the look of its
//!   level, and then the finer ones go. One that looks from fine to coarse so finds one of them.
//! - M4: phantoms are seen by the keys: a scan of an index marks the range of keys that it was asked for, whether there are
//!   entries or not, and a writer marks each key that it enters. Keys are marked, not pages of the tree: a split moves
//!   entries and leaves keys as they are, so it has nothing to carry over.
//! - M5: an INSERT marks keys, and *part written* on its table: no snapshot that does not show it can have read the version.
//! - M6: before a table gets new places for its rows, or an index goes, marks of readers on its parts become marks on the
//!   table ([`coarsen`](Serializable::coarsen)). Table and index go by numbers that a rewrite leaves as they are.
//! - M7: marks that another makes coarser (M6, and G7 beyond its bound) are placed without a look, and then the finer ones
//!   go. So each write ends with a look at the table, and each look at keys for a range is followed by one at ranges: what
//!   was made coarser before or between is found there.
//!
//! # Rules of the graph
//! One latch is over the graph. It is taken to begin (twice), to commit (twice), and where a mark of another transaction was
//! found; never for marks alone.
//! - G1: R → W is entered if R's snapshot does not show W. A transaction that had finished (step 5) when another registered
//!   is shown; what is in between is asked of the snapshot. In doubt the conflict is entered.
//! - G2: a commit is seen at some moment between step 3 and step 5, so times are compared by what may be: T3 may be first if
//!   it was let through before the others had finished.
//! - G3: a conflict that completes a structure whose T3 has been let through dooms the pivot; if that has been let through
//!   too, the transaction that has found it gives up.
//! - G4: the check before a commit looks for structures with this transaction as T3, and dooms their pivots. If one has been
//!   let through and not finished, the check refuses. Check and being let through are one step under the latch, so of two
//!   transactions that would be each other's T3 the second finds the first. By G3 and G4 no structure is complete with its
//!   three let through.
//! - G5: a read-only transaction is on a *safe snapshot* if none of the writing transactions that overlap its beginning
//!   commits with a conflict to one that was let through before the snapshot. It needs no marks then, before or later.
//! - G6: a committed transaction is kept while one runs that overlaps it. Of one that goes there remains, with those that have
//!   a conflict to it, the time at which it was let through.
//! - G7: when more than a number of committed transactions are kept, the oldest is *summarised*: its marks become those of
//!   the *old committed* ones, which have, all together, one time of the earliest that was let through, one of their
//!   earliest T3, and on each mark the newest finish. What is lost is precision: a structure with one of them is taken
//!   for dangerous if one of them all could make it so. The times are noted first, then the marks change owner, then the
//!   transaction leaves the graph; one that has found its mark and does not find it in the graph takes it for old.
//!
//! # Why the simpler versions are wrong
//! - *Only the reader looks, at the versions' xids.* It sees writes that came before; one that comes after the read
//!   goes unseen.
//! - *Marks go with the commit.* T1 may read, commit, and only then T2 write what T1 has read (the read-only anomaly).
//! - *The check behind the commit record.* It could not refuse any more.
//! - *The conflict as one bit in, one bit out.* Sound, and it dooms each transaction that has both, whichever commits first.
//!
//! # Memory
//! A transaction marks at most [`ROWS_MAX`](held::ROWS_MAX) versions on a page, [`PAGES_MAX`](held::PAGES_MAX) pages of a table,
//! [`KEYS_MAX`](held::KEYS_MAX) keys and ranges of an index, of what it reads and of what it writes each, then coarser; and with
//! [`SerializableOptions::marks_max`] marks, tables only. G7 bounds the number of transactions, and
//! [`SerializableOptions::old_marks_max`] the marks of the old committed ones, which become marks on tables and whole indexes
//! beyond.
//!
//! # Costs
//! A version read: one latch of 64, and shared ones of its page's and its table's part. A key entered: one latch, and a look
//! at each range of the index that is marked. A range: a look at the marked keys in it, and two at the ranges. A version
//! written: one latch, and at the end a shared one of its table's part.
//!
//! # What it does not do
//! It does not survive a crash, which ends all transactions. Standbys refuse SERIALIZABLE.
//!
//! Origin: Cahill, Röhm and Fekete 2008 (the structure); Ports and Grittner 2012 (commit order, read-only transactions, safe
//! snapshots, summaries). Marks of writers in the same table, in place of a look at the versions, and marks on keys in place of
//! leaf pages, are ours.

mod failure;
mod graph;
mod held;
mod listed;
mod marks;
mod old_committed;
mod serial_id;
mod state;
mod summary;
mod target;
mod transaction;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use clearway_latch::{LatchClass, Latched, LwLockOptions};
use clearway_machine::{Machine, Native, WaitEvent};

pub use failure::SerializationFailure;
pub use listed::{ListedMark, MarkedObject};
pub use serial_id::SerialId;
pub use transaction::{MarkedRow, SerialTransaction};

use crate::{ProcId, Xid};
use graph::{Graph, Released};
use marks::MarkTable;
use state::SharedState;
use target::{Bits, Target};

static SERIAL_GRAPH: LatchClass = LatchClass::new("SerialGraph", WaitEvent::SerializableGraph, 266);

/// The bounds of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SerializableOptions {
    /// Committed transactions that are kept one by one (G7).
    pub retained_max: usize,
    /// Marks of one transaction before it marks tables only.
    pub marks_max: usize,
    /// Marks of all old committed transactions together.
    pub old_marks_max: usize,
    /// The latches.
    pub lwlock: LwLockOptions,
}

impl SerializableOptions {
    /// For this many sessions.
    pub fn new(sessions: u32, lwlock: LwLockOptions) -> Self {
        Self {
            retained_max: (sessions as usize * 10).clamp(64, 1_024),
            marks_max: 4_096,
            old_marks_max: 65_536,
            lwlock,
        }
    }
}

/// The serializable transactions, their marks and the conflicts between them.
#[derive(Debug)]
pub struct Serializable<M: Machine = Native> {
    graph: Latched<Graph<M>, M>,
    marks: MarkTable<M>,
    options: SerializableOptions,
}

impl<M: Machine> Serializable<M> {
    /// Without transactions.
    pub fn new(options: SerializableOptions) -> Self {
        Self {
            graph: Latched::new(&SERIAL_GRAPH, options.lwlock, Graph::new(options.retained_max)),
            marks: MarkTable::new(options.lwlock),
            options,
        }
    }

    /// Step 1: registers the transaction of `proc`, before its snapshot is taken. `is_read_only`: it is declared so.
    pub fn begin(&self, proc: ProcId, is_read_only: bool) -> SerialTransaction<M> {
        let state = Arc::new(SharedState::new());
        let id = self
            .graph
            .exclusive()
            .begin(proc, is_read_only, Arc::clone(&state));
        SerialTransaction::new(id, state)
    }

    /// The snapshot is taken.
    pub fn snapshot_taken(&self, transaction: &SerialTransaction<M>) {
        self.graph.exclusive().snapshot_taken(transaction.id());
    }

    /// Step 3: the check before the commit. `xid`: invalid if the transaction has written nothing.
    pub fn prepare(&self, transaction: &SerialTransaction<M>, xid: Xid) -> Result<(), SerializationFailure> {
        self.graph.exclusive().prepare(transaction.id(), xid)
    }

    /// Step 5: new snapshots see the commit.
    pub fn finish(&self, transaction: SerialTransaction<M>) {
        let id = transaction.id();
        let released = self.graph.exclusive().finish(id, transaction.into_held());
        self.release(released);
        while self.summarise() {}
        while self.coarsen_old() {}
    }

    /// The transaction is rolled back; or its snapshot is safe, so that it reads on without marks.
    pub fn remove(&self, transaction: SerialTransaction<M>) {
        let id = transaction.id();
        let released = self.graph.exclusive().remove(id, transaction.into_held());
        self.release(released);
    }

    fn release(&self, released: Released) {
        for (id, held, extra) in released.held {
            for target in held.targets().iter().chain(&extra) {
                self.marks.remove(id, target, Bits::ALL);
            }
        }
        for target in &released.old {
            self.marks.expire_old(target, released.horizon);
        }
    }

    /// G7.
    fn summarise(&self) -> bool {
        let Some(summarised) = self.graph.exclusive().begin_summary() else {
            return false;
        };
        let (id, finished) = (summarised.id, summarised.finished);
        let mut targets = summarised.held.targets();
        targets.extend(summarised.extra);
        for target in &targets {
            self.marks.make_old(id, target, finished);
        }
        let extra = self.graph.exclusive().end_summary(id, finished, targets);
        for target in &extra {
            self.marks.make_old(id, target, finished);
        }
        true
    }

    /// Makes marks of the old committed ones coarser, if there are too many; `false` if those looked at are
    /// as coarse as can be.
    fn coarsen_old(&self) -> bool {
        let begun = self
            .graph
            .exclusive()
            .begin_coarsening(self.options.old_marks_max);
        let Some((targets, finished)) = begun else {
            return false;
        };
        let before = targets.len();
        let mut has_changed = false;
        let mut coarse: Vec<Target> = Vec::new();
        for target in targets {
            let whole = target.whole();
            has_changed |= whole != target;
            // The coarser mark comes first (M3). Another session may add to the finer one meanwhile.
            let mut bits = Bits::default();
            while whole != target
                && let Some(missing) = self.marks.give_up_old(&target, finished, bits)
            {
                bits = bits.and(missing);
                self.marks.place_for(None, finished, &whole, bits);
            }
            if !coarse.contains(&whole) {
                coarse.push(whole);
            }
        }
        has_changed |= coarse.len() < before;
        self.graph.exclusive().end_coarsening(coarse, finished);
        has_changed
    }

    /// M6: rows of the table `relation` get other places, or `indexes` go. The caller keeps all others from it.
    pub fn coarsen(&self, relation: u32, indexes: &[u32]) {
        let whole = Target::Relation(relation);
        for (owner, finished) in self.marks.readers_of(relation, indexes) {
            self.marks.place_for(owner, finished, &whole, Bits::READ);
            match owner {
                Some(owner) => {
                    if self.graph.exclusive().note_extra(owner, whole.clone()) {
                        continue;
                    }
                    self.marks.remove(owner, &whole, Bits::READ);
                    // If it has been summarised meanwhile, so has the mark on the part.
                    let finished = self.graph.shared().finish_if_old(owner);
                    if let Some(finished) = finished {
                        self.marks.place_for(None, finished, &whole, Bits::READ);
                        self.graph.exclusive().note_old(finished, whole.clone());
                    }
                }
                None => self.graph.exclusive().note_old(finished, whole.clone()),
            }
        }
    }

    /// Transactions that run or are kept, and targets that are marked.
    pub fn sizes(&self) -> (usize, usize) {
        (self.graph.shared().len(), self.marks.len())
    }

    /// The sessions that the read-only transaction of `proc` waits for until it knows if its snapshot is safe.
    pub fn blockers_of_safe_snapshot(&self, proc: ProcId) -> Vec<ProcId> {
        self.graph.shared().watched_by(proc)
    }
}
