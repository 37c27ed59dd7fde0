//! Waiting for room on the disk.
//!
//! Replay adds pages to relations, makes files, and writes pages that have to leave the buffer pool. A disk that is full is
//! made free by someone, as a rule, and a limit of a file's size is raised; to end replay for that would cost a new copy of the primary. So what finds no room is
//! tried again until there is some. Sessions read meanwhile, log is received as long as that finds room, and the primary is
//! told how far replay is.
//!
//! A step that is tried again must have changed nothing when it fails, or do the same again: a page is made before its change
//! is begun, pages are pinned before one of them is changed, and a status is set to what it is.
//!
//! The wait ends with the standby's threads. A promotion is refused while replay waits; if room runs out after its beginning,
//! the promotion fails, and the directory is opened again as a standby's.

use std::time::Duration;

use clearway_machine::WaitEvent;

use crate::error::Result;
use crate::replication::standby_state::Standby;

/// Time between two attempts.
const RETRY_EVERY: Duration = Duration::from_millis(500);

impl Standby {
    /// Does `step`, again and again while there is no room for it.
    pub(crate) fn with_room<T>(&self, mut step: impl FnMut() -> Result<T>) -> Result<T> {
        let mut waits = false;
        loop {
            let outcome = step();
            let error = match outcome {
                Err(error) if error.wants_room() => error,
                outcome => {
                    if waits {
                        *self.progress.wants_room() = None;
                        if outcome.is_ok() {
                            tracing::info!("there is room on the disk again; replay goes on");
                        }
                    }
                    return outcome;
                }
            };
            let progress = &self.progress;
            let is_over = || progress.is_stopping() || progress.is_ending() || progress.has_failed();
            if is_over() {
                return Err(error);
            }
            if !waits {
                waits = true;
                tracing::error!(%error, "replay waits for room on the disk");
                *self.progress.wants_room() = Some(error);
            }
            self.progress.wait(RETRY_EVERY, WaitEvent::RecoveryRoom, is_over);
        }
    }
}
