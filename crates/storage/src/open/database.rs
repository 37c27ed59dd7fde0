//! Step 5 of a database: replay, and what a database that is written to needs beside.

use std::sync::Arc;

use super::assemble::Assembled;
use super::recovery::RecoveryReport;
use super::{background, recovery};
use crate::error::Result;
use crate::storage::Storage;

/// Replays the log, makes a checkpoint, and starts the background threads.
pub(super) fn start(opened: Assembled) -> Result<(Arc<Storage>, RecoveryReport)> {
    let Assembled {
        storage,
        status,
        scanned,
        target,
    } = opened;
    let report = recovery::replay(&storage, &status, &scanned)?;
    if let Some(target) = &target {
        storage.begin_timeline(scanned.end, &target.reason())?;
    }
    storage.make_log_room()?;
    // After this checkpoint, what was replayed need not be replayed again, and a new directory counts as
    // made.
    storage.run_checkpoint(false)?;
    let storage = Arc::new(storage);
    for thread in background::start_threads(&storage)? {
        storage.keep_thread(thread);
    }
    Ok((storage, report))
}
