//! Self-clocking flush: a flush starts the moment the device is free and takes all that are complete.
//!
//! Invariant: the device has an owner unless `arrivals` is `IDLE`, and while a worker waits the device has one. The
//! owner is awake, or has been told that it is the owner. Nothing that can fail happens between taking a list of
//! workers and telling all on it.
//!
//! | `arrivals` | the device | waiting, and not yet taken over by the owner |
//! | --- | --- | --- |
//! | `IDLE` | free | no worker |
//! | `NONE` | has an owner | no worker |
//! | a worker | has an owner | this worker, and those behind it |
//!
//! There is no latch and no timer. A group is what arrived while the device was busy: the device itself sets the pace.
//!
//! # Steps
//! 1. Wait for the insertions before one's own target.
//! 2. `IDLE`: become the owner by a CAS to `NONE`, and go on with 4. Else join the arrivals by a CAS, and sleep, under
//!    the wait event `WALFlushGroup`.
//! 3. Woken: either *durable*, then go on with 8, or *leader*, then the worker owns the device and has inherited the
//!    workers that the owner before could not serve.
//! 4. The owner takes over the arrivals. It writes and syncs up to the furthest target of all that it has, and
//!    further if more is complete.
//! 5. It takes over those that arrived meanwhile. Some are durable already, because their records were complete when
//!    the flush began. The oldest of the rest is the next leader and inherits the others of the rest. If there is no
//!    rest, a CAS from `NONE` to `IDLE` frees the device; it fails if a worker has arrived, and the owner looks again.
//! 6. The next leader is told first, while nothing else is: from here on the device is not this worker's business.
//! 7. It plans the wake-ups of those that are durable as a tree over their list: the first few are its own, and
//!    each of these inherits the next few (`wake/tree.rs`).
//! 8. It tells its own part, and returns. So does each worker that is woken with "durable".
//!
//! # Why the tree
//! To wake a sleeper takes a microsecond or two of the waker's time. With 63 followers, a leader that wakes all of them
//! spends more time on that than on its transaction, before its own client hears. Here no worker wakes more than
//! [`WIDTH`] others and the next leader, and the last of 63 is three wake-ups away from the leader. A chain (width 1)
//! would be the least for each and the latest for the last.
//!
//! # How the rules are kept
//! - R3, R5: the owner alone writes and syncs. Ownership passes by an RMW of `arrivals` to `IDLE` (Release) and from it
//!   (Acquire), or by telling (Release) and being told (Acquire); so the next owner sees `written` and `durable`.
//! - R2: step 1 comes before the arrivals. The owner waits for nothing but the device. So an inserter that finds the
//!   ring full may be among the arrivals, and holds up no owner.
//! - R1: a worker joins by a Release, after it has seen the bytes before its target; the owner's swap is an Acquire.
//!   Later joins are RMWs of the same word, so the swap acquires all of them. What a leader inherits its predecessor
//!   has acquired.
//! - Woken once: a worker is on one list at a time, and leaves it by being told. It is told *durable* after the sync,
//!   by the worker that made it so or one that this worker has told, or *leader*, if no flush that has begun can serve
//!   it.
//! - No worker waits behind an idle device: in step 5 the owner frees it only by a CAS that proves that no worker has
//!   arrived, and only if it has no rest.
//! - No wake-up while holding what the woken need: at step 6 the worker owns the device no longer.
//!
//! # Cost
//! Alone: two CAS and one swap around write and sync, less than a latch with its wake check. With n waiters: n
//! wake-ups, none repeated. The device is idle from step 5 until the next leader runs: one wake-up of latency, which
//! polling would buy off at the price of a CPU. The setting `commit_delay` is not used.
//!
//! Origin: ours. That a busy device forms the groups is old (DeWitt and others, 1984, let a group commit wait for the
//! log disk); naming the next leader first, and the tree, come from what `group` was seen to cost.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, Machine, Padded};

use super::waiters::{NONE, Outcome, Waiters};
use super::wake_tree::Tree;
use super::{Flush, FlushOptions, Flushed};
use crate::wal::LogDevice;

/// The device is free, and no worker waits.
const IDLE: u32 = NONE - 1;

/// The most followers that a worker wakes.
const WIDTH: u32 = 4;

/// A list of waiting workers, the oldest first, linked by their places. The worker that has it may change the links.
struct List {
    first: u32,
    last: u32,
    /// The furthest target on it.
    furthest: u64,
}

impl List {
    const EMPTY: List = List {
        first: NONE,
        last: NONE,
        furthest: 0,
    };

    /// Puts `worker`, which is on no list, at the end.
    fn push<M: Machine>(&mut self, waiters: &Waiters<M>, worker: u32) {
        waiters.set_next(worker, NONE);
        match self.last {
            NONE => self.first = worker,
            last => waiters.set_next(last, worker),
        }
        self.last = worker;
        self.furthest = self.furthest.max(waiters.upto(worker));
    }

    /// Adds the workers from `first` on.
    fn push_all<M: Machine>(&mut self, waiters: &Waiters<M>, first: u32) {
        let mut worker = first;
        while worker != NONE {
            let next = waiters.next(worker);
            self.push(waiters, worker);
            worker = next;
        }
    }
}

pub(in crate::wal) struct Flusher<M: Machine> {
    arrivals: Padded<M::U32>,
    waiters: Waiters<M>,
    tree: Tree<M>,
}

impl<M: Machine> Flush<M> for Flusher<M> {
    fn new(_options: &FlushOptions) -> Self {
        Self {
            arrivals: Padded(M::U32::new(IDLE)),
            waiters: Waiters::new(),
            tree: Tree::new(WIDTH),
        }
    }

    fn flush<D: LogDevice>(&self, log: &Flushed<'_, M, D>, upto: u64) {
        log.wait_complete(upto);
        let me = M::worker().0;
        if self.own_or_join(me, upto) {
            self.lead(log, upto, List::EMPTY);
            return;
        }
        let outcome = self.waiters.sleep(me);
        let inherited = self.waiters.inherited(me);
        match outcome {
            Outcome::Durable => self.tree.tell_part(&self.waiters, inherited),
            Outcome::Leader => {
                let mut served = List::EMPTY;
                served.push_all(&self.waiters, inherited);
                self.lead(log, upto, served);
            }
        }
        debug_assert!(log.output.durable() >= upto);
    }
}

impl<M: Machine> Flusher<M> {
    /// Makes `me` the owner of the free device (`true`), or puts it among the arrivals.
    fn own_or_join(&self, me: u32, upto: u64) -> bool {
        let mut found = self.arrivals.load(Relaxed);
        loop {
            let owns = found == IDLE;
            let joined = if owns {
                NONE
            } else {
                self.waiters.fill_in(me, upto, found);
                me
            };
            // Acquire: pairs with the Release with which the device was freed. Release: pairs with the Acquire in
            // `take_arrivals`; the place is filled in, and the bytes are visible (R1).
            match self
                .arrivals
                .compare_exchange_weak(found, joined, AcqRel, Relaxed)
            {
                Ok(_) => return owns,
                Err(now) => found = now,
            }
        }
    }

    /// Flushes for the caller, which owns the device, and for the workers in `served`; gives the device away; wakes all
    /// that are durable.
    fn lead<D: LogDevice>(&self, log: &Flushed<'_, M, D>, upto: u64, mut served: List) {
        served.push_all(&self.waiters, self.take_arrivals());
        let furthest = served.furthest.max(upto);
        if furthest > log.output.durable() {
            let target = log.complete_at_least(furthest);
            // SAFETY: the caller owns the device, and everything before `target` is in the ring.
            unsafe { log.output.write(target) };
            log.output.sync(target);
        }
        self.give_device_away(log.output.durable(), &mut served);
        self.tree.plan(&self.waiters, served.first);
        self.tree.tell_part(&self.waiters, served.first);
    }

    /// All that have arrived, the oldest first.
    fn take_arrivals(&self) -> u32 {
        if self.arrivals.load(Relaxed) == NONE {
            return NONE;
        }
        // Acquire: pairs with the Release in `own_or_join`.
        let mut worker = self.arrivals.swap(NONE, Acquire);
        let mut oldest = NONE;
        while worker != NONE {
            let next = self.waiters.next(worker);
            self.waiters.set_next(worker, oldest);
            oldest = worker;
            worker = next;
        }
        oldest
    }

    /// Makes the oldest arrival that is not durable the owner, with the others that are not. If there is none, frees
    /// the device. Arrivals that are durable join `served`.
    fn give_device_away(&self, durable: u64, served: &mut List) {
        let mut rest = List::EMPTY;
        loop {
            let mut worker = self.take_arrivals();
            while worker != NONE {
                let next = self.waiters.next(worker);
                let list = if self.waiters.upto(worker) <= durable {
                    &mut *served
                } else {
                    &mut rest
                };
                list.push(&self.waiters, worker);
                worker = next;
            }
            if rest.first != NONE {
                let others = self.waiters.next(rest.first);
                self.waiters.set_inherited(rest.first, others);
                return self.waiters.tell(rest.first, Outcome::Leader);
            }
            // Release: pairs with the Acquire in `own_or_join`; the next owner sees `written` and `durable`.
            if self
                .arrivals
                .compare_exchange(NONE, IDLE, Release, Relaxed)
                .is_ok()
            {
                return;
            }
        }
    }
}
