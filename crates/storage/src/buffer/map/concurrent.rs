//! Ours: a fixed table of cache lines that a lookup reads without a latch and without a store.
//!
//! # Memory
//! The table is an array of lines. The first third as many as there are frames are *buckets*, chosen by the page's
//! hash; the others are *overflow lines*, which a bucket takes when it is full. A line is one cache line:
//!
//! | bytes | what | meaning |
//! | --- | --- | --- |
//! | 0–3 | latch | a bucket's: writers of its chain hold it. Not used on an overflow line |
//! | 4–7 | next | number of the overflow line behind this one; 0: none (line 0 is a bucket) |
//! | 8–63 | 7 slots | 0: empty. Otherwise bits 63–32 the page's fingerprint, never 0; bits 31–0 the frame |
//!
//! A bucket with the overflow lines behind it is a *chain*.
//!
//! # Invariants
//! - T1: only the holder of a bucket's latch changes its chain.
//! - T2: a chain has no holes: each line but the last is full, and an overflow line has an entry.
//! - T3: an entry is a hint for a reader without the latch. Under the latch it is the truth: frame F has an entry of
//!   page P if and only if P is in the map, and F's tag is P.
//!
//! # Steps
//! - *Lookup*: read the slots of the chain. A fingerprint matches: pin that frame. The state has `VALID`, and the
//!   frame's tag is the page: done. Otherwise, or if no fingerprint matches, decide under the latch: search, and pin.
//! - *Insert*, under the latch: search; found: pin. Otherwise put the entry into the first empty slot behind the
//!   chain's last entry, with an overflow line from the pool if the last line is full.
//! - *Remove*, under the latch: search; evaluate the condition; put the chain's last entry into the slot, and empty the
//!   last slot. An overflow line that is empty now goes back to the pool.
//!
//! # Linearization
//! - A lookup without the latch takes place at its pin. The step of the state that pins also says `VALID`, so no worker
//!   owned the frame then (P2), and the tag, read while the pin is held, is the one of that instant (P1). A take or
//!   seize comes before it, and then the pin finds no `VALID`; or after it, and then it sees the pin and fails. It does
//!   not matter how the lookup came to try this frame: a slot read long ago, or one that was never the page's, leads to
//!   a pin that is given back.
//! - All other operations take place while they hold the bucket's latch. So of two workers that insert one page, the
//!   second finds the first one's entry (M1), and `remove_if` is one step for them (M3): they find the page before the
//!   frame is taken, or no entry.
//!
//! # Why the simpler version is wrong
//! - *A lookup that finds no entry says that there is none.* An entry that fills a hole moves forward, past a reader.
//!   The page stays in its frame, but the reader has seen neither its old slot nor its new one. A worker that wants to
//!   read the page would find the entry when it inserts; but a checkpoint asks for a dirty page in order to write it,
//!   and takes "not there" for "another worker has written it".
//! - *The fingerprint is trusted.* It is 32 bits of a hash, and the entry may be one of the past.
//! - *The tag is compared before the pin.* The frame may be given to another page in between, as in [the
//!   example](super#an-example).
//! - *A matching tag is enough.* The tag stays while the owner takes the page out of the map, and the pin of such a
//!   frame protects nothing. The caller would notice (P3), but only by asking again until the entry is gone; under
//!   the latch it learns at once.
//!
//! # Why the pool of lines never runs dry
//! An entry is removed before its frame is used again, so there are at most as many entries as frames. By T2 a chain
//! with k overflow lines has more than 7 k entries. So all chains together have fewer overflow lines than a seventh
//! of the frames, which is how many there are.
//!
//! # Why nothing needs reclaiming
//! Lines and frames live as long as the pool. A reader that is at an overflow line which is given to another chain
//! reads that chain's entries, and what it finds there is checked like everything else. It follows a few links at most,
//! and then takes the latch.
//!
//! # Orderings
//! Readers without the latch load slots and links Relaxed: T3 asks nothing of them. What a lookup relies on, the tag
//! and the page's bytes, is published by the Release that sets `VALID` and acquired by the pin.
//!
//! # Cost
//! A hit: one or two loads of a line that changes only when a page of its bucket comes or goes, beside the pin. A miss:
//! the latch of the bucket, of 4 bytes on the same line, once more than `partitioned`; the insertion that follows takes
//! it again. 31 bytes a frame. A bucket has 3 entries on average.
//!
//! Origin: the line with its slots is that of CLHT (David, Guerraoui and Trigonakis, 2015). That readers are safe by
//! the frame's own tag, and that nothing is reclaimed, is ours.

use std::sync::atomic::Ordering::Relaxed;

use clearway_latch::{LatchClass, Latched, LwLockOptions, SrwMutex, SrwMutexGuard};
use clearway_machine::{AtomicWord, Machine, Native, WaitEvent};

use super::{BufferMapping, Insertion, PageMap, PinnedFrame, hash};
use crate::buffer::frame::Frame;
use crate::buffer::pin::VALID;
use crate::page::PageId;

/// The latch on the pool of overflow lines, which is taken under a bucket's.
static BUFFER_MAPPING_LINES: LatchClass =
    LatchClass::new("BufferMappingLines", WaitEvent::BufferMapping, 411);

/// Slots of a line.
const SLOTS: usize = 7;
/// Slots of a line that are used. A checker needs chains of several lines, and cannot afford many entries.
const fn slots_used<M: Machine>() -> usize {
    if M::EXPLORED { 1 } else { SLOTS }
}
/// Frames for each bucket.
const FRAMES_PER_BUCKET: usize = 3;
/// Lines that a reader looks at before it takes the latch.
const LINES_WITHOUT_LATCH: usize = 4;
/// In place of a link: the chain ends.
const NO_LINE: u32 = 0;
/// An empty slot.
const EMPTY: u64 = 0;

/// A bucket or an overflow line.
#[repr(C, align(64))]
struct Line<M: Machine> {
    latch: SrwMutex<BufferMapping, M>,
    next: M::U32,
    slots: [M::U64; SLOTS],
}

const _: () = assert!(size_of::<Line<Native>>() == 64);

impl<M: Machine> Line<M> {
    fn empty() -> Self {
        Self {
            latch: SrwMutex::idle(),
            next: M::U32::new(NO_LINE),
            slots: std::array::from_fn(|_| M::U64::new(EMPTY)),
        }
    }

    #[inline]
    fn slots(&self) -> &[M::U64] {
        &self.slots[..slots_used::<M>()]
    }
}

/// The table.
pub(in crate::buffer) struct Map<M: Machine = Native> {
    /// The buckets, and behind them the overflow lines.
    lines: Box<[Line<M>]>,
    buckets: u32,
    /// Overflow lines that belong to no chain.
    free_lines: Latched<Vec<u32>, M>,
}

/// The bucket of a page's entry, and the entry's fingerprint.
#[derive(Clone, Copy)]
struct Place {
    bucket: usize,
    /// In bits 63–32.
    fingerprint: u64,
}

/// The frame of an entry.
#[inline]
fn frame_number(entry: u64) -> usize {
    entry as u32 as usize
}

impl<M: Machine> Map<M> {
    /// The bucket comes from the hash's upper half, the fingerprint from its lower one.
    #[inline]
    fn place(&self, page: PageId) -> Place {
        let hash = hash(page.to_u64());
        Place {
            bucket: (((hash >> 32) * u64::from(self.buckets)) >> 32) as usize,
            fingerprint: (hash << 32) | 1 << 32,
        }
    }

    /// The line behind `line`, if there is one.
    #[inline]
    fn next(&self, line: &Line<M>) -> Option<&Line<M>> {
        match line.next.load(Relaxed) {
            NO_LINE => None,
            number => Some(&self.lines[number as usize]),
        }
    }

    /// Latches the chain of a place.
    fn chain(&self, place: Place) -> Chain<'_, M> {
        let head = &self.lines[place.bucket];
        Chain {
            map: self,
            head,
            _latch: head.latch.exclusive(),
        }
    }

    /// A lookup that must not be wrong.
    #[cold]
    #[inline(never)]
    fn lookup_latched<'a>(
        &self,
        place: Place,
        page: PageId,
        frames: &'a [Frame<M>],
    ) -> Option<PinnedFrame<'a, M>> {
        let chain = self.chain(place);
        chain
            .find(place, page, frames)
            .map(|(_, frame)| (frame, frame.state.pin()))
    }
}

/// A chain whose latch this worker holds (T1).
struct Chain<'m, M: Machine> {
    map: &'m Map<M>,
    head: &'m Line<M>,
    _latch: SrwMutexGuard<'m, BufferMapping, M>,
}

impl<'m, M: Machine> Chain<'m, M> {
    fn lines(&self) -> impl Iterator<Item = &'m Line<M>> + use<'m, M> {
        let map = self.map;
        std::iter::successors(Some(self.head), |line| map.next(line))
    }

    /// The slot with the page's entry, and the page's frame. By T3 the frame's tag says which page an entry is of.
    fn find<'a>(
        &self,
        place: Place,
        page: PageId,
        frames: &'a [Frame<M>],
    ) -> Option<(&'m M::U64, &'a Frame<M>)> {
        let slots = self.lines().flat_map(Line::slots);
        slots
            .map(|slot| (slot, slot.load(Relaxed)))
            .filter(|(_, entry)| entry >> 32 == place.fingerprint >> 32)
            .map(|(slot, entry)| (slot, &frames[frame_number(entry)]))
            .find(|(_, frame)| frame.page() == page)
    }

    /// Adds an entry behind the last one.
    fn append(&self, entry: u64) {
        let Some(last) = self.lines().last() else { return };
        if let Some(slot) = last.slots().iter().find(|slot| slot.load(Relaxed) == EMPTY) {
            slot.store(entry, Relaxed);
            return;
        }
        let number = self.map.free_lines.exclusive().pop();
        let number = number.expect("T2: there are overflow lines for as many entries as frames");
        let added = &self.map.lines[number as usize];
        debug_assert!(added.slots().iter().all(|slot| slot.load(Relaxed) == EMPTY));
        added.slots()[0].store(entry, Relaxed);
        last.next.store(number, Relaxed);
    }

    /// Removes the entry in `slot`.
    fn remove(&self, slot: &M::U64) {
        let mut before_last = None;
        let mut last = self.head;
        while let Some(next) = self.map.next(last) {
            before_last = Some(last);
            last = next;
        }
        let filled = last
            .slots()
            .iter()
            .take_while(|slot| slot.load(Relaxed) != EMPTY)
            .count();
        debug_assert!(filled > 0, "T2: the last line of a chain is empty");
        let last_slot = &last.slots()[filled - 1];
        // A reader that comes between the two stores finds the last entry twice.
        slot.store(last_slot.load(Relaxed), Relaxed);
        last_slot.store(EMPTY, Relaxed);
        if let Some(before_last) = before_last.filter(|_| filled == 1) {
            let number = before_last.next.load(Relaxed);
            before_last.next.store(NO_LINE, Relaxed);
            self.map.free_lines.exclusive().push(number);
        }
    }
}

impl<M: Machine> PageMap<M> for Map<M> {
    fn new(frames: usize, _partitions: u32, lwlock: LwLockOptions) -> Self {
        let buckets = frames.div_ceil(FRAMES_PER_BUCKET);
        let lines = buckets + frames / slots_used::<M>();
        assert!(
            u32::try_from(frames.max(lines)).is_ok(),
            "a buffer pool of more than 2^32 frames"
        );
        let free_lines = (buckets as u32..lines as u32).rev().collect();
        Self {
            lines: (0..lines).map(|_| Line::empty()).collect(),
            buckets: buckets as u32,
            free_lines: Latched::new(&BUFFER_MAPPING_LINES, lwlock, free_lines),
        }
    }

    #[inline]
    fn lookup_and_pin<'a>(&self, page: PageId, frames: &'a [Frame<M>]) -> Option<PinnedFrame<'a, M>> {
        let place = self.place(page);
        let mut line = &self.lines[place.bucket];
        for _ in 0..LINES_WITHOUT_LATCH {
            for slot in line.slots() {
                let entry = slot.load(Relaxed);
                if entry >> 32 == place.fingerprint >> 32 {
                    let frame = &frames[frame_number(entry)];
                    let state = frame.state.pin();
                    if state & VALID != 0 && frame.page() == page {
                        return Some((frame, state));
                    }
                    frame.state.unpin();
                    return self.lookup_latched(place, page, frames);
                }
            }
            match self.next(line) {
                Some(next) => line = next,
                None => break,
            }
        }
        self.lookup_latched(place, page, frames)
    }

    #[inline]
    fn find<'a>(&self, page: PageId, frames: &'a [Frame<M>]) -> Option<&'a Frame<M>> {
        let place = self.place(page);
        let mut line = &self.lines[place.bucket];
        for _ in 0..LINES_WITHOUT_LATCH {
            let entries = line.slots().iter().map(|slot| slot.load(Relaxed));
            let mut alike = entries.filter(|entry| entry >> 32 == place.fingerprint >> 32);
            if let Some(entry) = alike.next() {
                return Some(&frames[frame_number(entry)]);
            }
            line = self.next(line)?;
        }
        None
    }

    fn insert_or_pin<'a>(&self, page: PageId, number: u32, frames: &'a [Frame<M>]) -> Insertion<'a, M> {
        let place = self.place(page);
        let chain = self.chain(place);
        if let Some((_, frame)) = chain.find(place, page, frames) {
            return Insertion::Found((frame, frame.state.pin()));
        }
        chain.append(place.fingerprint | u64::from(number));
        Insertion::Inserted
    }

    fn remove_if(
        &self,
        page: PageId,
        number: u32,
        frames: &[Frame<M>],
        condition: impl FnOnce(&Frame<M>) -> bool,
    ) -> bool {
        let place = self.place(page);
        let chain = self.chain(place);
        let frame = &frames[number as usize];
        match chain.find(place, page, frames) {
            Some((slot, found)) if std::ptr::eq(found, frame) && condition(frame) => {
                chain.remove(slot);
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::map::PARTITIONS;
    use crate::buffer::map::tests::{Random, frames, own_and_insert, pages_where, take_out};

    const FRAMES: u32 = 40;

    /// All pages in one bucket: a chain of six lines grows, loses entries at any place, and shrinks.
    ///
    /// Mutations that it catches: a removal that does not fill the hole; a line that is not given back.
    #[test]
    fn a_chain_has_no_holes_and_gives_its_lines_back() {
        let frames = frames(FRAMES);
        let map = Map::<Native>::new(frames.len(), PARTITIONS, LwLockOptions::default());
        let lines_at_first = map.free_lines.exclusive().len();
        let pages = pages_where(FRAMES, |page| map.place(page).bucket == 3);
        let mut random = Random::new();
        for _ in 0..50 {
            let mut entered: Vec<u32> = (0..FRAMES).collect();
            for &number in &entered {
                own_and_insert(&map, pages[number as usize], number, &frames);
            }
            assert_eq!(map.free_lines.exclusive().len(), lines_at_first - 5);
            while !entered.is_empty() {
                let number = entered.swap_remove(random.below(entered.len()));
                take_out(&map, pages[number as usize], number, &frames);
                let chain = map.chain(map.place(pages[0]));
                let slots = || chain.lines().flat_map(Line::slots).map(|slot| slot.load(Relaxed));
                assert_eq!(slots().take_while(|entry| *entry != EMPTY).count(), entered.len());
                assert_eq!(chain.lines().count(), entered.len().div_ceil(SLOTS).max(1));
                for page in entered.iter().map(|&number| pages[number as usize]) {
                    assert!(chain.find(map.place(page), page, &frames).is_some());
                }
            }
            assert_eq!(map.free_lines.exclusive().len(), lines_at_first);
        }
    }

    /// With the latch held by this worker, a second acquisition would panic: a hit takes none.
    #[test]
    fn a_page_that_is_there_is_found_without_the_latch() {
        let frames = frames(FRAMES);
        let map = Map::<Native>::new(frames.len(), PARTITIONS, LwLockOptions::default());
        let pages = pages_where(20, |page| map.place(page).bucket == 3);
        for (&page, number) in pages.iter().zip(0..) {
            own_and_insert(&map, page, number, &frames);
        }
        let chain = map.chain(map.place(pages[0]));
        for (&page, number) in pages.iter().zip(0..) {
            let (frame, state) = map.lookup_and_pin(page, &frames).unwrap();
            assert!(std::ptr::eq(frame, &frames[number]) && state & VALID != 0);
            frame.state.unpin();
        }
        drop(chain);
    }
}
