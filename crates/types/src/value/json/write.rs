//! The text form of JSON, written.
//!
//! A `jsonb` is written in one way: a blank behind each comma and colon, numbers as exact decimals. `jsonb_pretty` writes
//! each element and member in a line of its own, four blanks deeper than what holds it.

use std::fmt::Write as _;

#[cfg(test)]
use super::Json;
use super::bytes::check_length;
use super::{JsonbRef, Kind};
use crate::error::Result;
use crate::stack;

/// Appends a string in quotes.
pub(crate) fn push_string(text: &str, out: &mut String) {
    out.reserve(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control @ '\0'..' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

impl JsonbRef<'_> {
    /// Appends its text form.
    pub fn write(self, out: &mut String) {
        self.write_at(None, out);
    }

    fn write_at(self, depth: Option<usize>, out: &mut String) {
        match self.kind() {
            Kind::Null => out.push_str("null"),
            Kind::False => out.push_str("false"),
            Kind::True => out.push_str("true"),
            Kind::Number => {
                if let Some(number) = self.number() {
                    let _ = write!(out, "{number}");
                }
            }
            Kind::String => push_string(self.text().unwrap_or_default(), out),
            Kind::Array => stack::checkpoint(|| {
                out.push('[');
                for (at, element) in self.elements().enumerate() {
                    separate(at, depth, out);
                    element.write_at(depth.map(|depth| depth + 1), out);
                }
                close(']', depth, out);
            }),
            Kind::Object => stack::checkpoint(|| {
                out.push('{');
                for (at, (key, value)) in self.members().enumerate() {
                    separate(at, depth, out);
                    push_string(key, out);
                    out.push_str(": ");
                    value.write_at(depth.map(|depth| depth + 1), out);
                }
                close('}', depth, out);
            }),
        }
    }
}

fn separate(at: usize, depth: Option<usize>, out: &mut String) {
    if at > 0 {
        out.push(',');
    }
    match depth {
        Some(depth) => new_line(depth + 1, out),
        None if at > 0 => out.push(' '),
        None => {}
    }
}

fn close(bracket: char, depth: Option<usize>, out: &mut String) {
    if let Some(depth) = depth {
        new_line(depth, out);
    }
    out.push(bracket);
}

fn new_line(depth: usize, out: &mut String) {
    out.push('\n');
    out.extend(std::iter::repeat_n("    ", depth));
}

/// The text of `jsonb_pretty`; 54000 if it has too many blanks, before they are made.
pub(crate) fn write_pretty(value: JsonbRef<'_>, out: &mut String) -> Result<()> {
    check_length(blanks(value, 0))?;
    value.write_at(Some(0), out);
    Ok(())
}

/// The blanks and ends of lines of a value at a depth.
pub(super) fn blanks(value: JsonbRef<'_>, depth: usize) -> usize {
    if value.is_scalar() {
        return 0;
    }
    let lines = value.count().saturating_mul(4 * (depth + 1) + 1);
    let end = 4 * depth + 1;
    let inner = stack::checkpoint(|| {
        let each = value.elements().map(|element| blanks(element, depth + 1));
        each.fold(0, usize::saturating_add)
    });
    inner.saturating_add(lines).saturating_add(end)
}

/// Appends the text form of a tree, without blanks, keys as often as they are there.
#[cfg(test)]
pub(super) fn write_tree(tree: &Json, out: &mut String) {
    match tree {
        Json::Null => out.push_str("null"),
        Json::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Json::Number(number) => {
            let _ = write!(out, "{number}");
        }
        Json::String(text) => push_string(text, out),
        Json::Array(elements) => stack::checkpoint(|| {
            out.push('[');
            for (at, element) in elements.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_tree(element, out);
            }
            out.push(']');
        }),
        Json::Object(members) => stack::checkpoint(|| {
            out.push('{');
            for (at, (key, value)) in members.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                push_string(key, out);
                out.push(':');
                write_tree(value, out);
            }
            out.push('}');
        }),
    }
}
