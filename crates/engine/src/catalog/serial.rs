//! The sequences of serial and identity columns as relations: their numbers and names.
//!
//! A sequence belongs to its column and is stored with it. It has a number and a name of its own, made as PostgreSQL
//! makes the names of such sequences: `table_column_seq`, the longer part shortened until it fits. The name stays when
//! table or column get another one; it is stored then.

use std::sync::Arc;

use super::sequence::Sequence;
use super::{FIRST_OID, TableEntry};
use clearway_sql::SchemaRef;
use clearway_sql::value::DataType;

/// The most bytes of a name.
const NAME_BYTES_MAX: usize = 63;

/// The columns of a sequence when it is read like a table.
pub(crate) const SEQUENCE_COLUMNS: [(&str, DataType); 3] = [
    ("last_value", DataType::Int8),
    ("log_cnt", DataType::Int8),
    ("is_called", DataType::Bool),
];

/// A sequence with the column that it belongs to.
pub(crate) struct Serial<'a> {
    entry: &'a TableEntry,
    /// The place of the column.
    pub(crate) column: usize,
    /// The sequence.
    pub(crate) sequence: &'a Arc<Sequence>,
}

/// The sequences of a table's columns.
pub(crate) fn serials(entry: &TableEntry) -> impl Iterator<Item = Serial<'_>> {
    let sequences = entry.sequences.iter().enumerate();
    sequences.filter_map(|(column, sequence)| {
        Some(Serial {
            entry,
            column,
            sequence: sequence.as_ref()?,
        })
    })
}

impl Serial<'_> {
    /// Its number as a relation.
    pub(crate) fn oid(&self) -> u32 {
        FIRST_OID + self.sequence.rel()
    }

    /// Its schema: its table's.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.entry.def.schema
    }

    /// Its name.
    pub(crate) fn name(&self) -> String {
        let column = &self.entry.def.columns[self.column];
        match &column.sequence_name {
            Some(name) => name.clone(),
            None => sequence_name(&self.entry.def.name, &column.name),
        }
    }

    /// The type of its numbers.
    pub(crate) fn data_type(&self) -> DataType {
        self.entry.def.columns[self.column].data_type
    }

    /// Its last possible number.
    pub(crate) fn max(&self) -> i64 {
        match self.data_type() {
            DataType::Int2 => i64::from(i16::MAX),
            DataType::Int4 => i64::from(i32::MAX),
            _ => i64::MAX,
        }
    }
}

/// The name of a column's sequence.
fn sequence_name(table: &str, column: &str) -> String {
    const AROUND: usize = "__seq".len();
    let (mut left, mut right) = (table.len(), column.len());
    while left + right > NAME_BYTES_MAX - AROUND {
        if left > right {
            left -= 1;
        } else {
            right -= 1;
        }
    }
    format!(
        "{}_{}_seq",
        &table[..table.floor_char_boundary(left)],
        &column[..column.floor_char_boundary(right)]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_shortened_where_they_are_longer() {
        assert_eq!(sequence_name("t", "id"), "t_id_seq");
        let long = sequence_name(&"t".repeat(63), "id");
        assert_eq!(long, format!("{}_id_seq", "t".repeat(56)));
        let both = sequence_name(&"t".repeat(63), &"c".repeat(63));
        assert_eq!(both, format!("{}_{}_seq", "t".repeat(29), "c".repeat(29)));
        assert!(sequence_name(&"é".repeat(31), &"ü".repeat(31)).len() <= NAME_BYTES_MAX);
    }
}
