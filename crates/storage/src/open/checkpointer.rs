//! Checkpoints: bounding what recovery must replay.
//!
//! 1. Move the redo position to the end of what is reserved of the log (R4 of `wal/insert`). What was done before those
//!    reservations is seen from here on.
//! 2. Wait for the commits that were logged before it to reach the commit log (R1), and write its pages.
//! 3. Read the relations' lengths (`lengths`). Write all dirty pages; make the data files durable.
//! 4. Log which transactions run (`running_transactions`), the lengths and a checkpoint record, and make them durable.
//! 5. Write the control file: recovery now begins at the redo position.
//! 6. Recycle the log before it that nothing else needs (`retention`).
//!
//! - R1: a commit whose record lies before the redo position is in a commit-log page on disk when the control
//!   file says so (`commit`).
//! - R2: a change whose record lies before the redo position is in a page that is dirty at step 3 or already
//!   written. A page is dirty from before its change is logged until a copy made after the change is in its
//!   file, and step 3 waits for a page that is latched exclusively.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use clearway_machine::{Native, WaitEvent, WaitScope};
use clearway_txn::Xid;

use crate::error::{Result, StorageError};
use crate::files::control_file::{Control, State};
use crate::files::data_directory;
use crate::files::lengths::{self, Lengths};
use crate::files::status_pages::storage_error;
use crate::page::Lsn;
use crate::records::running_transactions;
use crate::storage::Storage;
use crate::storage::background::BackgroundKind;
use crate::storage::background_log::BackgroundLog;
use crate::wal::record::RecordKind;
use crate::wal::{LogDevice, Wal};

/// Interval at which the checkpointer looks how far the log has grown.
const SIZE_POLL: Duration = Duration::from_millis(100);

/// Time between a failed checkpoint and the next attempt.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// After this long without a flush, the log writer adds a record to the log. Until then no record behind the
/// last flush proves that it was durable (see the recovery module).
const IDLE_DELAY: Duration = Duration::from_secs(1);

/// The background threads' shared state.
#[derive(Debug, Default)]
pub(crate) struct Checkpointer {
    stopping: Mutex<bool>,
    changed: Condvar,
    /// One checkpoint at a time.
    running: Mutex<()>,
    /// The records that they have logged themselves.
    background_log: BackgroundLog,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Checkpointer {
    /// Starts the checkpointer and the log writer.
    pub(crate) fn spawn(storage: &Arc<Storage>) -> Result<Vec<JoinHandle<()>>> {
        let start = |name: &str, kind: BackgroundKind, body: fn(Weak<Storage>, Arc<Checkpointer>)| {
            let (weak, checkpointer) = (Arc::downgrade(storage), Arc::clone(&storage.checkpointer));
            let background = Arc::clone(&storage.background);
            thread::Builder::new()
                .name(name.into())
                .spawn(move || {
                    let _entered = background.enter(kind);
                    body(weak, checkpointer);
                })
                .map_err(|error| StorageError::io("start a thread for", storage.dir(), error))
        };
        // Now, and not when the thread runs first: a session that finds no log writer flushes by itself, and then cannot be
        // told to stop.
        storage.wal.expect_log_writer();
        let writer = start("wal-writer", BackgroundKind::LogWriter, log_writer_loop);
        if writer.is_err() {
            drop(storage.wal.begin_log_writer());
        }
        Ok(vec![
            start("checkpointer", BackgroundKind::Checkpointer, checkpoint_loop)?,
            writer?,
        ])
    }

    /// No checkpoint is made while the guard lives.
    pub(crate) fn pause(&self) -> MutexGuard<'_, ()> {
        lock(&self.running)
    }

    /// Makes the threads end.
    pub(crate) fn stop(&self, log: &Wal) {
        *lock(&self.stopping) = true;
        self.changed.notify_all();
        log.wake_log_writer();
    }

    /// True if it is time to end.
    fn is_stopping(&self) -> bool {
        *lock(&self.stopping)
    }

    /// The checkpointer sleeps; `true` if it is time to end.
    fn sleep(&self, duration: Duration) -> bool {
        let _wait = WaitScope::<Native>::enter(WaitEvent::CheckpointerMain);
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
    while !checkpointer.sleep(SIZE_POLL) {
        let Some(storage) = storage.upgrade() else { return };
        let grown = storage.wal.reserved().0 - storage.wal.redo().0;
        let due = last.elapsed() >= storage.options.checkpoint_timeout;
        // The last checkpoint's own records lie behind its redo position. They do not count, nor do the log writer's, so
        // an idle engine does not checkpoint for ever.
        let idle = 4_096 + checkpointer.background_log.bytes();
        if grown >= storage.options.wal_bytes_max || due && grown > idle {
            last = Instant::now();
            if let Err(error) = storage.run_checkpoint(false) {
                tracing::error!(%error, "checkpoint failed; the log is kept, and it will be tried again");
                drop(storage);
                if checkpointer.sleep(RETRY_DELAY) {
                    return;
                }
            }
        } else if due {
            last = Instant::now();
        }
    }
}

fn log_writer_loop(storage: Weak<Storage>, checkpointer: Arc<Checkpointer>) {
    let options =
        |storage: Arc<Storage>| (storage.options.wal_writer_delay, storage.options.running_interval);
    let Some((delay, running_interval)) = storage.upgrade().map(options) else {
        return;
    };
    // Not the storage, as below. The log is closed with the storage, which waits for this thread's end.
    let Some(wal) = storage.upgrade().map(|storage| Arc::clone(&storage.wal)) else {
        return;
    };
    let log_writer = wal.begin_log_writer();
    let mut running_logged = Instant::now();
    let (mut flushed, mut moved, mut proven) = (Lsn(0), Instant::now(), Lsn(0));
    loop {
        {
            let _wait = WaitScope::<Native>::enter(WaitEvent::WalWriterMain);
            log_writer.sleep(Some(delay), || checkpointer.is_stopping());
        }
        if checkpointer.is_stopping() {
            return;
        }
        let Some(storage) = storage.upgrade() else { return };
        // First: sessions may wait for it.
        storage.commits.flush_in_background(&storage.wal);
        let now = storage.wal.flushed();
        if now != flushed {
            (flushed, moved) = (now, Instant::now());
        } else if now > proven && moved.elapsed() >= IDLE_DELAY && storage.wal.make_room().is_ok() {
            proven = storage.log_in_background(RecordKind::Nothing, &[]);
            storage.wal.flush(proven);
        }
        if running_logged.elapsed() >= running_interval {
            running_logged = Instant::now();
            let is_quiet = checkpointer.background_log.is_quiet(storage.wal.reserved());
            if !is_quiet && storage.wal.make_room().is_ok() {
                // Durable at once: a standby is sent nothing else, and after this record there may be silence.
                let end = storage.log_running();
                storage.wal.flush(end);
            }
        }
        // The log writer makes segments ahead of time, so that sessions seldom have to. On a full disk, the
        // next session that changes something gets the error.
        let _ = storage.wal.make_room_ahead();
    }
}

impl Storage {
    /// Makes a checkpoint; what the control file says of it.
    pub(crate) fn run_checkpoint(&self, shutdown: bool) -> Result<Control> {
        let _one = lock(&self.checkpointer.running);
        let started = Instant::now();
        let wal_dir = || self.dir().join(data_directory::LOG);
        self.wal
            .make_room()
            .map_err(|error| StorageError::io("extend", &wal_dir(), error))?;
        // 1 and 2.
        let handed_out = || (self.proc_array.next_xid(), self.next_rel.load(Ordering::Acquire));
        let (redo, (next_xid, next_rel)) = self
            .commits
            .counters()
            .begin_checkpoint(|| self.wal.move_redo(), handed_out);
        self.checkpointer.background_log.redo_has_moved();
        self.commit_log.flush_all().map_err(storage_error)?;
        let lengths = self.files.lengths();
        let pages = self.pool.write_all()?;
        self.files.sync_all()?;
        let end = self.log_checkpoint(redo, &lengths);
        self.wal.flush(end);
        let control = Control {
            redo,
            log_end: end,
            next_xid,
            next_rel,
            state: if shutdown { State::Clean } else { State::Running },
            system_identifier: self.system_identifier(),
            // What recovery has replayed reached it.
            backup_end: Lsn(0),
            timeline: self.timeline(),
        };
        lock(&self.control).write(control)?;
        let needed_from = self.retention.release(redo, self.wal.flushed())?;
        let recycled = self.wal.device().forget_before(needed_from.0);
        recycled.map_err(|error| StorageError::io("recycle", &wal_dir(), error))?;
        tracing::info!(%redo, pages, elapsed_ms = started.elapsed().as_millis() as u64, "checkpoint complete");
        Ok(control)
    }

    /// Step 4; returns the position after the records.
    fn log_checkpoint(&self, redo: Lsn, lengths: &Lengths) -> Lsn {
        self.log_running();
        for payload in lengths::encode(lengths) {
            self.log_in_background(RecordKind::Lengths, &payload);
        }
        let mut payload = redo.0.to_le_bytes().to_vec();
        payload.extend_from_slice(&(lengths.len() as u64).to_le_bytes());
        self.log_in_background(RecordKind::Checkpoint, &payload)
    }

    /// Logs which transactions run; returns the position after the record. The log has room.
    fn log_running(&self) -> Lsn {
        let mut running = Vec::new();
        let payload = running_transactions::encode(&self.proc_array.running_transactions(&mut running));
        self.log_in_background(RecordKind::Running, &payload)
    }

    /// Logs a record of the background's own; returns the position after it. The log has room.
    fn log_in_background(&self, kind: RecordKind, payload: &[u8]) -> Lsn {
        let end = self.wal.insert_any(kind, Xid::INVALID, payload);
        self.checkpointer.background_log.note(kind, payload.len(), end);
        end
    }
}

#[cfg(test)]
mod tests {
    use crate::{Storage, StorageOptions};

    /// F4 of `flush_requests`: no session comes before the log writer, however late the thread of that runs.
    #[test]
    fn an_open_storage_has_a_log_writer() {
        for _ in 0..20 {
            let directory = tempfile::tempdir().unwrap();
            let options = StorageOptions {
                fsync: false,
                ..StorageOptions::default()
            };
            let (storage, _) = Storage::open(directory.path(), options).unwrap();
            assert!(storage.wal.has_log_writer());
        }
    }
}
