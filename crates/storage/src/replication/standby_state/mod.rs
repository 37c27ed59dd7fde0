//! The state of a standby: how far it is, what its sessions see, and what is in its own files.
//!
//! Sessions and followers look at it through [`Storage`](crate::Storage), which has one if its directory was opened as a
//! standby. What moves it, receiving and replay, is in [`standby`](crate::standby), with the rules.
//!
//! | file | holds |
//! | --- | --- |
//! | `options` | the options of a standby, the switch `replay` among them |
//! | `progress` | how far receiving and replay are, and waiting for them |
//! | `acknowledged` | how far log was acknowledged, on disk |
//! | `replay_state` | what replay keeps from one stretch of log to the next |
//! | `hold` | what holds replay back on purpose |
//! | `observer` | what is above the storage, and learns of replay |
//! | `snapshot` | what sessions see |

pub(crate) mod acknowledged;
mod hold;
mod observer;
mod options;
mod progress;
mod replay_state;
mod snapshot;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

use clearway_txn::{CleanedUp, KnownXids, KnownXidsOptions, Snapshot, Xid};

pub(crate) use self::acknowledged::{Acknowledged, NAME as ACKNOWLEDGED};
pub use self::hold::ReplayPause;
pub use self::observer::{ChangedDefinitions, Conflict, ReplayObserver};
pub use self::options::{ReplayVariant, StandbyOptions};
pub use self::progress::Progress;
pub(crate) use self::replay_state::{ReplayState, ReplayedCheckpoint};
use crate::error::{Result, StorageError};
use crate::files::status_journal::StatusJournal;
use crate::files::status_pages::StatusPages;
use crate::page::Lsn;
use crate::wal::link::LogLink;

/// The least number of the primary's sessions that a standby has room for.
const PRIMARY_SESSIONS_MIN: u32 = 2_000;

/// The state that a directory opened as a standby has beside the rest of its storage.
pub struct Standby {
    pub(crate) options: StandbyOptions,
    pub(crate) known: KnownXids,
    /// The versions that replay has cleaned up, or is about to.
    pub(crate) cleaned: CleanedUp,
    /// Until the promotion.
    pub(crate) active: AtomicBool,
    /// The timeline that a promotion has begun, and where: the directory is a primary's, also if the promotion then failed.
    pub(crate) own_timeline: OnceLock<(u32, Lsn)>,
    pub(crate) progress: progress::Tracker,
    pub(crate) hold: hold::Hold,
    pub(crate) acknowledged: Acknowledged,
    pub(crate) status: StatusPages,
    pub(crate) journal: Arc<StatusJournal>,
    pub(crate) replay: Mutex<ReplayState>,
    /// The last checkpoint of the primary that was replayed.
    pub(crate) checkpoint: Mutex<Option<ReplayedCheckpoint>>,
    pub(crate) receiver_is_taken: AtomicBool,
    pub(crate) observer: OnceLock<Arc<dyn ReplayObserver>>,
    /// Since when replay lags, for `streaming_delay_max`.
    pub(crate) lags_since: Mutex<Instant>,
    pub(crate) replay_thread: Mutex<Option<std::thread::JoinHandle<()>>>,
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
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
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
            hold: hold::Hold::default(),
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

    pub(crate) fn failed(&self, problem: impl std::fmt::Display) -> StorageError {
        StorageError::Standby {
            problem: problem.to_string(),
        }
    }
}

impl Standby {
    /// Makes the threads end.
    pub(crate) fn stop(&self) {
        self.progress.stop();
        self.join_replay();
    }

    pub(crate) fn join_replay(&self) {
        let thread = lock(&self.replay_thread).take();
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }

    /// Has replay come to the end of what was received, and ends it.
    pub(crate) fn finish_replay(&self) {
        self.progress.end();
        self.join_replay();
    }

    pub(crate) fn deactivate(&self) {
        // Release: pairs with the Acquire in `is_active`.
        self.active.store(false, Ordering::Release);
        self.progress.notify();
    }

    /// Replay has passed a checkpoint of the primary, where a restartpoint can be made.
    pub(crate) fn passed_checkpoint(&self, checkpoint: ReplayedCheckpoint) {
        *lock(&self.checkpoint) = Some(checkpoint);
    }

    /// An error once a promotion has made the directory a primary's.
    pub(crate) fn refuse_primarys_directory(&self, dir: &Path) -> Result<()> {
        let Some((timeline, fork)) = self.own_timeline.get() else {
            return Ok(());
        };
        let dir = dir.display();
        Err(if self.is_active() {
            self.failed(format_args!(
                "{dir} is a primary's directory: a promotion has begun timeline {timeline} at {fork}, and failed then; stop \
                 this server and start \"clearway serve --data {dir}\", which goes on from there"
            ))
        } else {
            self.failed(format_args!(
                "this server was promoted: timeline {timeline} began at {fork}"
            ))
        })
    }

    /// A promotion that has failed after it had made the directory a primary's: the timeline, and its start.
    pub fn unfinished_promotion(&self) -> Option<(u32, Lsn)> {
        self.own_timeline.get().copied().filter(|_| self.is_active())
    }
}
