//! Relation and tuple locks, held to the end of a transaction (tuple locks: to the end of the row's change).
//!
//! A partitioned hash table, each partition under a latch. An entry holds the sessions that have the lock, their modes,
//! and a queue.
//!
//! # Rules
//! - R1: a request is granted at once iff it conflicts with no *other* session's granted mode and with no request
//!   that queues already. So a stream of readers cannot starve a strong locker.
//! - R2: a release grants from the head of the queue: each waiter that conflicts with no other session's granted mode
//!   and with no request left waiting before it.
//! - R3: the session that releases grants to the waiters, under the partition's latch: a waiter that wakes *has* the
//!   lock. One that gives up (cancelled, timed out, deadlock) removes itself under the same latch, or finds itself
//!   granted.
//! - R4: only the session itself adds to the list of what it holds and takes from it, and what the list says to be in
//!   the table is there whenever the session is not inside one of these calls.
//! - R5: a holder that asks for a stronger mode queues before the first request that waits for what it holds already:
//!   behind it, each would wait for the other.
//! - R6: a session wakes those that it has granted to when it holds no latch of the table any more, and at the end of a
//!   transaction when it has given back all of its locks. A wake-up takes a microsecond or two, in which others would
//!   wait for the partition, and the woken for the next lock. That the post comes late loses nothing: the grant is in
//!   `queued`, and a waiter that sees it there earlier takes the post for one in vain, later.
//!
//! With `relation_locks = fast-path` weak relation locks do not come here at all unless a strong locker is about: see
//! `fast_path`.
//!
//! # Costs
//! An uncontended lock takes the session's list latch and the partition's latch, four atomic operations in all, and
//! allocates nothing: a relation's entry stays when it is idle, up to 64 of them a partition, and others are kept for
//! reuse. Whether a mode is admitted is one AND with the modes granted, however many sessions hold the lock. Asking for
//! what is held already costs the list latch alone, and so does a weak relation lock on the fast path.
//!
//! Locks that outlive a transaction are `session_locks`, and what others see of all locks is `listed`.
//!
//! # What it does not do
//! It does not promise the order of a queue: a search for a deadlock may change it (`deadlock::rearrange`). A tuple lock
//! held until the end of a transaction costs an entry here; row locks proper live in the row.
//!
//! Origin: PostgreSQL's lmgr.

mod deadlock_wait;
mod entry;
mod fast_path;
mod holders;
mod listed;
mod options;
mod queued_for;
mod request;
mod session_locks;
mod tag;
mod take_backs;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, BuildHasherDefault};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::time::Duration;

use clearway_latch::{LatchClass, Latched, LwLockOptions};
use clearway_machine::{AtomicWord, Machine, Native, Padded, Semaphore, WaitEvent, WaitScope, switch};

use crate::row_holders::RowHolders;
use crate::{LockMode, ProcArray, ProcId, Xid};
use entry::{TagHasher, Waiter};
use fast_path::StrongLockers;
use queued_for::QueuedFor;
use take_backs::TakeBacks;

pub use deadlock_wait::{DeadlockWait, WaitTarget};
pub(crate) use entry::{LockEntry, Partition};
pub use holders::LockHolder;
pub use listed::{ListedLock, LockQueue};
pub use options::LockOptions;
pub use request::LockRequest;
pub use tag::{LockKind, LockTag};

static LOCK_MANAGER: LatchClass = LatchClass::new("LockManager", WaitEvent::LockManager, 200);
static HELD_LOCKS: LatchClass = LatchClass::new("HeldLocks", WaitEvent::LockManager, 190);

const PARTITIONS: usize = 16;
/// Entries of a session's list that stay allocated between transactions.
const HELD_CAPACITY_KEPT: usize = 64;
/// Interval at which a sleeper looks if its statement was cancelled.
const CANCEL_POLL: Duration = Duration::from_millis(100);

switch! {
    /// The place of relation locks.
    pub enum RelationLocksVariant = "relation_locks", best FastPath, planned [] {
        /// In the shared table.
        Table = "table",
        /// Weak ones on the session's own list, until a strong locker comes.
        FastPath = "fast-path",
    }
    why {
        FastPath: "In select-only with 16 clients on two CPUs classic waits for LWLock:LockManager in 70 % of its \
            samples; clearway has no such wait among its top waits. Not varied by itself."
            in "README.md#two-commands";
    }
}

/// The reason why a lock, or the end of a transaction, could not be waited for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Waiting on would have been for ever.
    #[error("deadlock detected")]
    Deadlock {
        /// The sessions and their waits for each other, the session that gives up first.
        cycle: Vec<DeadlockWait>,
    },
    /// The statement was cancelled while it waited.
    #[error("canceled while waiting for a lock")]
    Cancelled,
    /// The wait took longer than allowed.
    #[error("gave up waiting for a lock")]
    Timeout,
}

/// The limits of a wait.
#[derive(Clone, Copy)]
pub struct LockWait<'a> {
    /// Give up after this long.
    pub timeout: Option<Duration>,
    /// Asked every 100 ms and after [`LockManager::wake`]: give up now?
    pub cancel: &'a dyn Fn() -> bool,
}

impl std::fmt::Debug for LockWait<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LockWait")
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl LockWait<'_> {
    /// Wait as long as it takes.
    pub const FOREVER: LockWait<'static> = LockWait {
        timeout: None,
        cancel: &|| false,
    };
}

const NOT_WAITING: u32 = 0;
const QUEUED: u32 = 1;

/// The state of a session's waits, in its slot.
#[derive(Debug)]
pub(crate) struct ProcWait<M: Machine> {
    pub(crate) semaphore: Semaphore<M>,
    /// QUEUED until granted or given up.
    queued: M::U32,
    /// Meaningful while `queued` is QUEUED; written and read under the partition's latch.
    queued_for: QueuedFor<M>,
    /// 1 if another session may wait for the end of this slot's transaction.
    pub(crate) transaction_has_waiter: M::U32,
    /// The session of the transaction that this session waits for; meaningful while its `waited_for_xids` entry is not
    /// 0.
    pub(crate) waited_for_proc: M::U32,
    /// Number of times that the session has begun to wait for a transaction. Only the session writes it.
    pub(crate) transaction_waits: M::U64,
    /// The transaction of this slot that has taken something back last, and how often; `transaction_wait` uses them.
    pub(crate) take_backs: TakeBacks<M>,
    /// Those of another slot that this session knows. Only the session uses it.
    pub(crate) known_take_backs: TakeBacks<M>,
    /// Number of locks on the list; written with the list, read by the session without its latch.
    held_count: M::U32,
    held: Latched<Vec<HeldLock>, M>,
    /// Number of times that all locks were given back; written under the list's latch.
    releases: M::U64,
    /// In nanoseconds; `u64::MAX`: no deadlock is looked for. Only the session writes it.
    deadlock_timeout_ns: M::U64,
    /// The time at which the last wait began, for those that list waits.
    wait_started_ns: M::U64,
    /// Number of deadlocks that the session's searches have avoided. Only the session uses it.
    pub(crate) avoided_deadlocks: M::U64,
}

/// One lock on a session's list.
#[derive(Debug, Clone, Copy)]
struct HeldLock {
    tag: LockTag,
    /// A set of modes, not empty.
    modes: u8,
    /// Those of them that stay when the transaction ends: the session's own (`session_locks`).
    session_modes: u8,
    /// These modes are on this list only, and not in the table.
    fast: bool,
}

/// Relation locks, tuple locks, and waits for transactions.
#[derive(Debug)]
pub struct LockManager<M: Machine = Native> {
    pub(crate) partitions: Vec<Padded<Latched<Partition, M>>>,
    pub(crate) waits: Vec<Padded<ProcWait<M>>>,
    /// Packed: the transaction each session waits for, or 0.
    pub(crate) waited_for_xids: Box<[M::U64]>,
    pub(crate) proc_array: Arc<ProcArray<M>>,
    rows: RowHolders<M>,
    relation_locks: RelationLocksVariant,
    strong_lockers: StrongLockers<M>,
}

/// The end of one sleep.
pub(crate) enum SleepOutcome {
    Done,
    GiveUp(LockError),
    CheckDeadlock,
}

/// A time in nanoseconds, 584 years at most.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The modes of `tag` on a session's list.
fn modes_on(held: &[HeldLock], tag: LockTag) -> u8 {
    held.iter()
        .find(|lock| lock.tag == tag)
        .map_or(0, |lock| lock.modes)
}

impl<M: Machine> LockManager<M> {
    /// The array whose sessions take the locks.
    #[inline]
    pub fn proc_array(&self) -> &ProcArray<M> {
        &self.proc_array
    }

    /// A manager for the sessions of `proc_array`. A wait longer than `deadlock_timeout` looks for a cycle, unless the
    /// session has set a time of its own.
    pub fn new(
        proc_array: Arc<ProcArray<M>>,
        lwlock: impl Into<LwLockOptions>,
        relation_locks: RelationLocksVariant,
        deadlock_timeout: Duration,
    ) -> Self {
        let options = LockOptions {
            relation_locks,
            lwlock: lwlock.into(),
            deadlock_timeout,
            ..LockOptions::default()
        };
        Self::with_options(proc_array, options)
    }

    /// As [`new`](Self::new).
    pub fn with_options(proc_array: Arc<ProcArray<M>>, options: LockOptions) -> Self {
        let LockOptions {
            relation_locks,
            row_locks,
            rows_max,
            lwlock,
            deadlock_timeout,
        } = options;
        let wait = || ProcWait {
            semaphore: Semaphore::new(),
            queued: M::U32::new(NOT_WAITING),
            queued_for: QueuedFor::nothing(),
            transaction_has_waiter: M::U32::new(0),
            waited_for_proc: M::U32::new(0),
            transaction_waits: M::U64::new(0),
            take_backs: TakeBacks::none(),
            known_take_backs: TakeBacks::none(),
            held_count: M::U32::new(0),
            held: Latched::new(&HELD_LOCKS, lwlock, Vec::new()),
            releases: M::U64::new(0),
            deadlock_timeout_ns: M::U64::new(nanoseconds(deadlock_timeout)),
            wait_started_ns: M::U64::new(0),
            avoided_deadlocks: M::U64::new(0),
        };
        Self {
            partitions: (0..if M::EXPLORED { 2 } else { PARTITIONS })
                .map(|_| Padded(Latched::new(&LOCK_MANAGER, lwlock, Partition::default())))
                .collect(),
            waits: (0..proc_array.capacity()).map(|_| Padded(wait())).collect(),
            waited_for_xids: (0..proc_array.capacity()).map(|_| M::U64::new(0)).collect(),
            rows: RowHolders::new(Arc::clone(&proc_array), row_locks, lwlock, rows_max),
            proc_array,
            relation_locks,
            strong_lockers: StrongLockers::new(),
        }
    }

    pub(crate) fn wait_of(&self, proc: ProcId) -> &ProcWait<M> {
        &self.waits[proc.0 as usize]
    }

    fn partition(&self, tag: LockTag) -> &Latched<Partition, M> {
        &self.partitions[self.partition_number(tag)]
    }

    #[inline]
    pub(crate) fn partition_number(&self, tag: LockTag) -> usize {
        let hash = BuildHasherDefault::<TagHasher>::default().hash_one(tag);
        // The map inside uses the lowest and the highest bits; the partition is chosen by some between.
        (hash >> 40) as usize % self.partitions.len()
    }

    /// Acquires `tag` in `mode` for `proc`, waiting as `wait` allows. Held already in that mode: nothing happens.
    pub fn acquire(
        &self,
        proc: ProcId,
        tag: LockTag,
        mode: LockMode,
        wait: LockWait<'_>,
    ) -> Result<(), LockError> {
        match self.ask(proc, tag, mode) {
            Asked::Granted => Ok(()),
            Asked::Queued(request) => self.wait_queued(request, wait),
        }
    }

    /// The first half of [`acquire`](Self::acquire), which waits for nothing: a lock that is free costs its caller no
    /// preparation of a wait.
    #[inline]
    pub fn ask(&self, proc: ProcId, tag: LockTag, mode: LockMode) -> Asked {
        let strong = self.announce_strong(tag, mode);
        match self.acquire_now(proc, tag, mode, true) {
            Attempt::Granted => Asked::Granted,
            Attempt::AlreadyHeld => {
                self.withdraw_strong(tag, strong);
                Asked::Granted
            }
            Attempt::Refused => Asked::Queued(QueuedLock {
                proc,
                tag,
                mode,
                strong,
            }),
        }
    }

    /// The second half: waits for the lock, as `wait` allows.
    pub fn wait_queued(&self, request: QueuedLock, wait: LockWait<'_>) -> Result<(), LockError> {
        let QueuedLock {
            proc,
            tag,
            mode,
            strong,
        } = request;
        if let Err(error) = self.wait_for_grant(proc, tag, wait) {
            self.withdraw_strong(tag, strong);
            return Err(error);
        }
        let me = self.wait_of(proc);
        self.note(me, &mut me.held.exclusive(), tag, mode, false);
        Ok(())
    }

    /// Acquires the lock if that needs no waiting.
    pub fn try_acquire(&self, proc: ProcId, tag: LockTag, mode: LockMode) -> bool {
        let strong = self.announce_strong(tag, mode);
        let attempt = self.acquire_now(proc, tag, mode, false);
        if !matches!(attempt, Attempt::Granted) {
            self.withdraw_strong(tag, strong);
        }
        !matches!(attempt, Attempt::Refused)
    }

    /// Takes the lock, or queues for it if `queue` says so.
    #[inline]
    fn acquire_now(&self, proc: ProcId, tag: LockTag, mode: LockMode, queue: bool) -> Attempt {
        let me = self.wait_of(proc);
        let mut list = me.held.exclusive();
        let mine = list.iter_mut().find(|lock| lock.tag == tag);
        let held = mine.as_ref().map_or(0, |lock| lock.modes);
        if held & mode.bit() != 0 {
            return Attempt::AlreadyHeld;
        }
        if mine.as_ref().is_none_or(|lock| lock.fast) && self.may_go_fast(tag, mode) {
            match mine {
                Some(lock) => lock.modes |= mode.bit(),
                None => self.note_first(me, &mut list, tag, mode, true),
            }
            return Attempt::Granted;
        }
        {
            let mut partition = self.partition(tag).exclusive();
            let entry = partition.entry(tag);
            if let Some(mine) = mine.filter(|lock| lock.fast) {
                mine.move_to(entry, proc);
            }
            if !entry.grantable(proc, mode, held) {
                if queue {
                    me.queued.store(QUEUED, Relaxed);
                    me.queued_for.set(tag, mode);
                    entry.enqueue(Waiter { proc, mode, held });
                    // R3 of `deadlock`; under the latch, so that the fences of one queue come in its order.
                    M::fence(SeqCst);
                }
                return Attempt::Refused;
            }
            entry.grant(proc, mode, held);
        }
        self.note(me, &mut list, tag, mode, false);
        Attempt::Granted
    }

    /// Writes a granted lock on the session's list.
    #[inline]
    fn note(&self, me: &ProcWait<M>, list: &mut Vec<HeldLock>, tag: LockTag, mode: LockMode, fast: bool) {
        if let Some(lock) = list.iter_mut().find(|lock| lock.tag == tag) {
            debug_assert_eq!(
                lock.fast, fast,
                "F2: a lock's modes are all here or all in the table"
            );
            lock.modes |= mode.bit();
        } else {
            self.note_first(me, list, tag, mode, fast);
        }
    }

    /// Writes a granted lock on the session's list, which has no mode of it yet.
    #[inline]
    fn note_first(
        &self,
        me: &ProcWait<M>,
        list: &mut Vec<HeldLock>,
        tag: LockTag,
        mode: LockMode,
        fast: bool,
    ) {
        list.push(HeldLock {
            tag,
            modes: mode.bit(),
            session_modes: 0,
            fast,
        });
        me.held_count.store(list.len() as u32, Relaxed);
    }

    /// True if `proc` holds `tag` in exactly `mode`.
    pub fn holds(&self, proc: ProcId, tag: LockTag, mode: LockMode) -> bool {
        modes_on(&self.wait_of(proc).held.shared(), tag) & mode.bit() != 0
    }

    fn wait_for_grant(&self, proc: ProcId, tag: LockTag, wait: LockWait<'_>) -> Result<(), LockError> {
        let _event = WaitScope::<M>::enter(tag.wait_event());
        let me = self.wait_of(proc);
        let started = self.wait_starts(proc);
        let mut checked = false;
        loop {
            // Acquire: pairs with the Release in `grant_waiters`.
            let granted = || me.queued.load(Acquire) == NOT_WAITING;
            let error = match self.sleep(proc, started, &mut checked, wait, granted) {
                SleepOutcome::Done => return Ok(()),
                SleepOutcome::GiveUp(error) => error,
                SleepOutcome::CheckDeadlock => match self.look_for_deadlock(proc) {
                    Some(cycle) => LockError::Deadlock { cycle },
                    None => continue,
                },
            };
            let mut partition = self.partition(tag).exclusive();
            if granted() {
                // R3: granted while we decided to give up.
                return Ok(());
            }
            let behind = self.leave_queue(&mut partition, tag, proc);
            drop(partition);
            self.wake_granted(behind);
            return Err(error);
        }
    }

    /// One sleep of a waiting session, until `done`, a reason to give up, or the moment to look for a deadlock.
    ///
    /// Looking once is enough: see R3 of `deadlock`.
    pub(crate) fn sleep(
        &self,
        proc: ProcId,
        started: u64,
        checked: &mut bool,
        wait: LockWait<'_>,
        done: impl Fn() -> bool,
    ) -> SleepOutcome {
        loop {
            if done() {
                return SleepOutcome::Done;
            }
            if (wait.cancel)() {
                return SleepOutcome::GiveUp(LockError::Cancelled);
            }
            let waited = Duration::from_nanos(M::now().saturating_sub(started));
            // A checker must see a lost wake-up, so under a checker no session looks again unasked.
            let mut nap = if M::EXPLORED { Duration::MAX } else { CANCEL_POLL };
            if let Some(timeout) = wait.timeout {
                if waited >= timeout {
                    return SleepOutcome::GiveUp(LockError::Timeout);
                }
                nap = nap.min(timeout - waited);
            }
            let me = self.wait_of(proc);
            // Relaxed: written by the session itself.
            let deadlock_timeout = match me.deadlock_timeout_ns.load(Relaxed) {
                u64::MAX => Duration::MAX,
                nanoseconds => Duration::from_nanos(nanoseconds),
            };
            if !*checked && deadlock_timeout != Duration::MAX {
                if waited >= deadlock_timeout {
                    *checked = true;
                    return SleepOutcome::CheckDeadlock;
                }
                nap = nap.min(deadlock_timeout - waited);
            }
            let semaphore = &me.semaphore;
            if nap == Duration::MAX {
                semaphore.wait();
            } else {
                semaphore.wait_timeout(nap);
            }
        }
    }

    /// Takes `proc` off the queue. Those behind may have waited for it alone: returns the sessions to be woken (R6).
    #[must_use = "the caller owes wake-ups"]
    fn leave_queue(&self, partition: &mut Partition, tag: LockTag, proc: ProcId) -> Vec<ProcId> {
        let mut granted = Vec::new();
        self.wait_of(proc).queued.store(NOT_WAITING, Relaxed);
        if let Some(entry) = partition.entries.get_mut(&tag) {
            entry.queue.retain(|waiter| waiter.proc != proc);
            self.grant_waiters(entry, &mut granted);
            partition.drop_if_idle(tag);
        }
        granted
    }

    /// R2. Adds the sessions that are to be woken to `granted` (R6).
    pub(crate) fn grant_waiters(&self, entry: &mut LockEntry, granted: &mut Vec<ProcId>) {
        let mut kept_out_by_waiters = 0;
        let mut position = 0;
        while let Some(&Waiter { proc, mode, held }) = entry.queue.get(position) {
            if kept_out_by_waiters & mode.bit() == 0 && entry.admits(proc, mode) {
                entry.queue.remove(position);
                entry.grant(proc, mode, held);
                let waiter = self.wait_of(proc);
                // Release: pairs with the Acquire in `wait_for_grant`.
                waiter.queued.store(NOT_WAITING, Release);
                granted.push(proc);
            } else {
                kept_out_by_waiters |= mode.conflicts();
                position += 1;
            }
        }
    }

    /// R6: wakes sessions to which locks were granted.
    pub(crate) fn wake_granted(&self, granted: Vec<ProcId>) {
        for proc in granted {
            self.wait_of(proc).semaphore.post();
        }
    }

    /// Gives `modes` back. Adds the sessions that are to be woken to `granted` (R6).
    fn release_granted(&self, proc: ProcId, tag: LockTag, modes: u8, granted: &mut Vec<ProcId>) {
        let mut partition = self.partition(tag).exclusive();
        let Some(entry) = partition.entries.get_mut(&tag) else {
            unreachable!("R4: what is on the session's list is in the table");
        };
        entry.revoke(proc, modes);
        if !entry.queue.is_empty() {
            self.grant_waiters(entry, granted);
        }
        if entry.is_idle() {
            partition.drop_if_idle(tag);
        }
        drop(partition);
        self.strong_released(tag, modes);
    }

    /// Gives one lock back before the end of the transaction.
    pub fn release(&self, proc: ProcId, tag: LockTag, mode: LockMode) {
        let me = self.wait_of(proc);
        let mut list = me.held.exclusive();
        let position = list
            .iter()
            .rposition(|lock| lock.tag == tag && lock.modes & mode.bit() != 0);
        let Some(position) = position else {
            debug_assert!(
                false,
                "session {} releases {tag:?} {mode} and does not hold it",
                proc.0
            );
            return;
        };
        let fast = list[position].fast;
        list[position].modes &= !mode.bit();
        list[position].session_modes &= !mode.bit();
        if list[position].modes == 0 {
            list.swap_remove(position);
            me.held_count.store(list.len() as u32, Relaxed);
        }
        drop(list);
        if !fast {
            let mut granted = Vec::new();
            self.release_granted(proc, tag, mode.bit(), &mut granted);
            self.wake_granted(granted);
        }
    }

    /// The transactions that share rows.
    #[inline]
    pub fn rows(&self) -> &RowHolders<M> {
        &self.rows
    }

    /// Gives back everything `proc` holds: the end of its transaction. Two loads when it holds nothing.
    #[inline]
    pub fn release_all(&self, proc: ProcId) {
        self.rows.release(proc);
        // Relaxed: written by the session itself.
        if self.wait_of(proc).held_count.load(Relaxed) != 0 {
            let granted = self.release_list(proc);
            self.wake_granted(granted);
        }
    }

    /// Gives back everything on the list of `proc`; returns the sessions to be woken (R6).
    #[must_use = "the caller owes wake-ups"]
    fn release_list(&self, proc: ProcId) -> Vec<ProcId> {
        let mut granted = Vec::new();
        let me = self.wait_of(proc);
        let mut list = me.held.exclusive();
        for lock in list.iter().filter(|lock| !lock.fast) {
            let given_back = lock.modes & !lock.session_modes;
            if given_back != 0 {
                self.release_granted(proc, lock.tag, given_back, &mut granted);
            }
        }
        list.retain_mut(|lock| {
            lock.modes = lock.session_modes;
            lock.modes != 0
        });
        me.held_count.store(list.len() as u32, Relaxed);
        // Relaxed: under the latch. H2 of `holders`.
        me.releases.store(me.releases.load(Relaxed) + 1, Relaxed);
        // One transaction that locked much shall not make its session large for good.
        if list.capacity() > HELD_CAPACITY_KEPT {
            list.shrink_to(HELD_CAPACITY_KEPT);
        }
        granted
    }

    /// Gives back what `proc` holds beside `kept`: it goes back to a savepoint.
    pub fn release_others(&self, proc: ProcId, kept: &[(LockTag, LockMode)]) {
        let mut modes_kept: BTreeMap<LockTag, u8> = BTreeMap::new();
        for (tag, mode) in kept {
            *modes_kept.entry(*tag).or_default() |= mode.bit();
        }
        let mut granted = Vec::new();
        let me = self.wait_of(proc);
        let mut list = me.held.exclusive();
        list.retain_mut(|lock| {
            let kept = modes_kept.get(&lock.tag).copied().unwrap_or(0) | lock.session_modes;
            let kept = lock.modes & kept;
            let given_back = lock.modes & !kept;
            if given_back != 0 && !lock.fast {
                self.release_granted(proc, lock.tag, given_back, &mut granted);
            }
            lock.modes = kept;
            kept != 0
        });
        me.held_count.store(list.len() as u32, Relaxed);
        drop(list);
        self.wake_granted(granted);
    }

    /// Waits of `proc` that begin from now on look for a cycle after `timeout`; [`Duration::MAX`]: never. Called by the
    /// session itself.
    #[inline]
    pub fn set_deadlock_timeout(&self, proc: ProcId, timeout: Duration) {
        let (word, timeout) = (&self.wait_of(proc).deadlock_timeout_ns, nanoseconds(timeout));
        // Relaxed: read by the session itself.
        if word.load(Relaxed) != timeout {
            word.store(timeout, Relaxed);
        }
    }

    /// Makes `proc`, if it waits, look at its cancel flag now.
    pub fn wake(&self, proc: ProcId) {
        self.wait_of(proc).semaphore.post();
    }

    /// True if another session queues for a lock that `proc`, which calls this, holds. A lock on the fast path is in no
    /// session's way: a strong locker moves it into the table before it queues.
    pub(crate) fn holds_what_others_want(&self, proc: ProcId) -> bool {
        let list = self.wait_of(proc).held.shared();
        list.iter().filter(|lock| !lock.fast).any(|lock| {
            let partition = self.partition(lock.tag).shared();
            let entry = partition.entries.get(&lock.tag);
            entry.is_some_and(|entry| entry.queue.iter().any(|waiter| waiter.proc != proc))
        })
    }

    /// The transaction `proc` waits for, if it does.
    pub fn transaction_waited_for(&self, proc: ProcId) -> Option<Xid> {
        Some(Xid(self.waited_for_xids[proc.0 as usize].load(Relaxed))).filter(|xid| xid.is_valid())
    }
}

/// The outcome of [`LockManager::ask`].
#[derive(Debug)]
#[must_use]
pub enum Asked {
    /// The lock is held.
    Granted,
    /// It is queued for.
    Queued(QueuedLock),
}

/// A lock that a session queues for: it goes to [`LockManager::wait_queued`].
#[derive(Debug)]
#[must_use = "a session that has queued waits"]
pub struct QueuedLock {
    proc: ProcId,
    tag: LockTag,
    mode: LockMode,
    /// Others' weak locks are kept out of the fast path for it.
    strong: bool,
}

/// The outcome of an attempt to take a lock at once.
enum Attempt {
    Granted,
    /// The session had it already, in this mode.
    AlreadyHeld,
    Refused,
}

#[cfg(test)]
mod tests;
