//! The scalar functions we have, as rows of tables.
//!
//! A function is a [`FunctionRow`]: name, types, and the implementation. [`table`](rows) has all of them; [`resolve`]
//! finds the one that a call means. A new function is a row in the file of its subject, and a new file is a line in
//! `table.rs`. A function whose types are no fixed list (`coalesce`) finds itself: a line in `resolve.rs`.

mod acl;
mod advisory_lock;
mod argument_names;
pub mod array;
mod array_arguments;
mod array_assign;
mod array_text;
mod backend;
mod bits;
mod bytes;
mod catalog;
mod choice;
mod connection;
mod datetime;
mod description;
mod encoding;
mod enumeration;
mod float_states;
pub mod json;
mod mac;
mod math;
mod monitoring;
mod names;
mod network;
mod notification;
mod number;
mod number_format;
mod objects;
mod options;
mod privilege;
mod quote;
mod recovery;
mod regex;
pub mod registered;
mod resolve;
mod row;
mod sequence;
mod session;
mod signature;
pub mod styled;
mod system_column;
mod table;
mod text;
mod transaction;
mod trigonometry;
mod uuid;
mod variadic;

use std::borrow::Cow;

use crate::context::EvalContext;
use crate::error::{EngineError, Result, SqlState};
use crate::memory;
use crate::value::long::CONTENT_MAX;
use crate::value::text::to_text;
use crate::value::{DataType, Value};

pub use argument_names::argument_names;
pub use array_assign::{assignment as array_assignment, field_assignment};
pub use bytes::not_utf8;
pub use catalog::{DATABASE_OID, USER_OID, expression_shown};
pub use choice::between_symmetric;
pub use names::parts_of_name;
pub use options::columns as option_columns;
pub use quote::quote_identifier;
pub use resolve::{Overload, best_of};
pub use resolve::{Unresolved, resolve, resolve_operator};
pub use row::{FunctionRow, Implementation, Volatility};
pub use signature::Signature;
pub use system_column::system_column;
pub use table::parameters_of;
pub use table::rows;
pub use variadic::resolve as resolve_variadic;

/// The version we tell clients that ask.
pub const VERSION: &str = concat!(
    "PostgreSQL 15.0 (Clearway ",
    env!("CARGO_PKG_VERSION"),
    ") on x86_64-pc-linux-gnu, compiled by rustc, 64-bit"
);

/// A scalar function of a call.
#[derive(Debug, Clone, Copy)]
pub struct Function {
    row: &'static FunctionRow,
    /// The type that a function over values of one type is about; otherwise unknown.
    of: DataType,
}

impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        std::ptr::eq(self.row, other.row) && self.of == other.of
    }
}

impl Function {
    /// The function of a row.
    pub fn of_row(row: &'static FunctionRow) -> Function {
        Function {
            row,
            of: DataType::Unknown,
        }
    }

    /// The function of a row over values of one type.
    pub fn over(row: &'static FunctionRow, of: DataType) -> Function {
        Function { row, of }
    }

    /// Its row.
    pub fn row(self) -> &'static FunctionRow {
        self.row
    }

    /// The type that it is about, if it is one over values of one type.
    pub fn of(self) -> DataType {
        self.of
    }

    /// True if two calls in one statement may give different values.
    pub fn is_volatile(self) -> bool {
        self.row.volatility == Volatility::Volatile
    }

    /// True if its value depends on its arguments only.
    pub fn is_immutable(self) -> bool {
        self.row.volatility == Volatility::Immutable
    }

    /// True if it is `coalesce`, which evaluates its own arguments.
    pub fn is_coalesce(self) -> bool {
        matches!(self.row.implementation, Implementation::Coalesce)
    }

    /// The name by which PostgreSQL has it.
    pub const fn name(self) -> &'static str {
        self.row.name
    }

    /// Its value.
    pub fn call(self, arguments: &[Value], context: &EvalContext<'_>) -> Result<Value> {
        if self.row.strict && arguments.iter().any(Value::is_null) {
            return Ok(Value::Null);
        }
        match self.row.implementation {
            Implementation::Pure(call) => call(arguments),
            Implementation::OfTwo(call) => match arguments {
                [first, second] => call(first, second),
                _ => Err(EngineError::internal(
                    "a function of two arguments was called with others",
                )),
            },
            Implementation::Session(call) => call(arguments, context.session),
            Implementation::Typed(call) => call(arguments, self.of),
            Implementation::Coalesce => Err(EngineError::internal("coalesce evaluates its own arguments")),
        }
    }
}

/// The most bytes that a text may have.
const TEXT_BYTES_MAX: usize = CONTENT_MAX;

/// 54000 for a text that would be too long, before it is made, and 53200 if there is no memory for it.
pub fn check_length(bytes: usize) -> Result<()> {
    if bytes > TEXT_BYTES_MAX {
        return Err(EngineError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            "requested length too large: a text may have 1 GB",
        ));
    }
    // It is made, and then copied into the value.
    memory::require(2 * bytes)
}

/// The text of a value as a result has it; `None` for NULL.
fn output_text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Bool(true) => Some(Cow::Borrowed("t")),
        Value::Bool(false) => Some(Cow::Borrowed("f")),
        Value::Text(text) => Some(Cow::Borrowed(text)),
        other => to_text(other).map(Cow::Owned),
    }
}

/// A text of which one of about its length is made.
fn made_of(value: &Value) -> Result<&str> {
    let text = text_of(value)?;
    memory::require(2 * text.len())?;
    Ok(text)
}

fn text_of(value: &Value) -> Result<&str> {
    value
        .as_str()
        .ok_or_else(|| EngineError::internal(format!("{value:?} is used as text")))
}

fn int(value: &Value) -> Result<i32> {
    match value {
        Value::Int4(number) => Ok(*number),
        other => Err(EngineError::internal(format!("{other:?} is used as an integer"))),
    }
}

#[cold]
fn out_of_range(type_name: &str) -> EngineError {
    EngineError::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        format!("{type_name} out of range"),
    )
}
