//! The serializable transactions and the conflicts between them: G1 to G7 of [`super`].
//!
//! Plain data: the caller has the latch over it. Times are those of one clock, which moves on at each commit that is let
//! through and at each that has been seen; [`NEVER`] stands for a time that has not come.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use clearway_machine::Machine;

use super::failure::SerializationFailure;
use super::held::HeldMarks;
use super::old_committed::OldCommitted;
use super::serial_id::{NEVER, SerialId};
use super::state::SharedState;
use super::target::Target;
use crate::{ProcId, Xid};

/// A transaction that runs, or that has committed while one runs that overlaps it.
#[derive(Debug)]
pub(super) struct Node<M: Machine> {
    pub(super) proc: ProcId,
    /// Invalid until it is let through by the check before its commit, if it has changed anything.
    pub(super) xid: Xid,
    /// It is declared READ ONLY, or it was let through without having written.
    is_read_only: bool,
    is_doomed: bool,
    /// Taken before its snapshot: it sees each transaction that had finished by then.
    pub(super) begin: u64,
    /// Taken behind its snapshot: it sees no transaction that is let through later.
    seen: u64,
    pub(super) prepared: u64,
    /// Taken when new snapshots see it.
    finished: u64,
    /// Transactions that have not seen what this one wrote.
    inward: Vec<SerialId>,
    /// Transactions of which this one has not seen what they wrote.
    pub(super) outward: Vec<SerialId>,
    /// The earliest time at which one was let through that has been taken out of `outward` (G6, G7).
    pub(super) earliest_out: u64,
    /// The latest finish of a summarised transaction that has not seen what this one wrote; 0: there is none (G7).
    pub(super) old_in: u64,
    /// Read-only transactions that wait to learn how this one ends (G5).
    watchers: Vec<SerialId>,
    /// Transactions that this read-only one waits for (G5).
    watched: BTreeSet<SerialId>,
    pub(super) state: Arc<SharedState<M>>,
    /// Its marks, once it has committed.
    pub(super) held: Option<HeldMarks>,
    /// Marks that others have made for it (M6).
    pub(super) extra: Vec<Target>,
}

impl<M: Machine> Node<M> {
    pub(super) fn is_prepared(&self) -> bool {
        self.prepared != NEVER
    }

    pub(super) fn is_finished(&self) -> bool {
        self.finished != NEVER
    }
}

/// Marks that nothing needs any more.
#[derive(Debug, Default)]
pub(super) struct Released {
    /// Of transactions, with the marks that others have made for them.
    pub(super) held: Vec<(SerialId, HeldMarks, Vec<Target>)>,
    /// Of summarised ones: those that finished at or before the time.
    pub(super) old: Vec<Target>,
    pub(super) horizon: u64,
}

/// The standing of a transaction whose mark was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It runs, or the one that asks began before it had finished; its xid, if it may have finished by then all the same.
    Overlaps(Option<Xid>),
    /// It is one of the old committed ones.
    Old,
    /// It does not matter.
    Gone,
}

/// The graph.
#[derive(Debug)]
pub(super) struct Graph<M: Machine> {
    clock: u64,
    next: u64,
    pub(super) nodes: BTreeMap<SerialId, Node<M>>,
    /// Those that have not finished. Their `begin` rises with their number.
    active: BTreeSet<SerialId>,
    /// Those that have finished, by the time.
    pub(super) retained: VecDeque<(u64, SerialId)>,
    pub(super) old: OldCommitted,
    pub(super) retained_max: usize,
}

impl<M: Machine> Graph<M> {
    pub(super) fn new(retained_max: usize) -> Self {
        Self {
            clock: 1,
            next: 1,
            nodes: BTreeMap::new(),
            active: BTreeSet::new(),
            retained: VecDeque::new(),
            old: OldCommitted::none(),
            retained_max,
        }
    }

    pub(super) fn node(&self, id: SerialId) -> Option<&Node<M>> {
        self.nodes.get(&id)
    }

    pub(super) fn own(&mut self, id: SerialId) -> &mut Node<M> {
        self.nodes.get_mut(&id).expect("a transaction that runs is there")
    }

    /// Transactions that run or are kept.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Registers a transaction, before its snapshot is taken (G1).
    pub(super) fn begin(&mut self, proc: ProcId, is_read_only: bool, state: Arc<SharedState<M>>) -> SerialId {
        let id = SerialId(self.next);
        self.next += 1;
        let node = Node {
            proc,
            xid: Xid::INVALID,
            is_read_only,
            is_doomed: false,
            begin: self.clock,
            seen: NEVER,
            prepared: NEVER,
            finished: NEVER,
            inward: Vec::new(),
            outward: Vec::new(),
            earliest_out: NEVER,
            old_in: 0,
            watchers: Vec::new(),
            watched: BTreeSet::new(),
            state,
            held: None,
            extra: Vec::new(),
        };
        self.nodes.insert(id, node);
        self.active.insert(id);
        id
    }

    /// The snapshot is there. A read-only transaction learns, now or later, if it is safe (G5).
    pub(super) fn snapshot_taken(&mut self, id: SerialId) {
        let seen = self.clock;
        let node = self.own(id);
        node.seen = seen;
        let (begin, is_read_only) = (node.begin, node.is_read_only);
        if !is_read_only {
            return;
        }
        // One of them may have been summarised since this one registered.
        if self.old.newest_finish > begin && self.old.earliest_out <= seen {
            self.own(id).state.set_unsafe();
            return;
        }
        let mut watched = BTreeSet::new();
        for (&other, node) in &self.nodes {
            if other == id || node.is_read_only || node.finished <= begin {
                continue;
            }
            if !node.is_prepared() {
                watched.insert(other);
            } else if self.has_out_before(node, seen) {
                self.own(id).state.set_unsafe();
                return;
            }
        }
        for other in &watched {
            self.own(*other).watchers.push(id);
        }
        let node = self.own(id);
        if watched.is_empty() {
            node.state.set_safe();
        }
        node.watched = watched;
    }

    /// True if the transaction has not seen what one wrote that was let through at or before `time`.
    fn has_out_before(&self, node: &Node<M>, time: u64) -> bool {
        node.earliest_out <= time
            || node
                .outward
                .iter()
                .filter_map(|out| self.nodes.get(out))
                .any(|out| out.prepared <= time)
    }

    /// G2: `out` may have been seen before both others of a structure, `t1` and `t2`, where it matters.
    pub(super) fn may_be_first(out: u64, t1: &Node<M>, t2_finished: u64) -> bool {
        out != NEVER && out < t1.finished && out < t2_finished && (!t1.is_read_only || out <= t1.seen)
    }

    /// The times at which transactions were let through of which `node` has not seen what they wrote.
    pub(super) fn out_times(&self, node: &Node<M>) -> impl Iterator<Item = u64> {
        let out = node.outward.iter().filter_map(|out| self.nodes.get(out));
        out.map(|out| out.prepared)
            .chain(std::iter::once(node.earliest_out))
    }

    /// True if `pivot` has a conflict from a transaction which, with one to a transaction that was let through at `out`,
    /// makes a dangerous structure.
    pub(super) fn is_pivot_to(&self, pivot: &Node<M>, out: u64) -> bool {
        let from = pivot.inward.iter().filter_map(|t1| self.nodes.get(t1));
        let from_known = from
            .filter(|t1| !t1.is_doomed)
            .any(|t1| Self::may_be_first(out, t1, pivot.finished));
        from_known || (out != NEVER && out < pivot.old_in && out < pivot.finished)
    }

    /// The standing of `other` for `me`, which has found a mark of it.
    pub(super) fn standing(&self, me: SerialId, other: SerialId) -> Standing {
        let begin = self.nodes[&me].begin;
        match self.nodes.get(&other) {
            Some(node) if node.finished <= begin || node.is_doomed => Standing::Gone,
            Some(node) if node.is_prepared() && node.xid.is_valid() => Standing::Overlaps(Some(node.xid)),
            Some(_) => Standing::Overlaps(None),
            // Summarised between the look at the marks and this one, or gone.
            None if other <= self.old.newest => Standing::Old,
            None => Standing::Gone,
        }
    }

    /// `reader` has not seen what `writer` wrote; one of them is `me`, which runs (G3).
    pub(super) fn conflict(
        &mut self,
        me: SerialId,
        reader: SerialId,
        writer: SerialId,
    ) -> Result<(), SerializationFailure> {
        let (Some(r), Some(w)) = (self.nodes.get(&reader), self.nodes.get(&writer)) else {
            return Ok(());
        };
        if r.outward.contains(&writer) || r.is_doomed || w.is_doomed {
            return self.check(me);
        }
        let writer_is_pivot = self
            .out_times(w)
            .any(|out| Self::may_be_first(out, r, w.finished));
        let reader_is_pivot = self.is_pivot_to(r, w.prepared);
        let (writer_xid, writer_is_prepared) = (w.xid, w.is_prepared());
        self.own(reader).outward.push(writer);
        self.own(writer).inward.push(reader);
        if reader_is_pivot {
            // The writer has been let through, so the reader is the one that asks.
            return self.give_up(me, SerializationFailure::ConflictOutToPivot(writer_xid));
        }
        if writer_is_pivot {
            match (writer == me, writer_is_prepared) {
                (true, _) => return self.give_up(me, SerializationFailure::PivotDuringWrite),
                (false, true) => {
                    return self.give_up(me, SerializationFailure::ConflictOutToPivot(writer_xid));
                }
                (false, false) => self.doom(writer),
            }
        }
        Ok(())
    }

    /// `me` is the one that gives up: it is doomed, so that it cannot go back to a savepoint and commit.
    pub(super) fn give_up(
        &mut self,
        me: SerialId,
        failure: SerializationFailure,
    ) -> Result<(), SerializationFailure> {
        self.doom(me);
        Err(failure)
    }

    fn doom(&mut self, id: SerialId) {
        let node = self.own(id);
        node.is_doomed = true;
        node.state.set_doomed();
    }

    fn check(&self, me: SerialId) -> Result<(), SerializationFailure> {
        match self.nodes[&me].is_doomed {
            true => Err(SerializationFailure::Doomed),
            false => Ok(()),
        }
    }

    /// G4: the check before a commit. `xid`: invalid if it has changed nothing.
    pub(super) fn prepare(&mut self, me: SerialId, xid: Xid) -> Result<(), SerializationFailure> {
        if self.nodes[&me].is_doomed {
            return Err(SerializationFailure::PivotDuringCommit);
        }
        let now = self.clock + 1;
        for t2 in self.nodes[&me].inward.clone() {
            let Some(pivot) = self.nodes.get(&t2) else {
                continue;
            };
            if pivot.is_doomed || !self.is_pivot_to(pivot, now) {
                continue;
            }
            if pivot.is_prepared() {
                return Err(SerializationFailure::PreparedPivot);
            }
            self.doom(t2);
        }
        self.clock = now;
        let node = self.own(me);
        node.prepared = now;
        node.xid = xid;
        node.is_read_only |= !xid.is_valid();
        self.tell_watchers(me);
        Ok(())
    }

    /// G5: `id` has been let through, or is rolled back.
    fn tell_watchers(&mut self, id: SerialId) {
        for watcher in std::mem::take(&mut self.own(id).watchers) {
            let Some(reader) = self.nodes.get(&watcher) else {
                continue;
            };
            let node = &self.nodes[&id];
            let is_dangerous = node.is_prepared() && self.has_out_before(node, reader.seen);
            let reader = self.own(watcher);
            reader.watched.remove(&id);
            if is_dangerous {
                reader.state.set_unsafe();
                reader.watched.clear();
            } else if reader.watched.is_empty() && !reader.state.is_unsafe() {
                reader.state.set_safe();
            }
        }
    }

    /// New snapshots see the commit of `id`, or need not, since it has written nothing.
    pub(super) fn finish(&mut self, id: SerialId, held: HeldMarks) -> Released {
        self.clock += 1;
        let now = self.clock;
        let node = self.own(id);
        node.finished = now;
        node.held = Some(held);
        node.watched.clear();
        self.active.remove(&id);
        self.retained.push_back((now, id));
        self.release()
    }

    /// `id` is rolled back, or reads on without marks since its snapshot is safe.
    pub(super) fn remove(&mut self, id: SerialId, held: HeldMarks) -> Released {
        self.tell_watchers(id);
        self.active.remove(&id);
        let mut released = self.release();
        if let Some(node) = self.nodes.remove(&id) {
            for other in &node.inward {
                if let Some(other) = self.nodes.get_mut(other) {
                    other.outward.retain(|out| *out != id);
                }
            }
            for other in &node.outward {
                if let Some(other) = self.nodes.get_mut(other) {
                    other.inward.retain(|from| *from != id);
                }
            }
            released.held.push((id, held, node.extra));
        }
        released
    }

    /// The time at or before which a transaction must have finished to overlap none that runs.
    fn horizon(&self) -> u64 {
        self.active
            .first()
            .map_or(NEVER, |oldest| self.nodes[oldest].begin)
    }

    /// G6: takes transactions out that overlap none that runs.
    fn release(&mut self) -> Released {
        let horizon = self.horizon();
        let mut released = Released {
            horizon,
            ..Released::default()
        };
        while let Some(&(finished, id)) = self.retained.front() {
            if finished > horizon {
                break;
            }
            self.retained.pop_front();
            let node = self.take_committed(id);
            released
                .held
                .push((id, node.held.unwrap_or_default(), node.extra));
        }
        while self
            .old
            .targets
            .front()
            .is_some_and(|(finished, _)| *finished <= horizon)
        {
            let (_, target) = self.old.targets.pop_front().expect("just seen");
            released.old.push(target);
        }
        if self.old.targets.is_empty() && self.old.under_way == 0 {
            self.old = OldCommitted {
                newest: self.old.newest,
                ..OldCommitted::none()
            };
        }
        released
    }

    /// Takes a committed transaction out, and leaves what G6 asks for with those that have not seen it.
    pub(super) fn take_committed(&mut self, id: SerialId) -> Node<M> {
        let node = self.nodes.remove(&id).expect("a committed transaction is there");
        for other in &node.inward {
            if let Some(other) = self.nodes.get_mut(other) {
                other.outward.retain(|out| *out != id);
                other.earliest_out = other.earliest_out.min(node.prepared);
            }
        }
        for other in &node.outward {
            if let Some(other) = self.nodes.get_mut(other) {
                other.inward.retain(|from| *from != id);
            }
        }
        node
    }

    /// A mark was made for `owner` (M6); `false` if it is gone, so that the mark has to go too.
    pub(super) fn note_extra(&mut self, owner: SerialId, target: Target) -> bool {
        match self.nodes.get_mut(&owner) {
            Some(node) => {
                node.extra.push(target);
                true
            }
            None => false,
        }
    }

    /// True if a transaction has a conflict with another.
    #[cfg(test)]
    pub(super) fn has_conflicts(&self, id: SerialId) -> bool {
        let node = &self.nodes[&id];
        !node.inward.is_empty() || !node.outward.is_empty() || node.earliest_out != NEVER || node.old_in != 0
    }

    /// The sessions of the transactions that the read-only transaction of `proc` waits for.
    pub(super) fn watched_by(&self, proc: ProcId) -> Vec<ProcId> {
        let mut readers = self.active.iter().map(|id| &self.nodes[id]);
        let reader = readers.find(|node| node.proc == proc && node.is_read_only);
        let watched = reader.into_iter().flat_map(|node| &node.watched);
        watched
            .filter_map(|id| self.nodes.get(id))
            .map(|node| node.proc)
            .collect()
    }
}
