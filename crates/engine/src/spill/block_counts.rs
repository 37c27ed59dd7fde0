//! Counts of the blocks of temporary files that a thread has read and written (EXPLAIN with BUFFERS).

use std::cell::Cell;

use clearway_storage::PAGE_SIZE;

thread_local! {
    static READ: Cell<u64> = const { Cell::new(0) };
    static WRITTEN: Cell<u64> = const { Cell::new(0) };
}

/// Blocks of a page's size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct BlockCounts {
    pub(crate) read: u64,
    pub(crate) written: u64,
}

impl BlockCounts {
    /// Those of the calling thread, since it began.
    pub(crate) fn of_thread() -> BlockCounts {
        BlockCounts {
            read: READ.get(),
            written: WRITTEN.get(),
        }
    }

    /// Those since an earlier reading on the same thread.
    pub(crate) fn since(self, before: BlockCounts) -> BlockCounts {
        BlockCounts {
            read: self.read.wrapping_sub(before.read),
            written: self.written.wrapping_sub(before.written),
        }
    }

    pub(super) fn add_read(bytes: usize) {
        READ.set(READ.get().wrapping_add(bytes.div_ceil(PAGE_SIZE) as u64));
    }

    pub(super) fn add_written(bytes: usize) {
        WRITTEN.set(WRITTEN.get().wrapping_add(bytes.div_ceil(PAGE_SIZE) as u64));
    }
}
