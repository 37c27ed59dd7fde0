//! Recovery to a point: where the log is taken to end.
//!
//! ```text
//!   log      … change 7 │ commit 7, 11:59:58 │ change 9 │ commit 8, 12:00:01 │ commit 9, 12:00:02 …
//!   time 12:00:00                                       ▲ before the first later commit
//!   transaction 8                                                            ▲ after its end
//!   position                              ▲ after the record that it lies in, or at whose end it is
//! ```
//!
//! The first pass over the log (`scan`) looks for the point. What it finds is the end of the log
//! for everything that follows. To replay the log up to the point and to throw the rest away afterwards would be wrong:
//! xids, relation numbers and lengths of behind the point would count.
//!
//! - A transaction that is under way at the point has no commit record before it, and so counts as rolled back.
//! - Commit times are taken before the records get their places. So they may be in the log in another order than
//!   that of the times, and the first later one counts.
//! - The point must not be before the position from which on the copy is consistent: its files may hold changes up to
//!   there. For a backup that is the backup's end, and for the copied directory of a server that has stopped, the end of
//!   its log.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clearway_txn::{Status, Xid};

use super::archive::{self, Fetched, Gap};
use crate::disk::Disk;
use crate::error::{Result, StorageError};
use crate::files::control_file::Control;
use crate::page::Lsn;
use crate::records::Meaning;
use crate::wal::timeline::History;

/// A point of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecoveryPoint {
    /// The end of the log.
    End,
    /// Before the first commit that was made later than this.
    Time {
        /// In microseconds since 2000-01-01 UTC.
        microseconds: i64,
        /// As it was given.
        shown: String,
    },
    /// After the record that this position lies in, or at whose end it is.
    Position(Lsn),
    /// After the end of this transaction.
    Transaction(Xid),
}

impl fmt::Display for RecoveryPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecoveryPoint::End => write!(f, "the end of the log"),
            RecoveryPoint::Time { shown, .. } => write!(f, "time {shown}"),
            RecoveryPoint::Position(position) => write!(f, "position {position}"),
            RecoveryPoint::Transaction(xid) => write!(f, "the end of transaction {}", xid.0),
        }
    }
}

/// The point to which a copy is to be recovered, and the archive for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryTarget {
    /// A directory of `pg_receivewal` with the log that the copy lacks.
    pub archive: Option<PathBuf>,
    /// The point.
    pub point: RecoveryPoint,
}

/// A target whose log is in the directory.
#[derive(Debug)]
pub(crate) struct PreparedTarget {
    target: RecoveryTarget,
    fetched: Fetched,
}

impl RecoveryTarget {
    /// Takes the log that is needed from the archive.
    pub(crate) fn prepare(
        &self,
        disk: &Arc<dyn Disk>,
        wal_dir: &Path,
        fsync: bool,
        control: &Control,
    ) -> Result<PreparedTarget> {
        let upto = match self.point {
            RecoveryPoint::Position(position) => Some(position),
            _ => None,
        };
        let fetched = archive::fetch(disk, wal_dir, fsync, control, self.archive.as_deref(), upto)?;
        Ok(PreparedTarget {
            target: self.clone(),
            fetched,
        })
    }
}

impl PreparedTarget {
    /// The history of the log that leads to the point.
    pub(crate) fn history(&self) -> &History {
        &self.fetched.history
    }

    /// The reason for the new timeline, for its history file.
    pub(crate) fn reason(&self) -> String {
        match &self.target.point {
            RecoveryPoint::Time { shown, .. } => {
                format!("recovered to before the first commit after {shown}")
            }
            point => format!("recovered to {point}"),
        }
    }
}

/// Looks for the point among the records of the log.
#[derive(Debug)]
pub(super) struct TargetSearch<'a> {
    target: Option<&'a PreparedTarget>,
    is_reached: bool,
    /// Time of the last commit seen.
    last_commit: Option<i64>,
}

impl<'a> TargetSearch<'a> {
    /// Without a target there is nothing to be found.
    pub(super) fn new(target: Option<&'a PreparedTarget>) -> TargetSearch<'a> {
        TargetSearch {
            target,
            is_reached: false,
            last_commit: None,
        }
    }

    fn point(&self) -> &'a RecoveryPoint {
        self.target
            .map_or(&RecoveryPoint::End, |target| &target.target.point)
    }

    /// True if the log is to end before a record of this meaning.
    pub(super) fn ends_before(&mut self, meaning: &Meaning<'_>) -> bool {
        if let RecoveryPoint::Time { microseconds, .. } = self.point()
            && let Meaning::End {
                status: Status::Committed,
                time_us,
            } = meaning
        {
            self.is_reached = time_us > microseconds;
            if !self.is_reached {
                self.last_commit = Some(*time_us);
            }
        }
        self.is_reached
    }

    /// True if the log is to end after a record of transaction `of`, which ends at `end`.
    pub(super) fn ends_after(&mut self, of: Xid, meaning: &Meaning<'_>, end: Lsn) -> bool {
        self.is_reached = match self.point() {
            RecoveryPoint::End | RecoveryPoint::Time { .. } => false,
            RecoveryPoint::Position(position) => end >= *position,
            RecoveryPoint::Transaction(xid) => of == *xid && matches!(meaning, Meaning::End { .. }),
        };
        self.is_reached
    }

    /// True if the log ends at the point, and not by itself.
    pub(super) fn is_reached(&self) -> bool {
        self.is_reached
    }

    /// An error if the log that ends at `end` does not end where the target wants it to.
    pub(super) fn check(&self, end: Lsn) -> Result<()> {
        let Some(target) = self.target else {
            return Ok(());
        };
        let point = self.point();
        if self.is_reached {
            let needed = target.fetched.needed;
            return if end < needed {
                Err(StorageError::PointTooEarly {
                    point: point.to_string(),
                    end,
                    needed,
                })
            } else {
                Ok(())
            };
        }
        if let (Some(Gap { missing, next }), Some(archive)) = (&target.fetched.gap, &target.target.archive) {
            return Err(StorageError::ArchiveGap {
                archive: archive.clone(),
                missing: missing.clone(),
                next: next.clone(),
            });
        }
        if *point == RecoveryPoint::End {
            return Ok(());
        }
        Err(StorageError::PointNotReached {
            point: point.to_string(),
            log_end: end,
            seen: self.seen(),
        })
    }

    /// The log's distance from a point that was not reached, in words.
    fn seen(&self) -> String {
        match (self.point(), self.last_commit) {
            (RecoveryPoint::Time { microseconds, .. }, Some(last)) => {
                let before = microseconds.saturating_sub(last) as f64 / 1e6;
                format!("its last commit was made {before:.3} s before that time")
            }
            (RecoveryPoint::Time { .. }, None) => "it holds no commit".to_owned(),
            (RecoveryPoint::Transaction(_), _) => {
                "that transaction ended before the log begins that was read, or later, or never".to_owned()
            }
            _ => "no record reaches that position".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wal::link::LogLink;
    use crate::wal::record::{Record, RecordKind};

    fn prepared(point: RecoveryPoint, gap: Option<Gap>) -> PreparedTarget {
        PreparedTarget {
            target: RecoveryTarget {
                archive: Some("archive".into()),
                point,
            },
            fetched: Fetched {
                history: History::first(),
                needed: Lsn(200),
                gap,
            },
        }
    }

    /// A log of these records, each of 100 bytes from 100 on; where the search ends it, and what it says then.
    fn search(prepared: &PreparedTarget, records: &[(RecordKind, u64, i64)]) -> (Lsn, Result<()>) {
        let mut search = TargetSearch::new(Some(prepared));
        let mut end = Lsn(100);
        for (kind, xid, time) in records {
            let payload = time.to_le_bytes();
            let record = Record {
                kind: *kind,
                xid: Xid(*xid),
                durable: Lsn(0),
                link: LogLink::FIRST,
                next_link: LogLink::FIRST,
                payload: &payload,
            };
            let meaning = Meaning::of(&record).unwrap();
            if search.ends_before(&meaning) {
                break;
            }
            end = Lsn(end.0 + 100);
            if search.ends_after(record.xid, &meaning, end) {
                break;
            }
        }
        (end, search.check(end))
    }

    const LOG: &[(RecordKind, u64, i64)] = &[
        (RecordKind::CHANGE, 7, 0),
        (RecordKind::COMMIT, 7, 50),
        (RecordKind::ABORT, 9, 99),
        (RecordKind::COMMIT, 8, 70),
        // Its time was taken before that of transaction 8, and its place after.
        (RecordKind::COMMIT, 10, 60),
        (RecordKind::CHANGE, 8, 0),
    ];

    fn time(microseconds: i64) -> RecoveryPoint {
        RecoveryPoint::Time {
            microseconds,
            shown: "then".to_owned(),
        }
    }

    #[test]
    fn the_log_ends_at_the_point() {
        for (point, end) in [
            (time(50), 400),
            (time(69), 400),
            (time(49), 200),
            (RecoveryPoint::Transaction(Xid(7)), 300),
            (RecoveryPoint::Transaction(Xid(9)), 400),
            (RecoveryPoint::Transaction(Xid(8)), 500),
            (RecoveryPoint::Position(Lsn(400)), 400),
            (RecoveryPoint::Position(Lsn(401)), 500),
            (RecoveryPoint::End, 700),
        ] {
            let (found, result) = search(&prepared(point.clone(), None), LOG);
            assert_eq!(found, Lsn(end), "{point}");
            result.unwrap();
        }
    }

    #[test]
    fn a_point_that_cannot_be_reached_is_an_error_that_says_why() {
        for (point, part) in [
            (time(70), "0.000 s before"),
            (time(1_500_060), "1.500 s before"),
            (RecoveryPoint::Transaction(Xid(77)), "transaction 77"),
            (RecoveryPoint::Position(Lsn(701)), "the log ends at 0/2BC"),
        ] {
            let (_, result) = search(&prepared(point, None), LOG);
            let error = result.unwrap_err();
            assert!(matches!(error, StorageError::PointNotReached { .. }), "{error}");
            assert!(error.to_string().contains(part), "{error}");
        }
        let gap = Gap {
            missing: "000000010000000000000004".to_owned(),
            next: "000000010000000000000006".to_owned(),
        };
        for point in [RecoveryPoint::End, time(70)] {
            let error = search(&prepared(point, Some(gap.clone())), LOG).1.unwrap_err();
            assert!(
                error
                    .to_string()
                    .contains("archive lacks log segment 000000010000000000000004"),
                "{error}"
            );
        }
        search(&prepared(time(50), Some(gap)), LOG).1.unwrap();
    }

    #[test]
    fn a_point_before_the_copy_is_consistent_is_an_error() {
        let log = &[(RecordKind::COMMIT, 7, 50), (RecordKind::COMMIT, 8, 70)];
        for point in [time(49), RecoveryPoint::Position(Lsn(100))] {
            let mut prepared = prepared(point, None);
            prepared.fetched.needed = Lsn(201);
            let error = search(&prepared, log).1.unwrap_err();
            assert!(matches!(error, StorageError::PointTooEarly { .. }), "{error}");
            assert!(error.to_string().contains("0/C9"), "{error}");
        }
    }
}
