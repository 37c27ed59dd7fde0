//! Values, their types, and the functions over them: what parsing, binding and execution share. Nothing here knows of a
//! statement's tree, a page or a session.
//!
//! | module | job |
//! |---|---|
//! | `value` | values, types, their text and binary forms, rows as bytes, index keys |
//! | `function` | functions and operators, a table for each subject |
//! | `context`, `catalog_facts` | what an evaluation can ask of its session, and of the catalog |
//! | `common_type`, `type_name` | the type that several are brought to; the type that a text names |
//! | `lex`, `literals` | text to tokens; the string literals of an expression |
//! | `numbered_names`, `numbered_types`, `object_address` | relations and types in kept texts, by number; where the catalogs have an object |
//! | `regular_expression` | regular expressions, read and compiled |
//! | `deviations` | sums of doubles and of their deviations from the means |
//! | `stack` | how deep a statement may nest, and the room for it |
//! | `error`, `memory` | errors with a SQLSTATE; large requests are weighed first |

#![forbid(unsafe_code)]

pub mod catalog_facts;
pub mod common_type;
pub mod context;
pub mod deviations;
pub mod error;
pub mod function;
pub mod lex;
pub mod literals;
pub mod memory;
pub mod numbered_names;
pub mod numbered_types;
pub mod object_address;
mod regular_expression;
pub mod stack;
pub mod type_name;
pub mod value;

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
