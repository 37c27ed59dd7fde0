//! Functions that give rows, side by side.

use clearway_sql::error::Result;
use clearway_sql::plan::{SetCall, SetFunctions};
use clearway_sql::value::Value;
use clearway_sql::value::array::{elements_of, parts_of, subscripts_of};

use crate::executor::Execution;
use crate::executor::series::SeriesRows;

/// The rows of functions.
#[derive(Debug)]
pub(crate) struct FunctionRows {
    calls: Vec<Given>,
    /// Number of rows that have come.
    number: i64,
}

/// The values that a function still gives.
#[derive(Debug)]
enum Given {
    Values(std::vec::IntoIter<Value>),
    /// Without any if a bound is NULL.
    Series(Option<SeriesRows>),
}

impl FunctionRows {
    pub(super) fn open(
        execution: &mut Execution<'_>,
        plan: &SetFunctions,
        row: &[Value],
    ) -> Result<FunctionRows> {
        let calls = plan.calls.iter();
        Ok(FunctionRows {
            calls: calls
                .map(|call| given(execution, call, row))
                .collect::<Result<_>>()?,
            number: 0,
        })
    }

    pub(super) fn next(
        &mut self,
        execution: &mut Execution<'_>,
        plan: &SetFunctions,
        base: u16,
        row: &mut [Value],
    ) -> Result<bool> {
        execution.tick()?;
        let mut found = false;
        for (at, (given, call)) in self.calls.iter_mut().zip(&plan.calls).enumerate() {
            let value = given.next(execution, call)?;
            found |= value.is_some();
            row[usize::from(base) + at] = value.unwrap_or(Value::Null);
        }
        if plan.ordinality {
            self.number += 1;
            row[usize::from(base) + plan.calls.len()] = Value::Int8(self.number);
        }
        Ok(found)
    }
}

/// The values that a call gives.
fn given(execution: &mut Execution<'_>, call: &SetCall, row: &[Value]) -> Result<Given> {
    execution.evaluating(|context| {
        Ok(match call {
            SetCall::Unnest(array) => {
                let array = array.eval(row, context)?;
                Given::Values(elements_of(&array)?.to_vec().into_iter())
            }
            SetCall::Parts(array) => Given::Values(parts_of(&array.eval(row, context)?)?.into_iter()),
            SetCall::Subscripts {
                array,
                dimension,
                reverse,
            } => {
                let (array, dimension) = (array.eval(row, context)?, dimension.eval(row, context)?);
                let reverse = reverse
                    .as_ref()
                    .map(|reverse| reverse.eval(row, context))
                    .transpose()?;
                let dimension = dimension
                    .as_i64()
                    .and_then(|dimension| i32::try_from(dimension).ok());
                let mut subscripts: Vec<Value> = match (dimension, &reverse) {
                    (None, _) | (_, Some(Value::Null)) => Vec::new(),
                    (Some(dimension), _) => subscripts_of(&array, dimension)?.map(Value::Int4).collect(),
                };
                if reverse == Some(Value::Bool(true)) {
                    subscripts.reverse();
                }
                Given::Values(subscripts.into_iter())
            }
            SetCall::Series(series) => Given::Series(SeriesRows::open(context, series, row)?),
        })
    })
}

impl Given {
    fn next(&mut self, execution: &mut Execution<'_>, call: &SetCall) -> Result<Option<Value>> {
        match (self, call) {
            (Given::Values(values), _) => Ok(values.next()),
            (Given::Series(Some(rows)), SetCall::Series(series)) => {
                let found = rows.next(execution, series)?;
                Ok(found.then(|| std::mem::take(&mut rows.row[0])))
            }
            (Given::Series(_), _) => Ok(None),
        }
    }
}
