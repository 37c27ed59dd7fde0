//! The end of recovery: a standby becomes a primary.
//!
//! 0. Everything that was ever acknowledged is there and can be replayed (S10), and replay does not wait for room. Otherwise
//!    the promotion is refused; the caller asks before it ends receiving ([`Storage::check_promotion`]).
//! 1. Receiving has ended, and cannot begin again.
//! 2. Replay goes on to the last whole record that was received, position F, and ends.
//! 3. Overwrite the log behind F with zeros: there may be the beginning of a record that was not received whole.
//! 4. Write the commit log's pages and sync them: from here on no start needs the journal. Begin the next timeline at F
//!    (`timeline`), so that the two logs behind F are told apart for ever. Its last step, a write of the control file,
//!    makes the directory a primary's; before that a crash leaves a standby on the old timeline. What the old primary was
//!    running has ended: without a commit in the log it counts as rolled back.
//! 5. Xids and relation numbers go on behind those that replay has met.
//! 6. Make a checkpoint. After a crash before its end, the start is a primary's, and recovers from the last restartpoint
//!    on.
//! 7. Sessions take their snapshots of the array from now on, and may write.
//!
//! An error before the end of step 4 leaves a standby, which can be promoted again or receive again. After one in 5 or 6
//! (a full disk, as a rule) the directory is a primary's, and the server that runs on it still answers reads as a standby.
//! It is refused to receive, since the log behind F is another one's there, and to promote it again, since step 3 would
//! overwrite what step 6 has logged. The way out is a start as a primary, which makes the checkpoint; nothing is lost.
//!
//! Sessions that read go on all the time. A snapshot of before regards all xids from its xmax on as running, those of the
//! new timeline included, and its xmin is in the session's slot, where the horizon finds it.
//!
//! # Why transactions end in 4 and not in 2
//! A session that meets a row of a transaction that does not run and has no status sets a hint bit which says that it was
//! rolled back. If the promotion failed after that, and the directory was opened again as a standby, the transaction's commit
//! might come, and no replay takes a hint back: its rows would be missing. From the end of step 4 on no log of the old timeline is received.
//!
//! # Why the control file is written in 4
//! The checkpoint of step 6 could do it. But it logs images of the commit log's pages before it writes them, on the new
//! timeline. A crash between could tear such a page, and the start on the old timeline would not find the image.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::error::{Result, StorageError};
use crate::files::status_pages::storage_error;
use crate::open::background;
use crate::open::recovery;
use crate::page::Lsn;
use crate::replication::standby_state::{ACKNOWLEDGED, Standby};
use crate::standby::replay::Replayer;
use crate::storage::Storage;

impl Storage {
    /// Makes a primary of the standby; `reason` goes into the timeline's history. The new timeline, and where it begins.
    /// Receiving has ended. An error leaves a standby that reads and follows no more, and can be opened again as one,
    /// unless the message says that the directory is a primary's.
    pub fn promote(self: &Arc<Self>, reason: &str) -> Result<(u32, Lsn)> {
        let Some(standby) = self.standby().map(Arc::clone) else {
            return Err(StorageError::Standby {
                problem: "this server is no standby, so it cannot be promoted".to_owned(),
            });
        };
        self.check_promotion()?;
        // 1.
        if !standby.is_active() || standby.receiver_is_taken.swap(true, Ordering::AcqRel) {
            return Err(standby.failed("the standby still receives log, or was promoted before"));
        }
        let promoted = self.end_recovery(&standby, reason);
        match (promoted, standby.own_timeline.get()) {
            (Err(error), Some((timeline, fork))) => Err(standby.failed(format_args!(
                "{error}; timeline {timeline} has begun at {fork}, so {0} is a primary's directory by now, although this \
                 server does not take writes; nothing is lost: stop it, do away with the cause, and start \
                 \"clearway serve --data {0}\"",
                self.dir().display()
            ))),
            (Err(error), None) => {
                standby.receiver_is_taken.store(false, Ordering::Release);
                Err(error)
            }
            (promoted, _) => promoted,
        }
    }

    /// An error if a promotion would be refused now: step 0.
    pub fn check_promotion(&self) -> Result<()> {
        let Some(standby) = self.standby() else {
            return Ok(());
        };
        standby.refuse_primarys_directory(self.dir())?;
        if let Some(problem) = standby.failure() {
            return Err(standby.failed(format_args!(
                "replay has failed, so this is no database to go on with: {problem}"
            )));
        }
        if let Some(problem) = standby.waits_for_room() {
            return Err(standby.failed(format_args!(
                "replay waits for room on the disk, and has not come to the end of the log: {problem}"
            )));
        }
        // Log may be received meanwhile.
        let (acknowledged, whole) = standby.acknowledged.beside(|| standby.progress.whole());
        if whole < acknowledged {
            return Err(StorageError::AcknowledgedLogLost {
                dir: self.dir().to_owned(),
                file: self.dir().join(ACKNOWLEDGED),
                whole,
                acknowledged,
            });
        }
        Ok(())
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
        if fork < standby.acknowledged.position() {
            return Err(standby.failed(format_args!(
                "replay has ended at {fork}, and log up to {} was acknowledged",
                standby.acknowledged.position()
            )));
        }
        self.retention.log_was_taken_back(fork);
        let next_xid = Replayer::new(self, standby, None)?.next_xid();
        // 3.
        assert_eq!(
            self.wal.reserved(),
            fork,
            "the log goes on where replay has ended"
        );
        recovery::clear_tail(self, fork)
            .map_err(|error| StorageError::io("clear the end of the log in", &self.log_dir(), error))?;
        // 4.
        self.commit_log.flush_all().map_err(storage_error)?;
        self.files.sync_all()?;
        let timeline = self.begin_timeline(fork, reason)?;
        let _ = standby.own_timeline.set((timeline, fork));
        Replayer::new(self, standby, None)?.end_all();
        // 5.
        self.proc_array
            .continue_from(next_xid.max(self.proc_array.next_xid()));
        // 6.
        standby.journal.close();
        self.make_log_room()?;
        self.run_checkpoint(false)?;
        // 7.
        standby.deactivate();
        for thread in background::start_threads(self)? {
            self.keep_thread(thread);
        }
        tracing::info!(timeline, %fork, "promoted");
        Ok((timeline, fork))
    }
}
