//! Which of a latch's reader slots a worker uses.

use clearway_machine::Machine;

/// Which of the slots of a [`ReadBiasedLatch`](crate::ReadBiasedLatch) or an
/// [`AdaptiveLatch`](crate::AdaptiveLatch) a reader uses. Any choice is correct, since the guard remembers
/// the slot. The choices differ in which readers share a cache line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SlotChoice {
    /// The worker's number. Costs a thread-local read. Two workers that share a slot share it wherever they
    /// run. Numbers are given out from 0 up, so no two of up to K workers share a slot. The reader's thread
    /// claims one of the machine's worker slots.
    #[default]
    Worker,
    /// The CPU that the reader runs on. With at most K CPUs, readers share a line only if one of them was
    /// moved or preempted while it held the latch. Costs a call of the kernel's vDSO natively.
    Cpu,
    /// The NUMA node that the reader runs on. The CPUs of a node share a slot, and a writer has few slots to
    /// read. Costs what `Cpu` costs. Where the machine reports one node for all CPUs, there is only one slot.
    Node,
}

impl SlotChoice {
    /// The caller's slot among `slots`.
    #[inline]
    pub(crate) fn slot<M: Machine>(self, slots: usize) -> usize {
        let number = match self {
            SlotChoice::Worker => M::worker().0,
            SlotChoice::Cpu => M::cpu().cpu,
            SlotChoice::Node => M::cpu().node,
        };
        number as usize % slots
    }
}
