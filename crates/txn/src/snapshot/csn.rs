//! A snapshot is one number: how many transactions had ended.
//!
//! Transactions are numbered in the order in which they end. A snapshot that was taken after the end number n has the
//! number n, and regards a transaction as finished if its number is n at most. So a snapshot is taken without a latch
//! and without a look at what runs, whatever the number of sessions; the question *which number has this transaction?*
//! is put off until a row is met whose transaction may have been running.
//!
//! # An example
//! Transactions 100 (Alice) and 101 (Bob) run; 6 transactions have ended before.
//!
//! | time | Alice, 100 | Bob, 101 | Carol |
//! | --- | --- | --- | --- |
//! | 1 | | ends: 101 has number 7 | |
//! | 2 | | | takes a snapshot: number 7, oldest 100 |
//! | 3 | ends: 100 has number 8 | | |
//! | 4 | | | meets 99: older than 100, so finished |
//! | 5 | | | meets 101: number 7, finished |
//! | 6 | | | meets 100: number 8, running |
//!
//! # Words
//! | word | meaning | written under |
//! | --- | --- | --- |
//! | `newest` | the number of the newest end | ProcArray exclusive |
//! | `oldest` | all xids below have ended, and have numbers up to `newest`. A lower bound: it may lag | ProcArray exclusive |
//! | `window[x % WINDOW]` | the number of transaction x, 0 while it runs, for x from `start` to `end` | ProcArray exclusive |
//! | `start`, `end` | the first xid of the window, and the first beyond it | XidGen and ProcArray exclusive |
//! | `older` | numbers of transactions before `start` that a snapshot may still ask for | its latch, and ProcArray exclusive |
//!
//! # Steps
//! - *End* of x, under ProcArray exclusive: (a) number = `newest` + 1 into x's entry; (b) `newest` = number; (c) while
//!   the transaction `oldest` has a number, `oldest` += 1, [`STEPS_MAX`] times at most.
//! - *Snapshot*: load `oldest`; if the slot holds no xmin, install `oldest` and pass a SeqCst fence; load `newest`.
//! - *Question* for x: below the snapshot's oldest → finished. Otherwise load `end`; x is not below it → running. Then
//!   load x's entry, then `start`. x is not below `start` → the entry is that of x. x is below it → look in `older`;
//!   not there → finished. Finished if the number is not 0 and not above the snapshot's.
//! - *Room*: before an xid is handed out that is not below `end`, under XidGen and ProcArray exclusive, the window
//!   moves by a chunk: `start` first; the chunk's numbers go to `older` if the horizon is not past them; their entries become
//!   0; then `end`. Chunks of `older` that the horizon has passed go.
//!
//! # Invariants
//! - N1: numbers are handed out in the order of ends, each once; a transaction's number never changes.
//! - N2: who loads `newest` = n by an Acquire sees the entries of all transactions with numbers up to n, and their
//!   statuses in the commit log: (a) and the status come before (b), a Release; the latch carries that on.
//! - N3: who loads `oldest` = o by an Acquire, and `newest` after it, loads a number not below those of the
//!   transactions below o: their (b) came before that store of `oldest`.
//! - N4: who finds x below `end`, then loads the entry, and then finds x not below `start`, has loaded an entry of x.
//!   The entry was cleared before `end` moved past x, a Release; so it is not of an earlier transaction. It is cleared
//!   again, for a later transaction, by a Release after `start` has moved past x.
//!
//! # Linearization
//! A transaction ends for snapshots at (b). A snapshot is taken at its load of `newest`.
//!
//! # Why it is consistent (S1, S2)
//! A snapshot has the number s. It regards exactly those as finished whose number is at most s: ends are numbered in
//! their order, so a prefix of all ends (S2). By N2 it finds the entries of all of these, whenever it asks, and an
//! entry that it finds later has a greater number (S1): it was given after `newest` was s. By N3 those below its
//! oldest are finished too.
//!
//! Early lock release changes nothing in that: (b) stands for "visible", durable or not, and `newest_early` was noted
//! before. Ends in a group are numbered one after another; a snapshot may come between two of one group.
//!
//! # Why the horizon does not pass it (S3)
//! Say a snapshot with number s and oldest o regards x as running. By N3, o <= x. The slot holds o, or what an earlier
//! snapshot has installed, which is less. Take a horizon:
//! - The snapshot's fence came before the horizon's: the horizon finds the xmin, and is not above o.
//! - The horizon's came first. Each end that the horizon knows of happened before its fence, by the latch; so the
//!   snapshot's load of `newest`, behind its own fence, finds the number of each. x is none of these, so the horizon
//!   found x running, or `latest_completed` below x; it is not above x.
//!
//! # Ends that others have learnt of (S5)
//! (b) comes before the slot's xid is cleared, which is a Release: a session that finds it cleared finds the number.
//!
//! A snapshot may have a transaction finished that has not left the array yet. Questions about *now* acquire ProcArray
//! (`find_running`), and so wait for the end of that end.
//!
//! # Restart
//! Numbers live in memory. What had ended before the start is below `oldest` from the beginning.
//!
//! # Costs
//! A snapshot: three loads of two lines, a store to the session's own line, a fence; nothing that grows with sessions.
//! An end: two stores more, and one step of `oldest`, on average, per transaction. A question about a transaction that
//! is not below `oldest`: a call by pointer and three loads. Room: for each [`CHUNK`](Numbers::CHUNK) transactions,
//! one hold of ProcArray for as long as a horizon takes, and to copy 32 KiB and clear as much. 512 KiB for the window,
//! and 8 bytes for each transaction since the horizon that the window does not hold: 36 million transactions under a
//! report of an hour are 288 MB.
//!
//! # What it does not do
//! It does not do without the array: `find_running` and the horizon read it.
//!
//! Origin: the idea of commit-sequence snapshots is old; for PostgreSQL it was proposed by Heikki Linnakangas (2014),
//! with numbers in a log on disk. The window and the lower bound in place of a scan for xmin are ours.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_latch::{LatchClass, Latched, LwLockOptions};
use clearway_machine::{AtomicWord, Machine, Padded, WaitEvent};

use super::{ArrayParameters, SnapshotSource, SnapshotView};
use crate::session_array::SessionArray;
use crate::{CommitLog, ProcId, StatusDevice, TransactionState, Xid, final_state};

static OLDER_NUMBERS: LatchClass = LatchClass::new("OlderCommitNumbers", WaitEvent::ProcArray, 320);

/// The number of a transaction that has not ended.
const RUNNING: u64 = 0;

/// Steps of `oldest` in one end. More than one, so that it catches up after a long transaction; few, because all ends
/// wait meanwhile.
const STEPS_MAX: u32 = 64;

/// The source of numbers for a snapshot.
trait CommitNumbers: Send + Sync {
    /// The number of `xid`, which is not older than the oldest of a snapshot in use; [`RUNNING`] if it has none.
    fn number_of(&self, xid: Xid) -> u64;
}

/// A number, and where to ask for those of transactions.
#[derive(Clone, Default)]
pub(crate) struct View {
    /// Number of transactions that had ended.
    number: u64,
    /// All below have numbers up to that.
    oldest: Xid,
    numbers: Option<Arc<dyn CommitNumbers>>,
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("View");
        debug.field("number", &self.number).field("oldest", &self.oldest);
        debug.finish_non_exhaustive()
    }
}

/// Two are equal if they give the same answers: `oldest` spares questions, and changes no answer.
impl PartialEq for View {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number && self.source() == other.source()
    }
}

impl Eq for View {}

impl View {
    /// Whose numbers these are.
    #[inline]
    fn source(&self) -> Option<*const ()> {
        self.numbers.as_ref().map(|numbers| Arc::as_ptr(numbers).cast())
    }

    #[inline]
    fn is_finished(&self, xid: Xid) -> bool {
        if xid < self.oldest {
            return true;
        }
        let Some(numbers) = &self.numbers else {
            return false;
        };
        let number = numbers.number_of(xid);
        number != RUNNING && number <= self.number
    }
}

impl SnapshotView for View {
    #[inline]
    fn state<M: Machine, D: StatusDevice>(
        &self,
        xid: Xid,
        log: &CommitLog<M, D>,
    ) -> io::Result<TransactionState> {
        if self.is_finished(xid) {
            final_state(log, xid)
        } else {
            Ok(TransactionState::Running)
        }
    }

    #[inline]
    fn sees_committed<M: Machine, D: StatusDevice>(&self, xid: Xid, _: &CommitLog<M, D>) -> io::Result<bool> {
        Ok(self.is_finished(xid))
    }
}

/// The parts of a snapshot.
#[derive(Debug)]
struct Bounds<M: Machine> {
    newest: M::U64,
    oldest: M::U64,
}

/// The transactions of the window. Both are multiples of the chunk.
#[derive(Debug)]
struct Range<M: Machine> {
    start: M::U64,
    end: M::U64,
}

/// The numbers of a chunk's transactions.
type Chunk = Box<[u64]>;

/// The numbers of transactions.
#[derive(Debug)]
struct Numbers<M: Machine> {
    bounds: Padded<Bounds<M>>,
    range: Padded<Range<M>>,
    window: Box<[M::U64]>,
    /// Chunks before the window, by their first xids.
    older: Latched<BTreeMap<u64, Chunk>, M>,
}

impl<M: Machine> Numbers<M> {
    /// Transactions whose numbers are at hand. Few under a checker.
    const WINDOW: u64 = if M::EXPLORED { 4 } else { 1 << 16 };
    /// By how many the window moves.
    const CHUNK: u64 = if M::EXPLORED { 2 } else { 1 << 12 };

    fn new(first_xid: Xid, lwlock: LwLockOptions) -> Self {
        let bounds = Bounds {
            newest: M::U64::new(RUNNING),
            oldest: M::U64::new(first_xid.0),
        };
        let start = first_xid.0 - first_xid.0 % Self::CHUNK;
        let range = Range {
            start: M::U64::new(start),
            end: M::U64::new(start + Self::WINDOW),
        };
        Self {
            bounds: Padded(bounds),
            range: Padded(range),
            window: (0..Self::WINDOW).map(|_| M::U64::new(RUNNING)).collect(),
            older: Latched::new(&OLDER_NUMBERS, lwlock, BTreeMap::new()),
        }
    }

    #[inline]
    fn entry(&self, xid: u64) -> &M::U64 {
        &self.window[(xid % Self::WINDOW) as usize]
    }

    /// The number of a transaction before the window.
    #[cold]
    fn older_number(&self, xid: u64) -> u64 {
        let within = xid % Self::CHUNK;
        match self.older.shared().get(&(xid - within)) {
            Some(chunk) => chunk[within as usize],
            // The horizon has passed it: it has ended before every snapshot in use.
            None => 1,
        }
    }

    /// Gives `xid` its number. The caller holds ProcArray exclusively.
    #[inline]
    fn set(&self, xid: u64, number: u64) {
        if xid >= self.range.start.load(Relaxed) {
            // Release: pairs with the Acquire in `number_of`; N4.
            self.entry(xid).store(number, Release);
        } else {
            self.set_older(xid, number);
        }
    }

    #[cold]
    fn set_older(&self, xid: u64, number: u64) {
        let within = xid % Self::CHUNK;
        let mut older = self.older.exclusive();
        let chunk = older.get_mut(&(xid - within));
        chunk.expect("the horizon passes no running transaction")[within as usize] = number;
    }

    /// Numbers the end of `xid`. The caller holds ProcArray exclusively.
    #[inline]
    fn end(&self, xid: Xid) {
        let bounds = &self.bounds;
        M::label(std::ptr::from_ref(&**bounds).cast(), "CommitNumbers");
        let number = bounds.newest.load(Relaxed) + 1;
        self.set(xid.0, number);
        // Release: pairs with the Acquire in `take`; N2.
        bounds.newest.store(number, Release);
        let before = bounds.oldest.load(Relaxed);
        let mut oldest = before;
        while oldest < before + u64::from(STEPS_MAX) && self.number_of(Xid(oldest)) != RUNNING {
            oldest += 1;
        }
        if oldest != before {
            // Release: pairs with the Acquire in `take`; N3.
            bounds.oldest.store(oldest, Release);
        }
    }

    /// Moves the window by a chunk. The caller holds XidGen exclusively.
    #[cold]
    fn move_window(&self, array: &SessionArray<M>) {
        let exclusive = array.exclusive();
        let horizon = exclusive.horizon().0;
        let mut older = self.older.exclusive();
        let range = &self.range;
        let start = range.start.load(Relaxed);
        let after = start + Self::CHUNK;
        // N4: before the entries change. A reader that finds the new start waits for `older`.
        range.start.store(after, Relaxed);
        if after > horizon {
            let numbers = (start..after).map(|xid| self.entry(xid).load(Relaxed));
            older.insert(start, numbers.collect());
        }
        for xid in start..after {
            // Release: pairs with the Acquire in `number_of`.
            self.entry(xid).store(RUNNING, Release);
        }
        // Release: pairs with the Acquire in `number_of`; N4.
        range.end.store(after + Self::WINDOW, Release);
        older.retain(|start, _| start + Self::CHUNK > horizon);
    }
}

impl<M: Machine> CommitNumbers for Numbers<M> {
    #[inline]
    fn number_of(&self, xid: Xid) -> u64 {
        let xid = xid.0;
        // Acquire: pairs with the Release in `move_window`; N4.
        if xid >= self.range.end.load(Acquire) {
            return RUNNING;
        }
        // Acquire: pairs with the Releases in `set` and `move_window`; N4.
        let number = self.entry(xid).load(Acquire);
        if xid < self.range.start.load(Relaxed) {
            return self.older_number(xid);
        }
        number
    }
}

/// The numbers, which snapshots refer to as well.
#[derive(Debug)]
pub(crate) struct Source<M: Machine>(Arc<Numbers<M>>);

#[cfg(test)]
impl<M: Machine> Source<M> {
    /// Chunks that are kept beside the window.
    pub(crate) fn older_chunks(&self) -> usize {
        self.0.older.shared().len()
    }
}

impl<M: Machine> SnapshotSource<M> for Source<M> {
    type View = View;

    fn new(parameters: ArrayParameters) -> Self {
        Self(Arc::new(Numbers::new(parameters.first_xid, parameters.lwlock)))
    }

    #[inline]
    fn take(&self, array: &SessionArray<M>, proc: ProcId, view: &mut View) {
        let bounds = &self.0.bounds;
        // Acquire: pairs with the Release in `end`; N3.
        view.oldest = Xid(bounds.oldest.load(Acquire));
        if !array.holds_back_horizon(proc) {
            array.hold_back_horizon_and_fence(proc, view.oldest);
        }
        // Acquire: pairs with the Release in `end`; N2.
        view.number = bounds.newest.load(Acquire);
        if view.source() != Some(Arc::as_ptr(&self.0).cast()) {
            view.numbers = Some(Arc::<Numbers<M>>::clone(&self.0));
        }
    }

    #[inline]
    fn xid_is_handed_out(&self, array: &SessionArray<M>, xid: Xid) {
        if xid.0 >= self.0.range.end.load(Relaxed) {
            self.0.move_window(array);
        }
    }

    #[inline]
    fn transaction_ends(&self, xid: Xid) {
        self.0.end(xid);
    }

    fn continue_from(&self, next: Xid) {
        let start = next.0 - next.0 % Numbers::<M>::CHUNK;
        self.0.range.start.store(start, Relaxed);
        // As after `new`: the window is empty, and what had ended is below `oldest`.
        self.0.range.end.store(start + Numbers::<M>::WINDOW, Release);
        self.0.bounds.oldest.store(next.0, Release);
    }
}
