//! Checkpoints: bounding what recovery must replay.
//!
//! 1. Move the redo position to the end of what is reserved of the log (R4 of `wal/insert`). What was done before those
//!    reservations is seen from here on.
//! 2. Wait for the commits that were logged before it to reach the commit log (R1), and write its pages.
//! 3. Read the relations' lengths (`lengths`). Write all dirty pages; make the data files durable. Have the program make its
//!    own files so (`wal::own_records`).
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
use std::time::Instant;

use clearway_txn::Xid;

use crate::error::{Result, StorageError};
use crate::files::control_file::{Control, State};
use crate::files::lengths::{self, Lengths};
use crate::files::status_pages::storage_error;
use crate::page::Lsn;
use crate::replication::running_transactions;
use crate::storage::Storage;
use crate::storage::background_state::CHECKPOINTS;
use crate::wal::record::RecordKind;

impl Storage {
    /// Makes a checkpoint; what the control file says of it.
    pub(crate) fn run_checkpoint(&self, shutdown: bool) -> Result<Control> {
        let _one = self.background_state.pause_checkpoints();
        let started = Instant::now();
        self.wal
            .make_room()
            .map_err(|error| StorageError::io("extend", &self.log_dir(), error))?;
        // 1 and 2.
        let handed_out = || (self.proc_array.next_xid(), self.next_rel.load(Ordering::Acquire));
        let (redo, (next_xid, next_rel)) = self
            .commits
            .counters()
            .begin_checkpoint(|| self.wal.move_redo(), handed_out);
        self.background_state.log.redo_has_moved();
        self.commit_log.flush_all().map_err(storage_error)?;
        let lengths = self.files.lengths();
        let counts = &self.background_state.checkpoints;
        let writing = Instant::now();
        let pages = self.pool.write_all()?;
        counts.pages.fetch_add(pages, Ordering::Relaxed);
        let syncing = Instant::now();
        self.files.sync_all()?;
        self.make_own_durable(redo)?;
        for (sum, time) in [
            (&counts.write_us, syncing - writing),
            (&counts.sync_us, syncing.elapsed()),
        ] {
            sum.fetch_add(time.as_micros() as u64, Ordering::Relaxed);
        }
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
        self.begin_recovery_at(control, self.wal.flushed())?;
        tracing::info!(target: CHECKPOINTS, %redo, pages, elapsed_ms = started.elapsed().as_millis() as u64, "checkpoint complete");
        Ok(control)
    }

    /// Step 4; returns the position after the records.
    fn log_checkpoint(&self, redo: Lsn, lengths: &Lengths) -> Lsn {
        self.log_running();
        for payload in lengths::encode(lengths) {
            self.log_in_background(RecordKind::LENGTHS, &payload);
        }
        let mut payload = redo.0.to_le_bytes().to_vec();
        payload.extend_from_slice(&(lengths.len() as u64).to_le_bytes());
        self.log_in_background(RecordKind::CHECKPOINT, &payload)
    }

    /// Logs which transactions run; returns the position after the record. The log has room.
    pub(super) fn log_running(&self) -> Lsn {
        let mut running = Vec::new();
        let payload = running_transactions::encode(&self.proc_array.running_transactions(&mut running));
        self.log_in_background(RecordKind::RUNNING, &payload)
    }

    /// Logs a record of the background's own; returns the position after it. The log has room.
    pub(super) fn log_in_background(&self, kind: RecordKind, payload: &[u8]) -> Lsn {
        let end = self.wal.insert_any(kind, Xid::INVALID, payload);
        self.background_state.log.note(kind, payload.len(), end);
        end
    }
}
