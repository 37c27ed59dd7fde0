//! Restartpoints: a standby's checkpoints.
//!
//! A standby logs nothing, so it cannot make a checkpoint where it likes. It waits until it has replayed one of the
//! primary's, and does then what the primary did at that point: everything that was logged before that checkpoint's redo
//! position gets into the files, and the control file names that position.
//!
//! 1. Replay remembers the last checkpoint that it has passed. Before that, it has added to each relation the empty pages
//!    that the primary's files had (`Lengths`).
//! 2. Write the commit log's pages and all dirty pages, and make the files durable, the program's own too. They hold changes of after the
//!    checkpoint too; those are replayed again, which is harmless.
//! 3. Write the control file: the checkpoint's redo position, and its end, before which the next start finds the lengths
//!    and the running transactions.
//! 4. Recycle the log before the redo position that nothing else needs.
//!
//! A page torn in step 2 was changed behind the redo position that the control file still names, so its first change
//! behind that is a whole page in the log: the primary decided that by the same redo position. For the commit log's pages
//! see `status_journal`.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use clearway_machine::WaitEvent;

use crate::error::Result;
use crate::files::control_file::{Control, State};
use crate::files::status_pages::storage_error;
use crate::page::Lsn;
use crate::replication::standby_state::{ReplayedCheckpoint, Standby, lock};
use crate::storage::Storage;
use crate::storage::background_state::CHECKPOINTS;

/// Time between two looks whether a restartpoint is due.
const LOOK: Duration = Duration::from_millis(200);
/// Time between a failed one and the next attempt.
const RETRY_DELAY: Duration = Duration::from_secs(5);

impl Storage {
    /// Makes a restartpoint at the last checkpoint that was replayed, if there was one since the last restartpoint; what
    /// the control file says of it.
    pub(crate) fn run_restartpoint(&self, standby: &Standby) -> Result<Option<Control>> {
        let _one = self.background_state.pause_checkpoints();
        // A promotion has the control file say that this is a primary's directory: not to be undone.
        if standby.progress.is_ending() {
            return Ok(None);
        }
        let Some(checkpoint) = lock(&standby.checkpoint).take() else {
            return Ok(None);
        };
        let made = self.make_restartpoint(standby, checkpoint);
        if made.is_err() {
            lock(&standby.checkpoint).get_or_insert(checkpoint);
        }
        made.map(Some)
    }

    fn make_restartpoint(&self, standby: &Standby, checkpoint: ReplayedCheckpoint) -> Result<Control> {
        let started = Instant::now();
        self.commit_log.flush_all().map_err(storage_error)?;
        let writing = Instant::now();
        let pages = self.pool.write_all()?;
        let syncing = Instant::now();
        self.files.sync_all()?;
        self.make_own_durable(checkpoint.redo)?;
        self.checkpoint_counts()
            .wrote(pages, syncing - writing, syncing.elapsed());
        let control = Control {
            redo: checkpoint.redo,
            log_end: checkpoint.end,
            next_xid: checkpoint.next_xid,
            next_rel: checkpoint.next_rel,
            state: State::Standby,
            system_identifier: self.system_identifier(),
            // Everything that a backup needs was replayed when the directory was opened.
            backup_end: Lsn(0),
            timeline: self.timeline(),
        };
        self.begin_recovery_at(control, standby.received())?;
        let elapsed_ms = started.elapsed().as_millis() as u64;
        tracing::info!(target: CHECKPOINTS, redo = %checkpoint.redo, pages, elapsed_ms, "restartpoint complete");
        Ok(control)
    }
}

/// The thread that makes restartpoints: as often as the configuration says of checkpoints.
pub(crate) fn restartpoint_loop(storage: Weak<Storage>, standby: Arc<Standby>) {
    let mut last = Instant::now();
    let mut last_redo = Lsn(0);
    let tracker = &standby.progress;
    let is_over = || tracker.is_stopping() || tracker.has_failed() || !standby.active.load(Ordering::Acquire);
    while !tracker.wait(LOOK, WaitEvent::CheckpointerMain, is_over) {
        let Some(storage) = storage.upgrade() else { return };
        let Some(checkpoint) = *lock(&standby.checkpoint) else {
            continue;
        };
        let grown = checkpoint.redo.0.saturating_sub(last_redo.0);
        let is_time = last.elapsed() >= storage.options.checkpoint_timeout;
        let is_due = is_time || grown >= storage.options.wal_bytes_max && last_redo != Lsn(0);
        if last_redo == Lsn(0) {
            last_redo = checkpoint.redo;
        }
        if is_due {
            storage.checkpoint_counts().begun(is_time);
            match storage.run_restartpoint(&standby) {
                Ok(_) => last_redo = checkpoint.redo,
                Err(error) => {
                    tracing::error!(%error, "restartpoint failed; the log is kept, and it will be tried again");
                    drop(storage);
                    if tracker.wait(RETRY_DELAY, WaitEvent::CheckpointerMain, is_over) {
                        return;
                    }
                }
            }
            last = Instant::now();
        }
    }
}
