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

/// Bit `b` of entry `a`: modes `a` and `b` exclude each other. The weak three conflict with what changes the table
/// under them; ShareUpdateExclusive upwards conflict with themselves, except Share.
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
            assert!(
                CONFLICTS[a] >> b & 1 == CONFLICTS[b] >> a & 1,
                "conflicts are mutual"
            );
            b += 1;
        }
        a += 1;
    }
};

impl LockMode {
    /// All modes, weakest first.
    pub const ALL: [LockMode; 8] = [
        LockMode::AccessShare,
        LockMode::RowShare,
        LockMode::RowExclusive,
        LockMode::ShareUpdateExclusive,
        LockMode::Share,
        LockMode::ShareRowExclusive,
        LockMode::Exclusive,
        LockMode::AccessExclusive,
    ];

    /// True if one session's `self` keeps another session's `other` out.
    #[inline]
    pub const fn conflicts_with(self, other: LockMode) -> bool {
        CONFLICTS[self as usize] >> other as u8 & 1 != 0
    }

    /// The modes that keep a weak one out, as bits.
    pub(crate) const STRONG: u8 = CONFLICTS[0] | CONFLICTS[1] | CONFLICTS[2];

    /// True if it is one of those that every statement takes and that do not exclude each other.
    #[inline]
    pub(crate) const fn is_weak(self) -> bool {
        self as u8 <= LockMode::RowExclusive as u8
    }

    /// True if it excludes a weak mode.
    #[inline]
    pub(crate) const fn is_strong(self) -> bool {
        Self::STRONG >> self as u8 & 1 != 0
    }

    /// The modes that `self` excludes, as bits.
    #[inline]
    pub(crate) const fn conflicts(self) -> u8 {
        CONFLICTS[self as usize]
    }

    /// This mode in a set of modes.
    #[inline]
    pub(crate) const fn bit(self) -> u8 {
        1 << self as u8
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_what_statements_rely_on() {
        use LockMode::*;
        // Reading stops only for what replaces the table; writers meet; CREATE INDEX stops writers, not readers.
        assert!(
            LockMode::ALL
                .iter()
                .all(|mode| mode.conflicts_with(AccessShare) == (*mode == AccessExclusive))
        );
        assert!(!RowExclusive.conflicts_with(RowExclusive) && RowExclusive.conflicts_with(Share));
        assert!(!Share.conflicts_with(Share) && !Share.conflicts_with(RowShare));
        // A strong locker has to look for what sessions hold in weak modes without the table's knowledge.
        let weak = [AccessShare, RowShare, RowExclusive];
        for mode in LockMode::ALL {
            assert_eq!(mode.is_weak(), weak.contains(&mode), "{mode}");
            let excludes_weak = weak.iter().any(|weak| mode.conflicts_with(*weak));
            assert_eq!(mode.is_strong(), excludes_weak, "{mode}");
        }
        // Two vacuums of one table exclude each other, and let writers be.
        assert!(ShareUpdateExclusive.conflicts_with(ShareUpdateExclusive));
        assert!(!ShareUpdateExclusive.conflicts_with(RowExclusive));
        assert!(
            LockMode::ALL
                .iter()
                .all(|mode| mode.conflicts_with(AccessExclusive))
        );
    }
}
