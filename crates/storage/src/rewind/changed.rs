//! The pages that differ, as both logs tell.
//!
//! # Fates
//! A transaction that had changed pages before the fork and was running there may have ended in one way here and in another
//! way at the server, or not yet. Hints are not logged (B4 of `buffer`), so a page that was changed before the fork and
//! written here after it may carry a hint of an end that the server does not know, and no log names that page. The *fates*
//! are the xids of these transactions, and a few more:
//!
//! | side | fates from it |
//! | --- | --- |
//! | began a timeline at the fork | none: what ran there has rolled back, so it sets hints of rollbacks only; if the other side has committed such a transaction, it is among the fates from that side |
//! | went on at the fork | xids below N that it has committed behind the fork; of the server, also those that may run at its first record of running transactions behind the fork: those that it lists, and those that it says nothing of |
//!
//! N is above each xid that has a record before the fork: the least xid of a change behind the fork on a side that began a
//! timeline there, for such a side hands out xids above all that it has replayed. One side at least did, or there is no fork.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use clearway_txn::{Status, Xid};

use super::page_set::PageSet;
use super::source::{LOG_BYTES_MAX, RewindSource};
use crate::error::{Result, StorageError};
use crate::page::{self, Lsn, PAGE_HEADER, PageKind, get_u64};
use crate::records::{ForStandbys, Meaning};
use crate::replication::running_transactions::RunningRecord;
use crate::wal::reader::LogReader;
use crate::wal::record::{RECORD_MAX, Record, RecordKind};
use crate::wal::{LogDevice, SEGMENT_SIZE, SegmentFiles};

/// More xids than this cannot have been running at one fork.
const RUNNING_MAX: u64 = 1 << 20;

/// The pages that records name.
#[derive(Debug, Default)]
pub(super) struct ChangedPages {
    pub(super) pages: PageSet,
    /// The kind of a record that changes what is no page, if there is one.
    pub(super) beside_pages: Option<RecordKind>,
}

/// The xids in the records of one side behind the fork.
#[derive(Debug, Default)]
pub(super) struct SideXids {
    /// Committed behind the fork, those at or above `below` left out.
    committed: BTreeSet<Xid>,
    /// The bound of `committed`, if it is known.
    below: Option<Xid>,
    /// The least xid with a change behind the fork.
    pub(super) least: Option<Xid>,
    /// The first record of running transactions behind the fork.
    running: Option<RunningRecord>,
}

impl SideXids {
    /// Those of a side of which commits below `below` are wanted; `None`: none are.
    pub(super) fn collecting(below: Option<Xid>) -> SideXids {
        SideXids {
            below,
            ..SideXids::default()
        }
    }
}

impl ChangedPages {
    /// Adds the pages that a record names. `xids` gets its xids, and is there for a record behind the fork.
    pub(super) fn add(&mut self, record: &Record<'_>, xids: Option<&mut SideXids>) -> Result<(), Malformed> {
        let meaning = Meaning::of(record).map_err(|_| Malformed)?;
        if let Some(xids) = xids {
            xids.add(record.xid, &meaning)?;
        }
        match meaning {
            Meaning::Change(change) => {
                for (page, _) in change.parts().map_err(|_| Malformed)? {
                    self.pages.insert(page);
                }
            }
            // The commit log is compared page by page.
            Meaning::End { .. } | Meaning::StatusPage { .. } => {}
            // Where both have made a relation of one number, each of its pages is in a record of one of them, or empty in both.
            Meaning::CreateRel(_) => {}
            Meaning::Own | Meaning::Unknown => self.beside_pages = Some(record.kind),
            Meaning::Checkpoint(_) | Meaning::Lengths(_) | Meaning::Nothing | Meaning::ForStandbys(_) => {}
        }
        Ok(())
    }
}

/// A record that makes no sense.
#[derive(Debug)]
pub(super) struct Malformed;

impl SideXids {
    fn add(&mut self, xid: Xid, meaning: &Meaning<'_>) -> Result<(), Malformed> {
        // The end of a transaction that ran at the fork may be logged by the side that has rolled it back there.
        if xid != Xid::INVALID && matches!(meaning, Meaning::Change(_)) {
            self.least = Some(self.least.map_or(xid, |least| least.min(xid)));
        }
        match meaning {
            Meaning::End {
                status: Status::Committed,
                ..
            } if self.below.is_some_and(|below| xid < below) => {
                self.committed.insert(xid);
            }
            Meaning::ForStandbys(record) if self.running.is_none() => {
                if let ForStandbys::Running(running) = record.decode().map_err(|_| Malformed)? {
                    self.running = Some(running);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Transactions whose ends may differ.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Fates {
    xids: BTreeSet<Xid>,
    /// More of them, which may run at the server.
    unlisted: Option<Range<u64>>,
}

impl Fates {
    /// Of the commits here.
    pub(super) fn of_commits(xids: SideXids) -> Fates {
        Fates {
            xids: xids.committed,
            unlisted: None,
        }
    }

    /// Of the commits at the server, and of what may run there below `bound`. Each checkpoint logs what runs.
    pub(super) fn of_server(side: SideXids, bound: Xid) -> Result<Fates> {
        let running = side.running.ok_or_else(|| StorageError::RewindSource {
            problem: "its log to the end of its checkpoint does not say which transactions run".to_owned(),
        })?;
        let mut xids = side.committed;
        xids.extend(running.running.into_iter().filter(|xid| *xid < bound));
        // One that was handed out after the list was made may have changed a page before the list was logged.
        let listed_below = if running.overflowed {
            running.oldest_running
        } else {
            running.next
        };
        Ok(Fates {
            xids,
            unlisted: (listed_below < bound).then_some(listed_below.0..bound.0),
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.xids.is_empty() && self.unlisted.is_none()
    }

    /// True if there are more than can have been running at once.
    pub(super) fn are_too_many(&self) -> bool {
        let unlisted = self.unlisted.as_ref().map_or(0, |range| range.end - range.start);
        self.xids.len() as u64 + unlisted > RUNNING_MAX
    }

    fn contains(&self, word: u64) -> bool {
        self.unlisted.as_ref().is_some_and(|range| range.contains(&word)) || self.xids.contains(&Xid(word))
    }

    /// True if the page may have a hint of one of them. The header of a version holds its xids in words of 8 bytes at
    /// multiples of 8 (`heap::layout`); another word of the same value does no harm.
    pub(super) fn may_be_on(&self, bytes: &[u8]) -> bool {
        page::kind(bytes) == PageKind::HEAP
            && (PAGE_HEADER..bytes.len())
                .step_by(8)
                .any(|at| self.contains(get_u64(bytes, at)))
    }
}

/// Reads the records of the directory's own log from `from`, where one begins, to `end`, where one ends; `xids` gets those
/// behind `fork`.
pub(super) fn read_own(
    device: &SegmentFiles,
    wal_dir: &Path,
    (from, fork, end): (Lsn, Lsn, Lsn),
    changed: &mut ChangedPages,
    xids: &mut SideXids,
) -> Result<()> {
    let mut reader = LogReader::up_to(device, from, end);
    loop {
        let next = reader.next_record();
        let next = next.map_err(|error| StorageError::io("read the log in", wal_dir, error))?;
        let Some((record, upto)) = next else { break };
        let behind = (upto > fork).then_some(&mut *xids);
        let added = changed.add(&record, behind);
        added.map_err(|Malformed| corrupt(wal_dir, upto, "a record makes no sense"))?;
    }
    match reader.position() {
        position if position < end => Err(StorageError::NotRewindable {
            dir: wal_dir.parent().unwrap_or(wal_dir).to_owned(),
            problem: format!(
                "its log from {from} to {end} tells what was changed here, and is not there from {position} on"
            ),
        }),
        _ => Ok(()),
    }
}

fn corrupt(wal_dir: &Path, position: Lsn, problem: &str) -> StorageError {
    StorageError::CorruptFile {
        file: wal_dir.to_owned(),
        offset: position.0 % SEGMENT_SIZE,
        problem: format!("{problem} before {position}"),
    }
}

/// Reads the records of the server's log from `from`, where one begins, to `end`, where one ends.
pub(super) fn read_server<S: RewindSource>(
    source: &mut S,
    (from, end): (Lsn, Lsn),
    changed: &mut ChangedPages,
    xids: &mut SideXids,
) -> Result<(), S::Error> {
    let mut window = LogWindow::default();
    let mut position = from;
    while position < end {
        let ahead = (end.0 - position.0).min(LOG_BYTES_MAX as u64) as usize;
        window.start = position;
        window.bytes.resize(ahead, 0);
        source.log(position, &mut window.bytes)?;
        let mut reader = LogReader::new(&window, position);
        loop {
            let next = reader.next_record();
            let next =
                next.map_err(|error| StorageError::io("read", Path::new("the server's log"), error))?;
            let Some((record, _)) = next else { break };
            changed
                .add(&record, Some(&mut *xids))
                .map_err(|Malformed| StorageError::DamagedRecord { position })?;
        }
        // A record is no longer than a window, so a window without a whole one is damaged.
        if reader.position() == position {
            return Err(StorageError::DamagedRecord { position }.into());
        }
        position = reader.position();
    }
    Ok(())
}

const _: () = assert!(LOG_BYTES_MAX >= RECORD_MAX);

/// A piece of a log, in memory.
#[derive(Debug, Default)]
struct LogWindow {
    start: Lsn,
    bytes: Vec<u8>,
}

impl LogDevice for LogWindow {
    fn make_room(&self, _position: u64) -> std::io::Result<()> {
        Ok(())
    }

    fn write(&self, _position: u64, _bytes: &[u8]) -> std::io::Result<()> {
        Err(std::io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync(&self, _from: u64, _to: u64) -> std::io::Result<()> {
        Ok(())
    }

    fn read(&self, position: u64, bytes: &mut [u8]) -> std::io::Result<usize> {
        let skipped = position.saturating_sub(self.start.0) as usize;
        let rest = self.bytes.get(skipped..).unwrap_or_default();
        let count = rest.len().min(bytes.len());
        bytes[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn forget_before(&self, _position: u64) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replication::running_transactions::encode;
    use crate::wal::link::LogLink;

    fn side(committed: &[u64], running: Option<RunningRecord>) -> SideXids {
        SideXids {
            committed: committed.iter().copied().map(Xid).collect(),
            running,
            ..SideXids::default()
        }
    }

    fn running(xids: &[u64], next: u64, overflowed: bool) -> Option<RunningRecord> {
        Some(RunningRecord {
            next: Xid(next),
            oldest_running: Xid(xids.first().copied().unwrap_or(next)),
            newest_ended: Xid(next - 1),
            overflowed,
            running: xids.iter().copied().map(Xid).collect(),
        })
    }

    /// Those of 1 to 99 that are among the fates.
    fn found(fates: &Fates) -> Vec<u64> {
        (1..100).filter(|&xid| fates.contains(xid)).collect()
    }

    #[test]
    fn fates_of_a_server_are_commits_what_runs_and_what_its_list_leaves_out() {
        let of_server = |committed: &[u64], running, bound| {
            found(&Fates::of_server(side(committed, running), Xid(bound)).unwrap())
        };
        assert_eq!(
            of_server(&[3, 7], running(&[5, 9], 12, false), 20),
            [3, 5, 7, 9, 12, 13, 14, 15, 16, 17, 18, 19]
        );
        // One transaction that has run for long does not make fates of all that came after it.
        assert_eq!(of_server(&[], running(&[5, 70], 80, false), 75), [5, 70]);
        assert_eq!(of_server(&[], running(&[5, 70], 80, false), 70), [5]);
        assert_eq!(of_server(&[], running(&[8], 20, true), 12), [8, 9, 10, 11]);
        assert_eq!(of_server(&[2], running(&[], 20, false), 20), [2]);
        let error = Fates::of_server(side(&[], None), Xid(20)).unwrap_err();
        assert!(matches!(error, StorageError::RewindSource { .. }), "{error}");
        assert_eq!(
            found(&Fates::of_commits(side(&[3], running(&[5], 9, false)))),
            [3]
        );
    }

    #[test]
    fn a_record_of_the_programs_own_is_noted() {
        let record = |kind| Record {
            kind,
            xid: Xid::INVALID,
            durable: Lsn(0),
            link: LogLink::FIRST,
            next_link: LogLink::FIRST,
            payload: &[],
        };
        let mut changed = ChangedPages::default();
        changed.add(&record(RecordKind::NOTHING), None).unwrap();
        assert_eq!(changed.beside_pages, None);
        for kind in [RecordKind::own(3), RecordKind::own(255)] {
            changed.add(&record(kind), None).unwrap();
            assert_eq!(changed.beside_pages, Some(kind));
        }
    }

    #[test]
    fn fates_are_counted() {
        let none = Fates::of_server(side(&[], running(&[], 20, false)), Xid(20)).unwrap();
        assert!(none.is_empty() && !none.are_too_many());
        let of_range =
            |count: u64| Fates::of_server(side(&[3], running(&[4], 5, false)), Xid(5 + count)).unwrap();
        assert!(!of_range(RUNNING_MAX - 2).are_too_many());
        assert!(of_range(RUNNING_MAX - 1).are_too_many());
    }

    #[test]
    fn the_xids_of_a_side_are_commits_below_its_bound_the_least_change_and_the_first_list() {
        let mut xids = SideXids::collecting(Some(Xid(10)));
        let ended = |status| Meaning::End { status, time_us: 0 };
        for (xid, status) in [
            (4, Status::Committed),
            (5, Status::Aborted),
            (9, Status::Committed),
            (10, Status::Committed),
        ] {
            xids.add(Xid(xid), &ended(status)).unwrap();
        }
        assert_eq!(xids.committed, BTreeSet::from([Xid(4), Xid(9)]));
        assert_eq!(xids.least, None);
        for list in [running(&[6], 8, false), running(&[], 30, false)] {
            let payload = encode(&list.unwrap().as_running());
            let record = Record {
                kind: RecordKind::RUNNING,
                xid: Xid::INVALID,
                durable: Lsn(0),
                link: LogLink::FIRST,
                next_link: LogLink::FIRST,
                payload: &payload,
            };
            xids.add(record.xid, &Meaning::of(&record).unwrap()).unwrap();
        }
        assert_eq!(xids.running, running(&[6], 8, false));
    }
}
