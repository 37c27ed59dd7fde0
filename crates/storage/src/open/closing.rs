//! Checkpoints that are asked for, and the last one.

use std::sync::atomic::Ordering;

use crate::error::Result;
use crate::storage::Storage;
use crate::storage::background_state::CheckpointCounts;

impl Storage {
    /// Makes a checkpoint now and waits for its end; on a standby, a restartpoint at the last checkpoint of the primary
    /// that was replayed.
    pub fn checkpoint(&self) -> Result<()> {
        self.checkpoint_counts().requested.fetch_add(1, Ordering::Relaxed);
        match self.standby() {
            Some(standby) if standby.is_active() => self.run_restartpoint(standby).map(drop),
            _ => self.run_checkpoint(false).map(drop),
        }
    }

    /// The checkpoints since the start.
    pub fn checkpoint_counts(&self) -> &CheckpointCounts {
        &self.background_state.checkpoints
    }

    /// Stops the background threads and makes the last checkpoint: the next start has nothing to recover. Sessions have
    /// ended. Called twice, the second call does nothing.
    pub fn shutdown(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.stop_threads();
        let made = match self.standby() {
            Some(standby) if standby.is_active() => self.run_restartpoint(standby).map(drop),
            _ => self.run_checkpoint(true).map(drop),
        };
        // Release: pairs with the Acquire in `is_shut_down`.
        self.shut_down.store(true, Ordering::Release);
        made
    }
}
