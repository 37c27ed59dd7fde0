//! Checkpoints: bounding what recovery must replay.
//!
//! 1. Move the redo position to the end of the log, at an instant at which nothing is being inserted.
//! 2. Wait for the commits that were logged before it to reach the commit log (R1).
//! 3. Write all dirty pages and commit-log pages; make the data files durable.
//! 4. Log a checkpoint record and make it durable.
//! 5. Write the control file: recovery now begins at the redo position.
//! 6. Recycle the log before it.
//!
//! - R1: a commit whose record lies before the redo position is in a commit-log page on disk when the control file says so.
//!   Between its record and its entry a committer's counter is odd; the checkpointer waits for each counter that is odd after
//!   step 1 to move.
//! - R2: a change whose record lies before the redo position is in a page that is dirty at step 3 or already written: a page
//!   is dirty from before its change is logged until a copy made after the change is in its file, and a page that is latched
//!   exclusively at step 3 is waited for.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use clearway_machine::{Native, WaitEvent, WaitScope};
use clearway_txn::Xid;

use crate::error::{Result, StorageError};
use crate::page::Lsn;
use crate::status_pages::storage_error;
use crate::storage::Storage;
use crate::wal::LogDevice;
use crate::wal::record::RecordKind;

/// How often the checkpointer looks how far the log has grown.
const SIZE_POLL: Duration = Duration::from_millis(100);

/// How long after a failed checkpoint the next one is tried.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// The log writer writes the log out when so many bytes have gathered.
const UNWRITTEN_MAX: u64 = 1 << 20;

/// The background threads' shared state.
#[derive(Debug, Default)]
pub(crate) struct Checkpointer {
    stopping: Mutex<bool>,
    changed: Condvar,
    /// One checkpoint at a time.
    running: Mutex<()>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Checkpointer {
    /// Starts the checkpointer and the log writer.
    pub(crate) fn spawn(storage: &Arc<Storage>) -> Result<Vec<JoinHandle<()>>> {
        let start = |name: &str, body: fn(Weak<Storage>, Arc<Checkpointer>)| {
            let (weak, checkpointer) = (Arc::downgrade(storage), Arc::clone(&storage.checkpointer));
            thread::Builder::new()
                .name(name.into())
                .spawn(move || body(weak, checkpointer))
                .map_err(|error| StorageError::io("start a thread for", storage.dir(), error))
        };
        Ok(vec![
            start("checkpointer", checkpoint_loop)?,
            start("wal-writer", log_writer_loop)?,
        ])
    }

    /// Makes the threads end.
    pub(crate) fn stop(&self) {
        *lock(&self.stopping) = true;
        self.changed.notify_all();
    }

    /// Sleeps; `true` if it is time to end.
    fn sleep(&self, duration: Duration, event: WaitEvent) -> bool {
        let _wait = WaitScope::<Native>::enter(event);
        let stopping = lock(&self.stopping);
        let waited = self
            .changed
            .wait_timeout_while(stopping, duration, |stopping| !*stopping);
        *waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0
    }
}

fn checkpoint_loop(storage: Weak<Storage>, checkpointer: Arc<Checkpointer>) {
    let mut last = Instant::now();
    // No strong reference while asleep: an engine that is dropped must not live on for that long.
    while !checkpointer.sleep(SIZE_POLL, WaitEvent::CheckpointerMain) {
        let Some(storage) = storage.upgrade() else { return };
        let grown = storage.wal.reserved().0 - storage.wal.redo().0;
        let due = last.elapsed() >= storage.options.checkpoint_timeout;
        // A quarter of a segment: an idle engine does not checkpoint for ever.
        if grown >= storage.options.wal_bytes_max || due && grown > 4096 {
            last = Instant::now();
            if let Err(error) = storage.run_checkpoint(false) {
                tracing::error!(%error, "checkpoint failed; the log is kept, and it will be tried again");
                drop(storage);
                if checkpointer.sleep(RETRY_DELAY, WaitEvent::CheckpointerMain) {
                    return;
                }
            }
        } else if due {
            last = Instant::now();
        }
    }
}

fn log_writer_loop(storage: Weak<Storage>, checkpointer: Arc<Checkpointer>) {
    let Some(delay) = storage.upgrade().map(|storage| storage.options.wal_writer_delay) else {
        return;
    };
    while !checkpointer.sleep(delay, WaitEvent::WalWriterMain) {
        let Some(storage) = storage.upgrade() else { return };
        let mut upto = Lsn(storage.async_commit.load(Ordering::Acquire));
        let reserved = storage.wal.reserved();
        if reserved.0 - storage.wal.flushed().0 > UNWRITTEN_MAX {
            // A large transaction: written behind its back, so that it does not find the log's buffer full.
            upto = reserved;
        }
        storage.wal.flush(upto);
        // Ahead of time, so that sessions seldom make segments. A full disk is reported to whoever wants to change something.
        let _ = storage.wal.ensure_space_ahead();
    }
}

impl Storage {
    pub(crate) fn run_checkpoint(&self, shutdown: bool) -> Result<()> {
        let _one = lock(&self.checkpointer.running);
        let started = Instant::now();
        let wal_dir = || self.dir().join("wal");
        self.wal
            .ensure_space()
            .map_err(|error| StorageError::io("extend", &wal_dir(), error))?;
        // 1. The counters are read after the redo position has moved, or a number given out in between would be lost.
        let redo = self.wal.move_redo();
        let next_xid = self.proc_array.next_xid();
        let next_rel = self.next_rel.load(Ordering::Acquire);
        self.wait_for_commits();
        self.commit_log.flush_all().map_err(storage_error)?;
        let pages = self.pool.write_all()?;
        self.files.sync_all()?;
        let end = self
            .wal
            .insert_any(RecordKind::Checkpoint, Xid::INVALID, &redo.0.to_le_bytes());
        self.wal.flush(end);
        lock(&self.control).write(redo, end, next_xid, next_rel, shutdown)?;
        let recycled = self.wal.device().forget_before(redo.0);
        recycled.map_err(|error| StorageError::io("recycle", &wal_dir(), error))?;
        tracing::info!(%redo, pages, elapsed_ms = started.elapsed().as_millis() as u64, "checkpoint complete");
        Ok(())
    }

    /// R1.
    fn wait_for_commits(&self) {
        for committing in &self.committing {
            let seen = committing.load(Ordering::Acquire);
            while seen % 2 == 1 && committing.load(Ordering::Acquire) == seen {
                let _wait = WaitScope::<Native>::enter(WaitEvent::CheckpointDone);
                thread::sleep(Duration::from_micros(100));
            }
        }
    }
}
