//! Workers that may pass those that wait: the switch `lwlock_fairness` (R7, R10, R11).
//!
//! A variant is a line of the enum and its limit below it. The limit is asked for when the word refuses a newcomer or
//! workers wait, never on the uncontended path.
//!
//! # Hand-over
//! Under `barging` and `after-n-shared` a wake is a hint. A woken worker that finds the latch taken queues again, at the
//! tail, so with many sleepers its wait has no bound. Under `hand-over` the wait of each sleeper is bounded:
//! 1. A worker that queues writes the time when its wait began into its slot.
//! 2. The worker that wakes looks at the clock. If the first on the list that wants the latch has waited for longer than
//!    the bound, it is *overdue*: the waker takes the latch for it, tells it so, and posts it. If that one is a reader,
//!    all readers on the list get the latch with it.
//! 3. If a newcomer came in between the release and step 2, the waker sets `OVERDUE`, and no further newcomer comes in.
//! 4. Readers inside may follow each other without any release that makes the latch free, so that step 2 never
//!    happens. Hence readers that come in while workers wait are counted as under `after-n-shared`. The reader that finds the
//!    count full looks at the clock: it clears the count, or sets `OVERDUE` if the first on the list is overdue.
//!
//! Steps 2 and 3 are taken in every second stretch of a quarter of a millisecond, and whenever `OVERDUE` is set. Without that,
//! a latch whose n sleepers take longer than the bound to be served, one switch of the CPU each, would be handed over at each
//! release and never recover: simulated with 288 workers, a sixth of the work. In the other stretches a wake is a hint as
//! ever, and a worker that is woken in vain joins the list at its head, so it keeps its place.
//!
//! The obvious way, a woken worker that sets a bit for itself, needs it awake: it does nothing for the sleepers behind it,
//! and they are the ones that wait long.
//!
//! # Claims
//! Invariant of `writer-claims`: while an exclusive's claim stands, the workers that get the latch are those inside, those woken
//! from the list and the exclusive itself. A worker that looks at the clock when its turn is over passes no worker on the list.
//!
//! Hand-over after 1 ms comes too late for a writer among readers. With more workers than CPUs a reader loses its CPU inside,
//! nearly always if sections are all that workers do. While other readers pass, they use the CPU that this one needs in order
//! to leave, so the exclusive waits for one time slice after the other. Under `writer-claims`:
//! 1. A refused worker first leaves the line alone for a moment, in which the holder may take the latch some times more: short
//!    sections follow each other at their best speed on one CPU.
//! 2. An exclusive that readers inside refuse *claims* the latch: it sets `CLAIMED` in the word that refused it. One that an
//!    exclusive refuses does so after step 1, in vain. No newcomer of either mode gets in. The worker polls on; its own claim
//!    does not refuse it. If it sleeps, the claim stays.
//! 3. The claim ends with the claimant's grant or with a wake-up. A woken exclusive claims anew when it is refused.
//! 4. While workers sleep, grants to newcomers and claimants are counted, in both modes. The count begins again when a worker
//!    that has slept gets the latch exclusively, and at a wake-up.
//! 5. A newcomer that finds the count full looks at the clock. A worker's *turn* lasts for 131 µs from its last sleep on an
//!    LwLock. If it is not over, the worker clears the count and goes on. If it is, it stops newcomers (`OVERDUE`) and queues: the
//!    worker that was woken gets the latch, and the CPU too if it needs that.
//! 6. A worker that is overdue is handed the latch as under `hand-over`. Stretches of time without hand-overs are kept to
//!    even while newcomers are stopped, since under this policy they are at most wake-ups.
//!
//! A woken worker needs its CPU to claim; steps 4 and 5 are for the time until it has it. Without them one thread keeps the latch
//! for its time slice, and a sleeper waits for the slices of all others.
//!
//! Simpler versions, each measured and worse (docs/log.md#turns-at-a-latch):
//! - *No reader passes after a wake-up that met an exclusive*: nearly each section ends with a switch of the CPU where half of
//!   the workers write.
//! - *A claim only after a wake-up in vain*, or after 2 µs of polling: more workers sleep, and the 99.9th percentile is that of
//!   their sleep.
//! - *A claimant's grant clears the count*, as a woken worker's does: two that claim in turn never look at the clock.
//! - *A worker whose turn is over queues and stops no other*: the woken worker waits for those whose turn is not over.
//! - *A wake-up lets the readers in, without turns* (as the standard library's RwLock does): the waker goes on with its time slice,
//!   is found inside by the woken exclusive, and so on: 2.5 ms instead of 40 µs.
//! - *The claim stays until the woken exclusive runs*: exclusives among themselves then pass the latch on by a switch of the CPU
//!   each time: a fifth of the work of 64 threads that only write.
//! - *An exclusive that yields its CPU before it sleeps*: the yield returns after the slices of all others, and the claim
//!   stops every worker meanwhile: 8 ms instead of 40 µs.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, Machine, WorkerId, switch};

use super::waiter::{Turn, Waiter, hands_over_now};

use super::state::{
    CLAIMED, EXCLUSIVE, GRANT_UNIT, GRANTS, HAS_WAITERS, LOCKED, Limit, OVERDUE, SHARED_MASK, SHARED_UNIT,
    claimable_from_readers,
};
use super::{LatchMode, LwLock};
use crate::class::ClassHandle;

switch! {
    /// Workers that may pass those that wait for an LwLock.
    pub enum LwLockFairnessVariant = "lwlock_fairness", best Barging, planned [] {
        /// All.
        Barging = "barging",
        /// All that want it exclusively, and 64 readers; then readers queue.
        AfterShared = "after-n-shared",
        /// All, until a sleeper has waited for 1 ms; then the latch is handed over to it.
        HandOver = "hand-over",
        /// As hand-over, but none may pass an exclusive that claims the latch, nor a sleeper once its own turn is over.
        WriterClaims = "writer-claims",
    }
    why {
        Barging: "On two CPUs it is level in throughput with after-n-shared, which shortens a writer's wait only if \
            sections are long."
            in "docs/mechanisms/shared-fetch-add.md#numbers-that-matter";
        AfterShared: "Simulated on four sockets it makes 0.73 to 2.10 times the acquisitions of barging, by the share \
            of reads."
            in "docs/log.md#latches-on-four-sockets";
        HandOver: "On two CPUs with 64 threads it shortens a writer's 99th percentile from 40 and 124 ms to 8 and 9 where \
            readers are many, and costs 6 % of the throughput where they are few."
            in "docs/mechanisms/lwlock.md#variants";
        WriterClaims: "On two CPUs a writer's 99.9th percentile is 0.01 to 4.6 times the better of parking_lot and std, where \
            barging has 3 to 2,400 times; with half writers and 0.1 us it makes 0.76 to 0.86 of the acquisitions."
            in "docs/log.md#turns-at-a-latch";
    }
}

/// The limit of `after-n-shared`, and of grants between two looks at the clock under `hand-over` and `writer-claims`. Under a
/// checker 1, so that few workers reach it.
const fn after_shared<M: Machine>() -> u32 {
    if M::EXPLORED { 1 } else { 64 }
}

const _: () = assert!(after_shared::<clearway_machine::Host>() < OVERDUE / GRANT_UNIT);

/// The hand-over by a waker to the first worker that wants the latch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HandOver {
    /// It is not overdue: a wake is a hint.
    NotDue,
    /// The latch is its own now, or that of all readers on the list.
    Granted(LatchMode),
    /// A newcomer has the latch, and no other will get it: the newcomer's release hands over.
    Stopped,
}

impl<M: Machine, K: ClassHandle> LwLock<M, K> {
    /// The limit of grants that applies to a newcomer while workers wait. A woken worker has none.
    pub(super) fn newcomer_limit(&self) -> Limit {
        match self.fairness {
            LwLockFairnessVariant::Barging => Limit::None,
            LwLockFairnessVariant::AfterShared | LwLockFairnessVariant::HandOver => {
                Limit::OfReaders(after_shared::<M>())
            }
            LwLockFairnessVariant::WriterClaims => Limit::OfAll(after_shared::<M>()),
        }
    }

    /// True if the latch is handed over to workers that are overdue.
    pub(super) fn hands_over(&self) -> bool {
        matches!(
            self.fairness,
            LwLockFairnessVariant::HandOver | LwLockFairnessVariant::WriterClaims
        )
    }

    /// True if an exclusive that waits claims the latch.
    pub(super) fn has_claims(&self) -> bool {
        self.fairness == LwLockFairnessVariant::WriterClaims
    }

    /// True if a worker that waits for the latch in `mode` claims it.
    pub(super) fn is_claimed_by(&self, mode: LatchMode) -> bool {
        self.has_claims() && mode == LatchMode::Exclusive
    }

    /// True if the latch was handed over to `worker`, the caller, which has slept. Other policies hand nothing over, and do
    /// not look: the word's line was the waker's. Under `writer-claims` the worker's turn begins.
    pub(super) fn was_handed_over(&self, worker: WorkerId) -> bool {
        let handed_over = self.hands_over() && Waiter::was_granted::<M>(worker);
        if self.has_claims() {
            Turn::begin::<M>(worker);
        }
        handed_over
    }

    /// Step 2 of a claim, by an exclusive that has joined the list and is about to sleep.
    pub(super) fn claim(&self) {
        let mut state = self.state.load(Relaxed);
        while claimable_from_readers(state) {
            match self
                .state
                .compare_exchange_weak(state, state | CLAIMED, Relaxed, Relaxed)
            {
                Ok(_) => return,
                Err(found) => state = found,
            }
        }
    }

    /// The first worker on the list that wants the latch, with its mode; `LOCKED` is held.
    pub(super) fn first_that_wants(&self) -> Option<(Waiter, LatchMode)> {
        self.queue.workers().find_map(|worker| {
            let waiter = Waiter::of::<M>(worker);
            waiter.wants().map(|mode| (waiter, mode))
        })
    }

    /// The mode of the first that wants the latch, if that one is overdue at `now`; `LOCKED` is held.
    fn first_overdue(&self, now: u64) -> Option<LatchMode> {
        let (waiter, mode) = self.first_that_wants()?;
        waiter.is_overdue::<M>(now).then_some(mode)
    }

    /// Step 2 and 3 of a hand-over, by the waker, which has `LOCKED` and takes off the list what this says.
    pub(super) fn hand_over(&self) -> HandOver {
        if !self.hands_over() {
            return HandOver::NotDue;
        }
        let now = M::now();
        let Some(mode) = self.first_overdue(now) else {
            return HandOver::NotDue;
        };
        let mut state = self.state.load(Relaxed);
        // Newcomers that are stopped already would wait in vain. By a claim they are stopped at most wake-ups.
        let are_stopped = state & OVERDUE != 0 && !self.has_claims();
        if !are_stopped && !hands_over_now::<M>(now) {
            return HandOver::NotDue;
        }
        let (refusing, units) = match mode {
            LatchMode::Exclusive => (EXCLUSIVE | SHARED_MASK, EXCLUSIVE),
            LatchMode::Shared => {
                let listed = self.queue.workers().map(Waiter::of::<M>);
                let readers = listed.filter(|waiter| waiter.wants() == Some(LatchMode::Shared));
                (EXCLUSIVE, readers.count() as u32 * SHARED_UNIT)
            }
        };
        loop {
            let granted = state & refusing == 0;
            // R7, R10: a holder clears `OVERDUE`, whether it is the overdue worker or came before it.
            let new = if granted {
                (state & !GRANTS) + units
            } else {
                state | OVERDUE
            };
            // Acquire: on behalf of the worker that gets the latch, which sees what this one saw by the Release in
            // `post_all`.
            match self.state.compare_exchange_weak(state, new, Acquire, Relaxed) {
                Ok(_) if granted => return HandOver::Granted(mode),
                Ok(_) => return HandOver::Stopped,
                Err(found) => state = found,
            }
        }
    }

    /// The look at the clock of a newcomer that the full count refuses. `true`: the count was cleared, look again.
    #[cold]
    pub(super) fn clears_full_count(&self, limit: Limit) -> bool {
        match self.fairness {
            LwLockFairnessVariant::Barging | LwLockFairnessVariant::AfterShared => false,
            LwLockFairnessVariant::HandOver => self.clears_count_unless_overdue(limit),
            LwLockFairnessVariant::WriterClaims => self.clears_count_during_turn(limit),
        }
    }

    /// Step 5 of `writer-claims`.
    fn clears_count_during_turn(&self, limit: Limit) -> bool {
        let mut state = self.state.load(Relaxed);
        if !limit.is_reached(state) {
            return false;
        }
        let is_over = Turn::is_over::<M>(M::worker());
        // R10: while the count is full there is still a release or a wake-up to come (R7), whichever newcomers are refused.
        while limit.is_reached(state) && state & HAS_WAITERS != 0 {
            let new = if is_over { state | OVERDUE } else { state & !GRANTS };
            match self.state.compare_exchange_weak(state, new, Relaxed, Relaxed) {
                Ok(_) => return !is_over,
                Err(found) => state = found,
            }
        }
        false
    }

    /// Step 4 of a hand-over, by a reader.
    fn clears_count_unless_overdue(&self, limit: Limit) -> bool {
        let is_full = |state| limit.is_reached(state) && state & EXCLUSIVE == 0;
        let mut state = self.state.load(Relaxed);
        // A worker that has the list locked is a waker, or another reader that looks at the clock, or one that joins the list
        // and delays this look to the next reader.
        if !is_full(state) || state & LOCKED != 0 {
            return false;
        }
        // Acquire: the list's links are visible.
        if self
            .state
            .compare_exchange(state, state | LOCKED, Acquire, Relaxed)
            .is_err()
        {
            return false;
        }
        let overdue = self.first_overdue(M::now()).is_some();
        state |= LOCKED;
        loop {
            let new = match (is_full(state), overdue) {
                (false, _) => state,
                // R10: while the count is full there is still a release or a wake-up to come (R7), and it is no less so
                // for refusing exclusives too.
                (true, true) => state | OVERDUE,
                (true, false) => state & !GRANTS,
            };
            match self
                .state
                .compare_exchange_weak(state, new & !LOCKED, Release, Relaxed)
            {
                Ok(_) => return !overdue,
                Err(found) => state = found,
            }
        }
    }
}
