//! Reading a page: the switch `page_read`.
//!
//! Protects: nothing by itself. It decides what a reader writes to a frame in order to know that what it reads is the
//! page, and whole: a pin and a latch, or nothing.
//!
//! # An example
//! Page 7 is in frame 3, its version is 40. Alice wants to read page 7; Bob needs a frame for page 9.
//!
//! | time | Alice | Bob | frame 3 |
//! | --- | --- | --- | --- |
//! | 1 | finds in the map: page 7 may be in frame 3 | | page 7, version 40 |
//! | 2 | loads the version: 40, which is even. The tag is page 7 | | |
//! | 3 | reads the first half | takes the frame, makes the version 41, sets the tag | page 9, version 41 |
//! | 4 | reads the second half: bytes of page 9 | reads page 9 in | page 9, version 41 |
//! | 5 | loads the version: not 40. Drops what it read, and asks the map again | | |
//!
//! Alice has written nothing, so nothing that she did is in Bob's way, and she was never in danger: the memory of frame
//! 3 belongs to the pool for as long as the pool lives, whatever page is in it.
//!
//! # Contract
//! [`BufferPool::read`](super::BufferPool::read) calls a function with the page's bytes, and returns its result. The result is that of a call at
//! one instant between the begin and the end of `read` (*linearization*), on a page that no worker was changing.
//! Results of other calls are dropped. So the function has no effect but on memory of its caller's, which each call
//! writes anew; and it does not trust what it reads: it ends, and does not panic, whatever the bytes are.
//!
//! # Rules
//! - V1: the version of a frame is odd while its bytes or its tag change, and while it holds no page. It rises by one
//!   when it becomes odd and by one when it becomes even; it never falls.
//! - V2: one worker at a time moves the version: the holder of the content latch in exclusive mode, or the frame's
//!   owner (P2 of [`pin`](super::pin)). No worker has the latch of a frame with an owner, because each has a pin.
//! - V3: there is one way to a frame's bytes for writing, `Frame::bytes_to_write`, and it makes the version odd. So no
//!   writer can forget to. The version becomes even when the exclusive latch is about to be released, or when the owner
//!   is about to set `VALID`.
//! - V4: the owner makes the version odd before the map forgets the page: as a part of the condition of `remove_if`.
//! - V5: hints (B4) change under an even version: one word at a time, and any mix of old and new hints is right.
//!
//! | writer | makes the version odd | makes it even |
//! | --- | --- | --- |
//! | a change of a row, a split, a prune, vacuum, replay | first look at the bytes for writing, under the exclusive latch | `PageExclusive` is dropped |
//! | a worker that evicts the page, or drops its relation | take or seize, before the map forgets the page | – |
//! | the same that reads another page in, or extends | is odd | before `VALID` |
//! | a worker that writes the page out | never: it changes a copy | – |
//!
//! An exclusive latch under which no byte changes does not move the version, nor does update mode.
//!
//! # With `page_latch`
//! The version is the frame's, not the latch's, so `optimistic` works with every variant of `page_latch`. Under
//! `pinned` no frame counts, and no writer pays for it. The hybrid latch has a version of its own, which says nothing
//! about the tag: under `pinned` with `hybrid` a reader pins the page and reads it without the latch; under
//! `optimistic` that version is used only where a page is pinned anyway.
//!
//! | variant | a read of a page in memory writes | the reader is refused by |
//! | --- | --- | --- |
//! | `pinned` | pin, latch, release, unpin; with `page_latch = hybrid` pin and unpin | a writer |
//! | `optimistic` | nothing, once the page's usage is at its top | a writer or an eviction, three times; then as `pinned` |
//!
//! The map's writes come on top: `partitioned` takes the partition's latch shared, `chash` announces the scan.
//!
//! # What reads this way
//! | reader | under `optimistic` | under `pinned` |
//! | --- | --- | --- |
//! | a descent of a B+tree, on inner pages | a look at each | the same, pinned (and latched, unless `page_latch = hybrid`) |
//! | `BTree::lookup`, on leaves | a look at each, which copies the tids | pinned and latched |
//! | `Heap::fetch` | a look, which copies a settled chain; else pinned and latched | pinned and latched |
//! | cursors over ranges, scans of heaps, all that changes pages | pinned and latched | pinned and latched |

mod optimistic;
mod pinned;

use clearway_machine::{Machine, switch};

use super::frame::Frame;
use super::{PinnedPage, RacyPage};
use crate::error::Result;
use crate::page::PageId;

switch! {
    /// The way in which a descent, and the lookup of a row, read a page.
    pub enum PageReadVariant = "page_read", best Optimistic, planned [] {
        /// Pinned, and under its latch (without it under page_latch = hybrid).
        Pinned = "pinned",
        /// Without a pin or a latch, under the version of its frame; pinned and latched after three failures.
        Optimistic = "optimistic",
    }
    why {
        Optimistic: "With one client it is level with pinned; with 16 it is 1.09 times as fast on two CPUs."
            in "docs/mechanisms/page-read.md#what-was-measured";
    }
}

/// The operations of the pool that a read needs.
pub(super) trait Pages<M: Machine> {
    /// A frame that may hold `page`, without a pin (M6).
    fn find(&self, page: PageId) -> Option<&Frame<M>>;

    /// Pins `page`, reading it in if it is not in memory.
    fn pin(&self, page: PageId) -> Result<PinnedPage<'_, M>>;
}

impl PageReadVariant {
    /// Result of `read` on `page`, by the contract at the top of this module.
    #[inline]
    pub(super) fn read<M: Machine, R>(
        self,
        pages: &impl Pages<M>,
        page: PageId,
        read: impl FnMut(RacyPage<'_>) -> Option<R>,
    ) -> Result<Option<R>> {
        match self {
            PageReadVariant::Pinned => pinned::read(pages, page, read),
            PageReadVariant::Optimistic => optimistic::read(pages, page, read),
        }
    }
}
