//! Arrays: values of one type, in any number of dimensions.
//!
//! ```text
//!   '[0:1][1:2]={{1,2},{3,4}}'      dimensions (0, 2), (1, 2)      elements 1 2 3 4, the last dimension fastest
//! ```
//!
//! An array knows its own type, because its binary form names the type of its elements and because an `int2vector`
//! is written otherwise than an `int2[]`. An array without elements has no dimensions. Elements may be NULL.
//!
//! The form of an array in a text, in a message, in a row or in a key takes that of an element as a function, so that
//! only those modules know both that know the forms of all values.
//!
//! | module | job |
//! |---|---|
//! | `text` | PostgreSQL's text form, in and out |
//! | `binary` | PostgreSQL's binary form, in and out |
//! | `stored` | the bytes of an array in a row |
//! | `parts` | elements and slices by subscript; arrays put together |

mod assign;
mod binary;
mod parts;
mod stored;
mod text;

use std::cmp::Ordering;

use crate::error::{EngineError, Result, SqlState};
use crate::value::{DataType, Value};

pub(super) use binary::{decode_array_binary, encode_array_binary};
pub use parts::{Bounds, check_accumulated, concatenated, nested, parts_of, with_element};
pub(super) use stored::{push_length, read_array, read_length, with_length, write_array};
pub(super) use text::{decode_array_text, encode_array_text};

/// The most dimensions.
pub const DIMENSIONS_MAX: usize = 6;

/// The most elements.
const ELEMENTS_MAX: usize = (1 << 30) / 8 - 1;

/// One dimension of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dimension {
    /// The first subscript.
    pub lower: i32,
    /// The number of subscripts, at least 1.
    pub length: i32,
}

impl Dimension {
    /// The last subscript.
    pub fn upper(self) -> i32 {
        self.lower + (self.length - 1)
    }
}

/// An array.
#[derive(Debug, Clone, PartialEq)]
pub struct ArrayValue {
    data_type: DataType,
    dimensions: Vec<Dimension>,
    elements: Vec<Value>,
}

impl ArrayValue {
    /// An array of this type, which is an array type; 54000 if it is too large, an internal error if the number of
    /// elements is not that of its dimensions.
    pub fn new(data_type: DataType, dimensions: Vec<Dimension>, elements: Vec<Value>) -> Result<ArrayValue> {
        if check_dimensions(&dimensions)? != elements.len() || data_type.element().is_none() {
            return Err(EngineError::internal(
                "an array does not have the elements of its dimensions",
            ));
        }
        Ok(ArrayValue {
            data_type,
            dimensions,
            elements,
        })
    }

    /// An array without elements.
    pub fn empty(data_type: DataType) -> ArrayValue {
        ArrayValue {
            data_type,
            dimensions: Vec::new(),
            elements: Vec::new(),
        }
    }

    /// An array of one dimension.
    pub fn of(data_type: DataType, elements: Vec<Value>) -> Result<ArrayValue> {
        let dimension = Dimension {
            lower: first_subscript(data_type),
            length: i32::try_from(elements.len()).map_err(|_| too_large())?,
        };
        let dimensions = if elements.is_empty() {
            Vec::new()
        } else {
            vec![dimension]
        };
        ArrayValue::new(data_type, dimensions, elements)
    }

    /// The array's type.
    pub fn data_type(&self) -> DataType {
        self.data_type
    }

    /// The type of its elements.
    pub fn element_type(&self) -> DataType {
        self.data_type.element().unwrap_or(DataType::Unknown)
    }

    /// Its dimensions, the outermost first; none if it has no elements.
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// Its elements, the last dimension fastest.
    pub fn elements(&self) -> &[Value] {
        &self.elements
    }

    /// Its elements, the last dimension fastest.
    pub fn into_elements(self) -> Vec<Value> {
        self.elements
    }

    /// The same array with each element that is not NULL converted, as one of this array type.
    pub fn try_map(
        self,
        data_type: DataType,
        mut convert: impl FnMut(Value) -> Result<Value>,
    ) -> Result<ArrayValue> {
        let elements = self.elements.into_iter().map(|element| match element {
            Value::Null => Ok(Value::Null),
            element => convert(element),
        });
        Ok(ArrayValue {
            data_type,
            elements: elements.collect::<Result<_>>()?,
            dimensions: self.dimensions,
        })
    }

    /// The bytes it has on the heap, its own structure included.
    pub(crate) fn heap_bytes(&self) -> usize {
        let of_elements: usize = self.elements.iter().map(Value::heap_bytes).sum();
        size_of::<ArrayValue>() + size_of_val(&*self.elements) + size_of_val(&*self.dimensions) + of_elements
    }

    /// The order of two arrays: that of their first elements that differ, NULL above all; else the shorter first, else
    /// the one with fewer or smaller dimensions. `None` if elements have no order.
    pub(super) fn order(
        &self,
        other: &ArrayValue,
        order: fn(&Value, &Value, DataType) -> Option<Ordering>,
    ) -> Option<Ordering> {
        let element_type = self.element_type();
        for (left, right) in self.elements.iter().zip(&other.elements) {
            let ordering = match (left.is_null(), right.is_null()) {
                (false, false) => order(left, right, element_type)?,
                (left, right) => left.cmp(&right),
            };
            if ordering.is_ne() {
                return Some(ordering);
            }
        }
        let shape = |array: &ArrayValue| {
            let lengths: Vec<i32> = array
                .dimensions
                .iter()
                .map(|dimension| dimension.length)
                .collect();
            let lowers: Vec<i32> = array.dimensions.iter().map(|dimension| dimension.lower).collect();
            (array.elements.len(), lengths.len(), lengths, lowers)
        };
        Some(shape(self).cmp(&shape(other)))
    }

    /// Appends its bytes in an index key, which order as arrays do.
    ///
    /// | bytes | |
    /// |---|---|
    /// | each element, as a column of its own | it begins with `01` or, if NULL, `02` |
    /// | `00` | so that a shorter array comes first |
    /// | number of dimensions, then their lengths, then their lower bounds | 1, and 4 each, the sign flipped |
    pub(super) fn encode_key(&self, encode_value: fn(&Value, DataType, &mut Vec<u8>), key: &mut Vec<u8>) {
        let element_type = self.element_type();
        self.elements
            .iter()
            .for_each(|element| encode_value(element, element_type, key));
        key.push(0);
        key.push(self.dimensions.len() as u8);
        let mut number = |number: i32| key.extend((number as u32 ^ 1 << 31).to_be_bytes());
        self.dimensions
            .iter()
            .for_each(|dimension| number(dimension.length));
        self.dimensions
            .iter()
            .for_each(|dimension| number(dimension.lower));
    }
}

impl From<ArrayValue> for Value {
    fn from(array: ArrayValue) -> Value {
        Value::Array(Box::new(array))
    }
}

/// The first subscript of an array of this type that is made without saying which.
pub(crate) fn first_subscript(data_type: DataType) -> i32 {
    match data_type {
        DataType::Array(_) => 1,
        _ => 0,
    }
}

/// The number of elements of an array of these dimensions; 54000 if it would be too large.
pub fn check_dimensions(dimensions: &[Dimension]) -> Result<usize> {
    if dimensions.len() > DIMENSIONS_MAX {
        return Err(too_many_dimensions(dimensions.len()));
    }
    let mut count = usize::from(!dimensions.is_empty());
    for dimension in dimensions {
        count = usize::try_from(dimension.length)
            .ok()
            .and_then(|length| count.checked_mul(length))
            .filter(|count| *count <= ELEMENTS_MAX)
            .ok_or_else(too_large)?;
        if dimension.lower.checked_add(dimension.length).is_none() {
            return Err(EngineError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!("array lower bound is too large: {}", dimension.lower),
            ));
        }
    }
    Ok(count)
}

/// 54000 for an array of too many dimensions.
#[cold]
pub fn too_many_dimensions(count: usize) -> EngineError {
    EngineError::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        format!("number of array dimensions ({count}) exceeds the maximum allowed ({DIMENSIONS_MAX})"),
    )
}

#[cold]
fn too_large() -> EngineError {
    EngineError::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        format!("array size exceeds the maximum allowed ({ELEMENTS_MAX})"),
    )
}

/// The elements of an array value in order, without their dimensions, as a set-returning function gives them; none for
/// NULL, an internal error for what is no array.
pub fn elements_of(value: &Value) -> Result<&[Value]> {
    match value {
        Value::Null => Ok(&[]),
        Value::Array(array) => Ok(array.elements()),
        other => Err(EngineError::internal(format!(
            "the elements of {other:?} are asked for"
        ))),
    }
}

/// The subscripts of one dimension of an array value, counted from 1, in order; none if it has no such dimension.
pub fn subscripts_of(value: &Value, dimension: i32) -> Result<std::ops::RangeInclusive<i32>> {
    #[expect(clippy::reversed_empty_ranges, reason = "a range without numbers")]
    const NONE: std::ops::RangeInclusive<i32> = 1..=0;
    match value {
        Value::Null => Ok(NONE),
        Value::Array(array) => {
            let place = usize::try_from(dimension)
                .ok()
                .and_then(|number| number.checked_sub(1));
            let found = place.and_then(|place| array.dimensions().get(place));
            Ok(found.map_or(NONE, |dimension| dimension.lower..=dimension.upper()))
        }
        other => Err(EngineError::internal(format!(
            "the subscripts of {other:?} are asked for"
        ))),
    }
}

#[cfg(test)]
mod tests;
