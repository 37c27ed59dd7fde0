//! Deadlock detection.
//!
//! A session that has waited for `deadlock_timeout` takes all partition latches, in order, and follows who waits for whom:
//! a session queued for a lock waits for every other session that holds it in a conflicting mode, and for those queued
//! before it in a conflicting mode; a session that waits for a transaction waits for the session that runs it. A path back
//! to the searcher is a deadlock, and the searcher is the victim: it leaves its queue before the latches are let go, so of
//! several searchers in one cycle only the first finds it.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering::Relaxed;

use clearway_machine::{AtomicWord, Machine};

use crate::lock_table::LockManager;
use crate::{ProcId, Xid};

impl<M: Machine> LockManager<M> {
    /// Looks for a cycle through `searcher`; found, the searcher's wait is struck out and the cycle told in words.
    pub(crate) fn find_deadlock(&self, searcher: ProcId) -> Option<String> {
        let mut partitions: Vec<_> = self.partitions.iter().map(|partition| partition.exclusive()).collect();
        let mut waits_for: HashMap<ProcId, Vec<(ProcId, String)>> = HashMap::new();
        for partition in &partitions {
            for (tag, entry) in partition.iter() {
                for (position, &(waiter, mode)) in entry.queue.iter().enumerate() {
                    let before = entry.queue.iter().take(position);
                    let blockers = entry.granted.iter().chain(before);
                    let blockers = blockers.filter(|(other, held)| *other != waiter && held.conflicts_with(mode));
                    let edges = waits_for.entry(waiter).or_default();
                    edges.extend(blockers.map(|&(other, _)| (other, format!("{mode} on {tag:?}"))));
                }
            }
        }
        for waiter in self.proc_array.slots() {
            let xid = Xid(self.wait_of(waiter).awaited_xid.load(Relaxed));
            if xid.is_valid()
                && let Some(runner) = self.proc_array.find_running(xid)
            {
                waits_for.entry(waiter).or_default().push((runner, format!("ShareLock on transaction {xid}")));
            }
        }
        let mut path = Vec::new();
        let mut visited = HashSet::new();
        if !reaches(&waits_for, searcher, searcher, &mut visited, &mut path) {
            return None;
        }
        self.wait_of(searcher).awaited_xid.store(0, Relaxed);
        for partition in &mut partitions {
            for entry in partition.values_mut() {
                entry.queue.retain(|&(waiter, _)| waiter != searcher);
            }
        }
        Some(path.join("; "))
    }
}

/// Depth-first search from `from` for `goal`; `path` becomes the edges in words.
fn reaches(
    waits_for: &HashMap<ProcId, Vec<(ProcId, String)>>,
    from: ProcId,
    goal: ProcId,
    visited: &mut HashSet<ProcId>,
    path: &mut Vec<String>,
) -> bool {
    for (blocker, what) in waits_for.get(&from).into_iter().flatten() {
        path.push(format!("session {} waits for {what}, blocked by session {}", from.0, blocker.0));
        if *blocker == goal || visited.insert(*blocker) && reaches(waits_for, *blocker, goal, visited, path) {
            return true;
        }
        path.pop();
    }
    false
}
