//! Byte buffers that a thread uses again.
//!
//! An update makes four changes with a buffer each for what it writes, and one for the record. A thread's allocator hands
//! out the blocks of one size in turn, until all have been used: with many sessions each new block is one that no cache
//! holds any more, and in the profile of 64 clients a tenth of all time was spent at the first touch of a block
//! (`docs/performance.md`). A buffer that the thread had last is likelier to be there.
//!
//! # Rules
//! - A thread keeps at most [`KEPT`] buffers, none larger than [`LARGEST`].
//! - A buffer is empty when it is taken.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// Number of buffers that a thread keeps: as many as one change over two pages holds at a time, and some for tuples.
const KEPT: usize = 6;
/// The capacity of a new buffer, bytes: the line pointers of a pruned page, or a row and its header.
const FIRST: usize = 512;
/// The largest capacity that is kept, bytes: an image of a page fits.
const LARGEST: usize = 16 << 10;

thread_local! {
    static BUFFERS: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// A buffer of this thread's; dropping it gives it back.
#[derive(Debug)]
pub(crate) struct ByteBuffer(Vec<u8>);

impl ByteBuffer {
    /// An empty one.
    #[inline]
    pub(crate) fn take() -> Self {
        // A thread that ends has given its buffers up already.
        let kept = BUFFERS.try_with(|buffers| buffers.borrow_mut().pop());
        ByteBuffer(kept.ok().flatten().unwrap_or_else(|| Vec::with_capacity(FIRST)))
    }
}

impl Drop for ByteBuffer {
    #[inline]
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.0);
        if bytes.capacity() > LARGEST {
            return;
        }
        bytes.clear();
        let _ = BUFFERS.try_with(|buffers| {
            let mut buffers = buffers.borrow_mut();
            if buffers.len() < KEPT {
                buffers.push(bytes);
            }
        });
    }
}

impl Deref for ByteBuffer {
    type Target = Vec<u8>;

    #[inline]
    fn deref(&self) -> &Vec<u8> {
        &self.0
    }
}

impl DerefMut for ByteBuffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_empty_and_a_large_one_does_not() {
        std::thread::spawn(|| {
            let mut buffer = ByteBuffer::take();
            buffer.extend_from_slice(&[1; 2_000]);
            let (at, capacity) = (buffer.as_ptr(), buffer.capacity());
            drop(buffer);
            let mut again = ByteBuffer::take();
            assert_eq!((again.as_ptr(), again.capacity(), again.len()), (at, capacity, 0));
            again.reserve(LARGEST + 1);
            drop(again);
            assert_eq!(ByteBuffer::take().capacity(), FIRST);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn no_more_are_kept_than_a_change_needs() {
        std::thread::spawn(|| {
            let taken: Vec<ByteBuffer> = (0..2 * KEPT).map(|_| ByteBuffer::take()).collect();
            drop(taken);
            assert_eq!(BUFFERS.with(|buffers| buffers.borrow().len()), KEPT);
        })
        .join()
        .unwrap();
    }
}
