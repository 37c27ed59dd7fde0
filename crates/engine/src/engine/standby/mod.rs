//! The engine on a standby: definitions that change under its sessions, sessions in the way of replay, and the
//! promotion. The storage's part is described in `storage/src/standby/mod.rs`.
//!
//! | file | |
//! | --- | --- |
//! | `follow` | a commit of the primary that has changed definitions |
//! | `conflict` | ending the sessions in the way of replay |
//! | `diverged` | refusing to read what is of an abandoned branch |
//! | `promote` | a standby becomes a primary |
//! | `receiver` | what receives the log, as `pg_stat_wal_receiver` shows it |
//! | `replay_deadlock` | a session that waits for replay, which waits for it |
//!
//! # Rules
//! - E1: nothing is logged and no xid is given out. Transactions of a standby are read only from their beginning, and a
//!   statement that writes is refused before it takes a lock (`session/run.rs`). What is left are hint bits and temporary
//!   files. Neither vacuum nor pruning runs: both are replayed.
//! - E2: definitions change on the thread that replays, and nowhere else, so there is one new state at a time.
//! - E3: a file goes when its definition is gone for all sessions, and not before the commit that took it away is seen.
//! - E4: replay waits for a session only within the limits of `Standby::wait_for_sessions`, and never for a client.
//!
//! # What it does not do
//! A relation that a transaction of the primary has made and rolled back keeps its file here until the next change of
//! definitions, or the promotion: that it was removed there is not logged.

mod conflict;
mod diverged;
mod follow;
mod promote;
mod receiver;
mod replay_deadlock;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use clearway_storage::{Standby, StandbyOptions, Storage};
use clearway_txn::ProcId;

use super::{Engine, closed_on_error, storage_options};
use crate::config::Config;
use crate::convert::storage_error;
use crate::memory;
use crate::replication_status::{ConflictCounts, WalReceiverStatus};
use crate::spill;
use clearway_sql::error::{EngineError, Result};
use diverged::Divergence;
use follow::DefinitionFollower;
use receiver::Hook;

/// The parts that an engine has in addition for being a standby.
#[derive(Debug, Default)]
pub(super) struct StandbyEngine {
    conflicts: [AtomicU64; 2],
    divergence: Divergence,
    /// The session slot under which replay holds locks and waits for them.
    replay_proc: OnceLock<ProcId>,
    /// Asks whatever receives the log to end that, and promotes.
    promotion: Hook<dyn Fn() + Send + Sync>,
    /// Tells what receives the log.
    receiver: Hook<dyn Fn() -> Option<WalReceiverStatus> + Send + Sync>,
}

impl Engine {
    /// Opens the database in `directory` as a standby: replays the log that is there, and then what is received
    /// ([`Storage::receive_log`]). Sessions read, from when this returns. A directory without a database is an error.
    pub fn open_standby(directory: impl AsRef<Path>, config: Config) -> Result<Arc<Engine>, EngineError> {
        config.check()?;
        memory::prepare(
            config.server_memory.bytes(),
            config.shared_buffers.bytes(),
            config.shared_buffers,
        )?;
        let options = StandbyOptions {
            known_xids: config.mechanisms.known_xids,
            known_xids_compaction: config.mechanisms.known_xids_compaction,
            replay: config.mechanisms.replay,
            replay_workers: config.replay_workers,
            streaming_delay_max: config.max_standby_streaming_delay.duration(),
            apply_delay: config.recovery_min_apply_delay.duration(),
        };
        let opened = Storage::open_standby(directory.as_ref(), storage_options(&config), options);
        let opened = opened.map_err(storage_error)?;
        closed_on_error(&Arc::clone(&opened.0), || {
            // For its own commits, after a promotion.
            opened.0.sync_replication.set_names(config.standby_names()?);
            let temporary = spill::prepare_directory(directory.as_ref())?;
            let engine = Engine::with_storage(opened, temporary, config);
            let rows = engine.load_catalog()?;
            engine.check_files()?;
            let proc = engine.attach()?;
            let _ = engine.standby.replay_proc.set(proc);
            let follower = DefinitionFollower::new(Arc::downgrade(&engine), proc, rows);
            let started = engine.storage.start_replay(Arc::new(follower));
            started.map_err(storage_error)?;
            Ok(engine)
        })
    }

    /// The standby that it is; 55000 if it is none.
    pub(crate) fn replaying(&self) -> Result<&Standby> {
        let standby = self.storage.standby().filter(|_| self.is_standby());
        standby
            .map(|standby| &**standby)
            .ok_or_else(promote::not_in_recovery)
    }

    /// True if it is a standby, which reads only. A promotion ends that.
    #[inline]
    pub fn is_standby(&self) -> bool {
        self.storage.is_standby()
    }

    /// Number of statements and transactions that replay has ended so far.
    pub(crate) fn conflict_counts(&self) -> ConflictCounts {
        let [lock, snapshot] = &self.standby.conflicts;
        ConflictCounts {
            lock: lock.load(Ordering::Relaxed),
            snapshot: snapshot.load(Ordering::Relaxed),
        }
    }
}
