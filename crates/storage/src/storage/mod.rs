//! Everything of one data directory that statements use. Opening it is in `open`.
//!
//! | file | holds |
//! | --- | --- |
//! | `options` | the options of an open database |
//! | `pages` | pages, as statements reach them |
//! | `relations` | making, dropping and listing relations |
//! | `changes` | room in the log, and the changes that are logged there |
//! | `log_switch` | going on in the log's next file |
//! | `own_log` | records of the program's own |
//! | `transactions` | snapshots, commits, rollbacks |
//! | `recovery_start` | the position at which recovery begins |
//! | `log_reading` | the log as it is read for others |
//! | [`background`] | the background threads, for those who look what the server does |
//! | `background_state` | what these threads share |
//! | `background_log` | what they log of their own account |
//! | `fsm`, `page_room` | free space: which pages have it; where an update on a full page finds it |
//! | `settled_pages` | pages on which vacuum has nothing to do until they change |
//! | `root_hints` | where the descents of trees begin |

pub mod background;
pub(crate) mod background_log;
pub(crate) mod background_state;
mod changes;
pub(crate) mod fsm;
mod log_reading;
mod log_switch;
mod options;
mod own_log;
pub(crate) mod page_room;
mod pages;
mod recovery_start;
mod relations;
pub(crate) mod root_hints;
pub(crate) mod settled_pages;
mod transactions;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;

use clearway_machine::{Machine, Native, WaitEvent};
use clearway_txn::{CommitLog, LockManager, ProcArray};

use self::background::{BackgroundKind, BackgroundThread, BackgroundThreads};
use self::background_state::BackgroundState;
use self::fsm::FreeSpaceMaps;
pub use self::options::StorageOptions;
use self::pages::StopAsked;
use self::root_hints::RootHints;
use self::settled_pages::AllSettledPages;
use crate::buffer::BufferPool;
use crate::commit::Commits;
use crate::disk::LockHeld;
use crate::files::control_file::ControlFile;
use crate::files::data_directory;
use crate::files::data_file::DataFiles;
use crate::files::status_pages::StatusPages;
use crate::replication::cleanup::NewestCleanup;
use crate::replication::retention::LogRetention;
use crate::replication::standby_state::Standby;
use crate::replication::sync_replication::SyncReplication;
use crate::wal::Wal;

/// An open data directory.
pub struct Storage {
    /// The log.
    pub wal: Arc<Wal>,
    /// The running transactions.
    pub proc_array: Arc<ProcArray>,
    /// The commit log: how transactions ended.
    pub commit_log: CommitLog<Native, StatusPages>,
    /// Relation locks, tuple locks, waits for transactions.
    pub locks: LockManager,
    /// The log that stays for followers and slots.
    pub retention: Arc<LogRetention>,
    /// The standbys that commits wait for.
    pub sync_replication: Arc<SyncReplication>,
    pub(crate) pool: BufferPool,
    stop_asked: OnceLock<StopAsked>,
    pub(crate) files: Arc<DataFiles>,
    pub(crate) control: Mutex<ControlFile>,
    /// The redo position in `control`.
    recovery_start: AtomicU64,
    pub(crate) next_rel: AtomicU32,
    pub(crate) background_state: Arc<BackgroundState>,
    /// Its background threads, and those that others run for it.
    pub background: Arc<BackgroundThreads>,
    pub(crate) fsm: FreeSpaceMaps,
    pub(crate) settled_pages: AllSettledPages,
    pub(crate) root_hints: RootHints,
    pub(crate) options: StorageOptions,
    pub(crate) commits: Arc<Commits>,
    pub(crate) newest_cleanup: NewestCleanup,
    dir: PathBuf,
    system_identifier: u64,
    pub(crate) closed: AtomicBool,
    pub(crate) shut_down: AtomicBool,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// There if the directory was opened as a standby.
    standby: Option<Arc<Standby>>,
    /// Locked for as long as the directory is open.
    _lock: LockHeld,
}

/// The parts that an open data directory is made of.
pub(crate) struct StorageParts {
    pub(crate) lock: LockHeld,
    pub(crate) dir: PathBuf,
    pub(crate) options: StorageOptions,
    pub(crate) system_identifier: u64,
    pub(crate) control_file: ControlFile,
    pub(crate) next_rel: u32,
    pub(crate) files: Arc<DataFiles>,
    pub(crate) wal: Arc<Wal>,
    pub(crate) retention: Arc<LogRetention>,
    pub(crate) sync_replication: Arc<SyncReplication>,
    pub(crate) commits: Arc<Commits>,
    pub(crate) pool: BufferPool,
    pub(crate) commit_log: CommitLog<Native, StatusPages>,
    pub(crate) proc_array: Arc<ProcArray>,
    pub(crate) locks: LockManager,
    pub(crate) standby: Option<Arc<Standby>>,
}

impl std::fmt::Debug for Storage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Storage")
            .field("dir", &self.dir)
            .finish_non_exhaustive()
    }
}

impl From<StorageParts> for Storage {
    fn from(parts: StorageParts) -> Self {
        Self {
            wal: parts.wal,
            proc_array: parts.proc_array,
            commit_log: parts.commit_log,
            locks: parts.locks,
            retention: parts.retention,
            sync_replication: parts.sync_replication,
            pool: parts.pool,
            stop_asked: OnceLock::new(),
            files: parts.files,
            recovery_start: AtomicU64::new(parts.control_file.content().redo.0),
            control: Mutex::new(parts.control_file),
            next_rel: AtomicU32::new(parts.next_rel),
            background_state: Arc::default(),
            background: Arc::default(),
            fsm: FreeSpaceMaps::default(),
            settled_pages: AllSettledPages::default(),
            root_hints: RootHints::default(),
            options: parts.options,
            commits: parts.commits,
            newest_cleanup: NewestCleanup::default(),
            dir: parts.dir,
            system_identifier: parts.system_identifier,
            closed: AtomicBool::new(false),
            shut_down: AtomicBool::new(false),
            threads: Mutex::default(),
            standby: parts.standby,
            _lock: parts.lock,
        }
    }
}

impl Storage {
    /// The data directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The directory of the log.
    pub(crate) fn log_dir(&self) -> PathBuf {
        self.dir.join(data_directory::LOG)
    }

    /// The identifier of the database; it is chosen when the database is made, and programs that copy its log compare
    /// it.
    pub fn system_identifier(&self) -> u64 {
        self.system_identifier
    }

    /// The state that a directory that was opened as a standby has beside, also after its promotion.
    pub fn standby(&self) -> Option<&Arc<Standby>> {
        self.standby.as_ref()
    }

    /// True if this is a standby that was not promoted: nothing is written but what it receives.
    #[inline]
    pub fn is_standby(&self) -> bool {
        self.standby.as_ref().is_some_and(|standby| standby.is_active())
    }

    /// Event that a background thread of this storage waits for; [`WaitEvent::Running`] if it does not wait.
    pub fn background_wait(&self, thread: &BackgroundThread) -> WaitEvent {
        let waits_for_room = || {
            self.standby()
                .is_some_and(|standby| standby.waits_for_room().is_some())
        };
        match thread.kind {
            BackgroundKind::Replay if waits_for_room() => WaitEvent::RecoveryRoom,
            _ => Native::workers().slot(thread.worker).wait_event(),
        }
    }

    pub(crate) fn keep_thread(&self, thread: JoinHandle<()>) {
        let mut threads = self.threads.lock().unwrap_or_else(|e| e.into_inner());
        threads.push(thread);
    }

    /// True if a shutdown has made its checkpoint, or has failed to: nothing is logged any more.
    pub fn is_shut_down(&self) -> bool {
        self.shut_down.load(Ordering::Acquire)
    }

    /// Stops the background threads. Dropping the last reference then closes the directory at once, and as a
    /// crash would leave it, unless [`shutdown`](Self::shutdown) was called.
    pub fn stop_threads(&self) {
        self.background_state.stop(&self.wal);
        if let Some(standby) = &self.standby {
            standby.stop();
        }
        for thread in self.threads.lock().unwrap_or_else(|e| e.into_inner()).drain(..) {
            // The threads hold a weak reference only, so one of them may be dropping us.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        // Without a shutdown this is like a crash: the next start recovers.
        self.stop_threads();
    }
}
