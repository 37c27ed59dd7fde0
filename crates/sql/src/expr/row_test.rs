//! Comparisons of rows.

use crate::context::EvalContext;
use crate::error::Result;
use crate::expr::{CompareOp, Expr};
use crate::value::{DataType, Value, compare_checked};

/// True if the comparison of the row with one of the others holds; `None` if none does and a NULL leaves one open.
///
/// The columns of the row are evaluated once; those of the others until one pair decides.
pub(super) fn holds(
    input: &[Expr],
    op: CompareOp,
    others: &[Vec<Expr>],
    types: &[DataType],
    row: &[Value],
    context: &EvalContext<'_>,
) -> Result<Option<bool>> {
    let mut around = *context;
    let mut values = Vec::with_capacity(input.len());
    for column in input {
        let value = column.eval(row, &around)?;
        around = around.keeping(value.heap_bytes())?;
        values.push(value);
    }
    let mut unknown = false;
    for other in others {
        let found = match op {
            CompareOp::Equal => equal(&values, other, types, row, &around)?,
            _ => ordered(&values, op, other, types, row, &around)?,
        };
        match found {
            Some(true) => return Ok(Some(true)),
            Some(false) => {}
            None => unknown = true,
        }
    }
    Ok((!unknown).then_some(false))
}

/// All pairs are equal: one that is not decides, even behind a NULL.
fn equal(
    values: &[Value],
    other: &[Expr],
    types: &[DataType],
    row: &[Value],
    context: &EvalContext<'_>,
) -> Result<Option<bool>> {
    let mut unknown = false;
    for ((value, column), data_type) in values.iter().zip(other).zip(types) {
        let candidate = column.eval(row, context)?;
        if value.is_null() || candidate.is_null() {
            unknown = true;
        } else if compare_checked(value, &candidate, *data_type)?.is_ne() {
            return Ok(Some(false));
        }
    }
    Ok((!unknown).then_some(true))
}

/// The first pair that is not equal decides, or leaves it open if it has a NULL.
fn ordered(
    values: &[Value],
    op: CompareOp,
    other: &[Expr],
    types: &[DataType],
    row: &[Value],
    context: &EvalContext<'_>,
) -> Result<Option<bool>> {
    for ((value, column), data_type) in values.iter().zip(other).zip(types) {
        let candidate = column.eval(row, context)?;
        if value.is_null() || candidate.is_null() {
            return Ok(None);
        }
        let ordering = compare_checked(value, &candidate, *data_type)?;
        if ordering.is_ne() {
            return Ok(Some(op.holds(ordering)));
        }
    }
    Ok(Some(op.holds(std::cmp::Ordering::Equal)))
}
