//! Group flush: the first of a group writes and syncs for all of them, and wakes each once.
//!
//! Invariant: a worker on the list sleeps, and the first that joined the list, its leader, is on its way to take the
//! whole list, sync, and wake all on it. Nothing that can fail stands between taking the list and waking it.
//!
//! # Steps
//! 1. Wait for the insertions before one's own target.
//! 2. Join the list by a CAS of its head. The list was not empty: sleep until the leader tells, under the wait event
//!    `WALFlushGroup`.
//! 3. The list was empty: this worker leads. It takes the write latch, and only then the list. So all that came while
//!    the group before was being synced are in one group. Those that come later find the list empty and form the next.
//! 4. Sleep `commit_delay`, if there is one, before taking the list. `gathering` waits here for others.
//! 5. Write and sync up to the furthest target on the list, and further if more is complete.
//! 6. Release the write latch: the next leader goes on. Then tell the others on the list.
//!
//! # Why the list is taken whole
//! A leader that took workers off one by one would compare the head with a worker that may have been told, have come
//! back, and be the head again (ABA). A swap of the head with "empty" compares nothing.
//!
//! # How the rules are kept
//! - R3, R5: write and sync are called under the write latch only.
//! - R2: step 1 comes before the list. The leader waits for nothing but the write latch, and its holder for nothing but
//!   the device. So an inserter that finds the ring full may be on the list, and holds up no leader.
//! - R1 needs each target to be complete *and visible to the leader*: a worker joins by a Release, after it has seen
//!   the bytes, and the leader's swap is an Acquire. Later joins are RMWs of the same word, so the swap acquires all
//!   of them.
//! - Each on the list is durable when told: the sync went to the furthest.
//!
//! # Cost
//! One CAS to join. A follower sleeps and wakes once, where `single` makes those that come too late for a sync sleep
//! twice. The leader pays for all wake-ups of its group before its own client hears. A worker whose record was taken
//! along by the sync before, but that joined too late to be told by its leader, waits for one more sync than it
//! needs.
//!
//! Origin: PostgreSQL's group clear of the ProcArray (Amit Kapila, 2015), applied to the log; MySQL's binary log
//! has had leaders and followers since 5.6.

use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release};
use std::time::Duration;

use clearway_latch::{LwLock, LwLockOptions};
use clearway_machine::{AtomicWord, Machine, Padded};

use super::waiters::{NONE, Outcome, Waiters};
use super::{Flush, Flushed, WAL_WRITE, sleep_before_flush};
use crate::wal::LogDevice;

/// When a leader takes its group.
pub(in crate::wal) trait Pace<M: Machine> {
    /// No worker has come yet.
    fn new() -> Self;

    /// A worker has come to wait for a flush.
    fn arrived(&self);

    /// Returns when the group is to be taken. Called by the leader, under the write latch.
    fn wait(&self);

    /// The group that was taken last is durable. Called by its leader, under the write latch.
    fn flushed(&self);
}

/// As soon as the device is free.
pub(in crate::wal) struct AtOnce;

impl<M: Machine> Pace<M> for AtOnce {
    fn new() -> Self {
        Self
    }

    fn arrived(&self) {}

    fn wait(&self) {}

    fn flushed(&self) {}
}

pub(in crate::wal) struct Flusher<M: Machine, P: Pace<M> = AtOnce> {
    write_latch: Padded<LwLock<M>>,
    /// The list: the worker that joined last.
    last: Padded<M::U32>,
    waiters: Waiters<M>,
    pace: P,
    commit_delay: Duration,
}

impl<M: Machine, P: Pace<M>> Flush<M> for Flusher<M, P> {
    fn new(lwlock: LwLockOptions, commit_delay: Duration) -> Self {
        Self {
            write_latch: Padded(LwLock::new(&WAL_WRITE, lwlock)),
            last: Padded(M::U32::new(NONE)),
            waiters: Waiters::new(),
            pace: P::new(),
            commit_delay,
        }
    }

    fn flush<D: LogDevice>(&self, log: &Flushed<'_, M, D>, upto: u64) {
        log.wait_complete(upto);
        self.pace.arrived();
        let me = M::worker().0;
        if self.join(me, upto) {
            self.lead(log, me);
        } else {
            let outcome = self.waiters.sleep(me);
            debug_assert_eq!(outcome, Outcome::Durable);
        }
        debug_assert!(log.output.durable() >= upto);
    }
}

impl<M: Machine, P: Pace<M>> Flusher<M, P> {
    /// Puts `me` on the list; `true` if it leads the group.
    fn join(&self, me: u32, upto: u64) -> bool {
        let mut last = self.last.load(Relaxed);
        loop {
            self.waiters.fill_in(me, upto, last);
            // Release: pairs with the Acquire in `lead`; the place is filled in, and the bytes are visible (R1).
            match self.last.compare_exchange_weak(last, me, Release, Relaxed) {
                Ok(_) => return last == NONE,
                Err(found) => last = found,
            }
        }
    }

    fn lead<D: LogDevice>(&self, log: &Flushed<'_, M, D>, me: u32) {
        let write = self.write_latch.exclusive();
        sleep_before_flush::<M>(self.commit_delay);
        self.pace.wait();
        // Acquire: pairs with the Release in `join`. Release: so that the next group's RMWs order their places behind.
        let group = self.last.swap(NONE, AcqRel);
        let mut furthest = 0;
        let mut worker = group;
        while worker != NONE {
            furthest = furthest.max(self.waiters.upto(worker));
            worker = self.waiters.next(worker);
        }
        if furthest > log.output.durable() {
            let target = log.complete_at_least(furthest);
            // SAFETY: the write latch is held, and everything before `target` is in the ring.
            unsafe { log.output.write(target) };
            log.output.sync(target);
            self.pace.flushed();
        }
        drop(write);
        let mut worker = group;
        while worker != NONE {
            // Read first: once told, the worker may join the next group.
            let next = self.waiters.next(worker);
            if worker != me {
                self.waiters.tell(worker, Outcome::Durable);
            }
            worker = next;
        }
    }
}
