//! Objects of marks.

use std::sync::Arc;

/// A key or an end of a range of keys, as an index orders them.
pub(super) type Key = Arc<[u8]>;

/// The object of a mark. Tables and indexes go by numbers that a rewrite leaves as they are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Target {
    /// All rows of a table.
    Relation(u32),
    /// The versions on a page.
    Page(u32, u32),
    /// A version of a row.
    Row(u32, u32, u16),
    /// A key of an index, whether there is an entry of it or not.
    Key(u32, Key),
    /// The keys of an index from the lower end, inclusive, to the upper one, exclusive; `None`: to the last.
    Range(u32, Key, Option<Key>),
}

impl Target {
    /// The table that it is a part of, or all keys of the index.
    pub(super) fn whole(&self) -> Target {
        match self {
            Target::Relation(rel) | Target::Page(rel, _) | Target::Row(rel, ..) => Target::Relation(*rel),
            Target::Key(index, _) | Target::Range(index, ..) => {
                Target::Range(*index, Key::from(&[][..]), None)
            }
        }
    }
}

/// The ways in which a transaction has to do with a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Bits(pub(super) u8);

impl Bits {
    /// It has read it.
    pub(super) const READ: Bits = Bits(1);
    /// It has replaced or deleted it, or entered the key.
    pub(super) const WRITE: Bits = Bits(2);
    /// It has written a part of it.
    pub(super) const PART: Bits = Bits(4);

    /// All ways.
    pub(super) const ALL: Bits = Bits(7);

    pub(super) const fn and(self, other: Bits) -> Bits {
        Bits(self.0 | other.0)
    }

    pub(super) const fn has(self, other: Bits) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) const fn without(self, other: Bits) -> Bits {
        Bits(self.0 & !other.0)
    }

    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// True if `key` lies in a range.
pub(super) fn is_within(key: &[u8], lower: &[u8], upper: Option<&[u8]>) -> bool {
    lower <= key && upper.is_none_or(|upper| key < upper)
}

/// True if two ranges have a key in common.
pub(super) fn overlap(a: (&[u8], Option<&[u8]>), b: (&[u8], Option<&[u8]>)) -> bool {
    let begins_before_end = |lower: &[u8], upper: Option<&[u8]>| upper.is_none_or(|upper| lower < upper);
    begins_before_end(a.0, b.1) && begins_before_end(b.0, a.1)
}
