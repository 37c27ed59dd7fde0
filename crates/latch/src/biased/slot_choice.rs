//! The choice of a worker's slot among a latch's reader slots, and the number of slots in use.

use clearway_machine::{CpuCounts, Machine};

/// The choice of a reader's slot in a [`ReadBiasedLatch`](crate::ReadBiasedLatch) or an
/// [`AdaptiveLatch`](crate::AdaptiveLatch). Any choice is correct, since the guard remembers the slot. The choices
/// differ in the readers that share a cache line, and in the number of slots that a writer has to deal with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SlotChoice {
    /// The worker's number. Costs a thread-local read. Two workers that share a slot share it wherever they
    /// run. Numbers are given out from 0 up, so no two of up to K workers share a slot. The reader's thread
    /// claims one of the machine's worker slots. All K slots are in use.
    #[default]
    Worker,
    /// The CPU that the reader runs on. With at most K CPUs, readers share a line only if one of them was
    /// moved or preempted while it held the latch. Costs a load natively where glibc registers restartable sequences,
    /// and elsewhere a call of the kernel's vDSO. All K slots are in use.
    Cpu,
    /// The core that the reader runs on, which is all CPUs that share a level 2 cache: between those a line does not
    /// move, so they may share a slot. As many slots are in use as the machine has cores, at most K; with more cores
    /// than slots, neighbouring cores of a node share one. Costs what `Cpu` costs and a load. Where the machine does
    /// not know its cores it is `Cpu`.
    Core,
    /// The NUMA node that the reader runs on. The CPUs of a node share a slot, and as many slots are in use as there
    /// are nodes, at most K. Costs what `Core` costs.
    Node,
}

/// A choice on the machine at hand: slots in use, and the slot of a caller.
#[derive(Debug, Clone, Copy)]
pub(super) struct SlotMap {
    choice: SlotChoice,
    in_use: u16,
    /// `Core`: slots a core, in 1/65536, rounded up.
    slots_per_core: u32,
}

impl SlotMap {
    /// For a latch of `slots` slots. Asks the machine for its cores or nodes.
    pub(super) fn new<M: Machine>(choice: SlotChoice, slots: usize) -> Self {
        let counts = match choice {
            // Not asked, since a machine may have to read them from files.
            SlotChoice::Worker | SlotChoice::Cpu => CpuCounts::default(),
            SlotChoice::Core | SlotChoice::Node => M::cpu_counts(),
        };
        Self::on(counts, choice, slots)
    }

    /// As `new`, in a constant: by a choice that does not depend on the machine's cores or nodes.
    pub(super) const fn in_static(choice: SlotChoice, slots: usize) -> Self {
        assert!(
            matches!(choice, SlotChoice::Worker | SlotChoice::Cpu),
            "in a static the slot is chosen by worker or CPU: cores and nodes are not known to the compiler"
        );
        Self {
            choice,
            in_use: if slots < u16::MAX as usize {
                slots as u16
            } else {
                u16::MAX
            },
            slots_per_core: 0,
        }
    }

    fn on(counts: CpuCounts, choice: SlotChoice, slots: usize) -> Self {
        let slots = u16::try_from(slots).unwrap_or(u16::MAX);
        let at_most = |number: u32| u16::try_from(number).map_or(slots, |number| number.min(slots));
        let all = |choice| Self {
            choice,
            in_use: slots,
            slots_per_core: 0,
        };
        match (choice, counts) {
            (SlotChoice::Core, counts) if counts.cores == 0 => all(SlotChoice::Cpu),
            (SlotChoice::Core, counts) => {
                let in_use = at_most(counts.cores);
                Self {
                    choice,
                    in_use,
                    slots_per_core: (u32::from(in_use) << 16).div_ceil(counts.cores),
                }
            }
            (SlotChoice::Node, counts) if counts.nodes > 0 => Self {
                in_use: at_most(counts.nodes),
                ..all(choice)
            },
            (SlotChoice::Worker | SlotChoice::Cpu | SlotChoice::Node, _) => all(choice),
        }
    }

    /// Slots in use, from the first on: at least one.
    #[inline]
    pub(super) fn in_use(&self) -> usize {
        usize::from(self.in_use)
    }

    /// The caller's slot, one of those in use. `slots` as for `new`: a constant, so that there is no division.
    #[inline]
    pub(super) fn slot<M: Machine>(&self, slots: usize) -> usize {
        match self.choice {
            SlotChoice::Worker => M::known_worker().map_or(0, |worker| worker.0 as usize) % slots,
            SlotChoice::Cpu | SlotChoice::Core | SlotChoice::Node => self.slot_by_place::<M>(slots),
        }
    }

    /// Not inlined, so that readers that go by their worker's number do not pay for its registers.
    #[inline(never)]
    fn slot_by_place<M: Machine>(&self, slots: usize) -> usize {
        let here = M::cpu();
        match self.choice {
            SlotChoice::Core => self.slot_of_core(here.core),
            SlotChoice::Node => here.node as usize % self.in_use(),
            SlotChoice::Cpu | SlotChoice::Worker => here.cpu as usize % slots,
        }
    }

    /// In range whatever the machine says of the caller.
    #[inline]
    fn slot_of_core(&self, core: u32) -> usize {
        let slot = (u64::from(core) * u64::from(self.slots_per_core)) >> 16;
        (slot as usize).min(self.in_use() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(cores: u32, choice: SlotChoice, slots: usize) -> SlotMap {
        let counts = CpuCounts {
            cpus: 2 * cores,
            cores,
            nodes: 2,
        };
        SlotMap::on(counts, choice, slots)
    }

    // Mutation: as many slots in use as there are.
    #[test]
    fn cores_get_a_slot_each_as_long_as_there_are_slots() {
        for cores in 1..=64 {
            let map = map(cores, SlotChoice::Core, 64);
            assert_eq!(map.in_use(), cores as usize);
            for core in 0..cores {
                assert_eq!(map.slot_of_core(core), core as usize, "of {cores}");
            }
            // A core that was not there.
            assert!(map.slot_of_core(u32::MAX) < map.in_use());
        }
    }

    // Mutations: round `slots_per_core` down; let cores share by their number modulo the slots.
    #[test]
    fn neighbours_share_where_there_are_more_cores() {
        for cores in 17..=300 {
            let map = map(cores, SlotChoice::Core, 16);
            let slots: Vec<_> = (0..cores).map(|core| map.slot_of_core(core)).collect();
            assert!(slots.is_sorted(), "{slots:?}");
            for slot in 0..16 {
                let sharing = slots.iter().filter(|other| **other == slot).count();
                let fair = cores as usize / 16;
                assert!(
                    (fair..=fair + 1).contains(&sharing),
                    "{sharing} of {cores} at {slot}"
                );
            }
        }
    }

    #[test]
    fn slots_in_use_by_choice() {
        assert_eq!(map(20, SlotChoice::Worker, 16).in_use(), 16);
        assert_eq!(map(4, SlotChoice::Cpu, 16).in_use(), 16);
        assert_eq!(map(4, SlotChoice::Node, 16).in_use(), 2);
        for choice in [SlotChoice::Core, SlotChoice::Node] {
            assert_eq!(
                SlotMap::on(CpuCounts::default(), choice, 16).in_use(),
                16,
                "not known"
            );
        }
    }
}
