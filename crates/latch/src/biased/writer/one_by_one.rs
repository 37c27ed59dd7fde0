//! Variant `one-by-one`: acquire slot after slot. The published form, and the baseline.
//!
//! A writer acquires each slot as any exclusive holder of an LwLock does, first to last, and waits at each until the
//! readers there have left. Readers of the slots before are shut out meanwhile, those of the slots behind are not.
//!
//! - C2, C3: no worker waits for a slot while it holds one of a higher number. So workers that wait for each other are
//!   in ascending order, and there is no cycle: two writers meet at the first slot; a reader holds one slot and waits
//!   for none.
//! - C4: a failed attempt gives its slots back by *releases*, with their wake-ups. A worker that was refused by a slot
//!   of that attempt sleeps on the slot, and no other release will wake it.

use clearway_machine::Machine;

use super::Slots;
use super::give_back::give_back;
use crate::lwlock::LatchMode;

pub(super) fn acquire<M: Machine>(slots: &Slots<M>) {
    // C3: in ascending order.
    for slot in slots {
        if !slot.try_grant(LatchMode::Exclusive) {
            slot.acquire_slow(LatchMode::Exclusive);
        }
    }
}

pub(super) fn try_acquire<M: Machine>(slots: &Slots<M>) -> bool {
    try_each(slots)
}

/// Tries each slot; at the first refusal gives back those taken (C4).
pub(super) fn try_each<M: Machine>(slots: &Slots<M>) -> bool {
    for (taken, slot) in slots.iter().enumerate() {
        if !slot.try_grant(LatchMode::Exclusive) {
            release(&slots[..taken]);
            return false;
        }
    }
    true
}

pub(super) fn release<M: Machine>(slots: &Slots<M>) {
    give_back(slots).make(slots);
}
