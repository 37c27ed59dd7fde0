//! Relation and tuple locks, held to the end of a transaction (tuple locks: to the end of the row's change).
//!
//! A partitioned hash table, each partition under a latch. An entry holds who has the lock in which mode, and a queue.
//!
//! # Rules
//! - R1: a request is granted at once iff it conflicts with no *other* session's granted mode and with nobody who
//!   queues already. So a stream of readers cannot starve a strong locker.
//! - R2: a release grants from the head of the queue: each waiter that conflicts with no other session's granted mode
//!   and with nobody left waiting before it.
//! - R3: a session is granted by whoever releases, under the partition's latch: the waiter that wakes *has* the lock.
//!   One that gives up (cancelled, timed out, deadlock) removes itself under the same latch, or finds itself granted.
//! - R4: only the session itself touches the list of what it holds.
//!
//! Origin: PostgreSQL's lmgr.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use clearway_latch::{LatchClass, Latched, LatchedExclusive, LwLockAlgorithm};
use clearway_machine::{AtomicWord, Machine, Native, Padded, Semaphore, WaitEvent, WaitScope};

use crate::{LockMode, ProcArray, ProcId, Xid};

static LOCK_MANAGER: LatchClass = LatchClass::new("LockManager", WaitEvent::LockManager, 200);
static HELD_LOCKS: LatchClass = LatchClass::new("HeldLocks", WaitEvent::LockManager, 190);

const PARTITIONS: usize = 16;
/// How often a sleeper looks whether its statement was cancelled.
const CANCEL_POLL: Duration = Duration::from_millis(100);

/// How relation locks are kept; the switch `relation_locks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RelationLocks {
    /// All in the partitioned table.
    #[default]
    Table,
}

/// What can be locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LockTag {
    /// A relation, by number.
    Relation(u32),
    /// One row version: the place at the head of the queue for it.
    Tuple {
        /// The relation's number.
        rel: u32,
        /// The page.
        block: u32,
        /// The line pointer.
        slot: u16,
    },
}

impl LockTag {
    fn wait_event(self) -> WaitEvent {
        match self {
            LockTag::Relation(_) => WaitEvent::LockRelation,
            LockTag::Tuple { .. } => WaitEvent::LockTuple,
        }
    }
}

/// Why a lock, or the end of a transaction, could not be waited for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Waiting on would have been for ever.
    #[error("deadlock detected: {cycle}")]
    Deadlock {
        /// Who waits for whom, in words.
        cycle: String,
    },
    /// The statement was cancelled while it waited.
    #[error("canceled while waiting for a lock")]
    Cancelled,
    /// The wait took longer than allowed.
    #[error("gave up waiting for a lock")]
    Timeout,
}

/// How long, and until when, to wait.
#[derive(Clone, Copy)]
pub struct LockWait<'a> {
    /// Give up after this long.
    pub timeout: Option<Duration>,
    /// Asked every 100 ms and after [`LockManager::wake`]: give up now?
    pub cancel: &'a dyn Fn() -> bool,
}

impl std::fmt::Debug for LockWait<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LockWait").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

impl LockWait<'_> {
    /// Wait as long as it takes.
    pub const FOREVER: LockWait<'static> = LockWait { timeout: None, cancel: &|| false };
}

#[derive(Debug, Default)]
pub(crate) struct LockEntry {
    pub(crate) granted: Vec<(ProcId, LockMode)>,
    pub(crate) queue: VecDeque<(ProcId, LockMode)>,
}

impl LockEntry {
    fn admits(&self, proc: ProcId, mode: LockMode) -> bool {
        self.granted.iter().all(|&(other, held)| other == proc || !held.conflicts_with(mode))
    }
}

pub(crate) type Partition = HashMap<LockTag, LockEntry, BuildHasherDefault<DefaultHasher>>;

const NOT_WAITING: u32 = 0;
const QUEUED: u32 = 1;

/// What a session's slot holds for waiting.
#[derive(Debug)]
pub(crate) struct ProcWait<M: Machine> {
    pub(crate) semaphore: Semaphore<M>,
    /// QUEUED until granted or given up.
    queued: M::U32,
    /// The transaction whose end is waited for, or 0.
    pub(crate) awaited_xid: M::U64,
    /// 1 if somebody may wait for the end of this slot's transaction.
    pub(crate) awaited: M::U32,
    held: Latched<Vec<(LockTag, LockMode)>, M>,
}

/// Relation locks, tuple locks, and waits for transactions.
#[derive(Debug)]
pub struct LockManager<M: Machine = Native> {
    pub(crate) partitions: Vec<Padded<Latched<Partition, M>>>,
    pub(crate) waits: Vec<Padded<ProcWait<M>>>,
    pub(crate) proc_array: Arc<ProcArray<M>>,
    pub(crate) deadlock_timeout: Duration,
}

/// What ended one sleep.
pub(crate) enum Slept {
    Done,
    GiveUp(LockError),
    CheckDeadlock,
}

impl<M: Machine> LockManager<M> {
    /// A manager for the sessions of `proc_array`. A wait longer than `deadlock_timeout` looks for a cycle.
    pub fn new(proc_array: Arc<ProcArray<M>>, algorithm: LwLockAlgorithm, deadlock_timeout: Duration) -> Self {
        let wait = || ProcWait {
            semaphore: Semaphore::new(),
            queued: M::U32::new(NOT_WAITING),
            awaited_xid: M::U64::new(0),
            awaited: M::U32::new(0),
            held: Latched::new(&HELD_LOCKS, algorithm, Vec::new()),
        };
        Self {
            partitions: (0..PARTITIONS)
                .map(|_| Padded(Latched::new(&LOCK_MANAGER, algorithm, Partition::default())))
                .collect(),
            waits: (0..proc_array.capacity()).map(|_| Padded(wait())).collect(),
            proc_array,
            deadlock_timeout,
        }
    }

    pub(crate) fn wait_of(&self, proc: ProcId) -> &ProcWait<M> {
        &self.waits[proc.0 as usize]
    }

    fn partition(&self, tag: LockTag) -> &Latched<Partition, M> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(tag);
        // The table inside uses the same hash's low bits; the partition is chosen by the high ones.
        &self.partitions[(hash >> 60) as usize % PARTITIONS]
    }

    /// Acquires `tag` in `mode` for `proc`, waiting as `wait` allows. Held already in that mode: nothing happens.
    pub fn acquire(
        &self,
        proc: ProcId,
        tag: LockTag,
        mode: LockMode,
        wait: LockWait<'_>,
    ) -> Result<(), LockError> {
        if self.holds(proc, tag, mode) {
            return Ok(());
        }
        {
            let mut partition = self.partition(tag).exclusive();
            let entry = partition.entry(tag).or_default();
            if self.grant_at_once(entry, proc, mode) {
                entry.granted.push((proc, mode));
            } else {
                self.wait_of(proc).queued.store(QUEUED, Relaxed);
                entry.queue.push_back((proc, mode));
                drop(partition);
                self.wait_for_grant(proc, tag, wait)?;
            }
        }
        self.wait_of(proc).held.exclusive().push((tag, mode));
        Ok(())
    }

    /// Acquires the lock if that needs no waiting.
    pub fn try_acquire(&self, proc: ProcId, tag: LockTag, mode: LockMode) -> bool {
        if self.holds(proc, tag, mode) {
            return true;
        }
        let mut partition = self.partition(tag).exclusive();
        let entry = partition.entry(tag).or_default();
        if !self.grant_at_once(entry, proc, mode) {
            return false;
        }
        entry.granted.push((proc, mode));
        drop(partition);
        self.wait_of(proc).held.exclusive().push((tag, mode));
        true
    }

    /// R1. Someone who holds the lock already, in another mode, passes the queue: it would wait for itself.
    fn grant_at_once(&self, entry: &LockEntry, proc: ProcId, mode: LockMode) -> bool {
        let holds_some = entry.granted.iter().any(|&(other, _)| other == proc);
        entry.admits(proc, mode)
            && (holds_some || entry.queue.iter().all(|&(_, waiting)| !waiting.conflicts_with(mode)))
    }

    /// Whether `proc` holds `tag` in exactly `mode`.
    pub fn holds(&self, proc: ProcId, tag: LockTag, mode: LockMode) -> bool {
        self.wait_of(proc).held.shared().contains(&(tag, mode))
    }

    fn wait_for_grant(&self, proc: ProcId, tag: LockTag, wait: LockWait<'_>) -> Result<(), LockError> {
        let _event = WaitScope::<M>::enter(tag.wait_event());
        let me = self.wait_of(proc);
        let started = M::now();
        let mut checked = false;
        loop {
            // Acquire: pairs with the Release in `grant_waiters`.
            let granted = || me.queued.load(Acquire) == NOT_WAITING;
            let error = match self.sleep(proc, started, &mut checked, wait, granted) {
                Slept::Done => return Ok(()),
                Slept::GiveUp(error) => error,
                Slept::CheckDeadlock => match self.find_deadlock(proc) {
                    Some(cycle) => LockError::Deadlock { cycle },
                    None => continue,
                },
            };
            let mut partition = self.partition(tag).exclusive();
            if granted() {
                // R3: granted while we decided to give up.
                return Ok(());
            }
            self.leave_queue(&mut partition, tag, proc);
            return Err(error);
        }
    }

    /// One sleep of a waiting session, until `done`, a reason to give up, or the moment to look for a deadlock.
    pub(crate) fn sleep(
        &self,
        proc: ProcId,
        started: u64,
        checked: &mut bool,
        wait: LockWait<'_>,
        done: impl Fn() -> bool,
    ) -> Slept {
        loop {
            if done() {
                return Slept::Done;
            }
            if (wait.cancel)() {
                return Slept::GiveUp(LockError::Cancelled);
            }
            let waited = Duration::from_nanos(M::now().saturating_sub(started));
            let mut nap = CANCEL_POLL;
            if let Some(timeout) = wait.timeout {
                if waited >= timeout {
                    return Slept::GiveUp(LockError::Timeout);
                }
                nap = nap.min(timeout - waited);
            }
            if !*checked {
                if waited >= self.deadlock_timeout {
                    *checked = true;
                    return Slept::CheckDeadlock;
                }
                nap = nap.min(self.deadlock_timeout - waited);
            }
            self.wait_of(proc).semaphore.wait_timeout(nap);
        }
    }

    fn leave_queue(&self, partition: &mut LatchedExclusive<'_, Partition, M>, tag: LockTag, proc: ProcId) {
        self.wait_of(proc).queued.store(NOT_WAITING, Relaxed);
        if let Entry::Occupied(mut entry) = partition.entry(tag) {
            entry.get_mut().queue.retain(|&(waiter, _)| waiter != proc);
            // Those behind may have waited for us alone.
            self.grant_waiters(entry.get_mut());
            if entry.get().granted.is_empty() && entry.get().queue.is_empty() {
                entry.remove();
            }
        }
    }

    /// R2.
    fn grant_waiters(&self, entry: &mut LockEntry) {
        let mut still_waiting: Vec<LockMode> = Vec::new();
        let mut position = 0;
        while let Some(&(proc, mode)) = entry.queue.get(position) {
            if entry.admits(proc, mode) && still_waiting.iter().all(|before| !before.conflicts_with(mode)) {
                entry.queue.remove(position);
                entry.granted.push((proc, mode));
                let waiter = self.wait_of(proc);
                // Release: pairs with the Acquire in `wait_for_grant`.
                waiter.queued.store(NOT_WAITING, Release);
                waiter.semaphore.post();
            } else {
                still_waiting.push(mode);
                position += 1;
            }
        }
    }

    fn release_granted(&self, proc: ProcId, tag: LockTag, mode: LockMode) {
        let mut partition = self.partition(tag).exclusive();
        let Entry::Occupied(mut entry) = partition.entry(tag) else {
            unreachable!("R4: a lock on the session's list is in the table");
        };
        entry.get_mut().granted.retain(|&granted| granted != (proc, mode));
        if !entry.get().queue.is_empty() {
            self.grant_waiters(entry.get_mut());
        }
        if entry.get().granted.is_empty() && entry.get().queue.is_empty() {
            entry.remove();
        }
    }

    /// Gives one lock back before the end of the transaction.
    pub fn release(&self, proc: ProcId, tag: LockTag, mode: LockMode) {
        let mut held = self.wait_of(proc).held.exclusive();
        let Some(position) = held.iter().rposition(|&lock| lock == (tag, mode)) else {
            debug_assert!(false, "session {} releases {tag:?} {mode} and does not hold it", proc.0);
            return;
        };
        held.swap_remove(position);
        drop(held);
        self.release_granted(proc, tag, mode);
    }

    /// Gives back everything `proc` holds: the end of its transaction.
    pub fn release_all(&self, proc: ProcId) {
        loop {
            // One at a time, so that the list's latch is not held under the partition's.
            let Some((tag, mode)) = self.wait_of(proc).held.exclusive().pop() else {
                return;
            };
            self.release_granted(proc, tag, mode);
        }
    }

    /// Makes `proc`, if it waits, look at its cancel flag now.
    pub fn wake(&self, proc: ProcId) {
        self.wait_of(proc).semaphore.post();
    }

    /// The transaction `proc` waits for, if it does.
    pub fn awaited_transaction(&self, proc: ProcId) -> Option<Xid> {
        Some(Xid(self.wait_of(proc).awaited_xid.load(Relaxed))).filter(|xid| xid.is_valid())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manager() -> Arc<LockManager<Native>> {
        let array = Arc::new(ProcArray::new(8, LwLockAlgorithm::SingleCas, Xid(100)));
        for _ in 0..8 {
            array.attach().unwrap();
        }
        Arc::new(LockManager::new(array, LwLockAlgorithm::SingleCas, Duration::from_millis(50)))
    }

    const ALICE: ProcId = ProcId(0);
    const BOB: ProcId = ProcId(1);
    const CAROL: ProcId = ProcId(2);
    const ACCOUNTS: LockTag = LockTag::Relation(10);
    const HISTORY: LockTag = LockTag::Relation(11);

    #[test]
    fn weak_modes_share_and_strong_ones_wait() {
        let locks = manager();
        assert!(locks.try_acquire(ALICE, ACCOUNTS, LockMode::RowExclusive));
        assert!(locks.try_acquire(BOB, ACCOUNTS, LockMode::RowExclusive));
        assert!(!locks.try_acquire(CAROL, ACCOUNTS, LockMode::AccessExclusive));
        let carol = LockWait { timeout: Some(Duration::from_millis(20)), cancel: &|| false };
        assert_eq!(locks.acquire(CAROL, ACCOUNTS, LockMode::AccessExclusive, carol), Err(LockError::Timeout));
        locks.release_all(ALICE);
        locks.release_all(BOB);
        assert!(locks.try_acquire(CAROL, ACCOUNTS, LockMode::AccessExclusive));
    }

    #[test]
    fn newcomers_do_not_pass_a_queued_strong_locker() {
        let locks = manager();
        assert!(locks.try_acquire(ALICE, ACCOUNTS, LockMode::AccessShare));
        std::thread::scope(|scope| {
            let strong = scope.spawn(|| {
                locks.acquire(BOB, ACCOUNTS, LockMode::AccessExclusive, LockWait::FOREVER).unwrap();
                locks.release_all(BOB);
            });
            while locks.wait_of(BOB).queued.load(Acquire) == NOT_WAITING {
                std::thread::yield_now();
            }
            assert!(!locks.try_acquire(CAROL, ACCOUNTS, LockMode::AccessShare), "R1");
            locks.release_all(ALICE);
            strong.join().unwrap();
        });
        assert!(locks.try_acquire(CAROL, ACCOUNTS, LockMode::AccessShare));
    }

    #[test]
    fn a_deadlock_has_exactly_one_victim() {
        let locks = manager();
        assert!(locks.try_acquire(ALICE, ACCOUNTS, LockMode::Exclusive));
        assert!(locks.try_acquire(BOB, HISTORY, LockMode::Exclusive));
        let run = |me: ProcId, wanted: LockTag| {
            let result = locks.acquire(me, wanted, LockMode::Exclusive, LockWait::FOREVER);
            locks.release_all(me);
            result
        };
        let (alice, bob) = std::thread::scope(|scope| {
            let alice = scope.spawn(|| run(ALICE, HISTORY));
            let bob = scope.spawn(|| run(BOB, ACCOUNTS));
            (alice.join().unwrap(), bob.join().unwrap())
        });
        assert!(alice.is_ok() != bob.is_ok(), "{alice:?} {bob:?}");
        assert!(matches!(alice.and(bob), Err(LockError::Deadlock { .. })));
    }

    #[test]
    fn a_lock_and_a_transaction_can_deadlock() {
        let locks = manager();
        let a = locks.proc_array.assign_xid(ALICE);
        assert!(locks.try_acquire(BOB, HISTORY, LockMode::Exclusive));
        let (alice, bob) = std::thread::scope(|scope| {
            let alice = scope.spawn(|| {
                let result = locks.acquire(ALICE, HISTORY, LockMode::Exclusive, LockWait::FOREVER);
                locks.proc_array.end(ALICE, Some(a));
                locks.transaction_ended(ALICE, a);
                locks.release_all(ALICE);
                result
            });
            let bob = scope.spawn(|| {
                let result = locks.wait_for_transaction(BOB, a, LockWait::FOREVER);
                locks.release_all(BOB);
                result
            });
            (alice.join().unwrap(), bob.join().unwrap())
        });
        assert!(alice.is_ok() != bob.is_ok(), "{alice:?} {bob:?}");
    }

    #[test]
    fn a_cancelled_waiter_leaves_no_trace() {
        let locks = manager();
        assert!(locks.try_acquire(ALICE, ACCOUNTS, LockMode::Exclusive));
        let now = LockWait { timeout: None, cancel: &|| true };
        assert_eq!(locks.acquire(BOB, ACCOUNTS, LockMode::Exclusive, now), Err(LockError::Cancelled));
        locks.release_all(ALICE);
        assert!(locks.partitions.iter().all(|partition| partition.shared().is_empty()));
    }

    #[test]
    fn many_sessions_count_under_one_lock() {
        let locks = manager();
        let counter = std::cell::UnsafeCell::new(0u64);
        struct Shared<'a>(&'a std::cell::UnsafeCell<u64>);
        // SAFETY: the counter is touched under the exclusive lock only; that is what this test checks.
        unsafe impl Sync for Shared<'_> {}
        let shared = Shared(&counter);
        std::thread::scope(|scope| {
            for proc in 0..8 {
                let (locks, shared) = (&locks, &shared);
                scope.spawn(move || {
                    for _ in 0..2_000 {
                        locks.acquire(ProcId(proc), ACCOUNTS, LockMode::Exclusive, LockWait::FOREVER).unwrap();
                        // SAFETY: we hold the lock exclusively.
                        unsafe { *shared.0.get() += 1 };
                        locks.release_all(ProcId(proc));
                    }
                });
            }
        });
        assert_eq!(counter.into_inner(), 16_000);
    }
}
