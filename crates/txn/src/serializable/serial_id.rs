//! Numbers and times of serializable transactions.

/// A time that has not come.
pub(super) const NEVER: u64 = u64::MAX;

/// The number of a serializable transaction: in the order of their beginnings, and never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SerialId(pub(super) u64);
