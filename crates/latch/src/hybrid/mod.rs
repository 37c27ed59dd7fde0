//! HybridLatch: shared, update, exclusive, and reads that take nothing at all.
//!
//! An optimistic reader remembers the latch's version, reads, and looks whether the version is still the same. It writes
//! nothing, so readers on many CPUs share the line; what it read is worth something only if the version held. One that fails a few
//! times acquires the latch shared instead.
//!
//! # State: one word of 64 bits
//! | bits | name | meaning |
//! | --- | --- | --- |
//! | 0–15 | shared count | holders in shared mode |
//! | 16 | `UPDATE` | somebody holds the latch in update mode, or holds or has asked for exclusive mode |
//! | 17 | `EXCLUSIVE` | the owner of UPDATE writes, or waits for the shared holders to leave |
//! | 18 | `HAS_WAITERS` | workers are parked (see `parking`) |
//! | 19 | `WAKING` | a parked writer was woken, and has neither come in nor gone back |
//! | 20–63 | version | exclusive sections so far |
//!
//! # Protocol
//! 1. Shared: add 1 by CAS while EXCLUSIVE is clear. Update: set UPDATE by CAS while it is clear; shared holders do not matter.
//! 2. Exclusive: set UPDATE and EXCLUSIVE together while UPDATE is clear, or EXCLUSIVE alone as the owner of UPDATE; no
//!    reader comes in from then on; wait until the count is zero. So readers cannot starve a writer.
//! 3. An exclusive section ends with one addition that raises the version and clears EXCLUSIVE, together with UPDATE or not.
//! 4. Whoever replaces a word with HAS_WAITERS wakes those whom the change may let in: the last shared holder the writer that
//!    waits for it; whoever clears EXCLUSIVE the readers; whoever clears UPDATE one writer, and sets WAKING.
//! 5. While WAKING is set, to clear UPDATE (and EXCLUSIVE with it) wakes nobody. The writer that was woken polls, and clears
//!    WAKING when it has come in, or before the last look that sends it back to sleep; if readers may be in besides whom it
//!    finds or has become, it wakes them.
//! 6. Optimistic: load the word; give up if EXCLUSIVE is set; read; load it again; valid if the version is the same and
//!    EXCLUSIVE is clear.
//!
//! # Invariants
//! - R1: at most one worker owns UPDATE; only that one sets EXCLUSIVE; data changes only while EXCLUSIVE is set and the count
//!   is zero.
//! - R2: a worker parks only on a word with HAS_WAITERS that does not let it in, so the change that lets it in finds
//!   HAS_WAITERS (P1 of `parking`). A writer is parked only while UPDATE is set, a reader only while EXCLUSIVE is, the owner that waits
//!   for readers only while the count is not zero: the three changes of step 4 cover them.
//! - R2a: who was left asleep because of WAKING is not forgotten. Its clearing comes after the silent release, by a worker that
//!   then owns UPDATE or has seen it set, so that a release that is not silent is still to come, or by one that will look
//!   again. That covers the writers, and the readers if EXCLUSIVE was set with it; else they are woken then.
//! - R3: *a read that validates saw no exclusive section.* The writer's release fence stands between its setting EXCLUSIVE and
//!   its writes; the reader's acquire fence between its reads and its second look. If a read saw one of the writes, the second
//!   look sees EXCLUSIVE or a later version.
//!
//! What optimistic readers read must be atomics, or be read as if it might change underneath, for it does.
//!
//! # Costs
//! 8 bytes. Shared and exclusive: a load and a CAS, then one RMW. Optimistic: two loads. The version has 44 bits, so a reader
//! would have to sleep through exactly 2^44 exclusive sections to be deceived: ten days of 20 million a second.
//!
//! Origin: hybrid latches and optimistic lock coupling are LeanStore's (Böttcher et al., "Scalable and robust latches for
//! database systems", DaMoN 2020; Leis, Haubenschild, Neumann, "Optimistic lock coupling", 2019); U mode is InnoDB's SX.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, CoreU64, Host, Machine};

use crate::class::{ClassOf, Unclassed, Wait};
use crate::order;
use crate::parking::{self, Pick};
use crate::waiting::Waiting;

const COUNT: u64 = (1 << 16) - 1;
const UPDATE: u64 = 1 << 16;
const EXCLUSIVE: u64 = 1 << 17;
const HAS_WAITERS: u64 = 1 << 18;
const WAKING: u64 = 1 << 19;
const VERSION_SHIFT: u32 = 20;
const VERSION_UNIT: u64 = 1 << VERSION_SHIFT;

/// Modes of parked workers.
const WANTS_SHARED: u32 = 0;
const WANTS_UPDATE: u32 = 1;
const WANTS_EXCLUSIVE: u32 = 2;
const OWNS_AND_DRAINS: u32 = 3;

/// Binary logarithm of the most pauses of a reader that met others.
const CONFLICTS: u32 = 5;

/// How often [`HybridLatch::read`] tries without the latch.
const OPTIMISTIC_ATTEMPTS: u32 = 3;

/// The version an optimistic read began with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version(u64);

/// A latch of 8 bytes with shared, update and exclusive modes and optimistic reads. See the module's documentation.
#[derive(Debug)]
pub struct HybridLatch<C: ClassOf = Unclassed, M: Machine = Host> {
    word: M::U64,
    class: PhantomData<fn() -> C>,
}

const _: () = assert!(size_of::<HybridLatch>() == 8);

impl<C: ClassOf> HybridLatch<C, Host> {
    /// An idle latch.
    pub const fn new() -> Self {
        Self {
            word: CoreU64::new_const(0),
            class: PhantomData,
        }
    }
}

impl<C: ClassOf> Default for HybridLatch<C, Host> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C: ClassOf, M: Machine> HybridLatch<C, M> {
    /// An idle latch, on any machine.
    pub fn idle() -> Self {
        Self {
            word: M::U64::new(0),
            class: PhantomData,
        }
    }

    fn address(&self) -> *const () {
        core::ptr::from_ref(self).cast()
    }

    /// Acquires the latch along with other readers and at most one update.
    #[inline]
    #[track_caller]
    pub fn shared(&self) -> HybridShared<'_, C, M> {
        self.acquire_shared();
        HybridShared(self, PhantomData)
    }

    /// Acquires the latch in shared mode if it can be had now.
    #[inline]
    #[track_caller]
    pub fn try_shared(&self) -> Option<HybridShared<'_, C, M>> {
        self.try_acquire_shared().then(|| HybridShared(self, PhantomData))
    }

    /// Acquires the latch in update mode: along with readers, without another update or exclusive.
    #[inline]
    #[track_caller]
    pub fn update(&self) -> HybridUpdate<'_, C, M> {
        self.acquire_update();
        HybridUpdate(self, PhantomData)
    }

    /// Acquires the latch in update mode if it can be had now.
    #[inline]
    #[track_caller]
    pub fn try_update(&self) -> Option<HybridUpdate<'_, C, M>> {
        self.try_acquire_update().then(|| HybridUpdate(self, PhantomData))
    }

    /// Acquires the latch alone. Readers that come after the call stay out, so it waits only for those that are in.
    #[inline]
    #[track_caller]
    pub fn exclusive(&self) -> HybridExclusive<'_, C, M> {
        self.acquire_exclusive();
        HybridExclusive(self, PhantomData)
    }

    /// Acquires the latch in exclusive mode if it can be had now.
    #[inline]
    #[track_caller]
    pub fn try_exclusive(&self) -> Option<HybridExclusive<'_, C, M>> {
        self.try_acquire_exclusive()
            .then(|| HybridExclusive(self, PhantomData))
    }

    /// Begins an optimistic read; `None` while somebody writes. Acquire: what the last exclusive section wrote is visible.
    #[inline]
    pub fn optimistic(&self) -> Option<Version> {
        let word = self.word.load(Acquire);
        (word & EXCLUSIVE == 0).then_some(Version(word >> VERSION_SHIFT))
    }

    /// Whether nobody has written since `version` was taken: only then may what was read be used.
    #[inline]
    pub fn validate(&self, version: Version) -> bool {
        // R3: the reads come before the look.
        M::fence(Acquire);
        let word = self.word.load(Relaxed);
        word & EXCLUSIVE == 0 && word >> VERSION_SHIFT == version.0
    }

    /// Calls `read` without the latch until no writer came in between, a few times; then with the latch in shared mode.
    ///
    /// `read` may see data that is being changed. It must not panic on it, and must give up rather than loop; what it
    /// returned is then thrown away.
    #[track_caller]
    pub fn read<R>(&self, read: impl Fn() -> R) -> R {
        for _ in 0..OPTIMISTIC_ATTEMPTS {
            if let Some(version) = self.optimistic() {
                let result = read();
                if self.validate(version) {
                    return result;
                }
            }
            M::spin_hint();
        }
        let _shared = self.shared();
        read()
    }

    /// Turns an optimistic read into an update, if nobody has written since `version` was taken and the latch can be had
    /// now.
    #[track_caller]
    pub fn try_update_at(&self, version: Version) -> Option<HybridUpdate<'_, C, M>> {
        self.try_own(UPDATE, 0, Some(version), Wait::Update)
            .then(|| HybridUpdate(self, PhantomData))
    }

    /// Turns an optimistic read into an exclusive, if nobody has written since `version` was taken and the latch can be had
    /// now.
    #[track_caller]
    pub fn try_exclusive_at(&self, version: Version) -> Option<HybridExclusive<'_, C, M>> {
        let acquired = self.try_own(UPDATE | EXCLUSIVE, COUNT, Some(version), Wait::Exclusive);
        if !acquired {
            return None;
        }
        // R3: EXCLUSIVE comes before the writes.
        M::fence(Release);
        Some(HybridExclusive(self, PhantomData))
    }

    /// Acquires in shared mode without a guard.
    #[inline]
    #[track_caller]
    pub fn acquire_shared(&self) {
        order::acquiring::<M>(C::class(), self.address());
        let word = self.word.load(Relaxed);
        if word & EXCLUSIVE != 0
            || self
                .word
                .compare_exchange_weak(word, word + 1, Acquire, Relaxed)
                .is_err()
        {
            self.shared_slow();
        }
        self.acquired(Wait::Shared);
    }

    /// Acquires in shared mode without a guard, if it can be had now.
    #[inline]
    #[track_caller]
    pub fn try_acquire_shared(&self) -> bool {
        let acquired = self.try_shared_once();
        if acquired {
            self.acquired(Wait::Shared);
        }
        acquired
    }

    #[inline]
    fn try_shared_once(&self) -> bool {
        let mut word = self.word.load(Relaxed);
        let mut conflicts = 0_u32;
        while word & EXCLUSIVE == 0 {
            debug_assert!(word & COUNT < COUNT, "the shared count overflows");
            match self.word.compare_exchange_weak(word, word + 1, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(found) => {
                    conflicts += 1;
                    word = self.look_again(found, conflicts);
                }
            }
        }
        false
    }

    /// The word, after a reader has met others so often: rarer and rarer, so that those who come and go can use the line in
    /// between. An only reader of the line does several acquisitions in the time that a conflict takes.
    #[cold]
    fn look_again(&self, found: u64, conflicts: u32) -> u64 {
        if M::EXPLORED {
            return found;
        }
        for _ in 0..1 << conflicts.min(CONFLICTS) {
            M::spin_hint();
        }
        self.word.load(Relaxed)
    }

    #[cold]
    #[inline(never)]
    fn shared_slow(&self) {
        self.wait(Wait::Shared, WANTS_SHARED, EXCLUSIVE, || self.try_shared_once());
    }

    /// Releases what was acquired in shared mode.
    #[inline]
    pub fn release_shared(&self) {
        order::released::<M>(self.address());
        // Release: pairs with the Acquire of the writer that sees the count at zero.
        let before = self.word.fetch_sub(1, Release);
        debug_assert!(
            before & COUNT != 0,
            "latch {} is not held shared",
            C::class().name
        );
        if before & (COUNT | EXCLUSIVE | HAS_WAITERS) == 1 | EXCLUSIVE | HAS_WAITERS {
            self.wake(|mode| mode == OWNS_AND_DRAINS);
        }
    }

    /// Acquires in update mode without a guard.
    #[inline]
    #[track_caller]
    pub fn acquire_update(&self) {
        order::acquiring::<M>(C::class(), self.address());
        if !self.own(UPDATE, 0, None) {
            self.update_slow();
        }
        self.acquired(Wait::Update);
    }

    /// Acquires in update mode without a guard, if it can be had now.
    #[inline]
    #[track_caller]
    pub fn try_acquire_update(&self) -> bool {
        self.try_own(UPDATE, 0, None, Wait::Update)
    }

    #[cold]
    #[inline(never)]
    fn update_slow(&self) {
        self.wait(Wait::Update, WANTS_UPDATE, UPDATE, || self.own(UPDATE, 0, None));
    }

    /// Releases what was acquired in update mode.
    #[inline]
    pub fn release_update(&self) {
        order::released::<M>(self.address());
        if self.word.fetch_sub(UPDATE, Release) & HAS_WAITERS != 0 {
            self.wake_all_that_may_come();
        }
    }

    /// Acquires in exclusive mode without a guard.
    #[inline]
    #[track_caller]
    pub fn acquire_exclusive(&self) {
        order::acquiring::<M>(C::class(), self.address());
        if !self.own(UPDATE | EXCLUSIVE, COUNT, None) {
            self.exclusive_slow();
        }
        // R3: EXCLUSIVE comes before the writes.
        M::fence(Release);
        self.acquired(Wait::Exclusive);
    }

    /// Acquires in exclusive mode without a guard, if it can be had now.
    #[inline]
    #[track_caller]
    pub fn try_acquire_exclusive(&self) -> bool {
        let acquired = self.try_own(UPDATE | EXCLUSIVE, COUNT, None, Wait::Exclusive);
        // R3: EXCLUSIVE comes before the writes.
        M::fence(Release);
        acquired
    }

    #[cold]
    #[inline(never)]
    fn exclusive_slow(&self) {
        self.wait(Wait::Exclusive, WANTS_EXCLUSIVE, UPDATE, || {
            self.own(UPDATE | EXCLUSIVE, 0, None)
        });
        self.drain();
    }

    /// Releases what was acquired in exclusive mode.
    #[inline]
    pub fn release_exclusive(&self) {
        order::released::<M>(self.address());
        self.end_exclusive(0);
    }

    /// Ends an exclusive section, keeping `kept` of the word (protocol, step 3).
    #[inline]
    fn end_exclusive(&self, kept: u64) {
        let before = self
            .word
            .fetch_add(VERSION_UNIT + kept - EXCLUSIVE - UPDATE, Release);
        debug_assert!(
            before & (EXCLUSIVE | UPDATE | COUNT) == EXCLUSIVE | UPDATE,
            "latch {} is not held exclusively: {before:#x}",
            C::class().name
        );
        if before & HAS_WAITERS == 0 {
            return;
        }
        if kept & UPDATE != 0 {
            self.wake_readers();
        } else {
            self.wake_all_that_may_come();
        }
    }

    /// From update mode, which the caller holds, to exclusive mode: no more readers, and wait for those that are in.
    #[inline]
    pub fn upgrade_update(&self) {
        if self.word.fetch_add(EXCLUSIVE, Acquire) & COUNT != 0 {
            self.drain();
        }
        // R3: EXCLUSIVE comes before the writes.
        M::fence(Release);
    }

    /// Sets `bits` if UPDATE (and so EXCLUSIVE) and `excluded` are clear, and the version is still `version` if there is one.
    #[inline]
    fn own(&self, bits: u64, excluded: u64, version: Option<Version>) -> bool {
        let mut word = self.word.load(Relaxed);
        while word & (UPDATE | excluded) == 0 && version.is_none_or(|Version(v)| v == word >> VERSION_SHIFT) {
            match self
                .word
                .compare_exchange_weak(word, word + bits, Acquire, Relaxed)
            {
                Ok(_) => return true,
                Err(found) => word = found,
            }
        }
        false
    }

    #[inline]
    #[track_caller]
    fn try_own(&self, bits: u64, excluded: u64, version: Option<Version>, mode: Wait) -> bool {
        let acquired = self.own(bits, excluded, version);
        if acquired {
            self.acquired(mode);
        }
        acquired
    }

    #[inline]
    #[track_caller]
    fn acquired(&self, mode: Wait) {
        order::acquired::<M>(C::class(), self.address());
        C::class().count::<M>(mode);
    }

    /// Waits for the shared holders to leave; EXCLUSIVE keeps new ones out.
    #[cold]
    #[inline(never)]
    fn drain(&self) {
        // Acquire: pairs with the Release of each shared release.
        self.wait(Wait::Exclusive, OWNS_AND_DRAINS, COUNT, || {
            self.word.load(Acquire) & COUNT == 0
        });
    }

    /// Polls, and then parks while any of `blocking` is set, until `attempt` succeeds.
    fn wait(&self, wait: Wait, mode: u32, blocking: u64, attempt: impl Fn() -> bool) {
        if attempt() {
            return;
        }
        let mut waiting = Waiting::begin::<M>(C::class(), wait, self.address());
        if mode == OWNS_AND_DRAINS {
            waiting.poll_as_owner::<M>();
        }
        // With WAKING set on our behalf.
        let mut woken = false;
        loop {
            if self.word.load(Relaxed) & blocking == 0 && attempt() {
                if woken {
                    self.end_waking();
                }
                break;
            }
            if waiting.poll::<M>() {
                continue;
            }
            if woken {
                woken = false;
                if self.end_waking() & blocking == 0 {
                    continue;
                }
            }
            let again = waiting.has_slept();
            let slept = waiting.sleep::<M>(|class| {
                parking::park::<M>(self.address(), mode, again, class.wait_event, || {
                    self.still_blocked(blocking)
                })
            });
            woken = slept && (mode == WANTS_UPDATE || mode == WANTS_EXCLUSIVE);
        }
        waiting.finish::<M>();
    }

    /// R2a: a woken writer has come in, or takes the look that may send it back to sleep. The word.
    fn end_waking(&self) -> u64 {
        let word = self.word.fetch_and(!WAKING, Relaxed);
        // Even if UPDATE is clear now: the caller takes it next, perhaps without excluding them.
        if word & (EXCLUSIVE | HAS_WAITERS) == HAS_WAITERS {
            self.wake_readers();
        }
        word
    }

    /// R2: whether any of `blocking` is set, with HAS_WAITERS set in the same word.
    fn still_blocked(&self, blocking: u64) -> bool {
        let mut word = self.word.load(Relaxed);
        loop {
            if word & blocking == 0 {
                return false;
            }
            if word & HAS_WAITERS != 0 {
                return true;
            }
            match self
                .word
                .compare_exchange_weak(word, word | HAS_WAITERS, Relaxed, Relaxed)
            {
                Ok(_) => return true,
                Err(found) => word = found,
            }
        }
    }

    /// UPDATE is free: wakes one writer, and the readers; but if a writer that will shut readers out has waited longest, that
    /// one alone, for the readers would only go back to sleep.
    #[cold]
    #[inline(never)]
    fn wake_all_that_may_come(&self) {
        // Step 5. A flag that was set since the release is of one that was woken since, as good as one before.
        if self.word.load(Relaxed) & WAKING != 0 {
            return;
        }
        let mut first = true;
        let mut writer = false;
        let mut alone = false;
        self.wake(|mode| {
            let take = match mode {
                _ if alone => false,
                WANTS_SHARED => true,
                WANTS_UPDATE | WANTS_EXCLUSIVE if !writer => {
                    writer = true;
                    alone = first && mode == WANTS_EXCLUSIVE;
                    // Before it runs, and can clear it.
                    self.word.fetch_or(WAKING, Relaxed);
                    true
                }
                _ => false,
            };
            first = false;
            take
        });
    }

    /// EXCLUSIVE is clear.
    #[cold]
    fn wake_readers(&self) {
        self.wake(|mode| mode == WANTS_SHARED);
    }

    fn wake(&self, mut take: impl FnMut(u32) -> bool) {
        parking::unpark::<M>(
            self.address(),
            |mode| if take(mode) { Pick::Take } else { Pick::Leave },
            || {
                self.word.fetch_and(!HAS_WAITERS, Relaxed);
            },
        );
    }

    /// Whether anybody holds the latch at this instant, for assertions.
    pub fn is_held(&self) -> bool {
        self.word.load(Relaxed) & (COUNT | UPDATE | EXCLUSIVE) != 0
    }

    /// Whether somebody holds the latch exclusively, or has asked for it, at this instant; for assertions.
    pub fn is_held_exclusive(&self) -> bool {
        self.word.load(Relaxed) & EXCLUSIVE != 0
    }
}

/// A latch is released by the worker that acquired it.
type NotSend = PhantomData<*const ()>;

macro_rules! guard {
    ($(#[$doc:meta])* $name:ident, $release:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        #[must_use = "the latch is released at once if its guard is dropped"]
        pub struct $name<'a, C: ClassOf = Unclassed, M: Machine = Host>(&'a HybridLatch<C, M>, NotSend);

        impl<C: ClassOf, M: Machine> Drop for $name<'_, C, M> {
            #[inline]
            fn drop(&mut self) {
                self.0.$release();
            }
        }
    };
}

guard! {
    /// Holds a [`HybridLatch`] in shared mode.
    HybridShared, release_shared
}
guard! {
    /// Holds a [`HybridLatch`] in update mode.
    HybridUpdate, release_update
}
guard! {
    /// Holds a [`HybridLatch`] in exclusive mode.
    HybridExclusive, release_exclusive
}

/// The latch of a guard that gives way to another.
macro_rules! handed_on {
    ($guard:expr) => {
        core::mem::ManuallyDrop::new($guard).0
    };
}

impl<'a, C: ClassOf, M: Machine> HybridShared<'a, C, M> {
    /// To update mode, if nobody has it. There is no waiting form: two readers that waited for each other would wait
    /// forever.
    pub fn try_upgrade(self) -> Result<HybridUpdate<'a, C, M>, Self> {
        let latch = self.0;
        let mut word = latch.word.load(Relaxed);
        while word & UPDATE == 0 {
            match latch
                .word
                .compare_exchange_weak(word, word - 1 + UPDATE, Acquire, Relaxed)
            {
                Ok(_) => return Ok(HybridUpdate(handed_on!(self), PhantomData)),
                Err(found) => word = found,
            }
        }
        Err(self)
    }
}

impl<'a, C: ClassOf, M: Machine> HybridUpdate<'a, C, M> {
    /// To exclusive mode, after the readers that are in have left.
    pub fn upgrade(self) -> HybridExclusive<'a, C, M> {
        self.0.upgrade_update();
        HybridExclusive(handed_on!(self), PhantomData)
    }

    /// To shared mode.
    pub fn downgrade(self) -> HybridShared<'a, C, M> {
        let latch = handed_on!(self);
        if latch.word.fetch_sub(UPDATE - 1, Release) & HAS_WAITERS != 0 {
            latch.wake_all_that_may_come();
        }
        HybridShared(latch, PhantomData)
    }
}

impl<'a, C: ClassOf, M: Machine> HybridExclusive<'a, C, M> {
    /// To update mode: readers may come in, writers not.
    pub fn downgrade_to_update(self) -> HybridUpdate<'a, C, M> {
        self.0.end_exclusive(UPDATE);
        HybridUpdate(handed_on!(self), PhantomData)
    }

    /// To shared mode.
    pub fn downgrade_to_shared(self) -> HybridShared<'a, C, M> {
        self.0.end_exclusive(1);
        HybridShared(handed_on!(self), PhantomData)
    }
}
