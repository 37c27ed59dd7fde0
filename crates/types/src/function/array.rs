//! Functions and operators of arrays.
//!
//! Most take an array of any type, and elements of that type: the table gives each argument's `Kind`, and the call's
//! arguments settle the type of the elements once for all.

use std::sync::Arc;

use crate::common_type::common_type;
use crate::error::{EngineError, Result, SqlState};
use crate::function::array_text::{string_to_array, to_string};
use crate::function::row::{FunctionRow, Implementation, row};
use crate::function::signature::Signature;
use crate::function::{Function, check_length};
use crate::memory;
use crate::value::array::{Bounds, Dimension, check_dimensions, concatenated, nested, with_element};
use crate::value::{ArrayValue, DataType, RecordValue, Value, compare_checked};

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

const INT4_ARRAY: DataType = DataType::array_of(DataType::Int4);
const BOOL: Kind = Kind::Is(DataType::Bool);
const INT4: Kind = Kind::Is(DataType::Int4);
const INT4S: Kind = Kind::Is(INT4_ARRAY);
const TEXT: Kind = Kind::Is(DataType::Text);
const TEXTS: Kind = Kind::Is(DataType::array_of(DataType::Text));

/// A function whose arguments are arrays and elements of one type.
struct Polymorphic {
    row: FunctionRow,
    /// Its arguments.
    kinds: &'static [Kind],
    /// The number of them that must be there.
    least: usize,
    /// Its result.
    result: Kind,
    /// True if the types of arrays and elements are brought to one (`anycompatible`), false if they must be one.
    compatible: bool,
}

impl Polymorphic {
    /// The same, with the types of arrays and elements brought to one.
    const fn compatible(mut self) -> Polymorphic {
        self.compatible = true;
        self
    }

    /// The same, called with NULLs also.
    const fn called_on_null(mut self) -> Polymorphic {
        self.row = self.row.called_on_null();
        self
    }

    /// The same, the last of its arguments left out at will.
    const fn at_least(mut self, least: usize) -> Polymorphic {
        self.least = least;
        self
    }
}

const fn function(
    oid: u32,
    name: &'static str,
    kinds: &'static [Kind],
    result: Kind,
    implementation: Implementation,
) -> Polymorphic {
    Polymorphic {
        row: row(oid, name, &[], DataType::Unknown, implementation),
        kinds,
        least: kinds.len(),
        result,
        compatible: false,
    }
}

/// The elements of an array with their places, as records, of which PostgreSQL's function of this name gives rows.
pub const EXPANDED: &str = "information_schema._pg_expandarray";

static TABLE: &[Polymorphic] = {
    use Implementation::{Pure, Typed};
    use Kind::{Array, Element};
    &[
        function(378, "array_append", &[Array, Element], Array, Typed(append))
            .compatible()
            .called_on_null(),
        function(379, "array_prepend", &[Element, Array], Array, Typed(prepend))
            .compatible()
            .called_on_null(),
        function(383, "array_cat", &[Array, Array], Array, Typed(cat))
            .compatible()
            .called_on_null(),
        function(2176, "array_length", &[Array, INT4], INT4, Pure(length)),
        function(2091, "array_lower", &[Array, INT4], INT4, Pure(lower)),
        function(2092, "array_upper", &[Array, INT4], INT4, Pure(upper)),
        function(748, "array_ndims", &[Array], INT4, Pure(dimension_count)),
        function(747, "array_dims", &[Array], TEXT, Pure(dimensions)),
        function(3179, "cardinality", &[Array], INT4, Pure(cardinality)),
        function(
            3277,
            "array_position",
            &[Array, Element, INT4],
            INT4,
            Pure(position),
        )
        .at_least(2)
        .compatible()
        .called_on_null(),
        function(3279, "array_positions", &[Array, Element], INT4S, Pure(positions))
            .compatible()
            .called_on_null(),
        function(3167, "array_remove", &[Array, Element], Array, Pure(remove))
            .compatible()
            .called_on_null(),
        function(
            3168,
            "array_replace",
            &[Array, Element, Element],
            Array,
            Pure(replace),
        )
        .compatible()
        .called_on_null(),
        function(
            395,
            "array_to_string",
            &[Array, TEXT, TEXT],
            TEXT,
            Pure(to_string),
        )
        .at_least(2)
        .called_on_null(),
        function(
            394,
            "string_to_array",
            &[TEXT, TEXT, TEXT],
            TEXTS,
            Pure(string_to_array),
        )
        .at_least(2)
        .called_on_null(),
        function(
            0,
            EXPANDED,
            &[Array],
            Kind::Is(DataType::array_of(DataType::Record)),
            Typed(expand),
        ),
        // In PostgreSQL its rows are the elements.
        function(
            6160,
            "string_to_table",
            &[TEXT, TEXT, TEXT],
            TEXTS,
            Pure(string_to_array),
        )
        .at_least(2)
        .called_on_null(),
        function(1193, "array_fill", &[Element, INT4S, INT4S], Array, Typed(fill))
            .at_least(2)
            .called_on_null(),
        function(6172, "trim_array", &[Array, INT4], Array, Pure(trim)),
        function(3218, "width_bucket", &[Element, Array], INT4, Typed(width_bucket)).compatible(),
        function(2748, "arraycontains", &[Array, Array], BOOL, Pure(contains)),
        function(2749, "arraycontained", &[Array, Array], BOOL, Pure(is_contained)),
        function(2747, "arrayoverlap", &[Array, Array], BOOL, Pure(overlap)),
    ]
};

/// `ARRAY[…]` of elements.
static CONSTRUCT: FunctionRow = of_syntax("array", Implementation::Typed(construct));
/// `ARRAY[…]` of arrays.
static NESTED: FunctionRow = of_syntax("array", Implementation::Typed(nest));
/// `a[i][j]…`
static ELEMENT: FunctionRow = of_syntax("element", Implementation::Pure(element));
/// `a[i:j]…`: two arguments a dimension, false for a bound that is left out.
static SLICE: FunctionRow = of_syntax("slice", Implementation::Pure(slice));

const fn of_syntax(name: &'static str, implementation: Implementation) -> FunctionRow {
    row(0, name, &[], DataType::Unknown, implementation).called_on_null()
}

/// The function behind `ARRAY[…]`, of elements or of arrays, for an array of this type.
pub fn constructor(array_type: DataType, of_arrays: bool) -> Function {
    Function::over(if of_arrays { &NESTED } else { &CONSTRUCT }, array_type)
}

/// True if the call is `ARRAY[…]` of elements.
pub fn is_list(function: Function) -> bool {
    std::ptr::eq(function.row(), &CONSTRUCT)
}

/// The function behind subscripts.
pub fn subscript(is_slice: bool) -> Function {
    Function::of_row(if is_slice { &SLICE } else { &ELEMENT })
}

/// One of these functions, if it is its name.
pub fn resolve(name: &str, arguments: &[DataType]) -> Option<Signature> {
    let found = TABLE.iter().find(|entry| entry.row.name == name)?;
    if !(found.least..=found.kinds.len()).contains(&arguments.len()) {
        return None;
    }
    let mut elements = Vec::new();
    for (argument, kind) in arguments.iter().zip(found.kinds) {
        match (kind, argument) {
            (_, DataType::Unknown) | (Kind::Is(_), _) => {}
            (Kind::Array, array) => elements.push(array.element()?),
            (Kind::Element, element) => elements.push(*element),
        }
    }
    let polymorphic = found.kinds.iter().any(|kind| !matches!(kind, Kind::Is(_)));
    let element = match elements.first() {
        None if polymorphic && !found.compatible => return None,
        None => DataType::Text,
        Some(_) if found.compatible => common_type(&elements)?,
        Some(first) => elements.iter().all(|other| other == first).then_some(*first)?,
    };
    let array = element.array_type()?;
    let of_kind = |kind: &Kind| match kind {
        Kind::Array => array,
        Kind::Element => element,
        Kind::Is(data_type) => *data_type,
    };
    Some(Signature {
        function: Function::over(&found.row, array),
        arguments: found.kinds[..arguments.len()].iter().map(of_kind).collect(),
        result: of_kind(&found.result),
    })
}

/// Looks for memory for what is made of these.
fn require(arguments: &[Value]) -> Result<()> {
    memory::require(arguments.iter().map(Value::heap_bytes).sum::<usize>() * 2)
}

fn construct(arguments: &[Value], array_type: DataType) -> Result<Value> {
    require(arguments)?;
    ArrayValue::of(array_type, arguments.to_vec()).map(Value::from)
}

fn nest(arguments: &[Value], array_type: DataType) -> Result<Value> {
    require(arguments)?;
    nested(array_type, arguments)
}

fn expand(arguments: &[Value], array_type: DataType) -> Result<Value> {
    require(arguments)?;
    let element = array_type.element().unwrap_or(array_type);
    let types: Arc<[DataType]> = [element, DataType::Int4].into();
    let elements = array(&arguments[0])?.elements().iter().enumerate();
    let records = elements.map(|(at, element)| {
        let fields = vec![element.clone(), Value::Int4(at as i32 + 1)];
        RecordValue::new(fields, Arc::clone(&types)).map(Value::from)
    });
    let records = records.collect::<Result<_>>()?;
    ArrayValue::of(DataType::array_of(DataType::Record), records).map(Value::from)
}

fn append(arguments: &[Value], array_type: DataType) -> Result<Value> {
    require(arguments)?;
    with_element(array_type, &arguments[0], &arguments[1], false)
}

fn prepend(arguments: &[Value], array_type: DataType) -> Result<Value> {
    require(arguments)?;
    with_element(array_type, &arguments[1], &arguments[0], true)
}

fn cat(arguments: &[Value], array_type: DataType) -> Result<Value> {
    require(arguments)?;
    concatenated(array_type, &arguments[0], &arguments[1])
}

/// The number of thresholds that are not above the value; they ascend.
fn width_bucket(arguments: &[Value], array_type: DataType) -> Result<Value> {
    let thresholds = array(&arguments[1])?;
    if thresholds.dimensions().len() > 1 {
        return Err(EngineError::new(
            SqlState::ARRAY_SUBSCRIPT_ERROR,
            "thresholds must be one-dimensional array",
        ));
    }
    if thresholds.elements().iter().any(Value::is_null) {
        return Err(EngineError::new(
            SqlState::NULL_VALUE_NOT_ALLOWED,
            "thresholds array must not contain NULLs",
        ));
    }
    let element = array_type.element().unwrap_or(array_type);
    let (mut low, mut high) = (0, thresholds.elements().len());
    while low < high {
        let middle = (low + high) / 2;
        match compare_checked(&arguments[0], &thresholds.elements()[middle], element)?.is_lt() {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    Ok(Value::Int4(low as i32))
}

fn length(arguments: &[Value]) -> Result<Value> {
    dimension(arguments, |dimension| dimension.length)
}

fn lower(arguments: &[Value]) -> Result<Value> {
    dimension(arguments, |dimension| dimension.lower)
}

fn upper(arguments: &[Value]) -> Result<Value> {
    dimension(arguments, Dimension::upper)
}

fn dimension_count(arguments: &[Value]) -> Result<Value> {
    Ok(match array(&arguments[0])?.dimensions().len() {
        0 => Value::Null,
        count => Value::Int4(count as i32),
    })
}

fn cardinality(arguments: &[Value]) -> Result<Value> {
    Ok(Value::Int4(array(&arguments[0])?.elements().len() as i32))
}

fn array(value: &Value) -> Result<&ArrayValue> {
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
    if arguments.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    let subscripts = arguments[1..].iter().map(integer).collect::<Result<Vec<i32>>>()?;
    let element = array(&arguments[0])?.element(&subscripts);
    Ok(element.cloned().unwrap_or_default())
}

fn slice(arguments: &[Value]) -> Result<Value> {
    if arguments.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    let bound = |value: &Value| match value {
        Value::Bool(_) => Ok(None),
        value => integer(value).map(Some),
    };
    let mut bounds = Vec::with_capacity(arguments.len() / 2);
    for pair in arguments[1..].chunks_exact(2) {
        bounds.push(Bounds {
            lower: bound(&pair[0])?,
            upper: bound(&pair[1])?,
        });
    }
    array(&arguments[0])?.slice(&bounds).map(Value::from)
}

fn dimension(arguments: &[Value], of: fn(Dimension) -> i32) -> Result<Value> {
    let number = usize::try_from(integer(&arguments[1])?).ok();
    let place = number.and_then(|number| number.checked_sub(1));
    let found = place.and_then(|place| array(&arguments[0]).ok()?.dimensions().get(place).copied());
    Ok(found.map_or(Value::Null, |dimension| Value::Int4(of(dimension))))
}

fn dimensions(arguments: &[Value]) -> Result<Value> {
    let dimensions = array(&arguments[0])?.dimensions();
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

fn contains(arguments: &[Value]) -> Result<Value> {
    all_among(&arguments[1], &arguments[0])
}

fn is_contained(arguments: &[Value]) -> Result<Value> {
    all_among(&arguments[0], &arguments[1])
}

/// True if each element of `part` is one of `whole`; NULL is none of any.
fn all_among(part: &Value, whole: &Value) -> Result<Value> {
    let (part, whole) = (array(part)?, array(whole)?);
    for element in part.elements() {
        if element.is_null() || !is_among(element, whole)? {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn overlap(arguments: &[Value]) -> Result<Value> {
    let (left, right) = (array(&arguments[0])?, array(&arguments[1])?);
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
    if arguments[0].is_null() {
        return Ok(Value::Null);
    }
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
    if arguments[0].is_null() {
        return Ok(Value::Null);
    }
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
    if arguments[0].is_null() {
        return Ok(Value::Null);
    }
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

fn fill(arguments: &[Value], data_type: DataType) -> Result<Value> {
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
        let found = |name: &str, types: &[DataType]| {
            resolve(name, types).map(|found| (found.arguments, found.result))
        };
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
        assert_eq!(found("arraycontains", &[array(Int4), array(Int8)]), None);
        assert_eq!(found("array_length", &[Unknown, Int4]), None);
        assert_eq!(found("array_length", &[Int4, Int4]), None);
        assert_eq!(found("array_append", &[array(Int4), Text]), None);
    }
}
