//! Changing pages that sessions may be reading.

use crate::buffer::PageExclusive;
use crate::change::PagePart;
use crate::error::Result;
use crate::page::{self, Lsn, PageId};
use crate::storage::Storage;

/// Makes sure that the page is there; `false` if its relation was dropped after what is being replayed.
pub(super) fn make_page(storage: &Storage, page: PageId) -> Result<bool> {
    let Some(file) = storage.files.file_for_replay(page.rel)? else {
        return Ok(false);
    };
    // Pages that were added after the checkpoint (`lengths`, step 4). Each is empty until its change is replayed.
    while file.blocks() <= page.block {
        storage.pool.extend(page.rel)?;
    }
    Ok(true)
}

/// Replays a change with all of its pages latched (S5).
pub(super) fn change_pages(storage: &Storage, parts: &[(PageId, PagePart<'_>)], end: Lsn) -> Result<()> {
    let mut pinned = Vec::with_capacity(parts.len());
    for (page, part) in parts {
        pinned.push((storage.pool.pin(*page)?, part));
    }
    // Nothing can fail from here on, so no reader sees a part of it.
    let mut latched: Vec<(PageExclusive<'_>, _)> = pinned
        .into_iter()
        .map(|(page, part)| (page.into_exclusive(), *part))
        .collect();
    for (page, part) in &mut latched {
        if part.replaces() || page::lsn(page.bytes()) < end {
            let bytes = page.bytes_mut();
            part.apply(bytes);
            page::set_lsn(bytes, end);
            page.mark_dirty();
        }
    }
    Ok(())
}
