//! Memory from the system, without the program's allocator: for what is made while a thread waits for a latch, perhaps of one
//! that calls the allocator while it holds it.

use core::ptr::{self, NonNull};

/// Pages of zeros, unmapped when dropped.
#[derive(Debug)]
pub struct ZeroedPages {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the pages belong to the value alone, whichever thread has it.
unsafe impl Send for ZeroedPages {}

impl ZeroedPages {
    /// At least `bytes` bytes, at the start of a page; `None` if the system has no memory, or `bytes` is 0. A page that is
    /// never written takes no memory.
    pub fn new(bytes: usize) -> Option<Self> {
        // SAFETY: a new private mapping, which replaces no other.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return None;
        }
        let start = NonNull::new(start.cast())?;
        Some(Self { start, bytes })
    }

    /// The start of the pages.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// The start of the pages, which are kept until the process ends.
    pub fn leak(self) -> NonNull<u8> {
        let start = self.start;
        core::mem::forget(self);
        start
    }
}

impl Drop for ZeroedPages {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`, as long as it was made, and used by no other. A failure leaves it there.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_zero_and_writable_and_too_many_are_refused() {
        let pages = ZeroedPages::new(10_000).unwrap();
        // SAFETY: ten thousand bytes of the pages, which are this test's.
        let bytes = unsafe { core::slice::from_raw_parts_mut(pages.start.as_ptr(), 10_000) };
        assert!(bytes.iter().all(|byte| *byte == 0));
        bytes.fill(7);
        drop(pages);
        assert!(ZeroedPages::new(0).is_none());
        assert!(ZeroedPages::new(1 << 60).is_none());
    }
}
