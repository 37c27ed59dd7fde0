//! The text form of JSON, written.
//!
//! A `jsonb` is written in one way: a blank behind each comma and colon, numbers as exact decimals. `jsonb_pretty` writes
//! each element and member in a line of its own, four blanks deeper than what holds it.

use std::fmt;
#[cfg(test)]
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
    let _ = write_string(text, out);
}

/// Writes a string in quotes: what needs no escape as it lies there, up to the next character that does.
fn write_string(text: &str, out: &mut impl fmt::Write) -> fmt::Result {
    out.write_char('"')?;
    let mut rest = text;
    while let Some(at) = rest
        .bytes()
        .position(|byte| matches!(byte, b'"' | b'\\' | 0..b' '))
    {
        out.write_str(&rest[..at])?;
        match rest.as_bytes()[at] {
            b'"' => out.write_str("\\\"")?,
            b'\\' => out.write_str("\\\\")?,
            8 => out.write_str("\\b")?,
            12 => out.write_str("\\f")?,
            b'\n' => out.write_str("\\n")?,
            b'\r' => out.write_str("\\r")?,
            b'\t' => out.write_str("\\t")?,
            control => write!(out, "\\u{control:04x}")?,
        }
        rest = &rest[at + 1..];
    }
    out.write_str(rest)?;
    out.write_char('"')
}

impl JsonbRef<'_> {
    /// Appends its text form.
    pub fn write(self, out: &mut String) {
        let _ = self.write_to(out);
    }

    /// Writes its text form, in as many pieces as it takes; an error is the writer's.
    pub fn write_to(self, out: &mut impl fmt::Write) -> fmt::Result {
        self.write_at(None, out)
    }

    fn write_at(self, depth: Option<usize>, out: &mut impl fmt::Write) -> fmt::Result {
        match self.kind() {
            Kind::Null => out.write_str("null"),
            Kind::False => out.write_str("false"),
            Kind::True => out.write_str("true"),
            Kind::Number => match self.number() {
                Some(number) => write!(out, "{number}"),
                None => Ok(()),
            },
            Kind::String => write_string(self.text().unwrap_or_default(), out),
            Kind::Array => stack::checkpoint(|| {
                out.write_char('[')?;
                for (at, element) in self.elements().enumerate() {
                    separate(at, depth, out)?;
                    element.write_at(depth.map(|depth| depth + 1), out)?;
                }
                close(']', depth, out)
            }),
            Kind::Object => stack::checkpoint(|| {
                out.write_char('{')?;
                for (at, (key, value)) in self.members().enumerate() {
                    separate(at, depth, out)?;
                    write_string(key, out)?;
                    out.write_str(": ")?;
                    value.write_at(depth.map(|depth| depth + 1), out)?;
                }
                close('}', depth, out)
            }),
        }
    }
}

fn separate(at: usize, depth: Option<usize>, out: &mut impl fmt::Write) -> fmt::Result {
    if at > 0 {
        out.write_char(',')?;
    }
    match depth {
        Some(depth) => new_line(depth + 1, out),
        None if at > 0 => out.write_char(' '),
        None => Ok(()),
    }
}

fn close(bracket: char, depth: Option<usize>, out: &mut impl fmt::Write) -> fmt::Result {
    if let Some(depth) = depth {
        new_line(depth, out)?;
    }
    out.write_char(bracket)
}

fn new_line(depth: usize, out: &mut impl fmt::Write) -> fmt::Result {
    out.write_char('\n')?;
    (0..depth).try_for_each(|_| out.write_str("    "))
}

/// The text of `jsonb_pretty`; 54000 if it has too many blanks, before they are made.
pub(crate) fn write_pretty(value: JsonbRef<'_>, out: &mut String) -> Result<()> {
    check_length(blanks(value, 0))?;
    let _ = value.write_at(Some(0), out);
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
