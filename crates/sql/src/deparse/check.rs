//! The condition of a CHECK constraint: columns stand without the name of their table.

use super::from::Names;
use super::layout::Layout;
use super::node::print;
use super::operand::coerced;
use super::{Printer, unprinted};
use crate::bind::{annotated_check, annotated_generated};
use crate::catalog::{EmptyCatalog, TableDef};
use crate::error::Result;
use crate::stack::with_stack_for;
use crate::value::DataType;

/// A condition over a row of a table, as PostgreSQL writes it. `pretty`: without the parentheses that precedence makes
/// needless.
pub fn check_condition(sql: &str, table: &TableDef, pretty: bool) -> Result<String> {
    printed(sql, table, None, None, pretty)
}

/// The expression of a generated column, as PostgreSQL writes it.
pub fn generation_expression(sql: &str, table: &TableDef, column: u16, pretty: bool) -> Result<String> {
    printed(sql, table, Some(column), None, pretty)
}

/// The expression after a column of the table has got another name.
pub fn generation_renamed(
    sql: &str,
    table: &TableDef,
    column: u16,
    (from, to): (&str, &str),
) -> Result<String> {
    printed(sql, table, Some(column), Some((from, to)), false)
}

/// The condition after a column of the table has got another name.
pub fn check_renamed(sql: &str, table: &TableDef, from: &str, to: &str) -> Result<String> {
    printed(sql, table, None, Some((from, to)), false)
}

fn printed(
    sql: &str,
    table: &TableDef,
    generated: Option<u16>,
    renamed: Option<(&str, &str)>,
    pretty: bool,
) -> Result<String> {
    let (tree, mut notes) = match generated {
        None => annotated_check(sql, table)?,
        Some(column) => annotated_generated(sql, table, column)?,
    };
    let data_type = generated.map_or(DataType::Bool, |column| {
        table.columns[usize::from(column)].data_type
    });
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
        let node = coerced(printer.node(&tree)?, data_type)?;
        let mut layout = Layout::default();
        print(&mut layout, &node, pretty, false);
        let text = layout.finish();
        printer.printed(text.len())?;
        Ok(text)
    })
}
