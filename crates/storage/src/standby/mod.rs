//! The standby: a directory whose log is received from another server, replayed, and read from meanwhile.
//!
//! # An example
//! Alice changes a row on the primary, in transaction 100. Bob reads it on the standby.
//!
//! | time | primary | received | replayed | Bob |
//! | --- | --- | --- | --- | --- |
//! | 1 | logs Alice's change at 1000, her commit at 1100 | | | |
//! | 2 | | 1000 to 1150, written and not synced | | |
//! | 3 | | synced: up to 1150 | | |
//! | 4 | | | the change: Alice's version is on the page, and 100 counts as running | a snapshot: 100 runs |
//! | 5 | | | the commit: commit log, definitions, known xids | reads the version before |
//! | 6 | | | | the next snapshot sees Alice's version |
//!
//! # Rules
//! - S1: the log is a copy of the primary's, byte for byte and at the same positions. A standby inserts no record, so that
//!   it can go on to receive, and another standby can follow it.
//! - S2: only *received* log is replayed, that is what is durable here. So no page in a file is newer than the log here,
//!   and after a crash the standby is consistent when it has replayed its own log to the end. (PostgreSQL replays what it
//!   has written and not synced, and has to keep the position of the newest page in its control file.)
//! - S3: [`Storage::open_standby`] returns when it has done that. Each checkpoint logs which transactions run, between its
//!   redo position and its end. Replay begins at a redo position and goes beyond that checkpoint's end, so all running
//!   transactions are known then, and snapshots can be taken.
//! - S4: a commit becomes visible in the order of `commit`: commit log, definitions, and then the xid leaves the known
//!   ones. An abort is the same without definitions.
//! - S5: a change over several pages is replayed with all of them latched exclusively. Readers hold one latch at a time,
//!   so none sees half of it, and neither waits for the other.
//! - S6: the primary says which deleter's versions it is about to remove (`Cleanup`), and replay waits until no session
//!   has a snapshot for which that deleter runs (`snapshot`, `conflict`).
//! - S7: what needs a table for itself is the change of its definition. It happens at one moment here, the replay of the
//!   commit: the [`ReplayObserver`] waits for the table's readers then. Relation locks of the primary are not replayed:
//!   a table that is dropped and one that is truncated keep their files until the commit, so no reader is in danger
//!   before.
//! - S8: a follower of this standby is sent what is durable here, replayed or not. Once a promotion has begun it is sent
//!   what was replayed only, which ends at the fork: what is behind that is the beginning of a record at most, and is
//!   overwritten. A follower that has such a beginning already gives it up when it follows onto the new timeline
//!   (`take_back`).
//! - S9: the files can be copied while they are in use (`backup`), and the copy is a standby's directory by S2.
//! - S10: each record is checked when it arrives, before it is acknowledged; how far log was acknowledged is on disk
//!   (`receive`, `acknowledged`). When replay has failed, nothing more is acknowledged: the caller of `receive` looks for
//!   [`Standby::failure`]. A promotion is refused unless all that was ever acknowledged is there and can be replayed.
//! - S11: a full disk is not a failure of replay: it waits for room (`room`).
//!
//! | file | |
//! | --- | --- |
//! | `progress` | how far receiving and replay are, and waiting for them |
//! | `receive` | checking and writing received log |
//! | `acknowledged` | how far log was acknowledged, on disk |
//! | `room` | waiting for room on the disk |
//! | `replay` | one record: what each kind does, and which worker changes the pages |
//! | `following` | the thread that replays |
//! | `snapshot` | what sessions see |
//! | `conflict` | sessions in the way of replay |
//! | `restartpoint` | bounding what the next start must replay |
//! | `promotion` | the end of recovery |
//! | `take_back` | following a server that has less of the last record |
//!
//! # What it costs
//! A session's snapshot is one of the known xids (the switch `known_xids`) and a fence. A record costs replay what it
//! costs recovery; an xid and its end are an `add` and a `remove`.
//!
//! # What it does not do
//! Prepared transactions and subtransactions do not exist on the primary. The locks that a session of the primary takes
//! with LOCK TABLE are unknown here.
//!
//! Origin: PostgreSQL's hot standby (Simon Riggs, 2010). S2 and S7 differ.

mod acknowledged;
mod conflict;
mod following;
mod progress;
mod promotion;
mod receive;
pub mod replay;
mod restartpoint;
mod room;
mod snapshot;
mod take_back;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use clearway_txn::{
    CleanedUp, KnownXids, KnownXidsCompactionVariant, KnownXidsOptions, KnownXidsVariant, ProcId, Snapshot,
    Xid,
};

use crate::error::{Result, StorageError};
use crate::files::status_journal::StatusJournal;
use crate::files::status_pages::StatusPages;
use crate::page::{Lsn, RelId};
#[cfg(doc)]
use crate::storage::Storage;
use crate::wal::link::LogLink;
pub(crate) use acknowledged::Acknowledged;
pub(crate) use following::replay_local;
pub use progress::Progress;
pub use receive::LogReceiver;
use replay::ReplayState;
pub use replay::ReplayVariant;
use restartpoint::ReplayedCheckpoint;
pub(crate) use take_back::TakeBack;

/// The least number of the primary's sessions that a standby has room for.
const PRIMARY_SESSIONS_MIN: u32 = 2_000;

/// The options of a standby.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StandbyOptions {
    /// The switch `known_xids`.
    pub known_xids: KnownXidsVariant,
    /// The switch `known_xids_compaction`.
    pub known_xids_compaction: KnownXidsCompactionVariant,
    /// The switch `replay`.
    pub replay: ReplayVariant,
    /// Workers that change pages under `replay = parallel`, beside the one that reads the log.
    pub replay_workers: u32,
    /// The time that replay may lag because sessions are in its way, before it cancels them; `None`: it waits for them.
    pub streaming_delay_max: Option<Duration>,
}

impl Default for StandbyOptions {
    fn default() -> Self {
        Self {
            known_xids: KnownXidsVariant::default(),
            known_xids_compaction: KnownXidsCompactionVariant::default(),
            replay: ReplayVariant::default(),
            replay_workers: 2,
            streaming_delay_max: Some(Duration::from_secs(30)),
        }
    }
}

/// The reason why a session is in the way of replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflict {
    /// Its snapshot may see row versions that are about to be removed.
    Snapshot,
    /// It holds a lock on a table whose definition changes.
    Lock,
}

/// Changes of the definitions that the log has told of since they were published last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangedDefinitions {
    /// There may be others, from before the log that was replayed here: each definition is to be looked at, and each file.
    pub is_incomplete: bool,
    /// Pages of [`RelId::CATALOG`] that were changed.
    pub pages: BTreeSet<u32>,
    /// Relations that were made.
    pub made: BTreeSet<RelId>,
}

/// The effects of replay on whatever is above the storage.
pub trait ReplayObserver: Send + Sync {
    /// `xid` has changed definitions, rows of [`RelId::CATALOG`], and has committed. `snapshot`
    /// sees it; those of sessions do not yet. Publishes the definitions, which differ from those of before by `changed`.
    /// Runs on the thread that replays, which may wait in it for readers of the tables ([`Standby::wait_for_sessions`]).
    fn publish_definitions(&self, xid: Xid, snapshot: &Snapshot, changed: &ChangedDefinitions) -> Result<()>;

    /// Sessions see `xid` from now on, whose definitions were published: what its commit does last.
    fn definitions_are_seen(&self, xid: Xid, changed: &ChangedDefinitions) -> Result<()>;

    /// The session of `proc` is in the way: ends its statement, or its transaction if none runs. Called again until
    /// the session is out of the way.
    fn cancel(&self, proc: ProcId, conflict: Conflict);
}

/// The state that a directory opened as a standby has beside the rest of its storage.
pub struct Standby {
    options: StandbyOptions,
    known: KnownXids,
    /// The versions that replay has cleaned up, or is about to.
    cleaned: CleanedUp,
    /// Until the promotion.
    active: AtomicBool,
    /// The timeline that a promotion has begun, and where: the directory is a primary's, also if the promotion then failed.
    own_timeline: OnceLock<(u32, Lsn)>,
    progress: progress::Tracker,
    pub(crate) acknowledged: Acknowledged,
    status: StatusPages,
    journal: Arc<StatusJournal>,
    replay: Mutex<ReplayState>,
    /// The last checkpoint of the primary that was replayed.
    checkpoint: Mutex<Option<ReplayedCheckpoint>>,
    receiver_is_taken: AtomicBool,
    observer: OnceLock<Arc<dyn ReplayObserver>>,
    /// Since when replay lags, for `streaming_delay_max`.
    lags_since: Mutex<Instant>,
    replay_thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl std::fmt::Debug for Standby {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Standby")
            .field("known", &self.known.state())
            .field("progress", &self.progress.get())
            .finish_non_exhaustive()
    }
}

/// Locks what no panic leaves half-changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The files that a standby has beside its copy of the primary's.
pub(crate) struct StandbyFiles {
    pub(crate) status: StatusPages,
    pub(crate) journal: Arc<StatusJournal>,
    pub(crate) acknowledged: Acknowledged,
}

impl Standby {
    pub(crate) fn new(
        options: StandbyOptions,
        sessions_max: u32,
        lwlock: clearway_latch::LwLockOptions,
        files: StandbyFiles,
        end: Lsn,
        link: Option<LogLink>,
        newest: Xid,
    ) -> Self {
        let known = KnownXidsOptions {
            variant: options.known_xids,
            compaction: options.known_xids_compaction,
            lwlock,
            ..KnownXidsOptions::for_sessions(sessions_max.max(PRIMARY_SESSIONS_MIN))
        };
        Self {
            options,
            known: KnownXids::new(known),
            cleaned: CleanedUp::default(),
            active: AtomicBool::new(true),
            own_timeline: OnceLock::new(),
            progress: progress::Tracker::new(end, link),
            acknowledged: files.acknowledged,
            status: files.status,
            journal: files.journal,
            replay: Mutex::new(ReplayState::after(newest)),
            checkpoint: Mutex::default(),
            receiver_is_taken: AtomicBool::new(false),
            observer: OnceLock::new(),
            lags_since: Mutex::new(Instant::now()),
            replay_thread: Mutex::default(),
        }
    }

    /// True if it has not been promoted.
    #[inline]
    pub fn is_active(&self) -> bool {
        // Acquire: pairs with the Release of the promotion; a session that finds it over finds the array made ready.
        self.active.load(Ordering::Acquire)
    }

    /// Replay has cleaned up what this and older transactions deleted, or waits to: a session whose snapshot may regard it
    /// as running is in the way.
    pub fn cleaned(&self) -> Xid {
        self.cleaned.newest()
    }

    /// The running transactions of the primary.
    pub fn known_xids(&self) -> &KnownXids {
        &self.known
    }

    /// The options with which it was opened.
    pub fn options(&self) -> &StandbyOptions {
        &self.options
    }

    /// The oldest xid that a snapshot taken now would need the primary to keep versions for: what a standby without
    /// sessions reports as feedback.
    pub fn known_xmin(&self) -> Option<Xid> {
        let mut snapshot = Snapshot::default();
        snapshot.take_known(&self.known).ok()
    }

    fn failed(&self, problem: impl std::fmt::Display) -> StorageError {
        StorageError::Standby {
            problem: problem.to_string(),
        }
    }
}
