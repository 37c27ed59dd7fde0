//! The types that the arguments of a call are brought to.

use super::node::Node;
use super::operand::{Typed, coerced};
use super::unprinted;
use crate::aggregate::Kind;
use crate::common_type::common_type;
use crate::error::Result;
use crate::value::DataType;

/// Keys of an order, each with the words behind it.
pub(super) type Keys = Vec<(Node, &'static str)>;

/// The direct arguments of an aggregate and those of WITHIN GROUP, each brought to the type that it has there.
pub(super) fn aggregated(
    name: &str,
    direct: Vec<Typed>,
    within: Vec<(Typed, &'static str)>,
) -> Result<(Vec<Node>, Keys)> {
    let count = direct.len();
    let (keys, words): (Vec<Typed>, Vec<&'static str>) = within.into_iter().unzip();
    let all: Vec<Typed> = direct.into_iter().chain(keys).collect();
    let mut types: Vec<DataType> = all.iter().map(|typed| typed.data_type).collect();
    let mut rows = crate::aggregate::rows();
    if rows.any(|row| row.name == name && row.kind == Kind::Hypothetical) && types.len() == 2 * count {
        // Each direct argument stands for a row's key.
        for at in 0..count {
            let common = common_type(&[types[count + at], types[at]]).ok_or_else(unprinted)?;
            types[at] = common;
            types[count + at] = common;
        }
    }
    let found = crate::aggregate::resolve(name, &types).map_err(|_| unprinted())?;
    let settled = |to: DataType| match to {
        DataType::Unknown => DataType::Text,
        to => to,
    };
    let nodes = all.into_iter().zip(&found.arguments);
    let nodes = nodes.map(|(typed, to)| coerced(typed, settled(*to)));
    let mut arguments = nodes.collect::<Result<Vec<Node>>>()?;
    let within = arguments.split_off(count.min(arguments.len()));
    Ok((arguments, within.into_iter().zip(words).collect()))
}

/// The arguments of a function that gives rows, each brought to the type that it has there.
pub(super) fn set_arguments(name: &str, arguments: Vec<Typed>) -> Result<Vec<Node>> {
    let types: Vec<DataType> = arguments.iter().map(|typed| typed.data_type).collect();
    let to = match name {
        "generate_series" => series_types(&types).ok_or_else(unprinted)?,
        // An array, which has a type, and a number.
        "unnest" | "generate_subscripts" if types.first() != Some(&DataType::Unknown) => types,
        "string_to_table" | "regexp_split_to_table" | "regexp_matches" => vec![DataType::Text; types.len()],
        _ => return Err(unprinted()),
    };
    let nodes = arguments.into_iter().zip(to);
    nodes.map(|(typed, to)| coerced(typed, to)).collect()
}

/// The types of the arguments of `generate_series`: a step between times is an interval.
fn series_types(types: &[DataType]) -> Option<Vec<DataType>> {
    let bounds = common_type(types.get(..2)?)?;
    let bounds = match bounds {
        DataType::Timestamp | DataType::TimestampTz => bounds,
        DataType::Date => DataType::TimestampTz,
        _ => return Some(vec![common_type(types)?; types.len()]),
    };
    Some([bounds, bounds, DataType::Interval][..types.len().min(3)].to_vec())
}

/// The arguments of a window function, each brought to the type that it has there.
pub(super) fn window_arguments(name: &str, arguments: Vec<Typed>) -> Result<Vec<Node>> {
    let values = |number: usize| match name {
        "ntile" => false,
        // A value, an offset, and what stands for a row that is not there.
        _ => number != 1,
    };
    let of_values = arguments.iter().enumerate().filter(|(number, _)| values(*number));
    let types: Vec<DataType> = of_values.map(|(_, typed)| typed.data_type).collect();
    let shared = common_type(&types).unwrap_or(DataType::Text);
    let nodes = arguments.into_iter().enumerate().map(|(number, typed)| {
        let to = if values(number) { shared } else { DataType::Int4 };
        coerced(typed, to)
    });
    nodes.collect()
}
