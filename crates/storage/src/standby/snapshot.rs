//! What a session of a standby sees.
//!
//! # Steps
//! 1. Take a snapshot of the known xids.
//! 2. Install its xmin in the session's slot, and pass a fence.
//! 3. Has replay cleaned up, by now, what a transaction deleted that the snapshot may regard as running? Then take
//!    another.
//! 4. Was the standby promoted by now? Then take one of the array.
//!
//! Replay says up to which deleter it cleans up, passes its fence, and then looks at the slots (P1 of the array's
//! `standby`). So either the session finds that in step 3, or replay finds the xmin and waits for the session.
//!
//! # Why step 4
//! A session that is slow between 1 and 2 holds back no horizon. The promotion may end meanwhile, and a vacuum of the new
//! primary may remove what the snapshot sees. That vacuum has found the standby promoted and passes its fence before it
//! looks for xmins. So either it finds the one of step 2, or the session finds the promotion.
//!
//! # Why step 3 ends
//! The primary removes versions only of deleters below its horizon. At that moment no older transaction runs there, and
//! the ends of all of them are in the log before. Replay has them removed from the known xids before it says that it
//! cleans up, so a snapshot taken afterwards has a greater xmin.

use std::sync::atomic::Ordering;

use clearway_txn::{ProcArray, ProcId, Snapshot, Xid};

use super::Standby;

impl Standby {
    /// A snapshot for the session of `proc`.
    pub(crate) fn take_snapshot(&self, array: &ProcArray, proc: ProcId, snapshot: &mut Snapshot) {
        loop {
            let xmin = match snapshot.take_known(&self.known) {
                Ok(xmin) => xmin,
                Err(error) => clearway_machine::fatal(format_args!(
                    "S3 of the standby: a session takes a snapshot, but {error}; stopping"
                )),
            };
            let held_before = array.xmin_of(proc).is_some();
            array.install_xmin_and_fence(proc, xmin);
            let is_active = self.is_active();
            // Relaxed: the fence orders it (P1).
            if is_active && xmin > Xid(self.cleaned.0.load(Ordering::Relaxed)) {
                return;
            }
            if !held_before {
                array.clear_xmin(proc);
            }
            if !is_active {
                return array.snapshot(proc, snapshot);
            }
        }
    }
}
