//! The text of a path.
//!
//! An operand is in parentheses if its operator binds no tighter than the one around it, and an operation that an accessor
//! is behind always.

use std::fmt::Write as _;

use super::tree::{Node, NodeId, Path};
use crate::stack;
use crate::value::json::push_string;

/// The strength with which the operator of a node binds.
fn tightness(node: &Node) -> u32 {
    match node {
        Node::Or(..) => 0,
        Node::And(..) => 1,
        Node::Compare(..) | Node::StartsWith(..) | Node::Like(..) => 2,
        Node::Arithmetic(operation, ..) => match operation.symbol() {
            "+" | "-" => 3,
            _ => 4,
        },
        Node::Sign { .. } => 5,
        _ => TIGHTEST,
    }
}

const TIGHTEST: u32 = 6;

/// The parentheses that a node has if it may have some.
#[derive(Clone, Copy, PartialEq)]
enum Parentheses {
    /// The node around it has its own.
    None,
    /// It is an operand.
    Operand { of: u32 },
    /// It is the path.
    Always,
}

impl Path {
    /// Its text, which reads as the same path.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        if self.is_strict {
            out.push_str("strict ");
        }
        self.write(self.first, Parentheses::Always, &mut out);
        out
    }

    /// Appends a node and the accessors behind it.
    fn write(&self, first: NodeId, parentheses: Parentheses, out: &mut String) {
        stack::checkpoint(|| {
            self.write_node(first, parentheses, out);
            let mut next = self.next(first);
            while let Some(id) = next {
                self.write_node(id, Parentheses::Always, out);
                next = self.next(id);
            }
        });
    }

    fn write_node(&self, id: NodeId, parentheses: Parentheses, out: &mut String) {
        let node = self.node(id);
        let tightness = tightness(node);
        let has_accessor = self.next(id).is_some();
        let is_operation = tightness < TIGHTEST;
        let needs_parentheses = match node {
            Node::Number(_) | Node::Not(_) | Node::IsUnknown(_) | Node::Exists(_) => has_accessor,
            _ if !is_operation => false,
            _ => {
                has_accessor
                    || match parentheses {
                        Parentheses::None => false,
                        Parentheses::Operand { of } => tightness <= of,
                        Parentheses::Always => true,
                    }
            }
        };
        if needs_parentheses {
            out.push('(');
        }
        let operand = |id, out: &mut String| self.write(id, Parentheses::Operand { of: tightness }, out);
        match node {
            Node::Compare(comparison, left, right) => {
                operand(*left, out);
                let _ = write!(out, " {} ", comparison.symbol());
                operand(*right, out);
            }
            Node::Arithmetic(operation, left, right) => {
                operand(*left, out);
                let _ = write!(out, " {} ", operation.symbol());
                operand(*right, out);
            }
            Node::And(left, right) | Node::Or(left, right) | Node::StartsWith(left, right) => {
                operand(*left, out);
                out.push_str(match node {
                    Node::And(..) => " && ",
                    Node::Or(..) => " || ",
                    _ => " starts with ",
                });
                operand(*right, out);
            }
            Node::Like(text, like) => {
                operand(*text, out);
                out.push_str(" like_regex ");
                push_string(&like.pattern, out);
                if !like.flags.is_empty() {
                    out.push_str(" flag ");
                    push_string(&like.flags, out);
                }
            }
            Node::Sign {
                negated,
                operand: signed,
            } => {
                out.push(if *negated { '-' } else { '+' });
                operand(*signed, out);
            }
            Node::Not(inner) => self.write_inside("!(", *inner, ")", out),
            Node::IsUnknown(inner) => self.write_inside("(", *inner, ") is unknown", out),
            Node::Exists(inner) => self.write_inside("exists (", *inner, ")", out),
            Node::Filter(inner) => self.write_inside("?(", *inner, ")", out),
            _ => self.write_plain(node, out),
        }
        if needs_parentheses {
            out.push(')');
        }
    }

    fn write_inside(&self, before: &str, inner: NodeId, behind: &str, out: &mut String) {
        out.push_str(before);
        self.write(inner, Parentheses::None, out);
        out.push_str(behind);
    }

    /// Appends a node that is no operation.
    fn write_plain(&self, node: &Node, out: &mut String) {
        match node {
            Node::Bool(true) => out.push_str("true"),
            Node::Bool(false) => out.push_str("false"),
            Node::Number(number) => {
                let _ = write!(out, "{number}");
            }
            Node::Text(text) => push_string(text, out),
            Node::Variable(name) => {
                out.push('$');
                push_string(name, out);
            }
            Node::Root => out.push('$'),
            Node::Current => out.push('@'),
            Node::Last => out.push_str("last"),
            Node::Member(name) => {
                out.push('.');
                push_string(name, out);
            }
            Node::AnyMember => out.push_str(".*"),
            Node::AnyElement => out.push_str("[*]"),
            Node::Elements(subscripts) => {
                for (at, subscript) in subscripts.iter().enumerate() {
                    out.push(if at == 0 { '[' } else { ',' });
                    self.write(subscript.from, Parentheses::None, out);
                    if let Some(to) = subscript.to {
                        self.write_inside(" to ", to, "", out);
                    }
                }
                out.push(']');
            }
            Node::AnyLevel { first, last } => write_levels(*first, *last, out),
            Node::Method(method) => {
                let _ = write!(out, ".{}()", method.name());
            }
            Node::Datetime(template) => {
                out.push_str(".datetime(");
                if let Some(template) = template {
                    push_string(template, out);
                }
                out.push(')');
            }
            _ => out.push_str("null"),
        }
    }
}

fn write_levels(first: u32, last: u32, out: &mut String) {
    let level = |level: u32| match level {
        u32::MAX => "last".to_owned(),
        level => level.to_string(),
    };
    out.push_str(".**");
    let _ = match (first, last) {
        (0, u32::MAX) => Ok(()),
        (first, last) if first == last => write!(out, "{{{}}}", level(first)),
        (first, last) => write!(out, "{{{} to {}}}", level(first), level(last)),
    };
}
