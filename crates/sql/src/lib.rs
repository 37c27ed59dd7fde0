//! SQL from text to plan: values, types, functions, parsing, binding and planning. It knows nothing of pages or sessions.
//!
//! ```text
//! text ──parse──▶ syntax tree ──bind──▶ Block ──planner──▶ Plan ──(the executor, elsewhere)──▶ rows
//! ```
//!
//! `parse` splits a message into statements, takes the utility statements sqlparser does not know (VACUUM, CHECKPOINT,
//! COPY's options …) in a small front end of ours, and gives the rest to sqlparser. `bind` resolves names and types
//! against a [`catalog::CatalogView`], infers parameter types the way PostgreSQL does, and compiles expressions; `planner`
//! chooses access paths, the order of joins and their methods. What is not done is refused with 0A000 and its name, never
//! half done: every field of a syntax tree that we do not act on is checked to be absent.
//!
//! | module | job |
//! |---|---|
//! | `parse` | text to syntax tree: lexing, splitting, the statements we read ourselves, what is not supported |
//! | `bind` | syntax tree to block: names, types, expressions |
//! | `query` | a bound query, before anything is chosen |
//! | `planner` | from a bound query to a plan: conditions to where they can be checked, joins, access paths |
//! | `plan` | the data structures of a plan |
//! | `access` | index or sequential scan; key ranges at run time |
//! | `expr`, `function`, `aggregate` | compiled expressions and their evaluation |
//! | `deviations` | sums of doubles and of their deviations from the means |
//! | `sequence`, `numbered_names`, `numbered_types` | the options of sequences; relations and types in kept texts, by number |
//! | `lex`, `literals` | text to tokens; the string literals of an expression |
//! | `context` | what an evaluation can ask of its session |
//! | `catalog_facts` | what functions ask of the catalog |
//! | `foreign_key` | foreign keys, and which types they join |
//! | `catalog`, `object_address` | tables and indexes as statements see them; where the catalogs have an object |
//! | `common_type`, `search_path`, `sort_key`, `stack` | the type that several are brought to; where names are looked for; keys of ORDER BY; how deep a statement may nest, and the room for it |
//! | `statistics` | what ANALYZE finds, and the planner's estimates rest on |
//! | `deparse` | a view's query as text |
//! | `view` | views as the catalog keeps them |
//! | `settings` | the settings that choose among plans |
//! | `explain`, `explained` | from a plan to what EXPLAIN shows; its forms |
//! | `value` | values, types, their text and binary forms, rows as bytes, index keys |
//! | `error`, `memory` | errors with a SQLSTATE; large requests are weighed first |

#![forbid(unsafe_code)]

pub mod access;
pub mod aggregate;
pub mod bind;
pub mod catalog;
pub mod catalog_facts;
pub mod common_type;
pub mod context;
pub mod deparse;
mod deviations;
pub mod error;
pub mod explain;
pub mod explained;
pub mod expr;
pub mod foreign_key;
pub mod function;
mod implication;
mod index;
mod lex;
mod literals;
mod masked;
pub mod memory;
mod numbered_names;
mod numbered_types;
mod object_address;
pub mod operator_class;
pub mod parse;
pub mod plan;
pub mod planner;
pub mod query;
mod search_path;
pub mod sequence;
pub mod settings;
mod sort_key;
mod stack;
pub mod statistics;
mod type_name;
pub mod value;
pub mod view;

pub use bind::bind_checked;
pub use bind::{
    bind, bind_check, bind_default, bind_generated, bind_index, changeable_columns, compile_domain,
    domain_condition, domain_table, index_column_names,
};
pub use catalog::{
    Attribute, CatalogView, CheckDef, ColumnDef, ColumnDefault, IndexStage, SchemaRef, TableDef, TableKind,
    UnfinishedIndex,
};
pub use context::{EvalContext, SessionFacts};
pub use expr::Expr;
pub use foreign_key::{CheckTime, ForeignKeyDef, ReferentialAction};
pub use function::registered;
pub use function::shown_position;
pub use function::styled;
pub use index::{IndexDef, IndexEntry, IndexKey, IndexedValue, KeptExpr, KeyOptions};
pub use lex::has_word;
pub use masked::masked;
pub use numbered_names::{relations_in, with_names};
pub use numbered_types::{types_by_name, types_by_number};
pub use object_address::ObjectAddress;
pub use parse::{ParsedStatement, parse};
pub use parse::{memory_of_plan, memory_to_plan};
pub use plan::{Column, Plan, Statement};
pub use search_path::{PG_TEMP, SearchPath};
pub use stack::checkpoint;

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
