//! The four strengths of row locks and which of them exclude each other.
//!
//! | | KeyShare | Share | NoKeyUpdate | Update |
//! | --- | --- | --- | --- | --- |
//! | KeyShare | | | | x |
//! | Share | | | x | x |
//! | NoKeyUpdate | | x | x | x |
//! | Update | x | x | x | x |
//!
//! A stronger lock excludes whatever a weaker one does. So a transaction has one strength on a row: the strongest that it
//! has asked for.

/// The strength of a row lock, from weakest to strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RowLockMode {
    /// FOR KEY SHARE: the row stays, and so does its key.
    KeyShare = 0,
    /// FOR SHARE: the row stays as it is.
    Share = 1,
    /// FOR NO KEY UPDATE, and an UPDATE that leaves the key alone.
    NoKeyUpdate = 2,
    /// FOR UPDATE, DELETE, and an UPDATE of the key.
    Update = 3,
}

/// Bit `b` of entry `a`: strengths `a` and `b` exclude each other.
const CONFLICTS: [u8; 4] = [0b1000, 0b1100, 0b1110, 0b1111];

impl RowLockMode {
    /// All strengths, weakest first.
    pub const ALL: [RowLockMode; 4] = [
        RowLockMode::KeyShare,
        RowLockMode::Share,
        RowLockMode::NoKeyUpdate,
        RowLockMode::Update,
    ];

    /// True if one transaction's `self` keeps another transaction's `other` out.
    #[inline]
    pub const fn conflicts_with(self, other: RowLockMode) -> bool {
        CONFLICTS[self as usize] >> other as u8 & 1 != 0
    }

    /// True if several transactions can have it on one row.
    #[inline]
    pub const fn is_shared(self) -> bool {
        !self.conflicts_with(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stronger_lock_excludes_what_a_weaker_one_does() {
        use RowLockMode::*;
        for weak in RowLockMode::ALL {
            for strong in RowLockMode::ALL {
                assert_eq!(weak.conflicts_with(strong), strong.conflicts_with(weak));
                for other in RowLockMode::ALL {
                    assert!(strong < weak || !weak.conflicts_with(other) || strong.conflicts_with(other));
                }
            }
        }
        assert!(KeyShare.is_shared() && Share.is_shared() && !NoKeyUpdate.is_shared() && !Update.is_shared());
        assert!(!KeyShare.conflicts_with(NoKeyUpdate) && Share.conflicts_with(NoKeyUpdate));
    }
}
