//! The table of marks, in parts by a hash of what they are on: M1 to M4 of [`super`].
//!
//! | of | found by |
//! | --- | --- |
//! | tables, pages, versions | a hash of the target |
//! | keys | a hash of the index and one of the key: an index has [`KEY_SHARDS`] parts; in each a tree of the keys in order |
//! | ranges of keys | a hash of the index; a list |

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::ops::Bound;

use clearway_latch::{LatchClass, Latched, LwLockOptions};
use clearway_machine::{Machine, Padded, WaitEvent};
use smallvec::SmallVec;

use super::serial_id::SerialId;
use super::target::{Bits, Key, Target, is_within, overlap};
use crate::Xid;

static SERIAL_MARKS: LatchClass = LatchClass::new("SerialMarks", WaitEvent::SerializableMarks, 268);

/// Parts of the table.
const PARTS: usize = 64;
/// Parts over which the keys of an index are spread. One that marks a range looks into each.
const KEY_SHARDS: u64 = 8;
/// Places of a map that stay allocated when it is empty.
const CAPACITY_KEPT: usize = 1_024;

type Map<K, V> = HashMap<K, V, BuildHasherDefault<DefaultHasher>>;

/// A transaction's mark on a target.
#[derive(Debug, Clone, Copy)]
struct Mark {
    /// `None`: the old committed ones.
    owner: Option<SerialId>,
    bits: Bits,
    /// Of a mark that says that it has written.
    xid: Xid,
    /// Of the old committed ones: the newest finish among those that have made the mark.
    finished: u64,
}

/// Most targets have one mark.
type Marks = SmallVec<[Mark; 1]>;

#[derive(Debug)]
struct RangeMark {
    lower: Key,
    upper: Option<Key>,
    mark: Mark,
}

#[derive(Debug, Default)]
struct Part {
    objects: Map<Target, Marks>,
    keys: Map<u32, BTreeMap<Key, Marks>>,
    ranges: Map<u32, Vec<RangeMark>>,
}

/// A mark of another transaction that was looked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    /// `None`: the old committed ones.
    pub(super) owner: Option<SerialId>,
    pub(super) xid: Xid,
    pub(super) finished: u64,
}

/// A mark as it is listed.
#[derive(Debug, Clone)]
pub(super) struct ListedMark {
    pub(super) owner: Option<SerialId>,
    pub(super) target: Target,
}

/// The one that marks and looks, and what it looks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seeker {
    pub(super) me: SerialId,
    pub(super) xid: Xid,
    pub(super) wanted: Bits,
}

impl Seeker {
    pub(super) fn looking_for(self, wanted: Bits) -> Self {
        Self { wanted, ..self }
    }

    fn collect<'a>(&self, marks: impl IntoIterator<Item = &'a Mark>, found: &mut Vec<Found>) {
        let others = marks
            .into_iter()
            .filter(|mark| mark.owner != Some(self.me) && mark.bits.has(self.wanted));
        found.extend(others.map(|mark| Found {
            owner: mark.owner,
            xid: mark.xid,
            finished: mark.finished,
        }));
    }

    fn mark(&self, bits: Bits) -> Mark {
        Mark {
            owner: Some(self.me),
            bits,
            xid: self.xid,
            finished: 0,
        }
    }
}

/// Adds a mark to those of a target, or to the owner's that is there.
fn add(marks: &mut Marks, mark: Mark) {
    match marks.iter_mut().find(|other| other.owner == mark.owner) {
        Some(own) => {
            own.bits = own.bits.and(mark.bits);
            own.xid = own.xid.max(mark.xid);
            own.finished = own.finished.max(mark.finished);
        }
        None => marks.push(mark),
    }
}

fn take(marks: &mut Marks, owner: Option<SerialId>, bits: Bits) -> Option<Mark> {
    let at = marks.iter().position(|mark| mark.owner == owner)?;
    let taken = marks[at];
    marks[at].bits = taken.bits.without(bits);
    if marks[at].bits.is_empty() {
        marks.swap_remove(at);
    }
    Some(taken)
}

impl Part {
    /// The marks of a target that is no range; an empty list is taken out afterwards.
    fn change<R>(&mut self, target: &Target, change: impl FnOnce(&mut Marks) -> R) -> R {
        match target {
            Target::Key(index, key) => {
                let keys = self.keys.entry(*index).or_default();
                let marks = keys.entry(Key::clone(key)).or_default();
                let result = change(marks);
                if marks.is_empty() {
                    keys.remove(key);
                    if keys.is_empty() {
                        self.keys.remove(index);
                    }
                }
                result
            }
            target => {
                let marks = self.objects.entry(target.clone()).or_default();
                let result = change(marks);
                if marks.is_empty() {
                    self.objects.remove(target);
                    if self.objects.is_empty() && self.objects.capacity() > CAPACITY_KEPT {
                        self.objects = Map::default();
                    }
                }
                result
            }
        }
    }

    /// As [`change`](Self::change), for a range: its marks are those with the same ends.
    fn change_range(&mut self, index: u32, ends: (&Key, &Option<Key>), change: impl FnOnce(&mut Marks)) {
        let ranges = self.ranges.entry(index).or_default();
        let mut marks = Marks::new();
        ranges.retain(|range| {
            let is_same = range.lower == *ends.0 && range.upper == *ends.1;
            if is_same {
                marks.push(range.mark);
            }
            !is_same
        });
        change(&mut marks);
        ranges.extend(marks.into_iter().map(|mark| RangeMark {
            lower: Key::clone(ends.0),
            upper: ends.1.clone(),
            mark,
        }));
        if ranges.is_empty() {
            self.ranges.remove(&index);
        }
    }

    fn change_any(&mut self, target: &Target, change: impl FnOnce(&mut Marks)) {
        match target {
            Target::Range(index, lower, upper) => self.change_range(*index, (lower, upper), change),
            target => self.change(target, change),
        }
    }
}

/// The table.
#[derive(Debug)]
pub(super) struct MarkTable<M: Machine> {
    parts: Vec<Padded<Latched<Part, M>>>,
}

impl<M: Machine> MarkTable<M> {
    pub(super) fn new(lwlock: LwLockOptions) -> Self {
        let count = if M::EXPLORED { 2 } else { PARTS };
        let part = || Padded(Latched::new(&SERIAL_MARKS, lwlock, Part::default()));
        Self {
            parts: (0..count).map(|_| part()).collect(),
        }
    }

    fn part(&self, hash: u64) -> &Latched<Part, M> {
        // Not the lowest bits, which the map inside uses.
        &self.parts[(hash >> 32) as usize % self.parts.len()]
    }

    fn key_part(&self, index: u32, shard: u64) -> &Latched<Part, M> {
        &self.parts[(hash_of(&index) >> 32).wrapping_add(shard) as usize % self.parts.len()]
    }

    fn shards(&self) -> u64 {
        KEY_SHARDS.min(self.parts.len() as u64)
    }

    fn part_of(&self, target: &Target) -> &Latched<Part, M> {
        match target {
            Target::Key(index, key) => self.key_part(*index, hash_of(key) % self.shards()),
            Target::Range(index, ..) => self.part(hash_of(&(*index, "ranges"))),
            target => self.part(hash_of(target)),
        }
    }

    /// M1: marks a target, and looks for marks of others there, in one step; then looks where M2 and M4 say.
    pub(super) fn place(&self, seeker: Seeker, target: &Target, bits: Bits, found: &mut Vec<Found>) {
        {
            let mut part = self.part_of(target).exclusive();
            if let Target::Range(index, lower, upper) = target {
                collect_ranges(&part, seeker, *index, (lower, upper.as_deref()), found);
                part.change_range(*index, (lower, upper), |marks| add(marks, seeker.mark(bits)));
            } else {
                part.change(target, |marks| {
                    seeker.collect(marks.iter(), found);
                    add(marks, seeker.mark(bits));
                });
            }
        }
        self.look_beside(seeker, target, found);
    }

    /// Looks for marks of others on a target.
    pub(super) fn look(&self, seeker: Seeker, target: &Target, found: &mut Vec<Found>) {
        {
            let part = self.part_of(target).shared();
            let marks = match target {
                Target::Key(index, key) => part.keys.get(index).and_then(|keys| keys.get(key)),
                target => part.objects.get(target),
            };
            seeker.collect(marks.into_iter().flatten(), found);
        }
        self.look_beside(seeker, target, found);
    }

    /// M4: a key is looked for among the ranges, and a range among the keys.
    fn look_beside(&self, seeker: Seeker, target: &Target, found: &mut Vec<Found>) {
        match target {
            Target::Key(index, key) => {
                let part = self.part(hash_of(&(*index, "ranges"))).shared();
                for range in part.ranges.get(index).into_iter().flatten() {
                    if is_within(key, &range.lower, range.upper.as_deref()) {
                        seeker.collect([&range.mark], found);
                    }
                }
            }
            Target::Range(index, lower, upper) => {
                let upper = upper.as_deref();
                if upper.is_some_and(|upper| upper <= &**lower) {
                    return;
                }
                let ends = (
                    Bound::Included(&**lower),
                    upper.map_or(Bound::Unbounded, Bound::Excluded),
                );
                for shard in 0..self.shards() {
                    let part = self.key_part(*index, shard).shared();
                    let keys = part.keys.get(index).into_iter();
                    let marks = keys
                        .flat_map(|keys| keys.range::<[u8], _>(ends))
                        .flat_map(|(_, m)| m);
                    seeker.collect(marks, found);
                }
                // M7: a key's mark may have become one of a range since the ranges were looked at.
                let part = self.part(hash_of(&(*index, "ranges"))).shared();
                collect_ranges(&part, seeker, *index, (lower, upper), found);
            }
            _ => {}
        }
    }

    /// Marks a target for a transaction or for the old committed ones, without a look.
    pub(super) fn place_for(&self, owner: Option<SerialId>, finished: u64, target: &Target, bits: Bits) {
        let mark = Mark {
            owner,
            bits,
            xid: Xid::INVALID,
            finished,
        };
        self.part_of(target)
            .exclusive()
            .change_any(target, |marks| add(marks, mark));
    }

    /// Takes bits of a transaction's mark away.
    pub(super) fn remove(&self, owner: SerialId, target: &Target, bits: Bits) {
        self.part_of(target).exclusive().change_any(target, |marks| {
            take(marks, Some(owner), bits);
        });
    }

    /// Makes a transaction's mark one of the old committed ones, which finished at `finished` or before.
    pub(super) fn make_old(&self, owner: SerialId, target: &Target, finished: u64) {
        self.part_of(target).exclusive().change_any(target, |marks| {
            if let Some(mark) = take(marks, Some(owner), Bits::ALL) {
                // Without an xid: the mark may be that of several, and a snapshot may show some of them.
                let old = Mark {
                    owner: None,
                    finished,
                    xid: Xid::INVALID,
                    ..mark
                };
                add(marks, old);
            }
        });
    }

    /// Takes the mark of the old committed ones away, if all of them had finished by `horizon`.
    pub(super) fn expire_old(&self, target: &Target, horizon: u64) {
        self.part_of(target).exclusive().change_any(target, |marks| {
            marks.retain(|mark| mark.owner.is_some() || mark.finished > horizon);
        });
    }

    /// Gives a mark of the old committed ones up for a coarser one, which has these `bits` and this finish. `None`: it is
    /// gone, or is newer, and stays. Otherwise the bits that the coarser one has to have first.
    pub(super) fn give_up_old(&self, target: &Target, finished: u64, bits: Bits) -> Option<Bits> {
        let mut missing = None;
        self.part_of(target).exclusive().change_any(target, |marks| {
            let old = marks.iter().position(|mark| mark.owner.is_none());
            let Some(at) = old.filter(|at| marks[*at].finished <= finished) else {
                return;
            };
            if marks[at].bits.without(bits).is_empty() {
                marks.swap_remove(at);
            } else {
                missing = Some(marks[at].bits);
            }
        });
        missing
    }

    /// The transactions that have read anything of a table by rows, pages, or keys of its indexes, and the latest finish of
    /// those that are old.
    pub(super) fn readers_of(&self, relation: u32, indexes: &[u32]) -> BTreeSet<(Option<SerialId>, u64)> {
        let mut readers = BTreeSet::new();
        let mut note = |mark: &Mark| {
            if mark.bits.has(Bits::READ) {
                readers.insert((mark.owner, mark.finished));
            }
        };
        for part in &self.parts {
            let part = part.shared();
            for (target, marks) in &part.objects {
                match target {
                    Target::Page(rel, _) | Target::Row(rel, ..) if *rel == relation => {
                        marks.iter().for_each(&mut note);
                    }
                    _ => {}
                }
            }
            for index in indexes {
                let keys = part.keys.get(index).into_iter().flat_map(BTreeMap::values);
                keys.flatten().for_each(&mut note);
                let ranges = part.ranges.get(index).into_iter().flatten();
                ranges.for_each(|range| note(&range.mark));
            }
        }
        readers
    }

    /// All marks that say that something was read.
    pub(super) fn listed(&self) -> Vec<ListedMark> {
        let mut listed = Vec::new();
        for part in &self.parts {
            let part = part.shared();
            let mut note = |mark: &Mark, target: &dyn Fn() -> Target| {
                if mark.bits.has(Bits::READ) {
                    let (owner, target) = (mark.owner, target());
                    listed.push(ListedMark { owner, target });
                }
            };
            for (target, marks) in &part.objects {
                marks.iter().for_each(|mark| note(mark, &|| target.clone()));
            }
            for (index, keys) in &part.keys {
                for (key, marks) in keys {
                    let target = || Target::Key(*index, Key::clone(key));
                    marks.iter().for_each(|mark| note(mark, &target));
                }
            }
            for (index, ranges) in &part.ranges {
                for range in ranges {
                    let target = || Target::Range(*index, Key::clone(&range.lower), range.upper.clone());
                    note(&range.mark, &target);
                }
            }
        }
        listed
    }

    /// Targets that have marks.
    pub(super) fn len(&self) -> usize {
        let parts = self.parts.iter().map(|part| part.shared());
        parts
            .map(|part| {
                let keys: usize = part.keys.values().map(BTreeMap::len).sum();
                let ranges: usize = part.ranges.values().map(Vec::len).sum();
                part.objects.len() + keys + ranges
            })
            .sum()
    }
}

fn collect_ranges(
    part: &Part,
    seeker: Seeker,
    index: u32,
    ends: (&Key, Option<&[u8]>),
    found: &mut Vec<Found>,
) {
    for range in part.ranges.get(&index).into_iter().flatten() {
        if overlap((ends.0, ends.1), (&range.lower, range.upper.as_deref())) {
            seeker.collect([&range.mark], found);
        }
    }
}

fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
