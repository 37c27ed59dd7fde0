//! The row of an aggregate: its types, and how a state begins and ends.

use std::fmt;

use super::AggregateCall;
use super::state::{Accumulator, State};
use crate::error::{EngineError, Result};
use crate::function::Overload;
use crate::value::{DataType, Value};

/// Makes the state of a call whose rows come in order: the call, their number, the values of its direct arguments.
pub(super) type StartInOrder = fn(&AggregateCall, i64, Vec<Value>) -> Result<State>;

/// The argument and result types of an aggregate over values of any type, for a call with arguments of these; `None` if
/// it is no aggregate over these.
pub(super) type Types = fn(&[DataType]) -> Option<(Vec<DataType>, DataType)>;

/// A kind of aggregate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Of its arguments alone.
    Plain,
    /// `f(direct arguments) WITHIN GROUP (ORDER BY arguments)`
    OrderedSet,
    /// The same, with a direct argument for each key of the order.
    Hypothetical,
}

/// An aggregate, as one row of a table.
pub struct AggregateRow {
    /// PostgreSQL's number of it.
    pub oid: u32,
    /// Its name.
    pub name: &'static str,
    /// The types of its arguments, direct ones first; not of one over values of any type.
    pub arguments: &'static [DataType],
    /// The type of its result; not of one over values of any type.
    pub result: DataType,
    /// The types of one over values of any type.
    pub(super) types: Option<Types>,
    /// Its kind.
    pub kind: Kind,
    /// True if it passes by rows with a NULL among the arguments.
    pub strict: bool,
    /// True if it has a result without rows; otherwise that is NULL.
    pub counts: bool,
    /// True if its result depends on the order of its rows.
    pub order_matters: bool,
    /// Makes the state of a group.
    pub(super) start: fn(&AggregateCall) -> State,
    /// Makes it for rows that come in order, if that is not the same.
    pub(super) start_in_order: Option<StartInOrder>,
    /// Makes the result.
    pub(super) finish: fn(&AggregateCall, Accumulator) -> Result<Value>,
}

/// A row of a strict aggregate that takes its rows in any order.
pub(super) const fn row(
    oid: u32,
    name: &'static str,
    arguments: &'static [DataType],
    result: DataType,
    start: fn(&AggregateCall) -> State,
    finish: fn(&AggregateCall, Accumulator) -> Result<Value>,
) -> AggregateRow {
    AggregateRow {
        oid,
        name,
        arguments,
        result,
        types: None,
        kind: Kind::Plain,
        strict: true,
        counts: false,
        order_matters: false,
        start,
        start_in_order: None,
        finish,
    }
}

impl AggregateRow {
    /// The same, over values of any type.
    pub(super) const fn over_any(mut self, types: Types) -> AggregateRow {
        self.types = Some(types);
        self
    }

    /// The same, with a result without rows.
    pub(super) const fn counting(mut self) -> AggregateRow {
        self.counts = true;
        self
    }

    /// The same, with a result that depends on the order of rows.
    pub(super) const fn in_order(mut self) -> AggregateRow {
        self.order_matters = true;
        self
    }

    /// The same, with rows that have a NULL.
    pub(super) const fn with_nulls(mut self) -> AggregateRow {
        self.strict = false;
        self
    }

    /// The same, of another kind, which always takes its rows in an order.
    pub(super) const fn of_kind(mut self, kind: Kind, start: StartInOrder) -> AggregateRow {
        self.kind = kind;
        self.start_in_order = Some(start);
        self
    }

    /// True if it takes arguments of exactly these types and gives this one.
    pub fn has_types(&self, arguments: &[DataType], result: DataType) -> bool {
        match self.types {
            None => self.arguments == arguments && self.result == result,
            Some(types) => types(arguments).is_some_and(|(found, of)| found == arguments && of == result),
        }
    }
}

impl Overload for AggregateRow {
    fn arguments(&self) -> &'static [DataType] {
        self.arguments
    }

    fn is_variadic(&self) -> bool {
        false
    }
}

impl fmt::Debug for AggregateRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.name, self.arguments)
    }
}

/// An aggregate of a call.
#[derive(Clone, Copy)]
pub struct Aggregate(pub(super) &'static AggregateRow);

impl Aggregate {
    /// Its row.
    #[inline]
    pub fn row(self) -> &'static AggregateRow {
        self.0
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.0.name
    }
}

impl PartialEq for Aggregate {
    fn eq(&self, other: &Aggregate) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl fmt::Debug for Aggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

#[cold]
pub(super) fn other_state(call: &AggregateCall) -> EngineError {
    EngineError::internal(format!("{:?} has another's state", call.function))
}
