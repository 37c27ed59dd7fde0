//! Counts of the log that a thread writes (`pg_stat_statements`, `pg_stat_wal`).
//!
//! As [`PageCounts`](crate::PageCounts): a thread adds to counts of its own, so that counting needs no atomics, and what a
//! statement has written is the difference of two readings.

use std::cell::Cell;

/// The log that a thread has written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogCounts {
    /// Records.
    pub records: u64,
    /// Whole pages in them.
    pub images: u64,
    /// Bytes of the records, with their headers and what fills them up.
    pub bytes: u64,
}

thread_local! {
    static RECORDS: Cell<u64> = const { Cell::new(0) };
    static IMAGES: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<u64> = const { Cell::new(0) };
}

impl LogCounts {
    /// That of the calling thread, since it began.
    pub fn of_thread() -> LogCounts {
        LogCounts {
            records: RECORDS.get(),
            images: IMAGES.get(),
            bytes: BYTES.get(),
        }
    }

    /// That since an earlier reading on the same thread.
    #[must_use]
    pub fn since(self, before: LogCounts) -> LogCounts {
        LogCounts {
            records: self.records.wrapping_sub(before.records),
            images: self.images.wrapping_sub(before.images),
            bytes: self.bytes.wrapping_sub(before.bytes),
        }
    }

    /// A record is in the log.
    #[inline]
    pub(super) fn add_record(bytes: u64) {
        RECORDS.set(RECORDS.get().wrapping_add(1));
        BYTES.set(BYTES.get().wrapping_add(bytes));
    }

    /// Adds whole pages that are in the log.
    pub(crate) fn add_images(images: u64) {
        IMAGES.set(IMAGES.get().wrapping_add(images));
    }
}

#[cfg(test)]
mod tests {
    use clearway_txn::Xid;

    use super::LogCounts;
    use crate::change::AtomicChange;
    use crate::page::PageKind;
    use crate::storage::{Storage, StorageOptions};
    use crate::wal::record::size;

    #[test]
    fn records_and_whole_pages_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let options = StorageOptions {
            fsync: false,
            ..StorageOptions::default()
        };
        let storage = Storage::open(dir.path(), options).unwrap().0;
        let rel = storage.create_rel().unwrap();
        let pinned = storage.extend(rel).unwrap();
        let mut page = pinned.exclusive();
        let mut counted = |work: &mut dyn FnMut(&mut crate::buffer::PageExclusive<'_>)| {
            let before = LogCounts::of_thread();
            work(&mut page);
            LogCounts::of_thread().since(before)
        };
        let begun = counted(&mut |page| {
            let mut change = AtomicChange::new(&*storage.wal, Xid(3));
            change.init_page(page, PageKind::HEAP, 0);
            change.finish().unwrap();
        });
        assert_eq!((begun.records, begun.images), (1, 0));
        let written = |page: &mut crate::buffer::PageExclusive<'_>| {
            let mut change = AtomicChange::new(&*storage.wal, Xid(3));
            change.write_u16(page, 100, 7);
            change.finish().unwrap();
        };
        let small = counted(&mut |page| written(page));
        assert_eq!((small.records, small.images), (1, 0));
        assert!((size(0) as u64..200).contains(&small.bytes), "{}", small.bytes);
        // The first change behind a redo position.
        storage.wal.move_redo();
        let whole = counted(&mut |page| written(page));
        assert_eq!((whole.records, whole.images), (1, 1));
        let before = storage.wal.totals();
        storage.wal.flush(storage.wal.reserved());
        let written = storage.wal.totals().since(before);
        assert!(written.records >= 3 && written.bytes >= begun.bytes + small.bytes + whole.bytes);
        assert!(written.writes >= 1 && written.syncs >= 1);
        assert_eq!(storage.wal.totals().images, 1);
    }
}
