//! Counts of the pages that a thread uses (EXPLAIN with BUFFERS, `pg_stat_database`, `pg_stat_statements`).
//!
//! A thread adds to counts of its own, so that counting needs no atomics. A statement's pages are the difference of two
//! readings, since one thread runs it.
//!
//! | count | a page that was |
//! | --- | --- |
//! | `hit` | pinned, or read without a pin, and in memory |
//! | `read` | read from its file |
//! | `dirtied` | changed, and was as its file has it before |
//! | `written` | written to its file, or added to it |

use std::cell::Cell;

/// Pages that a thread has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PageCounts {
    /// Found in memory.
    pub hit: u64,
    /// Read from their files.
    pub read: u64,
    /// Changed for the first time since they were written.
    pub dirtied: u64,
    /// Written to their files.
    pub written: u64,
}

/// The counts as a thread keeps them.
struct Counts {
    /// The counts when they were taken last.
    taken: Cell<PageCounts>,
    hit: Cell<u64>,
    read: Cell<u64>,
    dirtied: Cell<u64>,
    written: Cell<u64>,
}

thread_local! {
    static COUNTS: Counts = const {
        Counts {
            taken: Cell::new(PageCounts { hit: 0, read: 0, dirtied: 0, written: 0 }),
            hit: Cell::new(0),
            read: Cell::new(0),
            dirtied: Cell::new(0),
            written: Cell::new(0),
        }
    };
}

impl PageCounts {
    /// Those of the calling thread, since it began.
    pub fn of_thread() -> PageCounts {
        COUNTS.with(|counts| PageCounts {
            hit: counts.hit.get(),
            read: counts.read.get(),
            dirtied: counts.dirtied.get(),
            written: counts.written.get(),
        })
    }

    /// Those of the calling thread since it has asked for this last: so each page is in one sum.
    pub fn not_taken() -> PageCounts {
        let now = PageCounts::of_thread();
        now.since(COUNTS.with(|counts| counts.taken.replace(now)))
    }

    /// Those since an earlier reading on the same thread.
    #[must_use]
    pub fn since(self, before: PageCounts) -> PageCounts {
        PageCounts {
            hit: self.hit.wrapping_sub(before.hit),
            read: self.read.wrapping_sub(before.read),
            dirtied: self.dirtied.wrapping_sub(before.dirtied),
            written: self.written.wrapping_sub(before.written),
        }
    }

    #[inline]
    pub(super) fn add_hit() {
        COUNTS.with(|counts| counts.hit.set(counts.hit.get().wrapping_add(1)));
    }

    pub(super) fn add_read() {
        COUNTS.with(|counts| counts.read.set(counts.read.get().wrapping_add(1)));
    }

    pub(super) fn add_dirtied() {
        COUNTS.with(|counts| counts.dirtied.set(counts.dirtied.get().wrapping_add(1)));
    }

    pub(super) fn add_written() {
        COUNTS.with(|counts| counts.written.set(counts.written.get().wrapping_add(1)));
    }
}

#[cfg(test)]
mod tests {
    use super::PageCounts;
    use crate::storage::{Storage, StorageOptions};
    use crate::{BufferPoolOptions, PAGE_HEADER, PageReadVariant};

    /// Pages that `work` uses.
    fn used(work: impl FnOnce()) -> PageCounts {
        let before = PageCounts::of_thread();
        work();
        PageCounts::of_thread().since(before)
    }

    #[test]
    fn pages_are_counted_with_and_without_pins() {
        let dir = tempfile::tempdir().unwrap();
        let options = StorageOptions {
            pool: BufferPoolOptions {
                page_read: PageReadVariant::Optimistic,
                ..BufferPoolOptions::default()
            },
            fsync: false,
            ..StorageOptions::default()
        };
        let storage = Storage::open(dir.path(), options).unwrap().0;
        let rel = storage.create_rel().unwrap();
        let mut page = None;
        let extended = used(|| page = Some(storage.extend(rel).unwrap().page_id()));
        assert_eq!((extended.hit, extended.dirtied, extended.written), (0, 1, 1));
        let page = page.unwrap();
        let read = || assert_eq!(storage.read_page(page, |_| Some(())).unwrap(), Some(()));
        assert_eq!(used(read).hit, 1, "without a pin");
        assert_eq!(used(|| drop(storage.pin(page).unwrap())).hit, 1);
        let pinned = storage.pin(page).unwrap();
        let mut guard = pinned.exclusive();
        guard.bytes_mut()[PAGE_HEADER] = 7;
        drop(guard);
        assert_eq!(used(read).hit, 1, "pinned by another");
        assert!(PageCounts::not_taken().hit > 0);
        assert_eq!(PageCounts::not_taken(), PageCounts::default());
    }
}
