//! The types that operands are brought to, as PostgreSQL's operators take them.
//!
//! Its operators between numbers of two widths, and between dates and times, take both as they are, where ours bring them
//! to one type. A value of a domain is one of the type below to each operator. The text shows PostgreSQL's casts.

use super::node::Node;
use crate::common_type::common_type;
use crate::error::Result;
use crate::function::resolve_operator;
use crate::value::cast::apply_typmod;
use crate::value::datetime::{IntervalStyle, is_relative};
use crate::value::text::{decode_intervals, decode_text, to_text};
use crate::value::{Category, DataType};

/// A node with its type; a literal whose type is open is unknown.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Typed {
    pub(super) node: Node,
    pub(super) data_type: DataType,
    pub(super) typmod: i32,
}

impl Typed {
    pub(super) fn new(node: Node, data_type: DataType) -> Typed {
        Typed {
            node,
            data_type,
            typmod: -1,
        }
    }
}

/// The node, as a value of another type that it becomes by itself.
pub(super) fn coerced(typed: Typed, to: DataType) -> Result<Node> {
    converted(typed, to, -1, true)
}

/// The node cast to a type.
pub(super) fn converted(typed: Typed, to: DataType, typmod: i32, implicit: bool) -> Result<Node> {
    match typed.node {
        Node::Constant { text, .. } if typed.data_type == DataType::Unknown => {
            let text = text.map(|text| canonical(text, to, typmod));
            Ok(Node::Constant {
                text,
                data_type: to,
                typmod,
            })
        }
        node if typed.data_type == to && (typmod < 0 || typmod == typed.typmod) => Ok(node),
        node => Ok(Node::Cast {
            argument: Box::new(node),
            data_type: to,
            typmod,
            implicit,
            by_function: is_by_function(typed.data_type.base(), to.base(), typmod),
        }),
    }
}

/// True if a cast calls a function of its own, rather than taking the bytes as they are or the text.
fn is_by_function(from: DataType, to: DataType, typmod: i32) -> bool {
    let is_number = |data_type: DataType| data_type.is_oid() || data_type == DataType::Int4;
    match (from.is_string(), to.is_string()) {
        _ if typmod >= 0 => true,
        _ if from == to => false,
        // A char(n) loses its padding.
        (true, true) => from == DataType::Char,
        (false, false) => !(is_number(from) && is_number(to)),
        _ => false,
    }
}

/// A literal's text as its type writes it; as it is if that depends on when it is read.
fn canonical(text: String, to: DataType, typmod: i32) -> String {
    // `now` and its kin are the words of the moment in which they are read.
    if to.is_string() || to.holds_time() && is_relative(&text) {
        return text;
    }
    let value = match to {
        DataType::Interval => decode_intervals(&text, to, typmod, IntervalStyle::default()),
        _ => decode_text(&text, to, 0),
    };
    let value = value.and_then(|value| apply_typmod(value, to, typmod, true)).ok();
    value.and_then(|value| to_text(&value)).unwrap_or(text)
}

/// The type that a string is compared as.
fn string(data_type: DataType) -> DataType {
    match data_type {
        DataType::Varchar | DataType::Unknown => DataType::Text,
        other => other,
    }
}

/// True if the type's operators are functions.
fn of_times(data_type: DataType) -> bool {
    matches!(data_type.category(), Category::DateTime | Category::Timespan)
}

fn is_comparison(symbol: &str) -> bool {
    matches!(symbol, "=" | "<>" | "<" | "<=" | ">" | ">=")
}

/// The types of the two sides of an operator.
pub(super) fn operand_types(symbol: &str, left: DataType, right: DataType) -> (DataType, DataType) {
    use DataType::{Char, Date, Float4, Float8, Name, Numeric, Oid, Text, Timestamp, TimestampTz, Unknown};
    let (left, right) = (left.base(), right.base());
    let (l, r) = match (left, right) {
        (Unknown, Unknown) => return (Text, Text),
        (Unknown, other) => (other, other),
        (other, Unknown) => (other, other),
        both => both,
    };
    let temporal = |side: DataType| matches!(side, Date | Timestamp | TimestampTz);
    match symbol {
        "||" if left == DataType::Bytea && matches!(right, DataType::Bytea | Unknown)
            || right == DataType::Bytea && left == Unknown =>
        {
            return (DataType::Bytea, DataType::Bytea);
        }
        "||" if !left.is_array() && !right.is_array() => {
            let side = |side: DataType| {
                if side.is_string() || side == Unknown {
                    Text
                } else {
                    side
                }
            };
            return (side(left), side(right));
        }
        "~~" | "!~~" | "~~*" | "!~~*" | "~" | "!~" | "~*" | "!~*" => {
            let left = if matches!(l, Char | Name) { l } else { Text };
            return (left, Text);
        }
        "^" => {
            let numeric =
                [left, right].contains(&Numeric) && ![left, right].iter().any(|side| side.is_float());
            let to = if numeric { Numeric } else { Float8 };
            return (to, to);
        }
        "-" if left == Date && right == Unknown => return (Date, Date),
        "=" | "<>" | "<" | "<=" | ">" | ">=" | "+" | "-" | "*" | "/" | "%" => {}
        other => {
            return match resolve_operator(other, &[left, right]) {
                Ok(signature) if signature.arguments.len() == 2 => {
                    (signature.arguments[0], signature.arguments[1])
                }
                _ => (l, r),
            };
        }
    }
    if [left, right].iter().any(|side| of_times(*side))
        && !is_comparison(symbol)
        && let Ok(found) = resolve_operator(symbol, &[left, right])
    {
        return (found.arguments[0], found.arguments[1]);
    }
    if l.is_integer() && r.is_integer() || l.is_float() && r.is_float() || temporal(l) && temporal(r) {
        return (l, r);
    }
    if temporal(l) && r.is_integer() || temporal(r) && l.is_integer() {
        return (l, r);
    }
    if l.is_string() && r.is_string() {
        return match (string(l), string(r)) {
            (Char, Char) => (Char, Char),
            (Char, _) if right == DataType::Varchar => (Char, Char),
            (_, Char) if left == DataType::Varchar => (Char, Char),
            (Name, Text) => (Name, Text),
            (Text, Name) => (Text, Name),
            (Name, Name) => (Name, Name),
            _ => (Text, Text),
        };
    }
    if l.category() == Category::Numeric && r.category() == Category::Numeric && l != r {
        if l == Oid || r == Oid {
            return (Oid, Oid);
        }
        if !l.is_float() && !r.is_float() {
            return (Numeric, Numeric);
        }
        // A real stays one beside a double.
        let side = |side: DataType| if side == Float4 { Float4 } else { Float8 };
        return (side(l), side(r));
    }
    match common_type(&[l, r]) {
        Some(common) if l != r => (common, common),
        _ => (l, r),
    }
}

/// Two operands as an operator takes them.
pub(super) fn operands(symbol: &str, left: Typed, right: Typed) -> Result<(Node, Node)> {
    let (to_left, to_right) = operand_types(symbol, left.data_type, right.data_type);
    Ok((coerced(left, to_left)?, coerced(right, to_right)?))
}

/// An operator between two operands.
pub(super) fn operator(symbol: &str, left: Typed, right: Typed) -> Result<Node> {
    let (left, right) = operands(symbol, left, right)?;
    Ok(Node::Operator {
        symbol: symbol.to_owned(),
        left: Some(Box::new(left)),
        right: Box::new(right),
    })
}
