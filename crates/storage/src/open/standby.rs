//! Step 5 of a standby: replay of the log that it has already.

use std::sync::Arc;
use std::time::Instant;

use super::assemble::Assembled;
use super::recovery::{RecoveryReport, ScannedLog};
use crate::error::Result;
use crate::replication::standby_state::Standby;
use crate::standby::following::replay_stretch;
use crate::standby::replay::Replayer;
use crate::storage::Storage;

/// Replays what the directory holds, before there are sessions (S3 of `standby`).
pub(super) fn start(opened: Assembled) -> Result<(Arc<Storage>, RecoveryReport)> {
    let Assembled { storage, scanned, .. } = opened;
    let report = match storage.standby() {
        Some(standby) => replay_local(&storage, standby, &scanned)?,
        None => scanned.report(),
    };
    Ok((Arc::new(storage), report))
}

fn replay_local(storage: &Storage, standby: &Standby, scanned: &ScannedLog) -> Result<RecoveryReport> {
    let started = Instant::now();
    let mut report = scanned.report();
    let mut replayer = Replayer::without_sessions(storage, standby)?;
    replay_stretch(
        storage,
        &mut replayer,
        scanned.redo,
        scanned.end,
        |_| true,
        |kind| {
            report.count(kind);
        },
    )?;
    // Fails if the running transactions are not known, which is when there can be no snapshots.
    replayer.suspect_running()?;
    drop(replayer);
    standby.status.end_recovery()?;
    report.elapsed = started.elapsed();
    Ok(report)
}
