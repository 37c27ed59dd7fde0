//! Replay of one record: what each kind does on a standby.
//!
//! | record | replay |
//! | --- | --- |
//! | any with an xid | all xids up to that one have begun, since they are handed out in sequence |
//! | `Change` | its pages, all latched (S5). A transaction that changes definitions is remembered, and which pages of them |
//! | `Commit`, `Abort` | commit log; definitions, if it has changed any; then the xid has ended (S4) |
//! | `Running` | the first one makes the known xids complete; a later one ends what a crash of the primary cut off |
//! | `Cleanup` | waits for sessions that may see what is going to be removed (S6) |
//! | `Lengths` | adds the empty pages that the primary's files had at its checkpoint |
//! | `Checkpoint` | a restartpoint may be made there |
//! | `CreateRel` | as in recovery (`records`), but for a temporary relation: without its file, all that follows of it is passed over |
//! | `StatusPage` | as in recovery |
//! | the program's own | the program's redo, after all that is before it |
//!
//! The choice of the workers that change the pages is the switch `replay`:
//!
//! | variant | pages are changed by | a commit is seen | wins |
//! | --- | --- | --- | --- |
//! | `serial` | the one thread that reads the log | when the record before it has been replayed | with one CPU to spare; it is what databases ship |
//! | `parallel` | several other threads, each page by the same one, in the order of the log | when the pages of its stretch are done, in the order of the log | where replay is the limit |
//!
//! Replay of what the directory holds when it is opened, before there are sessions, is the same, but that a page that is
//! replaced is not read: it may be torn (`records::pages`).

mod gathered;
mod stretch;
mod threads;
mod workers;

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};

use clearway_machine::Native;
use clearway_txn::{KnownXidsState, ReplayedXids, RunningXids, Snapshot, Status, Xid};
use smallvec::SmallVec;

pub use self::gathered::{CompletedStretch, Gathered};
pub use self::stretch::{ReplayedPages, Stretch};
pub(crate) use self::threads::ReplayThreads;
pub use self::workers::{Worker, Workers};
use crate::error::{Result, StorageError};
use crate::files::created::Lifetime;
use crate::files::lengths::Lengths;
use crate::files::status_pages::StatusPages;
use crate::page::{Lsn, RelId};
pub use crate::records::pages::replay_change;
use crate::records::pages::{PagesInFiles, change_pages};
use crate::records::{self, CheckpointRecord, ForStandbys, PageParts, ReplayPolicy, TransactionEnd};
use crate::replication::running_transactions::{self, RunningRecord};
pub use crate::replication::standby_state::ReplayVariant;
use crate::replication::standby_state::{ChangedDefinitions, ReplayState, ReplayedCheckpoint, Standby, lock};
use crate::storage::Storage;
use crate::wal::link::LogLink;
use crate::wal::record::Record;

/// The worker that replays, at work.
pub(crate) struct Replayer<'a> {
    storage: &'a Storage,
    standby: &'a Standby,
    known: ReplayedXids<'a>,
    state: MutexGuard<'a, ReplayState>,
    log_dir: PathBuf,
    /// There are sessions, and each page was whole when the directory was opened.
    with_sessions: bool,
    /// Under `parallel`: what waits for the other workers.
    gathered: Option<Gathered<'a, Native, Storage, TransactionEnd>>,
}

impl<'a> Replayer<'a> {
    pub(crate) fn new(
        storage: &'a Arc<Storage>,
        standby: &'a Standby,
        threads: Option<&'a mut ReplayThreads>,
    ) -> Result<Self> {
        let mut replayer = Self::without_sessions(storage, standby)?;
        replayer.with_sessions = true;
        let workers = threads.and_then(ReplayThreads::workers);
        replayer.gathered = workers.map(|workers| Gathered::new(storage, workers));
        Ok(replayer)
    }

    /// For what is replayed before there are sessions.
    pub(crate) fn without_sessions(storage: &'a Storage, standby: &'a Standby) -> Result<Self> {
        let known = standby.known.replay();
        Ok(Self {
            storage,
            standby,
            known: known.ok_or_else(|| standby.failed("another worker replays"))?,
            state: lock(&standby.replay),
            log_dir: storage.log_dir(),
            with_sessions: false,
            gathered: None,
        })
    }

    /// The link that the next record has to have, if it is known.
    pub(crate) fn link(&self) -> Option<LogLink> {
        self.state.link
    }

    pub(crate) fn log_dir(&self) -> &PathBuf {
        &self.log_dir
    }

    /// Replay has nothing to do.
    pub(crate) fn idle(&mut self) {
        self.known.idle();
    }

    /// The xid after the newest that was met.
    pub(crate) fn next_xid(&self) -> Xid {
        self.state.newest.next().max(self.known.next())
    }

    /// All that the primary was running have ended: without its end in the log, a transaction counts as rolled back.
    pub(crate) fn end_all(&mut self) {
        self.known.remove_preceding(Xid(u64::MAX), &[]);
        self.state.definers.clear();
        self.state.suspected.clear();
    }

    /// The directory's log is replayed. Those that run may have changed definitions before the redo position, of which no
    /// record here tells: the observer finds out when they commit.
    pub(crate) fn suspect_running(&mut self) -> Result<()> {
        let mut running = RunningXids::default();
        let known = &self.standby.known;
        known
            .snapshot_below(self.known.next(), &mut running)
            .map_err(|error| self.standby.failed(error))?;
        self.state.definers.extend(running.xids());
        self.state.suspected.extend(running.xids());
        Ok(())
    }

    /// Replays the record between the two positions.
    pub(crate) fn replay(&mut self, record: &Record<'_>, start: Lsn, end: Lsn) -> Result<()> {
        if record.xid.is_valid() {
            self.has_begun(record.xid)?;
        }
        // The pages that the record changes may get into their files from now on.
        self.storage.wal.continue_at(end, record.next_link);
        self.state.link = Some(record.next_link);
        let storage = self.storage;
        let meaning = match records::interpret(storage, record, start) {
            Ok(meaning) => meaning,
            Err(error) => {
                // Sessions see what is before it.
                self.complete()?;
                return Err(error);
            }
        };
        records::apply(storage, self, record, meaning, (start, end))?;
        match &mut self.gathered {
            None => self.standby.progress.replayed_up_to(end),
            Some(gathered) => {
                gathered.reached(end);
                if gathered.is_full() {
                    self.hand_over()?;
                }
            }
        }
        Ok(())
    }

    /// Waits for the other workers, and lets sessions see the commits that were gathered, in their order.
    pub(crate) fn complete(&mut self) -> Result<()> {
        self.hand_over()?;
        let made = self.gathered.as_mut().map_or(Ok(None), Gathered::wait)?;
        self.show(made)
    }

    /// Ends the stretch that is being gathered, and lets sessions see the commits of the one before.
    fn hand_over(&mut self) -> Result<()> {
        let made = self.gathered.as_mut().map_or(Ok(None), Gathered::hand_over)?;
        self.show(made)
    }

    fn show(&mut self, made: Option<CompletedStretch<TransactionEnd>>) -> Result<()> {
        let Some(made) = made else { return Ok(()) };
        made.ends.into_iter().try_for_each(|end| self.has_ended(end))?;
        self.standby.progress.replayed_up_to(made.reached);
        Ok(())
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

    /// S4.
    fn has_ended(&mut self, transaction: TransactionEnd) -> Result<()> {
        let TransactionEnd {
            xid, status, time_us, ..
        } = transaction;
        self.with_room(|| records::enter_status(self.storage, transaction))?;
        self.standby.progress.committed_at(time_us);
        let has_defined = self.state.definers.remove(&xid) && status == Status::Committed;
        let is_suspected = self.state.suspected.remove(&xid);
        let observer = self.standby.observer.get().filter(|_| has_defined);
        let mut changed = ChangedDefinitions::default();
        if let Some(observer) = observer {
            changed = std::mem::take(&mut self.state.changed);
            changed.is_incomplete |= is_suspected;
            let mut snapshot = Snapshot::default();
            snapshot
                .take_known(&self.standby.known)
                .map_err(|error| self.standby.failed(error))?;
            snapshot.count_as_ended(xid);
            observer.publish_definitions(xid, &snapshot, &changed)?;
        }
        self.known.remove(xid);
        if let Some(observer) = observer {
            observer.definitions_are_seen(xid, &changed)?;
        }
        Ok(())
    }

    fn running(&mut self, running: &RunningRecord) -> Result<()> {
        let newest = self.state.newest;
        self.state.newest = newest.max(Xid(running.next.0 - 1));
        let refused = |error| self.standby.failed(error);
        if self.standby.known.state() != KnownXidsState::Unknown {
            self.known.apply(&running.as_running()).map_err(refused)?;
            return Ok(());
        }
        let begun = running_transactions::begin_set(running, newest, |xid| {
            let status = self.storage.status(xid)?;
            Ok::<_, StorageError>(status != Status::InProgress)
        })?;
        self.known.apply(&begun.as_running()).map_err(refused)?;
        Ok(())
    }

    fn clean_up(&mut self, deleter: Xid) -> Result<()> {
        if !self.with_sessions {
            self.standby.cleaned.begin(deleter);
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
}

impl ReplayPolicy for Replayer<'_> {
    fn status_pages(&self) -> &StatusPages {
        &self.standby.status
    }

    /// Before there are sessions, a start without room is an error.
    fn with_room<T>(&self, mut step: impl FnMut() -> Result<T>) -> Result<T> {
        if self.with_sessions {
            self.standby.with_room(step)
        } else {
            step()
        }
    }

    fn meets_change(&mut self, xid: Xid, parts: &PageParts<'_>) {
        let of_definitions = parts.iter().filter(|(page, _)| page.rel == RelId::CATALOG);
        let pages: SmallVec<[u32; 2]> = of_definitions.map(|(page, _)| page.block).collect();
        if xid.is_valid() && !pages.is_empty() {
            self.state.definers.insert(xid);
        }
        self.state.changed.pages.extend(pages);
    }

    fn change(&mut self, payload: &[u8], parts: &PageParts<'_>, end: Lsn) -> Result<()> {
        let pool = &self.storage.pool;
        if !self.with_sessions {
            return change_pages(pool, parts, end, PagesInFiles::MayBeTorn);
        }
        match &mut self.gathered {
            None => self
                .standby
                .with_room(|| change_pages(pool, parts, end, PagesInFiles::Whole)),
            Some(gathered) => {
                gathered.change(payload, parts.iter().map(|(page, _)| *page), end);
                Ok(())
            }
        }
    }

    fn end_transaction(&mut self, transaction: TransactionEnd) -> Result<()> {
        let has_defined = self.state.definers.contains(&transaction.xid);
        if has_defined {
            self.complete()?;
        }
        match &mut self.gathered {
            Some(gathered) if !has_defined => {
                gathered.end(transaction);
                Ok(())
            }
            _ => self.has_ended(transaction),
        }
    }

    fn handed_out(&mut self, rel: RelId) {
        self.storage.next_rel.fetch_max(rel.0 + 1, Ordering::AcqRel);
    }

    fn makes(&self, lifetime: Lifetime) -> bool {
        lifetime == Lifetime::Lasting
    }

    fn made(&mut self, rel: RelId) {
        self.state.changed.made.insert(rel);
    }

    // What follows depends on the pages before it, or on the commits (G4).

    fn checkpoint(&mut self, checkpoint: CheckpointRecord, end: Lsn) -> Result<()> {
        self.complete()?;
        self.standby.passed_checkpoint(ReplayedCheckpoint {
            redo: checkpoint.redo,
            end,
            next_xid: self.next_xid(),
            next_rel: self.storage.next_rel.load(Ordering::Acquire),
        });
        Ok(())
    }

    fn lengths(&mut self, lengths: Lengths) -> Result<()> {
        self.complete()?;
        for (rel, blocks) in lengths {
            if rel == RelId::COMMIT_LOG {
                // Its pages are made when they are written.
                continue;
            }
            if let Some(file) = self.storage.files.file_for_replay(rel)? {
                while file.blocks() < blocks {
                    self.with_room(|| self.storage.pool.extend(rel).map(drop))?;
                }
            }
        }
        Ok(())
    }

    fn meets_own(&mut self) -> Result<()> {
        self.complete()
    }

    fn for_standbys(&mut self, decode: impl FnOnce() -> Result<ForStandbys>) -> Result<()> {
        self.complete()?;
        match decode()? {
            ForStandbys::Running(running) => self.running(&running),
            ForStandbys::Cleanup(deleter) => self.clean_up(deleter),
        }
    }
}
