//! The baseline: the page is pinned, and latched to read it.
//!
//! The pin keeps the page in its frame, the latch keeps writers away, so what is read needs no check. The read takes
//! place at any instant under the latch. It costs four writes of the frame's line, which is the line that all readers
//! of the page write: the root's of a busy index travels between the CPUs.
//!
//! If the latch has versions (`page_latch = hybrid`), the page is pinned and read without the latch first.

use clearway_machine::Machine;

use super::Pages;
use crate::buffer::RacyPage;
use crate::error::Result;
use crate::page::PageId;

/// [`PageReadVariant::read`](super::PageReadVariant::read).
#[inline]
pub(super) fn read<M: Machine, R>(
    pages: &impl Pages<M>,
    page: PageId,
    mut read: impl FnMut(RacyPage<'_>) -> Option<R>,
) -> Result<Option<R>> {
    let pinned = pages.pin(page)?;
    if let Some(result) = pinned.read_optimistically(&mut read) {
        return Ok(Some(result));
    }
    let latched = pinned.into_shared();
    Ok(read(RacyPage::latched(latched.view())))
}
