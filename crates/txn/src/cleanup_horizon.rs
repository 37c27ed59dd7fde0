//! Up to where a standby's replay cleans up, and snapshots that are not too old for that.
//!
//! # The race
//! Bob takes a snapshot on the standby, while replay comes to the removal of what transaction 100 deleted.
//!
//! | time | Bob | replay |
//! | --- | --- | --- |
//! | 1 | takes a snapshot: 100 runs | |
//! | 2 | | replays the end of 100 |
//! | 3 | | looks for sessions whose snapshots may regard 100 as running: there is none |
//! | 4 | installs the snapshot's xmin, 100, in his slot | |
//! | 5 | | removes the version that 100 deleted |
//! | 6 | looks for that version, which his snapshot sees, and finds nothing | |
//!
//! # Steps of a snapshot
//! 1. Take a snapshot of the known xids.
//! 2. Install its xmin in the session's slot, and pass a fence.
//! 3. Has replay begun to clean up, by now, what a transaction deleted that the snapshot may regard as running? Then give
//!    the xmin back, and begin again.
//!
//! # Steps of a clean-up
//! 1. The deleter and all older transactions have left the known xids.
//! 2. Say so here, and pass a fence.
//! 3. Look for xmins that are not above the deleter; wait until there are none.
//!
//! # Invariants
//! - C1: no snapshot whose xmin is at or below the deleter is in use when step 3 of the clean-up has found none. One of the
//!   two fences comes first. Bob's: replay finds his xmin. Replay's: Bob finds what replay has said.
//! - C2: step 3 of a snapshot ends: one that is taken after the deleter has left the known xids has a greater xmin.
//!
//! Costs: a fence and a load for each snapshot.

use std::sync::atomic::Ordering::Relaxed;

use clearway_machine::{AtomicWord, Machine, Native, Padded};

use crate::{KnownXids, KnownXidsError, ProcArray, ProcId, Snapshot, Xid};

/// The newest deleter whose versions replay has begun to remove.
#[derive(Debug)]
pub struct CleanedUp<M: Machine = Native>(Padded<M::U64>);

impl<M: Machine> Default for CleanedUp<M> {
    fn default() -> Self {
        Self(Padded(M::U64::new(Xid::INVALID.0)))
    }
}

impl<M: Machine> CleanedUp<M> {
    /// The newest deleter so far.
    pub fn newest(&self) -> Xid {
        Xid(self.0.load(Relaxed))
    }

    /// Step 2 of a clean-up, for one worker at a time: `deleter` and all older transactions have left the known xids. The
    /// fence follows with the first look, `holders_of_xmin_up_to` of the array.
    pub fn begin(&self, deleter: Xid) {
        if self.newest() < deleter {
            self.0.store(deleter.0, Relaxed);
        }
    }

    /// A snapshot of the known xids for the session of `proc`, whose slot holds its xmin. An error: not all that run are
    /// known.
    pub fn take_snapshot(
        &self,
        known: &KnownXids<M>,
        array: &ProcArray<M>,
        proc: ProcId,
        snapshot: &mut Snapshot,
    ) -> Result<(), KnownXidsError> {
        loop {
            let xmin = snapshot.take_known(known)?;
            let held_before = array.xmin_of(proc).is_some();
            array.install_xmin_and_fence(proc, xmin);
            // Relaxed: the fence orders it (C1).
            if xmin > self.newest() {
                return Ok(());
            }
            if !held_before {
                array.clear_xmin(proc);
            }
        }
    }
}
