//! The layout of a tree page.
//!
//! ```text
//! | page header | slots, 2 bytes each, in key order → | free | ← entries | right link u32 | level u16 | flags u16 |
//!
//! entry: key length u16 | tid block u32 | tid slot u16 | child u32 | key
//! ```
//!
//! With the flag HAS_HIGH, slot 0 is the high key. On an inner page the first entry (after the high key) has
//! an empty key and stands for everything below the second.

use std::cmp::Ordering;
use std::ops::Range;

use clearway_machine::Machine;

use crate::buffer::PageExclusive;
use crate::change::{AtomicChange, ChangeLog};
use crate::heap::Tid;
use crate::page::{self, LOWER, PAGE_HEADER, PAGE_SIZE, PageKind, array_at, chunk_at, get_u16, get_u32};

/// Bytes of the trailer.
const SPECIAL: usize = 8;
pub(super) const RIGHT: usize = PAGE_SIZE - SPECIAL;
pub(super) const LEVEL: usize = RIGHT + 4;
pub(super) const FLAGS: usize = RIGHT + 6;
pub(super) const HAS_HIGH: u16 = 1;
/// Bytes of an entry before its key.
pub(super) const ENTRY: usize = 12;
/// Bytes for entries and slots.
pub(crate) const CAPACITY: usize = PAGE_SIZE - PAGE_HEADER - SPECIAL;

/// Pages with fewer entries are searched without a guess.
const INTERPOLATED_MIN: usize = 48;
/// Distances from the guess at which a search looks, from the nearest to the farthest.
const REACHES: [usize; 2] = [1, 6];

/// The first eight bytes of a key as a number, zeros for what is not there. Keys with different heads are in
/// the order of their heads.
#[inline]
pub(super) fn head_of(key: &[u8]) -> u64 {
    match key.first_chunk() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        // The shortest key of an integer has five bytes. A copy of so few, their number known at run time only, is a
        // call of `memcpy`.
        None => key
            .iter()
            .rev()
            .fold(0, |head, &byte| head >> 8 | u64::from(byte) << 56),
    }
}

/// Zeros behind the first `length` bytes of a head.
#[inline]
pub(super) fn cut(head: u64, length: u16) -> u64 {
    let behind = u64::MAX.checked_shr(8 * u32::from(length)).unwrap_or(0);
    head & !behind
}

/// The first index in `range` that is not `below`, given the head that is looked for and those that are there.
///
/// A page that is not in the cache costs a miss or two for each step of a binary search, one after the other.
/// So a full page is first narrowed to a few neighbours, by where the key would be if keys were spread
/// evenly: to one where they are, and it costs three comparisons where they are not. It ends, whatever the closures
/// return.
#[inline]
pub(super) fn partition(
    range: Range<usize>,
    head: u64,
    head_at: impl Fn(usize) -> u64,
    below: impl Fn(usize) -> bool,
) -> usize {
    let (mut low, mut high) = (range.start, range.end);
    if high >= low + INTERPOLATED_MIN {
        let (first, last) = (head_at(low), head_at(high - 1));
        if first < head && head < last {
            let share = (head - first) as f64 / (last - first) as f64;
            let guess = low + (share * (high - low) as f64) as usize;
            // Rounding may make it the end of the range.
            let guess = guess.min(high - 1);
            let is_right = below(guess);
            if is_right {
                low = guess + 1;
            } else {
                high = guess;
            }
            for reach in REACHES {
                let probe = if is_right {
                    guess + reach
                } else {
                    guess.wrapping_sub(reach)
                };
                if !(low..high).contains(&probe) {
                    break;
                }
                let is_below = below(probe);
                if is_below {
                    low = probe + 1;
                } else {
                    high = probe;
                }
                // The place is between this look and the one before.
                if is_below != is_right {
                    break;
                }
            }
        }
    }
    while low < high {
        let middle = (low + high) / 2;
        if below(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// The key and the tid, by which entries are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bound<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) tid: Tid,
}

/// An entry that is on no page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: Box<[u8]>,
    pub(crate) tid: Tid,
    pub(crate) child: u32,
}

impl Entry {
    pub(crate) fn bound(&self) -> Bound<'_> {
        Bound {
            key: &self.key,
            tid: self.tid,
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.clear();
        append_entry(self.bound(), self.child, out);
    }

    /// Bytes it takes on a page, its slot included.
    pub(crate) fn size(&self) -> usize {
        entry_size(self.key.len())
    }
}

/// An entry to insert.
#[derive(Debug, Clone, Copy)]
pub struct NewEntry<'k> {
    /// Its key.
    pub key: &'k [u8],
    /// The row that it leads to.
    pub tid: Tid,
    /// True if it is inserted only if no row has the key.
    pub unique: bool,
}

impl NewEntry<'_> {
    pub(super) fn bound(&self) -> Bound<'_> {
        Bound {
            key: self.key,
            tid: self.tid,
        }
    }

    pub(super) fn size(&self) -> usize {
        entry_size(self.key.len())
    }
}

/// The bytes of an entry, behind what `out` holds.
fn append_entry(bound: Bound<'_>, child: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&(bound.key.len() as u16).to_le_bytes());
    out.extend_from_slice(&bound.tid.block.to_le_bytes());
    out.extend_from_slice(&bound.tid.slot.to_le_bytes());
    out.extend_from_slice(&child.to_le_bytes());
    out.extend_from_slice(bound.key);
}

/// Bytes an entry takes on a page, its slot included.
pub(crate) const fn entry_size(key: usize) -> usize {
    ENTRY + key + 2
}

/// A page, to read.
#[derive(Clone, Copy)]
pub(crate) struct Node<'p>(pub(crate) &'p [u8; PAGE_SIZE]);

impl<'p> Node<'p> {
    #[inline]
    fn slots(&self) -> usize {
        (page::lower(self.0).max(PAGE_HEADER) - PAGE_HEADER) / 2
    }

    #[inline]
    fn has_high(&self) -> bool {
        get_u16(self.0, FLAGS) & HAS_HIGH != 0
    }

    /// Slots before the first entry.
    #[inline]
    fn first(&self) -> usize {
        usize::from(self.has_high())
    }

    /// Number of entries, without the high key.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.slots() - self.first()
    }

    /// 0 for a leaf.
    #[inline]
    pub(crate) fn level(&self) -> u16 {
        get_u16(self.0, LEVEL)
    }

    /// The right neighbour.
    pub(crate) fn right(&self) -> Option<u32> {
        Some(get_u32(self.0, RIGHT)).filter(|&block| block != 0)
    }

    #[inline]
    fn offset(&self, slot: usize) -> usize {
        usize::from(get_u16(self.0, PAGE_HEADER + slot * 2))
    }

    fn bound_at(&self, slot: usize) -> Bound<'p> {
        let at = self.offset(slot);
        let entry: &[u8; ENTRY] = chunk_at(self.0, at);
        let tid = Tid {
            block: get_u32(entry, 2),
            slot: get_u16(entry, 6),
        };
        let length = usize::from(get_u16(entry, 0));
        Bound {
            key: &self.0[at + ENTRY..][..length],
            tid,
        }
    }

    /// The high key, which all entries are below; `None`: there is no right neighbour.
    pub(crate) fn high(&self) -> Option<Bound<'p>> {
        self.has_high().then(|| self.bound_at(0))
    }

    /// The key and tid of entry `index`.
    pub(crate) fn bound(&self, index: usize) -> Bound<'p> {
        self.bound_at(self.first() + index)
    }

    /// The child of entry `index` of an inner page.
    pub(crate) fn child(&self, index: usize) -> u32 {
        get_u32(self.0, self.offset(self.first() + index) + 8)
    }

    pub(crate) fn entry(&self, index: usize) -> Entry {
        let bound = self.bound(index);
        Entry {
            key: bound.key.into(),
            tid: bound.tid,
            child: self.child(index),
        }
    }

    /// The slots of the entries, without the high key's.
    #[inline]
    fn entry_slots(&self) -> &'p [[u8; 2]] {
        let end = page::lower(self.0).max(PAGE_HEADER);
        &self.0[PAGE_HEADER..end].as_chunks().0[self.first()..]
    }

    /// The head of the key of the entry that `slot` leads to.
    #[inline]
    fn head(&self, slot: [u8; 2]) -> u64 {
        // Eight bytes can be read behind any key, however short: the trailer follows the last one.
        let entry: &[u8; ENTRY + 8] = chunk_at(self.0, usize::from(u16::from_le_bytes(slot)));
        cut(u64::from_be_bytes(array_at(entry, ENTRY)), get_u16(entry, 0))
    }

    /// The index of the first entry from `low` on that is not `below` the bound.
    ///
    /// A search looks at some ten entries of a page. So what is the same for all of them is found once (where the slots
    /// are, and how many), and what few of them need is a function of its own (the rest of a key whose head is equal).
    #[inline]
    fn partition(&self, low: usize, bound: Bound<'_>, below: impl Fn(Ordering) -> bool) -> usize {
        let slots = self.entry_slots();
        let head = head_of(bound.key);
        let head_at = |index: usize| self.head(slots[index]);
        let compare = |index| match head_at(index).cmp(&head) {
            Ordering::Equal => self.compare_whole(index, &bound),
            decided => decided,
        };
        partition(low..slots.len(), head, head_at, |index| below(compare(index)))
    }

    /// Entry `index` against `bound`.
    #[inline(never)]
    fn compare_whole(&self, index: usize, bound: &Bound<'_>) -> Ordering {
        self.bound(index).cmp(bound)
    }

    /// The index of the first entry that is not below `bound`.
    #[inline]
    pub(crate) fn lower_bound(&self, bound: Bound<'_>) -> usize {
        self.partition(0, bound, Ordering::is_lt)
    }

    /// Of an inner page: the index of the entry whose child covers `bound`.
    #[inline]
    pub(crate) fn covering(&self, bound: Bound<'_>) -> usize {
        self.partition(1, bound, Ordering::is_le) - 1
    }

    pub(crate) fn free(&self) -> usize {
        page::upper(self.0).saturating_sub(page::lower(self.0))
    }

    /// All entries, copied.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        (0..self.len()).map(|index| self.entry(index)).collect()
    }
}

/// The reason why `page` cannot be read as a node; `None` if it can.
pub(crate) fn layout_problem(bytes: &[u8; PAGE_SIZE]) -> Option<String> {
    if page::kind(bytes) != PageKind::BTREE_NODE {
        return Some(format!("a page of kind {} in a B+tree", page::kind(bytes).0));
    }
    let (lower, upper) = (page::lower(bytes), page::upper(bytes));
    let sound = (PAGE_HEADER..=upper).contains(&lower)
        && upper <= RIGHT
        && (lower - PAGE_HEADER).is_multiple_of(2)
        && page::special(bytes) == RIGHT;
    if !sound {
        return Some(format!("the free space from {lower} to {upper} cannot be"));
    }
    let node = Node(bytes);
    if node.slots() < node.first() {
        return Some("the page has a high key and no slot for it".into());
    }
    (0..node.slots()).find_map(|slot| {
        let at = node.offset(slot);
        let end = |length: usize| at + ENTRY + length;
        let fits = at >= upper && end(0) <= RIGHT && end(usize::from(get_u16(bytes, at))) <= RIGHT;
        (!fits).then(|| format!("slot {slot} leads to offset {at}, where no entry can be"))
    })
}

/// Makes `page` an empty node.
pub(crate) fn init<M: Machine, L: ChangeLog>(
    change: &mut AtomicChange<'_, M, L>,
    page: &mut PageExclusive<'_, M>,
    level: u16,
    right: Option<u32>,
) {
    change.init_page(page, PageKind::BTREE_NODE, SPECIAL);
    let mut trailer = [0; SPECIAL];
    trailer[..4].copy_from_slice(&right.unwrap_or(0).to_le_bytes());
    trailer[4..6].copy_from_slice(&level.to_le_bytes());
    change.write(page, RIGHT, &trailer);
}

/// Makes `page` a node with these entries, in order.
pub(crate) fn fill<M: Machine, L: ChangeLog>(
    change: &mut AtomicChange<'_, M, L>,
    page: &mut PageExclusive<'_, M>,
    level: u16,
    right: Option<u32>,
    high: Option<&Entry>,
    entries: &[Entry],
) {
    init(change, page, level, right);
    let mut slots = Vec::new();
    let mut body = Vec::new();
    let mut upper = RIGHT;
    let mut encoded = Vec::new();
    // The entries are laid from the end of the page downwards, and written as one piece.
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    for entry in high.into_iter().chain(entries) {
        entry.encode(&mut encoded);
        upper -= encoded.len();
        slots.extend_from_slice(&(upper as u16).to_le_bytes());
        pieces.push(encoded.clone());
    }
    for piece in pieces.iter().rev() {
        body.extend_from_slice(piece);
    }
    change.write(page, upper, &body);
    change.write(page, PAGE_HEADER, &slots);
    set_bounds(change, page, PAGE_HEADER + slots.len(), upper);
    if high.is_some() {
        change.write_u16(page, FLAGS, HAS_HIGH);
    }
}

fn set_bounds<M: Machine, L: ChangeLog>(
    change: &mut AtomicChange<'_, M, L>,
    page: &mut PageExclusive<'_, M>,
    lower: usize,
    upper: usize,
) {
    change.write(page, LOWER, &(lower as u32 | (upper as u32) << 16).to_le_bytes());
}

/// Inserts an entry that fits, as entry `index`.
pub(crate) fn insert_at<M: Machine, L: ChangeLog>(
    change: &mut AtomicChange<'_, M, L>,
    page: &mut PageExclusive<'_, M>,
    index: usize,
    entry: &Entry,
) {
    let node = Node(page.bytes());
    let (lower, slot) = (page::lower(node.0), PAGE_HEADER + (node.first() + index) * 2);
    let upper = page::upper(node.0) - (entry.size() - 2);
    debug_assert!(lower + 2 <= upper, "an entry is inserted where it does not fit");
    let mut encoded = Vec::with_capacity(entry.size());
    entry.encode(&mut encoded);
    change.write(page, upper, &encoded);
    if slot < lower {
        change.move_bytes(page, slot, slot + 2, lower - slot);
    }
    change.write_u16(page, slot, upper as u16);
    set_bounds(change, page, lower + 2, upper);
}

/// Inserts entries that fit together, in their places. They are in order.
///
/// ```text
/// slots     a b . d e .          entries c and f: the slots from c's place on are written again,
///           a b c d e f          unless moving those behind each new one takes fewer bytes
/// ```
pub(crate) fn insert_run_at<M: Machine, L: ChangeLog>(
    change: &mut AtomicChange<'_, M, L>,
    page: &mut PageExclusive<'_, M>,
    run: &[NewEntry<'_>],
) {
    let node = Node(page.bytes());
    let (lower, upper) = (page::lower(node.0), page::upper(node.0));
    let length: usize = run.iter().map(|entry| entry.size() - 2).sum();
    let start = upper - length;
    debug_assert!(
        lower + run.len() * 2 <= start,
        "entries are inserted where they do not fit"
    );
    let places: Vec<usize> = run.iter().map(|entry| node.lower_bound(entry.bound())).collect();
    let first_slot = PAGE_HEADER + (node.first() + places[0]) * 2;
    let (mut bodies, mut new_slots) = (Vec::with_capacity(length), Vec::with_capacity(run.len()));
    for entry in run {
        new_slots.push(((start + bodies.len()) as u16).to_le_bytes());
        append_entry(entry.bound(), 0, &mut bodies);
    }
    let merged = merged_slots(node.entry_slots(), &places, &new_slots);
    change.write(page, start, &bodies);
    if merged.len() * 2 <= run.len() * SLOT_MOVE {
        change.write(page, first_slot, merged.as_flattened());
    } else {
        for (before, (place, slot)) in places.iter().zip(&new_slots).enumerate() {
            let end = lower + before * 2;
            let at = first_slot + (place - places[0] + before) * 2;
            if at < end {
                change.move_bytes(page, at, at + 2, end - at);
            }
            change.write(page, at, slot);
        }
    }
    set_bounds(change, page, lower + run.len() * 2, start);
}

/// Bytes in the log of a slot that is inserted by moving those behind it.
const SLOT_MOVE: usize = 14;

/// The slots of a page from the first of `places` on, with `new` ones at their places.
fn merged_slots(old: &[[u8; 2]], places: &[usize], new: &[[u8; 2]]) -> Vec<[u8; 2]> {
    let mut merged = Vec::with_capacity(old.len() - places[0] + new.len());
    let mut from = places[0];
    for (place, slot) in places.iter().zip(new) {
        merged.extend_from_slice(&old[from..*place]);
        merged.push(*slot);
        from = *place;
    }
    merged.extend_from_slice(&old[from..]);
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_order_keys() {
        let mut keys = vec![Vec::new()];
        for length in 1..=9 {
            for tail in [&[][..], &[0], &[1], &[255], &[0, 1], &[1, 0]] {
                let mut key = vec![0; length - 1];
                key.extend_from_slice(tail);
                keys.push(key.clone());
                key[..length - 1].fill(7);
                keys.push(key);
            }
        }
        for a in &keys {
            for b in &keys {
                match head_of(a).cmp(&head_of(b)) {
                    Ordering::Equal => {}
                    decided => assert_eq!(decided, a.cmp(b), "{a:?} and {b:?}"),
                }
            }
            let mut behind = a.clone();
            behind.extend_from_slice(&[0xAA; 8]);
            assert_eq!(cut(head_of(&behind), a.len() as u16), head_of(a), "{a:?}");
        }
    }

    /// Keys as far from evenly spread as can be, and what is looked for among them and far outside.
    #[test]
    fn a_search_finds_the_place_however_keys_are_spread() {
        let even: Vec<u64> = (0..100).map(|number| 1_000 + 10 * number).collect();
        let with = |at: usize, head: u64| {
            let mut heads = even.clone();
            heads[at] = head;
            heads
        };
        let equal = vec![1_000; 100];
        for heads in [
            even.clone(),
            with(0, 0),
            with(99, u64::MAX),
            equal,
            even[..48].to_vec(),
        ] {
            let near = heads
                .iter()
                .flat_map(|head| [head.saturating_sub(1), *head, head.saturating_add(1)]);
            for wanted in near.chain([0, 3_000, 1 << 40, u64::MAX]) {
                // From 1 on for an inner page, whose first entry stands for all that is below the second.
                for low in [0, 1] {
                    let below = |index: usize| heads[index] < wanted;
                    let found = partition(low..heads.len(), wanted, |index| heads[index], below);
                    let expected = low + heads[low..].partition_point(|head| *head < wanted);
                    assert_eq!(found, expected, "{wanted} in {heads:?} from {low}");
                }
            }
        }
    }

    fn put(page: &mut [u8; PAGE_SIZE], at: usize, number: usize) {
        page[at..at + 2].copy_from_slice(&(number as u16).to_le_bytes());
    }

    /// The offsets of the entries of `sound_page`.
    const FIRST: usize = RIGHT - ENTRY - 5;
    const SECOND: usize = FIRST - ENTRY - 5;

    /// A leaf with two entries, each with a key of five bytes.
    fn sound_page() -> Box<[u8; PAGE_SIZE]> {
        let mut page = Box::new([0; PAGE_SIZE]);
        page::init(&mut page[..], PageKind::BTREE_NODE, SPECIAL);
        for (slot, at) in [FIRST, SECOND].into_iter().enumerate() {
            put(&mut page, PAGE_HEADER + 2 * slot, at);
            put(&mut page, at, 5);
        }
        put(&mut page, LOWER, PAGE_HEADER + 4);
        put(&mut page, page::UPPER, SECOND);
        page
    }

    #[test]
    fn an_empty_page_is_sound() {
        assert_eq!(layout_problem(&sound_page()), None);
        let mut page = sound_page();
        put(&mut page, LOWER, PAGE_HEADER);
        assert_eq!(layout_problem(&page), None);
        // As vacuum may leave a leaf that has a right neighbour.
        put(&mut page, LOWER, PAGE_HEADER + 2);
        put(&mut page, FLAGS, usize::from(HAS_HIGH));
        assert_eq!(layout_problem(&page), None);
    }

    /// Each rule of the layout broken by itself, by as little as can be.
    #[test]
    fn each_broken_rule_of_the_layout_is_found() {
        const KIND: usize = 12;
        const SPECIAL_FIELD: usize = 20;
        let broken: [(&[(usize, usize)], &str); 11] = [
            (&[(KIND, 2)], "of kind 2"),
            (&[(LOWER, PAGE_HEADER - 2)], "free space"),
            (&[(LOWER, SECOND + 2)], "free space"),
            (&[(LOWER, PAGE_HEADER + 3)], "free space"),
            (&[(page::UPPER, RIGHT + 1)], "free space"),
            (&[(SPECIAL_FIELD, RIGHT - 1)], "free space"),
            (&[(LOWER, PAGE_HEADER), (FLAGS, 1)], "high key"),
            (&[(PAGE_HEADER, SECOND - 1)], "slot 0"),
            (&[(PAGE_HEADER, RIGHT - ENTRY + 1)], "slot 0"),
            (&[(PAGE_HEADER, PAGE_SIZE - 1)], "slot 0"),
            (&[(FIRST, 6)], "slot 0"),
        ];
        for (numbers, problem) in broken {
            let mut page = sound_page();
            for &(at, number) in numbers {
                put(&mut page, at, number);
            }
            let found = layout_problem(&page).unwrap_or_default();
            assert!(found.contains(problem), "{numbers:?}: {found:?}");
        }
    }
}
