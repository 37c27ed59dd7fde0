//! Deadlocks of replay with a session that waits for replay itself (WAIT FOR LSN).
//!
//! The session holds the lock of a table whose definition replay is about to change, or one that a session waits for which
//! holds such a lock. Replay would go on when the lock is given back, and the session when replay has gone on: a circle
//! of `engine/wait_circle.rs`. The session looks for it at every look at its position.

use clearway_txn::ProcId;

use crate::engine::Engine;

impl Engine {
    /// True if replay waits for a lock that a session holds, or that one holds which waits for it, and so on.
    pub(crate) fn replay_waits_for(&self, session: ProcId) -> bool {
        let replay = self.standby.replay_proc.get().filter(|_| self.is_standby());
        replay.is_some_and(|replay| self.wait_leads_to(*replay, session))
    }
}
