//! These tests need no operating system, so that an interpreter of Rust's memory model can run them:
//! `cargo miri test -p clearway-storage --lib page_view`.

use std::cell::UnsafeCell;
use std::sync::atomic::{Ordering, fence};

use super::*;
use crate::page::{LOWER, array_at, get_u64};

/// Offsets of the tests' items.
const ITEMS: [usize; 2] = [PAGE_SIZE - 96, PAGE_SIZE - 48];
const LENGTH: usize = 45;

/// Shared among the tests' threads, as a pool shares its pages.
struct Shared(PageBytes);

// SAFETY: the tests' threads reach the bytes only through views, as under a shared latch.
unsafe impl Sync for Shared {}

/// A page with a header, two line pointers, and two items whose bytes are 7; three hints are set.
fn page(kind: PageKind) -> Box<Shared> {
    let mut bytes = [0; PAGE_SIZE];
    page::init(&mut bytes, kind, 0);
    bytes[LOWER..LOWER + 2].copy_from_slice(&32_u16.to_le_bytes());
    for item in ITEMS {
        bytes[item..item + LENGTH].fill(7);
        bytes[item + HINT_WORD + 7] = 0;
    }
    Box::new(Shared(PageBytes(UnsafeCell::new(bytes))))
}

fn view(page: &Shared) -> PageView<'_> {
    // SAFETY: the tests set hints, and change nothing else.
    unsafe { PageView::new(&page.0) }
}

/// Alice, Bob and Carol hold the shared latch. Alice reads line pointers, headers and rows, and keeps all these
/// references; Bob sets hints meanwhile, and Carol copies the page. A hint that is in Carol's copy was set by Bob, and what
/// he knew before that is known behind her fence.
///
/// Mutation that it is for, under an interpreter: `bytes` of a page of kind `HEAP` is not refused, and Alice reads that.
#[test]
fn references_stay_while_hints_are_set() {
    let page = page(PageKind::HEAP);
    let known = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for bit in 3..10 {
                known.store(bit, Ordering::Relaxed);
                for item in ITEMS {
                    let (header, _) = view(&page).hinted().item(item, LENGTH).unwrap();
                    header.set_hints(1 << bit);
                }
            }
        });
        scope.spawn(|| {
            for _ in 0..10 {
                let copy = view(&page).copy();
                fence(Ordering::Acquire);
                let known = known.load(Ordering::Relaxed);
                for item in ITEMS {
                    let [low, high] = array_at(&copy[..], item + HINT_WORD + 6);
                    let newest = u16::from_le_bytes([low, high]).ilog2();
                    assert!(
                        newest == 2 || u64::from(newest) <= known,
                        "{newest} before {known}"
                    );
                    assert_eq!(get_u64(&copy[..], item), 0x0707_0707_0707_0707);
                }
            }
        });
        let hinted = view(&page).hinted();
        let (front, items) = (
            hinted.front(),
            ITEMS.map(|item| hinted.item(item, LENGTH).unwrap()),
        );
        for _ in 0..10 {
            assert_eq!((front.len(), page::lower(front)), (32, 32));
            for (header, row) in items {
                assert_eq!(header.word::<0>(), 0x0707_0707_0707_0707);
                assert_eq!(header.hint_word() << 16, 0x0707_0707_0707_0000);
                assert_eq!(row, [7; LENGTH - ITEM_HEADER]);
            }
        }
    });
}

/// Hints are the last two bytes of the header, and setting them changes no others.
#[test]
fn a_hint_changes_its_two_bytes() {
    let page = page(PageKind::HEAP);
    let before = view(&page).copy();
    view(&page)
        .hinted()
        .item(ITEMS[1], LENGTH)
        .unwrap()
        .0
        .set_hints(0x8010);
    let mut expected = before;
    let hints = ITEMS[1] + HINT_WORD + 6;
    expected[hints..hints + 2].copy_from_slice(&0x8017_u16.to_le_bytes());
    assert_eq!(view(&page).copy(), expected);
    let header = HintedHeader::of([1, 2, 3, 4]);
    assert_eq!((header.word::<2>(), header.hint_word()), (3, 4));
}

/// An item is on the page, behind the line pointers, at a multiple of 8, and has a header.
#[test]
fn items_are_where_items_can_be() {
    let page = page(PageKind::HEAP);
    let hinted = view(&page).hinted();
    let is_item = |offset, length| hinted.item(offset, length).is_some();
    assert!(is_item(32, ITEM_HEADER) && is_item(PAGE_SIZE - ITEM_HEADER, ITEM_HEADER));
    assert!(is_item(32, PAGE_SIZE - 32));
    assert!(!is_item(24, 40), "in the line pointers");
    assert!(!is_item(36, 40), "not at a multiple of 8");
    assert!(!is_item(32, ITEM_HEADER - 1), "shorter than a header");
    assert!(
        !is_item(32, PAGE_SIZE - 31) && !is_item(PAGE_SIZE, ITEM_HEADER),
        "past the end"
    );
    assert!(!is_item(PAGE_SIZE + 8, 0) && !is_item(usize::MAX - 7, ITEM_HEADER));
    assert!(!is_item(32, usize::MAX));
}

/// A page of another kind has no items, and all of it can be read. One of kind HEAP is refused.
#[test]
fn a_page_has_hints_or_can_be_read_whole() {
    let node = page(PageKind::BTREE_NODE);
    assert!(view(&node).hinted().item(ITEMS[0], LENGTH).is_none());
    assert_eq!(view(&node).hinted().front().len(), PAGE_HEADER);
    assert_eq!(view(&node).bytes()[ITEMS[0]], 7);
    let heap = page(PageKind::HEAP);
    let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| view(&heap).bytes()[0]));
    assert!(read.is_err(), "H3");
}
