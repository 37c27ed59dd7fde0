//! Everything of one data directory.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use clearway_latch::LwLockOptions;
use clearway_machine::Padded;
use clearway_txn::{
    CommitLog, LockManager, ProcArray, ProcArrayLatchKind, ProcId, RelationLocks, Status, Xid,
};
use rustix::fs::FlockOperation;

use crate::btree::RootHints;
use crate::buffer::{BufferPool, PageLatchKind, PinnedPage};
use crate::change::AtomicChange;
use crate::checkpoint::Checkpointer;
use crate::control_file::ControlFile;
use crate::data_file::{DataFiles, sync_directory};
use crate::error::{Result, StorageError};
use crate::fsm::FreeSpaceMaps;
use crate::page::{Lsn, PageId, RelId};
use crate::recovery::{self, RecoveryReport};
use crate::status_pages::{StatusPages, storage_error};
use crate::wal::record::RecordKind;
use crate::wal::{Faults, SegmentFiles, Wal};

/// How a data directory is opened.
#[derive(Debug, Clone)]
pub struct StorageOptions {
    /// Bytes of the buffer pool.
    pub buffer_bytes: usize,
    /// Sessions that can be attached at once.
    pub sessions_max: u32,
    /// How every LwLock is built.
    pub lwlock: LwLockOptions,
    /// Which latch guards a page's content.
    pub page_latch: PageLatchKind,
    /// Which latch guards the array of running transactions.
    pub proc_array_latch: ProcArrayLatchKind,
    /// Where relation locks live.
    pub relation_locks: RelationLocks,
    /// Whether writes are made durable. Without it a power failure loses data; a kill -9 does not.
    pub fsync: bool,
    /// A wait longer than this looks for a deadlock.
    pub deadlock_timeout: Duration,
    /// A log flush sleeps this long first, so that more commits join it.
    pub commit_delay: Duration,
    /// A checkpoint starts this long after the last one.
    pub checkpoint_timeout: Duration,
    /// A checkpoint starts when the log has grown by so many bytes since the last one.
    pub wal_bytes_max: u64,
    /// Commits that do not wait for the disk are made durable this often.
    pub wal_writer_delay: Duration,
}

impl Default for StorageOptions {
    fn default() -> Self {
        Self {
            buffer_bytes: 128 << 20,
            sessions_max: 600,
            lwlock: LwLockOptions::default(),
            page_latch: PageLatchKind::default(),
            proc_array_latch: ProcArrayLatchKind::default(),
            relation_locks: RelationLocks::default(),
            fsync: true,
            deadlock_timeout: Duration::from_secs(1),
            commit_delay: Duration::ZERO,
            checkpoint_timeout: Duration::from_secs(300),
            wal_bytes_max: 1 << 30,
            wal_writer_delay: Duration::from_millis(10),
        }
    }
}

/// An open data directory.
pub struct Storage {
    /// The log.
    pub wal: Arc<Wal>,
    /// Who runs.
    pub proc_array: Arc<ProcArray>,
    /// How transactions ended.
    pub commit_log: CommitLog<clearway_machine::Native, StatusPages>,
    /// Relation locks, tuple locks, waits for transactions.
    pub locks: LockManager,
    pub(crate) pool: BufferPool,
    pub(crate) files: Arc<DataFiles>,
    pub(crate) control: Mutex<ControlFile>,
    pub(crate) next_rel: AtomicU32,
    pub(crate) checkpointer: Arc<Checkpointer>,
    pub(crate) fsm: FreeSpaceMaps,
    pub(crate) root_hints: RootHints,
    page_latch: PageLatchKind,
    pub(crate) options: StorageOptions,
    /// By session: odd between the logging of a commit and its entry in the commit log.
    pub(crate) committing: Box<[Padded<AtomicU64>]>,
    /// The position after the newest commit that did not wait for the disk.
    pub(crate) async_commit: Arc<AtomicU64>,
    dir: PathBuf,
    closed: AtomicBool,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Locked for as long as the directory is open.
    _lock: File,
}

impl std::fmt::Debug for Storage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Storage")
            .field("dir", &self.dir)
            .finish_non_exhaustive()
    }
}

fn lock_directory(dir: &Path) -> Result<File> {
    let path = dir.join("clearway.lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path);
    let file = file.map_err(|error| StorageError::io("open", &path, error))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(StorageError::DirectoryInUse { dir: dir.to_owned() }),
        Err(error) => Err(StorageError::io("lock", &path, error.into())),
    }
}

impl Storage {
    /// Opens `dir`, making it if it is not there, and recovers what the log holds.
    pub fn open(dir: &Path, options: StorageOptions) -> Result<(Arc<Storage>, RecoveryReport)> {
        Self::open_with_faults(dir, options, None)
    }

    /// As [`open`](Self::open), with a disk that may be full, for tests.
    pub fn open_with_faults(
        dir: &Path,
        options: StorageOptions,
        faults: Option<Arc<dyn Faults>>,
    ) -> Result<(Arc<Storage>, RecoveryReport)> {
        fs::create_dir_all(dir).map_err(|error| StorageError::io("create directory", dir, error))?;
        let lock = lock_directory(dir)?;
        let (control_file, control) = ControlFile::open(dir.join("control"), options.fsync)?;
        let wal_dir = dir.join("wal");
        let device = SegmentFiles::open_with_faults(wal_dir.clone(), options.fsync, faults.clone())
            .map_err(|error| StorageError::io("open", &wal_dir, error))?;
        let scanned = recovery::scan_log(&device, control, control_file.path(), &wal_dir)?;
        let files = Arc::new(DataFiles::new(dir.join("base"), options.fsync, faults)?);
        let wal = Wal::new(
            device,
            options.lwlock,
            scanned.end,
            scanned.redo,
            options.commit_delay,
        );
        let wal = Arc::new(wal);
        let async_commit = Arc::new(AtomicU64::new(0));
        let pool = BufferPool::new(
            options.buffer_bytes,
            options.page_latch,
            options.lwlock,
            Arc::clone(&files),
            Arc::clone(&wal),
            Arc::clone(&async_commit),
        );
        let status_pages = StatusPages::new(Arc::clone(&files), Arc::clone(&wal));
        let commit_log = CommitLog::new(status_pages.clone(), options.lwlock);
        let proc_array = Arc::new(ProcArray::with_latch(
            options.proc_array_latch,
            options.sessions_max,
            options.lwlock,
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
            fsm: FreeSpaceMaps::default(),
            root_hints: RootHints::default(),
            page_latch: options.page_latch,
            committing: (0..options.sessions_max)
                .map(|_| Padded(AtomicU64::new(0)))
                .collect(),
            async_commit,
            options,
            dir: dir.to_owned(),
            closed: AtomicBool::new(false),
            threads: Mutex::default(),
            _lock: lock,
        };
        let report = recovery::replay(&storage, &status_pages, &scanned)?;
        storage.allocate_log()?;
        // Whatever was replayed need not be replayed again; a new directory gets its control file.
        storage.run_checkpoint(false)?;
        let storage = Arc::new(storage);
        let threads = Checkpointer::spawn(&storage)?;
        *storage.threads.lock().unwrap_or_else(|e| e.into_inner()) = threads;
        if control.is_none() {
            sync_directory(dir)?;
        }
        Ok((storage, report))
    }

    /// The data directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn allocate_log(&self) -> Result<()> {
        let wal_dir = || self.dir.join("wal");
        self.wal
            .ensure_space()
            .map_err(|error| StorageError::io("extend", &wal_dir(), error))
    }

    /// Whether page latches have versions, so that a page can be read without latching it.
    #[inline]
    pub(crate) fn reads_optimistically(&self) -> bool {
        self.page_latch == PageLatchKind::Hybrid
    }

    /// Keeps a page in memory.
    #[inline]
    pub fn pin(&self, page: PageId) -> Result<PinnedPage<'_>> {
        self.pool.pin(page)
    }

    /// Adds a page of zeros to `rel` and keeps it in memory. After a crash a relation may have more such pages than were
    /// added; they are new pages like any other.
    pub fn extend(&self, rel: RelId) -> Result<PinnedPage<'_>> {
        let block = self.files.file(rel)?.extend()?;
        self.pool.pin_new(PageId { rel, block })
    }

    /// How many pages `rel` has.
    pub fn block_count(&self, rel: RelId) -> Result<u32> {
        Ok(self.files.file(rel)?.blocks())
    }

    /// Hands out a relation number and makes its file, empty. Until something durable names it, it is the caller's to drop.
    pub fn create_rel(&self) -> Result<RelId> {
        self.allocate_log()?;
        let rel = RelId(self.next_rel.fetch_add(1, Ordering::Relaxed));
        self.files.create(rel)?;
        self.wal
            .insert_any(RecordKind::CreateRel, Xid::INVALID, &rel.0.to_le_bytes());
        Ok(rel)
    }

    /// Removes a relation that nobody uses any more: its pages in memory and its file. Doing it twice is harmless.
    pub fn drop_rel(&self, rel: RelId) -> Result<()> {
        self.fsm.forget(rel);
        self.pool.discard(rel);
        self.files.remove(rel)
    }

    /// The numbers of all relations on disk, the commit log's included.
    pub fn list_rels(&self) -> Result<Vec<RelId>> {
        self.files.list()
    }

    /// Begins a change of pages. A full disk is an error here, before anything is changed.
    pub fn begin_change(&self, xid: Xid) -> Result<AtomicChange<'_>> {
        self.allocate_log()?;
        Ok(AtomicChange::new(self, xid))
    }

    /// Gives the session's transaction its xid.
    pub fn assign_xid(&self, proc: ProcId) -> Result<Xid> {
        self.allocate_log()?;
        Ok(self.proc_array.assign_xid(proc))
    }

    /// Commits: logs it, makes the log durable (if `synchronous`), enters it in the commit log. The transaction is still in
    /// the ProcArray afterwards. An error means that nothing was logged: the transaction can still be aborted.
    pub fn commit(&self, proc: ProcId, xid: Xid, synchronous: bool) -> Result<Lsn> {
        self.allocate_log()?;
        // The page is in memory before the record is in the log, so that nothing can fail after that.
        self.commit_log.get(xid).map_err(storage_error)?;
        let committing = &self.committing[proc.0 as usize];
        // AcqRel: pairs with the Acquire in `wait_for_commits`; the record comes after it.
        committing.fetch_add(1, Ordering::AcqRel);
        let lsn = self.wal.insert_any(RecordKind::Commit, xid, &[]);
        if synchronous {
            self.wal.flush(lsn);
        } else {
            self.async_commit.fetch_max(lsn.0, Ordering::AcqRel);
        }
        if let Err(error) = self.commit_log.set(xid, Status::Committed, lsn.0) {
            eprintln!(
                "clearway: xid {xid} is durable but could not be entered in the commit log: {error}; stopping"
            );
            std::process::abort();
        }
        committing.fetch_add(1, Ordering::Release);
        Ok(lsn)
    }

    /// Rolls back: enters it in the commit log, and in the log, though without it recovery would say the same.
    pub fn abort(&self, _proc: ProcId, xid: Xid) -> Result<()> {
        let lsn = match self.allocate_log() {
            Ok(()) => self.wal.insert_any(RecordKind::Abort, xid, &[]).0,
            // A full disk must not keep anybody from rolling back.
            Err(_) => 0,
        };
        self.commit_log
            .set(xid, Status::Aborted, lsn)
            .map_err(storage_error)
    }

    /// How `xid` stands in the commit log; whoever asks has made sure that it is not running.
    #[inline]
    pub fn status(&self, xid: Xid) -> Result<Status> {
        self.commit_log.get(xid).map_err(storage_error)
    }

    /// Makes a checkpoint now and waits for its end.
    pub fn checkpoint(&self) -> Result<()> {
        self.run_checkpoint(false)
    }

    /// Stops the background threads and makes the last checkpoint: the next start has nothing to recover. Sessions have
    /// ended. Called twice, the second call does nothing.
    pub fn shutdown(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.stop_threads();
        self.run_checkpoint(true)
    }

    /// Stops the background threads. Dropping the last reference then closes the directory at once, and as a crash would
    /// leave it, unless [`shutdown`](Self::shutdown) was called.
    pub fn stop_threads(&self) {
        self.checkpointer.stop();
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
        // Without a shutdown this is a crash in small: the next start recovers.
        self.stop_threads();
    }
}
