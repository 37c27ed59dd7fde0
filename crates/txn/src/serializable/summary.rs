//! Committed transactions that are kept no more one by one: G7 of [`super`].

use clearway_machine::Machine;

use super::failure::SerializationFailure;
use super::graph::Graph;
use super::held::HeldMarks;
use super::old_committed::OldFinish;
use super::serial_id::{NEVER, SerialId};
use super::target::Target;

/// A transaction whose marks are to be made those of the old committed ones.
#[derive(Debug)]
pub(super) struct Summarised {
    pub(super) id: SerialId,
    pub(super) finished: u64,
    pub(super) held: HeldMarks,
    pub(super) extra: Vec<Target>,
}

impl<M: Machine> Graph<M> {
    /// `me` has not seen what a summarised transaction wrote (G7).
    pub(super) fn conflict_out_to_old(
        &mut self,
        me: SerialId,
        old: OldFinish,
    ) -> Result<(), SerializationFailure> {
        let node = &self.nodes[&me];
        if old.0 <= node.begin {
            return Ok(());
        }
        let out = self.old.earliest_prepared;
        if Self::may_be_first(self.old.earliest_out, node, old.0) {
            return self.give_up(me, SerializationFailure::ConflictOutToOldPivot);
        }
        if self.is_pivot_to(node, out) {
            return self.give_up(me, SerializationFailure::PivotToOld);
        }
        let node = self.own(me);
        node.earliest_out = node.earliest_out.min(out);
        Ok(())
    }

    /// A summarised transaction has not seen what `me` wrote (G7).
    pub(super) fn conflict_in_from_old(
        &mut self,
        me: SerialId,
        old: OldFinish,
    ) -> Result<(), SerializationFailure> {
        let node = &self.nodes[&me];
        if old.0 <= node.begin {
            return Ok(());
        }
        let is_pivot = self.out_times(node).any(|out| out < old.0);
        let node = self.own(me);
        node.old_in = node.old_in.max(old.0);
        match is_pivot {
            true => self.give_up(me, SerializationFailure::PivotFromOld),
            false => Ok(()),
        }
    }

    /// The time of the newest finish of a summarised transaction.
    pub(super) fn old_finish(&self) -> OldFinish {
        OldFinish(self.old.newest_finish)
    }

    /// As [`old_finish`](Self::old_finish), if `id`, which is not in the graph, may be one of them.
    pub(super) fn finish_if_old(&self, id: SerialId) -> Option<u64> {
        (id <= self.old.newest && self.old.newest_finish > 0).then_some(self.old.newest_finish)
    }

    /// The first step of G7, if there are more committed transactions than may be kept.
    pub(super) fn begin_summary(&mut self) -> Option<Summarised> {
        if self.retained.len() <= self.retained_max {
            return None;
        }
        let (finished, id) = self.retained.pop_front()?;
        let (earliest_out, prepared) = {
            let node = &self.nodes[&id];
            // One that was let through later is not the first of a structure.
            let out = self.out_times(node).filter(|out| *out < finished).min();
            (out.unwrap_or(NEVER), node.prepared)
        };
        let old = &mut self.old;
        old.newest_finish = old.newest_finish.max(finished);
        old.earliest_prepared = old.earliest_prepared.min(prepared);
        old.earliest_out = old.earliest_out.min(earliest_out);
        old.under_way += 1;
        let node = self.own(id);
        Some(Summarised {
            id,
            finished,
            held: node.held.take().unwrap_or_default(),
            extra: std::mem::take(&mut node.extra),
        })
    }

    /// The last step of G7: the marks are those of the old committed ones. Marks that others have made for it meanwhile
    /// are returned.
    pub(super) fn end_summary(&mut self, id: SerialId, finished: u64, targets: Vec<Target>) -> Vec<Target> {
        let node = self.take_committed(id);
        for other in &node.outward {
            if let Some(other) = self.nodes.get_mut(other) {
                other.old_in = other.old_in.max(finished);
            }
        }
        self.old.newest = self.old.newest.max(id);
        self.old.under_way -= 1;
        let all = targets.into_iter().chain(node.extra.iter().cloned());
        self.old.targets.extend(all.map(|target| (finished, target)));
        node.extra
    }

    /// Half of the marks of the old committed ones, if there are more than `max`, and the newest finish.
    pub(super) fn begin_coarsening(&mut self, max: usize) -> Option<(Vec<Target>, u64)> {
        if self.old.targets.len() <= max {
            return None;
        }
        self.old.under_way += 1;
        let half = self.old.targets.drain(..max.div_ceil(2));
        let targets = half.map(|(_, target)| target).collect();
        Some((targets, self.old.newest_finish))
    }

    /// The coarser marks in the place of those.
    pub(super) fn end_coarsening(&mut self, targets: Vec<Target>, finished: u64) {
        self.old.under_way -= 1;
        let targets = targets.into_iter().map(|target| (finished, target));
        self.old.targets.extend(targets);
    }

    /// A mark was made for the old committed ones, the newest of which finished at this time (M6).
    pub(super) fn note_old(&mut self, finished: u64, target: Target) {
        self.old.targets.push_back((finished, target));
    }
}
