//! Functions and operators of arrays.
//!
//! Most take an array of any type, and elements of that type: the table gives each argument's [`Kind`], and the call's
//! arguments settle the type of the elements once for all.

use crate::common_type::common_type;
use crate::error::{EngineError, Result, SqlState};
use crate::function::array_text::{string_to_array, to_string};
use crate::function::check_length;
use crate::memory;
use crate::value::array::{Bounds, Dimension, check_dimensions, concatenated, nested, with_element};
use crate::value::{ArrayValue, DataType, Value, compare_checked};

/// A function of arrays. Those with a type give an array of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrayFunction {
    /// `ARRAY[…]` of elements
    Construct(DataType),
    /// `ARRAY[…]` of arrays
    Nested(DataType),
    /// `a[i][j]…`
    Element,
    /// `a[i:j]…`: two arguments a dimension
    Slice {
        /// A bit per dimension that has a lower bound; it is NULL otherwise.
        lower: u8,
        /// A bit per dimension that has an upper bound.
        upper: u8,
    },
    /// `a @> b`
    Contains,
    /// `a <@ b`
    ContainedIn,
    /// `a && b`
    Overlaps,
    /// `array_append(array, element)`, `array || element`
    Append(DataType),
    /// `array_prepend(element, array)`, `element || array`
    Prepend(DataType),
    /// `array_cat(array, array)`, `array || array`
    Cat(DataType),
    /// `array_length(array, dimension)`
    Length,
    /// `array_lower(array, dimension)`
    Lower,
    /// `array_upper(array, dimension)`
    Upper,
    /// `array_ndims(array)`
    DimensionCount,
    /// `array_dims(array)`
    Dimensions,
    /// `cardinality(array)`
    Cardinality,
    /// `array_position(array, element [, start])`
    Position,
    /// `array_positions(array, element)`
    Positions,
    /// `array_remove(array, element)`
    Remove,
    /// `array_replace(array, from, to)`
    Replace,
    /// `array_to_string(array, delimiter [, null_string])`
    ToString,
    /// `string_to_array(text, delimiter [, null_string])`
    FromString,
    /// `array_fill(element, lengths [, lower_bounds])`
    Fill(DataType),
    /// `trim_array(array, count)`
    Trim,
}

/// The type of an argument or a result.
#[derive(Clone, Copy)]
enum Kind {
    /// An array
    Array,
    /// An element of it
    Element,
    /// This type
    Is(DataType),
}

const INT4: Kind = Kind::Is(DataType::Int4);
const TEXT: Kind = Kind::Is(DataType::Text);
const INT4_ARRAY: DataType = DataType::array_of(DataType::Int4);
const TEXT_ARRAY: DataType = DataType::array_of(DataType::Text);

/// A function of the table, given the array type of the call.
type Make = fn(DataType) -> ArrayFunction;

/// Name, function, arguments and how many of them must be there, result, and whether the types of arrays and elements
/// are brought to one (`anycompatible`) or must be one (`anyelement`).
type Row = (&'static str, Make, &'static [Kind], usize, Kind, bool);

const TABLE: &[Row] = {
    use ArrayFunction as F;
    use Kind::{Array, Element, Is};
    &[
        ("array_append", F::Append, &[Array, Element], 2, Array, true),
        ("array_prepend", F::Prepend, &[Element, Array], 2, Array, true),
        ("array_cat", F::Cat, &[Array, Array], 2, Array, true),
        ("array_length", |_| F::Length, &[Array, INT4], 2, INT4, false),
        ("array_lower", |_| F::Lower, &[Array, INT4], 2, INT4, false),
        ("array_upper", |_| F::Upper, &[Array, INT4], 2, INT4, false),
        ("array_ndims", |_| F::DimensionCount, &[Array], 1, INT4, false),
        ("array_dims", |_| F::Dimensions, &[Array], 1, TEXT, false),
        ("cardinality", |_| F::Cardinality, &[Array], 1, INT4, false),
        (
            "array_position",
            |_| F::Position,
            &[Array, Element, INT4],
            2,
            INT4,
            true,
        ),
        (
            "array_positions",
            |_| F::Positions,
            &[Array, Element],
            2,
            Is(INT4_ARRAY),
            true,
        ),
        ("array_remove", |_| F::Remove, &[Array, Element], 2, Array, true),
        (
            "array_replace",
            |_| F::Replace,
            &[Array, Element, Element],
            3,
            Array,
            true,
        ),
        (
            "array_to_string",
            |_| F::ToString,
            &[Array, TEXT, TEXT],
            2,
            TEXT,
            false,
        ),
        (
            "string_to_array",
            |_| F::FromString,
            &[TEXT, TEXT, TEXT],
            2,
            Is(TEXT_ARRAY),
            false,
        ),
        (
            "array_fill",
            F::Fill,
            &[Element, Is(INT4_ARRAY), Is(INT4_ARRAY)],
            2,
            Array,
            false,
        ),
        ("trim_array", |_| F::Trim, &[Array, INT4], 2, Array, false),
        // The operators, which have no name that a statement could use.
        (
            "@>",
            |_| F::Contains,
            &[Array, Array],
            2,
            Is(DataType::Bool),
            false,
        ),
        (
            "<@",
            |_| F::ContainedIn,
            &[Array, Array],
            2,
            Is(DataType::Bool),
            false,
        ),
        (
            "&&",
            |_| F::Overlaps,
            &[Array, Array],
            2,
            Is(DataType::Bool),
            false,
        ),
    ]
};

/// The function (or operator) of this name for arguments of these types, the types that they are converted to, and
/// that of the result. `None`: there is no such function.
pub fn resolve(name: &str, arguments: &[DataType]) -> Option<(ArrayFunction, Vec<DataType>, DataType)> {
    let (_, make, kinds, least, result, compatible) = TABLE.iter().find(|row| row.0 == name)?;
    if !(*least..=kinds.len()).contains(&arguments.len()) {
        return None;
    }
    let mut elements = Vec::new();
    for (argument, kind) in arguments.iter().zip(*kinds) {
        match (kind, argument) {
            (_, DataType::Unknown) | (Kind::Is(_), _) => {}
            (Kind::Array, array) => elements.push(array.element()?),
            (Kind::Element, element) => elements.push(*element),
        }
    }
    let polymorphic = kinds.iter().any(|kind| !matches!(kind, Kind::Is(_)));
    let element = match elements.first() {
        None if polymorphic && !*compatible => return None,
        None => DataType::Text,
        Some(first) if *compatible => common_type(&elements).filter(|_| first.array_type().is_some())?,
        Some(first) => elements.iter().all(|other| other == first).then_some(*first)?,
    };
    let array = element.array_type()?;
    let of_kind = |kind: &Kind| match kind {
        Kind::Array => array,
        Kind::Element => element,
        Kind::Is(data_type) => *data_type,
    };
    let arguments = kinds[..arguments.len()].iter().map(of_kind).collect();
    Some((make(array), arguments, of_kind(result)))
}

impl ArrayFunction {
    /// The name by which PostgreSQL has it, or the words that stand for it.
    pub const fn name(self) -> &'static str {
        use ArrayFunction::*;
        match self {
            Construct(_) | Nested(_) => "array",
            Element => "element",
            Slice { .. } => "slice",
            Contains => "arraycontains",
            ContainedIn => "arraycontained",
            Overlaps => "arrayoverlap",
            Append(_) => "array_append",
            Prepend(_) => "array_prepend",
            Cat(_) => "array_cat",
            Length => "array_length",
            Lower => "array_lower",
            Upper => "array_upper",
            DimensionCount => "array_ndims",
            Dimensions => "array_dims",
            Cardinality => "cardinality",
            Position => "array_position",
            Positions => "array_positions",
            Remove => "array_remove",
            Replace => "array_replace",
            ToString => "array_to_string",
            FromString => "string_to_array",
            Fill(_) => "array_fill",
            Trim => "trim_array",
        }
    }

    /// Its value.
    pub fn call(self, arguments: &[Value]) -> Result<Value> {
        use ArrayFunction::*;
        memory::require(arguments.iter().map(Value::heap_bytes).sum::<usize>() * 2)?;
        match self {
            Construct(data_type) => ArrayValue::of(data_type, arguments.to_vec()).map(Value::from),
            Nested(data_type) => nested(data_type, arguments),
            Append(data_type) => with_element(data_type, &arguments[0], &arguments[1], false),
            Prepend(data_type) => with_element(data_type, &arguments[1], &arguments[0], true),
            Cat(data_type) => concatenated(data_type, &arguments[0], &arguments[1]),
            Slice { lower, upper } => slice(arguments, lower, upper),
            Position => position(arguments),
            FromString => string_to_array(arguments),
            ToString => to_string(arguments),
            Fill(data_type) => fill(data_type, arguments),
            _ if arguments[0].is_null() => Ok(Value::Null),
            Positions => positions(arguments),
            Remove => remove(arguments),
            Replace => replace(arguments),
            // The rest give NULL for NULL.
            _ if arguments.iter().any(Value::is_null) => Ok(Value::Null),
            Element => element(arguments),
            Contains => is_contained(&arguments[1], &arguments[0]),
            ContainedIn => is_contained(&arguments[0], &arguments[1]),
            Overlaps => overlap(&arguments[0], &arguments[1]),
            Length => dimension(arguments, |dimension| dimension.length),
            Lower => dimension(arguments, |dimension| dimension.lower),
            Upper => dimension(arguments, Dimension::upper),
            DimensionCount => Ok(match array(&arguments[0])?.dimensions().len() {
                0 => Value::Null,
                count => Value::Int4(count as i32),
            }),
            Dimensions => dimensions(&arguments[0]),
            Cardinality => Ok(Value::Int4(array(&arguments[0])?.elements().len() as i32)),
            Trim => trim(arguments),
        }
    }
}

pub(super) fn array(value: &Value) -> Result<&ArrayValue> {
    match value {
        Value::Array(array) => Ok(array),
        other => Err(EngineError::internal(format!("{other:?} is used as an array"))),
    }
}

fn integer(value: &Value) -> Result<i32> {
    match value {
        Value::Int4(number) => Ok(*number),
        other => Err(EngineError::internal(format!("{other:?} is used as an integer"))),
    }
}

fn element(arguments: &[Value]) -> Result<Value> {
    let subscripts = arguments[1..].iter().map(integer).collect::<Result<Vec<i32>>>()?;
    let element = array(&arguments[0])?.element(&subscripts);
    Ok(element.cloned().unwrap_or_default())
}

fn slice(arguments: &[Value], lower: u8, upper: u8) -> Result<Value> {
    if arguments[0].is_null() {
        return Ok(Value::Null);
    }
    let mut bounds = Vec::with_capacity(arguments.len() / 2);
    for (at, pair) in arguments[1..].chunks_exact(2).enumerate() {
        let bound = |given: u8, value: &Value| match (given >> at & 1, value) {
            (0, _) => Ok(Some(None)),
            (_, Value::Null) => Ok(None),
            (_, value) => integer(value).map(|number| Some(Some(number))),
        };
        let (Some(lower), Some(upper)) = (bound(lower, &pair[0])?, bound(upper, &pair[1])?) else {
            return Ok(Value::Null);
        };
        bounds.push(Bounds { lower, upper });
    }
    array(&arguments[0])?.slice(&bounds).map(Value::from)
}

fn dimension(arguments: &[Value], of: fn(Dimension) -> i32) -> Result<Value> {
    let number = usize::try_from(integer(&arguments[1])?).ok();
    let place = number.and_then(|number| number.checked_sub(1));
    let found = place.and_then(|place| array(&arguments[0]).ok()?.dimensions().get(place).copied());
    Ok(found.map_or(Value::Null, |dimension| Value::Int4(of(dimension))))
}

fn dimensions(value: &Value) -> Result<Value> {
    let dimensions = array(value)?.dimensions();
    if dimensions.is_empty() {
        return Ok(Value::Null);
    }
    let shown = dimensions.iter().map(|d| format!("[{}:{}]", d.lower, d.upper()));
    Ok(Value::text(shown.collect::<String>()))
}

/// True if two elements are equal, NULL to NULL.
fn same(left: &Value, right: &Value, element_type: DataType) -> Result<bool> {
    match (left.is_null(), right.is_null()) {
        (false, false) => Ok(compare_checked(left, right, element_type)?.is_eq()),
        (left, right) => Ok(left && right),
    }
}

/// True if each element of `part` is one of `whole`; NULL is none of any.
fn is_contained(part: &Value, whole: &Value) -> Result<Value> {
    let (part, whole) = (array(part)?, array(whole)?);
    for element in part.elements() {
        if element.is_null() || !is_among(element, whole)? {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn overlap(left: &Value, right: &Value) -> Result<Value> {
    let (left, right) = (array(left)?, array(right)?);
    for element in left.elements() {
        if !element.is_null() && is_among(element, right)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

fn is_among(element: &Value, whole: &ArrayValue) -> Result<bool> {
    for other in whole.elements() {
        if same(element, other, whole.element_type())? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// 0A000 for a search in an array of several dimensions.
fn one_dimension(array: &ArrayValue, what: &str) -> Result<()> {
    if array.dimensions().len() > 1 {
        return Err(EngineError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("{what} multidimensional arrays is not supported"),
        ));
    }
    Ok(())
}

fn position(arguments: &[Value]) -> Result<Value> {
    if arguments[0].is_null() {
        return Ok(Value::Null);
    }
    let array = array(&arguments[0])?;
    one_dimension(array, "searching for elements in")?;
    let start = match arguments.get(2) {
        None => i32::MIN,
        Some(Value::Null) => {
            return Err(EngineError::new(
                SqlState::NULL_VALUE_NOT_ALLOWED,
                "initial position must not be null",
            ));
        }
        Some(value) => integer(value)?,
    };
    let lower = array.dimensions().first().map_or(1, |dimension| dimension.lower);
    for (subscript, element) in (lower..).zip(array.elements()) {
        if subscript >= start && same(element, &arguments[1], array.element_type())? {
            return Ok(Value::Int4(subscript));
        }
    }
    Ok(Value::Null)
}

fn positions(arguments: &[Value]) -> Result<Value> {
    let array = array(&arguments[0])?;
    one_dimension(array, "searching for elements in")?;
    let lower = array.dimensions().first().map_or(1, |dimension| dimension.lower);
    let mut found = Vec::new();
    for (subscript, element) in (lower..).zip(array.elements()) {
        if same(element, &arguments[1], array.element_type())? {
            found.push(Value::Int4(subscript));
        }
    }
    ArrayValue::of(INT4_ARRAY, found).map(Value::from)
}

fn remove(arguments: &[Value]) -> Result<Value> {
    let array = array(&arguments[0])?;
    one_dimension(array, "removing elements from")?;
    let mut kept = Vec::with_capacity(array.elements().len());
    for element in array.elements() {
        if !same(element, &arguments[1], array.element_type())? {
            kept.push(element.clone());
        }
    }
    let dimensions = array.dimensions().iter().map(|dimension| Dimension {
        length: kept.len() as i32,
        ..*dimension
    });
    let dimensions = if kept.is_empty() {
        Vec::new()
    } else {
        dimensions.collect()
    };
    ArrayValue::new(array.data_type(), dimensions, kept).map(Value::from)
}

fn replace(arguments: &[Value]) -> Result<Value> {
    let array = array(&arguments[0])?;
    let mut elements = Vec::with_capacity(array.elements().len());
    for element in array.elements() {
        elements.push(match same(element, &arguments[1], array.element_type())? {
            true => arguments[2].clone(),
            false => element.clone(),
        });
    }
    check_length(elements.iter().map(Value::heap_bytes).sum())?;
    ArrayValue::new(array.data_type(), array.dimensions().to_vec(), elements).map(Value::from)
}

fn fill(data_type: DataType, arguments: &[Value]) -> Result<Value> {
    let null = |message| EngineError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message);
    if arguments[1..].iter().any(Value::is_null) {
        return Err(null("dimension array or low bound array cannot be null"));
    }
    let numbers = |value: &Value| {
        let array = array(value)?;
        if array.dimensions().len() > 1 {
            return Err(EngineError::new(
                SqlState::ARRAY_SUBSCRIPT_ERROR,
                "wrong number of array subscripts",
            )
            .with_detail("Dimension array must be one dimensional."));
        }
        let numbers = array.elements().iter().map(|number| match number {
            Value::Null => Err(null("dimension values cannot be null")),
            number => integer(number),
        });
        numbers.collect::<Result<Vec<i32>>>()
    };
    let lengths = numbers(&arguments[1])?;
    let lowers = match arguments.get(2) {
        Some(lowers) => numbers(lowers)?,
        None => vec![1; lengths.len()],
    };
    if lowers.len() != lengths.len() {
        return Err(EngineError::new(
            SqlState::ARRAY_SUBSCRIPT_ERROR,
            "wrong number of array subscripts",
        )
        .with_detail("Low bound array has different size than dimensions array."));
    }
    let pairs = lengths.into_iter().zip(lowers);
    let dimensions: Vec<Dimension> = pairs.map(|(length, lower)| Dimension { lower, length }).collect();
    let count = check_dimensions(&dimensions)?;
    if count == 0 {
        return Ok(ArrayValue::empty(data_type).into());
    }
    check_length(count.saturating_mul(size_of::<Value>() + arguments[0].heap_bytes()))?;
    ArrayValue::new(data_type, dimensions, vec![arguments[0].clone(); count]).map(Value::from)
}

fn trim(arguments: &[Value]) -> Result<Value> {
    let array = array(&arguments[0])?;
    let length = array.dimensions().first().map_or(0, |dimension| dimension.length);
    let count = integer(&arguments[1])?;
    if !(0..=length).contains(&count) {
        return Err(EngineError::new(
            SqlState::ARRAY_ELEMENT_ERROR,
            format!("number of elements to trim must be between 0 and {length}"),
        ));
    }
    let Some(first) = array.dimensions().first() else {
        return Ok(Value::Array(Box::new(array.clone())));
    };
    let upper = i64::from(first.upper()) - i64::from(count);
    let bounds = match i32::try_from(upper) {
        Ok(upper) => Bounds {
            lower: None,
            upper: Some(upper),
        },
        Err(_) => return Ok(ArrayValue::empty(array.data_type()).into()),
    };
    array.slice(&[bounds]).map(Value::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_settle_the_types() {
        use DataType::*;
        let array = DataType::array_of;
        let found =
            |name: &str, types: &[DataType]| resolve(name, types).map(|(_, types, result)| (types, result));
        let numerics = array(Numeric);
        assert_eq!(
            found("array_append", &[array(Int4), Numeric]),
            Some((vec![numerics, Numeric], numerics))
        );
        assert_eq!(
            found("array_append", &[array(Int4), Unknown]),
            Some((vec![array(Int4), Int4], array(Int4)))
        );
        assert_eq!(
            found("array_upper", &[Int2Vector, Int4]),
            Some((vec![array(Int2), Int4], Int4))
        );
        assert_eq!(found("@>", &[array(Int4), array(Int8)]), None);
        assert_eq!(found("array_length", &[Unknown, Int4]), None);
        assert_eq!(found("array_length", &[Int4, Int4]), None);
        assert_eq!(found("array_append", &[array(Int4), Text]), None);
    }
}
