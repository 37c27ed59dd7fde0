//! The keys of a join by equality.

use clearway_sql::Expr;
use clearway_sql::error::Result;
use clearway_sql::expr::append_equality_key;
use clearway_sql::plan::KeyJoin;
use clearway_sql::value::{DataType, Value};

use crate::executor::Execution;

/// The bytes of a row's keys; `None` if one is NULL.
pub(super) fn key_of<'k>(
    execution: &mut Execution<'_>,
    exprs: impl Iterator<Item = (&'k Expr, DataType)>,
    row: &[Value],
    key: &mut Vec<u8>,
) -> Result<bool> {
    key.clear();
    for (expr, data_type) in exprs {
        let value = expr.eval(row, &execution.eval)?;
        if !append_equality_key(&value, data_type, key) {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(super) fn left_keys(join: &KeyJoin) -> impl Iterator<Item = (&Expr, DataType)> {
    join.keys.iter().map(|(left, _, data_type)| (left, *data_type))
}

pub(super) fn right_keys(join: &KeyJoin) -> impl Iterator<Item = (&Expr, DataType)> {
    join.keys.iter().map(|(_, right, data_type)| (right, *data_type))
}

/// Copies values into columns.
pub(super) fn put_copies(row: &mut [Value], columns: &[u16], values: &[Value]) {
    for (column, value) in columns.iter().zip(values) {
        row[usize::from(*column)].clone_from(value);
    }
}
