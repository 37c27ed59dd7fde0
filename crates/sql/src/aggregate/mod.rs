//! Aggregate functions.
//!
//! An aggregate is an [`AggregateRow`]: name, types, how a group's state begins and what result comes of it. [`rows`]
//! has all of them, [`resolve`] finds the one that a call means. A new aggregate is a row in the file of its subject;
//! one over a new kind of state is a variant of `State` too.
//!
//! | file | aggregates |
//! | --- | --- |
//! | `number` | count, sum, avg |
//! | `spread` | variances and standard deviations |
//! | `pairs` | correlation, covariance, regression |
//! | `choice` | min, max, bits and truth values |
//! | `list` | array_agg, string_agg |
//! | `percentile` | percentile_cont, percentile_disc, mode |
//! | `hypothetical` | rank, dense_rank, percent_rank, cume_dist of a row that is not there |
//!
//! `removal` takes values out of a state again, for frames of windows.
//!
//! # A group's state
//!
//! 1. [`AggregateCall::start`] makes it.
//! 2. [`AggregateCall::take`] takes each row of the input.
//! 3. [`AggregateCall::result`] tells the result so far, [`AggregateCall::finish`] the last one.
//!
//! A call whose rows have to come in an order ([`AggregateCall::is_ordered`]: DISTINCT, ORDER BY, WITHIN GROUP) is not
//! given rows as they arrive. Its caller collects what [`AggregateCall::inputs_of`] gives, sorts it, leaves equals out
//! if the call is DISTINCT, and takes it by [`AggregateCall::take_values`] into a state of
//! [`AggregateCall::start_in_order`].

mod choice;
mod hypothetical;
mod json;
mod list;
mod number;
mod pairs;
mod percentile;
mod removal;
mod row;
mod spread;
mod state;
mod table;

use crate::context::EvalContext;
use crate::error::{EngineError, Result};
use crate::expr::Expr;
use crate::sort_key::SortKey;
use crate::value::{DataType, Value};

pub use removal::Removal;
pub use row::{Aggregate, AggregateRow, Kind};
pub use state::Accumulator;
pub use table::{Found, resolve, rows};

/// True if aggregates of this name exist.
pub fn is_name(name: &str) -> bool {
    !table::named(name).is_empty()
}

/// One call of an aggregate in a query.
#[derive(Debug, Clone, PartialEq)]
pub struct AggregateCall {
    /// The aggregate.
    pub function: Aggregate,
    /// The values that it takes of an input row: its arguments, then keys of ORDER BY that are no arguments.
    pub inputs: Vec<Expr>,
    /// The types of the arguments. `count(*)` has none.
    pub argument_types: Vec<DataType>,
    /// Direct arguments, of an aggregate with WITHIN GROUP: over the group's keys.
    pub direct: Vec<Expr>,
    /// The order in which it takes rows, over the inputs. With DISTINCT it covers all arguments.
    pub order: Vec<SortKey>,
    /// DISTINCT: equal arguments count once.
    pub distinct: bool,
    /// FILTER (WHERE …)
    pub filter: Option<Expr>,
    /// The result's type.
    pub result_type: DataType,
}

impl AggregateCall {
    /// The expressions over the input row.
    pub fn expressions(&self) -> impl Iterator<Item = &Expr> {
        self.inputs.iter().chain(&self.filter)
    }

    /// The expressions over the input row, to be replaced.
    pub(crate) fn expressions_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        self.inputs.iter_mut().chain(&mut self.filter)
    }

    /// All its expressions, to be replaced.
    pub(crate) fn all_expressions_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        self.inputs
            .iter_mut()
            .chain(&mut self.filter)
            .chain(&mut self.direct)
    }

    /// True if its rows have to be sorted before it takes them.
    pub fn is_ordered(&self) -> bool {
        !self.order.is_empty()
    }

    /// A fresh state for one group.
    pub fn start(&self) -> Accumulator {
        Accumulator::new((self.function.row().start)(self))
    }

    /// A fresh state of a call whose `rows` rows come in order; `direct` are the values of its direct arguments.
    pub fn start_in_order(&self, rows: i64, direct: Vec<Value>) -> Result<Accumulator> {
        Ok(Accumulator::new(match self.function.row().start_in_order {
            None => (self.function.row().start)(self),
            Some(start) => start(self, rows, direct)?,
        }))
    }

    /// True if FILTER lets the row through.
    #[inline]
    fn passes(&self, row: &[Value], context: &EvalContext<'_>) -> Result<bool> {
        match &self.filter {
            Some(filter) => filter.passes(row, context),
            None => Ok(true),
        }
    }

    /// Takes one input row into a group's state.
    #[inline]
    pub fn take(&self, state: &mut Accumulator, row: &[Value], context: &EvalContext<'_>) -> Result<()> {
        if !self.passes(row, context)? {
            return Ok(());
        }
        match self.inputs.as_slice() {
            [] => self.take_values(state, &[]),
            [Expr::Column(position)] => {
                self.take_values(state, std::slice::from_ref(&row[usize::from(*position)]))
            }
            [argument] => self.take_values(state, &[argument.eval(row, context)?]),
            [first, second] => {
                self.take_values(state, &[first.eval(row, context)?, second.eval(row, context)?])
            }
            _ => {
                let values = self.inputs.iter().map(|input| input.eval(row, context));
                self.take_values(state, &values.collect::<Result<Vec<Value>>>()?)
            }
        }
    }

    /// Replaces `inputs` by what the call takes of an input row; `false` if it does not take the row.
    pub fn inputs_of(
        &self,
        row: &[Value],
        context: &EvalContext<'_>,
        inputs: &mut Vec<Value>,
    ) -> Result<bool> {
        inputs.clear();
        if !self.passes(row, context)? {
            return Ok(false);
        }
        for input in &self.inputs {
            inputs.push(input.eval(row, context)?);
        }
        let arguments = &inputs[..self.argument_types.len()];
        Ok(!self.function.row().strict || !arguments.iter().any(Value::is_null))
    }

    /// Takes one row's arguments into a group's state. An aggregate that is strict passes by those with a NULL.
    #[inline]
    pub fn take_values(&self, state: &mut Accumulator, arguments: &[Value]) -> Result<()> {
        if self.function.row().strict && arguments.iter().any(Value::is_null) {
            return Ok(());
        }
        state.rows += 1;
        state.state.take(self, state.rows, arguments)
    }

    /// The result of the rows so far; more may follow.
    pub fn result(&self, state: &Accumulator) -> Result<Value> {
        self.finish(state.clone())
    }

    /// The group's result.
    pub fn finish(&self, state: Accumulator) -> Result<Value> {
        let row = self.function.row();
        if state.rows == 0 && !row.counts {
            return Ok(Value::Null);
        }
        (row.finish)(self, state)
    }

    #[cold]
    fn unexpected(&self, value: &Value) -> EngineError {
        EngineError::internal(format!("{:?} is given {value:?}", self.function.row()))
    }
}
