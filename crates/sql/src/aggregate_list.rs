//! The values that an aggregate keeps one by one: those of `array_agg` and `string_agg`, with what they are ordered by.

use std::cmp::Ordering;

use crate::error::{EngineError, Result, SqlState};
use crate::function::check_length;
use crate::value::array::nested;
use crate::value::{ArrayValue, DataType, Value, compare};

/// One key of ORDER BY inside an aggregate's call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListOrder {
    /// The key's type.
    pub data_type: DataType,
    /// DESC
    pub descending: bool,
    /// NULLS FIRST
    pub nulls_first: bool,
}

/// A value that is kept, and what its call computes beside it: a delimiter, if it is no constant, then the keys.
#[derive(Debug, Clone)]
struct Kept {
    value: Value,
    beside: Box<[Value]>,
}

/// The values of one group.
#[derive(Debug, Clone, Default)]
pub(crate) struct List {
    kept: Vec<Kept>,
    bytes: usize,
}

impl List {
    /// Keeps one more value.
    pub(crate) fn push(&mut self, value: Value, beside: Box<[Value]>) {
        let of_keys: usize = beside
            .iter()
            .map(|key| size_of::<Value>() + key.heap_bytes())
            .sum();
        self.bytes += size_of::<Kept>() + value.heap_bytes() + of_keys;
        self.kept.push(Kept { value, beside });
    }

    /// The bytes that it has on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.bytes
    }

    /// Puts the values in order; the keys are the last of what stands beside each.
    pub(crate) fn sort(&mut self, order: &[ListOrder]) {
        self.kept.sort_by(|left, right| {
            let keys = |kept: &Kept| kept.beside.len() - order.len();
            let pairs = left.beside[keys(left)..].iter().zip(&right.beside[keys(right)..]);
            pairs
                .zip(order)
                .map(|((left, right), key)| key.compare(left, right))
                .find(|ordering| ordering.is_ne())
                .unwrap_or(Ordering::Equal)
        });
    }

    /// Puts the values themselves in order.
    pub(crate) fn sort_by_value(&mut self, order: ListOrder) {
        self.kept
            .sort_by(|left, right| order.compare(&left.value, &right.value));
    }

    /// The array of the values, which are arrays themselves if that is their type.
    pub(crate) fn into_array(self, argument: DataType, array_type: DataType) -> Result<Value> {
        let values: Vec<Value> = self.kept.into_iter().map(|kept| kept.value).collect();
        if !matches!(argument, DataType::Array(_)) {
            return ArrayValue::of(array_type, values).map(Value::from);
        }
        for value in &values {
            match value {
                Value::Array(part) if !part.dimensions().is_empty() => {}
                Value::Null => {
                    return Err(EngineError::new(
                        SqlState::NULL_VALUE_NOT_ALLOWED,
                        "cannot accumulate null arrays",
                    ));
                }
                _ => {
                    return Err(EngineError::new(
                        SqlState::ARRAY_SUBSCRIPT_ERROR,
                        "cannot accumulate empty arrays",
                    ));
                }
            }
        }
        nested(array_type, &values).map_err(|error| match error.sqlstate() {
            SqlState::ARRAY_SUBSCRIPT_ERROR => EngineError::new(
                SqlState::ARRAY_SUBSCRIPT_ERROR,
                "cannot accumulate arrays of different dimensionality",
            ),
            _ => error,
        })
    }

    /// The texts with a delimiter in front of each but the first: the constant, or the first of what stands beside it.
    pub(crate) fn into_text(self, delimiter: Option<&Value>) -> Result<Value> {
        let mut text = String::new();
        for (number, kept) in self.kept.iter().enumerate() {
            let delimiter = delimiter.or_else(|| kept.beside.first()).and_then(Value::as_str);
            let delimiter = delimiter.filter(|_| number > 0).unwrap_or_default();
            let part = kept.value.as_str().unwrap_or_default();
            check_length(text.len() + delimiter.len() + part.len())?;
            text.push_str(delimiter);
            text.push_str(part);
        }
        Ok(Value::text(text))
    }
}

impl ListOrder {
    fn compare(&self, left: &Value, right: &Value) -> Ordering {
        match (left.is_null(), right.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) if self.nulls_first => Ordering::Less,
            (true, false) => Ordering::Greater,
            (false, true) if self.nulls_first => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) if self.descending => compare(right, left, self.data_type),
            (false, false) => compare(left, right, self.data_type),
        }
    }
}
