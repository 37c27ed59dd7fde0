//! The memory of all frames' pages, in one piece.

use std::alloc::{Layout, handle_alloc_error};
use std::ptr::null_mut;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::buffer::frame::PageBytes;

/// Pages of zeros. They come from the operating system itself, which provides each piece when it is first
/// touched: the allocator may write zeros to all of it.
pub(crate) struct PageMemory {
    start: *mut PageBytes,
    bytes: usize,
}

// SAFETY: plain memory; the frames decide which worker may touch which part.
unsafe impl Sync for PageMemory {}
// SAFETY: as above.
unsafe impl Send for PageMemory {}

impl PageMemory {
    /// Room for `pages`, at least one.
    pub(crate) fn new(pages: usize) -> Self {
        assert!(pages > 0, "a buffer pool without frames");
        let layout = Layout::array::<PageBytes>(pages).expect("a buffer pool smaller than the address space");
        let bytes = layout.size();
        // SAFETY: a new mapping, which replaces none.
        let mapped = unsafe {
            mmap_anonymous(
                null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        };
        match mapped {
            Ok(start) => Self {
                start: start.cast(),
                bytes,
            },
            Err(_) => handle_alloc_error(layout),
        }
    }

    pub(crate) fn page(&self, number: usize) -> *const PageBytes {
        debug_assert!(number * size_of::<PageBytes>() < self.bytes);
        // SAFETY: the number is below the count that was mapped.
        unsafe { self.start.add(number) }
    }

    /// Asks for huge pages: a pool that is large and read at random needs fewer translations then. The allocator does
    /// not ask for any, since the memory of sessions is small pieces all over.
    pub(crate) fn advise_huge_pages(&self) {
        // SAFETY: the range is the mapping, and this advice changes no contents.
        let advised = unsafe { madvise(self.start.cast(), self.bytes, Advice::LinuxHugepage) };
        if let Err(error) = advised {
            tracing::debug!(%error, "the buffer pool has no huge pages");
        }
    }
}

impl Drop for PageMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`; the frames that point into it go with the pool. Of a mapping this cannot fail.
        let unmapped = unsafe { munmap(self.start.cast(), self.bytes) };
        debug_assert!(unmapped.is_ok());
    }
}

// A mapping begins at a page of the operating system, of at least 4 KiB.
const _: () = assert!(align_of::<PageBytes>() <= 4_096);
