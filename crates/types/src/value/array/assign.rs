//! Arrays with some elements replaced: what `SET a[i] = x` and `SET a[i:j] = x` make.
//!
//! An array of one dimension grows to hold the new elements, with NULLs in a gap; one of several does not grow. An array
//! without elements takes the dimensions that the subscripts say.

use crate::error::{EngineError, Result, SqlState};
use crate::memory;
use crate::value::Value;
use crate::value::array::{ArrayValue, Bounds, Dimension, check_dimensions};

fn wrong(message: &'static str) -> EngineError {
    EngineError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message)
}

/// Subscripts of one dimension, both counted.
#[derive(Debug, Clone, Copy)]
struct Range {
    lower: i64,
    upper: i64,
}

impl Range {
    fn of(dimension: Dimension) -> Range {
        let lower = i64::from(dimension.lower);
        Range {
            lower,
            upper: lower + i64::from(dimension.length) - 1,
        }
    }

    fn length(self) -> i64 {
        self.upper - self.lower + 1
    }

    /// As a dimension; 54000 if it is too long.
    fn dimension(self) -> Result<Dimension> {
        let length = i32::try_from(self.length()).ok().filter(|length| *length >= 0);
        let lower = i32::try_from(self.lower).ok();
        match (lower, length) {
            (Some(lower), Some(length)) => Ok(Dimension { lower, length }),
            _ => Err(EngineError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                "array size exceeds the maximum allowed (134217727)",
            )),
        }
    }
}

impl ArrayValue {
    /// The array with the element at these subscripts replaced.
    pub fn with_element_at(self, subscripts: &[i32], element: Value) -> Result<ArrayValue> {
        let ranges: Vec<Range> = subscripts
            .iter()
            .map(|at| Range {
                lower: i64::from(*at),
                upper: i64::from(*at),
            })
            .collect();
        if !self.dimensions().is_empty() && self.dimensions().len() != ranges.len() {
            return Err(wrong("wrong number of array subscripts"));
        }
        self.with_range(&ranges, vec![element])
    }

    /// The array with the part between these bounds replaced by the first elements of another.
    pub fn with_slice(self, bounds: &[Bounds], source: &ArrayValue) -> Result<ArrayValue> {
        let dimensions = self.dimensions();
        if dimensions.is_empty() {
            if bounds
                .iter()
                .any(|bound| bound.lower.is_none() || bound.upper.is_none())
            {
                return Err(wrong("array slice subscript must provide both boundaries").with_detail(
                    "When assigning to a slice of an empty array value, slice boundaries must be fully specified.",
                ));
            }
        } else if bounds.len() > dimensions.len() {
            return Err(wrong("wrong number of array subscripts"));
        }
        let mut ranges = Vec::with_capacity(bounds.len());
        for (at, bound) in bounds.iter().enumerate() {
            let own = dimensions.get(at).copied().map(Range::of);
            let or_own = |given: Option<i32>, of: fn(Range) -> i64| {
                given.map(i64::from).or(own.map(of)).unwrap_or_default()
            };
            let range = Range {
                lower: or_own(bound.lower, |own| own.lower),
                upper: or_own(bound.upper, |own| own.upper),
            };
            if own.is_some() && range.lower > range.upper {
                return Err(wrong("upper bound cannot be less than lower bound"));
            }
            ranges.push(range);
        }
        ranges.extend(dimensions.iter().skip(bounds.len()).copied().map(Range::of));
        let new = ranges.iter().map(|range| range.dimension());
        let wanted = check_dimensions(&new.collect::<Result<Vec<_>>>()?)?;
        if source.elements().len() < wanted {
            return Err(wrong("source array too small"));
        }
        if wanted == 0 {
            return Ok(self);
        }
        self.with_range(&ranges, source.elements()[..wanted].to_vec())
    }

    /// Replaces the elements in these ranges, one for each dimension.
    fn with_range(self, ranges: &[Range], elements: Vec<Value>) -> Result<ArrayValue> {
        let data_type = self.data_type();
        match self.dimensions().to_vec().as_slice() {
            [] => {
                let dimensions = ranges.iter().map(|range| range.dimension());
                ArrayValue::new(data_type, dimensions.collect::<Result<_>>()?, elements)
            }
            [dimension] => {
                let (own, new) = (Range::of(*dimension), ranges[0]);
                let all = Range {
                    lower: own.lower.min(new.lower),
                    upper: own.upper.max(new.upper),
                };
                let dimension = all.dimension()?;
                let length = check_dimensions(&[dimension])?;
                memory::require(length * size_of::<Value>())?;
                let mut whole = vec![Value::Null; length];
                let place = |subscript: i64| (subscript - all.lower) as usize;
                for (at, value) in self.into_elements().into_iter().enumerate() {
                    whole[place(own.lower) + at] = value;
                }
                for (at, value) in elements.into_iter().enumerate() {
                    whole[place(new.lower) + at] = value;
                }
                ArrayValue::new(data_type, vec![dimension], whole)
            }
            dimensions => {
                for (range, dimension) in ranges.iter().zip(dimensions) {
                    let own = Range::of(*dimension);
                    if range.lower < own.lower || range.upper > own.upper {
                        return Err(wrong("array subscript out of range"));
                    }
                }
                let mut whole = self.into_elements();
                let mut at: Vec<i64> = ranges.iter().map(|range| range.lower).collect();
                for value in elements {
                    let offsets = at.iter().zip(dimensions);
                    let place = offsets.fold(0, |place, (subscript, dimension)| {
                        place * i64::from(dimension.length) + (subscript - i64::from(dimension.lower))
                    });
                    whole[place as usize] = value;
                    // The last subscript counts first.
                    for (subscript, range) in at.iter_mut().zip(ranges).rev() {
                        *subscript += 1;
                        if *subscript <= range.upper {
                            break;
                        }
                        *subscript = range.lower;
                    }
                }
                ArrayValue::new(data_type, dimensions.to_vec(), whole)
            }
        }
    }
}
