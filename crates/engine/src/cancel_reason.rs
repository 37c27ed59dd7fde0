//! The reasons for which a statement, or its session, is to end.

/// The reason why a statement is to end, in the activity slot: none, or one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum CancelReason {
    /// A cancel request.
    Request = 1,
    /// Replay of a standby is about to remove row versions that the statement may see.
    SnapshotConflict = 2,
    /// Replay of a standby needs a table that the transaction has locked.
    LockConflict = 3,
    /// Memory is scarce, and the session holds the most.
    Memory = 4,
    /// The session is to end. It stays.
    Terminate = 5,
}

impl CancelReason {
    /// The one of this number.
    pub(crate) fn from_number(number: u32) -> Option<CancelReason> {
        [
            CancelReason::Request,
            CancelReason::SnapshotConflict,
            CancelReason::LockConflict,
            CancelReason::Memory,
            CancelReason::Terminate,
        ]
        .into_iter()
        .find(|reason| *reason as u32 == number)
    }
}
