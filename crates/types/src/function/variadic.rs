//! The choice of a function for a call with VARIADIC.

use super::json::make::SPREAD;
use super::row::FunctionRow;
use super::text::spread;
use super::{Function, Signature};
use crate::value::DataType;
use crate::value::cast::{CastContext, can_cast};

/// The function of this name that takes so many arguments in front of an array.
fn named(name: &str, in_front: usize) -> Option<&'static FunctionRow> {
    let mut rows = spread::ROWS.into_iter().chain(&SPREAD);
    rows.find(|row| row.name == name && row.arguments.len() == in_front)
}

/// The function of this name for arguments of these types, of which the last is an array in the place of several.
pub fn resolve(name: &str, arguments: &[DataType]) -> Option<Signature> {
    let (array, in_front) = arguments.split_last()?;
    let row = named(name, in_front.len())?;
    let mut pairs = in_front.iter().zip(row.arguments);
    let fits = pairs.all(|(from, to)| can_cast(*from, *to, CastContext::Implicit));
    fits.then(|| Signature {
        function: Function::of_row(row),
        arguments: row.arguments.iter().copied().chain([*array]).collect(),
        result: row.result,
    })
}
