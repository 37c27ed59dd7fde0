//! The answer to a call's name and argument types.

use super::Function;
use crate::value::DataType;

/// A function found by name: what it is, what its arguments become, what it gives.
#[derive(Debug)]
pub struct Signature {
    /// The function.
    pub function: Function,
    /// The types its arguments are converted to.
    pub arguments: Vec<DataType>,
    /// Its result's type.
    pub result: DataType,
}
