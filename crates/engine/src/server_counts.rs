//! Counts of the server and of the database since a moment, as views show them.

use crate::replication_status::ConflictCounts;
use crate::session_counts::CountedWork;

/// Counts since a moment, in microseconds since 2000.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Since<T> {
    pub(crate) counts: T,
    pub(crate) reset_us: i64,
}

/// Checkpoints, and pages that sessions have read and written.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WriterCounts {
    pub(crate) timed: u64,
    pub(crate) requested: u64,
    pub(crate) pages: u64,
    pub(crate) write_us: u64,
    pub(crate) sync_us: u64,
    /// Pages that sessions have written,
    pub(crate) written: u64,
    /// and read from files.
    pub(crate) read: u64,
}

impl WriterCounts {
    /// Those since an earlier reading.
    pub(crate) fn since(self, before: WriterCounts) -> WriterCounts {
        WriterCounts {
            timed: self.timed.saturating_sub(before.timed),
            requested: self.requested.saturating_sub(before.requested),
            pages: self.pages.saturating_sub(before.pages),
            write_us: self.write_us.saturating_sub(before.write_us),
            sync_us: self.sync_us.saturating_sub(before.sync_us),
            written: self.written.saturating_sub(before.written),
            read: self.read.saturating_sub(before.read),
        }
    }
}

/// The work of the database's sessions, and what a standby's replay has ended.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DatabaseCounts {
    pub(crate) work: CountedWork,
    pub(crate) conflicts: ConflictCounts,
}
