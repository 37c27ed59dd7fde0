//! Sequences that belong to columns, and defaults that name sequences.
//!
//! A sequence is a relation of its own. `serial` makes one that belongs to its column, and a default that names it; an
//! identity column has one as well, which nothing but the column names. What belongs to a column goes with it, as does what
//! `OWNED BY` gives to one.

use std::sync::Arc;

use super::{CatalogState, TableEntry};
use clearway_sql::sequence::SequenceOwner;

/// The most bytes of a name.
const NAME_BYTES_MAX: usize = 63;

impl CatalogState {
    /// The sequences that belong to a table, or to one of its columns by its attribute's number, by their numbers.
    pub(crate) fn owned_sequences(&self, table: u32, attribute: Option<u16>) -> Vec<Arc<TableEntry>> {
        let mut sequences = self.sequences();
        sequences.retain(|entry| {
            owner_of(entry).is_some_and(|owner| {
                owner.table == table && attribute.is_none_or(|attribute| attribute == owner.attribute)
            })
        });
        sequences
    }

    /// The columns, by their places, whose defaults name a sequence, with their tables.
    pub(crate) fn defaults_of(&self, sequence: u32) -> Vec<(Arc<TableEntry>, u16)> {
        let mut found = Vec::new();
        for entry in self.tables() {
            for (place, column) in (0..).zip(&entry.def.columns) {
                let default = column.default.as_ref();
                if default.is_some_and(|default| default.relations().contains(&sequence)) {
                    found.push((Arc::clone(&entry), place));
                }
            }
        }
        found
    }
}

/// The column that a sequence belongs to.
pub(crate) fn owner_of(sequence: &TableEntry) -> Option<SequenceOwner> {
    sequence.def.sequence.as_ref()?.owner
}

/// The name of a column's sequence.
pub(crate) fn sequence_name(table: &str, column: &str, number: &str) -> String {
    let around = "__seq".len() + number.len();
    let (mut left, mut right) = (table.len(), column.len());
    while left + right > NAME_BYTES_MAX - around {
        if left > right {
            left -= 1;
        } else {
            right -= 1;
        }
    }
    format!(
        "{}_{}_seq{number}",
        &table[..table.floor_char_boundary(left)],
        &column[..column.floor_char_boundary(right)]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_shortened_where_they_are_longer() {
        assert_eq!(sequence_name("t", "id", ""), "t_id_seq");
        let long = sequence_name(&"t".repeat(63), "id", "");
        assert_eq!(long, format!("{}_id_seq", "t".repeat(56)));
        let both = sequence_name(&"t".repeat(63), &"c".repeat(63), "");
        assert_eq!(both, format!("{}_{}_seq", "t".repeat(29), "c".repeat(29)));
        let numbered = sequence_name(&"t".repeat(63), "id", "12");
        assert_eq!(numbered, format!("{}_id_seq12", "t".repeat(54)));
        assert!(sequence_name(&"é".repeat(31), &"ü".repeat(31), "").len() <= NAME_BYTES_MAX);
    }
}
