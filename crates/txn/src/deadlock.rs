//! Deadlock detection.
//!
//! A session that has waited for `deadlock_timeout`, and that other sessions wait for, takes all partition latches, in
//! order, and follows which session waits for which: a session queued for a lock waits for every other session that
//! holds it in a conflicting mode, and for those queued before it in a conflicting mode; a session that waits for a
//! transaction waits for the session that runs it. A path back to the searcher is a deadlock. If another order of the queues
//! dissolves it, they get that order (`rearrange`); otherwise the searcher is the victim.
//!
//! # An example
//! A thousand sessions update one row. Alice's transaction has changed it and runs on.
//!
//! | session | holds | waits for | looks for a deadlock |
//! | --- | --- | --- | --- |
//! | Bob | the row's tuple lock | Alice's transaction | yes: others queue for the tuple lock |
//! | Carol and 998 more | nothing that a session wants | the tuple lock | no |
//!
//! So one session of a queue looks. Its path is Bob, Alice, and ends there, since Alice waits for no session.
//!
//! # Rules
//! - R1: the victim's wait is struck out before the latches are released, so of several searchers in one cycle only the
//!   first finds it, and one victim suffices.
//! - R2: a cycle found is real: all waits of it were under way at one instant.
//! - R3: no cycle is missed. The session whose wait completes the cycle finds it, `deadlock_timeout` after that wait began.
//! - R4: a search costs as much as the queues that it reaches are long, each counted once for each of the eight modes.
//! - R5: a session that waits only because others came earlier gives nothing up if its turn could come first, as far as
//!   `rearrange` finds the order.
//!
//! # Why R2 holds
//! Queues and holders do not change under the latches. Waits for transactions do: they begin and end without any latch,
//! and the search reads them one after another. A path that is put together so may never have been there:
//!
//! | time | Alice's search | Bob | Carol |
//! | --- | --- | --- | --- |
//! | 1 | Alice waits for Bob's first transaction | | |
//! | 2 | | commits, begins his second, waits for Carol | |
//! | 3 | Bob waits for Carol | | |
//! | 4 | Carol waits for Alice: **a cycle**, although Bob's first transaction has ended | | waits for Alice |
//!
//! So each transaction wait of a path found is read once more: it must be the same wait, and the transaction must still run.
//! This second read alone decides: the first one takes a wait as it finds it, for an edge to the session that ran the
//! transaction when the wait began. All first reads come before all second reads. A wait that was the same in both was under way from the one to the
//! other, so all of them were under way in between. "The same" is decided by a number that each wait of a session
//! raises: a session that gives up and waits for the same transaction again may have run in between.
//!
//! The writer stores number, then xid, and at the end xid = 0, each with Release. The reader loads with Acquire: number n₁,
//! xid x₁, and later xid x₂, number n₂. If x₁ is of the k-th wait, then n₁ ≤ k: a number of k + 1 would show the end of the
//! k-th wait. If x₂ is of the j-th wait, then j ≤ n₂, and k ≤ j. From n₁ = n₂ follows k = j.
//!
//! A wait that has gone on is taken out of the graph, and the search begins again, since another path may be real. It is
//! taken out for the whole search: no wait that was part of a cycle at the beginning goes on, and a cycle that a later
//! wait completes is that session's to find.
//!
//! # Why R3 holds
//! An edge of a cycle leads from a session that waits to one that holds something, or to one before it in a queue. Each
//! session makes its wait known, and then executes a SeqCst fence, for a lock under the latch of its queue. Of the
//! sessions of a cycle let Alice be the one whose fence is last. What Alice reads after it shows the waits of all others.
//! - *Some session waits for what Alice holds*, so Alice does not leave the search out. The session before Alice in the
//!   cycle waits either for what Alice holds, or behind Alice in a queue. Its fence came first, both under the same latch,
//!   so Alice was put before it although it came later (R5 of the lock table). That is done only before a session that
//!   waits for what Alice holds.
//! - *Alice's search sees the cycle*, since all its waits are known, and none ends before a victim is found.
//! - *No edge comes later than Alice's wait.* A session that is granted a mode past a queue (R1 of the lock table) makes an
//!   edge to itself, and runs. If it is part of a cycle, its own wait, and so its fence, come after that.
//!
//! One search a wait is enough. If others wait for Alice only after her time, the last of them completes the cycle, and looks.
//!
//! # Costs
//! A wait of less than `deadlock_timeout`: a fence, and two words that say what a session queues for. A longer one: the
//! latch of the session's list, and that of a partition for each lock on it that is in the shared table. A search: all
//! partition latches while it runs.

mod rearrange;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use clearway_latch::LatchedExclusive;
use clearway_machine::{AtomicWord, Machine};

use crate::lock_table::{DeadlockWait, LockEntry, LockManager, Partition, WaitTarget};
use crate::{LockMode, LockTag, ProcId, Xid};

/// The target of a session's wait.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    Lock(LockTag, LockMode),
    /// A transaction, and the number of the wait among those of its session.
    Transaction(Xid, u64),
}

/// One step of a path: `waiter` waits for `blocker`.
#[derive(Debug, Clone, Copy)]
struct Link {
    waiter: ProcId,
    wanted: Wanted,
    blocker: ProcId,
}

/// The part of one lock that a search has followed.
struct Followed {
    positions: BTreeMap<ProcId, usize>,
    /// For each mode: length of the queue's front of which the places that conflict with it were reached.
    queue: [usize; LockMode::ALL.len()],
    /// The modes that conflict with holders that were reached.
    holders: u8,
}

impl Followed {
    fn nothing_of(entry: &LockEntry) -> Self {
        let places = entry.queue.iter().enumerate();
        Self {
            positions: places.map(|(place, waiter)| (waiter.proc, place)).collect(),
            queue: [0; LockMode::ALL.len()],
            holders: 0,
        }
    }

    /// Adds the sessions that `waiter` waits for in `mode` to `blockers`, without those that were reached from others.
    fn follow(
        &mut self,
        entry: &LockEntry,
        waiter: ProcId,
        mode: LockMode,
        is_searcher: bool,
        blockers: &mut Vec<ProcId>,
    ) {
        // R1: a victim is in no queue any more.
        let Some(&place) = self.positions.get(&waiter) else {
            return;
        };
        if self.holders & mode.bit() == 0 {
            let in_the_way = entry
                .holders
                .iter()
                .filter(|holder| holder.proc != waiter && holder.modes & mode.conflicts() != 0);
            blockers.extend(in_the_way.map(|holder| holder.proc));
            // The searcher leaves itself out, and is what the others look for.
            if !is_searcher {
                self.holders |= mode.bit();
            }
        }
        let followed = &mut self.queue[mode as usize];
        for other in entry.queue.range((*followed).min(place)..place) {
            if other.mode.conflicts_with(mode) {
                blockers.push(other.proc);
            }
        }
        *followed = place.max(*followed);
    }
}

/// A search for a cycle.
struct Search<'a, M: Machine> {
    locks: &'a LockManager<M>,
    partitions: Vec<LatchedExclusive<'a, Partition, M>>,
    /// Sessions that were seen to wait and have gone on since.
    gone_on: BTreeSet<ProcId>,
}

impl<M: Machine> LockManager<M> {
    /// The search of a session that has waited for `deadlock_timeout`: left out unless others wait for the session.
    pub(crate) fn look_for_deadlock(&self, searcher: ProcId) -> Option<Vec<DeadlockWait>> {
        if !self.is_waited_for(searcher) {
            return None;
        }
        self.find_deadlock(searcher)
    }

    /// True if another session waits for something that `proc`, which calls this, holds. It may be wrong about a transaction
    /// (`transaction_has_waiter`): then none does.
    fn is_waited_for(&self, proc: ProcId) -> bool {
        self.wait_of(proc).transaction_has_waiter.load(Relaxed) != 0 || self.holds_what_others_want(proc)
    }

    /// Looks for a cycle through `searcher`. If no order of the queues dissolves it, the searcher's wait is struck out and
    /// the cycle is returned in words. Otherwise the searcher may have been granted its lock.
    pub(crate) fn find_deadlock(&self, searcher: ProcId) -> Option<Vec<DeadlockWait>> {
        let mut search = Search::of(self);
        Search::<M>::fence();
        let cycle = search.cycle_through(searcher)?;
        if let Some(changed) = search.rearrange(searcher, &cycle) {
            let granted = search.grant_anew(&changed);
            drop(search);
            let avoided = &self.wait_of(searcher).avoided_deadlocks;
            avoided.store(avoided.load(Relaxed) + 1, Relaxed);
            self.wake_granted(granted);
            return None;
        }
        // R1.
        self.waited_for_xids[searcher.0 as usize].store(0, Relaxed);
        if let Wanted::Lock(tag, _) = cycle[0].wanted
            && let Some(entry) = search.partitions[self.partition_number(tag)]
                .entries
                .get_mut(&tag)
        {
            entry.queue.retain(|waiter| waiter.proc != searcher);
        }
        Some(describe(&cycle))
    }

    /// Number of deadlocks that the waits of `proc` would have been part of, and for which the queues got another order
    /// instead. For the session itself: what another reads may be behind.
    pub fn avoided_deadlocks(&self, proc: ProcId) -> u64 {
        self.wait_of(proc).avoided_deadlocks.load(Relaxed)
    }

    /// True if a cycle goes through `searcher`, whose wait stays as it is.
    pub(crate) fn is_deadlocked(&self, searcher: ProcId) -> bool {
        Search::of(self).cycle_through(searcher).is_some()
    }
}

impl<'a, M: Machine> Search<'a, M> {
    /// Takes the latches.
    fn of(locks: &'a LockManager<M>) -> Self {
        let partitions = locks.partitions.iter();
        Self {
            locks,
            partitions: partitions.map(|partition| partition.exclusive()).collect(),
            gone_on: BTreeSet::new(),
        }
    }

    /// A cycle through `searcher`, whose wait comes first (R2).
    fn cycle_through(&mut self, searcher: ProcId) -> Option<Vec<Link>> {
        loop {
            let path = self.path_back_to(searcher)?;
            // SeqCst: no second read comes before a first one, whatever the Acquire loads allow.
            M::fence(SeqCst);
            match path.iter().find(|link| !self.still_waits(link)) {
                None => return Some(path),
                Some(link) => self.gone_on.insert(link.waiter),
            };
        }
    }

    /// The first read: a path from `searcher` back to it.
    fn path_back_to(&self, searcher: ProcId) -> Option<Vec<Link>> {
        let mut reached_by: BTreeMap<ProcId, Link> = BTreeMap::new();
        let mut followed: BTreeMap<LockTag, Followed> = BTreeMap::new();
        let mut to_follow = vec![searcher];
        let mut blockers = Vec::new();
        while let Some(waiter) = to_follow.pop() {
            blockers.clear();
            let Some(wanted) = self.wanted_by(waiter, &mut blockers) else {
                continue;
            };
            if let Wanted::Lock(tag, mode) = wanted
                && let Some(entry) = self.entry(tag)
            {
                let followed = followed.entry(tag).or_insert_with(|| Followed::nothing_of(entry));
                followed.follow(entry, waiter, mode, waiter == searcher, &mut blockers);
            }
            for &blocker in &blockers {
                let link = Link {
                    waiter,
                    wanted,
                    blocker,
                };
                if blocker == searcher {
                    return Some(path_to(link, searcher, &reached_by));
                }
                reached_by.entry(blocker).or_insert_with(|| {
                    to_follow.push(blocker);
                    link
                });
            }
        }
        None
    }

    fn entry(&self, tag: LockTag) -> Option<&LockEntry> {
        self.partitions[self.locks.partition_number(tag)]
            .entries
            .get(&tag)
    }

    /// The wait of `waiter`, if there is one. The session that runs a transaction waited for, or ran it, becomes one of
    /// `blockers`.
    fn wanted_by(&self, waiter: ProcId, blockers: &mut Vec<ProcId>) -> Option<Wanted> {
        if self.gone_on.contains(&waiter) {
            return None;
        }
        if let Some((tag, mode)) = self.locks.queues_for(waiter) {
            return Some(Wanted::Lock(tag, mode));
        }
        let wait = self.locks.wait_of(waiter);
        let number = wait.transaction_waits.load(Acquire);
        // Acquire, here and in `still_waits`: pairs with the Release in `wait_for_transaction`.
        let xid = Xid(self.locks.waited_for_xids[waiter.0 as usize].load(Acquire));
        xid.is_valid().then(|| {
            // The runner's number may be that of a later wait: then the second read finds that it does not run this one.
            blockers.push(ProcId(wait.waited_for_proc.load(Relaxed)));
            Wanted::Transaction(xid, number)
        })
    }

    /// The second read.
    fn still_waits(&self, link: &Link) -> bool {
        match link.wanted {
            Wanted::Lock(..) => true,
            Wanted::Transaction(xid, number) => {
                self.locks.waited_for_xids[link.waiter.0 as usize].load(Acquire) == xid.0
                    && self.locks.wait_of(link.waiter).transaction_waits.load(Acquire) == number
                    && self.locks.proc_array.xid_of(link.blocker) == Some(xid)
            }
        }
    }
}

/// The path from `searcher` by way of `last`.
fn path_to(last: Link, searcher: ProcId, reached_by: &BTreeMap<ProcId, Link>) -> Vec<Link> {
    let mut path = vec![last];
    let mut waiter = last.waiter;
    while waiter != searcher {
        let link = reached_by[&waiter];
        waiter = link.waiter;
        path.push(link);
    }
    path.reverse();
    path
}

fn describe(path: &[Link]) -> Vec<DeadlockWait> {
    let target = |wanted: Wanted| match wanted {
        Wanted::Lock(tag, mode) => WaitTarget::Lock(tag, mode),
        Wanted::Transaction(xid, _) => WaitTarget::Transaction(xid),
    };
    let waits = path.iter().map(|link| DeadlockWait {
        waiter: link.waiter,
        target: target(link.wanted),
        blocker: link.blocker,
    });
    waits.collect()
}

#[cfg(all(test, not(feature = "loom"), not(feature = "shuttle")))]
mod tests;
