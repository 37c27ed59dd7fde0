//! Paths of SQL/JSON: the type `jsonpath`.
//!
//! The language is that of PostgreSQL 15: `lax` and `strict`, accessors, filters, arithmetic, the methods of that version.
//! A value of the type is the text that [`Path::text`] writes. It reads as the same path again:
//!
//! ```text
//! $.a[*] ? (@.b=="x"&&@.c>1)      is kept as      $."a"[*]?(@."b" == "x" && @."c" > 1)
//! ```
//!
//! | module | job |
//! |---|---|
//! | `tree` | a path that has been read |
//! | `lex`, `escape` | text to tokens; the escapes in names and strings |
//! | `parse` | tokens to a path |
//! | `check` | where `@` and `last` may stand, and how deep a path may be |
//! | `write` | the text of a path |
//!
//! Invariants, which the evaluation (`function/json/path`) relies on:
//!
//! - P1: a node names only nodes of its path, and no node is reached in two ways: a path is a tree.
//! - P2: a path has at most [`LEVELS_MAX`] levels, where each accessor is a level below the one before.
//! - P3: `@` stands inside a filter, `last` inside a subscript.
//! - P4: patterns of `like_regex` have the syntax of regular expressions.
//!
//! The text differs from PostgreSQL's where that one would not be read as the same path: an operation with an accessor
//! behind it always has its parentheses, `($ + 1).type() == 2`.

mod check;
mod escape;
mod lex;
mod parse;
mod tree;
mod write;

pub(crate) use tree::{Arithmetic, Comparison, Method, Node, NodeId, Path, Subscript};

/// The most levels of a path.
pub(crate) const LEVELS_MAX: u32 = 6_000;

#[cfg(test)]
mod tests;
