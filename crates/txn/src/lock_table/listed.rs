//! Locks, and sessions that wait for them, for those that look: `pg_locks`, `pg_blocking_pids`.
//!
//! Each list of a session and each queue is looked at by itself, so what is listed need not have been at one moment. A
//! search for a deadlock, which needs one moment, is `deadlock`.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use clearway_machine::{AtomicWord, Machine};

use super::{LockManager, LockTag};
use crate::{LockMode, ProcId, Xid};

/// One mode of one lock, held or waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedLock {
    /// The session.
    pub proc: ProcId,
    /// The lock.
    pub tag: LockTag,
    /// The mode.
    pub mode: LockMode,
    /// True if the session has it; else it waits.
    pub granted: bool,
    /// True if it is on the session's own list alone (`fast_path`).
    pub fast: bool,
    /// Time for which the session has waited.
    pub waited: Option<Duration>,
}

/// The sessions that hold a lock, in whatever mode, or run a transaction; and those that wait for it, of a lock in the order
/// in which they get it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LockQueue {
    /// Those that have it.
    pub holders: Vec<ProcId>,
    /// Those that wait.
    pub waiters: Vec<ProcId>,
}

impl<M: Machine> LockManager<M> {
    /// All locks that sessions hold or wait for; waits for transactions apart ([`waits_for`](Self::waits_for)).
    pub fn listed(&self) -> Vec<ListedLock> {
        let mut listed = Vec::new();
        for (number, wait) in self.waits.iter().enumerate() {
            for lock in wait.held.shared().iter() {
                let modes = LockMode::ALL.into_iter();
                for mode in modes.filter(|mode| lock.modes & mode.bit() != 0) {
                    listed.push(ListedLock {
                        proc: ProcId(number as u32),
                        tag: lock.tag,
                        mode,
                        granted: true,
                        fast: lock.fast,
                        waited: None,
                    });
                }
            }
        }
        for partition in &self.partitions {
            for (tag, entry) in &partition.shared().entries {
                for waiter in &entry.queue {
                    listed.push(ListedLock {
                        proc: waiter.proc,
                        tag: *tag,
                        mode: waiter.mode,
                        granted: false,
                        fast: false,
                        waited: Some(self.waited(waiter.proc)),
                    });
                }
            }
        }
        listed
    }

    /// The transaction that `proc` waits for, and for how long it has.
    pub fn waits_for(&self, proc: ProcId) -> Option<(Xid, Duration)> {
        let xid = self.transaction_waited_for(proc)?;
        Some((xid, self.waited(proc)))
    }

    fn waited(&self, proc: ProcId) -> Duration {
        let started = self.wait_of(proc).wait_started_ns.load(Relaxed);
        Duration::from_nanos(M::now().saturating_sub(started))
    }

    /// The sessions that `proc` waits for: holders of the lock in a mode that excludes the one it asks for, sessions before
    /// it in the queue that ask for such a mode, or the session that runs the transaction that it waits for.
    pub fn blockers(&self, proc: ProcId) -> Vec<ProcId> {
        let mut blockers = Vec::new();
        if let Some(xid) = self.transaction_waited_for(proc) {
            blockers.extend(self.proc_array.find_running(xid));
        }
        for partition in &self.partitions {
            let partition = partition.shared();
            for entry in partition.entries.values() {
                let Some(place) = entry.queue.iter().position(|waiter| waiter.proc == proc) else {
                    continue;
                };
                let excluded = entry.queue[place].mode.conflicts();
                let holders = entry.holders.iter();
                let holders = holders.filter(|holder| holder.proc != proc && holder.modes & excluded != 0);
                blockers.extend(holders.map(|holder| holder.proc));
                let before = entry.queue.range(..place);
                let before = before.filter(|waiter| waiter.mode.bit() & excluded != 0);
                blockers.extend(before.map(|waiter| waiter.proc));
            }
        }
        blockers.sort_unstable_by_key(|proc| proc.0);
        blockers.dedup();
        blockers
    }

    /// All sessions at the lock or the transaction that `proc` waits for.
    pub fn queue_of(&self, proc: ProcId) -> LockQueue {
        let mut queue = LockQueue::default();
        if let Some(xid) = self.transaction_waited_for(proc) {
            queue.holders.extend(self.proc_array.find_running(xid));
            let all = (0..self.waits.len()).map(|number| ProcId(number as u32));
            queue
                .waiters
                .extend(all.filter(|other| self.transaction_waited_for(*other) == Some(xid)));
            return queue;
        }
        for partition in &self.partitions {
            let partition = partition.shared();
            let mut entries = partition.entries.values();
            if let Some(entry) = entries.find(|entry| entry.queue.iter().any(|waiter| waiter.proc == proc)) {
                queue
                    .holders
                    .extend(entry.holders.iter().map(|holder| holder.proc));
                queue.waiters.extend(entry.queue.iter().map(|waiter| waiter.proc));
                break;
            }
        }
        queue
    }
}
