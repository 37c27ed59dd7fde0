//! The report of a recovery.

use std::time::Duration;

use crate::page::Lsn;
use crate::wal::record::RecordKind;

/// Result of a recovery.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// True if the last run ended with a shutdown (or there was none).
    pub clean: bool,
    /// Records replayed.
    pub records: u64,
    /// Commits among them.
    pub commits: u64,
    /// The start of replay.
    pub redo: Lsn,
    /// The end of the log.
    pub end: Lsn,
    /// The duration of recovery.
    pub elapsed: Duration,
}

impl RecoveryReport {
    /// Counts a record that was replayed.
    pub(crate) fn count(&mut self, kind: RecordKind) {
        self.records += 1;
        self.commits += u64::from(kind == RecordKind::COMMIT);
    }
}
