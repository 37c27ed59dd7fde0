//! The log as it is read for others, and whose it is.

use std::path::PathBuf;
use std::sync::Arc;

use super::Storage;
use crate::error::{Result, StorageError};
use crate::page::Lsn;
use crate::replication::retention::Follower;
use crate::wal::log_digest::{self, LogDigest};
use crate::wal::timeline::{self, History};
use crate::wal::{LogDevice, SegmentFiles};

impl Storage {
    /// Up to where the log is durable here, and may be sent to followers: on a standby, what was received (S8 of
    /// `standby`).
    pub fn durable_log_end(&self) -> Lsn {
        match &self.standby {
            Some(standby) if standby.is_active() => standby.sendable(),
            _ => self.wal.flushed(),
        }
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
        let read = read.map_err(|error| StorageError::io("read", &self.log_dir(), error))?;
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

    /// The digest of the log from `start`, or from the oldest that is there, to `end`, or as far as it is durable.
    pub fn log_digest(&self, start: Lsn, end: Lsn) -> Result<LogDigest> {
        let held = self.retention.hold_for_reading(start)?;
        let start = held.position();
        let durable = self.durable_log_end();
        let end = end.min(durable);
        let wal_dir = self.log_dir();
        let digest = log_digest::digest(self.wal.device(), &wal_dir, start, end, || held.is_lost())?;
        if self.durable_log_end() < durable {
            // A promotion, or following another timeline, has taken back the end of the log meanwhile.
            return self.log_digest(start, end);
        }
        Ok(digest)
    }

    /// The timeline that the log is on.
    pub fn timeline(&self) -> u32 {
        self.history().current()
    }

    /// The log's history.
    pub fn history(&self) -> Arc<History> {
        self.segments().history().get()
    }

    /// The content of the history file of `timeline`; `None` if there is none.
    pub fn history_file(&self, timeline: u32) -> Result<Option<String>> {
        timeline::read_text(self.segments().disk(), self.segments().dir(), timeline)
    }

    pub(crate) fn segments(&self) -> &SegmentFiles {
        self.wal.device()
    }

    /// The path of the log at `position`, whether it is there or not.
    pub(crate) fn segment_path(&self, position: Lsn) -> PathBuf {
        self.wal.device().path_of(position.0)
    }
}
