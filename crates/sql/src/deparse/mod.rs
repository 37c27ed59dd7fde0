//! From a view's syntax tree back to text, as PostgreSQL writes it.
//!
//! ```text
//! create view v as select a, b || '!' as c from t where a in (1, 2)
//!
//!  SELECT t.a,
//!     (t.b || '!'::text) AS c
//!    FROM t
//!   WHERE (t.a = ANY (ARRAY[1, 2]));
//! ```
//!
//! PostgreSQL prints what its analysis has made of a query: names in full, `*` as a list, literals with their types,
//! implicit casts, IN as an array. So the query is bound once more, and the binder notes at the nodes of the tree what it
//! found there (`bind::TreeNotes`: types, and the relations of columns). From tree and notes comes
//! an expression as PostgreSQL has it (`node`), and from that the text. What has no such form here is 0A000.
//!
//! | module | prints |
//! | --- | --- |
//! | `layout` | lines and their indentation |
//! | `query`, `from` | queries and their clauses; FROM and the names of relations |
//! | `grouping`, `window` | GROUP BY with its sets of keys; OVER and WINDOW |
//! | `expression`, `call` | makes a `Node` of an expression, of a call |
//! | `node` | expressions, with as many parentheses as are asked for |
//! | `check` | conditions of CHECK constraints, expressions of generated columns |
//! | `operand`, `arguments` | the types that operands and arguments are brought to |

mod arguments;
mod call;
mod check;
mod expression;
mod from;
mod grouping;
mod layout;
mod node;
mod operand;
mod query;
mod window;

use crate::bind::{TreeNotes, annotated};
use crate::catalog::{CatalogView, TableDef};
use crate::error::{EngineError, Result};
use crate::stack::with_stack_for;
use crate::value::datetime::in_force as date_times;
use from::Names;
use layout::Layout;

pub use check::{
    check_condition, check_renamed, default_value, generation_expression, generation_renamed, index_key,
    index_key_listed, index_predicate, kept_default,
};

/// The most bytes of text that are printed for one definition, those of inner queries and of repeated operands counted
/// with each time they are printed. A text that repeats itself (`ORDER BY 1` is the entry once more, BETWEEN its left side)
/// grows with a power of its depth: beyond this it is shown as it was written.
const BYTES_MAX: usize = 4 << 20;

/// The definition of a view. `pretty`: without the parentheses that precedence makes needless.
pub fn view_definition(view: &TableDef, catalog: &dyn CatalogView, pretty: bool) -> Result<String> {
    let Some(definition) = &view.view else {
        return Err(EngineError::internal("a relation that is no view has no query"));
    };
    let (statement, notes) = annotated(view, catalog)?;
    let (query, levels) = crate::bind::query_of_view(&statement)?;
    let columns: Vec<&str> = view.columns.iter().map(|column| column.name.as_str()).collect();
    let _as_written = date_times::reading_by(definition.date_times.clone());
    let printed = with_stack_for(levels, || {
        let mut printer = Printer {
            catalog,
            notes: &notes,
            text: &definition.sql,
            pretty,
            names: Names::of_view(),
            level: 0,
            bytes: 0,
        };
        let mut layout = Layout::default();
        printer.query(&mut layout, query, Some(&columns), true)?;
        Ok::<_, EngineError>(layout.finish())
    });
    match printed {
        Ok(text) => Ok(format!("{text};")),
        // A form that is not printed here: the text as it was written.
        Err(error)
            if error.sqlstate() == crate::error::SqlState::FEATURE_NOT_SUPPORTED
                && !notes.has_old_names() =>
        {
            Ok(format!(" {};", definition.sql.trim()))
        }
        Err(error) => Err(error),
    }
}

/// The state of printing a query.
struct Printer<'a> {
    catalog: &'a dyn CatalogView,
    notes: &'a TreeNotes,
    /// The text of the query.
    text: &'a str,
    /// Few parentheses.
    pretty: bool,
    names: Names,
    /// The level of the clause that is being printed.
    level: i32,
    /// Bytes printed, as [`BYTES_MAX`] counts them.
    bytes: usize,
}

impl Printer<'_> {
    /// Counts bytes that are printed; 0A000 if they are too many.
    fn printed(&mut self, bytes: usize) -> Result<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > BYTES_MAX {
            return Err(unprinted());
        }
        Ok(())
    }

    /// Counts copies of an expression.
    fn repeated(&mut self, node: &node::Node, copies: usize) -> Result<()> {
        if copies == 0 {
            return Ok(());
        }
        let mut text = Layout::default();
        node::print(&mut text, node, self.pretty, true);
        self.printed(text.finish().len().saturating_mul(copies))
    }
}

/// 0A000 for what is not printed.
fn unprinted() -> EngineError {
    EngineError::not_supported("printing this expression")
}
