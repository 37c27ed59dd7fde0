//! Ours: a page is read without a pin or a latch, under the version of its frame.
//!
//! # State: one word of 64 bits
//! | value | meaning |
//! | --- | --- |
//! | odd | the frame holds no page, or a worker may be changing its tag or its bytes |
//! | even | the frame holds the page of its tag, and no worker changes it |
//!
//! # Steps of a reader
//! 1. Ask the map for a frame that may hold the page. It pins nothing, and the answer is a hint.
//! 2. Load the version; odd: give up this attempt. Load the tag; another page's: give up this attempt.
//! 3. Read the bytes (`racy`: each value is copied out once, and not trusted).
//! 4. Fence. Load the version; another one than in step 2: drop what was read.
//! 5. Raise the page's usage if it is not at its top, so that the clock does not take a page for unused that is read
//!    only in this way.
//!
//! After three attempts, or if the map knows no frame, the page is pinned and latched, which waits for the writer or
//! reads the page in.
//!
//! # Linearization
//! A read that validates takes place when it loads the version in step 2.
//!
//! - *The bytes and the tag are of one state of the frame.* The version in step 2, v, was stored with Release after the
//!   last change of the bytes, and is loaded with Acquire: the read sees all of that. A worker that changes anything
//!   later stores v + 1 first, and has a Release fence behind that (V3). If step 2 or 3 saw a byte or a tag of that
//!   worker's, its fence and the reader's in step 4 order v + 1 before the load in step 4, which then does not find v
//!   (V1). So a validated read saw no byte of a later *write, split or prune*, and none of a later *page in the frame*.
//! - *The state was the page's newest.* Suppose that the page was evicted, read into another frame and changed there,
//!   and that this was known to the reader when it began. The owner stored v + 1 before the map forgot the page (V4);
//!   before it was forgotten it could not be entered again (M1); so v + 1 came before the change, which the reader
//!   knew of. Then step 2 does not find v. It does not matter where the frame's number came from in step 1.
//! - *Several pages.* Each is read at its own instant, in the order of the calls, as under latches that are not
//!   coupled. The user's rules must allow for that: R2 and R3 of the B+tree do.
//!
//! # Why the simpler version is wrong
//! - *The version of the hybrid latch.* It counts exclusive sections. A frame that is given to another page in an
//!   instant without any exclusive section would keep its version.
//! - *The tag is compared after the read, and not the version.* The page may have left and come back in between, and
//!   its bytes may have been those of another.
//! - *The owner makes the version odd when it sets the tag.* Between the map's forgetting and that, the page may be in
//!   another frame and changed, while this one still looks valid to a reader that remembers where it was.
//! - *`VALID` first, then an even version.* A worker that has pinned the page may be changing it by then, and the owner
//!   would end that worker's change (V2).
//! - *No usage.* The index root, read by all and pinned by none, would be the first page that the clock evicts.
//!
//! # Cost
//! A reader: four loads of the frame's first line, and no store while the usage is at its top. After the clock hand has
//! passed, one reader writes the line once. A writer: a load and two stores of a line that it has anyway. 8 bytes a
//! frame, which were padding.
//!
//! It does not keep the page. A reader that wants to come back, to hold a reference, or to wait,
//! pins. Readers cannot delay a writer; a page that is changed all the time is read latched, so writers cannot starve
//! readers.
//!
//! A version would repeat after 2^63 changes of one frame.
//!
//! Origin: sequence locks (Linux; Lameter, 2005); the placing of their fences: Boehm, "Can seqlocks get along with
//! programming language memory models?", 2012. Optimistic latches over buffer frames that are never freed: LeanStore.

use clearway_machine::Machine;

use super::{Pages, pinned};
use crate::buffer::RacyPage;
use crate::buffer::frame::Frame;
use crate::buffer::page_counts::PageCounts;
use crate::error::Result;
use crate::page::PageId;

/// Number of attempts before the page is pinned. A checker cannot afford several.
const fn attempts<M: Machine>() -> u32 {
    if M::EXPLORED { 1 } else { 3 }
}

/// [`PageReadVariant::read`](super::PageReadVariant::read).
#[inline]
pub(super) fn read<M: Machine, R>(
    pages: &impl Pages<M>,
    page: PageId,
    mut read: impl FnMut(RacyPage<'_>) -> Option<R>,
) -> Result<Option<R>> {
    for _ in 0..attempts::<M>() {
        let Some(frame) = pages.find(page) else { break };
        if let Some(result) = read_unpinned(frame, page, &mut read) {
            // A caller that gets nothing pins the page, which counts it.
            if result.is_some() {
                PageCounts::add_hit();
            }
            return Ok(result);
        }
        M::spin_hint();
    }
    pinned::read(pages, page, read)
}

/// Steps 2 to 5. `None` if the attempt failed.
#[inline]
fn read_unpinned<M: Machine, R>(
    frame: &Frame<M>,
    page: PageId,
    read: &mut impl FnMut(RacyPage<'_>) -> Option<R>,
) -> Option<Option<R>> {
    let version = frame.version.stable()?;
    if frame.tagged_page() != Some(page) {
        return None;
    }
    let seen = frame.note_unpinned_read();
    // SAFETY: the bytes of a frame live as long as the frame, which is borrowed here.
    let result = read(unsafe { RacyPage::new(frame.bytes()) });
    if !frame.version.is_still(version) {
        return None;
    }
    frame.check_unpinned_read(version, seen);
    frame.state.raise_usage();
    Some(result)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use clearway_machine::Switch;

    use super::*;
    use crate::page::PAGE_HEADER;
    use crate::storage::{Storage, StorageOptions};
    use crate::{BufferPoolOptions, PageLatchVariant, PageReadVariant};

    fn open(page_latch: PageLatchVariant, page_read: PageReadVariant) -> (tempfile::TempDir, Arc<Storage>) {
        let dir = tempfile::tempdir().unwrap();
        let options = StorageOptions {
            pool: BufferPoolOptions {
                page_latch,
                page_read,
                ..BufferPoolOptions::default()
            },
            fsync: false,
            ..StorageOptions::default()
        };
        let storage = Storage::open(dir.path(), options).unwrap().0;
        (dir, storage)
    }

    /// A page that no worker changes is read without a pin, under every page latch; one under change is not.
    #[test]
    fn a_page_is_read_without_a_pin_unless_it_changes() {
        for &page_latch in PageLatchVariant::ALL {
            let (_dir, storage) = open(page_latch, PageReadVariant::Optimistic);
            let rel = storage.create_rel().unwrap();
            let page = storage.extend(rel).unwrap().page_id();
            let frame = storage.pool.find(page).expect("an extended page is in memory");
            let byte = |page: RacyPage<'_>| page.u8_at(PAGE_HEADER);
            assert_eq!(
                read_unpinned(frame, page, &mut { byte }),
                Some(Some(0)),
                "{page_latch:?}"
            );

            let pinned = storage.pin(page).unwrap();
            let mut guard = pinned.exclusive();
            assert_eq!(
                read_unpinned(frame, page, &mut { byte }),
                Some(Some(0)),
                "no byte has changed"
            );
            guard.bytes_mut()[PAGE_HEADER] = 7;
            assert_eq!(
                read_unpinned(frame, page, &mut { byte }),
                None,
                "{page_latch:?}: under change"
            );
            drop(guard);
            assert_eq!(
                read_unpinned(frame, page, &mut { byte }),
                Some(Some(7)),
                "{page_latch:?}"
            );

            let other = PageId {
                block: page.block + 1,
                ..page
            };
            assert_eq!(
                read_unpinned(frame, other, &mut { byte }),
                None,
                "another page's frame"
            );
            drop(pinned);
            storage.drop_rel(rel).unwrap();
            assert_eq!(
                read_unpinned(frame, page, &mut { byte }),
                None,
                "a page that is gone"
            );
        }
    }

    /// A change in the middle of a read is noticed, and the read is done again.
    #[test]
    fn a_change_during_a_read_is_noticed() {
        let (_dir, storage) = open(PageLatchVariant::LwLock, PageReadVariant::Optimistic);
        let rel = storage.create_rel().unwrap();
        let page = storage.extend(rel).unwrap().page_id();
        let calls = std::cell::Cell::new(0);
        let read = storage.read_page(page, |bytes| {
            let first = bytes.u8_at(PAGE_HEADER)?;
            if calls.replace(calls.get() + 1) == 0 {
                storage.pin(page).unwrap().exclusive().bytes_mut()[PAGE_HEADER] = 7;
            }
            Some((first, bytes.u8_at(PAGE_HEADER)?))
        });
        assert_eq!(read.unwrap(), Some((7, 7)));
        assert_eq!(calls.get(), 2);
    }

    /// Under the baseline no writer counts, so no page is ever read without a pin.
    #[test]
    fn pinned_counts_nothing() {
        let (_dir, storage) = open(PageLatchVariant::LwLock, PageReadVariant::Pinned);
        let rel = storage.create_rel().unwrap();
        let page = storage.extend(rel).unwrap().page_id();
        let frame = storage.pool.find(page).expect("an extended page is in memory");
        assert_eq!(read_unpinned(frame, page, &mut |_: RacyPage<'_>| Some(())), None);
        let kind = |page: RacyPage<'_>| page.u16_at(crate::page::KIND);
        let read = storage.read_page(page, kind).unwrap();
        assert_eq!(read, Some(crate::page::PageKind::NEW.0));
    }

    /// Reads without pins raise the usage as pins do, so the clock passes a page that is read and takes one that is
    /// not.
    #[test]
    fn the_clock_passes_a_page_that_is_read_without_pins() {
        let (_dir, storage) = open(PageLatchVariant::LwLock, PageReadVariant::Optimistic);
        let rel = storage.create_rel().unwrap();
        let pages = [(); 2].map(|_| storage.extend(rel).unwrap().page_id());
        let frames = pages.map(|page| storage.pool.find(page).expect("an extended page is in memory"));
        for frame in frames {
            while !frame.state.try_claim() {}
            frame.state.unpin();
        }
        for _ in 0..20 {
            storage.read_page(pages[0], |_| Some(())).unwrap();
        }
        assert!(!frames[0].state.try_claim(), "used");
        assert!(frames[1].state.try_claim(), "not used");
        let rounds = (2..).find(|_| frames[0].state.try_claim());
        assert_eq!(
            rounds,
            Some(crate::buffer::pin::ROUNDS_TO_CLAIM),
            "raised above its top"
        );
        for frame in frames {
            frame.state.unpin();
        }
    }
}
