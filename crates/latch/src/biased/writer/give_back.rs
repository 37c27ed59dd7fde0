//! Giving slots back.
//!
//! No wake-up is made while a slot is held that is to be given back. A wake-up takes a microsecond or two. If the
//! writer woke the sleepers of each slot before it gave back the next, the later slots would be held for as long as all
//! those wake-ups take, more workers would be refused and sleep there, and the next writer would have more to wake: the
//! latch does not get out of that state while readers keep coming (`docs/mechanisms/read-biased.md`). That the wake
//! check comes late loses no wake-up (`LwLock::wake_after_exclusive`).

use clearway_machine::Machine;

use super::Slots;

/// Slots for which a wake-up is owed, a bit each.
#[must_use = "workers may sleep for ever"]
pub(super) struct OwedWakeups(u64);

/// The most slots of a latch: a bit each in [`OwedWakeups`].
pub(in crate::biased) const SLOTS_MAX: usize = u64::BITS as usize;

/// Gives back `slots`, which the caller holds exclusively, and wakes no worker.
pub(super) fn give_back<M: Machine>(slots: &Slots<M>) -> OwedWakeups {
    debug_assert!(slots.len() <= SLOTS_MAX);
    let mut owed = 0;
    for (number, slot) in slots.iter().enumerate() {
        owed |= u64::from(slot.give_exclusive_back()) << number;
    }
    OwedWakeups(owed)
}

impl OwedWakeups {
    /// Makes the wake-ups owed for `slots`, the same as were given back.
    pub(super) fn make<M: Machine>(self, slots: &Slots<M>) {
        let Self(mut owed) = self;
        while owed != 0 {
            slots[owed.trailing_zeros() as usize].wake_after_exclusive();
            owed &= owed - 1;
        }
    }
}
