//! Rewinding: a directory that was written to after another server had left its log becomes a standby's of that server,
//! without copying what is the same in both.
//!
//! ```text
//!                     fork
//!   the directory  ├────┼──── changes here ────┤ end
//!   the server          └──── changes there ────┼─ checkpoint ─┼─ … ─┤ end of the copy
//!                                               redo, R
//! ```
//!
//! The result is what a base backup is (`backup`): files of the server, each page as it is at the server's checkpoint or
//! later, and the server's log from the redo position R of that checkpoint on. Only pages that may differ are fetched.
//!
//! # Invariant
//! - I1: a page that is not fetched is, in its file here, the page that the server had at the fork, but for hints that are
//!   right on both sides; and the server has not changed it between the fork and R.
//!
//! The changes of the server behind R are in the log that is fetched, whose first record of each page holds the whole page. So
//! replay from R makes of the directory what it makes of a base backup.
//!
//! # Pages that are fetched
//! Let S be the redo position of the directory's last checkpoint, or the fork, whichever is less.
//!
//! | pages | because |
//! | --- | --- |
//! | P1: named by a record of the directory's log behind S | before S, all changes are in the files, and all of them are of the common log |
//! | P2: named by a record of the server's log between the fork and R | I1 |
//! | P3: behind a relation's length at the directory's last checkpoint | a page that was added and never changed is in no record (`files::lengths`) |
//! | P4: all of a relation that has no file here, or no length | a relation that was dropped here may live there |
//! | P5: of the commit log, those whose content differs | ends of transactions that no record tells: of those that a crash or a promotion has rolled back |
//! | P6: with an xid of the *fates* (`changed`), if pages that were changed before the fork may have been written after it | hints are not logged |
//!
//! Files of relations that the server does not have are removed: they were made here, or dropped there.
//!
//! # Why the simpler versions are wrong
//! - *P1 alone, with R before the fork, as `pg_rewind` has it*: the log between the last common checkpoint and the fork is
//!   gone from both as soon as each has made a checkpoint; and hints are not covered, for which `pg_rewind` wants
//!   `wal_log_hints` or checksums.
//! - *Comparing all pages by checksum*: reads all of both sides. And two pages that hold the same may differ in the bytes
//!   between their items.
//!
//! # Steps
//! 1. Lock the directory, and find its log's end. Find the fork by the histories, and compare the logs before it
//!    (`server/src/replication/receiver/rewind.rs`). Nothing is changed yet.
//! 2. The server keeps its log from the fork on, and makes a checkpoint. Read both logs ([`Rewind::plan`]).
//! 3. Write the marker `rewind.unfinished`, which names the server's timeline: from here on no server opens the directory.
//! 4. Fetch the pages. Each file is synced.
//! 5. Let the server end the copy. Fetch its log under names that no log has, and the control file.
//! 6. The marker says "clearing": the directory's own log goes, and files that speak of its former role.
//! 7. The marker says "naming": the new log gets its names, then the control file, in the state "standby". The marker goes.
//!
//! # Interrupted
//! - K1: up to step 6 the directory's log and control file are as they were, so the next attempt finds the same fork and P1:
//!   step 1 makes that log durable, so that a power cut takes no record from its end.
//!   Pages that were fetched before are those of P1 to P6 of that attempt, and P2 grows only: each of them is fetched again,
//!   or is, by P2, as at the server. A relation that is fetched as a whole gets its name when it is whole (P4).
//! - K2: K1 holds for the same timeline only. A server on another one may have left the first one's log, and would not have
//!   what was fetched from it: an attempt with it is refused, by the marker. The first timeline has no identity, so that of
//!   one server is not told from that of a copy which took writes beside it: nothing tells the logs of such two apart but
//!   the digests before the fork, and both have that log.
//! - K3: from step 6 on no server is needed. What is done already is passed over: in "clearing" no file has its new name
//!   yet, so each segment and each history goes; in "naming" none goes.
//!
//! # Costs
//! The directory's log behind S is read once, the server's between the fork and R is sent once; with fates, and a checkpoint
//! behind the fork, all files here are read once. Memory: a bit for each page of 32 MiB in which one has changed (`page_set`).
//!
//! # What it does not do
//! A standby is no server to rewind to. Configuration files stay as they are, and the directory's slots go.
//!
//! Origin: the idea is that of PostgreSQL's `pg_rewind`. P2 to P6, and so the checkpoint behind the fork, are ours.

mod changed;
mod copy;
mod page_set;
mod source;
mod switch;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::changed::{ChangedPages, Fates, SideXids};
use self::switch::{Marker, Phase};
use crate::disk::{Disk, NativeDiskWithModes, ReadOnlyDisk};
use crate::error::{Result, StorageError};
use crate::files::control_file::State;
use crate::files::data_directory;
use crate::open::directory_log::DirectoryLog;
use crate::open::recovery::Purpose;
use crate::page::Lsn;
use crate::wal::timeline::{History, TimelineIdentity};

pub use self::copy::{RewindProgress, RewindSummary, status_sum};
pub use self::source::{LOG_BYTES_MAX, PAGES_MAX, RewindSource, SourceEnd, SourceRelation, SourceStart};

/// A directory that may be rewound.
#[derive(Debug)]
pub enum RewindDirectory {
    /// Its log can be compared with a server's.
    Opened(Box<Rewind>),
    /// An earlier rewind lacked its last steps only, and they were done: it is a standby's directory.
    Completed,
}

/// A rewind of a directory, which is locked.
#[derive(Debug)]
pub struct Rewind {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    fsync: bool,
    log: DirectoryLog,
    marker: Option<Marker>,
}

/// The relation of the directory's log to a server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parting {
    /// The server's log goes on from all of it, as far as the histories tell: there is nothing to rewind.
    GoesOn,
    /// Both have the log up to this position, and the directory has more that the server does not have.
    At(Lsn),
}

/// The pages to fetch.
#[derive(Debug)]
pub struct Plan {
    fork: Lsn,
    start: SourceStart,
    marker: Marker,
    changed: ChangedPages,
    /// P6; `None` if no page needs to be looked at.
    fates: Option<Fates>,
}

/// True if a rewind of `dir` was begun, and is to be done on ([`Rewind::open`]).
pub fn rewind_is_unfinished(dir: &Path) -> bool {
    dir.join(data_directory::UNFINISHED_REWIND).exists()
}

impl Rewind {
    /// Step 1, on the operating system's disk. With `only_looks` nothing is changed, whatever is called later: what is done
    /// then is done in memory.
    pub fn open(dir: &Path, fsync: bool, only_looks: bool) -> Result<RewindDirectory> {
        if only_looks {
            return Self::open_on(Arc::new(ReadOnlyDisk::default()), dir, false);
        }
        Self::open_on(Arc::new(NativeDiskWithModes::of(dir, false)), dir, fsync)
    }

    /// As [`open`](Self::open), on another disk.
    pub fn open_on(disk: Arc<dyn Disk>, dir: &Path, fsync: bool) -> Result<RewindDirectory> {
        let (lock, _) = data_directory::enter_for_rewind(&*disk, dir)?;
        let marker = Marker::read(&*disk, dir)?;
        if let Some(marker) = marker.as_ref().filter(|marker| marker.phase != Phase::Fetching) {
            switch::complete(&*disk, dir, fsync, marker.clone())?;
            return Ok(RewindDirectory::Completed);
        }
        // K1: durable. With the proof that a primary's was not damaged: records behind a damaged one would name pages too.
        let log = DirectoryLog::of_entered(Arc::clone(&disk), dir, lock, fsync, Purpose::of)?;
        Ok(RewindDirectory::Opened(Box::new(Rewind {
            disk,
            dir: dir.to_owned(),
            fsync,
            log,
            marker,
        })))
    }

    /// The directory's log.
    pub fn log(&self) -> &DirectoryLog {
        &self.log
    }

    /// True if an earlier attempt has begun to change the directory.
    pub fn was_interrupted(&self) -> bool {
        self.marker.is_some()
    }

    fn refused(&self, problem: String) -> StorageError {
        StorageError::NotRewindable {
            dir: self.dir.clone(),
            problem,
        }
    }

    /// The position where the directory's log and that of a server with the history `server` part, whose durable end is
    /// `flushed`.
    pub fn parting(&self, server: &History, flushed: Lsn) -> Result<Parting> {
        let own = self.log.history();
        if let Some(marker) = &self.marker
            && !marker.is_of(server)
        {
            return Err(self.refused(format!(
                "an earlier rewind has fetched pages from a server on timeline {}, and this server is on timeline {}, which \
                 may not have what was changed there (K2)",
                marker.timeline,
                server.current()
            )));
        }
        let parting = match own.common_end(server) {
            Some(fork) if flushed < fork => Err(self.refused(format!(
                "the server's log ends at {flushed}, before {fork}, up to which its timeline and this directory's are the \
                 same, and no history tells where the two part"
            ))),
            Some(fork) if self.log.end() > fork => Ok(Parting::At(fork)),
            // It has begun a timeline of its own there, and logged nothing on it.
            Some(fork) if self.log.end() == fork && !server.continues(&own) => Ok(Parting::At(fork)),
            None if self.log.end() > flushed => Err(self.refused(format!(
                "its log goes on to {} on timeline {}, the server's ends at {flushed} on the same one, and no history tells \
                 where the two part",
                self.log.end(),
                own.current(),
            ))),
            _ => Ok(Parting::GoesOn),
        };
        if self.was_interrupted() && matches!(parting, Ok(Parting::GoesOn)) {
            return Err(self.refused(format!(
                "an earlier rewind has begun to fetch pages, and the log here ends at {} by now, before where the two part (K1)",
                self.log.end()
            )));
        }
        parting
    }

    /// Step 2.
    pub fn plan<S: RewindSource>(
        &self,
        source: &mut S,
        server: &History,
        fork: Lsn,
    ) -> Result<Plan, S::Error> {
        let control = self.log.control();
        let from = control.redo.min(fork);
        if self.log.begins() > from {
            return Err(self
                .refused(format!(
                    "its log begins at {}, and what was changed here since {from} is to be read from it",
                    self.log.begins()
                ))
                .into());
        }
        let start = source.begin(fork)?;
        if start.redo < fork || start.checkpoint_end < start.redo {
            let (redo, end) = (start.redo, start.checkpoint_end);
            let problem = format!("its checkpoint is from {redo} to {end}, and the two part at {fork}");
            return Err(StorageError::RewindSource { problem }.into());
        }
        let own_began = self.log.history().begins_one_at(fork);
        let server_began = server.begins_one_at(fork);
        let mut changed = ChangedPages::default();
        // The bound of the fates comes from the side that began a timeline, so that one is read first.
        let (mut of_own, mut of_server) = (SideXids::default(), SideXids::default());
        if own_began {
            self.read_own(from, fork, &mut changed, &mut of_own)?;
        }
        let own_bound = of_own.least.unwrap_or(self.log.scanned().next_xid);
        if !server_began {
            of_server = SideXids::collecting(Some(own_bound));
        }
        changed::read_server(source, (fork, start.checkpoint_end), &mut changed, &mut of_server)?;
        let server_bound = of_server.least.unwrap_or(start.next_xid);
        if !own_began {
            of_own = SideXids::collecting(Some(server_bound));
            self.read_own(from, fork, &mut changed, &mut of_own)?;
        }
        // O6 of `wal::own_records`.
        if let Some(kind) = changed.beside_pages {
            let problem = format!(
                "its log or the server's has a record of kind {kind}, and what that changes is no page"
            );
            return Err(self.refused(problem).into());
        }
        let fates = match (own_began, server_began) {
            (true, true) => Fates::default(),
            (true, false) => Fates::of_server(of_server, own_bound)?,
            (false, true) => Fates::of_commits(of_own),
            (false, false) => {
                let problem = "neither history has a timeline that begins where the two part".to_owned();
                return Err(self.refused(problem).into());
            }
        };
        // What was dirty at the fork was changed behind S, if the last checkpoint was complete before the fork. A standby's
        // restartpoint is made later than the checkpoint that it is named after.
        let written_behind = control.log_end > fork || control.state == State::Standby;
        let fates = Some(fates).filter(|fates| written_behind && !fates.is_empty());
        if fates.as_ref().is_some_and(Fates::are_too_many) {
            let problem = "too many transactions may have run where the two part".to_owned();
            return Err(self.refused(problem).into());
        }
        Ok(Plan {
            fork,
            start,
            marker: Marker::of(server),
            changed,
            fates,
        })
    }

    fn read_own(&self, from: Lsn, fork: Lsn, changed: &mut ChangedPages, xids: &mut SideXids) -> Result<()> {
        let device = self.log.device();
        changed::read_own(device, device.dir(), (from, fork, self.log.end()), changed, xids)
    }
}

impl Marker {
    fn of(server: &History) -> Marker {
        Marker {
            phase: Phase::Fetching,
            timeline: server.current(),
            identity: server.identity(),
        }
    }

    fn is_of(&self, server: &History) -> bool {
        (self.timeline, self.identity) == (server.current(), server.identity())
    }
}
