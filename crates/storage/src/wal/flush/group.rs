//! Group flush: the first of a group writes and syncs for all of them, and each is woken once.
//!
//! Invariant: a worker on the list sleeps, and the first that joined the list, its leader, is on its way to take the
//! whole list, sync, and have all on it woken, unless another has taken the list, and does this in the leader's place.
//! Nothing that can fail happens between taking the list and waking it.
//!
//! # Steps
//! 1. Wait for the insertions before one's own target.
//! 2. Join the list by a CAS of its head. The list was not empty: sleep until the leader tells, under the wait event
//!    `WALFlushGroup`.
//! 3. The list was empty: this worker leads. It takes the write latch, and only then the list. So all that came while
//!    the group before was being synced are in one group. Those that come later find the list empty and form the next.
//! 4. Sleep `commit_delay`, if there is one, before taking the list. `gathering` waits here for others.
//! 5. Write and sync up to the furthest target on the list, and further if more is complete.
//! 6. Release the write latch: the next leader goes on. Then the others on the list are woken: by the leader, or as the
//!    switch `log_wake` says ([`wake`](super::wake)).
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
//! # A worker that does not join
//! A leader that sleeps at the write latch has to be woken and to get a CPU, while the device is idle. A worker that
//! runs may find the latch free by then. `polling` lets it *take over*: it takes the latch and the list, flushes for all
//! on it, and wakes them, but for the leader, which is not on its semaphore: it is woken by the release of the latch.
//! Before that release the worker stores the group's number in `ended`, as each leader does at that point. The leader
//! looks there whenever it wakes, and if its own group has ended it is durable and has nothing left to do. It must not go
//! by the number of the open group and `durable`, since its place is on the list: it may leave when the list has been
//! read for the last time, not before.
//!
//! # Cost
//! One CAS to join. A follower sleeps and wakes once, where `single` makes those that come too late for a sync sleep
//! twice. By default the leader pays for all wake-ups of its group before its own client hears. A worker whose record was
//! taken along by the sync before, but that joined too late to be told by its leader, waits for one more sync than it
//! needs.
//!
//! Origin: PostgreSQL's group clear of the ProcArray (Amit Kapila, 2015), applied to the log; MySQL's binary log
//! has had leaders and followers since 5.6.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::Duration;

use clearway_latch::{LwLock, LwLockExclusive};
use clearway_machine::{AtomicWord, Machine, Padded};

use super::waiters::{NONE, Waiters};
use super::wake::{Followers, Waker};
use super::{Flush, FlushOptions, Flushed, WAL_WRITE, sleep_before_flush};
use crate::wal::LogDevice;

/// The time at which a leader takes its group.
pub(in crate::wal) trait Pace<M: Machine> {
    /// No worker has come yet.
    fn new() -> Self;

    /// A worker has come to wait for a flush.
    fn arrived(&self);

    /// Returns when the group is to be taken. Called by the leader, under the write latch.
    fn wait(&self);

    /// The group that was taken last has been flushed, and the log is durable up to `target`. Called by its leader, under
    /// the write latch. `followed`: the group has others beside its leader.
    fn flushed(&self, target: u64, followed: bool);
}

/// As soon as the device is free.
pub(in crate::wal) struct AtOnce;

impl<M: Machine> Pace<M> for AtOnce {
    fn new() -> Self {
        Self
    }

    fn arrived(&self) {}

    fn wait(&self) {}

    fn flushed(&self, _target: u64, _followed: bool) {}
}

pub(in crate::wal) struct Flusher<M: Machine, P: Pace<M> = AtOnce> {
    write_latch: Padded<LwLock<M>>,
    /// The list of the group that is open.
    open: Padded<M::U64>,
    /// The number of the last group that is durable and whose list is no longer needed. Stored under the write latch.
    /// Numbers wrap; as every group is counted, this one is never far from the open group's.
    ended: Padded<M::U32>,
    waiters: Waiters<M>,
    waker: Waker<M>,
    pace: P,
    commit_delay: Duration,
}

/// The open group: its number, and the worker that joined its list last, or [`NONE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Open {
    group: u32,
    last: u32,
}

impl Open {
    fn from_word(word: u64) -> Self {
        Self {
            group: (word >> 32) as u32,
            last: word as u32,
        }
    }

    fn word(self) -> u64 {
        u64::from(self.group) << 32 | u64::from(self.last)
    }
}

impl<M: Machine, P: Pace<M>> Flush<M> for Flusher<M, P> {
    fn new(options: &FlushOptions) -> Self {
        let first = Open { group: 0, last: NONE };
        Self {
            write_latch: Padded(LwLock::new(&WAL_WRITE, options.lwlock)),
            open: Padded(M::U64::new(first.word())),
            // The group before the first.
            ended: Padded(M::U32::new(first.group.wrapping_sub(1))),
            waiters: Waiters::new(),
            waker: Waker::new(options.wake),
            pace: P::new(),
            commit_delay: options.commit_delay,
        }
    }

    fn flush<D: LogDevice>(&self, log: &Flushed<'_, M, D>, upto: u64) {
        log.wait_complete(upto);
        self.pace.arrived();
        let me = M::worker().0;
        let found = self.join(me, upto);
        if found.last == NONE {
            self.lead(log, me, found.group);
        } else {
            self.waker.follow(&self.waiters, me, found.group);
        }
        debug_assert!(log.output.durable() >= upto);
    }
}

impl<M: Machine, P: Pace<M>> Flusher<M, P> {
    pub(super) fn pace(&self) -> &P {
        &self.pace
    }

    /// True if the open group has a leader, which is on its way to the write latch or sleeps there.
    pub(super) fn is_led(&self) -> bool {
        // Relaxed: a hint.
        Open::from_word(self.open.load(Relaxed)).last != NONE
    }

    /// True if a worker has the device.
    pub(super) fn has_device(&self) -> bool {
        self.write_latch.is_held()
    }

    /// Makes everything before `upto`, which is complete, durable without a place on the list, and what the open group
    /// waits for. `false`: another worker has the write latch.
    /// After a flush `flushed` is called under the write latch with the time at which it began, nanoseconds, and whether
    /// others waited in the group.
    pub(super) fn flush_if_free<D: LogDevice>(
        &self,
        log: &Flushed<'_, M, D>,
        upto: u64,
        flushed: impl FnOnce(&P, u64, bool),
    ) -> bool {
        // Looked at first: many ask again and again, and an attempt in vain would take the line from its holder. To a
        // checker the attempt says the same.
        if !M::EXPLORED && self.write_latch.is_held() {
            return false;
        }
        let Some(write) = self.write_latch.try_exclusive() else {
            return false;
        };
        let taken = self.is_led().then(|| self.take_open_group());
        let furthest = taken.map_or(upto, |taken| self.furthest(taken.last).max(upto));
        if furthest > log.output.durable() {
            sleep_before_flush::<M>(self.commit_delay);
            let begun_ns = M::now();
            let target = log.complete_at_least(furthest);
            // SAFETY: the write latch is held, and everything before `target` is in the ring.
            unsafe { log.output.write(target) };
            log.output.sync(target);
            flushed(&self.pace, begun_ns, taken.is_some());
        }
        let Some(Open { group, last }) = taken else {
            return true;
        };
        let followers = Followers {
            first: self.without_leader(last),
            group,
        };
        // Release: pairs with the Acquire in `latch_of_leader`; the leader's place has been read, and its record is
        // durable.
        self.ended.store(group, Release);
        self.waker.group_ended(followers);
        drop(write);
        self.waker.wake(&self.waiters, followers);
        true
    }

    /// Closes the open group and opens the next; returns the one closed. The caller holds the write latch.
    fn take_open_group(&self) -> Open {
        // Relaxed: the number changes under the write latch alone.
        let group = Open::from_word(self.open.load(Relaxed)).group;
        let next = Open {
            group: group.wrapping_add(1),
            last: NONE,
        };
        // Acquire: pairs with the Release in `join`. Release: so that the next group's RMWs order their places behind.
        Open::from_word(self.open.swap(next.word(), AcqRel))
    }

    /// The write latch, for the leader of `group`. `None`: another worker has flushed for the group.
    fn latch_of_leader(&self, group: u32) -> Option<LwLockExclusive<'_, M>> {
        loop {
            let write = self.write_latch.acquire_or_wait();
            // Acquire: pairs with the Release in `flush_if_free`.
            let ended = self.ended.load(Acquire);
            if ended.wrapping_sub(group) as i32 >= 0 {
                return None;
            }
            if write.is_some() {
                return write;
            }
        }
    }

    /// Puts `me` on the list of the open group, and returns that group as it was; `me` leads it if there was no other.
    fn join(&self, me: u32, upto: u64) -> Open {
        let mut found = self.open.load(Relaxed);
        loop {
            let open = Open::from_word(found);
            self.waiters.fill_in(me, upto, open.last);
            let joined = Open { last: me, ..open };
            // Release: pairs with the Acquire in `lead`; the place is filled in, and the bytes are visible (R1).
            match self
                .open
                .compare_exchange_weak(found, joined.word(), Release, Relaxed)
            {
                Ok(_) => return open,
                Err(now) => found = now,
            }
        }
    }

    /// Flushes for `group`, which the caller, `me`, was the first to join.
    fn lead<D: LogDevice>(&self, log: &Flushed<'_, M, D>, me: u32, group: u32) {
        let Some(write) = self.latch_of_leader(group) else {
            return;
        };
        sleep_before_flush::<M>(self.commit_delay);
        self.pace.wait();
        let taken = self.take_open_group();
        debug_assert_eq!(taken.group, group);
        let furthest = self.furthest(taken.last);
        if furthest > log.output.durable() {
            let target = log.complete_at_least(furthest);
            // SAFETY: the write latch is held, and everything before `target` is in the ring.
            unsafe { log.output.write(target) };
            log.output.sync(target);
            self.pace.flushed(target, taken.last != me);
        }
        let followers = Followers {
            first: self.without_leader(taken.last),
            group,
        };
        // Relaxed: no worker but this leader waits for it, and the write latch orders it before the next.
        self.ended.store(group, Relaxed);
        self.waker.group_ended(followers);
        drop(write);
        self.waker.wake(&self.waiters, followers);
    }

    /// The furthest target on the list that begins with `first`.
    fn furthest(&self, first: u32) -> u64 {
        let (mut worker, mut furthest) = (first, 0);
        while worker != NONE {
            furthest = furthest.max(self.waiters.upto(worker));
            worker = self.waiters.next(worker);
        }
        furthest
    }

    /// The list that begins with `first`, without its end, which is the leader: it was the first to join.
    fn without_leader(&self, first: u32) -> u32 {
        let (mut worker, mut before) = (first, NONE);
        while self.waiters.next(worker) != NONE {
            (before, worker) = (worker, self.waiters.next(worker));
        }
        if before == NONE {
            return NONE;
        }
        self.waiters.set_next(before, NONE);
        first
    }
}
