//! SQL from text to plan: parsing, binding and planning. It knows nothing of pages or sessions.
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
//! | `escapes` | texts whose strings have backslash escapes, written out without them |
//! | `bind` | syntax tree to block: names, types, expressions |
//! | `query` | a bound query, before anything is chosen |
//! | `planner` | from a bound query to a plan: conditions to where they can be checked, joins, access paths |
//! | `plan` | the data structures of a plan |
//! | `access` | index or sequential scan; key ranges at run time |
//! | `expr`, `aggregate` | compiled expressions and their evaluation |
//! | `sequence` | the options of sequences |
//! | `foreign_key` | foreign keys, and which types they join |
//! | `catalog` | tables and indexes as statements see them |
//! | `search_path`, `sort_key` | where names are looked for; keys of ORDER BY |
//! | `statistics` | what ANALYZE finds, and the planner's estimates rest on |
//! | `deparse` | a view's query as text |
//! | `view` | views as the catalog keeps them |
//! | `settings` | the settings that choose among plans |
//! | `explain`, `explained` | from a plan to what EXPLAIN shows; its forms |

#![forbid(unsafe_code)]

pub mod access;
pub mod aggregate;
pub mod bind;
pub mod catalog;
pub mod deparse;
pub mod escapes;
pub mod explain;
pub mod explained;
pub mod expr;
pub mod foreign_key;
mod implication;
mod index;
mod masked;
mod normalised;
pub mod operator_class;
pub mod parse;
pub mod plan;
pub mod planner;
pub mod query;
mod search_path;
pub mod sequence;
pub mod settings;
mod sort_key;
pub mod statistics;
pub mod storage_parameters;
pub mod view;

// What statements are made of keeps its name in here.
pub use clearway_types::{catalog_facts, common_type, context, error, function, memory, value};
use clearway_types::{deviations, lex, numbered_names, numbered_types, object_address, stack, type_name};

pub use bind::bind_checked;
pub use bind::{
    bind, bind_check, bind_default, bind_generated, bind_index, changeable_columns, compile_domain,
    domain_condition, domain_table, index_column_names,
};
pub use catalog::{
    Attribute, CatalogView, CheckDef, ColumnCompression, ColumnDef, ColumnDefault, ColumnStorage, FIRST_OID,
    IndexStage, ReplicaIdentity, SchemaRef, TableDef, TableKind, UnfinishedIndex, require_no_system_name,
};
pub use context::{EvalContext, SessionFacts};
pub use expr::Expr;
pub use foreign_key::{CheckTime, ForeignKeyDef, ReferentialAction};
pub use function::registered;
pub use function::styled;
pub use index::{IndexDef, IndexEntry, IndexKey, IndexMarks, IndexedValue, KeptExpr, KeyOptions};
pub use lex::{has_word, names_field, names_of_types};
pub use masked::masked;
pub use normalised::{NORMALISED_BYTES_MAX, Normalised, normalised};
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
