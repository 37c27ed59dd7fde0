//! The status of a transaction for its client.

/// The status in ReadyForQuery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionStatus {
    /// Not in a transaction block.
    Idle,
    /// In one.
    InTransaction,
    /// In one that has failed: only its end is accepted.
    Failed,
}
