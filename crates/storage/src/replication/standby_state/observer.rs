//! Replay as seen from above the storage.

use std::collections::BTreeSet;

use clearway_txn::{ProcId, Snapshot, Xid};

use crate::error::Result;
use crate::page::RelId;
#[cfg(doc)]
use crate::replication::standby_state::Standby;

/// The reason why a session is in the way of replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflict {
    /// Its snapshot may see row versions that are about to be removed.
    Snapshot,
    /// It holds a lock on a table whose definition changes.
    Lock,
}

/// Changes of the definitions that the log has told of since they were published last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangedDefinitions {
    /// There may be others, from before the log that was replayed here: each definition is to be looked at, and each file.
    pub is_incomplete: bool,
    /// Pages of [`RelId::CATALOG`] that were changed.
    pub pages: BTreeSet<u32>,
    /// Relations that were made.
    pub made: BTreeSet<RelId>,
}

/// The effects of replay on whatever is above the storage.
pub trait ReplayObserver: Send + Sync {
    /// `xid` has changed definitions, rows of [`RelId::CATALOG`], and has committed. `snapshot`
    /// sees it; those of sessions do not yet. Publishes the definitions, which differ from those of before by `changed`.
    /// Runs on the thread that replays, which may wait in it for readers of the tables ([`Standby::wait_for_sessions`]).
    fn publish_definitions(&self, xid: Xid, snapshot: &Snapshot, changed: &ChangedDefinitions) -> Result<()>;

    /// Sessions see `xid` from now on, whose definitions were published: what its commit does last.
    fn definitions_are_seen(&self, xid: Xid, changed: &ChangedDefinitions) -> Result<()>;

    /// The session of `proc` is in the way: ends its statement, or its transaction if none runs. Called again until
    /// the session is out of the way.
    fn cancel(&self, proc: ProcId, conflict: Conflict);
}
