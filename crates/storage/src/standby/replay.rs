//! Replay of one record: what each kind does on a standby.
//!
//! | record | replay |
//! | --- | --- |
//! | any with an xid | all xids up to that one have begun, since they are handed out in sequence |
//! | `Change` | its pages, all latched (S5). A transaction that changes definitions is remembered |
//! | `Commit`, `Abort` | commit log; definitions, if it has changed any; then the xid has ended (S4) |
//! | `Running` | the first one makes the known xids complete; a later one ends what a crash of the primary cut off |
//! | `Cleanup` | waits for sessions that may see what is going to be removed (S6) |
//! | `Lengths` | adds the empty pages that the primary's files had at its checkpoint |
//! | `Checkpoint` | a restartpoint may be made there |
//! | `CreateRel`, `StatusPage` | as in recovery |
//!
//! Replay of what the directory holds when it is opened, before there are sessions, is the same, but that a page that is
//! replaced is not read: it may be torn (`recovery`).

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use clearway_txn::{KnownXidsState, ReplayedXids, Snapshot, Status, Xid};

use super::restartpoint::ReplayedCheckpoint;
use super::{Standby, lock};
use crate::buffer::PageExclusive;
use crate::change::{self, PagePart};
use crate::data_directory;
use crate::error::{Result, StorageError};
use crate::lengths::{self, Lengths};
use crate::page::{self, Lsn, PageId, RelId, get_u32, get_u64};
use crate::recovery;
use crate::running;
use crate::storage::Storage;
use crate::wal::record::{Record, RecordKind};

/// What replay keeps from one stretch of log to the next.
#[derive(Debug, Default)]
pub(super) struct ReplayState {
    /// Transactions that have changed definitions and have not ended.
    definers: BTreeSet<Xid>,
    /// The newest xid met.
    newest: Xid,
}

/// The worker that replays, at work.
pub(super) struct Replayer<'a> {
    storage: &'a Storage,
    standby: &'a Standby,
    known: ReplayedXids<'a>,
    state: MutexGuard<'a, ReplayState>,
    log_dir: PathBuf,
    /// There are sessions, and each page was whole when the directory was opened.
    with_sessions: bool,
}

impl<'a> Replayer<'a> {
    pub(super) fn new(storage: &'a Storage, standby: &'a Standby, with_sessions: bool) -> Result<Self> {
        let known = standby.known.replay();
        Ok(Self {
            storage,
            standby,
            known: known.ok_or_else(|| standby.failed("another worker replays"))?,
            state: lock(&standby.replay),
            log_dir: storage.dir().join(data_directory::LOG),
            with_sessions,
        })
    }

    pub(super) fn log_dir(&self) -> &PathBuf {
        &self.log_dir
    }

    /// Replay has nothing to do.
    pub(super) fn idle(&mut self) {
        self.known.idle();
    }

    /// The xid after the newest that was met.
    pub(super) fn next_xid(&self) -> Xid {
        self.state.newest.next().max(self.known.next())
    }

    /// All that the primary was running have ended: without its end in the log, a transaction counts as rolled back.
    pub(super) fn end_all(&mut self) {
        self.known.remove_preceding(Xid(u64::MAX), &[]);
        self.state.definers.clear();
    }

    /// Replays the record between the two positions.
    pub(super) fn replay(&mut self, record: &Record<'_>, start: Lsn, end: Lsn) -> Result<()> {
        if record.xid.is_valid() {
            self.has_begun(record.xid)?;
        }
        // The pages that the record changes may get into their files from now on.
        self.storage.wal.continue_at(end);
        match record.kind {
            RecordKind::Change => self.change(record, start, end)?,
            RecordKind::Commit | RecordKind::Abort => self.end_transaction(record, start, end)?,
            RecordKind::Running => self.running(record, start)?,
            RecordKind::Cleanup => self.clean_up(record, start)?,
            RecordKind::Lengths => self.add_pages(record)?,
            RecordKind::Checkpoint => self.checkpoint(record, start, end)?,
            RecordKind::CreateRel => {
                self.recover(record, start, end)?;
                let rel = get_u32(record.payload, 0);
                self.storage.next_rel.fetch_max(rel + 1, Ordering::AcqRel);
            }
            RecordKind::StatusPage | RecordKind::Nothing => self.recover(record, start, end)?,
        }
        self.standby.progress.replayed_up_to(end);
        Ok(())
    }

    fn recover(&self, record: &Record<'_>, start: Lsn, end: Lsn) -> Result<()> {
        recovery::apply(
            self.storage,
            &self.standby.status,
            record,
            start,
            end,
            &self.log_dir,
        )
    }

    fn malformed(&self, record: &Record<'_>, start: Lsn) -> StorageError {
        recovery::malformed(record, start, &self.log_dir)
    }

    /// `xid`, and so all before it, have begun.
    fn has_begun(&mut self, xid: Xid) -> Result<()> {
        self.state.newest = self.state.newest.max(xid);
        let next = self.known.next();
        if xid >= next && self.standby.known.state() != KnownXidsState::Unknown {
            self.known
                .add(next, xid)
                .map_err(|error| self.standby.failed(error))?;
        }
        Ok(())
    }

    fn change(&mut self, record: &Record<'_>, start: Lsn, end: Lsn) -> Result<()> {
        let mut parts = Vec::new();
        let mut rest = record.payload;
        while !rest.is_empty() {
            parts.push(change::next_part(&mut rest).ok_or_else(|| self.malformed(record, start))?);
        }
        if record.xid.is_valid() && parts.iter().any(|(page, _)| page.rel == RelId::CATALOG) {
            self.state.definers.insert(record.xid);
        }
        if self.with_sessions {
            change_pages(self.storage, &parts, end)
        } else {
            parts
                .iter()
                .try_for_each(|(page, part)| recovery::apply_part(self.storage, *page, part, end))
        }
    }

    fn end_transaction(&mut self, record: &Record<'_>, start: Lsn, end: Lsn) -> Result<()> {
        self.recover(record, start, end)?;
        if let Some(time) = record.payload.first_chunk() {
            self.standby.progress.committed_at(i64::from_le_bytes(*time));
        }
        let has_defined = self.state.definers.remove(&record.xid) && record.kind == RecordKind::Commit;
        let observer = self.standby.observer.get().filter(|_| has_defined);
        if let Some(observer) = observer {
            let mut snapshot = Snapshot::default();
            snapshot
                .take_known(&self.standby.known)
                .map_err(|error| self.standby.failed(error))?;
            snapshot.count_as_ended(record.xid);
            observer.publish_definitions(record.xid, &snapshot)?;
        }
        self.known.remove(record.xid);
        if let Some(observer) = observer {
            observer.definitions_are_seen(record.xid)?;
        }
        Ok(())
    }

    fn running(&mut self, record: &Record<'_>, start: Lsn) -> Result<()> {
        let running = running::decode(record.payload).map_err(|_| self.malformed(record, start))?;
        let newest = self.state.newest;
        self.state.newest = newest.max(Xid(running.next.0 - 1));
        let refused = |error| self.standby.failed(error);
        if self.standby.known.state() != KnownXidsState::Unknown {
            self.known.apply(&running.as_record()).map_err(refused)?;
            return Ok(());
        }
        let mut failed = None;
        let begun = running::begin_set(&running, newest, |xid| {
            let status = self.storage.status(xid);
            status
                .map(|status| status != Status::InProgress)
                .unwrap_or_else(|error| {
                    failed.get_or_insert(error);
                    false
                })
        });
        if let Some(error) = failed {
            return Err(error);
        }
        self.known.apply(&begun.as_record()).map_err(refused)?;
        Ok(())
    }

    fn clean_up(&mut self, record: &Record<'_>, start: Lsn) -> Result<()> {
        let deleter = record
            .payload
            .first_chunk()
            .ok_or_else(|| self.malformed(record, start))?;
        let deleter = Xid(u64::from_le_bytes(*deleter));
        if !self.with_sessions {
            self.standby.cleaned.0.fetch_max(deleter.0, Ordering::Relaxed);
        }
        if self.standby.known.state() == KnownXidsState::Unknown {
            return Ok(());
        }
        // None of them runs on the primary any more (`snapshot`).
        self.known.remove_preceding(deleter.next(), &[]);
        if self.with_sessions {
            self.standby.clean_up(self.storage, deleter)?;
        }
        Ok(())
    }

    fn add_pages(&self, record: &Record<'_>) -> Result<()> {
        let mut lengths = Lengths::new();
        lengths::decode(record.payload, &mut lengths);
        for (rel, blocks) in lengths {
            if rel == RelId::COMMIT_LOG {
                // Its pages are made when they are written.
                continue;
            }
            if let Some(file) = self.storage.files.file_for_replay(rel)? {
                while file.blocks() < blocks {
                    self.storage.pool.extend(rel)?;
                }
            }
        }
        Ok(())
    }

    fn checkpoint(&mut self, record: &Record<'_>, start: Lsn, end: Lsn) -> Result<()> {
        if record.payload.len() < 8 {
            return Err(self.malformed(record, start));
        }
        self.standby.passed_checkpoint(ReplayedCheckpoint {
            redo: Lsn(get_u64(record.payload, 0)),
            end,
            next_xid: self.next_xid(),
            next_rel: self.storage.next_rel.load(Ordering::Acquire),
        });
        Ok(())
    }
}

/// Replays a change with all of its pages latched (S5).
pub(super) fn change_pages(storage: &Storage, parts: &[(PageId, PagePart<'_>)], end: Lsn) -> Result<()> {
    let mut pinned = Vec::with_capacity(parts.len());
    for (page, part) in parts {
        let Some(file) = storage.files.file_for_replay(page.rel)? else {
            continue;
        };
        // Pages that were added after the checkpoint (`lengths`, step 4). Each is empty until its change is replayed.
        while file.blocks() <= page.block {
            storage.pool.extend(page.rel)?;
        }
        pinned.push((storage.pool.pin(*page)?, part));
    }
    // Nothing can fail from here on, so no reader sees a part of it.
    let mut latched: Vec<(PageExclusive<'_>, _)> = pinned
        .into_iter()
        .map(|(page, part)| (page.into_exclusive(), *part))
        .collect();
    for (page, part) in &mut latched {
        if part.replaces() || page::lsn(page.bytes()) < end {
            let bytes = page.bytes_mut();
            part.apply(bytes);
            page::set_lsn(bytes, end);
            page.mark_dirty();
        }
    }
    Ok(())
}
