//! Sets of columns of a table.

use std::fmt;

/// The columns of a table that are wanted.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ColumnSet {
    bits: Vec<u64>,
}

impl ColumnSet {
    /// No column.
    pub fn new() -> ColumnSet {
        ColumnSet::default()
    }

    /// The first `count` columns.
    pub fn all(count: usize) -> ColumnSet {
        let mut set = ColumnSet::new();
        (0..count).for_each(|column| set.insert(column as u16));
        set
    }

    /// Adds a column.
    pub fn insert(&mut self, column: u16) {
        let word = usize::from(column) / 64;
        if self.bits.len() <= word {
            self.bits.resize(word + 1, 0);
        }
        self.bits[word] |= 1 << (column % 64);
    }

    /// Takes a column out.
    pub fn remove(&mut self, column: u16) {
        if let Some(word) = self.bits.get_mut(usize::from(column) / 64) {
            *word &= !(1 << (column % 64));
        }
    }

    /// True if a column is in it.
    #[inline]
    pub fn contains(&self, column: u16) -> bool {
        self.bits
            .get(usize::from(column) / 64)
            .is_some_and(|word| word >> (column % 64) & 1 == 1)
    }

    /// Adds all columns of another set.
    pub fn union(&mut self, other: &ColumnSet) {
        other.iter().for_each(|column| self.insert(column));
    }

    /// Its columns, in order.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        let (mut at, mut rest) = (0, self.bits.first().copied().unwrap_or(0));
        std::iter::from_fn(move || {
            while rest == 0 {
                at += 1;
                rest = *self.bits.get(at)?;
            }
            let bit = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            Some((at * 64 + bit) as u16)
        })
    }

    /// True if it has no column.
    pub fn is_empty(&self) -> bool {
        self.bits.iter().all(|word| *word == 0)
    }
}

impl fmt::Debug for ColumnSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_gives_its_columns_in_order() {
        let mut set = ColumnSet::new();
        assert_eq!(set.iter().next(), None);
        let columns = [0, 3, 63, 64, 200, 255];
        columns.iter().rev().for_each(|&column| set.insert(column));
        assert_eq!(set.iter().collect::<Vec<_>>(), columns);
    }
}
