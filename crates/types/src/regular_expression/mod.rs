//! Regular expressions, read and compiled: what the operators of `function::regex` and paths of SQL/JSON share.
//!
//! | module | job |
//! | --- | --- |
//! | `syntax`, `bracket` | PostgreSQL's syntax, read into a tree over that of the crate `regex` |
//! | `expression` | a compiled expression, whether it matches, and the automata of its parts |
//!
//! Back references and constraints that look ahead or behind are refused, since the time of a match is linear in the
//! text; so are the options `b` and `e` (the older syntaxes).

mod bracket;
mod expression;
mod fault;
mod syntax;

pub(crate) use expression::{Expression, Span, compiled};
pub(crate) use syntax::{Node, Options, check, repeated};
