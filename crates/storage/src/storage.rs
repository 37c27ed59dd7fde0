//! Everything of one data directory.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clearway_latch::LwLockOptions;
use clearway_machine::{Machine, Native, WaitEvent};
use clearway_txn::{
    CommitLog, CommitLogOptions, CommitLogVariant, LockManager, ProcArray, ProcArrayLatchVariant,
    ProcArrayOptions, ProcClearVariant, ProcId, RelationLocksVariant, Snapshot, SnapshotVariant, Status, Xid,
};

use crate::background::{BackgroundKind, BackgroundThread, BackgroundThreads};
use crate::buffer::{
    BufferClockVariant, BufferMapVariant, BufferPool, BufferPoolOptions, FrameRing, PageLatchVariant,
    PageReadVariant, PagesOnDisk, PinnedPage, RacyPage,
};
use crate::change::AtomicChange;
use crate::checkpoint::Checkpointer;
use crate::cleanup::NewestCleanup;
use crate::commit::{
    BeforeVisible, CommitOptions, CommitOrderVariant, CommitPath, CommitStates, CommitWait, Commits,
    LockReleaseVariant, NotCommitted, SessionSnapshot,
};
use crate::control_file::{Control, ControlFile, State};
use crate::copy_manifest;
use crate::data_directory::{self, Content, IfMissing};
use crate::data_file::DataFiles;
use crate::directory_state::STANDBY_SIGNAL;
use crate::disk::{self, Disk, LockHeld, NativeDiskWithModes, ReadOnlyDisk, SyncPurpose};
use crate::error::{Result, StorageError};
use crate::fsm::FreeSpaceMaps;
use crate::page::{Lsn, PageId, RelId};
use crate::page_room::PageRoomVariant;
use crate::recovery::{self, Purpose, RecoveryReport, RecoveryTarget};
use crate::retention::{Follower, LogRetention, RetentionLimits};
use crate::root_hints::RootHints;
use crate::standby::{self, Acknowledged, Standby, StandbyFiles, StandbyOptions};
use crate::status_journal::StatusJournal;
use crate::status_pages::{StatusPages, storage_error};
use crate::sync_replication::SyncReplication;
use crate::timeline::{self, SharedHistory};
use crate::wal::record::RecordKind;
use crate::wal::{
    LogDevice, LogFlushVariant, LogInsertVariant, LogOptions, LogReserveVariant, LogWakeVariant,
    SegmentFiles, Wal,
};
use crate::wall_clock;

/// The options with which a data directory is opened.
#[derive(Debug, Clone)]
pub struct StorageOptions {
    /// Bytes of the buffer pool.
    pub buffer_bytes: usize,
    /// Sessions that can be attached at once.
    pub sessions_max: u32,
    /// The options of every LwLock.
    pub lwlock: LwLockOptions,
    /// The latch that guards a page's content.
    pub page_latch: PageLatchVariant,
    /// The way in which a descent, and the lookup of a row, read a page.
    pub page_read: PageReadVariant,
    /// The way in which the frame of a page is found.
    pub buffer_map: BufferMapVariant,
    /// The way in which a page that is not in memory gets a frame.
    pub buffer_clock: BufferClockVariant,
    /// The place where an update on a full page finds room.
    pub page_room: PageRoomVariant,
    /// The latch that guards the array of running transactions.
    pub proc_array_latch: ProcArrayLatchVariant,
    /// The way in which a log record gets its position.
    pub log_reserve: LogReserveVariant,
    /// The way in which a log record gets into memory.
    pub log_insert: LogInsertVariant,
    /// The way in which the log reaches the disk.
    pub log_flush: LogFlushVariant,
    /// The worker that wakes a group of commits that is durable.
    pub log_wake: LogWakeVariant,
    /// The way in which a snapshot is taken.
    pub snapshot: SnapshotVariant,
    /// The way in which a transaction leaves the array of running ones.
    pub proc_clear: ProcClearVariant,
    /// The protection of the commit log's pages.
    pub commit_log: CommitLogVariant,
    /// The time at which a commit is seen by others and its locks are free.
    pub lock_release: LockReleaseVariant,
    /// The order in which commits are seen.
    pub commit_order: CommitOrderVariant,
    /// The place of relation locks.
    pub relation_locks: RelationLocksVariant,
    /// True if writes are made durable. Without it a power failure loses data; a kill -9 does not.
    pub fsync: bool,
    /// A worker that has waited longer than this looks for a deadlock.
    pub deadlock_timeout: Duration,
    /// A log flush sleeps this long first, so that more commits join it.
    pub commit_delay: Duration,
    /// A checkpoint starts this long after the last one.
    pub checkpoint_timeout: Duration,
    /// A checkpoint starts when the log has grown by this many bytes since the last one.
    pub wal_bytes_max: u64,
    /// Commits that do not wait for the disk are made durable this often.
    pub wal_writer_delay: Duration,
    /// A record of the running transactions is logged this often, if anything was logged meanwhile; checkpoints log one in
    /// any case.
    pub running_interval: Duration,
    /// The limits of the log that is kept for those who copy it.
    pub log_retention: RetentionLimits,
    /// Data files that are open at a time, at most; others are opened again when they are used.
    pub open_files_max: usize,
    /// True if the owner's group may read a data directory that is made.
    pub group_access: bool,
}

impl Default for StorageOptions {
    fn default() -> Self {
        Self {
            buffer_bytes: 128 << 20,
            sessions_max: 600,
            lwlock: LwLockOptions::default(),
            page_latch: PageLatchVariant::default(),
            page_read: PageReadVariant::default(),
            buffer_map: BufferMapVariant::default(),
            buffer_clock: BufferClockVariant::default(),
            page_room: PageRoomVariant::default(),
            proc_array_latch: ProcArrayLatchVariant::default(),
            log_reserve: LogReserveVariant::default(),
            log_insert: LogInsertVariant::default(),
            log_flush: LogFlushVariant::default(),
            log_wake: LogWakeVariant::default(),
            snapshot: SnapshotVariant::default(),
            proc_clear: ProcClearVariant::default(),
            commit_log: CommitLogVariant::default(),
            lock_release: LockReleaseVariant::default(),
            commit_order: CommitOrderVariant::default(),
            relation_locks: RelationLocksVariant::default(),
            fsync: true,
            deadlock_timeout: Duration::from_secs(1),
            commit_delay: Duration::ZERO,
            checkpoint_timeout: Duration::from_secs(300),
            wal_bytes_max: 1 << 30,
            wal_writer_delay: Duration::from_millis(10),
            running_interval: Duration::from_secs(15),
            log_retention: RetentionLimits::default(),
            open_files_max: 800,
            group_access: false,
        }
    }
}

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
    pub(crate) files: Arc<DataFiles>,
    pub(crate) control: Mutex<ControlFile>,
    pub(crate) next_rel: AtomicU32,
    pub(crate) checkpointer: Arc<Checkpointer>,
    /// Its background threads, and those that others run for it.
    pub background: Arc<BackgroundThreads>,
    pub(crate) fsm: FreeSpaceMaps,
    pub(crate) root_hints: RootHints,
    pub(crate) options: StorageOptions,
    pub(crate) commits: Arc<Commits>,
    pub(crate) newest_cleanup: NewestCleanup,
    dir: PathBuf,
    system_identifier: u64,
    closed: AtomicBool,
    shut_down: AtomicBool,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// There if the directory was opened as a standby.
    standby: Option<Arc<Standby>>,
    /// Locked for as long as the directory is open.
    _lock: LockHeld,
}

impl std::fmt::Debug for Storage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Storage")
            .field("dir", &self.dir)
            .finish_non_exhaustive()
    }
}

/// Opens the control file of the database in `dir`, or makes it if there is none. Returns the file and its
/// content.
fn open_control(
    disk: &dyn Disk,
    dir: &Path,
    content: Content,
    fsync: bool,
) -> Result<(ControlFile, Control)> {
    let path = dir.join(data_directory::CONTROL);
    let (file, control) = match content {
        Content::Database => ControlFile::open(disk, path, fsync)?,
        // `enter` refuses an unfinished copy.
        Content::Nothing | Content::UnfinishedCopy => {
            let control = Control::new(recovery::LOG_START, new_system_identifier());
            (ControlFile::create(disk, path, fsync, control)?, control)
        }
    };
    match control.state {
        State::Initialising => data_directory::remove_unfinished(disk, dir)?,
        State::Running | State::Clean | State::Standby => data_directory::check_parts(disk, dir)?,
    }
    Ok((file, control))
}

/// The role in which a directory is opened.
enum OpenAs<'a> {
    /// A database that goes on at the end of its log.
    Database,
    /// A copy that follows another server.
    Standby(StandbyOptions),
    /// A copy that goes on at a point of its log.
    Recovered(&'a RecoveryTarget),
}

/// The operating system's disk for the database in `dir`.
fn native_disk(dir: &Path, options: &StorageOptions) -> Arc<dyn Disk> {
    Arc::new(NativeDiskWithModes::of(dir, options.group_access))
}

/// A number that no other database is likely to have: the nanosecond at which it was made, and the process that made it.
fn new_system_identifier() -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let high = since_1970.as_secs() << 32;
    // Programs print it as a number without a sign, and PostgreSQL's own ones stay below 2^63 until 2038.
    (high | u64::from(since_1970.subsec_nanos() ^ std::process::id().rotate_left(16))) & (u64::MAX >> 1)
}

/// Makes the names in the data directory durable, and the directory's own name. Each start does this, because
/// the process that made the names may have been killed before it could.
fn sync_names(disk: &dyn Disk, dir: &Path) -> Result<()> {
    let names = disk
        .open_directory(dir)
        .and_then(|names| names.sync(SyncPurpose::DataDirectory));
    names.map_err(|error| StorageError::io("sync directory", dir, error))?;
    disk::sync_name_found(disk, dir)
        .map_err(|error| StorageError::io("sync the parent directory of", dir, error))
}

impl Storage {
    /// Waits for a buffer, while all are pinned, ask this function in the thread that waits whether to stop.
    pub fn set_stop_asked(&self, stop_asked: fn() -> bool) {
        self.pool.set_stop_asked(stop_asked);
    }

    /// Opens `dir` and recovers what the log holds. A new database is made if the directory is missing or empty.
    pub fn open(dir: &Path, options: StorageOptions) -> Result<(Arc<Storage>, RecoveryReport)> {
        Self::open_on(native_disk(dir, &options), dir, options)
    }

    /// Opens the database in `dir` as it is on disk, and changes nothing there: recovery, and all writes
    /// after it, happen in memory. A directory without a database is an error.
    pub fn open_read_only(dir: &Path, options: StorageOptions) -> Result<(Arc<Storage>, RecoveryReport)> {
        let disk = Arc::new(ReadOnlyDisk::default());
        Self::open_or_make(disk, dir, options, IfMissing::Refuse, OpenAs::Database)
    }

    /// Recovers the database in `dir`, a copy, to a point of its log, with what it needs from an archive; from there on
    /// its log is on a timeline of its own.
    pub fn recover_to(
        dir: &Path,
        options: StorageOptions,
        target: &RecoveryTarget,
    ) -> Result<(Arc<Storage>, RecoveryReport)> {
        let disk = native_disk(dir, &options);
        Self::open_or_make(disk, dir, options, IfMissing::Refuse, OpenAs::Recovered(target))
    }

    /// As [`open`](Self::open), on another disk than the operating system's.
    pub fn open_on(
        disk: Arc<dyn Disk>,
        dir: &Path,
        options: StorageOptions,
    ) -> Result<(Arc<Storage>, RecoveryReport)> {
        Self::open_or_make(disk, dir, options, IfMissing::Initialise, OpenAs::Database)
    }

    /// Opens `dir`, which holds a database, as a standby: replays what its log holds, and is going to follow the server
    /// that it is a copy of. From then on it is opened as a standby only, until it is promoted.
    pub fn open_standby(
        dir: &Path,
        options: StorageOptions,
        standby: StandbyOptions,
    ) -> Result<(Arc<Storage>, RecoveryReport)> {
        Self::open_standby_on(native_disk(dir, &options), dir, options, standby)
    }

    /// As [`open_standby`](Self::open_standby), on another disk than the operating system's.
    pub fn open_standby_on(
        disk: Arc<dyn Disk>,
        dir: &Path,
        options: StorageOptions,
        standby: StandbyOptions,
    ) -> Result<(Arc<Storage>, RecoveryReport)> {
        Self::open_or_make(disk, dir, options, IfMissing::Refuse, OpenAs::Standby(standby))
    }

    fn open_or_make(
        disk: Arc<dyn Disk>,
        dir: &Path,
        options: StorageOptions,
        if_missing: IfMissing,
        open_as: OpenAs<'_>,
    ) -> Result<(Arc<Storage>, RecoveryReport)> {
        let (standby, target) = match open_as {
            OpenAs::Database => (None, None),
            OpenAs::Standby(options) => (Some(options), None),
            OpenAs::Recovered(target) => (None, Some(target)),
        };
        let (lock, content) = data_directory::enter(&*disk, dir, if_missing, options.fsync)?;
        let (mut control_file, control) = open_control(&*disk, dir, content, options.fsync)?;
        if standby.is_none() && if_missing == IfMissing::Initialise {
            if control.state == State::Standby {
                return Err(StorageError::IsStandby { dir: dir.to_owned() });
            }
            if data_directory::has(&*disk, dir, STANDBY_SIGNAL)? {
                return Err(StorageError::WantsStandby { dir: dir.to_owned() });
            }
        }
        let changes_it = if_missing == IfMissing::Initialise || standby.is_some() || target.is_some();
        if control.backup_end > Lsn(0) && copy_manifest::check_copy(&*disk, dir)? && changes_it {
            // Replay changes the files, and may be interrupted.
            copy_manifest::set_aside(&*disk, dir)?;
        }
        let wal_dir = dir.join(data_directory::LOG);
        // A standby's directory is also opened to be looked at, without being one.
        let purpose = if standby.is_some() || control.state == State::Standby {
            Purpose::Standby
        } else {
            Purpose::Primary
        };
        if standby.is_some() && control.state != State::Standby {
            // Before anything else: from here on it is no database of its own any more.
            control_file.write(Control {
                state: State::Standby,
                ..control
            })?;
        }
        if changes_it && data_directory::has(&*disk, dir, STANDBY_SIGNAL)? {
            // The control file has the role by now. The names are synced below.
            let signal = dir.join(STANDBY_SIGNAL);
            let removed = disk.remove_file(&signal);
            removed.map_err(|error| StorageError::io("remove", &signal, error))?;
        }
        let target = target
            .map(|target| target.prepare(&disk, &wal_dir, options.fsync, &control))
            .transpose()?;
        let history = SharedHistory::new(match &target {
            Some(target) => target.history().clone(),
            None => timeline::read(&*disk, &wal_dir, control.timeline)?,
        });
        let device = SegmentFiles::open_on_timeline(
            Arc::clone(&disk),
            wal_dir.clone(),
            options.fsync,
            Arc::clone(&history),
        )
        .map_err(|error| StorageError::io("open", &wal_dir, error))?;
        let scanned = recovery::scan_log(
            &device,
            control,
            control_file.path(),
            &wal_dir,
            purpose,
            target.as_ref(),
        )?;
        let files = DataFiles::new(
            Arc::clone(&disk),
            dir.join(data_directory::RELATIONS),
            options.fsync,
            options.open_files_max,
            &scanned.lengths,
        )?;
        if control.state == State::Initialising {
            for rel in [RelId::COMMIT_LOG, RelId::CATALOG] {
                files.create(rel)?;
            }
        }
        // After this the control file may say that the database is made.
        if options.fsync {
            sync_names(&*disk, dir)?;
        }
        let files = Arc::new(files);
        let log = LogOptions {
            lwlock: options.lwlock,
            reserve: options.log_reserve,
            insert: options.log_insert,
            flush: options.log_flush,
            wake: options.log_wake,
            commit_delay: options.commit_delay,
            ..LogOptions::default()
        };
        let sync_replication = Arc::new(SyncReplication::starting_at(scanned.end));
        let retention = Arc::new(LogRetention::open(
            Arc::clone(&disk),
            dir,
            options.fsync,
            options.log_retention,
            Lsn(device.whole_from(scanned.redo.0)),
            history,
            Arc::clone(&sync_replication),
        )?);
        let wal = Wal::new(device, log, scanned.end, scanned.redo);
        let wal = Arc::new(wal);
        let commits = Arc::new(Commits::with_replication(
            CommitOptions::new(options.sessions_max, options.lock_release, options.commit_order),
            Arc::clone(&sync_replication),
        ));
        let pool = BufferPool::new(
            options.buffer_bytes,
            BufferPoolOptions {
                map: options.buffer_map,
                clock: options.buffer_clock,
                page_latch: options.page_latch,
                page_read: options.page_read,
                lwlock: options.lwlock,
            },
            PagesOnDisk {
                files: Arc::clone(&files),
                wal: Arc::clone(&wal),
                commits: Arc::clone(&commits),
            },
        );
        let mut status_pages = StatusPages::new(Arc::clone(&files), Arc::clone(&wal));
        let mut journalled = None;
        let standby = match standby {
            None => {
                if control.state == State::Standby {
                    // As the standby left it, perhaps in the middle of a write.
                    journalled = StatusJournal::read(&*disk, dir)?;
                }
                None
            }
            Some(standby_options) => {
                // The journal's opening syncs the names of both.
                let begins = control.state != State::Standby;
                let acknowledged = Acknowledged::open(&*disk, dir, options.fsync, begins)?;
                if scanned.end < acknowledged.position() {
                    tracing::error!(
                        end = %scanned.end, acknowledged = %acknowledged.position(),
                        "log that was received and acknowledged is damaged; it has to be sent again from there on, and a \
                         promotion is refused until then"
                    );
                }
                let (journal, image) = StatusJournal::open(&*disk, dir, options.fsync)?;
                let journal = Arc::new(journal);
                journalled = image;
                status_pages = status_pages.with_journal(Arc::clone(&journal));
                Some(Arc::new(Standby::new(
                    standby_options,
                    options.sessions_max,
                    options.lwlock,
                    StandbyFiles {
                        status: status_pages.clone(),
                        journal,
                        acknowledged,
                    },
                    scanned.end,
                    Xid(control.next_xid.0 - 1),
                )))
            }
        };
        let commit_log_options = CommitLogOptions {
            variant: options.commit_log,
            lwlock: options.lwlock,
        };
        let commit_log = CommitLog::new(status_pages.clone(), commit_log_options);
        let proc_array_options = ProcArrayOptions {
            latch: options.proc_array_latch,
            snapshot: options.snapshot,
            clear: options.proc_clear,
            lwlock: options.lwlock,
        };
        let proc_array = Arc::new(ProcArray::new(
            options.sessions_max,
            proc_array_options,
            scanned.next_xid,
        ));
        let locks = LockManager::new(
            Arc::clone(&proc_array),
            options.lwlock,
            options.relation_locks,
            options.deadlock_timeout,
        );
        let storage = Storage {
            wal,
            proc_array,
            commit_log,
            locks,
            pool,
            files,
            control: Mutex::new(control_file),
            next_rel: AtomicU32::new(scanned.next_rel),
            checkpointer: Arc::default(),
            background: Arc::default(),
            fsm: FreeSpaceMaps::default(),
            root_hints: RootHints::default(),
            commits,
            newest_cleanup: NewestCleanup::default(),
            options,
            dir: dir.to_owned(),
            system_identifier: control.system_identifier,
            closed: AtomicBool::new(false),
            shut_down: AtomicBool::new(false),
            retention,
            sync_replication,
            threads: Mutex::default(),
            standby,
            _lock: lock,
        };
        if let Some((number, content)) = journalled {
            let merged = storage.commit_log.merge_page(number, &content);
            merged.map_err(storage_error)?;
            status_pages.healed(number);
        }
        if let Some(standby) = &storage.standby {
            let report = standby::replay_local(&storage, standby, &scanned)?;
            return Ok((Arc::new(storage), report));
        }
        let report = recovery::replay(&storage, &status_pages, &scanned)?;
        if let Some(target) = &target {
            storage.begin_timeline(scanned.end, &target.reason())?;
        }
        storage.make_log_room()?;
        // After this checkpoint, what was replayed need not be replayed again, and a new directory counts as
        // made.
        storage.run_checkpoint(false)?;
        let storage = Arc::new(storage);
        let threads = Checkpointer::spawn(&storage)?;
        *storage.threads.lock().unwrap_or_else(|e| e.into_inner()) = threads;
        Ok((storage, report))
    }

    /// The data directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The identifier of the database; it is chosen when the database is made, and programs that copy its log compare
    /// it.
    pub fn system_identifier(&self) -> u64 {
        self.system_identifier
    }

    /// The timeline that the log is on.
    pub fn timeline(&self) -> u32 {
        self.history().current()
    }

    /// The state that a directory that was opened as a standby has beside, also after its promotion.
    pub fn standby(&self) -> Option<&Arc<Standby>> {
        self.standby.as_ref()
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

    /// True if this is a standby that was not promoted: nothing is written but what it receives.
    #[inline]
    pub fn is_standby(&self) -> bool {
        self.standby.as_ref().is_some_and(|standby| standby.is_active())
    }

    /// Takes a snapshot for the session of `proc` into `snapshot`, whose memory it uses again: of the array of running
    /// transactions, or, on a standby, of those of the primary.
    #[inline]
    pub fn take_snapshot(&self, proc: ProcId, snapshot: &mut Snapshot) {
        match &self.standby {
            Some(standby) if standby.is_active() => {
                standby.take_snapshot(&self.proc_array, proc, snapshot);
            }
            _ => self.proc_array.snapshot(proc, snapshot),
        }
    }

    /// As [`take_snapshot`](Self::take_snapshot), for the answers of a session.
    #[inline]
    pub fn take_session_snapshot(&self, proc: ProcId, snapshot: &mut SessionSnapshot) {
        snapshot.take(&self.commits, &self.wal, |snapshot| {
            self.take_snapshot(proc, snapshot);
        });
    }

    /// The path of the log at `position`, whether it is there or not.
    pub(crate) fn segment_path(&self, position: Lsn) -> PathBuf {
        self.wal.device().path_of(position.0)
    }

    pub(crate) fn keep_thread(&self, thread: JoinHandle<()>) {
        let mut threads = self.threads.lock().unwrap_or_else(|e| e.into_inner());
        threads.push(thread);
    }

    /// [`BufferPool::reads_optimistically`].
    #[inline]
    pub(crate) fn reads_optimistically(&self) -> bool {
        self.pool.reads_optimistically()
    }

    /// [`BufferPool::reads_unpinned`].
    #[inline]
    pub(crate) fn reads_unpinned(&self) -> bool {
        self.pool.reads_unpinned()
    }

    /// [`BufferPool::read`].
    #[inline]
    pub(crate) fn read_page<R>(
        &self,
        page: PageId,
        read: impl FnMut(RacyPage<'_>) -> Option<R>,
    ) -> Result<Option<R>> {
        self.pool.read(page, read)
    }

    /// Keeps a page in memory.
    #[inline]
    pub fn pin(&self, page: PageId) -> Result<PinnedPage<'_>> {
        self.pool.pin(page)
    }

    /// Adds an empty page, of the kind `NEW`, to `rel` and keeps it in memory. After a crash the relation may
    /// or may not have it, until it is changed.
    pub fn extend(&self, rel: RelId) -> Result<PinnedPage<'_>> {
        self.pool.extend(rel)
    }

    /// As [`pin`](Self::pin); if the page is not in memory, it gets a frame of the ring, if there is one.
    #[inline]
    pub(crate) fn pin_in(&self, page: PageId, ring: Option<&mut FrameRing>) -> Result<PinnedPage<'_>> {
        match ring {
            None => self.pool.pin(page),
            Some(ring) => self.pool.pin_in(page, ring),
        }
    }

    /// As [`extend`](Self::extend); the page gets a frame of the ring, if there is one.
    pub(crate) fn extend_in(&self, rel: RelId, ring: Option<&mut FrameRing>) -> Result<PinnedPage<'_>> {
        self.pool.extend_in(rel, ring)
    }

    /// A ring of frames for a scan of `pages` pages, if that would sweep the buffer pool.
    pub(crate) fn scan_ring(&self, pages: u32) -> Option<FrameRing> {
        self.pool.scan_ring(pages)
    }

    /// A ring of frames for a bulk write.
    pub fn write_ring(&self) -> FrameRing {
        self.pool.write_ring()
    }

    /// Number of pages of a relation that are in memory, as far as a look without pins can tell.
    pub fn resident_pages(&self, rel: RelId) -> usize {
        self.pool.resident_pages(rel)
    }

    /// Number of pages of `rel`.
    pub fn block_count(&self, rel: RelId) -> Result<u32> {
        self.files.blocks(rel)
    }

    /// Hands out a relation number and makes its empty file. Until something durable names the relation, the
    /// caller is responsible for dropping it.
    pub fn create_rel(&self) -> Result<RelId> {
        self.make_log_room()?;
        let rel = RelId(self.next_rel.fetch_add(1, Ordering::Relaxed));
        self.files.create(rel)?;
        self.wal
            .insert_any(RecordKind::CreateRel, Xid::INVALID, &rel.0.to_le_bytes());
        Ok(rel)
    }

    /// Removes a relation that is no longer in use: its pages in memory and its file. To remove it twice is
    /// harmless.
    pub fn drop_rel(&self, rel: RelId) -> Result<()> {
        self.fsm.forget(rel);
        self.pool.discard(rel);
        self.files.remove(rel)
    }

    /// True if the number was handed out by [`create_rel`](Self::create_rel), as far as the log tells.
    pub fn was_handed_out(&self, rel: RelId) -> bool {
        rel.0 < self.next_rel.load(Ordering::Relaxed)
    }

    /// The numbers of all relations on disk, the commit log's included.
    pub fn list_rels(&self) -> Result<Vec<RelId>> {
        self.files.list()
    }

    /// Makes sure that there is room in the log for the changes of one operation. It may have to make a
    /// segment, which is 16 MiB to write and to sync, so an operation calls this before it latches a page.
    pub fn make_log_room(&self) -> Result<()> {
        let wal_dir = || self.dir.join(data_directory::LOG);
        self.wal
            .make_room()
            .map_err(|error| StorageError::io("extend", &wal_dir(), error))
    }

    /// As [`begin_change`](Self::begin_change), under page latches. The operation called
    /// [`make_log_room`](Self::make_log_room) before it took them.
    pub(crate) fn begin_change_latched(&self, xid: Xid) -> Result<AtomicChange<'_>> {
        self.wal
            .make_room_latched()
            .map_err(|error| StorageError::io("extend", &self.dir.join(data_directory::LOG), error))?;
        Ok(AtomicChange::new(&*self.wal, xid))
    }

    /// Begins a change of pages, none of which is latched yet. A full disk is an error here, before anything
    /// is changed.
    pub fn begin_change(&self, xid: Xid) -> Result<AtomicChange<'_>> {
        self.make_log_room()?;
        Ok(AtomicChange::new(&*self.wal, xid))
    }

    /// Gives the session's transaction its xid.
    pub fn assign_xid(&self, proc: ProcId) -> Result<Xid> {
        self.make_log_room()?;
        Ok(self.proc_array.assign_xid(proc))
    }

    /// Commits the session's transaction, which has then ended. `synchronous`: the commit is durable when this
    /// returns. An error means that nothing was logged: the transaction still runs, and can be rolled back.
    pub fn commit(&self, proc: ProcId, xid: Xid, synchronous: bool) -> Result<Lsn> {
        self.commit_and_publish(proc, xid, CommitWait::synchronous(synchronous), ())
    }

    /// As [`commit`](Self::commit), for a transaction that may have made definitions: `before` makes them those of all
    /// sessions.
    #[inline]
    pub fn commit_and_publish(
        &self,
        proc: ProcId,
        xid: Xid,
        wait: CommitWait,
        before: impl BeforeVisible,
    ) -> Result<Lsn> {
        self.commit_path()
            .commit(proc, xid, wait, before)
            .map_err(|error| self.not_committed(error))
    }

    #[cold]
    fn not_committed(&self, error: NotCommitted) -> StorageError {
        match error {
            NotCommitted::NoLogRoom(error) => {
                StorageError::io("extend", &self.dir.join(data_directory::LOG), error)
            }
            NotCommitted::NoStatusPage(error) => storage_error(error),
        }
    }

    /// Rolls the session's transaction back, which has then ended, also after an error. Without a log record,
    /// recovery would count it as rolled back all the same.
    pub fn abort(&self, proc: ProcId, xid: Xid) -> Result<()> {
        self.commit_path().abort(proc, xid).map_err(storage_error)
    }

    fn commit_path(&self) -> CommitPath<'_> {
        CommitPath {
            log: &self.wal,
            commit_log: &self.commit_log,
            locks: &self.locks,
            commits: &self.commits,
            wall_clock: wall_clock::now_us,
        }
    }

    /// The structures that know how transactions stand.
    #[inline]
    pub fn commit_states(&self) -> CommitStates<'_> {
        CommitStates {
            log: &self.wal,
            commit_log: &self.commit_log,
            array: &self.proc_array,
            commits: &self.commits,
        }
    }

    /// True if commits are seen before they are durable: the switch `lock_release` is `early`.
    #[inline]
    pub fn releases_early(&self) -> bool {
        self.commits.are_early()
    }

    /// The position after the newest commit that was seen before it was secured.
    pub fn newest_seen_early(&self) -> Lsn {
        self.commits.newest_unsecured()
    }

    /// Up to where commits are as safe as sessions can ask for: durable, and replicated if standbys are named.
    #[inline]
    pub fn secured(&self) -> Lsn {
        self.commits.secured(&self.wal)
    }

    /// The commit of `xid` waits to be replicated before it is seen, and may be seen without (L3 and L7 of
    /// `lock_release`): it is entered among the recent commits, as those are that do not wait. Called in step 7 of the
    /// commit; `flushed`: it was made durable in step 4. Returns a position that covers it.
    pub fn enter_unreplicated(&self, xid: Xid, flushed: bool) -> Lsn {
        let position = if flushed {
            self.wal.flushed()
        } else {
            // Its position was noted in step 4.
            self.commits.newest_async()
        };
        self.commits.enter_early(xid, position, &self.wal);
        position
    }

    /// Up to where the log has to be secured for the commit of `xid` to be, which the caller counts as committed;
    /// `None` if it is.
    #[inline]
    pub(crate) fn position_if_early(&self, xid: Xid) -> Option<Lsn> {
        self.commits.position_if_early(xid, &self.wal)
    }

    /// The status of `xid` in the commit log, for checks, which tell no client. The caller has made sure that it is not
    /// running.
    #[inline]
    #[expect(
        clippy::disallowed_methods,
        reason = "no client is told of it (S8 of commit::answers)"
    )]
    pub fn status(&self, xid: Xid) -> Result<Status> {
        self.commit_log.get(xid).map_err(storage_error)
    }

    /// True if `snapshot` sees the definitions that `xid` has made. The caller knows that `xid` has committed by now.
    #[inline]
    pub fn sees_definition(&self, snapshot: &SessionSnapshot, xid: Xid) -> Result<bool> {
        self.commit_states()
            .sees_definition(snapshot, xid)
            .map_err(storage_error)
    }

    /// Makes a checkpoint now and waits for its end; on a standby, a restartpoint at the last checkpoint of the primary
    /// that was replayed.
    pub fn checkpoint(&self) -> Result<()> {
        match &self.standby {
            Some(standby) if standby.is_active() => self.run_restartpoint(standby).map(drop),
            _ => self.run_checkpoint(false).map(drop),
        }
    }

    /// Stops the background threads and makes the last checkpoint: the next start has nothing to recover. Sessions have
    /// ended. Called twice, the second call does nothing.
    pub fn shutdown(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.stop_threads();
        let made = match &self.standby {
            Some(standby) if standby.is_active() => self.run_restartpoint(standby).map(drop),
            _ => self.run_checkpoint(true).map(drop),
        };
        // Release: pairs with the Acquire in `is_shut_down`.
        self.shut_down.store(true, Ordering::Release);
        made
    }

    /// True if a shutdown has made its checkpoint, or has failed to: nothing is logged any more.
    pub fn is_shut_down(&self) -> bool {
        self.shut_down.load(Ordering::Acquire)
    }

    /// Reads log for `follower` from its position on, as much as `bytes` has room for and is durable. What it returns
    /// may be sent; then [`Follower::advance`] says so.
    pub fn read_log(&self, follower: &Follower, bytes: &mut [u8]) -> Result<usize> {
        let position = follower.position();
        // Only what is durable: a follower must never have log that a crash takes back here.
        let durable = self.durable_log_end().0.saturating_sub(position.0);
        let wanted = durable.min(bytes.len() as u64) as usize;
        let read = self.wal.device().read(position.0, &mut bytes[..wanted]);
        // R3 of `retention`: after the read. A segment that is gone or has another name by now is one that was lost.
        follower.is_lost()?;
        let read =
            read.map_err(|error| StorageError::io("read", &self.dir.join(data_directory::LOG), error))?;
        // Again, after the read: a promotion, or following another timeline, may take back the end of the log. Both say so
        // before they overwrite it.
        let still = self.durable_log_end().0.saturating_sub(position.0);
        Ok(still.min(read as u64) as usize)
    }

    /// As [`read_log`](Self::read_log), and nothing but the log of `timeline`: also whether it ends with what was read.
    pub fn read_timeline(
        &self,
        follower: &Follower,
        timeline: u32,
        bytes: &mut [u8],
    ) -> Result<(usize, bool)> {
        let count = self.read_log(follower, bytes)?;
        // After the read: what a timeline that has begun meanwhile has logged may be among the bytes.
        let history = self.history();
        if history.current() == timeline {
            return Ok((count, false));
        }
        let position = follower.position().0;
        let end = history.end_of(timeline).map_or(position, |end| end.0);
        let rest = end.saturating_sub(position);
        let count = rest.min(count as u64);
        Ok((count as usize, count == rest))
    }

    /// Up to where the log is durable here, and may be sent to followers: on a standby, what was received (S8 of
    /// `standby`).
    pub fn durable_log_end(&self) -> Lsn {
        match &self.standby {
            Some(standby) if standby.is_active() => standby.sendable(),
            _ => self.wal.flushed(),
        }
    }

    /// Stops the background threads. Dropping the last reference then closes the directory at once, and as a
    /// crash would leave it, unless [`shutdown`](Self::shutdown) was called.
    pub fn stop_threads(&self) {
        self.checkpointer.stop(&self.wal);
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
