//! Parts of arrays by subscript, and arrays put together.

use crate::error::{EngineError, Result, SqlState};
use crate::value::array::{ArrayValue, DIMENSIONS_MAX, Dimension, first_subscript, too_many_dimensions};
use crate::value::{DataType, Value};

/// The subscripts of a slice in one dimension; what is left out is the array's own bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The first subscript.
    pub lower: Option<i32>,
    /// The last subscript.
    pub upper: Option<i32>,
}

impl ArrayValue {
    /// The element with these subscripts; `None` if there is none, or if they are not one per dimension.
    pub fn element(&self, subscripts: &[i32]) -> Option<&Value> {
        if subscripts.len() != self.dimensions().len() || subscripts.is_empty() {
            return None;
        }
        let mut place = 0;
        for (subscript, dimension) in subscripts.iter().zip(self.dimensions()) {
            let offset = usize::try_from(i64::from(*subscript) - i64::from(dimension.lower)).ok()?;
            if offset >= dimension.length as usize {
                return None;
            }
            place = place * dimension.length as usize + offset;
        }
        self.elements().get(place)
    }

    /// The part between these bounds, whose subscripts begin at 1; empty where nothing lies between them.
    pub fn slice(&self, bounds: &[Bounds]) -> Result<ArrayValue> {
        let dimensions = self.dimensions();
        if bounds.len() > dimensions.len() {
            return Ok(ArrayValue::empty(self.data_type()));
        }
        let mut ranges = Vec::with_capacity(dimensions.len());
        for (at, dimension) in dimensions.iter().enumerate() {
            let given = bounds.get(at).copied().unwrap_or(Bounds {
                lower: None,
                upper: None,
            });
            let lower = given.lower.unwrap_or(dimension.lower).max(dimension.lower);
            let upper = given.upper.unwrap_or(dimension.upper()).min(dimension.upper());
            if lower > upper {
                return Ok(ArrayValue::empty(self.data_type()));
            }
            let offset = (lower - dimension.lower) as usize;
            ranges.push(offset..offset + (upper - lower) as usize + 1);
        }
        let mut elements = Vec::new();
        self.gather(0, 0, &ranges, &mut elements);
        let dimensions = ranges.iter().map(|range| Dimension {
            lower: 1,
            length: range.len() as i32,
        });
        ArrayValue::new(self.data_type(), dimensions.collect(), elements)
    }

    /// Appends the elements in these ranges, from this dimension on; `place` counts the parts before.
    fn gather(&self, level: usize, place: usize, ranges: &[std::ops::Range<usize>], out: &mut Vec<Value>) {
        let place = place * self.dimensions()[level].length as usize;
        let range = ranges[level].clone();
        if level + 1 == ranges.len() {
            return out.extend_from_slice(&self.elements()[place + range.start..place + range.end]);
        }
        range.for_each(|at| self.gather(level + 1, place + at, ranges, out));
    }
}

/// The array with one more element behind (or in front of) the others. NULL stands for an array without elements.
pub fn with_element(data_type: DataType, array: &Value, element: &Value, in_front: bool) -> Result<Value> {
    let empty = ArrayValue::empty(data_type);
    let array = match array {
        Value::Array(array) => array,
        _ => &empty,
    };
    let lower = match array.dimensions() {
        [] => first_subscript(data_type),
        [dimension] => dimension.lower,
        _ => {
            return Err(EngineError::new(
                SqlState::DATA_EXCEPTION,
                "argument must be empty or one-dimensional array",
            ));
        }
    };
    let mut elements = Vec::with_capacity(array.elements().len() + 1);
    if in_front {
        elements.push(element.clone());
    }
    elements.extend_from_slice(array.elements());
    if !in_front {
        elements.push(element.clone());
    }
    // A new first element has the first subscript: the others move up.
    let length = elements.len() as i32;
    ArrayValue::new(data_type, vec![Dimension { lower, length }], elements).map(Value::from)
}

/// Two arrays one after the other: of as many dimensions, or one of them an element of the other's outermost dimension.
pub fn concatenated(data_type: DataType, left: &Value, right: &Value) -> Result<Value> {
    let (left, right) = match (left, right) {
        (Value::Array(left), Value::Array(right)) => (left, right),
        (Value::Null, other) | (other, Value::Null) => return Ok(other.clone()),
        (left, _) => return Err(EngineError::internal(format!("{left:?} is used as an array"))),
    };
    let (l, r) = (left.dimensions(), right.dimensions());
    let lengths =
        |dimensions: &[Dimension]| dimensions.iter().map(|d| (d.lower, d.length)).collect::<Vec<_>>();
    let incompatible = |detail: String| {
        Err(EngineError::new(
            SqlState::ARRAY_SUBSCRIPT_ERROR,
            "cannot concatenate incompatible arrays",
        )
        .with_detail(detail))
    };
    let (outer, inner) = match (l.len(), r.len()) {
        (0, _) => return Ok(Value::Array(right.clone())),
        (_, 0) => return Ok(Value::Array(left.clone())),
        (more, fewer) if more == fewer => {
            if lengths(&l[1..]) != lengths(&r[1..]) {
                return incompatible(
                    "Arrays with differing element dimensions are not compatible for concatenation."
                        .to_owned(),
                );
            }
            (
                Dimension {
                    length: l[0].length.saturating_add(r[0].length),
                    ..l[0]
                },
                &l[1..],
            )
        }
        (more, fewer) if more == fewer + 1 || fewer == more + 1 => {
            let (outer, part) = if more > fewer { (l, r) } else { (r, l) };
            if lengths(&outer[1..]) != lengths(part) {
                return incompatible(
                    "Arrays with differing dimensions are not compatible for concatenation.".to_owned(),
                );
            }
            (
                Dimension {
                    length: outer[0].length.saturating_add(1),
                    ..outer[0]
                },
                &outer[1..],
            )
        }
        (l, r) => {
            return incompatible(format!(
                "Arrays of {l} and {r} dimensions are not compatible for concatenation."
            ));
        }
    };
    let dimensions = std::iter::once(outer).chain(inner.iter().copied()).collect();
    let elements = [left.elements(), right.elements()].concat();
    ArrayValue::new(data_type, dimensions, elements).map(Value::from)
}

/// The arrays that are the elements of an array of two dimensions, with subscripts from 1.
pub fn parts_of(value: &Value) -> Result<Vec<Value>> {
    let Value::Array(array) = value else {
        return Ok(Vec::new());
    };
    let [_, inner] = array.dimensions() else {
        return Ok(Vec::new());
    };
    let parts = array.elements().chunks(inner.length as usize);
    let array_of = |part: &[Value]| ArrayValue::of(array.data_type(), part.to_vec()).map(Value::from);
    parts.map(array_of).collect()
}

/// 2202E or 22004 for a value that does not go into an array of arrays, whose first is `first`.
pub fn check_accumulated(first: Option<&Value>, value: &Value) -> Result<()> {
    let Value::Array(part) = value else {
        return Err(EngineError::new(
            SqlState::NULL_VALUE_NOT_ALLOWED,
            "cannot accumulate null arrays",
        ));
    };
    let refused = match first {
        _ if part.dimensions().is_empty() => "cannot accumulate empty arrays",
        Some(Value::Array(first)) if first.dimensions() != part.dimensions() => {
            "cannot accumulate arrays of different dimensionality"
        }
        _ => return Ok(()),
    };
    Err(EngineError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, refused))
}

/// The array of these arrays, which have the same dimensions.
pub fn nested(data_type: DataType, parts: &[Value]) -> Result<Value> {
    let mut common: Option<&[Dimension]> = None;
    let mut empty = false;
    let mut elements = Vec::new();
    let differing = || {
        EngineError::new(
            SqlState::ARRAY_SUBSCRIPT_ERROR,
            "multidimensional arrays must have array expressions with matching dimensions",
        )
    };
    for part in parts {
        let Value::Array(part) = part else {
            empty = true;
            continue;
        };
        if part.dimensions().is_empty() {
            empty = true;
            continue;
        }
        match common {
            None => common = Some(part.dimensions()),
            Some(common) if common != part.dimensions() => return Err(differing()),
            Some(_) => {}
        }
        elements.extend_from_slice(part.elements());
    }
    let Some(common) = common else {
        return Ok(ArrayValue::empty(data_type).into());
    };
    if empty {
        return Err(differing());
    }
    if common.len() >= DIMENSIONS_MAX {
        return Err(too_many_dimensions(common.len() + 1));
    }
    let mut dimensions = vec![Dimension {
        lower: 1,
        length: parts.len() as i32,
    }];
    dimensions.extend_from_slice(common);
    ArrayValue::new(data_type, dimensions, elements).map(Value::from)
}
