//! What a session of a standby sees: a snapshot of the known xids, with which replay's clean-up does not interfere
//! ([`CleanedUp`](clearway_txn::CleanedUp) tells how).
//!
//! # Why a snapshot is not refused for ever
//! The primary removes versions only of deleters below its horizon. At that moment no older transaction runs there, and
//! the ends of all of them are in the log before. Replay has them removed from the known xids before it says that it
//! cleans up, so a snapshot taken afterwards has a greater xmin.

use clearway_txn::{ProcArray, ProcId, Snapshot};

use super::Standby;

impl Standby {
    /// A snapshot for the session of `proc`.
    pub(crate) fn take_snapshot(&self, array: &ProcArray, proc: ProcId, snapshot: &mut Snapshot) {
        if let Err(error) = self.cleaned.take_snapshot(&self.known, array, proc, snapshot) {
            clearway_machine::fatal(format_args!(
                "S3 of the standby: a session takes a snapshot, but {error}; stopping"
            ));
        }
    }
}
