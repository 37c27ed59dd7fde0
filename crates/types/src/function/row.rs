//! The row of a function: the facts that `pg_proc` has, and the implementation.

use std::fmt;

use crate::context::SessionFacts;
use crate::error::Result;
use crate::value::{DataType, Value};

/// The promise of a function about its value for the same arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Volatility {
    /// Always the same.
    Immutable,
    /// The same within a statement.
    Stable,
    /// Perhaps another one each time.
    Volatile,
}

/// The code of a function.
#[derive(Clone, Copy)]
pub enum Implementation {
    /// Of its arguments alone.
    Pure(fn(&[Value]) -> Result<Value>),
    /// Of its two arguments alone, read where they are: the first may be long, and a small part of it is the answer.
    OfTwo(fn(&Value, &Value) -> Result<Value>),
    /// Of its arguments and the session.
    Session(fn(&[Value], &dyn SessionFacts) -> Result<Value>),
    /// Of arguments of the one type that the call is about ([`Function::of`](super::Function::of)).
    Typed(fn(&[Value], DataType) -> Result<Value>),
    /// `coalesce`, which evaluates its own arguments.
    Coalesce,
}

/// A function, as one row of a table.
pub struct FunctionRow {
    /// PostgreSQL's number of it; 0 if it has none there.
    pub oid: u32,
    /// Its name.
    pub name: &'static str,
    /// The types of its arguments.
    pub arguments: &'static [DataType],
    /// True if any number of values of any type may follow, one at least.
    pub variadic: bool,
    /// True if its last argument is an array whose elements are those values: VARIADIC in a call.
    pub spread: bool,
    /// The type of its result.
    pub result: DataType,
    /// The promise about its value.
    pub volatility: Volatility,
    /// True if it gives NULL for NULL without being called.
    pub strict: bool,
    /// The names of its arguments, if it may be called by them and without some; then the others are zero.
    pub parameters: &'static [&'static str],
    /// The operator that it is written as, if there is one.
    pub operator: Option<&'static str>,
    /// Its code.
    pub implementation: Implementation,
}

/// A row of an immutable, strict function.
pub(super) const fn row(
    oid: u32,
    name: &'static str,
    arguments: &'static [DataType],
    result: DataType,
    implementation: Implementation,
) -> FunctionRow {
    FunctionRow {
        oid,
        name,
        arguments,
        variadic: false,
        spread: false,
        result,
        volatility: Volatility::Immutable,
        strict: true,
        parameters: &[],
        operator: None,
        implementation,
    }
}

impl FunctionRow {
    /// The same, stable.
    pub(super) const fn stable(mut self) -> FunctionRow {
        self.volatility = Volatility::Stable;
        self
    }

    /// The same, volatile.
    pub(super) const fn volatile(mut self) -> FunctionRow {
        self.volatility = Volatility::Volatile;
        self
    }

    /// The same, called with NULLs also.
    pub(super) const fn called_on_null(mut self) -> FunctionRow {
        self.strict = false;
        self
    }

    /// The same, written as an operator too.
    pub(super) const fn operator(mut self, symbol: &'static str) -> FunctionRow {
        self.operator = Some(symbol);
        self
    }

    /// The same, with names of its arguments, each of which may be missing.
    pub(super) const fn with_defaults(mut self, parameters: &'static [&'static str]) -> FunctionRow {
        self.parameters = parameters;
        self
    }

    /// The same, with any values behind its arguments.
    pub(super) const fn variadic(mut self) -> FunctionRow {
        self.variadic = true;
        self
    }

    /// The same, with an array for the values behind its arguments.
    pub(super) const fn spread(mut self) -> FunctionRow {
        self.spread = true;
        self
    }
}

impl fmt::Debug for FunctionRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.name, self.arguments)
    }
}
