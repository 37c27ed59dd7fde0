//! ReadBiasedLatch: a reader-writer latch cut into K latches, each on a cache line of its own.
//!
//! It protects what one [`LwLock`] protects. A reader takes one slot; a writer takes all that are in use: K, or fewer
//! if the machine has fewer places to tell readers apart by ([`SlotChoice`]). The rest of this page calls them K.
//!
//! # Protocol
//! - Shared: acquire any one slot in shared mode; remember which.
//! - Exclusive: take every slot in exclusive mode. How, is a variant ([`WriterVariant`]): `writer` has the contract,
//!   C1 to C5, and a file for each.
//! - Conditional exclusive: try every slot from the first on; at the first refusal release the slots taken.
//! - Release: give all slots back, and only then make the wake-ups that this owes.
//!
//! # Rules
//! - R1: a writer holds the latch when it holds *all* slots, a reader when it holds *one*. So each writer
//!   conflicts with each reader and each other writer in at least one slot, whose word decides.
//! - R2: a worker that holds some slots and waits for another one waits for workers only that wait for none of its own
//!   (C3).
//! - R3: a failed attempt gives back its slots by *releases*, with their wake-ups. A worker that was refused
//!   by a slot of that attempt sleeps on the slot, and no other release will wake it.
//! - R4: no wake-up is made while a slot is held that is to be given back (`writer/give_back.rs`).
//!
//! A conditional acquire may fail because of another one that fails: while that one rolls back, some slots
//! are taken.
//!
//! # Fairness
//! Under `one-by-one` that of the slots' LwLock. A writer that holds the first slots keeps new readers out of those
//! while it waits for the rest, so the set that it waits for only shrinks. On each single slot, readers may pass the
//! writer for as long as they overlap. The other variants state theirs.
//!
//! # Costs
//! 128 bytes a slot and 256 more. Shared: as LwLock, plus finding the slot's number. Exclusive: K times
//! LwLock.
//!
//! Origin: the partitioned ProcArrayLock proposed on pgsql-hackers; "big-reader" locks (brlock) in Linux 2.4
//! are the same idea per CPU.

use core::marker::PhantomData;
use core::mem::{MaybeUninit, transmute_copy};
use core::sync::atomic::Ordering::Release;

use clearway_machine::{AtomicWord, Host, Machine, Padded};

use super::slot_choice::{SlotChoice, SlotMap};
use super::writer::{SLOTS_MAX, Slots, WriterVariant, Writers};
use crate::class::LatchClass;
use crate::lwlock::options::LwLockOptions;
use crate::lwlock::state::{EXCLUSIVE, HAS_WAITERS, SHARED_MASK, SHARED_UNIT, last_shared_must_wake};
use crate::lwlock::{LatchMode, LwLock};
use crate::order;

/// The options of a [`ReadBiasedLatch`]. [`LwLockOptions`], and so an `LwLockVariant`, convert into it, with the
/// defaults of the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadBiasedOptions {
    /// The slots. Writer variants other than `one-by-one` ignore its `shared_path` and use `cas`.
    pub lwlock: LwLockOptions,
    /// The choice of a reader's slot.
    pub slot: SlotChoice,
    /// The way in which a writer takes the slots.
    pub writer: WriterVariant,
}

impl<T: Into<LwLockOptions>> From<T> for ReadBiasedOptions {
    fn from(lwlock: T) -> Self {
        Self {
            lwlock: lwlock.into(),
            ..Self::default()
        }
    }
}

/// A reader-writer latch for many readers and few writers. See the module's documentation for the protocol.
#[derive(Debug)]
pub struct ReadBiasedLatch<const K: usize = 16, M: Machine = Host> {
    slots: [Padded<LwLock<M>>; K],
    writers: Padded<Writers<M>>,
    class: &'static LatchClass,
    slot: SlotMap,
}

const _: () = assert!(size_of::<ReadBiasedLatch<16, Host>>() == 18 * 128);

impl<const K: usize> ReadBiasedLatch<K> {
    /// An idle latch of `class` in a static, whose slots are chosen by worker or by CPU:
    ///
    /// ```
    /// use clearway_latch::{
    ///     LatchClass, LwLockOptions, ReadBiasedLatch, ReadBiasedOptions, SlotChoice, WriterVariant,
    /// };
    /// use clearway_machine::WaitEvent;
    ///
    /// static CLASS: LatchClass = LatchClass::new("Rarely", WaitEvent::UserLatch, 0);
    /// const OPTIONS: ReadBiasedOptions = ReadBiasedOptions {
    ///     lwlock: LwLockOptions::BEST,
    ///     slot: SlotChoice::Cpu,
    ///     writer: WriterVariant::Announce,
    /// };
    /// static RARELY: ReadBiasedLatch = ReadBiasedLatch::in_static(&CLASS, OPTIONS);
    ///
    /// let _alone = RARELY.exclusive();
    /// assert!(RARELY.try_shared().is_none());
    /// ```
    pub const fn in_static(class: &'static LatchClass, options: ReadBiasedOptions) -> Self {
        let () = Self::HAS_SLOTS;
        let slot = options.writer.slot_options(options.lwlock);
        let mut slots = [const { MaybeUninit::<Padded<LwLock>>::uninit() }; K];
        let mut number = 0;
        while number < K {
            slots[number].write(Padded(LwLock::in_static(class, slot)));
            number += 1;
        }
        Self {
            // SAFETY: all K are written, and those that are copied are not used or dropped.
            slots: unsafe { transmute_copy(&slots) },
            writers: Padded(Writers::in_static(options.writer, class, options.lwlock)),
            class,
            slot: SlotMap::in_static(options.slot, K),
        }
    }
}

impl<const K: usize, M: Machine> ReadBiasedLatch<K, M> {
    const HAS_SLOTS: () = assert!(
        K > 0 && K <= SLOTS_MAX,
        "a read-biased latch needs a slot, and has at most 64"
    );

    /// An idle latch of `class`. From [`LwLockOptions`] alone: readers pick their slot by the worker's number, and
    /// writers take the slots one by one.
    pub fn new(class: &'static LatchClass, options: impl Into<ReadBiasedOptions>) -> Self {
        let () = Self::HAS_SLOTS;
        let options = options.into();
        let slot = options.writer.slot_options(options.lwlock);
        Self {
            slots: core::array::from_fn(|_| Padded(LwLock::new(class, slot))),
            writers: Padded(Writers::new(options.writer, class, options.lwlock)),
            class,
            slot: SlotMap::new::<M>(options.slot, K),
        }
    }

    /// The latch's class.
    pub fn class(&self) -> &'static LatchClass {
        self.class
    }

    /// The address by which the order checker knows the latch. Not that of a slot, which is a latch of its
    /// own to the checker.
    fn address(&self) -> *const () {
        core::ptr::from_ref(&self.slot).cast()
    }

    #[inline]
    #[track_caller]
    fn note_acquired(&self, slot: &LwLock<M>, mode: LatchMode) {
        order::acquired::<M>(self.class, self.address());
        slot.count_acquisition(mode);
    }

    /// Acquires the latch in shared mode, waiting as long as it takes.
    ///
    /// # Panics
    /// In debug builds, if the calling thread holds this latch or one of a higher rank.
    // Always: left to itself the compiler calls it, which costs eight instructions more.
    #[inline(always)]
    #[track_caller]
    pub fn shared(&self) -> ReadBiasedShared<'_, K, M> {
        order::acquiring::<M>(self.class, self.address());
        let slot = &*self.slots[self.slot.slot::<M>(K)];
        if !slot.try_grant(LatchMode::Shared) {
            self.wait_for_slot(slot);
        }
        self.note_acquired(slot, LatchMode::Shared);
        ReadBiasedShared::new(self, slot)
    }

    /// Acquires the latch in shared mode if that needs no waiting.
    #[inline]
    #[track_caller]
    pub fn try_shared(&self) -> Option<ReadBiasedShared<'_, K, M>> {
        let slot = &*self.slots[self.slot.slot::<M>(K)];
        if !slot.try_grant(LatchMode::Shared) {
            return None;
        }
        self.note_acquired(slot, LatchMode::Shared);
        Some(ReadBiasedShared::new(self, slot))
    }

    /// Acquires the latch in exclusive mode, waiting as long as it takes. Each wait for a slot counts as one
    /// conflict.
    ///
    /// # Panics
    /// In debug builds, if the calling thread holds this latch or one of a higher rank.
    #[track_caller]
    pub fn exclusive(&self) -> ReadBiasedExclusive<'_, K, M> {
        order::acquiring::<M>(self.class, self.address());
        self.writers.acquire(self.in_use());
        self.note_acquired(&self.slots[0], LatchMode::Exclusive);
        ReadBiasedExclusive::new(self)
    }

    /// Acquires the latch in exclusive mode if that needs no waiting. A refused attempt changes nothing, but
    /// while it lasts it may make other attempts fail and other workers wait.
    #[track_caller]
    pub fn try_exclusive(&self) -> Option<ReadBiasedExclusive<'_, K, M>> {
        if !self.writers.try_acquire(self.in_use()) {
            return None;
        }
        self.note_acquired(&self.slots[0], LatchMode::Exclusive);
        Some(ReadBiasedExclusive::new(self))
    }

    /// The slots that readers use.
    fn in_use(&self) -> &Slots<M> {
        &self.slots[..self.slot.in_use()]
    }

    /// Acquires `slot` in shared mode by waiting.
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn wait_for_slot(&self, slot: &LwLock<M>) {
        if slot.wait_for_grant(LatchMode::Shared, M::now()).twice {
            // C5 holds for this unit too: a writer may have counted it.
            self.leave(slot);
        }
    }

    /// Gives a reader's unit of `slot` back.
    #[inline]
    fn leave(&self, slot: &LwLock<M>) {
        // Release: the next writer's acquisition sees what was read.
        let before = slot.state.fetch_sub(SHARED_UNIT, Release);
        debug_assert!(before & SHARED_MASK != 0, "a reader leaves a slot that has none");
        if before & (EXCLUSIVE | HAS_WAITERS) != 0 {
            self.left(slot, before);
        }
    }

    /// The rest of a reader's release of `slot`, whose word was `before`.
    #[cold]
    #[inline(never)]
    fn left(&self, slot: &LwLock<M>, before: u32) {
        if before & EXCLUSIVE != 0 {
            // C5.
            self.writers.reader_left();
        } else if last_shared_must_wake(before) {
            slot.wake_after_exclusive();
        }
    }

    /// True if the latch, or one of its slots, is held at this instant, for assertions.
    pub fn is_held(&self) -> bool {
        self.slots.iter().any(|slot| slot.is_held()) || self.writers.is_held()
    }
}

/// Holds a [`ReadBiasedLatch`] in shared mode: one of its slots.
#[derive(Debug)]
#[must_use = "the latch is released at once if its guard is dropped"]
pub struct ReadBiasedShared<'a, const K: usize = 16, M: Machine = Host> {
    latch: &'a ReadBiasedLatch<K, M>,
    slot: &'a LwLock<M>,
    // A latch is released by the worker that acquired it.
    not_send: PhantomData<*const ()>,
}

impl<'a, const K: usize, M: Machine> ReadBiasedShared<'a, K, M> {
    #[inline]
    fn new(latch: &'a ReadBiasedLatch<K, M>, slot: &'a LwLock<M>) -> Self {
        Self {
            latch,
            slot,
            not_send: PhantomData,
        }
    }

    /// The latch this guard holds.
    pub fn latch(&self) -> &'a ReadBiasedLatch<K, M> {
        self.latch
    }
}

impl<const K: usize, M: Machine> Drop for ReadBiasedShared<'_, K, M> {
    #[inline]
    fn drop(&mut self) {
        order::released::<M>(self.latch.address());
        self.latch.leave(self.slot);
    }
}

/// Holds a [`ReadBiasedLatch`] in exclusive mode: all of its slots.
#[derive(Debug)]
#[must_use = "the latch is released at once if its guard is dropped"]
pub struct ReadBiasedExclusive<'a, const K: usize = 16, M: Machine = Host> {
    latch: &'a ReadBiasedLatch<K, M>,
    not_send: PhantomData<*const ()>,
}

impl<'a, const K: usize, M: Machine> ReadBiasedExclusive<'a, K, M> {
    #[inline]
    fn new(latch: &'a ReadBiasedLatch<K, M>) -> Self {
        Self {
            latch,
            not_send: PhantomData,
        }
    }

    /// The latch this guard holds.
    pub fn latch(&self) -> &'a ReadBiasedLatch<K, M> {
        self.latch
    }
}

impl<const K: usize, M: Machine> Drop for ReadBiasedExclusive<'_, K, M> {
    fn drop(&mut self) {
        order::released::<M>(self.latch.address());
        self.latch.writers.release(self.latch.in_use());
    }
}
