//! Faults: they end an evaluation.
//!
//! Most faults happen inside of predicates, by the thousand, and are forgotten there. So a fault is a few bytes; its
//! message is written when it is told.

use crate::error::{EngineError, SqlState};
use crate::value::json::{Node, NodeId, Path};

/// A fault ends an evaluation, or makes a predicate unknown.
#[derive(Debug)]
pub(super) enum Fault {
    /// It is told in any case: no part of the path's rules.
    Hard(Box<EngineError>),
    /// An item does not fit a node.
    Step(Problem, NodeId),
    /// An item's value does not fit: a number overflows.
    Value(Box<EngineError>),
}

/// The outcome of a step: true if it found an item.
pub(super) type Outcome = Result<bool, Fault>;

/// The reason that an item does not fit a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Problem {
    NoKey,
    NotAnObject,
    NotAnArray,
    OutOfBounds,
    OutOfIntegerRange,
    NoSingleSubscript,
    LeftNotANumber,
    RightNotANumber,
    OperandNotANumber,
    NotANumber,
    NotAString,
    NotAStringOrNumber,
    NumberNotDouble,
    StringNotDouble,
}

impl From<EngineError> for Fault {
    fn from(error: EngineError) -> Fault {
        Fault::Hard(Box::new(error))
    }
}

impl Fault {
    /// True if a predicate, or a silent call, does not tell it.
    pub(super) fn is_silent(&self) -> bool {
        !matches!(self, Fault::Hard(_))
    }

    /// The error of it.
    #[cold]
    pub(super) fn into_error(self, path: &Path) -> EngineError {
        let (problem, node) = match self {
            Fault::Hard(error) | Fault::Value(error) => return *error,
            Fault::Step(problem, id) => (problem, path.node(id)),
        };
        let (code, message) = problem.told(node);
        EngineError::new(SqlState::from_code(code), message)
    }
}

impl Problem {
    /// Its SQLSTATE and message.
    fn told(self, node: &Node) -> (&'static str, String) {
        let method = || match node {
            Node::Method(method) => method.name(),
            _ => "datetime",
        };
        let of_method = |rest: &str| format!("jsonpath item method .{}() {rest}", method());
        let can_only = |what: &str| of_method(&format!("can only be applied to {what}"));
        let operator = match node {
            Node::Arithmetic(operation, ..) => operation.symbol(),
            Node::Sign { negated: false, .. } => "+",
            _ => "-",
        };
        match (self, node) {
            (Problem::NoKey, Node::Member(name)) => {
                ("2203A", format!("JSON object does not contain key \"{name}\""))
            }
            (Problem::NotAnObject, Node::AnyMember) => (
                "2203C",
                "jsonpath wildcard member accessor can only be applied to an object".into(),
            ),
            (Problem::NotAnObject, Node::Method(_)) => ("2203C", can_only("an object")),
            (Problem::NoKey | Problem::NotAnObject, _) => (
                "2203A",
                "jsonpath member accessor can only be applied to an object".into(),
            ),
            (Problem::NotAnArray, Node::Method(_)) => ("22039", can_only("an array")),
            (Problem::NotAnArray, Node::AnyElement) => (
                "22039",
                "jsonpath wildcard array accessor can only be applied to an array".into(),
            ),
            (Problem::NotAnArray, _) => (
                "22039",
                "jsonpath array accessor can only be applied to an array".into(),
            ),
            (Problem::OutOfBounds, _) => ("22033", "jsonpath array subscript is out of bounds".into()),
            (Problem::OutOfIntegerRange, _) => {
                ("22033", "jsonpath array subscript is out of integer range".into())
            }
            (Problem::NoSingleSubscript, _) => (
                "22033",
                "jsonpath array subscript is not a single numeric value".into(),
            ),
            (Problem::LeftNotANumber, _) => (
                "22038",
                format!("left operand of jsonpath operator {operator} is not a single numeric value"),
            ),
            (Problem::RightNotANumber, _) => (
                "22038",
                format!("right operand of jsonpath operator {operator} is not a single numeric value"),
            ),
            (Problem::OperandNotANumber, _) => (
                "2203B",
                format!("operand of unary jsonpath operator {operator} is not a numeric value"),
            ),
            (Problem::NotANumber, _) => ("22036", can_only("a numeric value")),
            (Problem::NotAString, _) => ("22031", can_only("a string")),
            (Problem::NotAStringOrNumber, _) => ("22036", can_only("a string or numeric value")),
            (Problem::NumberNotDouble, _) => (
                "22036",
                format!(
                    "numeric argument of {}",
                    of_method("is out of range for type double precision")
                ),
            ),
            (Problem::StringNotDouble, _) => (
                "22036",
                format!(
                    "string argument of {}",
                    of_method("is not a valid representation of a double precision number")
                ),
            ),
        }
    }
}
