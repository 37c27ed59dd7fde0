//! From text to plan.
//!
//! ```text
//! text ──parse──▶ syntax tree ──bind──▶ Plan ──(the executor, elsewhere)──▶ rows
//! ```
//!
//! `parse` splits a message into statements, takes the utility statements sqlparser does not know (VACUUM, CHECKPOINT,
//! COPY's options …) in a small front end of ours, and gives the rest to sqlparser. `bind` resolves names and types
//! against a [`catalog::CatalogView`], infers parameter types the way PostgreSQL does, chooses the access path and
//! compiles expressions. What OLTP load does not need is refused with 0A000 and its name, never half done: every field
//! of a syntax tree that we do not act on is checked to be absent.
//!
//! | module | job |
//! |---|---|
//! | `parse`, `split`, `lex`, `utility` | text to syntax tree |
//! | `unsupported` | what PostgreSQL has and this engine has not, told from what is no SQL |
//! | `long_insert` | long lists of rows, parsed in pieces |
//! | `stack` | how deep a statement may nest, and the room for it |
//! | `catalog` | tables and indexes as statements see them |
//! | `bind` | syntax tree to plan |
//! | `access` | index or sequential scan; key ranges at run time |
//! | `expr`, `function`, `math`, `aggregate` | compiled expressions and their evaluation |
//! | `plan` | the data structures of a plan |
//! | `explain` | a plan as text |
//! | `driver_catalog` | what drivers ask of the catalog when they connect |
//! | `pgbench_catalog` | the one catalog query pgbench asks |

pub mod access;
pub mod aggregate;
pub mod bind;
pub mod catalog;
mod dialect;
mod driver_catalog;
pub mod explain;
pub mod expr;
pub mod function;
mod lex;
mod long_insert;
pub mod math;
pub mod parse;
pub mod pgbench_catalog;
pub mod plan;
mod split;
mod stack;
mod unsupported;
mod utility;

pub(crate) use bind::bind_checked;
pub use bind::{bind, bind_default};
pub use catalog::{CatalogView, ColumnDef, ColumnDefault, IndexDef, TableDef, TableKind};
pub use expr::{EvalContext, Expr, SessionFacts};
pub use parse::{ParsedStatement, parse};
pub(crate) use parse::{memory_of_plan, memory_to_plan};
pub use plan::{Column, Plan, Statement};
