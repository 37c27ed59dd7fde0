//! Deadlocks of replay with a session that waits for replay itself (WAIT FOR LSN).
//!
//! The session holds the lock of a table whose definition replay is about to change, or one that a session waits for which
//! holds such a lock. Replay would go on when the lock is given back, and the session when replay has gone on. No search
//! for deadlocks between locks finds this circle: the session waits for no lock. So the session looks itself, at every look
//! at its position, and gives up at the second one in turn that finds it in replay's way. One look alone may put together
//! waits that were never there at one time.

use clearway_txn::ProcId;

use crate::engine::Engine;

impl Engine {
    /// True if replay waits for a lock that a session holds, or that one holds which waits for it, and so on.
    pub(crate) fn replay_waits_for(&self, session: ProcId) -> bool {
        let Some(replay) = self.standby.replay_proc.get().filter(|_| self.is_standby()) else {
            return false;
        };
        let mut known = vec![*replay];
        let mut looked_at = 0;
        while let Some(waiter) = known.get(looked_at).copied() {
            looked_at += 1;
            for blocker in self.storage.locks.blockers(waiter) {
                if blocker == session {
                    return true;
                }
                if !known.contains(&blocker) {
                    known.push(blocker);
                }
            }
        }
        false
    }
}
