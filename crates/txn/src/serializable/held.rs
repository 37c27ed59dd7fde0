//! The marks of one transaction, as its session knows them: what is covered already, and when finer marks give way to a
//! coarser one (M3 of [`super`]).

use std::collections::BTreeMap;

use super::target::{Bits, Key, Target};

/// Versions on a page that a transaction marks one by one, of each kind.
pub(super) const ROWS_MAX: usize = 8;
/// Pages of a table in which it has marks, of each kind.
pub(super) const PAGES_MAX: usize = 64;
/// Keys and ranges of an index, of each kind.
pub(super) const KEYS_MAX: usize = 64;

/// The marks.
#[derive(Debug, Default)]
pub(super) struct HeldMarks {
    relations: BTreeMap<u32, HeldRelation>,
    indexes: BTreeMap<u32, HeldIndex>,
}

/// Those on a table.
#[derive(Debug, Default)]
pub(super) struct HeldRelation {
    pub(super) bits: Bits,
    pub(super) pages: BTreeMap<u32, HeldPage>,
}

/// Those on a page.
#[derive(Debug, Default)]
pub(super) struct HeldPage {
    pub(super) bits: Bits,
    rows: Vec<(u16, Bits)>,
}

/// Those on the keys of an index.
#[derive(Debug, Default)]
pub(super) struct HeldIndex {
    keys: BTreeMap<Key, Bits>,
    ranges: Vec<Range>,
    /// One range in the place of all keys and ranges: of what was read, and of what was written.
    read_hull: Option<(Key, Option<Key>)>,
    write_hull: Option<(Key, Option<Key>)>,
}

/// A marked range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) lower: Key,
    pub(super) upper: Option<Key>,
}

impl HeldPage {
    pub(super) fn has(&self, slot: u16, bits: Bits) -> bool {
        self.rows.iter().any(|(row, held)| *row == slot && held.has(bits))
    }

    /// True if another version with `bits` would be one too many.
    pub(super) fn is_full(&self, bits: Bits) -> bool {
        self.rows.iter().filter(|(_, held)| held.has(bits)).count() >= ROWS_MAX
    }

    pub(super) fn note(&mut self, slot: u16, bits: Bits) {
        match self.rows.iter_mut().find(|(row, _)| *row == slot) {
            Some((_, held)) => *held = held.and(bits),
            None => self.rows.push((slot, bits)),
        }
    }

    /// Takes `bits` away from its versions; those that had one of them.
    pub(super) fn take_rows(&mut self, bits: Bits) -> Vec<u16> {
        let mut taken = Vec::new();
        self.rows.retain_mut(|(slot, held)| {
            if held.has(bits) {
                taken.push(*slot);
                *held = held.without(bits);
            }
            !held.is_empty()
        });
        taken
    }

    fn holds(&self, bits: Bits) -> bool {
        self.bits.has(bits) || self.rows.iter().any(|(_, held)| held.has(bits))
    }
}

impl HeldRelation {
    /// True if marks with `bits` on another page would be too many.
    pub(super) fn is_full(&self, block: u32, bits: Bits) -> bool {
        // The number of pages is looked at first, since it is at hand.
        self.pages.len() >= PAGES_MAX
            && !self.pages.get(&block).is_some_and(|page| page.holds(bits))
            && self.pages.values().filter(|page| page.holds(bits)).count() >= PAGES_MAX
    }

    /// Takes `bits` away from its pages and their versions; the targets that had one of them.
    pub(super) fn take_parts(&mut self, rel: u32, bits: Bits) -> Vec<Target> {
        let mut taken = Vec::new();
        self.pages.retain(|block, page| {
            taken.extend(
                page.take_rows(bits)
                    .into_iter()
                    .map(|slot| Target::Row(rel, *block, slot)),
            );
            if page.bits.has(bits) {
                taken.push(Target::Page(rel, *block));
                page.bits = page.bits.without(bits);
            }
            page.holds(Bits::ALL)
        });
        taken
    }
}

impl HeldIndex {
    fn hull(&self, bits: Bits) -> &Option<(Key, Option<Key>)> {
        if bits.has(Bits::READ) {
            &self.read_hull
        } else {
            &self.write_hull
        }
    }

    pub(super) fn hull_range(&self, bits: Bits) -> Option<Range> {
        let (lower, upper) = self.hull(bits).clone()?;
        Some(Range { lower, upper })
    }

    pub(super) fn set_hull(&mut self, bits: Bits, range: Range) {
        let hull = Some((range.lower, range.upper));
        match bits.has(Bits::READ) {
            true => self.read_hull = hull,
            false => self.write_hull = hull,
        }
    }

    /// True if a key is marked with `bits`, by itself.
    pub(super) fn has_key(&self, key: &[u8], bits: Bits) -> bool {
        self.keys.get(key).is_some_and(|held| held.has(bits))
    }

    /// True if a range that was read lies in one that is marked.
    pub(super) fn covers(&self, lower: &[u8], upper: Option<&[u8]>) -> bool {
        let is_inside = |from: &[u8], to: Option<&[u8]>| {
            from <= lower && to.is_none_or(|to| upper.is_some_and(|upper| upper <= to))
        };
        let hull = self.read_hull.as_ref();
        hull.is_some_and(|(from, to)| is_inside(from, to.as_deref()))
            || self
                .ranges
                .iter()
                .any(|range| is_inside(&range.lower, range.upper.as_deref()))
    }

    /// True if another key or range with `bits` goes into the one that stands for all.
    pub(super) fn is_full(&self, bits: Bits) -> bool {
        if self.hull(bits).is_some() {
            return true;
        }
        let keys = self.keys.values().filter(|held| held.has(bits)).count();
        let ranges = if bits.has(Bits::READ) {
            self.ranges.len()
        } else {
            0
        };
        keys + ranges >= KEYS_MAX
    }

    pub(super) fn note_key(&mut self, key: Key, bits: Bits) {
        let held = self.keys.entry(key).or_default();
        *held = held.and(bits);
    }

    pub(super) fn note_range(&mut self, range: Range) {
        self.ranges.push(range);
    }

    /// Takes all keys and ranges with `bits` away.
    pub(super) fn take_all(&mut self, index: u32, bits: Bits) -> Vec<Target> {
        let mut taken = Vec::new();
        self.keys.retain(|key, held| {
            if held.has(bits) {
                taken.push(Target::Key(index, Key::clone(key)));
                *held = held.without(bits);
            }
            !held.is_empty()
        });
        if bits.has(Bits::READ) {
            let ranges = self.ranges.drain(..);
            taken.extend(ranges.map(|range| Target::Range(index, range.lower, range.upper)));
        }
        taken
    }

    /// The smallest range that has all keys and ranges with `bits`, and this one.
    pub(super) fn hull_with(&self, bits: Bits, range: Range) -> Range {
        let mut hull = range;
        let mut widen = |lower: &Key, upper: Option<Key>| {
            if *lower < hull.lower {
                hull.lower = Key::clone(lower);
            }
            let is_higher = match (&upper, &hull.upper) {
                (_, None) => false,
                (None, Some(_)) => true,
                (Some(upper), Some(known)) => upper > known,
            };
            if is_higher {
                hull.upper = upper;
            }
        };
        for (key, _) in self.keys.iter().filter(|(_, held)| held.has(bits)) {
            widen(key, Some(after(key)));
        }
        if bits.has(Bits::READ) {
            for range in &self.ranges {
                widen(&range.lower, range.upper.clone());
            }
        }
        if let Some((lower, upper)) = self.hull(bits) {
            widen(lower, upper.clone());
        }
        hull
    }
}

/// The first key behind this one.
pub(super) fn after(key: &[u8]) -> Key {
    let mut next = key.to_vec();
    next.push(0);
    next.into()
}

impl HeldMarks {
    pub(super) fn relation(&mut self, rel: u32) -> &mut HeldRelation {
        self.relations.entry(rel).or_default()
    }

    pub(super) fn index(&mut self, index: u32) -> &mut HeldIndex {
        self.indexes.entry(index).or_default()
    }

    /// All of their targets.
    pub(super) fn targets(&self) -> Vec<Target> {
        let mut targets = Vec::new();
        for (&rel, relation) in &self.relations {
            if !relation.bits.is_empty() {
                targets.push(Target::Relation(rel));
            }
            for (&block, page) in &relation.pages {
                if !page.bits.is_empty() {
                    targets.push(Target::Page(rel, block));
                }
                targets.extend(page.rows.iter().map(|(slot, _)| Target::Row(rel, block, *slot)));
            }
        }
        for (&number, index) in &self.indexes {
            targets.extend(index.keys.keys().map(|key| Target::Key(number, Key::clone(key))));
            let ranges = index.ranges.iter().cloned();
            let hulls = [Bits::READ, Bits::WRITE]
                .into_iter()
                .filter_map(|bits| index.hull_range(bits));
            targets.extend(
                ranges
                    .chain(hulls)
                    .map(|range| Target::Range(number, range.lower, range.upper)),
            );
        }
        targets
    }
}
