//! The versions of a row on one page: a HOT chain.

use crate::buffer::page_view::HintedPage;
use crate::heap::layout::{HEAP_ONLY, Line, Tuple, line};
use crate::heap::visibility::next_in_chain;

/// The slot of the first version in the HOT chain of `root`; `None` if the root leads nowhere.
pub(crate) fn chain_start(page: HintedPage<'_>, root: u16) -> Option<u16> {
    match line(page.front(), root) {
        Line::Redirect(slot) => Some(slot),
        // R1: a heap-only tuple here means that the slot has been used again.
        Line::Normal { offset, length } => (!Tuple::new(page, offset, length).has(HEAP_ONLY)).then_some(root),
        Line::Unused | Line::Dead => None,
    }
}

/// The versions of a HOT chain, oldest first.
pub(crate) fn chain(page: HintedPage<'_>, start: u16) -> impl Iterator<Item = (u16, Tuple<'_>)> {
    let mut next = Some((start, None::<u64>));
    std::iter::from_fn(move || {
        let (slot, expected) = next?;
        let tuple = Tuple::at(page, slot)?;
        // R2.
        if expected.is_some_and(|xmax| xmax != tuple.xmin()) {
            return None;
        }
        next = next_in_chain(&tuple).map(|slot| (slot, Some(tuple.xmax())));
        Some((slot, tuple))
    })
}
