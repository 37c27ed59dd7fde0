//! The rows of a system table, and the values in them.

use clearway_sql::value::array::ArrayValue;
use clearway_sql::value::{DataType, Value};
use clearway_storage::Storage;

use super::shape::Shape;

/// The rows of a table as they are made.
pub(crate) struct Rows {
    /// The columns of the shape, and true for those that the table has.
    columns: Vec<(&'static str, bool)>,
    rows: Vec<Vec<Value>>,
}

impl Rows {
    /// No rows of this shape.
    pub(super) fn of(shape: &Shape) -> Rows {
        Rows {
            columns: shape.names(),
            rows: Vec::new(),
        }
    }

    /// Adds a row: all columns of the shape by their names, in order.
    pub(super) fn push<const N: usize>(&mut self, row: [(&'static str, Value); N]) {
        debug_assert!(
            self.columns
                .iter()
                .map(|(name, _)| *name)
                .eq(row.iter().map(|(name, _)| *name)),
            "a row of other columns than {:?}",
            self.columns
        );
        let kept = row
            .into_iter()
            .zip(&self.columns)
            .filter(|(_, (_, is_kept))| *is_kept);
        self.rows.push(kept.map(|((_, value), _)| value).collect());
    }

    /// Adds rows that have the values of all columns, for a table that has all columns of its shape.
    pub(super) fn extend(&mut self, rows: impl Iterator<Item = Vec<Value>>) {
        let width = self.columns.len();
        self.rows.extend(rows.inspect(|row| {
            debug_assert_eq!(row.len(), width, "a row of {width} columns");
        }));
    }

    /// The rows.
    pub(super) fn finish(self) -> Vec<Vec<Value>> {
        self.rows
    }
}

/// NULL.
pub(super) const NULL: Value = Value::Null;

/// The value of a column of a type that is left out (see [`shape`](super::shape)).
pub(super) const NO_TYPE: Value = Value::Null;

/// The number that stands for several transactions at once from which on rows may have one: PostgreSQL's first, since none
/// has.
pub(super) const FIRST_MULTIXACT: Value = Value::Oid(1);

/// The transaction up to which everything counts as frozen: the last one, by the low half of its number. Numbers of
/// transactions do not come around, so there is nothing to freeze, and nothing for a program to warn of that looks at how
/// old it is.
pub(super) fn frozen(storage: &Storage) -> Value {
    Value::Oid((storage.next_xid().0 - 1) as u32)
}

/// A number of the catalog.
pub(super) fn oid(oid: u32) -> Value {
    Value::Oid(oid)
}

/// A text, a name or a `"char"`.
pub(super) fn text(text: &str) -> Value {
    Value::from(text)
}

/// A truth value.
pub(super) fn boolean(value: bool) -> Value {
    Value::Bool(value)
}

/// A smallint.
pub(super) fn int2(value: i16) -> Value {
    Value::Int2(value)
}

/// An integer.
pub(super) fn int4(value: i32) -> Value {
    Value::Int4(value)
}

/// An array, `int2vector` or `oidvector` of these elements.
pub(super) fn array(data_type: DataType, elements: impl Iterator<Item = Value>) -> Value {
    let array = ArrayValue::of(data_type, elements.collect());
    array.map_or(Value::Null, |array| Value::Array(Box::new(array)))
}

/// An array of texts.
pub(super) fn texts(elements: impl Iterator<Item = String>) -> Value {
    array(DataType::array_of(DataType::Text), elements.map(Value::text))
}

/// A bigint.
pub(super) fn int8(value: i64) -> Value {
    Value::Int8(value)
}
