//! Records that the background threads log of their own account, so that these give them no reason to log more.
//!
//! | they log | because |
//! | --- | --- |
//! | `Running`, `Lengths`, `Checkpoint` | a checkpoint is made |
//! | `Running` | anything was logged since the last one, and its interval has passed |
//! | `Nothing` | the log has grown, and then nothing was flushed for a second |
//!
//! # Why these records are counted
//! An idle database logs a commit, then nothing. If the log writer's `Running` counted as something logged, the next one
//! would follow, for ever; so would `Nothing` after `Running` after `Nothing`. And if their bytes counted as growth, a
//! checkpoint would follow that changes nothing.
//!
//! # Rules
//! - R1: *quiet* is a position: up to there the log has ended with a `Running` record and with nothing behind it but
//!   records of the background. As long as the log ends there, no further `Running` record is due.
//! - R2: a record that begins at *quiet* moves it to its end; one that begins elsewhere has another's record before it and
//!   does not. A `Running` record moves it to its own end in any case.
//!
//! A record that had to be built again leaves a hole of the kind `Nothing` that is not noted: one `Running` record more.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::page::Lsn;
use crate::wal::record::{self, RecordKind};

/// The records of the background since the redo position. The orderings are relaxed: a value that is read late costs a
/// record more, or a checkpoint.
#[derive(Debug, Default)]
pub(crate) struct BackgroundLog {
    /// R1.
    quiet: AtomicU64,
    /// Bytes since the redo position.
    bytes: AtomicU64,
}

impl BackgroundLog {
    /// The redo position has moved to the log's end.
    pub(crate) fn redo_has_moved(&self) {
        self.bytes.store(0, Relaxed);
    }

    /// A record with `payload` bytes of payload was inserted, and ends at `end`.
    pub(crate) fn note(&self, kind: RecordKind, payload: usize, end: Lsn) {
        let size = record::size(payload) as u64;
        self.bytes.fetch_add(size, Relaxed);
        if kind == RecordKind::RUNNING {
            self.quiet.fetch_max(end.0, Relaxed);
        } else {
            // R2. Another thread's record in between: that one is of the background as well, or the position is not
            // ours to move.
            let _ = self.quiet.compare_exchange(end.0 - size, end.0, Relaxed, Relaxed);
        }
    }

    /// True if nothing but these records was logged since the last `Running` record, in a log that ends at `reserved`.
    pub(crate) fn is_quiet(&self, reserved: Lsn) -> bool {
        self.quiet.load(Relaxed) == reserved.0
    }

    /// Bytes of these records since the redo position.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_quiet_until_another_record_comes() {
        let log = BackgroundLog::default();
        log.note(RecordKind::RUNNING, 32, Lsn(1064));
        assert!(log.is_quiet(Lsn(1064)) && !log.is_quiet(Lsn(1100)));
        log.note(RecordKind::LENGTHS, 8, Lsn(1104));
        log.note(RecordKind::NOTHING, 0, Lsn(1136));
        assert!(log.is_quiet(Lsn(1136)));
        // A commit of 40 bytes, and the proof that it was flushed.
        log.note(RecordKind::NOTHING, 0, Lsn(1208));
        assert!(!log.is_quiet(Lsn(1208)));
        log.note(RecordKind::RUNNING, 40, Lsn(1280));
        assert!(log.is_quiet(Lsn(1280)));
        log.note(RecordKind::RUNNING, 32, Lsn(1250));
        assert!(
            log.is_quiet(Lsn(1280)),
            "two threads, and the later record was noted first"
        );
        assert_eq!(log.bytes(), 64 + 40 + 32 + 32 + 72 + 64);
        log.redo_has_moved();
        assert_eq!(log.bytes(), 0);
    }
}
