//! A frame: one page's place in memory.

use std::cell::UnsafeCell;
use std::sync::atomic::Ordering;

use clearway_latch::{LatchClass, LwLock, LwLockOptions};
use clearway_machine::{AtomicWord, DataCell, Machine, Native, WaitEvent};

use crate::buffer::page_latch::{PageLatch, PageLatchVariant};
use crate::buffer::page_version::PageVersion;
use crate::buffer::pin::{FrameState, VALID};
use crate::page::{PAGE_SIZE, PageId};

static BUFFER_IO: LatchClass = LatchClass::new("BufferIO", WaitEvent::BufferIo, 405);

/// Tag of a frame that holds no page.
const NO_PAGE: u64 = u64::MAX;

/// The bytes of a page, aligned for direct I/O and for atomic access to words.
#[repr(C, align(4096))]
pub(crate) struct PageBytes(pub(crate) UnsafeCell<[u8; PAGE_SIZE]>);

/// One frame, without its bytes, on cache lines of its own. The order of the fields is the layout: a session that pins
/// a page and latches it touches the first line only.
#[repr(C, align(128))]
pub(crate) struct Frame<M: Machine = Native> {
    pub(crate) state: FrameState<M>,
    counts_changes: bool,
    pub(crate) content: PageLatch<M>,
    tag: M::U64,
    bytes: *const PageBytes,
    /// Counts changes under `page_read = optimistic`.
    pub(in crate::buffer) version: PageVersion<M>,
    /// Represents the bytes where a checker looks at every access; natively it is empty.
    watched: M::Data<()>,
    second: SecondLine<M>,
}

/// The options of a frame.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FrameOptions {
    /// The switch `page_latch`.
    pub(crate) page_latch: PageLatchVariant,
    /// Algorithm of its latches.
    pub(crate) lwlock: LwLockOptions,
    /// True if its version counts changes, for `page_read = optimistic`.
    pub(crate) counts_changes: bool,
}

/// The fields that only reading in and writing out use.
#[repr(align(64))]
struct SecondLine<M: Machine> {
    io: LwLock<M>,
    /// Stands for the bytes where a checker looks at readers without a latch: each write of bytes changes it.
    writes: M::U32,
}

// SAFETY: the bytes are reached only through page guards, which hold the content latch, or by the holder of
// the I/O latch of a frame that is not valid yet.
unsafe impl<M: Machine> Sync for Frame<M> {}
// SAFETY: as above; a frame belongs to no thread.
unsafe impl<M: Machine> Send for Frame<M> {}

impl<M: Machine> Frame<M> {
    /// A frame without a page.
    pub(crate) fn new(options: FrameOptions, bytes: *const PageBytes) -> Self {
        Self {
            state: FrameState::empty(),
            counts_changes: options.counts_changes,
            content: PageLatch::new(options.page_latch, options.lwlock),
            tag: M::U64::new(NO_PAGE),
            bytes,
            version: PageVersion::without_page(),
            watched: M::Data::new(()),
            second: SecondLine {
                io: LwLock::new(&BUFFER_IO, options.lwlock),
                writes: M::U32::new(0),
            },
        }
    }

    /// The I/O latch.
    #[inline]
    pub(crate) fn io(&self) -> &LwLock<M> {
        &self.second.io
    }

    /// The page that the frame holds, for a worker that has pinned it.
    pub(crate) fn page(&self) -> PageId {
        PageId::from_u64(self.tag.load(Ordering::Relaxed))
    }

    /// The page of the tag, if there is one: without a pin it may be another one by now.
    pub(crate) fn tagged_page(&self) -> Option<PageId> {
        let tag = self.tag.load(Ordering::Relaxed);
        (tag != NO_PAGE).then(|| PageId::from_u64(tag))
    }

    /// Sets the tag. Only the frame's owner does (P1 of [`pin`](super::pin)); what the map, or the state with `VALID`,
    /// shows to others comes after it.
    pub(crate) fn set_tag(&self, page: Option<PageId>) {
        self.tag
            .store(page.map_or(NO_PAGE, PageId::to_u64), Ordering::Relaxed);
    }

    /// Makes the caller the owner of the frame, if its pin is the only one and the page is clean (P2, V4).
    pub(crate) fn try_take(&self) -> bool {
        let taken = self.state.try_take();
        if taken {
            self.begin_change();
        }
        taken
    }

    /// As [`try_take`](Self::try_take), for a page that is not needed any more, changed or not.
    pub(crate) fn try_seize(&self) -> bool {
        let seized = self.state.try_seize();
        if seized {
            self.begin_change();
        }
        seized
    }

    /// Ends the ownership: the bytes are those of the tagged page. `bits` come with `VALID`.
    pub(crate) fn show_page(&self, bits: u32) {
        // V2: before another worker may change the page.
        self.end_change();
        self.state.set(VALID | bits);
    }

    #[inline]
    fn begin_change(&self) {
        if self.counts_changes {
            self.version.begin_change();
        }
    }

    /// The worker that may have changed the bytes is about to let other workers do so (V3).
    #[inline]
    pub(crate) fn end_change(&self) {
        if self.counts_changes {
            self.version.end_change();
        }
    }

    /// Tells a checker that bytes are read without a latch: what the reader sees of them, it sees of `writes`. Its
    /// value as the reader may see it, for [`check_unpinned_read`](Self::check_unpinned_read).
    #[inline]
    pub(crate) fn note_unpinned_read(&self) -> u32 {
        if !M::EXPLORED {
            return 0;
        }
        let seen = self.second.writes.load(Ordering::Relaxed);
        // A read-modify-write reads the newest value, as the bytes in a checker's memory are the newest.
        self.second.writes.fetch_add(0, Ordering::Relaxed);
        seen
    }

    /// Tells a checker that a read has been found valid. Bytes in its memory are never old ones, so this compares
    /// instead: if no worker has begun a change since `version`, the writes that the reader saw are all there are.
    #[inline]
    pub(crate) fn check_unpinned_read(&self, version: u64, seen: u32) {
        if M::EXPLORED {
            let writes = self.second.writes.fetch_add(0, Ordering::Relaxed);
            assert!(
                seen == writes || !self.version.is_newest(version),
                "a valid read may have seen bytes of before its version"
            );
        }
    }

    /// Tells a checker that a hint is about to be set: the Release of that, on a word that the checker follows. Before, so
    /// that who sees the hint among the bytes sees this.
    #[inline]
    pub(crate) fn note_hint(&self) {
        if M::EXPLORED {
            self.second.writes.fetch_add(0, Ordering::Release);
        }
    }

    /// Tells a checker that hints were read, by a plain read: the newest, as the bytes in a checker's memory are.
    #[inline]
    pub(crate) fn note_hints_read(&self) {
        if M::EXPLORED {
            self.second.writes.fetch_add(0, Ordering::Relaxed);
        }
    }

    /// The bytes, without telling a checker: for callers that may find them half changed and detect that by
    /// other means.
    pub(crate) fn bytes(&self) -> *mut [u8; PAGE_SIZE] {
        // SAFETY: the pool's memory lives as long as its frames; `UnsafeCell::get` makes no reference to the content.
        unsafe { (*self.bytes).0.get() }
    }

    /// The bytes, to read them under the content latch.
    #[inline]
    pub(crate) fn page_bytes_to_read(&self) -> &PageBytes {
        self.watched.with(|_| ());
        // SAFETY: the pool's memory lives as long as its frames; the reference is to an `UnsafeCell`.
        unsafe { &*self.bytes }
    }

    /// The bytes, to write them, under the exclusive latch or as the owner (V3).
    #[inline]
    pub(crate) fn bytes_to_write(&self) -> *mut [u8; PAGE_SIZE] {
        self.begin_change();
        if M::EXPLORED {
            self.second.writes.fetch_add(1, Ordering::Relaxed);
        }
        self.watched.with_mut(|_| ());
        self.bytes()
    }
}

// One cache line for the fields that each pin uses, and one for the I/O latch; `watched` takes no space.
const _: () = assert!(size_of::<Frame>() == 128);
const _: () =
    assert!(std::mem::offset_of!(Frame, watched) <= 64 && std::mem::offset_of!(Frame, second) == 64);
