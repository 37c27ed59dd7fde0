//! The checkpointer and the log writer: threads of an open database that is written to.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use clearway_machine::{Native, WaitEvent, WaitScope};

use crate::error::{Result, StorageError};
use crate::page::Lsn;
use crate::storage::Storage;
use crate::storage::background::BackgroundKind;
use crate::storage::background_state::BackgroundState;
use crate::wal::record::RecordKind;

/// Interval at which the checkpointer looks how far the log has grown.
const SIZE_POLL: Duration = Duration::from_millis(100);

/// Time between a failed checkpoint and the next attempt.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// After this long without a flush, the log writer adds a record to the log. Until then no record behind the
/// last flush proves that it was durable (see the recovery module).
const IDLE_DELAY: Duration = Duration::from_secs(1);

/// Starts the checkpointer and the log writer.
pub(crate) fn start_threads(storage: &Arc<Storage>) -> Result<Vec<JoinHandle<()>>> {
    let begin = |name: &str, kind: BackgroundKind, body: fn(Weak<Storage>, Arc<BackgroundState>)| {
        let (weak, state) = (Arc::downgrade(storage), Arc::clone(&storage.background_state));
        let background = Arc::clone(&storage.background);
        thread::Builder::new()
            .name(name.into())
            .spawn(move || {
                let _entered = background.enter(kind);
                body(weak, state);
            })
            .map_err(|error| StorageError::io("start a thread for", storage.dir(), error))
    };
    // Now, and not when the thread runs first: a session that finds no log writer flushes by itself, and then cannot be
    // told to stop.
    storage.wal.expect_log_writer();
    let writer = begin("wal-writer", BackgroundKind::LogWriter, log_writer_loop);
    if writer.is_err() {
        drop(storage.wal.begin_log_writer());
    }
    Ok(vec![
        begin("checkpointer", BackgroundKind::Checkpointer, checkpoint_loop)?,
        writer?,
    ])
}

fn checkpoint_loop(storage: Weak<Storage>, state: Arc<BackgroundState>) {
    let mut last = Instant::now();
    // No strong reference while asleep: an engine that is dropped must not live on for that long.
    while !state.sleep(SIZE_POLL) {
        let Some(storage) = storage.upgrade() else { return };
        let grown = storage.wal.reserved().0 - storage.wal.redo().0;
        let due = last.elapsed() >= storage.options.checkpoint_timeout;
        // The last checkpoint's own records lie behind its redo position. They do not count, nor do the log writer's, so
        // an idle engine does not checkpoint for ever.
        let idle = 4_096 + state.log.bytes();
        if grown >= storage.options.wal_bytes_max || due && grown > idle {
            last = Instant::now();
            let counts = storage.checkpoint_counts();
            let count = if due { &counts.timed } else { &counts.requested };
            count.fetch_add(1, Ordering::Relaxed);
            if let Err(error) = storage.run_checkpoint(false) {
                tracing::error!(%error, "checkpoint failed; the log is kept, and it will be tried again");
                drop(storage);
                if state.sleep(RETRY_DELAY) {
                    return;
                }
            }
        } else if due {
            last = Instant::now();
        }
    }
}

fn log_writer_loop(storage: Weak<Storage>, state: Arc<BackgroundState>) {
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
            log_writer.sleep(Some(delay), || state.is_stopping());
        }
        if state.is_stopping() {
            return;
        }
        let Some(storage) = storage.upgrade() else { return };
        // First: sessions may wait for it.
        storage.commits.flush_in_background(&storage.wal);
        let now = storage.wal.flushed();
        if now != flushed {
            (flushed, moved) = (now, Instant::now());
        } else if now > proven && moved.elapsed() >= IDLE_DELAY && storage.wal.make_room().is_ok() {
            proven = storage.log_in_background(RecordKind::NOTHING, &[]);
            storage.wal.flush(proven);
        }
        if running_logged.elapsed() >= running_interval {
            running_logged = Instant::now();
            let is_quiet = state.log.is_quiet(storage.wal.reserved());
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
