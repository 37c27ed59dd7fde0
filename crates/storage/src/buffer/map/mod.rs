//! The map: which frame holds a page. The switch `buffer_map`.
//!
//! Protects: the entries, page to frame number. What is in a frame is the business of its state ([`pin`](super::pin)).
//!
//! # An example
//! Page 7 is in frame 3. Alice wants page 7; Bob needs a frame for page 9, and has claimed frame 3 with the clock hand.
//!
//! | time | Alice | Bob |
//! | --- | --- | --- |
//! | 1 | finds: page 7 is in frame 3 | |
//! | 2 | | takes page 7 out of the map, and reads page 9 into frame 3 |
//! | 3 | pins frame 3, and reads page 9 as if it were page 7 | |
//!
//! Finding and pinning must be one step for Bob. So a map does not say where a page is: it pins the page's frame.
//!
//! # Invariants, for every variant
//! - M1: a page is in one frame at most. Of two workers that insert a page, one gets `Found`.
//! - M2: if the state that a lookup returns has `VALID`, the frame holds the page, and keeps it as long as the pin
//!   (P1). The lookup counts from the instant of the pin. Without `VALID` the caller follows P3.
//! - M3: a page goes in one step with its frame: `remove_if` evaluates the condition when no lookup can get a pin that
//!   it does not see. If the condition holds, every later lookup finds nothing, or a state without `VALID`.
//! - M4: a frame has the page's tag before the page can be found.
//! - M5: a worker that calls `remove_if` has a pin on the frame. So if it finds the page's entry there, the frame has
//!   the page when the condition is evaluated.
//! - M6: `find` pins nothing, so its answer is a hint: the page may be in that frame, in another, or in none. Rules V1
//!   to V4 of [`page_read`](super::page_read) say how a caller can tell. `None` means "pin it" and nothing else.
//!
//! # Steps
//! - `lookup_and_pin`: find the page's entry, pin the frame. A variant with latches keeps the entry's latch meanwhile.
//!   A variant without them pins first, and then compares the frame's tag; if it is another page's, it gives the pin
//!   back and searches again.
//! - `insert_or_pin`: the caller owns the frame, which has the tag already, and holds the I/O latch, at which others
//!   wait until the page is read in. If the page has an entry, pin its frame instead.
//! - `remove_if`: find the entry, evaluate the condition, remove the entry. The condition is one atomic step of the
//!   frame's state that clears `VALID` when it holds (`try_take`, `try_seize`). So a variant without latches may
//!   evaluate it first: a lookup that still finds the entry finds no `VALID`.
//!
//! | variant | a lookup that hits |
//! | --- | --- |
//! | `partitioned` | acquires and releases the partition's latch shared; pins |
//! | `chash` | announces the scan and fences; walks a list, a cache line a node; pins; compares the frame's tag |
//! | `concurrent` | reads one or two cache lines; pins; compares the frame's tag |
//!
//! A variant is a file with a [`PageMap`].

mod chash;
mod concurrent;
mod partitioned;
#[cfg(test)]
mod tests;

use clearway_latch::{ClassOf, LatchClass, LwLockOptions};
use clearway_machine::{Machine, Native, WaitEvent, variants};

use super::frame::Frame;
use crate::page::PageId;

/// Partitions of `partitioned`, unless a pool's options say another number.
pub(super) const PARTITIONS: u32 = 128;

/// The latches on parts of a map.
static BUFFER_MAPPING: LatchClass = LatchClass::new("BufferMapping", WaitEvent::BufferMapping, 410);

/// The class of those latches, for latches that do not carry a reference to it.
#[derive(Debug)]
struct BufferMapping;

impl ClassOf for BufferMapping {
    #[inline]
    fn class() -> &'static LatchClass {
        &BUFFER_MAPPING
    }
}

/// A frame with a pin of the caller's, and its state with that pin.
pub(super) type PinnedFrame<'a, M> = (&'a Frame<M>, u32);

/// Result of [`PageMap::insert_or_pin`].
pub(super) enum Insertion<'a, M: Machine> {
    /// The page is in the caller's frame.
    Inserted,
    /// The page is in this frame, which is pinned.
    Found(PinnedFrame<'a, M>),
}

/// The operations of a variant. Each function gets all frames, in the order of their numbers.
pub(super) trait PageMap<M: Machine>: Sized {
    /// An empty map for pages in `frames` frames; `partitions` is how many parts a map with latches has.
    fn new(frames: usize, partitions: u32, lwlock: LwLockOptions) -> Self;

    /// Pins the frame of `page`; `None` if it is in no frame.
    fn lookup_and_pin<'a>(&self, page: PageId, frames: &'a [Frame<M>]) -> Option<PinnedFrame<'a, M>>;

    /// A frame that may hold `page`; no pin (M6).
    fn find<'a>(&self, page: PageId, frames: &'a [Frame<M>]) -> Option<&'a Frame<M>>;

    /// Enters `page` as the one in frame `number`, unless it is in another: then that one is pinned.
    fn insert_or_pin<'a>(&self, page: PageId, number: u32, frames: &'a [Frame<M>]) -> Insertion<'a, M>;

    /// Removes `page` if it is in frame `number` and `condition` holds for that frame. True if it was removed.
    fn remove_if(
        &self,
        page: PageId,
        number: u32,
        frames: &[Frame<M>],
        condition: impl FnOnce(&Frame<M>) -> bool,
    ) -> bool;
}

variants! {
    /// The table from page to buffer.
    pub enum BufferMapVariant = "buffer_map", best Concurrent, planned [] {
        /// Partitions with a latch each, 128 of them.
        Partitioned = "partitioned": partitioned::Map<M>,
        /// Lists of nodes, walked without a latch; nodes are used again when no scan can see them.
        Chash = "chash": chash::Map<M>,
        /// One-line buckets, read without a latch and without a store; the frame's own tag decides.
        Concurrent = "concurrent": concurrent::Map<M>,
    }
    why {
        Concurrent: "With optimistic reads and snapshots used again, a point SELECT changes no line that another session \
            uses; with one client it takes 2 % fewer instructions than under partitioned."
            in "docs/mechanisms/page-read.md#what-was-measured";
        Chash: "A fence for each page, and a latch less for each miss, which several clients pay for with the lines of \
            the free lists: 4 to 12 % less than partitioned where every read misses, simulated."
            in "docs/mechanisms/buffer-pool.md#numbers-that-matter";
    }

    /// The map of a pool.
    pub(super) enum BufferMap[M: Machine = Native], called by dispatch;
}

impl<M: Machine> BufferMap<M> {
    /// An empty map for pages in `frames` frames; `partitions` is how many parts `partitioned` has.
    pub(super) fn new(
        variant: BufferMapVariant,
        frames: usize,
        partitions: u32,
        lwlock: LwLockOptions,
    ) -> Self {
        dispatch!(new variant => PageMap::new(frames, partitions, lwlock))
    }
}

impl<M: Machine> BufferMap<M> {
    /// [`PageMap::lookup_and_pin`].
    #[inline]
    pub(super) fn lookup_and_pin<'a>(
        &self,
        page: PageId,
        frames: &'a [Frame<M>],
    ) -> Option<PinnedFrame<'a, M>> {
        dispatch!(self, map => map.lookup_and_pin(page, frames))
    }

    /// [`PageMap::find`].
    #[inline]
    pub(super) fn find<'a>(&self, page: PageId, frames: &'a [Frame<M>]) -> Option<&'a Frame<M>> {
        dispatch!(self, map => map.find(page, frames))
    }

    /// [`PageMap::insert_or_pin`].
    pub(super) fn insert_or_pin<'a>(
        &self,
        page: PageId,
        number: u32,
        frames: &'a [Frame<M>],
    ) -> Insertion<'a, M> {
        dispatch!(self, map => map.insert_or_pin(page, number, frames))
    }

    /// [`PageMap::remove_if`].
    pub(super) fn remove_if(
        &self,
        page: PageId,
        number: u32,
        frames: &[Frame<M>],
        condition: impl FnOnce(&Frame<M>) -> bool,
    ) -> bool {
        dispatch!(self, map => map.remove_if(page, number, frames, condition))
    }
}

/// Fibonacci hashing of a page's number. A client cannot choose pages that collide: the numbers are our own.
#[inline]
fn hash(page: u64) -> u64 {
    let mixed = page.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ mixed >> 32
}
