//! The end of recovery: a standby becomes a primary.
//!
//! 1. Receiving has ended, and cannot begin again.
//! 2. Replay goes on to the last whole record that was received, position F, and ends. What the old primary was running
//!    has ended: without a commit in the log it counts as rolled back.
//! 3. Overwrite the log behind F with zeros: there may be the beginning of a record that was not received whole.
//! 4. Write the commit log's pages and sync them: from here on no start needs the journal. Begin the next timeline at F
//!    (`timeline`), so that the two logs behind F are told apart for ever. Its last step, a write of the control file,
//!    makes the directory a primary's; before that a crash leaves a standby on the old timeline.
//! 5. Xids and relation numbers go on behind those that replay has met.
//! 6. Make a checkpoint. After a crash before its end, the start is a primary's, and recovers from the last restartpoint
//!    on.
//! 7. Sessions take their snapshots of the array from now on, and may write.
//!
//! Sessions that read go on all the time. A snapshot of before regards all xids from its xmax on as running, those of the
//! new timeline included, and its xmin is in the session's slot, where the horizon finds it.
//!
//! # Why the control file is written in 4
//! The checkpoint of step 6 could do it. But it logs images of the commit log's pages before it writes them, on the new
//! timeline. A crash between could tear such a page, and the start on the old timeline would not find the image.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Standby;
use super::replay::Replayer;
use crate::checkpoint::Checkpointer;
use crate::data_directory;
use crate::error::{Result, StorageError};
use crate::page::Lsn;
use crate::recovery;
use crate::status_pages::storage_error;
use crate::storage::Storage;

impl Storage {
    /// Makes a primary of the standby; `reason` goes into the timeline's history. The new timeline, and where it begins.
    /// Receiving has ended. An error leaves a standby that reads and follows no more, and can be opened again as one.
    pub fn promote(self: &Arc<Self>, reason: &str) -> Result<(u32, Lsn)> {
        let Some(standby) = self.standby().map(Arc::clone) else {
            return Err(StorageError::Standby {
                problem: "this server is no standby, so it cannot be promoted".to_owned(),
            });
        };
        // 1.
        if !standby.is_active() || standby.receiver_is_taken.swap(true, Ordering::AcqRel) {
            return Err(standby.failed("the standby still receives log, or was promoted before"));
        }
        let promoted = self.end_recovery(&standby, reason);
        if promoted.is_err() {
            standby.receiver_is_taken.store(false, Ordering::Release);
        }
        promoted
    }

    fn end_recovery(self: &Arc<Self>, standby: &Standby, reason: &str) -> Result<(u32, Lsn)> {
        // 2.
        standby.finish_replay();
        if let Some(problem) = standby.failure() {
            return Err(standby.failed(format_args!(
                "replay has failed, so this is no database to go on with: {problem}"
            )));
        }
        let fork = standby.replayed();
        let next_xid = {
            let mut replayer = Replayer::new(self, standby, None)?;
            let next = replayer.next_xid();
            replayer.end_all();
            next
        };
        // 3.
        self.wal.continue_at(fork);
        recovery::clear_tail(self, fork).map_err(|error| {
            StorageError::io(
                "clear the end of the log in",
                &self.dir().join(data_directory::LOG),
                error,
            )
        })?;
        // 4.
        self.commit_log.flush_all().map_err(storage_error)?;
        self.files.sync_all()?;
        let timeline = self.begin_timeline(fork, reason)?;
        // 5.
        self.proc_array
            .continue_from(next_xid.max(self.proc_array.next_xid()));
        // 6.
        standby.journal.close();
        self.make_log_room()?;
        self.run_checkpoint(false)?;
        // 7.
        standby.deactivate();
        for thread in Checkpointer::spawn(self)? {
            self.keep_thread(thread);
        }
        tracing::info!(timeline, %fork, "promoted");
        Ok((timeline, fork))
    }
}
