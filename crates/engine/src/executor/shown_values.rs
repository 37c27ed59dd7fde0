//! Values of rows in the details of errors: those alone that the role may see.
//!
//! An error on a row would otherwise be a way to read it: a role with UPDATE on one column would learn the others.
//!
//! # Rules
//!
//! 1. A role with SELECT on the table sees all of a row.
//! 2. Of a row that its statement stores, another role sees the columns that it may read, and those that the statement
//!    gives a value: of a new row those of INSERT, of a row that was there those of the SET that changes it. What a part of
//!    the statement inserts does not count for a row that was there, nor the other way round, be it in WITH, ON CONFLICT or
//!    MERGE: the row's other values were stored before. Several INSERTs into one table count together, as do several SETs.
//!    PostgreSQL 15 takes both lists of one INSERT or MERGE together.
//! 3. A key is shown as a whole, to a role that may read each of its columns; one with an expression in it is not shown to a
//!    role without SELECT on the table.

use clearway_sql::deparse::index_key_listed;
use clearway_sql::error::EngineError;
use clearway_sql::expr::Expr;
use clearway_sql::function::quote_identifier;
use clearway_sql::value::{Value, text};
use clearway_sql::{EvalContext, IndexDef, IndexedValue, TableDef};

use crate::catalog::access::{Kind, SELECT};
use crate::executor::Execution;

/// The columns that a statement gives a value in a row.
#[derive(Debug, Clone, Copy)]
pub(crate) enum GivenColumns<'p> {
    /// It is a new row. Those that the statement does not insert have their defaults.
    Inserted,
    /// It was there, and these have been assigned to.
    Assigned(&'p [(u16, Expr)]),
}

/// The error with the row that it is about, as far as rules 1 and 2 let it be seen.
#[cold]
pub(super) fn with_failing_row(
    error: EngineError,
    execution: &Execution<'_>,
    table: &TableDef,
    row: &[Value],
    given: GivenColumns<'_>,
) -> EngineError {
    let (state, role) = (execution.txn.catalog_state(), execution.identity.current);
    if state.may(role, Kind::Table, table.oid, SELECT) {
        let values: Vec<String> = row.iter().map(describe).collect();
        return error.with_detail(format!("Failing row contains ({}).", values.join(", ")));
    }
    let is_given = |place: u16| match given {
        GivenColumns::Inserted => {
            let attribute = table.attribute_number(place);
            let mut accesses = execution.accesses.iter();
            accesses.any(|access| access.table.oid == table.oid && access.inserted.contains(&attribute))
        }
        GivenColumns::Assigned(columns) => columns.iter().any(|(column, _)| *column == place),
    };
    let is_shown = |place: u16| is_given(place) || state.may_read_columns(role, table, &[place]);
    let columns = (0u16..).zip(&table.columns).zip(row);
    let (names, values): (Vec<&str>, Vec<String>) = columns
        .filter(|((place, _), _)| is_shown(*place))
        .map(|((_, column), value)| (column.name.as_str(), describe(value)))
        .unzip();
    match names.is_empty() {
        true => error,
        false => error.with_detail(format!(
            "Failing row contains ({}) = ({}).",
            names.join(", "),
            values.join(", ")
        )),
    }
}

/// The error with the key that is there already, if rule 3 lets it be seen.
#[cold]
pub(super) fn with_key(
    error: EngineError,
    execution: &Execution<'_>,
    table: &TableDef,
    index: &IndexDef,
    row: &[Value],
) -> EngineError {
    let columns: Option<Vec<u16>> = index
        .keys
        .iter()
        .map(|key| match &key.value {
            IndexedValue::Column(column) => Some(*column),
            IndexedValue::Expression(_) => None,
        })
        .collect();
    let (state, role) = (execution.txn.catalog_state(), execution.identity.current);
    let may_see = match columns {
        Some(columns) => state.may_read_columns(role, table, &columns),
        None => state.may(role, Kind::Table, table.oid, SELECT),
    };
    match may_see {
        true => error.with_detail(key_that_exists(table, index, row, &execution.eval)),
        false => error,
    }
}

/// The detail of a duplicate: the key.
pub(crate) fn key_that_exists(
    table: &TableDef,
    index: &IndexDef,
    row: &[Value],
    eval: &EvalContext<'_>,
) -> String {
    format!("Key {} already exists.", describe_key(table, index, row, eval))
}

/// `(a, b)=(1, x)`
pub(crate) fn describe_key(
    table: &TableDef,
    index: &IndexDef,
    row: &[Value],
    eval: &EvalContext<'_>,
) -> String {
    let keys = index.keys.iter();
    let names: Vec<String> = keys
        .map(|key| match &key.value {
            IndexedValue::Column(column) => quote_identifier(&table.columns[usize::from(*column)].name),
            IndexedValue::Expression(kept) => index_key_listed(&kept.sql, table, false),
        })
        .collect();
    let value = |at: usize| match index.key_expr(at).eval(row, eval) {
        Ok(value) => describe(&value),
        Err(_) => "?".to_owned(),
    };
    let values: Vec<String> = (0..index.keys.len()).map(value).collect();
    format!("({})=({})", names.join(", "), values.join(", "))
}

/// A value in an error's detail.
pub(crate) fn describe(value: &Value) -> String {
    text::to_text(value).unwrap_or_else(|| "null".to_owned())
}
