//! A frame: one page's place in memory, with the word that holds its state.
//!
//! | bits | name | meaning |
//! | --- | --- | --- |
//! | 0–17 | pin count | who relies on the tag |
//! | 18–20 | usage | how often the clock hand passes before it may evict |
//! | 24 | `DIRTY` | changed since it was written |
//! | 25 | `VALID` | the content is the page's |
//! | 26 | `CHANGING` | an atomic change is under way: the content latch must not be let go |
//! | 27 | `REDIRTIED` | changed since the last copy for writing was made: that write leaves the page dirty |
//!
//! Frames and the pool are generic over the machine, so that the checkers run this protocol and not a copy of it
//! (`tests/loom_frames.rs`, `tests/shuttle_pool.rs`).

use std::cell::UnsafeCell;
use std::sync::atomic::Ordering;

use clearway_latch::{LatchClass, LwLock, LwLockOptions};
use clearway_machine::{AtomicWord, DataCell, Machine, Native, WaitEvent};

use crate::buffer::page_latch::{PageLatch, PageLatchVariant};
use crate::page::{PAGE_SIZE, PageId};

static BUFFER_IO: LatchClass = LatchClass::new("BufferIO", WaitEvent::BufferIo, 405);

pub(crate) const PIN: u32 = 1;
pub(crate) const PIN_MASK: u32 = (1 << 18) - 1;
const USAGE: u32 = 1 << 18;
const USAGE_MASK: u32 = 7 << 18;
const USAGE_MAX: u32 = 5 << 18;
pub(crate) const DIRTY: u32 = 1 << 24;
pub(crate) const VALID: u32 = 1 << 25;
pub(crate) const CHANGING: u32 = 1 << 26;
pub(crate) const REDIRTIED: u32 = 1 << 27;
/// The bits that a change sets.
pub(crate) const CHANGED: u32 = DIRTY | REDIRTIED;

/// Tag of a frame that holds no page.
pub(crate) const NO_PAGE: u64 = u64::MAX;

/// The bytes of a page, aligned for direct I/O and for atomic access to words.
#[repr(C, align(4096))]
pub(crate) struct PageBytes(pub(crate) UnsafeCell<[u8; PAGE_SIZE]>);

/// One frame, without its bytes, on cache lines of its own.
#[repr(align(128))]
pub(crate) struct Frame<M: Machine = Native> {
    pub(crate) state: M::U32,
    pub(crate) tag: M::U64,
    pub(crate) content: PageLatch<M>,
    pub(crate) io: LwLock<M>,
    bytes: *const PageBytes,
    /// Represents the bytes where a checker looks at every access; natively it is empty.
    watched: M::Data<()>,
}

// SAFETY: the bytes are reached only through page guards, which hold the content latch, or by the holder of
// the I/O latch of a frame that is not valid yet.
unsafe impl<M: Machine> Sync for Frame<M> {}
// SAFETY: as above; a frame belongs to no thread.
unsafe impl<M: Machine> Send for Frame<M> {}

impl<M: Machine> Frame<M> {
    pub(crate) fn new(page_latch: PageLatchVariant, lwlock: LwLockOptions, bytes: *const PageBytes) -> Self {
        Self {
            state: M::U32::new(0),
            tag: M::U64::new(NO_PAGE),
            content: PageLatch::new(page_latch, lwlock),
            io: LwLock::new(&BUFFER_IO, lwlock),
            bytes,
            watched: M::Data::new(()),
        }
    }

    pub(crate) fn page(&self) -> PageId {
        PageId::from_u64(self.tag.load(Ordering::Relaxed))
    }

    /// The bytes, without telling a checker: for callers that may find them half changed and detect that by
    /// other means.
    pub(crate) fn bytes(&self) -> *mut [u8; PAGE_SIZE] {
        // SAFETY: the pool's memory lives as long as its frames; `UnsafeCell::get` makes no reference to the content.
        unsafe { (*self.bytes).0.get() }
    }

    /// The bytes, to read them.
    #[inline]
    pub(crate) fn bytes_to_read(&self) -> *const [u8; PAGE_SIZE] {
        self.watched.with(|_| ());
        self.bytes()
    }

    /// The bytes, to write them.
    #[inline]
    pub(crate) fn bytes_to_write(&self) -> *mut [u8; PAGE_SIZE] {
        self.watched.with_mut(|_| ());
        self.bytes()
    }

    /// Adds a pin and raises the usage; the caller holds the latch of the partition that maps to this frame.
    /// Returns the state with the pin.
    #[inline]
    pub(crate) fn pin(&self) -> u32 {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            debug_assert!(state & PIN_MASK < PIN_MASK, "a frame has too many pins");
            let mut new = state + PIN;
            if new & USAGE_MASK < USAGE_MAX {
                new += USAGE;
            }
            // Acquire: pairs with the Release in `unpin`.
            match self
                .state
                .compare_exchange_weak(state, new, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => return new,
                Err(found) => state = found,
            }
        }
    }

    #[inline]
    pub(crate) fn unpin(&self) {
        // Release: what this pin's owner did comes before an eviction that sees the pin gone.
        let before = self.state.fetch_sub(PIN, Ordering::Release);
        debug_assert!(before & PIN_MASK > 0, "a frame is unpinned once too often");
    }

    /// One look of the clock hand: takes a pin if the frame has none and its usage is 0; else lowers the
    /// usage.
    pub(crate) fn try_claim(&self) -> bool {
        let state = self.state.load(Ordering::Relaxed);
        if state & PIN_MASK != 0 {
            return false;
        }
        let new = if state & USAGE_MASK != 0 {
            state - USAGE
        } else {
            state + PIN
        };
        let swapped = self
            .state
            .compare_exchange(state, new, Ordering::Acquire, Ordering::Relaxed)
            .is_ok();
        swapped && new & PIN_MASK != 0
    }

    /// Takes the only pin and makes the page clean; `false` if another worker has the frame pinned.
    pub(crate) fn try_seize(&self) -> bool {
        let state = self.state.load(Ordering::Relaxed);
        let new = (state & !CHANGED) + PIN;
        state & PIN_MASK == 0
            && self
                .state
                .compare_exchange(state, new, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }

    /// A copy of the page has reached its file: the page is clean, unless it was changed after the copy was made.
    pub(crate) fn written(&self) {
        let mut state = self.state.load(Ordering::Relaxed);
        while state & REDIRTIED == 0 {
            // Release: the write comes before a checkpoint that sees the page clean and syncs the file.
            match self
                .state
                .compare_exchange(state, state & !DIRTY, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(found) => state = found,
            }
        }
    }

    pub(crate) fn has(&self, bits: u32) -> bool {
        self.state.load(Ordering::Acquire) & bits != 0
    }

    pub(crate) fn set(&self, bits: u32) {
        self.state.fetch_or(bits, Ordering::Release);
    }

    pub(crate) fn clear(&self, bits: u32) {
        self.state.fetch_and(!bits, Ordering::Release);
    }
}

// One cache line for the fields that each pin uses, and one for the I/O latch; `watched` takes no space.
const _: () = assert!(size_of::<Frame>() == 128);
