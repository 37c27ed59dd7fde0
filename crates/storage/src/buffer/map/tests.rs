//! Every variant against a table of the standard library.

use std::collections::HashMap;

use clearway_machine::{Native, Switch};

use super::*;
use crate::buffer::pin::VALID;
use crate::page::RelId;

const FRAMES: u32 = 40;

fn page(number: u32) -> PageId {
    PageId {
        rel: RelId(16 + number % 3),
        block: number,
    }
}

/// Numbers that are the same in every run.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new() -> Self {
        Self(1)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % end
    }
}

/// `count` frames without pages and without bytes.
pub(super) fn frames(count: u32) -> Vec<Frame> {
    let frame = |_| Frame::new(Default::default(), std::ptr::null());
    (0..count).map(frame).collect()
}

/// The first `count` pages of which `condition` holds.
pub(super) fn pages_where(count: u32, condition: impl Fn(PageId) -> bool) -> Vec<PageId> {
    let pages = (0..).map(page).filter(|page| condition(*page));
    pages.take(count as usize).collect()
}

/// Enters a page that is in no frame, as the pool does it: the frame gets its tag, then its entry, then its content.
pub(super) fn own_and_insert(map: &impl PageMap<Native>, page: PageId, number: u32, frames: &[Frame]) {
    frames[number as usize].set_tag(Some(page));
    assert!(matches!(
        map.insert_or_pin(page, number, frames),
        Insertion::Inserted
    ));
    frames[number as usize].state.set(VALID);
}

/// Removes a page that is not pinned, and gives its frame up.
pub(super) fn take_out(map: &impl PageMap<Native>, page: PageId, number: u32, frames: &[Frame]) {
    assert!(frames[number as usize].state.try_pin_alone());
    assert!(map.remove_if(page, number, frames, |frame| frame.state.try_seize()));
    frames[number as usize].set_tag(None);
    frames[number as usize].state.unpin();
}

/// The result of a pin: number of the frame, and whether it is valid.
fn unpinned(found: PinnedFrame<'_, Native>, frames: &[Frame]) -> (u32, bool) {
    let (frame, state) = found;
    let number = frames.iter().position(|known| std::ptr::eq(known, frame));
    frame.state.unpin();
    (number.unwrap() as u32, state & VALID != 0)
}

/// Random insertions, lookups and removals, as the pool makes them: an owned frame gets its tag, then its entry.
#[test]
fn a_map_agrees_with_a_plain_table() {
    let default = BufferMapVariant::ALL.iter().map(|&variant| (variant, PARTITIONS));
    let fewer = [1, 3, 16].map(|partitions| (BufferMapVariant::Partitioned, partitions));
    for (variant, partitions) in default.chain(fewer) {
        let frames = frames(FRAMES);
        let map = BufferMap::new(variant, frames.len(), partitions, LwLockOptions::default());
        let mut expected: HashMap<PageId, u32> = HashMap::new();
        let mut free: Vec<u32> = (0..FRAMES).collect();
        let mut random = Random::new();
        for _ in 0..20_000 {
            let page = page(random.below(100) as u32);
            let known = expected.get(&page).copied();
            let found = map
                .lookup_and_pin(page, &frames)
                .map(|found| unpinned(found, &frames));
            assert_eq!(found, known.map(|number| (number, true)), "{variant:?} {page:?}");
            match known {
                None => {
                    let Some(number) = free.pop() else { continue };
                    frames[number as usize].set_tag(Some(page));
                    let inserted = map.insert_or_pin(page, number, &frames);
                    assert!(matches!(inserted, Insertion::Inserted), "{variant:?}");
                    frames[number as usize].state.set(VALID);
                    expected.insert(page, number);
                }
                Some(number) => {
                    let Insertion::Found(found) = map.insert_or_pin(page, (number + 1) % FRAMES, &frames)
                    else {
                        panic!("{variant:?}: {page:?} is in two frames");
                    };
                    assert_eq!(unpinned(found, &frames), (number, true));
                    if random.below(2) == 0 {
                        let frame = &frames[number as usize];
                        assert!(!map.remove_if(page, (number + 1) % FRAMES, &frames, |_| true));
                        assert!(!map.remove_if(page, number, &frames, |_| false));
                        assert!(frame.state.try_pin_alone());
                        assert!(map.remove_if(page, number, &frames, |frame| frame.state.try_seize()));
                        frame.set_tag(None);
                        frame.state.unpin();
                        expected.remove(&page);
                        free.push(number);
                    }
                }
            }
        }
        assert!(expected.len() > 10 && free.len() < 30, "{variant:?}: hardly used");
    }
}

/// While another worker wants the page, its frame is not taken, and the page is found as before.
#[test]
fn a_pinned_page_is_not_removed() {
    for &variant in BufferMapVariant::ALL {
        let frames = frames(FRAMES);
        let map = BufferMap::new(variant, frames.len(), PARTITIONS, LwLockOptions::default());
        frames[5].set_tag(Some(page(7)));
        assert!(matches!(
            map.insert_or_pin(page(7), 5, &frames),
            Insertion::Inserted
        ));
        frames[5].state.set(VALID);
        assert!(frames[5].state.try_claim());
        let (frame, _) = map.lookup_and_pin(page(7), &frames).unwrap();
        assert!(!map.remove_if(page(7), 5, &frames, |frame| frame.state.try_take()));
        frame.state.unpin();
        assert!(map.remove_if(page(7), 5, &frames, |frame| frame.state.try_take()));
        assert!(map.lookup_and_pin(page(7), &frames).is_none());
    }
}
