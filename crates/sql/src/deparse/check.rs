//! The condition of a CHECK constraint: columns stand without the name of their table.

use super::from::Names;
use super::layout::Layout;
use super::node::print;
use super::operand::coerced;
use super::{Printer, unprinted};
use crate::bind::annotated_check;
use crate::catalog::{EmptyCatalog, TableDef};
use crate::error::Result;
use crate::stack::with_stack_for;
use crate::value::DataType;

/// A condition over a row of a table, as PostgreSQL writes it. `pretty`: without the parentheses that precedence makes
/// needless.
pub fn check_condition(sql: &str, table: &TableDef, pretty: bool) -> Result<String> {
    printed(sql, table, None, pretty)
}

/// The condition after a column of the table has got another name.
pub fn check_renamed(sql: &str, table: &TableDef, from: &str, to: &str) -> Result<String> {
    printed(sql, table, Some((from, to)), false)
}

fn printed(sql: &str, table: &TableDef, renamed: Option<(&str, &str)>, pretty: bool) -> Result<String> {
    let (tree, mut notes) = annotated_check(sql, table)?;
    if !notes.keep_names_only(renamed) {
        return Err(unprinted());
    }
    with_stack_for(tree.levels(), || {
        let mut printer = Printer {
            catalog: &EmptyCatalog,
            notes: &notes,
            text: sql,
            pretty,
            names: Names::of_view(),
            level: 0,
            bytes: 0,
        };
        let node = coerced(printer.node(&tree)?, DataType::Bool)?;
        let mut layout = Layout::default();
        print(&mut layout, &node, pretty, false);
        let text = layout.finish();
        printer.printed(text.len())?;
        Ok(text)
    })
}
