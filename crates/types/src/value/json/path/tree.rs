//! A path that has been read: nodes in one list, which name one another by their places in it.
//!
//! So a path is dropped without recursion, however deep it is.

use std::rc::Rc;

use crate::error::Result;
use crate::regular_expression::{Expression, Options, check, compiled};
use crate::value::Numeric;

/// The place of a node in its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NodeId(pub(super) u32);

/// A path that has been read.
#[derive(Debug)]
pub(crate) struct Path {
    pub(super) is_strict: bool,
    pub(super) nodes: Vec<Link>,
    pub(super) first: NodeId,
}

/// A node, and the accessor behind it.
#[derive(Debug)]
pub(super) struct Link {
    pub node: Node,
    pub next: Option<NodeId>,
}

/// A part of a path.
#[derive(Debug)]
pub(crate) enum Node {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number
    Number(Numeric),
    /// A string
    Text(Box<str>),
    /// `$name`
    Variable(Box<str>),
    /// `$`
    Root,
    /// `@`
    Current,
    /// `last`
    Last,
    /// `.name`
    Member(Box<str>),
    /// `.*`
    AnyMember,
    /// `[*]`
    AnyElement,
    /// `[1, 3 to last]`
    Elements(Box<[Subscript]>),
    /// `.**{first to last}`; `u32::MAX` is `last`
    AnyLevel {
        /// The level of the first items, 0 for the item itself
        first: u32,
        /// The level of the last ones
        last: u32,
    },
    /// `?(predicate)`
    Filter(NodeId),
    /// `.name()`
    Method(Method),
    /// `.datetime()`, perhaps with a template
    Datetime(Option<Box<str>>),
    /// `left == right` and its kin
    Compare(Comparison, NodeId, NodeId),
    /// `left && right`
    And(NodeId, NodeId),
    /// `left || right`
    Or(NodeId, NodeId),
    /// `!(predicate)`
    Not(NodeId),
    /// `(predicate) is unknown`
    IsUnknown(NodeId),
    /// `exists (expression)`
    Exists(NodeId),
    /// `whole starts with initial`
    StartsWith(NodeId, NodeId),
    /// `text like_regex "pattern" flag "flags"`
    Like(NodeId, Like),
    /// `left + right` and its kin
    Arithmetic(Arithmetic, NodeId, NodeId),
    /// `-operand`; `+operand` if not negated
    Sign {
        /// True for `-`
        negated: bool,
        /// The expression behind the sign
        operand: NodeId,
    },
}

/// A subscript: one place, or those from one to another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subscript {
    /// The place, or the first one
    pub from: NodeId,
    /// The last one of a range
    pub to: Option<NodeId>,
}

/// A method without arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Abs,
    Ceiling,
    Double,
    Floor,
    KeyValue,
    Size,
    Type,
}

impl Method {
    /// All of them.
    pub(super) const ALL: [Method; 7] = [
        Method::Abs,
        Method::Ceiling,
        Method::Double,
        Method::Floor,
        Method::KeyValue,
        Method::Size,
        Method::Type,
    ];

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Method::Abs => "abs",
            Method::Ceiling => "ceiling",
            Method::Double => "double",
            Method::Floor => "floor",
            Method::KeyValue => "keyvalue",
            Method::Size => "size",
            Method::Type => "type",
        }
    }
}

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// Its symbol.
    pub(super) fn symbol(self) -> &'static str {
        match self {
            Comparison::Equal => "==",
            Comparison::NotEqual => "!=",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        }
    }
}

/// An operation on two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Arithmetic {
    /// Its symbol.
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Arithmetic::Add => "+",
            Arithmetic::Subtract => "-",
            Arithmetic::Multiply => "*",
            Arithmetic::Divide => "/",
            Arithmetic::Remainder => "%",
        }
    }
}

/// A regular expression and its flags.
#[derive(Debug)]
pub(crate) struct Like {
    pub(super) pattern: Box<str>,
    /// Its letters, each once, in the order of `LETTERS`.
    pub(super) flags: String,
    options: Options,
}

impl Like {
    /// The letters of flags, as they are written.
    pub(super) const LETTERS: &str = "ismxq";

    /// A pattern with such flags; an error if it is no regular expression.
    pub(super) fn new(pattern: String, flags: String) -> Result<Like> {
        let has = |letter| flags.contains(letter);
        let mut letters = String::new();
        if has('i') {
            letters.push('i');
        }
        letters.push_str(match (has('s'), has('m')) {
            _ if has('q') => "q",
            (false, false) => "p",
            (false, true) => "n",
            (true, false) => "s",
            (true, true) => "w",
        });
        let like = Like {
            pattern: pattern.into(),
            flags,
            options: Options::default().with(&letters)?,
        };
        // The syntax alone: how large the automaton is, is told when the path is evaluated, where a cancel is heard.
        check(&like.pattern, like.options)?;
        Ok(like)
    }

    /// The compiled expression.
    pub(crate) fn expression(&self) -> Result<Rc<Expression>> {
        compiled(&self.pattern, self.options)
    }
}

impl Path {
    /// True for `strict`: what does not fit the structure is an error, and nothing is unwrapped.
    pub(crate) fn is_strict(&self) -> bool {
        self.is_strict
    }

    /// The node that the evaluation begins with.
    pub(crate) fn first(&self) -> NodeId {
        self.first
    }

    /// A node (P1: it is of this path).
    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize].node
    }

    /// The accessor behind a node.
    pub(crate) fn next(&self, id: NodeId) -> Option<NodeId> {
        self.nodes[id.0 as usize].next
    }
}

impl Node {
    /// Calls `each` with the nodes that it names, in order, and whether they are subscripts.
    pub(super) fn each_operand(&self, mut each: impl FnMut(NodeId, bool) -> Result<()>) -> Result<()> {
        match self {
            Node::Elements(subscripts) => subscripts.iter().try_for_each(|subscript| {
                each(subscript.from, true)?;
                subscript.to.map_or(Ok(()), |to| each(to, true))
            }),
            Node::Compare(_, left, right)
            | Node::And(left, right)
            | Node::Or(left, right)
            | Node::StartsWith(left, right)
            | Node::Arithmetic(_, left, right) => {
                each(*left, false)?;
                each(*right, false)
            }
            Node::Filter(operand)
            | Node::Not(operand)
            | Node::IsUnknown(operand)
            | Node::Exists(operand)
            | Node::Like(operand, _)
            | Node::Sign { operand, .. } => each(*operand, false),
            _ => Ok(()),
        }
    }
}
