//! What a client is told about its transaction.

/// What ReadyForQuery reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionStatus {
    /// Not in a transaction block.
    Idle,
    /// In one.
    InTransaction,
    /// In one that has failed: only its end is accepted.
    Failed,
}
