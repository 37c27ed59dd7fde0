//! The eight lock modes and which of them exclude each other.

use std::fmt;

/// A lock mode, from weakest to strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum LockMode {
    /// SELECT.
    AccessShare = 0,
    /// SELECT … FOR UPDATE.
    RowShare = 1,
    /// INSERT, UPDATE, DELETE.
    RowExclusive = 2,
    /// VACUUM, ANALYZE.
    ShareUpdateExclusive = 3,
    /// CREATE INDEX.
    Share = 4,
    /// (Triggers, foreign keys; unused so far.)
    ShareRowExclusive = 5,
    /// The head of the queue for one row.
    Exclusive = 6,
    /// DROP, TRUNCATE, ALTER.
    AccessExclusive = 7,
}

/// Bit `b` of entry `a`: modes `a` and `b` exclude each other. The weak three conflict with what changes the table under
/// them; ShareUpdateExclusive upwards conflict with themselves, except Share.
const CONFLICTS: [u8; 8] = [
    0b1000_0000,
    0b1100_0000,
    0b1111_0000,
    0b1111_1000,
    0b1110_1100,
    0b1111_1100,
    0b1111_1110,
    0b1111_1111,
];

const _: () = {
    let mut a = 0;
    while a < 8 {
        let mut b = 0;
        while b < 8 {
            assert!(CONFLICTS[a] >> b & 1 == CONFLICTS[b] >> a & 1, "conflicts are mutual");
            b += 1;
        }
        a += 1;
    }
};

impl LockMode {
    /// Whether one session's `self` keeps another session's `other` out.
    #[inline]
    pub const fn conflicts_with(self, other: LockMode) -> bool {
        CONFLICTS[self as usize] >> other as u8 & 1 != 0
    }

    /// The name in messages and views.
    pub const fn name(self) -> &'static str {
        match self {
            LockMode::AccessShare => "AccessShareLock",
            LockMode::RowShare => "RowShareLock",
            LockMode::RowExclusive => "RowExclusiveLock",
            LockMode::ShareUpdateExclusive => "ShareUpdateExclusiveLock",
            LockMode::Share => "ShareLock",
            LockMode::ShareRowExclusive => "ShareRowExclusiveLock",
            LockMode::Exclusive => "ExclusiveLock",
            LockMode::AccessExclusive => "AccessExclusiveLock",
        }
    }
}

impl fmt::Display for LockMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
