//! Reads and writes of one serializable transaction: which marks they leave, and what becomes of those that they find.

use std::sync::Arc;

use clearway_machine::Machine;

use super::graph::Standing;
use super::held::{HeldMarks, Range};
use super::marks::{Found, Seeker};
use super::old_committed::OldFinish;
use super::serial_id::SerialId;
use super::state::SharedState;
use super::target::{Bits, Key, Target};
use super::{Serializable, SerializationFailure};
use crate::Xid;

/// A version of a row: table, page and place on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarkedRow {
    /// The table's number.
    pub relation: u32,
    /// The page.
    pub block: u32,
    /// The place.
    pub slot: u16,
}

/// A serializable transaction, from its registration to its end.
#[derive(Debug)]
pub struct SerialTransaction<M: Machine> {
    id: SerialId,
    state: Arc<SharedState<M>>,
    held: HeldMarks,
    /// Transactions with which a conflict has been entered already.
    known_out: Vec<SerialId>,
    known_in: Vec<SerialId>,
    found: Vec<Found>,
    /// Marks that it has made, those that have gone since included.
    made: usize,
}

impl<M: Machine> SerialTransaction<M> {
    pub(super) fn new(id: SerialId, state: Arc<SharedState<M>>) -> Self {
        Self {
            id,
            state,
            held: HeldMarks::default(),
            known_out: Vec::new(),
            known_in: Vec::new(),
            found: Vec::new(),
            made: 0,
        }
    }

    pub(super) fn id(&self) -> SerialId {
        self.id
    }

    pub(super) fn into_held(self) -> HeldMarks {
        self.held
    }

    /// An error if another transaction has found that this one has to give up.
    pub fn check(&self) -> Result<(), SerializationFailure> {
        match self.state.is_doomed() {
            true => Err(SerializationFailure::Doomed),
            false => Ok(()),
        }
    }

    /// True if its snapshot is safe: it may go on without marks, and be removed.
    pub fn is_safe(&self) -> bool {
        self.state.is_safe()
    }

    /// True if its snapshot will not be safe.
    pub fn is_unsafe(&self) -> bool {
        self.state.is_unsafe()
    }

    fn reader(&self) -> Seeker {
        Seeker {
            me: self.id,
            xid: Xid::INVALID,
            wanted: Bits::WRITE,
        }
    }

    fn writer(&self, xid: Xid) -> Seeker {
        Seeker {
            me: self.id,
            xid,
            wanted: Bits::READ,
        }
    }
}

/// True if the snapshot shows what a transaction did; asked of ones that have been let through, or have ended.
type Sees<'a> = &'a dyn Fn(Xid) -> bool;

impl<M: Machine> Serializable<M> {
    /// The transaction has read a version of a row.
    pub fn read_row(
        &self,
        own: &mut SerialTransaction<M>,
        row: MarkedRow,
        sees: Sees<'_>,
    ) -> Result<(), SerializationFailure> {
        let MarkedRow {
            relation,
            block,
            slot,
        } = row;
        let is_overfull = own.made >= self.options.marks_max;
        let seeker = own.reader();
        let held = own.held.relation(relation);
        if held.bits.has(Bits::READ) {
            return Ok(());
        }
        if is_overfull || held.is_full(block, Bits::READ) {
            return self.read_relation(own, relation, sees);
        }
        let page = held.pages.entry(block).or_default();
        if page.bits.has(Bits::READ) || page.has(slot, Bits::READ) {
            return Ok(());
        }
        let target = Target::Page(relation, block);
        own.made += 1;
        if page.is_full(Bits::READ) {
            page.bits = page.bits.and(Bits::READ);
            let finer = page.take_rows(Bits::READ);
            let seeker = seeker.looking_for(Bits::WRITE.and(Bits::PART));
            self.marks.place(seeker, &target, Bits::READ, &mut own.found);
            for slot in finer {
                self.marks
                    .remove(own.id, &Target::Row(relation, block, slot), Bits::READ);
            }
        } else {
            page.note(slot, Bits::READ);
            let row = Target::Row(relation, block, slot);
            self.marks.place(seeker, &row, Bits::READ, &mut own.found);
            self.marks.look(seeker, &target, &mut own.found);
        }
        self.marks
            .look(seeker, &Target::Relation(relation), &mut own.found);
        self.conflicts_out(own, sees)
    }

    /// The transaction reads all rows of a table.
    pub fn read_relation(
        &self,
        own: &mut SerialTransaction<M>,
        relation: u32,
        sees: Sees<'_>,
    ) -> Result<(), SerializationFailure> {
        let held = own.held.relation(relation);
        if held.bits.has(Bits::READ) {
            return Ok(());
        }
        held.bits = held.bits.and(Bits::READ);
        let finer = held.take_parts(relation, Bits::READ);
        let seeker = own.reader().looking_for(Bits::WRITE.and(Bits::PART));
        own.made += 1;
        let target = Target::Relation(relation);
        self.marks.place(seeker, &target, Bits::READ, &mut own.found);
        for target in &finer {
            self.marks.remove(own.id, target, Bits::READ);
        }
        self.conflicts_out(own, sees)
    }

    /// The transaction has looked for a key of an index, whether it found an entry or not.
    pub fn read_key(
        &self,
        own: &mut SerialTransaction<M>,
        index: u32,
        key: &[u8],
        sees: Sees<'_>,
    ) -> Result<(), SerializationFailure> {
        let is_overfull = own.made >= self.options.marks_max;
        let held = own.held.index(index);
        if held.has_key(key, Bits::READ) || held.covers(key, Some(&super::held::after(key))) {
            return Ok(());
        }
        if is_overfull || held.is_full(Bits::READ) {
            let range = Range {
                lower: key.into(),
                upper: Some(super::held::after(key)),
            };
            let seeker = own.reader();
            self.widen(own, seeker, index, Bits::READ, range);
        } else {
            let key = Key::from(key);
            held.note_key(Key::clone(&key), Bits::READ);
            let target = Target::Key(index, key);
            own.made += 1;
            self.marks
                .place(own.reader(), &target, Bits::READ, &mut own.found);
        }
        self.conflicts_out(own, sees)
    }

    /// The transaction looks for the keys of an index with `lower` ≤ key < `upper`; `None`: to the last.
    pub fn read_keys(
        &self,
        own: &mut SerialTransaction<M>,
        index: u32,
        (lower, upper): (&[u8], Option<&[u8]>),
        sees: Sees<'_>,
    ) -> Result<(), SerializationFailure> {
        let is_overfull = own.made >= self.options.marks_max;
        let seeker = own.reader();
        let held = own.held.index(index);
        if held.covers(lower, upper) {
            return Ok(());
        }
        let range = Range {
            lower: lower.into(),
            upper: upper.map(Key::from),
        };
        if is_overfull || held.is_full(Bits::READ) {
            self.widen(own, seeker, index, Bits::READ, range);
        } else {
            held.note_range(range.clone());
            own.made += 1;
            let target = Target::Range(index, range.lower, range.upper);
            self.marks.place(seeker, &target, Bits::READ, &mut own.found);
        }
        self.conflicts_out(own, sees)
    }

    /// M3 for keys: one range in the place of all.
    fn widen(&self, own: &mut SerialTransaction<M>, seeker: Seeker, index: u32, bits: Bits, range: Range) {
        let held = own.held.index(index);
        let before = held.hull_range(bits);
        let hull = held.hull_with(bits, range);
        if before.as_ref() == Some(&hull) {
            return;
        }
        held.set_hull(bits, hull.clone());
        let mut finer = held.take_all(index, bits);
        finer.extend(before.map(|range| Target::Range(index, range.lower, range.upper)));
        own.made += 1;
        let target = Target::Range(index, hull.lower, hull.upper);
        self.marks.place(seeker, &target, bits, &mut own.found);
        for target in finer.iter().filter(|finer| **finer != target) {
            self.marks.remove(own.id, target, bits);
        }
    }

    /// The transaction `xid` replaces or deletes a version of a row.
    pub fn write_row(
        &self,
        own: &mut SerialTransaction<M>,
        xid: Xid,
        row: MarkedRow,
        sees: Sees<'_>,
    ) -> Result<(), SerializationFailure> {
        let MarkedRow {
            relation,
            block,
            slot,
        } = row;
        self.mark_part_written(own, xid, relation);
        let seeker = own.writer(xid);
        let is_overfull = own.made >= self.options.marks_max;
        let (page_target, row_target) = (Target::Page(relation, block), Target::Row(relation, block, slot));
        let held = own.held.relation(relation);
        if held.bits.has(Bits::WRITE) {
            self.marks.look(seeker, &row_target, &mut own.found);
            self.marks.look(seeker, &page_target, &mut own.found);
            return self.look_at_table(own, seeker, relation, sees);
        }
        if is_overfull || held.is_full(block, Bits::WRITE.and(Bits::PART)) {
            held.bits = held.bits.and(Bits::WRITE);
            let finer = held.take_parts(relation, Bits::WRITE.and(Bits::PART));
            own.made += 1;
            self.marks
                .place(seeker, &Target::Relation(relation), Bits::WRITE, &mut own.found);
            for target in &finer {
                self.marks.remove(own.id, target, Bits::WRITE.and(Bits::PART));
            }
            self.marks.look(seeker, &row_target, &mut own.found);
            self.marks.look(seeker, &page_target, &mut own.found);
            return self.look_at_table(own, seeker, relation, sees);
        }
        let page = held.pages.entry(block).or_default();
        if page.has(slot, Bits::WRITE) {
            return self.conflicts_in(own, sees);
        }
        let is_first = !page.bits.has(Bits::PART.and(Bits::WRITE));
        let becomes_whole = !page.bits.has(Bits::WRITE) && page.is_full(Bits::WRITE);
        if is_first || becomes_whole {
            let bits = if becomes_whole { Bits::WRITE } else { Bits::PART };
            page.bits = page.bits.and(bits);
            let finer = if becomes_whole {
                page.take_rows(Bits::WRITE)
            } else {
                Vec::new()
            };
            own.made += 1;
            self.marks.place(seeker, &page_target, bits, &mut own.found);
            for slot in finer {
                self.marks
                    .remove(own.id, &Target::Row(relation, block, slot), Bits::WRITE);
            }
        }
        if page.bits.has(Bits::WRITE) {
            self.marks.look(seeker, &row_target, &mut own.found);
        } else {
            page.note(slot, Bits::WRITE);
            own.made += 1;
            self.marks.place(seeker, &row_target, Bits::WRITE, &mut own.found);
        }
        self.look_at_table(own, seeker, relation, sees)
    }

    /// The transaction `xid` adds rows to a table (M5).
    pub fn add_rows(
        &self,
        own: &mut SerialTransaction<M>,
        xid: Xid,
        relation: u32,
        sees: Sees<'_>,
    ) -> Result<(), SerializationFailure> {
        self.mark_part_written(own, xid, relation);
        self.look_at_table(own, own.writer(xid), relation, sees)
    }

    /// The end of each write (M7): marks that others have made coarser since the first one are on the table.
    fn look_at_table(
        &self,
        own: &mut SerialTransaction<M>,
        seeker: Seeker,
        relation: u32,
        sees: Sees<'_>,
    ) -> Result<(), SerializationFailure> {
        self.marks
            .look(seeker, &Target::Relation(relation), &mut own.found);
        self.conflicts_in(own, sees)
    }

    fn mark_part_written(&self, own: &mut SerialTransaction<M>, xid: Xid, relation: u32) {
        let seeker = own.writer(xid);
        let held = own.held.relation(relation);
        if !held.bits.has(Bits::PART.and(Bits::WRITE)) {
            held.bits = held.bits.and(Bits::PART);
            own.made += 1;
            self.marks
                .place(seeker, &Target::Relation(relation), Bits::PART, &mut own.found);
        }
    }

    /// The transaction `xid` removes all rows of a table, whose readers' marks are coarse (M6).
    pub fn write_relation(
        &self,
        own: &mut SerialTransaction<M>,
        xid: Xid,
        relation: u32,
        sees: Sees<'_>,
    ) -> Result<(), SerializationFailure> {
        let seeker = own.writer(xid);
        let held = own.held.relation(relation);
        held.bits = held.bits.and(Bits::WRITE);
        own.made += 1;
        self.marks
            .place(seeker, &Target::Relation(relation), Bits::WRITE, &mut own.found);
        self.conflicts_in(own, sees)
    }

    /// The transaction `xid` enters a key into an index.
    pub fn write_key(
        &self,
        own: &mut SerialTransaction<M>,
        xid: Xid,
        index: u32,
        key: &[u8],
        sees: Sees<'_>,
    ) -> Result<(), SerializationFailure> {
        let is_overfull = own.made >= self.options.marks_max;
        let seeker = own.writer(xid);
        let held = own.held.index(index);
        if held.has_key(key, Bits::WRITE) {
            return self.conflicts_in(own, sees);
        }
        let key = Key::from(key);
        let target = Target::Key(index, Key::clone(&key));
        if is_overfull || held.is_full(Bits::WRITE) {
            let range = Range {
                upper: Some(super::held::after(&key)),
                lower: key,
            };
            self.widen(own, seeker, index, Bits::WRITE, range);
            self.marks.look(seeker, &target, &mut own.found);
        } else {
            held.note_key(key, Bits::WRITE);
            own.made += 1;
            self.marks.place(seeker, &target, Bits::WRITE, &mut own.found);
        }
        self.conflicts_in(own, sees)
    }

    /// Enters the conflicts with those whose writes were found.
    fn conflicts_out(
        &self,
        own: &mut SerialTransaction<M>,
        sees: Sees<'_>,
    ) -> Result<(), SerializationFailure> {
        own.check()?;
        while let Some(found) = own.found.pop() {
            let is_known = found.owner.is_some_and(|owner| own.known_out.contains(&owner));
            if is_known || found.xid.is_valid() && sees(found.xid) {
                continue;
            }
            let mut graph = self.graph.exclusive();
            let me = own.id;
            let standing = match found.owner {
                Some(owner) => graph.standing(me, owner),
                None => Standing::Old,
            };
            match (standing, found.owner) {
                (Standing::Gone, _) => {}
                (Standing::Overlaps(_), Some(owner)) => {
                    graph.conflict(me, me, owner)?;
                    own.known_out.push(owner);
                }
                _ => {
                    let finish = graph.finish_of_old(found);
                    graph.conflict_out_to_old(me, finish)?;
                }
            }
        }
        Ok(())
    }

    /// Enters the conflicts with those whose reads were found.
    fn conflicts_in(
        &self,
        own: &mut SerialTransaction<M>,
        sees: Sees<'_>,
    ) -> Result<(), SerializationFailure> {
        own.check()?;
        while let Some(found) = own.found.pop() {
            if found.owner.is_some_and(|owner| own.known_in.contains(&owner)) {
                continue;
            }
            let me = own.id;
            let mut graph = self.graph.exclusive();
            let mut standing = match found.owner {
                Some(owner) => graph.standing(me, owner),
                None => Standing::Old,
            };
            if let Standing::Overlaps(Some(xid)) = standing {
                // It has been let through, and may have been seen before this one took its snapshot.
                drop(graph);
                let is_over = sees(xid);
                graph = self.graph.exclusive();
                standing = match (is_over, found.owner) {
                    (true, _) => Standing::Gone,
                    (false, Some(owner)) => graph.standing(me, owner),
                    (false, None) => standing,
                };
            }
            match (standing, found.owner) {
                (Standing::Gone, _) => {}
                (Standing::Overlaps(_), Some(owner)) => {
                    graph.conflict(me, owner, me)?;
                    own.known_in.push(owner);
                }
                _ => {
                    let finish = graph.finish_of_old(found);
                    graph.conflict_in_from_old(me, finish)?;
                }
            }
        }
        Ok(())
    }
}

impl<M: Machine> super::graph::Graph<M> {
    /// The time by which an old committed transaction had finished: that of its mark, or, if it was summarised since the
    /// mark was found, the newest of all.
    fn finish_of_old(&self, found: Found) -> OldFinish {
        match found.owner {
            None => OldFinish(found.finished),
            Some(_) => self.old_finish(),
        }
    }
}
