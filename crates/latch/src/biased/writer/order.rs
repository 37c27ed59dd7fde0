//! Variants `near-first` and `near-last`: an order of the slots that follows the topology.
//!
//! Under `one-by-one` the order must be the same for all writers, since a writer waits for a slot while it holds others:
//! with two orders two writers may each hold what the other one waits for. Behind the writers' latch of `announce` it is
//! free (A6 there), so a writer may begin with the slots of its own node, or with those of the others.
//!
//! The better one cannot be told from the costs. All lines must come in any order. The readers of a slot are refused
//! from its announcement until the last one, so the lines that take longest should come first: `near-last`. But those
//! of the own node are there soon, and `near-first` refuses their readers for the time of the others.
//!
//! It takes slots that follow the topology, too: [`SlotChoice::Core`](crate::SlotChoice::Core), where the slots of a
//! node are next to each other, or `Node`. A node is taken to have as many slots as any other.

use clearway_machine::{CpuCounts, CpuHint};

/// The first slot of the caller's node.
pub(super) fn near_first(slots: usize, here: CpuHint, counts: CpuCounts) -> usize {
    let nodes = counts.nodes.max(1) as usize;
    // The hint may be out of date, or say anything.
    let node = here.node as usize % nodes;
    (node * slots).div_ceil(nodes) % slots
}

/// The first slot of the node after the caller's, so that the caller's own slots are last.
pub(super) fn near_last(slots: usize, here: CpuHint, counts: CpuCounts) -> usize {
    let next = CpuHint {
        node: here.node.wrapping_add(1),
        ..here
    };
    near_first(slots, next, counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Mutation: let the own node's slots end where the next one's begin.
    #[test]
    fn each_node_begins_at_its_own_slots() {
        let counts = CpuCounts {
            cpus: 144,
            cores: 72,
            nodes: 4,
        };
        let at = |node| CpuHint {
            node,
            ..CpuHint::default()
        };
        let first: Vec<_> = (0..4).map(|node| near_first(16, at(node), counts)).collect();
        assert_eq!(first, [0, 4, 8, 12]);
        let last: Vec<_> = (0..4).map(|node| near_last(16, at(node), counts)).collect();
        assert_eq!(last, [4, 8, 12, 0]);
    }

    #[test]
    fn any_hint_is_in_range() {
        for node in [0, 1, 7, u32::MAX] {
            let here = CpuHint {
                node,
                ..CpuHint::default()
            };
            for nodes in [0, 1, 3, 200] {
                let counts = CpuCounts {
                    nodes,
                    ..CpuCounts::default()
                };
                for slots in [1, 2, 16, 64] {
                    assert!(near_first(slots, here, counts) < slots);
                    assert!(near_last(slots, here, counts) < slots);
                }
            }
        }
    }
}
