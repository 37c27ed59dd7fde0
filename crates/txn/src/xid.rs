//! Transaction ids. 64 bits never wrap, so there is no freezing and no modular comparison.

use std::fmt;

/// A transaction id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Xid(pub u64);

impl Xid {
    /// No transaction.
    pub const INVALID: Xid = Xid(0);
    /// The transaction that made the first pages: committed, always.
    pub const BOOTSTRAP: Xid = Xid(1);
    /// The first one handed out.
    pub const FIRST_NORMAL: Xid = Xid(2);

    /// True if this names a transaction at all.
    pub const fn is_valid(self) -> bool {
        self.0 != 0
    }

    /// The one after.
    pub const fn next(self) -> Xid {
        Xid(self.0 + 1)
    }
}

impl fmt::Display for Xid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_names_no_transaction() {
        assert!(!Xid::INVALID.is_valid() && Xid::BOOTSTRAP.is_valid());
        assert_eq!(Xid(4711).to_string(), "4711");
    }
}
