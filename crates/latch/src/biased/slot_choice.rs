//! Which of a latch's reader slots a worker uses.

use clearway_machine::Machine;

/// By what a reader picks one of the slots of a [`ReadBiasedLatch`](crate::ReadBiasedLatch) or an
/// [`AdaptiveLatch`](crate::AdaptiveLatch). Any choice is correct, since the guard remembers the slot; they differ in who
/// meets whom on a cache line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SlotChoice {
    /// The worker's number. Costs a thread-local read; two workers that share a slot go on sharing it, wherever they run.
    /// Numbers are given out from 0 up, so that no two of up to K workers share one. The reader's thread takes one of the
    /// machine's worker slots.
    #[default]
    Worker,
    /// The CPU that the reader runs on: with at most K CPUs, readers share a line only if one of them was moved or was
    /// preempted inside. Costs a call of the kernel's vDSO natively.
    Cpu,
    /// The NUMA node that the reader runs on: few slots for a writer to look at, shared by the CPUs of a node. Costs what
    /// `Cpu` costs. Where the machine reports one node for all, there is only one slot.
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
