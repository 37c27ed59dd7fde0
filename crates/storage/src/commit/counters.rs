//! Commits under way, counted so that a checkpoint can wait for them.
//!
//! A commit is two steps: its record goes into the log, and its status into the commit log. A checkpoint
//! begins by moving the redo position behind all records so far, and ends by saying that recovery need not
//! look before it. If the status of one of these commits were not in the commit log by then, it would be in
//! neither place.
//!
//! # Steps
//! - A session makes its counter odd, logs, enters the status, makes the counter even.
//! - A checkpoint moves the redo position, reads what was handed out so far, and waits for each counter that
//!   it finds odd to change.
//!
//! # Why the simpler ways are wrong
//! If a session made its counter odd only after it had logged the record, the checkpoint could look at the
//! counter in between. If the checkpoint looked at the counters before it moved the redo position, a session
//! that it found idle could still log its record before that position. If the checkpoint read the numbers
//! before it moved the redo position, they would not cover a number that is handed out, and logged, in
//! between: recovery does not see its record and would hand it out again.
//!
//! # Orderings
//! If the record lies before the redo position, its place was reserved before the checkpoint moved that position: under
//! an insertion latch that the checkpoint took afterwards (`log_insert = latches`), or by a change of the word that the
//! checkpoint changed afterwards (`ring`). The session made its counter odd before that, so this is visible to the
//! checkpoint. Release and Acquire on the counter make the status visible, whether or not the commit log has a latch
//! that would.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::time::Duration;

use clearway_machine::{AtomicWord, Machine, Native, Padded, WaitEvent, WaitScope};
use clearway_txn::ProcId;

use crate::page::Lsn;

/// Time that a checkpoint sleeps between two looks at a counter.
const LOOK_AGAIN: Duration = Duration::from_micros(100);

/// One counter for each session: odd between the logging of a commit and its entry in the commit log.
#[derive(Debug)]
pub struct CommitCounters<M: Machine = Native>(Box<[Padded<M::U64>]>);

impl<M: Machine> CommitCounters<M> {
    /// Counters for this many sessions.
    pub fn new(sessions: u32) -> Self {
        Self((0..sessions).map(|_| Padded(M::U64::new(0))).collect())
    }

    /// The session is about to log a commit: its counter becomes odd.
    #[inline]
    pub fn begin(&self, proc: ProcId) {
        // AcqRel: the record comes after it.
        let before = self.0[proc.0 as usize].fetch_add(1, AcqRel);
        debug_assert_eq!(before % 2, 0, "session {} commits twice at a time", proc.0);
    }

    /// The status of that commit is in the commit log: the counter becomes even.
    #[inline]
    pub fn end(&self, proc: ProcId) {
        // Release: pairs with the Acquire in `settle`.
        let before = self.0[proc.0 as usize].fetch_add(1, Release);
        debug_assert_eq!(
            before % 2,
            1,
            "session {} ends a commit that it has not begun",
            proc.0
        );
    }

    /// Begins a checkpoint: `move_redo` moves the redo position, `handed_out` reads which numbers were handed
    /// out. When this returns, each commit whose record lies before the redo position has its status in the
    /// commit log.
    pub fn begin_checkpoint<N>(
        &self,
        move_redo: impl FnOnce() -> Lsn,
        handed_out: impl FnOnce() -> N,
    ) -> (Lsn, N) {
        let redo = move_redo();
        let numbers = handed_out();
        self.0.iter().for_each(|counter| Self::settle(counter));
        (redo, numbers)
    }

    /// Waits for the commit, if any, that the counter counts.
    fn settle(counter: &M::U64) {
        let seen = counter.load(Acquire);
        while seen % 2 == 1 && counter.load(Acquire) == seen {
            let _wait = WaitScope::<M>::enter(WaitEvent::CheckpointDone);
            M::sleep(LOOK_AGAIN);
        }
    }
}
