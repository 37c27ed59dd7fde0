//! ReadBiasedLatch: a reader-writer latch cut into K latches, each on a cache line of its own.
//!
//! It protects what one [`LwLock`] protects. A reader takes one slot; a writer takes all K.
//!
//! # Protocol
//! - Shared: acquire any one slot in shared mode; remember which.
//! - Exclusive: acquire every slot in exclusive mode, from the first to the last. Release: give all slots back, in
//!   the same order, and only then make the wake-ups that this owes.
//! - Conditional exclusive: try every slot from the first on; at the first refusal release the slots taken.
//!
//! # Rules
//! - R1: a writer holds the latch when it holds *all* slots, a reader when it holds *one*. So each writer
//!   conflicts with each reader and each other writer in at least one slot, whose word decides.
//! - R2: no worker waits for a slot while it holds one of a higher number. So workers that wait for each
//!   other are in ascending order, and there is no cycle: two writers meet at the first slot; a reader holds
//!   one slot and waits for none.
//! - R3: a failed attempt gives back its slots by *releases*, with their wake-ups. A worker that was refused
//!   by a slot of that attempt sleeps on the slot, and no other release will wake it.
//! - R4: no wake-up is made while a slot is held that is to be given back. A wake-up takes a microsecond or two. If
//!   the writer woke the sleepers of each slot before it gave back the next, the later slots would be held for as long
//!   as all those wake-ups take, more workers would be refused and sleep there, and the next writer would have more to
//!   wake: the latch does not get out of that state while readers keep coming
//!   (`docs/mechanisms/read-biased.md`). That the wake check comes late loses no wake-up (`wake_after_exclusive`).
//!
//! A conditional acquire may fail because of another one that fails: while that one rolls back, some slots
//! are taken.
//!
//! # Fairness
//! That of the slots' LwLock. A writer that holds the first slots keeps new readers out of those while it
//! waits for the rest, so the set that it waits for only shrinks. On each single slot, readers may pass the
//! writer for as long as they overlap.
//!
//! # Costs
//! 128 bytes a slot and 128 more. Shared: as LwLock, plus finding the slot's number. Exclusive: K times
//! LwLock.
//!
//! Origin: the partitioned ProcArrayLock proposed on pgsql-hackers; "big-reader" locks (brlock) in Linux 2.4
//! are the same idea per CPU.

use core::marker::PhantomData;

use clearway_machine::{Host, Machine, Padded};

use super::slot_choice::SlotChoice;
use crate::class::LatchClass;
use crate::lwlock::options::LwLockOptions;
use crate::lwlock::{LatchMode, LwLock};
use crate::order;

/// A reader-writer latch for many readers and few writers. See the module's documentation for the protocol.
#[derive(Debug)]
pub struct ReadBiasedLatch<const K: usize = 16, M: Machine = Host> {
    slots: [Padded<LwLock<M>>; K],
    class: &'static LatchClass,
    choice: SlotChoice,
}

const _: () = assert!(size_of::<ReadBiasedLatch<16, Host>>() == 17 * 128);

impl<const K: usize, M: Machine> ReadBiasedLatch<K, M> {
    const HAS_SLOTS: () = assert!(K > 0, "a read-biased latch needs a slot");

    /// An idle latch of `class`, whose readers pick their slot by the worker's number.
    pub fn new(class: &'static LatchClass, options: impl Into<LwLockOptions>) -> Self {
        Self::with_choice(class, options, SlotChoice::default())
    }

    /// An idle latch of `class`, whose readers pick their slot by `choice`.
    pub fn with_choice(
        class: &'static LatchClass,
        options: impl Into<LwLockOptions>,
        choice: SlotChoice,
    ) -> Self {
        let () = Self::HAS_SLOTS;
        let options = options.into();
        Self {
            slots: core::array::from_fn(|_| Padded(LwLock::new(class, options))),
            class,
            choice,
        }
    }

    /// The latch's class.
    pub fn class(&self) -> &'static LatchClass {
        self.class
    }

    /// The address by which the order checker knows the latch. Not that of a slot, which is a latch of its
    /// own to the checker.
    fn address(&self) -> *const () {
        core::ptr::from_ref(&self.choice).cast()
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
    #[inline]
    #[track_caller]
    pub fn shared(&self) -> ReadBiasedShared<'_, K, M> {
        order::acquiring::<M>(self.class, self.address());
        let slot = &*self.slots[self.choice.slot::<M>(K)];
        if !slot.try_grant(LatchMode::Shared) {
            slot.acquire_slow(LatchMode::Shared);
        }
        self.note_acquired(slot, LatchMode::Shared);
        ReadBiasedShared::new(self, slot)
    }

    /// Acquires the latch in shared mode if that needs no waiting.
    #[inline]
    #[track_caller]
    pub fn try_shared(&self) -> Option<ReadBiasedShared<'_, K, M>> {
        let slot = &*self.slots[self.choice.slot::<M>(K)];
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
        // R2: in ascending order.
        for slot in &self.slots {
            if !slot.try_grant(LatchMode::Exclusive) {
                slot.acquire_slow(LatchMode::Exclusive);
            }
        }
        self.note_acquired(&self.slots[0], LatchMode::Exclusive);
        ReadBiasedExclusive::new(self)
    }

    /// Acquires the latch in exclusive mode if that needs no waiting. A refused attempt changes nothing, but
    /// while it lasts it may make other attempts fail and other workers wait.
    #[track_caller]
    pub fn try_exclusive(&self) -> Option<ReadBiasedExclusive<'_, K, M>> {
        for (taken, slot) in self.slots.iter().enumerate() {
            if !slot.try_grant(LatchMode::Exclusive) {
                // R3: a release, with its wake-ups; R4.
                self.release_first(taken);
                return None;
            }
        }
        self.note_acquired(&self.slots[0], LatchMode::Exclusive);
        Some(ReadBiasedExclusive::new(self))
    }

    /// Gives back the first `slots` slots, which the caller holds exclusively, and makes the wake-ups owed (R4).
    fn release_first(&self, slots: usize) {
        let mut owes_wakeup = [false; K];
        for (slot, owes) in self.slots.iter().zip(&mut owes_wakeup).take(slots) {
            *owes = slot.give_exclusive_back();
        }
        for (slot, _) in self.slots.iter().zip(owes_wakeup).filter(|(_, owes)| *owes) {
            slot.wake_after_exclusive();
        }
    }

    /// Whether the latch, or one of its slots, is held at this instant, for assertions.
    pub fn is_held(&self) -> bool {
        self.slots.iter().any(|slot| slot.is_held())
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
        self.slot.release_word(LatchMode::Shared);
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
        self.latch.release_first(K);
    }
}
