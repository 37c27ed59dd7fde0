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
//! - R4: only the session itself touches the list of what it holds, and the list and the table say the same whenever
//!   the session is not inside one of these calls.
//! - R5: a holder who asks for a stronger mode queues before the first who waits for what it holds already: behind it, each
//!   would wait for the other.
//!
//! # Costs
//! An uncontended lock takes the session's list latch and the partition's latch, four atomic operations in all, and
//! allocates nothing: a relation's entry stays when it is idle, up to 64 of them a partition, and others are kept for
//! reuse. Whether a mode is admitted is one AND with the modes granted, however many sessions hold the lock. Asking for
//! what is held already costs the list latch alone.
//!
//! # What it does not do
//! It does not rearrange a queue to dissolve a cycle that exists only through the order of the queue; that is reported as a
//! deadlock. A tuple lock held until the end of a transaction costs an entry here; row locks proper live in the row.
//!
//! Origin: PostgreSQL's lmgr.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use clearway_latch::{LatchClass, Latched, LwLockAlgorithm};
use clearway_machine::{AtomicWord, Machine, Native, Padded, Semaphore, WaitEvent, WaitScope};

use crate::{LockMode, ProcArray, ProcId, Xid};

static LOCK_MANAGER: LatchClass = LatchClass::new("LockManager", WaitEvent::LockManager, 200);
static HELD_LOCKS: LatchClass = LatchClass::new("HeldLocks", WaitEvent::LockManager, 190);

const PARTITIONS: usize = 16;
/// Relations whose entries a partition keeps while nobody locks them.
const IDLE_ENTRIES_MAX: usize = 64;
/// Entries without a tag that a partition keeps for their memory.
const SPARE_ENTRIES_MAX: usize = 32;
/// Entries of a session's list that stay allocated between transactions.
const HELD_CAPACITY_KEPT: usize = 64;
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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

impl std::fmt::Display for LockTag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LockTag::Relation(rel) => write!(f, "relation {rel}"),
            LockTag::Tuple { rel, block, slot } => write!(f, "tuple ({block},{slot}) of relation {rel}"),
        }
    }
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

/// What one session holds of one lock.
#[derive(Debug)]
pub(crate) struct Holder {
    pub(crate) proc: ProcId,
    /// A set of modes.
    pub(crate) modes: u8,
}

/// One session in a lock's queue.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub(crate) proc: ProcId,
    pub(crate) mode: LockMode,
    /// What it holds of the same lock already.
    held: u8,
}

/// One lock: who has it and who waits.
#[derive(Debug, Default)]
pub(crate) struct LockEntry {
    pub(crate) holders: Vec<Holder>,
    pub(crate) queue: VecDeque<Waiter>,
    /// How many sessions hold each mode.
    counts: [u32; LockMode::ALL.len()],
    /// The modes whose count is not zero.
    granted: u8,
}

impl LockEntry {
    /// Whether nobody else holds what excludes `mode`. One AND, unless modes do meet.
    #[inline]
    fn admits(&self, proc: ProcId, mode: LockMode) -> bool {
        self.granted & mode.conflicts() == 0
            || self
                .holders
                .iter()
                .all(|other| other.proc == proc || other.modes & mode.conflicts() == 0)
    }

    /// R1. Someone who holds the lock already, in another mode, passes the queue: it would wait for itself.
    #[inline]
    fn grantable(&self, proc: ProcId, mode: LockMode, held: u8) -> bool {
        self.admits(proc, mode)
            && (held != 0 || self.queue.iter().all(|waiter| !waiter.mode.conflicts_with(mode)))
    }

    #[inline]
    fn grant(&mut self, proc: ProcId, mode: LockMode, held: u8) {
        debug_assert_eq!(held & mode.bit(), 0, "a mode is granted twice");
        self.counts[mode as usize] += 1;
        self.granted |= mode.bit();
        if held == 0 {
            self.holders.push(Holder {
                proc,
                modes: mode.bit(),
            });
        } else if let Some(holder) = self.holders.iter_mut().find(|holder| holder.proc == proc) {
            holder.modes |= mode.bit();
        } else {
            unreachable!("R4: what is on the session's list is in the table");
        }
    }

    /// Takes `modes` away from `proc`.
    fn revoke(&mut self, proc: ProcId, modes: u8) {
        // From the end: short transactions are among the last that came.
        let Some(position) = self.holders.iter().rposition(|holder| holder.proc == proc) else {
            unreachable!("R4: what is on the session's list is in the table");
        };
        let holder = &mut self.holders[position];
        debug_assert_eq!(
            holder.modes & modes,
            modes,
            "a mode is given back that is not held"
        );
        holder.modes &= !modes;
        if holder.modes == 0 {
            self.holders.swap_remove(position);
        }
        for mode in LockMode::ALL {
            if modes & mode.bit() != 0 {
                self.counts[mode as usize] -= 1;
                if self.counts[mode as usize] == 0 {
                    self.granted &= !mode.bit();
                }
            }
        }
    }

    /// R5: a holder who wants more queues before the first who waits for what it holds.
    fn enqueue(&mut self, waiter: Waiter) {
        let before = self
            .queue
            .iter()
            .position(|other| other.mode.conflicts() & waiter.held != 0);
        self.queue.insert(before.unwrap_or(self.queue.len()), waiter);
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.holders.is_empty() && self.queue.is_empty()
    }
}

/// Hashes tags: numbers we chose ourselves, so speed is all that matters.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct TagHasher(u64);

impl TagHasher {
    #[inline]
    fn add(&mut self, value: u64) {
        // The two halves of a product with an odd constant, folded: every bit of the value reaches every bit of the hash.
        let product = u128::from(self.0 ^ value) * u128::from(0x9E37_79B9_7F4A_7C15_u64);
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

impl Hasher for TagHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.add(u64::from(*byte));
        }
    }
    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.add(value);
    }
}

impl Hash for LockTag {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        match *self {
            // Bit 63 tells the kinds apart; two numbers that collide cost a comparison.
            LockTag::Relation(rel) => state.write_u64(1 << 63 | u64::from(rel)),
            LockTag::Tuple { rel, block, slot } => {
                state.write_u64(u64::from(rel) << 16 | u64::from(slot));
                state.write_u64(u64::from(block));
            }
        }
    }
}

type TagMap = HashMap<LockTag, LockEntry, BuildHasherDefault<TagHasher>>;

/// One part of the table.
#[derive(Debug, Default)]
pub(crate) struct Partition {
    pub(crate) entries: TagMap,
    /// Entries not in use, kept for their memory.
    spare: Vec<LockEntry>,
}

impl Partition {
    #[inline]
    fn entry(&mut self, tag: LockTag) -> &mut LockEntry {
        let spare = &mut self.spare;
        self.entries
            .entry(tag)
            .or_insert_with(|| spare.pop().unwrap_or_default())
    }

    /// Takes an idle entry out. A few relations stay: the next statement locks the same ones again.
    fn drop_if_idle(&mut self, tag: LockTag) {
        if matches!(tag, LockTag::Relation(_)) && self.entries.len() <= IDLE_ENTRIES_MAX {
            return;
        }
        if let Entry::Occupied(entry) = self.entries.entry(tag)
            && entry.get().is_idle()
        {
            let entry = entry.remove();
            debug_assert_eq!(entry.granted, 0, "an idle lock counts a holder");
            if self.spare.len() < SPARE_ENTRIES_MAX {
                self.spare.push(entry);
            }
        }
    }
}

const NOT_WAITING: u32 = 0;
const QUEUED: u32 = 1;

/// What a session's slot holds for waiting.
#[derive(Debug)]
pub(crate) struct ProcWait<M: Machine> {
    pub(crate) semaphore: Semaphore<M>,
    /// QUEUED until granted or given up.
    queued: M::U32,
    /// 1 if somebody may wait for the end of this slot's transaction.
    pub(crate) awaited: M::U32,
    /// Who runs the transaction that this session waits for; meaningful while its `awaited_xids` entry is not 0.
    pub(crate) awaited_proc: M::U32,
    /// How many locks are on the list; written with the list, read by the session without its latch.
    held_count: M::U32,
    held: Latched<Vec<(LockTag, u8)>, M>,
}

/// Relation locks, tuple locks, and waits for transactions.
#[derive(Debug)]
pub struct LockManager<M: Machine = Native> {
    pub(crate) partitions: Vec<Padded<Latched<Partition, M>>>,
    pub(crate) waits: Vec<Padded<ProcWait<M>>>,
    /// Packed: the transaction each session waits for, or 0.
    pub(crate) awaited_xids: Box<[M::U64]>,
    pub(crate) proc_array: Arc<ProcArray<M>>,
    deadlock_timeout: Duration,
}

/// What ended one sleep.
pub(crate) enum Slept {
    Done,
    GiveUp(LockError),
    CheckDeadlock,
}

/// The modes of `tag` on a session's list.
fn modes_on(held: &[(LockTag, u8)], tag: LockTag) -> u8 {
    held.iter().find(|lock| lock.0 == tag).map_or(0, |lock| lock.1)
}

impl<M: Machine> LockManager<M> {
    /// A manager for the sessions of `proc_array`. A wait longer than `deadlock_timeout` looks for a cycle.
    pub fn new(
        proc_array: Arc<ProcArray<M>>,
        algorithm: LwLockAlgorithm,
        deadlock_timeout: Duration,
    ) -> Self {
        let wait = || ProcWait {
            semaphore: Semaphore::new(),
            queued: M::U32::new(NOT_WAITING),
            awaited: M::U32::new(0),
            awaited_proc: M::U32::new(0),
            held_count: M::U32::new(0),
            held: Latched::new(&HELD_LOCKS, algorithm, Vec::new()),
        };
        Self {
            partitions: (0..if M::EXPLORED { 2 } else { PARTITIONS })
                .map(|_| Padded(Latched::new(&LOCK_MANAGER, algorithm, Partition::default())))
                .collect(),
            waits: (0..proc_array.capacity()).map(|_| Padded(wait())).collect(),
            awaited_xids: (0..proc_array.capacity()).map(|_| M::U64::new(0)).collect(),
            proc_array,
            deadlock_timeout,
        }
    }

    pub(crate) fn wait_of(&self, proc: ProcId) -> &ProcWait<M> {
        &self.waits[proc.0 as usize]
    }

    fn partition(&self, tag: LockTag) -> &Latched<Partition, M> {
        let hash = BuildHasherDefault::<TagHasher>::default().hash_one(tag);
        // The map inside uses the lowest and the highest bits; the partition is chosen by some between.
        &self.partitions[(hash >> 40) as usize % self.partitions.len()]
    }

    /// Acquires `tag` in `mode` for `proc`, waiting as `wait` allows. Held already in that mode: nothing happens.
    pub fn acquire(
        &self,
        proc: ProcId,
        tag: LockTag,
        mode: LockMode,
        wait: LockWait<'_>,
    ) -> Result<(), LockError> {
        let held = match self.acquire_now(proc, tag, mode, true) {
            Attempt::Granted => return Ok(()),
            Attempt::Refused { held } => held,
        };
        self.wait_for_grant(proc, tag, wait)?;
        let me = self.wait_of(proc);
        self.note(me, &mut me.held.exclusive(), tag, mode, held);
        Ok(())
    }

    /// Acquires the lock if that needs no waiting.
    pub fn try_acquire(&self, proc: ProcId, tag: LockTag, mode: LockMode) -> bool {
        matches!(self.acquire_now(proc, tag, mode, false), Attempt::Granted)
    }

    /// Takes the lock, or queues for it if `queue` says so.
    #[inline]
    fn acquire_now(&self, proc: ProcId, tag: LockTag, mode: LockMode, queue: bool) -> Attempt {
        let me = self.wait_of(proc);
        let mut list = me.held.exclusive();
        let held = modes_on(&list, tag);
        if held & mode.bit() != 0 {
            return Attempt::Granted;
        }
        {
            let mut partition = self.partition(tag).exclusive();
            let entry = partition.entry(tag);
            if !entry.grantable(proc, mode, held) {
                if queue {
                    me.queued.store(QUEUED, Relaxed);
                    entry.enqueue(Waiter { proc, mode, held });
                }
                return Attempt::Refused { held };
            }
            entry.grant(proc, mode, held);
        }
        self.note(me, &mut list, tag, mode, held);
        Attempt::Granted
    }

    /// Writes a granted lock on the session's list.
    #[inline]
    fn note(&self, me: &ProcWait<M>, list: &mut Vec<(LockTag, u8)>, tag: LockTag, mode: LockMode, held: u8) {
        if held == 0 {
            list.push((tag, mode.bit()));
            me.held_count.store(list.len() as u32, Relaxed);
        } else if let Some(lock) = list.iter_mut().find(|lock| lock.0 == tag) {
            lock.1 |= mode.bit();
        }
    }

    /// Whether `proc` holds `tag` in exactly `mode`.
    pub fn holds(&self, proc: ProcId, tag: LockTag, mode: LockMode) -> bool {
        modes_on(&self.wait_of(proc).held.shared(), tag) & mode.bit() != 0
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
    ///
    /// Looking once is enough: see R3 of `deadlock`.
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
            // A checker shall see a lost wake-up, so there nobody looks again unasked.
            let mut nap = if M::EXPLORED { Duration::MAX } else { CANCEL_POLL };
            if let Some(timeout) = wait.timeout {
                if waited >= timeout {
                    return Slept::GiveUp(LockError::Timeout);
                }
                nap = nap.min(timeout - waited);
            }
            if !*checked && self.deadlock_timeout != Duration::MAX {
                if waited >= self.deadlock_timeout {
                    *checked = true;
                    return Slept::CheckDeadlock;
                }
                nap = nap.min(self.deadlock_timeout - waited);
            }
            let semaphore = &self.wait_of(proc).semaphore;
            if nap == Duration::MAX {
                semaphore.wait();
            } else {
                semaphore.wait_timeout(nap);
            }
        }
    }

    fn leave_queue(&self, partition: &mut Partition, tag: LockTag, proc: ProcId) {
        self.wait_of(proc).queued.store(NOT_WAITING, Relaxed);
        if let Some(entry) = partition.entries.get_mut(&tag) {
            entry.queue.retain(|waiter| waiter.proc != proc);
            // Those behind may have waited for us alone.
            self.grant_waiters(entry);
            partition.drop_if_idle(tag);
        }
    }

    /// R2.
    fn grant_waiters(&self, entry: &mut LockEntry) {
        let mut kept_out_by_waiters = 0;
        let mut position = 0;
        while let Some(&Waiter { proc, mode, held }) = entry.queue.get(position) {
            if kept_out_by_waiters & mode.bit() == 0 && entry.admits(proc, mode) {
                entry.queue.remove(position);
                entry.grant(proc, mode, held);
                let waiter = self.wait_of(proc);
                // Release: pairs with the Acquire in `wait_for_grant`.
                waiter.queued.store(NOT_WAITING, Release);
                waiter.semaphore.post();
            } else {
                kept_out_by_waiters |= mode.conflicts();
                position += 1;
            }
        }
    }

    fn release_granted(&self, proc: ProcId, tag: LockTag, modes: u8) {
        let mut partition = self.partition(tag).exclusive();
        let Some(entry) = partition.entries.get_mut(&tag) else {
            unreachable!("R4: what is on the session's list is in the table");
        };
        entry.revoke(proc, modes);
        if !entry.queue.is_empty() {
            self.grant_waiters(entry);
        }
        if entry.is_idle() {
            partition.drop_if_idle(tag);
        }
    }

    /// Gives one lock back before the end of the transaction.
    pub fn release(&self, proc: ProcId, tag: LockTag, mode: LockMode) {
        let me = self.wait_of(proc);
        let mut list = me.held.exclusive();
        let position = list
            .iter()
            .rposition(|lock| lock.0 == tag && lock.1 & mode.bit() != 0);
        let Some(position) = position else {
            debug_assert!(
                false,
                "session {} releases {tag:?} {mode} and does not hold it",
                proc.0
            );
            return;
        };
        list[position].1 &= !mode.bit();
        if list[position].1 == 0 {
            list.swap_remove(position);
            me.held_count.store(list.len() as u32, Relaxed);
        }
        drop(list);
        self.release_granted(proc, tag, mode.bit());
    }

    /// Gives back everything `proc` holds: the end of its transaction. One load when it holds nothing.
    #[inline]
    pub fn release_all(&self, proc: ProcId) {
        // Relaxed: written by the session itself.
        if self.wait_of(proc).held_count.load(Relaxed) != 0 {
            self.release_list(proc);
        }
    }

    fn release_list(&self, proc: ProcId) {
        let me = self.wait_of(proc);
        let mut list = me.held.exclusive();
        for (tag, modes) in list.drain(..) {
            self.release_granted(proc, tag, modes);
        }
        me.held_count.store(0, Relaxed);
        // One transaction that locked much shall not make its session large for good.
        if list.capacity() > HELD_CAPACITY_KEPT {
            list.shrink_to(HELD_CAPACITY_KEPT);
        }
    }

    /// Makes `proc`, if it waits, look at its cancel flag now.
    pub fn wake(&self, proc: ProcId) {
        self.wait_of(proc).semaphore.post();
    }

    /// The transaction `proc` waits for, if it does.
    pub fn awaited_transaction(&self, proc: ProcId) -> Option<Xid> {
        Some(Xid(self.awaited_xids[proc.0 as usize].load(Relaxed))).filter(|xid| xid.is_valid())
    }
}

/// What became of an attempt to take a lock at once.
enum Attempt {
    Granted,
    /// Not granted; `held` is what the session holds of the lock.
    Refused {
        held: u8,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manager() -> Arc<LockManager<Native>> {
        let array = Arc::new(ProcArray::new(8, LwLockAlgorithm::SingleCas, Xid(100)));
        for _ in 0..8 {
            array.attach().unwrap();
        }
        Arc::new(LockManager::new(
            array,
            LwLockAlgorithm::SingleCas,
            Duration::from_millis(50),
        ))
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
        let carol = LockWait {
            timeout: Some(Duration::from_millis(20)),
            cancel: &|| false,
        };
        assert_eq!(
            locks.acquire(CAROL, ACCOUNTS, LockMode::AccessExclusive, carol),
            Err(LockError::Timeout)
        );
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
                locks
                    .acquire(BOB, ACCOUNTS, LockMode::AccessExclusive, LockWait::FOREVER)
                    .unwrap();
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
        let now = LockWait {
            timeout: None,
            cancel: &|| true,
        };
        assert_eq!(
            locks.acquire(BOB, ACCOUNTS, LockMode::Exclusive, now),
            Err(LockError::Cancelled)
        );
        locks.release_all(ALICE);
        assert!(
            locks.partitions.iter().all(|partition| partition
                .shared()
                .entries
                .values()
                .all(LockEntry::is_idle))
        );
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
                        locks
                            .acquire(ProcId(proc), ACCOUNTS, LockMode::Exclusive, LockWait::FOREVER)
                            .unwrap();
                        // SAFETY: we hold the lock exclusively.
                        unsafe { *shared.0.get() += 1 };
                        locks.release_all(ProcId(proc));
                    }
                });
            }
        });
        assert_eq!(counter.into_inner(), 16_000);
    }

    #[test]
    fn an_upgrade_queues_before_those_who_wait_for_the_holder() {
        let locks = manager();
        assert!(locks.try_acquire(ALICE, ACCOUNTS, LockMode::Share));
        assert!(locks.try_acquire(BOB, ACCOUNTS, LockMode::Share));
        std::thread::scope(|scope| {
            let wait_until_queued = |proc| {
                while locks.wait_of(proc).queued.load(Acquire) == NOT_WAITING {
                    std::thread::yield_now();
                }
            };
            let carol = scope.spawn(|| {
                locks
                    .acquire(CAROL, ACCOUNTS, LockMode::Exclusive, LockWait::FOREVER)
                    .unwrap();
                assert!(!locks.holds(ALICE, ACCOUNTS, LockMode::Share), "Alice came first");
                locks.release_all(CAROL);
            });
            wait_until_queued(CAROL);
            let alice = scope.spawn(|| {
                locks
                    .acquire(ALICE, ACCOUNTS, LockMode::Exclusive, LockWait::FOREVER)
                    .unwrap();
                assert!(locks.holds(ALICE, ACCOUNTS, LockMode::Share));
                locks.release_all(ALICE);
            });
            wait_until_queued(ALICE);
            locks.release_all(BOB);
            alice.join().unwrap();
            carol.join().unwrap();
        });
        assert!(
            locks.partitions.iter().all(|partition| partition
                .shared()
                .entries
                .values()
                .all(LockEntry::is_idle))
        );
    }

    #[test]
    fn modes_are_given_back_one_by_one() {
        let locks = manager();
        for mode in [
            LockMode::AccessShare,
            LockMode::RowExclusive,
            LockMode::RowExclusive,
        ] {
            assert!(locks.try_acquire(ALICE, ACCOUNTS, mode));
        }
        assert!(!locks.try_acquire(BOB, ACCOUNTS, LockMode::Share));
        locks.release(ALICE, ACCOUNTS, LockMode::RowExclusive);
        assert!(
            locks.try_acquire(BOB, ACCOUNTS, LockMode::Share),
            "AccessShare alone does not stop Share"
        );
        assert!(!locks.try_acquire(ALICE, ACCOUNTS, LockMode::RowExclusive));
        locks.release_all(ALICE);
        locks.release_all(BOB);
        assert!(
            locks.partitions.iter().all(|partition| partition
                .shared()
                .entries
                .values()
                .all(LockEntry::is_idle))
        );
    }
}
