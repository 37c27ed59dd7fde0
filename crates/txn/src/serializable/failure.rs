//! The reasons for which a serializable transaction has to give up.

use crate::Xid;

/// The reason for which a serializable transaction has to be rolled back: with others it is part of a dangerous structure.
/// Run again it may succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SerializationFailure {
    /// Another transaction has found it to be a pivot.
    #[error("Canceled on identification as a pivot, during conflict checking.")]
    Doomed,
    /// It is the pivot, and wrote just now.
    #[error("Canceled on identification as a pivot, during write.")]
    PivotDuringWrite,
    /// It has not seen what this transaction wrote, which is let through already.
    #[error("Canceled on conflict out to pivot {0}, during read.")]
    ConflictOutToPivot(Xid),
    /// It has not seen what a pivot wrote that has committed and been summarised.
    #[error("Canceled on conflict out to old pivot.")]
    ConflictOutToOldPivot,
    /// It is the pivot, with a conflict out to a transaction that has been summarised.
    #[error("Canceled on identification as a pivot, with conflict out to old committed transaction.")]
    PivotToOld,
    /// It is the pivot, with a conflict in from a transaction that has been summarised.
    #[error("Canceled on identification as a pivot, during conflict in checking.")]
    PivotFromOld,
    /// Another transaction has found it to be a pivot, and it was to commit.
    #[error("Canceled on identification as a pivot, during commit attempt.")]
    PivotDuringCommit,
    /// The pivot is being committed, so that this one cannot.
    #[error("Canceled on commit attempt with conflict in from prepared pivot.")]
    PreparedPivot,
}
