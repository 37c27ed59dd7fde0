//! Deadlock detection.
//!
//! A session that has waited for `deadlock_timeout` takes all partition latches, in order, and follows which session
//! waits for which: a session queued for a lock waits for every other session that holds it in a conflicting mode, and
//! for those queued before it in a conflicting mode; a session that waits for a transaction waits for the session that
//! runs it. A path back to the searcher is a deadlock, and the searcher is the victim.
//!
//! # Rules
//! - R1: the victim's wait is struck out before the latches are let go, so of several searchers in one cycle only the
//!   first finds it, and one victim suffices.
//! - R2: a cycle found is real. Waits for locks cannot change under the latches. A wait for a transaction ends only
//!   when the session that runs it goes on, and in a cycle none does; one seen out of date belongs to a session that
//!   runs, from which no path goes on.
//! - R3: no cycle is missed for ever. Each session of it searches once, after its wait began. The last of them to take
//!   the latches sees the waits of all others, which began before those searched, and so before they let the latches
//!   go.
//!
//! The cost, all latches for one pass over the queues, falls on sessions that have slept for a second.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;

use clearway_latch::LatchedExclusive;
use clearway_machine::{AtomicWord, Machine};

use crate::lock_table::{LockManager, Partition};
use crate::{LockMode, LockTag, ProcId, Xid};

/// What a session waits for.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    Lock(LockTag, LockMode),
    Transaction(Xid, ProcId),
}

/// The waits of one instant.
struct WaitGraph<'a, M: Machine> {
    partitions: Vec<LatchedExclusive<'a, Partition, M>>,
    wanted: BTreeMap<ProcId, (Wanted, usize)>,
}

impl<M: Machine> LockManager<M> {
    /// Looks for a cycle through `searcher`; found, the searcher's wait is struck out and the cycle told in words.
    pub(crate) fn find_deadlock(&self, searcher: ProcId) -> Option<String> {
        let mut graph = self.wait_graph();
        let mut path = Vec::new();
        if !graph.reaches(searcher, searcher, &mut BTreeSet::new(), &mut path) {
            return None;
        }
        let cycle = graph.describe(&path);
        // R1.
        self.waited_for_xids[searcher.0 as usize].store(0, Relaxed);
        if let Some(&(Wanted::Lock(tag, _), partition)) = graph.wanted.get(&searcher)
            && let Some(entry) = graph.partitions[partition].entries.get_mut(&tag)
        {
            entry.queue.retain(|waiter| waiter.proc != searcher);
        }
        Some(cycle)
    }

    /// Whether a cycle goes through `searcher`, whose wait stays as it is.
    pub(crate) fn is_deadlocked(&self, searcher: ProcId) -> bool {
        self.wait_graph()
            .reaches(searcher, searcher, &mut BTreeSet::new(), &mut Vec::new())
    }

    fn wait_graph(&self) -> WaitGraph<'_, M> {
        let partitions: Vec<_> = self
            .partitions
            .iter()
            .map(|partition| partition.exclusive())
            .collect();
        let mut wanted = BTreeMap::new();
        for (number, partition) in partitions.iter().enumerate() {
            for (tag, entry) in &partition.entries {
                for waiter in &entry.queue {
                    wanted.insert(waiter.proc, (Wanted::Lock(*tag, waiter.mode), number));
                }
            }
        }
        for waiter in self.proc_array.slots() {
            if let Some(xid) = self.transaction_waited_for(waiter) {
                let runner = ProcId(self.wait_of(waiter).waited_for_proc.load(Relaxed));
                if self.proc_array.xid_of(runner) == Some(xid) {
                    wanted.insert(waiter, (Wanted::Transaction(xid, runner), 0));
                }
            }
        }
        WaitGraph { partitions, wanted }
    }
}

impl<M: Machine> WaitGraph<'_, M> {
    /// The sessions that `waiter` waits for.
    fn blockers(&self, waiter: ProcId) -> Vec<ProcId> {
        match self.wanted.get(&waiter) {
            None => Vec::new(),
            Some(&(Wanted::Transaction(_, runner), _)) => vec![runner],
            Some(&(Wanted::Lock(tag, mode), partition)) => {
                let entry = &self.partitions[partition].entries[&tag];
                let holders = entry
                    .holders
                    .iter()
                    .filter(|holder| holder.modes & mode.conflicts() != 0);
                let before = entry.queue.iter().take_while(|other| other.proc != waiter);
                let before = before.filter(|other| other.mode.conflicts_with(mode));
                let all = holders
                    .map(|holder| holder.proc)
                    .chain(before.map(|other| other.proc));
                all.filter(|other| *other != waiter).collect()
            }
        }
    }

    /// Depth-first search from `from` for `goal`; `path` becomes the sessions on the way, `from` first.
    fn reaches(
        &self,
        from: ProcId,
        goal: ProcId,
        visited: &mut BTreeSet<ProcId>,
        path: &mut Vec<ProcId>,
    ) -> bool {
        path.push(from);
        for blocker in self.blockers(from) {
            if blocker == goal || visited.insert(blocker) && self.reaches(blocker, goal, visited, path) {
                return true;
            }
        }
        path.pop();
        false
    }

    fn describe(&self, path: &[ProcId]) -> String {
        let mut words = String::new();
        for (position, waiter) in path.iter().enumerate() {
            let blocker = path[(position + 1) % path.len()];
            let separator = if position == 0 { "" } else { "; " };
            let _ = match self.wanted.get(waiter) {
                Some((Wanted::Lock(tag, mode), _)) => {
                    write!(words, "{separator}session {} waits for {mode} on {tag}", waiter.0)
                }
                Some((Wanted::Transaction(xid, _), _)) => {
                    write!(
                        words,
                        "{separator}session {} waits for ShareLock on transaction {xid}",
                        waiter.0
                    )
                }
                None => unreachable!("a session on the path waits"),
            };
            let _ = write!(words, ", blocked by session {}", blocker.0);
        }
        words
    }
}
