//! Aggregates over frames.
//!
//! From one row to the next a frame gets rows at its tail and loses rows at its head. The state of an aggregate goes
//! on:
//!
//! 1. The frame is as before: so is the result.
//! 2. Its head is where it was: the new rows are taken.
//! 3. Its head has moved, and the aggregate can give values back exactly: those before the head are taken out, and the
//!    new ones taken.
//! 4. Otherwise, and where rows are excluded, the state is made anew from all rows of the frame.
//!
//! Calls that can give values back go together, and so do the others: each kind reads the rows once.

use std::ops::Range;

use clearway_sql::aggregate::{Accumulator, AggregateCall, Removal};
use clearway_sql::context::EvalContext;
use clearway_sql::error::Result;
use clearway_sql::plan::{FrameBound, WindowCall, WindowPlan};
use clearway_sql::value::Value;

use super::frame::Frame;
use super::partition::{PartitionRows, RowReader};
use crate::executor::Execution;
use crate::executor::group::check_state;

/// Aggregates that go the same way.
#[derive(Debug)]
pub(super) struct Aggregates {
    /// Their numbers among the window's calls.
    numbers: Vec<usize>,
    /// True if they can give values back.
    removes: bool,
    states: Vec<(Accumulator, Removal)>,
    results: Vec<Value>,
    /// The rows that the states have; `None` before the first row.
    taken: Option<[Range<u64>; 3]>,
    adding: RowReader,
    removing: RowReader,
}

impl Aggregates {
    /// The aggregates of a window: those that can give values back, and the others.
    pub(super) fn of(plan: &WindowPlan) -> [Aggregates; 2] {
        let moves = plan.frame.start != FrameBound::Unbounded;
        [true, false].map(|removes| {
            let numbers = (0..plan.calls.len()).filter(|number| match &plan.calls[*number] {
                WindowCall::Aggregate(call) => (moves && call.can_remove()) == removes,
                _ => false,
            });
            Aggregates {
                numbers: numbers.collect(),
                removes,
                states: Vec::new(),
                results: Vec::new(),
                taken: None,
                adding: RowReader::default(),
                removing: RowReader::default(),
            }
        })
    }

    /// Forgets the rows of a partition that has ended.
    pub(super) fn begin_partition(&mut self) {
        self.states.clear();
        self.results.clear();
        self.taken = None;
        self.adding = RowReader::default();
        self.removing = RowReader::default();
    }

    /// Number of the calls, and their results.
    pub(super) fn results(&self) -> impl Iterator<Item = (usize, &Value)> {
        self.numbers.iter().copied().zip(&self.results)
    }

    /// Computes the results over a frame.
    pub(super) fn evaluate(
        &mut self,
        execution: &mut Execution<'_>,
        plan: &WindowPlan,
        partition: &PartitionRows,
        frame: &Frame,
    ) -> Result<()> {
        if self.numbers.is_empty() || self.taken.as_ref() == Some(frame.parts()) {
            return Ok(());
        }
        let taken = self.taken.take();
        let goes_on = match (frame.whole(), taken) {
            (Some(whole), Some([before, ..])) => self.go_on(execution, plan, partition, before, whole)?,
            _ => false,
        };
        if !goes_on {
            let calls = self.numbers.iter().map(|number| aggregate(plan, *number));
            self.states = calls.map(|call| (call.start(), Removal::default())).collect();
            for part in frame.parts() {
                self.take(execution, plan, partition, part.clone())?;
            }
        }
        self.taken = Some(frame.parts().clone());
        self.results.clear();
        for (number, (accumulator, _)) in self.numbers.iter().zip(&self.states) {
            let result = aggregate(plan, *number).result(accumulator)?;
            self.results.push(result);
        }
        Ok(())
    }

    /// Steps 2 and 3; `false` if the states must be made anew.
    fn go_on(
        &mut self,
        execution: &mut Execution<'_>,
        plan: &WindowPlan,
        partition: &PartitionRows,
        before: Range<u64>,
        now: Range<u64>,
    ) -> Result<bool> {
        if now.start < before.start || now.end < before.end || now.start > before.end {
            return Ok(false);
        }
        if now.start > before.start && !self.removes {
            return Ok(false);
        }
        for number in before.start..now.start {
            execution.tick()?;
            let Aggregates {
                numbers,
                states,
                removing,
                ..
            } = self;
            let Some((row, _)) = removing.row(partition, number)? else {
                return Ok(false);
            };
            let removed = execution.evaluating(|context| take_out(plan, numbers, states, row, context))?;
            if !removed {
                return Ok(false);
            }
        }
        self.take(execution, plan, partition, before.end..now.end)?;
        Ok(true)
    }

    /// Takes rows into the states.
    fn take(
        &mut self,
        execution: &mut Execution<'_>,
        plan: &WindowPlan,
        partition: &PartitionRows,
        rows: Range<u64>,
    ) -> Result<()> {
        for number in rows {
            execution.tick()?;
            let Aggregates {
                numbers,
                states,
                adding,
                removes,
                ..
            } = self;
            let Some((row, _)) = adding.row(partition, number)? else {
                return Ok(());
            };
            execution.evaluating(|context| take(plan, numbers, states, *removes, row, context))?;
            let bytes = states
                .iter()
                .map(|(accumulator, _)| accumulator.heap_bytes())
                .sum();
            check_state(bytes, execution.spill)?;
        }
        Ok(())
    }
}

fn take_out(
    plan: &WindowPlan,
    numbers: &[usize],
    states: &mut [(Accumulator, Removal)],
    row: &[Value],
    context: &EvalContext<'_>,
) -> Result<bool> {
    for (number, (accumulator, removal)) in numbers.iter().zip(states) {
        if !aggregate(plan, *number).take_out(accumulator, removal, row, context)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn take(
    plan: &WindowPlan,
    numbers: &[usize],
    states: &mut [(Accumulator, Removal)],
    removes: bool,
    row: &[Value],
    context: &EvalContext<'_>,
) -> Result<()> {
    for (number, (accumulator, removal)) in numbers.iter().zip(states) {
        let call = aggregate(plan, *number);
        if removes {
            call.take_for_now(accumulator, removal, row, context)?;
        } else {
            call.take(accumulator, row, context)?;
        }
    }
    Ok(())
}

fn aggregate(plan: &WindowPlan, number: usize) -> &AggregateCall {
    match &plan.calls[number] {
        WindowCall::Aggregate(call) => call,
        _ => unreachable!("the numbers of these calls are those of aggregates"),
    }
}
