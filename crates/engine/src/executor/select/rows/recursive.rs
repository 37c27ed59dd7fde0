//! Recursive queries: WITH RECURSIVE.
//!
//! # Example
//! `with recursive t (n) as (select 1 union all select n + 1 from t where n < 3) …`
//!
//! ```text
//!   round   term    working table (t in the right term)    rows out, which are the next working table
//!   0       left                                           1
//!   1       right   1                                      2
//!   2       right   2                                      3
//!   3       right   3                                      none: the end
//! ```
//!
//! # Steps
//! 1. A row of the running term goes out at once, and into the next working table. With UNION only a row that is new
//!    does ([`Rounds`]).
//! 2. At the end of a term the next working table takes the place of the working table, and what the queries inside the
//!    right term have kept of the old one is forgotten.
//! 3. If it is empty the query has ended. Otherwise the right term is opened again.
//!
//! Both tables have `work_mem` bytes, and temporary files beyond.

use clearway_sql::error::{EngineError, Result};
use clearway_sql::plan::RecursivePlan;
use clearway_sql::value::Value;

use crate::executor::Execution;
use crate::executor::rounds::Rounds;
use crate::executor::select::Select;
use crate::executor::select::rows::set::converted;
use crate::spill::record::read_row;
use crate::spill::{KeptReader, KeptRows, Sorted};

/// A running recursive query.
#[derive(Debug)]
pub(crate) struct RecursiveRows {
    /// The running term; `None` at its end.
    term: Option<Box<Select>>,
    is_right: bool,
    /// Of UNION.
    rounds: Option<Rounds>,
    /// Rows of the round that came out to be new at its end.
    late: Option<Sorted>,
    next_table: KeptRows,
}

impl RecursiveRows {
    pub(super) fn open(execution: &mut Execution<'_>, plan: &RecursivePlan) -> Result<RecursiveRows> {
        execution.results.inner().working.remove(&plan.working);
        let types = || plan.union.types.clone();
        Ok(RecursiveRows {
            term: Some(Box::new(Select::open(execution, &plan.union.left.0)?)),
            is_right: false,
            rounds: (!plan.union.all).then(|| Rounds::new(types(), execution.spill)),
            late: None,
            next_table: KeptRows::new(execution.spill),
        })
    }

    pub(super) fn next(
        &mut self,
        execution: &mut Execution<'_>,
        plan: &RecursivePlan,
        row: &mut [Value],
    ) -> Result<bool> {
        loop {
            execution.tick()?;
            if let Some(values) = self.next_of_round(execution, plan)? {
                self.next_table.push(&values)?;
                for (place, value) in row[usize::from(plan.union.base)..].iter_mut().zip(values) {
                    *place = value;
                }
                return Ok(true);
            }
            if !self.begin_round(execution, plan)? {
                return Ok(false);
            }
        }
    }

    /// The next row of this round.
    fn next_of_round(
        &mut self,
        execution: &mut Execution<'_>,
        plan: &RecursivePlan,
    ) -> Result<Option<Vec<Value>>> {
        let (side, columns) = match self.is_right {
            true => &plan.union.right,
            false => &plan.union.left,
        };
        if let Some(term) = &mut self.term {
            while term.next(execution, side)? {
                execution.tick()?;
                let values = converted(execution, columns, term.row_mut(side))?;
                let is_new = match &mut self.rounds {
                    Some(rounds) => rounds.take(execution, &values)?,
                    None => true,
                };
                if is_new {
                    return Ok(Some(values));
                }
            }
            if let Some(mut term) = self.term.take() {
                term.close(execution);
            }
            if let Some(rounds) = &mut self.rounds {
                self.late = rounds.end(execution)?;
            }
        }
        let Some(late) = &mut self.late else {
            return Ok(None);
        };
        match late.next()? {
            Some((_, mut payload)) => {
                let mut values = Vec::new();
                read_row(&mut payload, &mut values)?;
                Ok(Some(values))
            }
            None => {
                self.late = None;
                Ok(None)
            }
        }
    }

    /// Steps 2 and 3; `false` at the end.
    fn begin_round(&mut self, execution: &mut Execution<'_>, plan: &RecursivePlan) -> Result<bool> {
        if self.next_table.count() == 0 {
            return Ok(false);
        }
        let mut table = std::mem::replace(&mut self.next_table, KeptRows::new(execution.spill));
        table.finish()?;
        execution.results.inner().working.insert(plan.working, table);
        execution.results.inner().forget(&plan.dependent);
        self.is_right = true;
        self.term = Some(Box::new(Select::open(execution, &plan.union.right.0)?));
        Ok(true)
    }
}

/// A place in a working table.
#[derive(Debug, Default)]
pub(crate) struct WorkingRows {
    reader: KeptReader,
    values: Vec<Value>,
}

impl WorkingRows {
    pub(super) fn next(
        &mut self,
        execution: &mut Execution<'_>,
        number: usize,
        base: u16,
        row: &mut [Value],
    ) -> Result<bool> {
        execution.tick()?;
        let table = execution.results.inner().working.get(&number);
        let table = table.ok_or_else(|| EngineError::internal("a recursive query has no working table"))?;
        if !table.next(&mut self.reader, &mut self.values)? {
            return Ok(false);
        }
        for (place, value) in row[usize::from(base)..].iter_mut().zip(&mut self.values) {
            *place = std::mem::take(value);
        }
        Ok(true)
    }
}
