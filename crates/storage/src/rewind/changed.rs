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
//! | began a timeline at the fork | none: what ran there has rolled back, and a hint of a rollback is right on both sides if the other one has none |
//! | went on at the fork | xids below N that it has committed behind the fork; of the server, also those that may run at its first record of running transactions behind the fork |
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
use crate::wal::reader::LogReader;
use crate::wal::record::{RECORD_MAX, Record};
use crate::wal::{LogDevice, SEGMENT_SIZE, SegmentFiles};

/// More xids than this cannot have been running at one fork.
const RUNNING_MAX: u64 = 1 << 20;

/// The pages that records name.
#[derive(Debug, Default)]
pub(super) struct ChangedPages(pub(super) PageSet);

/// The xids in the records of one side behind the fork.
#[derive(Debug, Default)]
pub(super) struct SideXids {
    /// Committed behind the fork, those at or above `below` left out.
    committed: BTreeSet<Xid>,
    /// The bound of `committed`, if it is known.
    below: Option<Xid>,
    /// The least xid with a change behind the fork.
    pub(super) least: Option<Xid>,
    /// The oldest xid that runs at the first record of running transactions behind the fork.
    pub(super) oldest_running: Option<Xid>,
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
    /// Adds what a record says that ends at `end`; `xids`, if it is behind the fork.
    pub(super) fn add(&mut self, record: &Record<'_>, xids: Option<&mut SideXids>) -> Result<(), Malformed> {
        let meaning = Meaning::of(record).map_err(|_| Malformed)?;
        if let Some(xids) = xids {
            xids.add(record.xid, &meaning)?;
        }
        match meaning {
            Meaning::Change(change) => {
                for (page, _) in change.parts().map_err(|_| Malformed)? {
                    self.0.insert(page);
                }
            }
            // The commit log is compared page by page.
            Meaning::End { .. } | Meaning::StatusPage { .. } => {}
            // Where both have made a relation of one number, each of its pages is in a record of one of them, or empty in both.
            Meaning::CreateRel(_) => {}
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
            Meaning::ForStandbys(record) if self.oldest_running.is_none() => {
                if let ForStandbys::Running(running) = record.decode().map_err(|_| Malformed)? {
                    self.oldest_running = Some(running.oldest_running);
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
    /// Those that may run at the server.
    running: Option<Range<u64>>,
}

impl Fates {
    /// Of the commits here.
    pub(super) fn of_commits(xids: SideXids) -> Fates {
        Fates {
            xids: xids.committed,
            running: None,
        }
    }

    /// Of the commits at the server, and of what may run there below `bound`.
    pub(super) fn of_server(xids: SideXids, bound: Xid) -> Fates {
        let oldest = xids.oldest_running.map_or(bound, |oldest| oldest.min(bound));
        Fates {
            xids: xids.committed,
            running: (oldest < bound).then_some(oldest.0..bound.0),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.xids.is_empty() && self.running.is_none()
    }

    /// True if there are more than can have been running at once.
    pub(super) fn are_too_many(&self) -> bool {
        let running = self.running.as_ref().map_or(0, |range| range.end - range.start);
        self.xids.len() as u64 + running > RUNNING_MAX
    }

    fn contains(&self, word: u64) -> bool {
        self.running.as_ref().is_some_and(|range| range.contains(&word)) || self.xids.contains(&Xid(word))
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
