//! The condition of a CHECK constraint: columns stand without the name of their table.

use super::from::Names;
use super::layout::Layout;
use super::node::print;
use super::operand::coerced;
use super::{Printer, unprinted};
use crate::bind::{Kept, annotated_expression, bind_default, bound_default, domain_table};
use crate::catalog::{EmptyCatalog, TableDef};
use crate::error::Result;
use crate::parse::parse_expression;
use crate::stack::with_stack_for;
use crate::types_by_name;
use crate::value::DataType;
use crate::value::datetime::in_force as date_times;
use sqlparser::ast;

/// A condition over a row of a table, as PostgreSQL writes it. `pretty`: without the parentheses that precedence makes
/// needless.
pub fn check_condition(sql: &str, table: &TableDef, pretty: bool) -> Result<String> {
    printed(sql, table, Kept::Check, None, pretty)
}

/// The expression of a generated column, as PostgreSQL writes it.
pub fn generation_expression(sql: &str, table: &TableDef, column: u16, pretty: bool) -> Result<String> {
    printed(sql, table, Kept::Generated(column), None, pretty)
}

/// The default of a column, as PostgreSQL writes it.
pub fn default_value(sql: &str, table: &TableDef, column: u16, pretty: bool) -> Result<String> {
    printed(sql, table, Kept::Default(column), None, pretty)
}

/// The text of a default that a statement has, as it is kept: it means the same under every DateStyle and TimeZone.
pub fn kept_default(written: &str, data_type: DataType, typmod: i32) -> Result<String> {
    if date_times::settings().is_none() {
        return Ok(written.to_owned());
    }
    let meant = bound_default(written, data_type, typmod)?;
    if bind_default(written, data_type, typmod).is_ok_and(|kept| kept == meant) {
        return Ok(written.to_owned());
    }
    let _kept = date_times::for_keeping();
    default_value(written, &domain_table(data_type, typmod), 0, false)
}

/// The expression after a column of the table has got another name.
pub fn generation_renamed(
    sql: &str,
    table: &TableDef,
    column: u16,
    (from, to): (&str, &str),
) -> Result<String> {
    printed(sql, table, Kept::Generated(column), Some((from, to)), false)
}

/// The condition after a column of the table has got another name.
pub fn check_renamed(sql: &str, table: &TableDef, from: &str, to: &str) -> Result<String> {
    printed(sql, table, Kept::Check, Some((from, to)), false)
}

/// An expression that is a part of an index's key, as PostgreSQL writes it. `renamed`: a column's old and new name.
pub fn index_key(sql: &str, table: &TableDef, renamed: Option<(&str, &str)>, pretty: bool) -> Result<String> {
    printed(sql, table, Kept::IndexKey, renamed, pretty)
}

/// The predicate of an index, as PostgreSQL writes it. `renamed`: a column's old and new name.
pub fn index_predicate(
    sql: &str,
    table: &TableDef,
    renamed: Option<(&str, &str)>,
    pretty: bool,
) -> Result<String> {
    printed(sql, table, Kept::IndexPredicate, renamed, pretty)
}

fn printed(
    sql: &str,
    table: &TableDef,
    kept: Kept,
    renamed: Option<(&str, &str)>,
    pretty: bool,
) -> Result<String> {
    let (tree, data_type, mut notes) = annotated_expression(sql, table, kept)?;
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

/// A part of an index's key as a list of keys has it: in parentheses, unless it is written as a call.
pub fn index_key_listed(sql: &str, table: &TableDef, pretty: bool) -> String {
    let shown = match pretty {
        true => index_key(sql, table, None, true).unwrap_or_else(|_| sql.to_owned()),
        false => sql.to_owned(),
    };
    let shown = types_by_name(&shown);
    match parse_expression(sql, 0).is_ok_and(|tree| is_call(&tree)) {
        true => shown,
        false => format!("({shown})"),
    }
}

fn is_call(tree: &ast::Expr) -> bool {
    use ast::Expr;
    matches!(
        tree,
        Expr::Function(_)
            | Expr::Extract { .. }
            | Expr::Substring { .. }
            | Expr::Trim { .. }
            | Expr::Position { .. }
            | Expr::Overlay { .. }
            | Expr::Ceil { .. }
            | Expr::Floor { .. }
    )
}
