//! Changing pages as a record says: the one way of recovery, of a standby beside its sessions, and of its workers.
//!
//! A change over several pages is made with all of them latched exclusively (S5 of `standby`). During recovery nothing else
//! looks at them, and to latch them costs little.

use clearway_machine::Machine;

use crate::buffer::{BufferPool, PageDevice, PageExclusive};
use crate::change::{self, PagePart};
use crate::error::Result;
use crate::page::{self, Lsn, PageId, RelId};
use crate::storage::Storage;

/// The state of the pages in the files when changes are replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PagesInFiles {
    /// Each is whole: what a start had to replay was replayed.
    Whole,
    /// One that a change replaces may be torn or lost. So it is not read.
    MayBeTorn,
}

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
pub(crate) fn change_pages<M: Machine, D: PageDevice>(
    pool: &BufferPool<M, D>,
    parts: &[(PageId, PagePart<'_>)],
    end: Lsn,
    in_files: PagesInFiles,
) -> Result<()> {
    let mut pinned = Vec::with_capacity(parts.len());
    for (page, part) in parts {
        let is_read = in_files == PagesInFiles::Whole || !part.replaces();
        let page = if is_read {
            pool.pin(*page)?
        } else {
            pool.pin_replaced(*page)?
        };
        pinned.push((page, part));
    }
    // Nothing can fail from here on, so no reader sees a part of it.
    let mut latched: Vec<(PageExclusive<'_, M>, _)> = pinned
        .into_iter()
        .map(|(page, part)| (page.into_exclusive(), *part))
        .collect();
    for (page, part) in &mut latched {
        if part.replaces() || page::lsn(page.header()) < end {
            let bytes = page.bytes_mut();
            part.apply(bytes);
            page::set_lsn(bytes, end);
            page.mark_dirty();
        }
    }
    Ok(())
}

/// Replays the change that a record has as its payload, on a standby; the record ends at `end`. Leaves out the pages of
/// relations that are not there any more, as `is_there` says.
pub fn replay_change<M: Machine, D: PageDevice>(
    pool: &BufferPool<M, D>,
    payload: &[u8],
    end: Lsn,
    mut is_there: impl FnMut(RelId) -> Result<bool>,
) -> Result<()> {
    let mut rest = payload;
    let mut parts: Vec<(PageId, PagePart<'_>)> = Vec::with_capacity(2);
    while let Some(part) = (!rest.is_empty()).then(|| change::next_part(&mut rest)).flatten() {
        if is_there(part.0.rel)? {
            parts.push(part);
        }
    }
    change_pages(pool, &parts, end, PagesInFiles::Whole)
}
