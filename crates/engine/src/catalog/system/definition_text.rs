//! Definitions as SQL text: of indexes, constraints and defaults.

use crate::catalog::TableEntry;
use crate::catalog::serial::serials;
use clearway_sql::deparse::check_condition;
use clearway_sql::function::quote_identifier;
use clearway_sql::value::DataType;
use clearway_sql::{CheckDef, ColumnDefault, IndexDef, TableDef};

/// The column names of an index, quoted where that is needed.
fn column_list(table: &TableDef, index: &IndexDef) -> String {
    let names = index.columns.iter();
    let names = names.map(|number| quote_identifier(&table.columns[usize::from(*number)].name));
    names.collect::<Vec<_>>().join(", ")
}

/// The statement that would make an index.
pub(crate) fn index_definition(table: &TableDef, index: &IndexDef, with_schema: bool) -> String {
    let schema = match with_schema {
        true => format!("{}.", quote_identifier(&table.schema.name)),
        false => String::new(),
    };
    format!(
        "CREATE {}INDEX {} ON {schema}{} USING btree ({})",
        if index.unique { "UNIQUE " } else { "" },
        quote_identifier(&index.name),
        quote_identifier(&table.name),
        column_list(table, index)
    )
}

/// The constraint that an index enforces, as in CREATE TABLE.
pub(crate) fn constraint_definition(table: &TableDef, index: &IndexDef) -> String {
    let kind = if index.primary { "PRIMARY KEY" } else { "UNIQUE" };
    format!("{kind} ({})", column_list(table, index))
}

/// A CHECK constraint as in CREATE TABLE; `pretty`: without the parentheses that precedence makes needless.
pub(crate) fn check_definition(table: &TableDef, check: &CheckDef, pretty: bool) -> String {
    let printed = match pretty {
        true => check_condition(&check.sql, table, true).ok(),
        false => None,
    };
    let condition = printed.as_deref().unwrap_or(&check.sql);
    let behind = if check.validated { "" } else { " NOT VALID" };
    format!("CHECK ({condition}){behind}")
}

/// The expression of a column's default, with the sequence's full name; `None` if it has none.
pub(crate) fn default_expression(entry: &TableEntry, column: usize) -> Option<String> {
    match entry.def.columns[column].default.as_ref()? {
        ColumnDefault::Expression { sql, .. } => Some(with_type(sql, entry.def.columns[column].data_type)),
        ColumnDefault::Serial => {
            let serial = serials(entry).find(|serial| serial.column == column)?;
            let schema = quote_identifier(&serial.schema().name);
            let name = format!("{schema}.{}", quote_identifier(&serial.name())).replace('\'', "''");
            Some(format!("nextval('{name}'::regclass)"))
        }
    }
}

/// An expression; a literal in quotes has its type behind it.
fn with_type(sql: &str, data_type: DataType) -> String {
    let inner = sql.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    let is_literal = inner.is_some_and(|inner| !inner.replace("''", "").contains('\''));
    match data_type {
        _ if !is_literal => sql.to_owned(),
        DataType::Char => format!("{sql}::bpchar"),
        other => format!("{sql}::{other}"),
    }
}
