//! A standby becomes a primary, while its sessions go on.
//!
//! 1. The caller has ended receiving.
//! 2. Lock the catalog, so that no session changes definitions before 5.
//! 3. The storage replays what was received, and begins a new timeline (`storage/src/open/promotion.rs`). Sessions may
//!    write from then on.
//! 4. Remove the files of transactions that were running on the old primary: what no definition names.
//! 5. Unlock the catalog, and start the background vacuum.
//!
//! Without 2, a table made between 3 and 4 would lose its file, which has no published definition before its commit.
//!
//! A session asks for a promotion (`pg_promote()`) through a hook, because the one who can end receiving is above the
//! engine.

use std::sync::Arc;
use std::time::{Duration, Instant};

use clearway_storage::Lsn;
use clearway_txn::{LockMode, LockTag};

use crate::catalog::CATALOG_REL;
use crate::convert::storage_error;
use crate::engine::Engine;
use crate::interrupt::Interrupts;
use clearway_sql::error::{EngineError, Result, SqlState};

/// Time between two looks whether a promotion has ended.
const LOOK: Duration = Duration::from_millis(10);

impl Engine {
    /// Makes a primary of the standby; `reason` goes into the history of the new timeline. Its number, and where it begins.
    /// Receiving has ended. After an error it is a standby that reads, unless the message says otherwise.
    pub fn promote(self: &Arc<Self>, reason: &str) -> Result<(u32, Lsn), EngineError> {
        if !self.is_standby() {
            return Err(not_in_recovery());
        }
        // A place of its own: the locks of replay's are released with each commit of definitions.
        let proc = self.attach()?;
        let locks = &self.storage.locks;
        // Definitions do not change on a standby, so it is free.
        let locked = locks.try_acquire(proc, LockTag::Relation(CATALOG_REL), LockMode::ShareRowExclusive);
        let promoted = if locked {
            self.storage.promote(reason).map_err(storage_error)
        } else {
            Err(EngineError::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                "a promotion is under way already",
            ))
        };
        let cleared = match &promoted {
            Ok(_) => self.remove_orphans(),
            Err(_) => Ok(()),
        };
        locks.release_all(proc);
        self.storage.proc_array.detach(proc);
        let began = promoted?;
        self.start_vacuum()?;
        if let Err(error) = cleared {
            // It is a primary all the same: to say otherwise could make two of them.
            tracing::error!(%error, "promoted, but the files do not fit the definitions");
        }
        Ok(began)
    }

    /// An error if a promotion would be refused now: log that was acknowledged cannot be replayed, or not yet.
    pub fn check_promotion(&self) -> Result<(), EngineError> {
        self.storage.check_promotion().map_err(storage_error)
    }

    /// Sets the function that asks for a promotion when a session calls `pg_promote()`. It returns at once.
    pub fn set_promotion(&self, promote: Arc<dyn Fn() + Send + Sync>) {
        self.standby.promotion.set(promote);
    }

    /// Asks for a promotion, and waits for it for `patience`, if that is given; whether it is promoted, or was asked to be.
    pub(crate) fn request_promotion(
        &self,
        patience: Option<Duration>,
        interrupts: &Interrupts,
    ) -> Result<bool> {
        if !self.is_standby() {
            return Err(not_in_recovery());
        }
        let standby = self.storage.standby();
        if let Some((timeline, begins)) = standby.and_then(|standby| standby.unfinished_promotion()) {
            return Err(EngineError::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!(
                    "a promotion has failed after it had made the directory a primary's: timeline {timeline} begins at {begins}"
                ),
            )
            .with_hint("Stop this server, and start \"clearway serve\" on its directory."));
        }
        self.check_promotion()?;
        let Some(promote) = self.standby.promotion.get() else {
            return Err(EngineError::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                "this standby cannot be promoted by a session: the program that runs it has not provided for it",
            ));
        };
        promote();
        let Some(patience) = patience else {
            return Ok(true);
        };
        let deadline = Instant::now() + patience;
        while self.is_standby() {
            interrupts.check()?;
            if Instant::now() >= deadline {
                return Ok(false);
            }
            std::thread::sleep(LOOK);
        }
        Ok(true)
    }
}

/// 55000.
#[cold]
pub(super) fn not_in_recovery() -> EngineError {
    EngineError::new(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        "recovery is not in progress",
    )
    .with_hint("Recovery control functions can only be executed during recovery.")
}
