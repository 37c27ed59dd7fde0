//! A snapshot of a session on a standby: one of the known xids, with which replay's clean-up does not interfere
//! ([`CleanedUp`](clearway_txn::CleanedUp) says why).
//!
//! # Why a snapshot is not refused for ever
//! The primary removes versions only of deleters below its horizon. At that moment no older transaction runs there, and
//! the ends of all of them are in the log before. Replay has them removed from the known xids before it says that it
//! cleans up, so a snapshot taken afterwards has a greater xmin.
//!
//! # Why the promotion is looked for afterwards
//! A session that is slow to install its xmin holds back no horizon. The promotion may end meanwhile, and a vacuum of the
//! new primary may remove what the snapshot sees. That vacuum has found the standby promoted and passes its fence before
//! it looks for xmins. So either it finds the session's, or the session finds the promotion, and takes a snapshot of the
//! array.

use clearway_txn::{ProcArray, ProcId, Snapshot};

use super::Standby;

impl Standby {
    /// A snapshot for the session of `proc`.
    pub(crate) fn take_snapshot(&self, array: &ProcArray, proc: ProcId, snapshot: &mut Snapshot) {
        let held_before = array.xmin_of(proc).is_some();
        if let Err(error) = self.cleaned.take_snapshot(&self.known, array, proc, snapshot) {
            clearway_machine::fatal(format_args!(
                "S3 of the standby: a session takes a snapshot, but {error}; stopping"
            ));
        }
        // Behind the fence that followed the xmin.
        if !self.is_active() {
            if !held_before {
                array.clear_xmin(proc);
            }
            array.snapshot(proc, snapshot);
        }
    }
}
