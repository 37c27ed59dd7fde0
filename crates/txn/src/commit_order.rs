//! The order in which commits leave the array: that of their records in the log.
//!
//! Protects: rule O1 of a commit, under the switch `commit_order = log` (`storage/src/commit`): *a snapshot that regards a
//! commit as finished regards each commit as finished whose record lies before that one's*. The example is there, and the
//! reason why databases need the rule.
//!
//! # Words
//! | word | meaning | written |
//! | --- | --- | --- |
//! | `entered` | commits that have entered | under the latch |
//! | `queue[n % size]` | the session of commit n, and n | under the latch |
//! | `left` | commits that have left: number `left` is the next to leave, the *first* | under ProcArray exclusive |
//! | `place.ready_at` | the commit may leave when the log is durable up to there | by its session |
//! | `place.state` | whether its session waits, awake or asleep | `NOT_WAITING` → `WAITING` under ProcArray exclusive; `WAITING` → `ASLEEP` by its session; back by the one that releases it, when it has released ProcArray |
//!
//! # Steps of a commit
//! 1. *Enter*: take the latch, reserve the record's place in the log, take the next number, release the latch. So numbers
//!    are in the order of the records. Nothing is copied under the latch.
//! 2. *Get ready*: all that has to be done before the commit is seen. Then store in `ready_at` the position that has to
//!    be durable, or 0.
//! 3. *Leave*, under ProcArray exclusive: beginning with the first, take each commit out of the array that is ready, and
//!    stop at one that is not. Whichever session does that does it for all: a commit whose session still sleeps in a
//!    flush that has ended holds up no other.
//! 4. If the own commit is still there, say under the same hold that its session waits; release, look a few times, sleep.
//! 5. The session that takes it out of the array wakes it, after ProcArray is released.
//!
//! A commit that has definitions to publish waits for its *turn* before that: until it is the first. So definitions are
//! published as shortly before their commit is seen as if there were no order.
//!
//! # Rules
//! - Q1: commit n leaves after commit n - 1 and before commit n + 1.
//! - Q2: once a commit is ready and all before it are, the next hold of ProcArray that lets commits leave takes it out;
//!   each session makes such a hold when its own commit is ready. So no wake-up is lost: of two sessions, of which one
//!   makes the first ready and the other waits behind it, the later hold finds both ready.
//! - Q3: a session that is the first waits for no session behind it. It waits for the disk, for standbys, and for
//!   latches; not for row locks, and not for its turn.
//! - Q4: a session has entered at most one commit, so the queue has room for all.
//! - Q5: a session that waits is on one list of those to be released, and goes on only when that list's owner has
//!   released it. Between being listed and being released it still counts as waiting, while others hold ProcArray.
//!   Listed twice, it would break the chain of the first list; gone on before, it could take the late word for that of
//!   its next wait.
//!
//! # Why the simpler versions are wrong, or dear
//! - Nothing orders the two: what databases ship. Of two commits the one whose record is the later one may leave first.
//! - The record is inserted under ProcArray: a record that finds the log's ring full waits there for the disk, and each
//!   snapshot with it. And the latch that all sessions share would be held for a copy and a status more.
//! - A number drawn beside the reservation, by an atomic add each: two commits may draw them in different orders.
//! - The number in the upper bits of the reservation's word: no latch, but then positions have too few bits.
//! - Each session takes out its own commit alone: a group that one flush has made durable would have to wake up in the
//!   order of its records, one after the other.
//!
//! # Orderings
//! `queue[n]` is stored by a Release and loaded by an Acquire: the `ready_at` that is read belongs to that commit or a
//! later one of the session, never to an earlier one. `ready_at` is stored by a Release after the status is in the commit
//! log, and loaded by an Acquire before the commit leaves: R2 of the array. `left`, `is_listed` and
//! `next` change under ProcArray exclusive. So does `state` where a wait begins; from then on its session and the one
//! that releases it change it by RMWs, a CAS and a swap, of which one comes first.
//!
//! # Costs
//! A commit alone: one RMW and one release of a latch which commits alone take, for the time of a reservation; two stores
//! and two loads beside the array's latch. 128 bytes a session, and 8 for the queue.
//!
//! Origin: ours. PostgreSQL shows commits on a standby in another order than on its primary (found by Jepsen as a *long
//! fork*, 2025). Leaving for others is flat combining: Hendler, Incze, Shavit and Tzafrir, SPAA 2010.

use std::cell::Cell;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_latch::{LatchClass, SpinLatch};
use clearway_machine::{AtomicWord, Machine, Padded, WaitEvent, WaitScope};

use crate::ProcId;

static COMMIT_ORDER: LatchClass = LatchClass::new("CommitOrder", WaitEvent::SpinDelay, 0);

/// `ready_at` of a commit that is not ready, whatever is durable.
const NOT_READY: u64 = u64::MAX;

/// The session does not wait, or has been released.
const NOT_WAITING: u32 = 0;
/// It waits, awake.
const WAITING: u32 = 1;
/// It waits, asleep or about to sleep.
const ASLEEP: u32 = 2;

/// The end of a list of sessions.
const NONE: u32 = u32::MAX;

/// Looks of a session that waits, before it sleeps: the one before it is most often between two steps of its commit.
const LOOKS: u32 = 100;

/// One session's place.
#[derive(Debug)]
struct Place<M: Machine> {
    ready_at: M::U64,
    state: M::U32,
    /// True if the session that waits is on a list of those to be released, and the next one on that list.
    is_listed: M::U32,
    next: M::U32,
    /// True if the session's commit has entered, and its number. Only the session writes them.
    has_entered: M::U32,
    number: M::U64,
}

/// State that a commit changes when it enters.
#[derive(Debug)]
struct Entrance<M: Machine> {
    latch: SpinLatch<M>,
    entered: M::U64,
}

/// The queue of commits whose records are in the log and that have not left the array.
#[derive(Debug)]
pub(crate) struct CommitOrder<M: Machine> {
    entrance: Padded<Entrance<M>>,
    left: Padded<M::U64>,
    queue: Box<[M::U64]>,
    places: Box<[Padded<Place<M>>]>,
}

/// The number in bits 32 to 63, the session in the others.
fn entry(number: u64, proc: ProcId) -> u64 {
    number << 32 | u64::from(proc.0)
}

impl<M: Machine> CommitOrder<M> {
    /// For the sessions numbered below `capacity`.
    pub(crate) fn new(capacity: u32) -> Self {
        let place = || Place {
            ready_at: M::U64::new(NOT_READY),
            state: M::U32::new(NOT_WAITING),
            is_listed: M::U32::new(0),
            next: M::U32::new(NONE),
            has_entered: M::U32::new(0),
            number: M::U64::new(0),
        };
        // Numbers begin at 1: an entry that was never written is none's.
        Self {
            entrance: Padded(Entrance {
                latch: SpinLatch::new(&COMMIT_ORDER),
                entered: M::U64::new(1),
            }),
            left: Padded(M::U64::new(1)),
            queue: (0..capacity.next_power_of_two())
                .map(|_| M::U64::new(0))
                .collect(),
            places: (0..capacity).map(|_| Padded(place())).collect(),
        }
    }

    #[inline]
    fn place(&self, proc: ProcId) -> &Place<M> {
        &self.places[proc.0 as usize]
    }

    #[inline]
    fn queued(&self, number: u64) -> &M::U64 {
        &self.queue[number as usize & (self.queue.len() - 1)]
    }

    /// Step 1, for `proc`: `reserve` reserves the place of its commit record, and says whether the record is going to be
    /// there; it waits for nothing.
    #[inline]
    pub(crate) fn enter<R>(&self, proc: ProcId, reserve: impl FnOnce() -> (R, bool)) -> R {
        let place = self.place(proc);
        debug_assert_eq!(place.has_entered.load(Relaxed), 0, "Q4");
        place.ready_at.store(NOT_READY, Relaxed);
        let entrance = &*self.entrance;
        let _latch = entrance.latch.lock();
        let (reserved, is_inserted) = reserve();
        if is_inserted {
            let number = entrance.entered.load(Relaxed);
            place.number.store(number, Relaxed);
            place.has_entered.store(1, Relaxed);
            // Release: pairs with the Acquire in `first`.
            self.queued(number).store(entry(number, proc), Release);
            entrance.entered.store(number + 1, Relaxed);
        }
        reserved
    }

    /// True if the commit of `proc` has entered, and its session has not seen it leave.
    #[inline]
    pub(crate) fn has_entered(&self, proc: ProcId) -> bool {
        self.place(proc).has_entered.load(Relaxed) != 0
    }

    /// Step 2, for `proc`: its commit may leave when the log is durable up to `position`.
    #[inline]
    pub(crate) fn is_ready_at(&self, proc: ProcId, position: u64) {
        // Release: pairs with the Acquire in `first`; the status is in the commit log.
        self.place(proc).ready_at.store(position, Release);
    }

    /// The commit of `proc` has left, and its session knows.
    #[inline]
    pub(crate) fn has_left(&self, proc: ProcId) {
        self.place(proc).has_entered.store(0, Relaxed);
    }

    /// True if it is the turn of `proc`: all commits before its own have left.
    #[inline]
    pub(crate) fn is_turn_of(&self, proc: ProcId) -> bool {
        // Acquire: pairs with the Release in `one_has_left`.
        self.left.load(Acquire) == self.place(proc).number.load(Relaxed)
    }

    /// The session whose commit is the first, if one has entered. The caller holds ProcArray exclusively.
    #[inline]
    pub(crate) fn first(&self) -> Option<ProcId> {
        let number = self.left.load(Relaxed);
        // Acquire: pairs with the Release in `enter`.
        let found = self.queued(number).load(Acquire);
        let proc = ProcId(found as u32);
        (found == entry(number, proc)).then_some(proc)
    }

    /// True if the commit of `proc` may leave, the log being durable up to `durable`.
    #[inline]
    pub(crate) fn is_ready(&self, proc: ProcId, durable: u64) -> bool {
        // Acquire: pairs with the Release in `is_ready_at`.
        self.place(proc).ready_at.load(Acquire) <= durable
    }

    /// The first has left the array. The caller holds ProcArray exclusively.
    #[inline]
    pub(crate) fn one_has_left(&self) {
        // Release: pairs with the Acquire in `is_turn_of`.
        self.left.store(self.left.load(Relaxed) + 1, Release);
    }

    /// Step 4, for `proc`, whose session holds ProcArray exclusively, or is represented by the one that does.
    pub(crate) fn begin_to_wait(&self, proc: ProcId) {
        let place = self.place(proc);
        place.is_listed.store(0, Relaxed);
        place.state.store(WAITING, Relaxed);
    }

    /// True if the session of `proc` has begun to wait and was not released. Its commit may have left meanwhile: the
    /// one that took it out still has it on its list, and the session goes on after that (Q5).
    #[inline]
    pub(crate) fn is_waiting(&self, proc: ProcId) -> bool {
        // Acquire: pairs with the Release in `Woken::drop`.
        self.place(proc).state.load(Acquire) != NOT_WAITING
    }

    /// Step 4: returns when the commit of `proc` has left, or when it is its turn.
    #[cold]
    pub(crate) fn wait(&self, proc: ProcId) {
        let state = &self.place(proc).state;
        let looks = if M::EXPLORED { 0 } else { LOOKS };
        for look in 0..looks {
            // Acquire, here and below: pairs with the Release in `Woken::drop`.
            if state.load(Acquire) == NOT_WAITING {
                return;
            }
            M::spin_hint_of(looks - look - 1);
        }
        if state.compare_exchange(WAITING, ASLEEP, Acquire, Acquire).is_ok() {
            let _wait = WaitScope::<M>::enter(WaitEvent::CommitOrder);
            while state.load(Acquire) == ASLEEP {
                M::futex_wait(state, ASLEEP, None);
            }
        }
    }
}

/// The sessions to be released when ProcArray is released.
#[derive(Debug)]
pub(crate) struct Woken<'a, M: Machine> {
    order: &'a CommitOrder<M>,
    first: Cell<u32>,
}

impl<'a, M: Machine> Woken<'a, M> {
    #[inline]
    pub(crate) fn none(order: &'a CommitOrder<M>) -> Self {
        Self {
            order,
            first: Cell::new(NONE),
        }
    }

    /// The session of `proc` need not wait any longer; if it does, it is on the list. The caller holds ProcArray
    /// exclusively.
    #[inline]
    pub(crate) fn add_if_waiting(&self, proc: ProcId) {
        let place = self.order.place(proc);
        if place.state.load(Relaxed) != NOT_WAITING && place.is_listed.load(Relaxed) == 0 {
            // Q5.
            place.is_listed.store(1, Relaxed);
            place.next.store(self.first.get(), Relaxed);
            self.first.set(proc.0);
        }
    }
}

impl<M: Machine> Drop for Woken<'_, M> {
    #[inline]
    fn drop(&mut self) {
        let mut next = self.first.get();
        while next != NONE {
            let place = self.order.place(ProcId(next));
            // Before the session goes: it may wait again at once.
            next = place.next.load(Relaxed);
            // Release: pairs with the Acquires in `wait`.
            if place.state.swap(NOT_WAITING, Release) == ASLEEP {
                M::futex_wake(&place.state, 1);
            }
        }
    }
}
