//! JSON: the types `json` and `jsonb`.
//!
//! | type | a value |
//! |---|---|
//! | `json` | the text as it was written, once it has been found to be JSON |
//! | `jsonb` | the value: keys in order and once each, numbers as exact decimals, in bytes that are read in place |
//!
//! | module | job |
//! |---|---|
//! | `read` | the text form, read: as a tree, as a check, or one level of it |
//! | `bytes` | the bytes of a `jsonb`, made of a tree and read in place |
//! | `write` | the text form, written |
//! | `path` | paths into a value: the type `jsonpath` |
//! | `order` | order and equality of `jsonb`, and its bytes in an index key |

mod bytes;
mod order;
mod path;
mod read;
mod write;

pub use bytes::{Jsonb, JsonbRef, Kind};
pub(crate) use path::{Arithmetic, Comparison, Method, Node, NodeId, Path, Subscript};
pub(crate) use read::{Level, check, level, parse};
pub(crate) use write::{push_string, write_pretty};

use crate::error::{EngineError, SqlState};
use crate::value::Numeric;

/// A JSON value as a tree: what is being made or changed.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number
    Number(Numeric),
    /// A string
    String(Box<str>),
    /// An array
    Array(Vec<Json>),
    /// An object: its members as they were given, a key perhaps several times
    Object(Vec<(Box<str>, Json)>),
}

impl Json {
    /// True for anything but arrays and objects.
    pub fn is_scalar(&self) -> bool {
        !matches!(self, Json::Array(_) | Json::Object(_))
    }
}

/// The most arrays and objects that may be inside one another.
pub(crate) const DEPTH_MAX: u32 = 6_000;

/// 54001
#[cold]
pub(crate) fn too_deep() -> EngineError {
    EngineError::new(SqlState::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded").with_hint(format!(
        "JSON may have {DEPTH_MAX} arrays and objects inside one another."
    ))
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::{texts, values};
