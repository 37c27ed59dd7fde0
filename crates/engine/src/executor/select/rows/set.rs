//! UNION, INTERSECT and EXCEPT.
//!
//! UNION ALL gives one side after the other. Everything else sorts the rows of both sides by the bytes that tell their columns
//! from others (of a long value its digest), and counts those of each side.

use clearway_sql::error::Result;
use clearway_sql::plan::{SelectPlan, SetOperator, SetPlan};
use clearway_sql::value::sent::is_long;
use clearway_sql::value::{Value, encode_identities};

use crate::executor::Execution;
use crate::executor::select::{Select, take_row};
use crate::spill::record::{read_row, write_row};
use crate::spill::{Sorted, Sorter};

/// A running set operation.
#[derive(Debug)]
pub(crate) enum SetRows {
    /// UNION ALL: the side that is read, and if it is the right one.
    Chained { select: Option<Select>, right: bool },
    /// The rows of both sides, sorted.
    Counted(Box<Counted>),
}

#[derive(Debug)]
pub(crate) struct Counted {
    sorted: Sorted,
    /// The key of the rows that are counted, and the first of them.
    key: Vec<u8>,
    row: Vec<Value>,
    /// The row after them, if it has been read.
    ahead: Option<(Vec<u8>, bool, Vec<Value>)>,
    /// Copies of the row that still come out.
    copies: u64,
}

impl SetRows {
    pub(super) fn open(execution: &mut Execution<'_>, plan: &SetPlan) -> Result<SetRows> {
        if plan.operator == SetOperator::Union && plan.all {
            return Ok(SetRows::Chained {
                select: Some(Select::open(execution, &plan.left.0)?),
                right: false,
            });
        }
        let mut sorter = Sorter::new(execution.spill);
        for (is_right, (side, columns)) in [(false, &plan.left), (true, &plan.right)] {
            let mut select = Select::open(execution, side)?;
            while select.next(execution, side)? {
                let values = converted(execution, columns, select.row_mut(side))?;
                let key = encode_identities(&values, &plan.types);
                let mut payload = vec![u8::from(is_right)];
                write_row(&values, &mut payload);
                // Before the sorter copies them once more.
                drop(values);
                sorter.push(&key, &payload, execution.interrupts)?;
            }
            select.close(execution);
        }
        Ok(SetRows::Counted(Box::new(Counted {
            sorted: sorter.finish(execution.interrupts)?,
            key: Vec::new(),
            row: Vec::new(),
            ahead: None,
            copies: 0,
        })))
    }

    pub(super) fn next(
        &mut self,
        execution: &mut Execution<'_>,
        plan: &SetPlan,
        row: &mut [Value],
    ) -> Result<bool> {
        let base = usize::from(plan.base);
        match self {
            SetRows::Chained { select, right } => loop {
                let (side, columns): (&SelectPlan, _) = if *right {
                    (&plan.right.0, &plan.right.1)
                } else {
                    (&plan.left.0, &plan.left.1)
                };
                let running = match select {
                    Some(running) => running,
                    None => select.insert(Select::open(execution, side)?),
                };
                if running.next(execution, side)? {
                    for (at, value) in converted(execution, columns, running.row_mut(side))?
                        .into_iter()
                        .enumerate()
                    {
                        row[base + at] = value;
                    }
                    return Ok(true);
                }
                if let Some(mut ended) = select.take() {
                    ended.close(execution);
                }
                if std::mem::replace(right, true) {
                    *select = None;
                    return Ok(false);
                }
            },
            SetRows::Counted(counted) => {
                while counted.copies == 0 {
                    execution.tick()?;
                    if !counted.count(plan)? {
                        return Ok(false);
                    }
                }
                counted.copies -= 1;
                let is_last = counted.copies == 0;
                for (place, value) in row[base..].iter_mut().zip(&mut counted.row) {
                    match is_last {
                        true => *place = std::mem::take(value),
                        false => place.clone_from(value),
                    }
                }
                Ok(true)
            }
        }
    }
}

/// A side's row in the types of the result. Long values are taken out of it.
pub(super) fn converted(
    execution: &mut Execution<'_>,
    columns: &[clearway_sql::Expr],
    row: &mut [Value],
) -> Result<Vec<Value>> {
    if row.iter().any(is_long) {
        let mut values = Vec::with_capacity(columns.len());
        take_row(execution, columns, row, &mut values)?;
        return Ok(values);
    }
    columns
        .iter()
        .map(|column| column.eval(row, &execution.eval))
        .collect()
}

impl Counted {
    /// Counts the rows of the next key; `false` at the end.
    fn count(&mut self, plan: &SetPlan) -> Result<bool> {
        let (mut left, mut right) = (0_u64, 0_u64);
        match self.ahead.take() {
            Some((key, is_right, row)) => {
                self.key = key;
                self.row = row;
                *(if is_right { &mut right } else { &mut left }) += 1;
            }
            None => {
                let Some((key, payload)) = self.sorted.next()? else {
                    return Ok(false);
                };
                self.key = key.to_vec();
                let is_right = payload[0] != 0;
                read_row(&mut &payload[1..], &mut self.row)?;
                *(if is_right { &mut right } else { &mut left }) += 1;
            }
        }
        while let Some((key, payload)) = self.sorted.next()? {
            let is_right = payload[0] != 0;
            if key != self.key {
                let mut row = Vec::new();
                read_row(&mut &payload[1..], &mut row)?;
                self.ahead = Some((key.to_vec(), is_right, row));
                break;
            }
            *(if is_right { &mut right } else { &mut left }) += 1;
        }
        self.copies = match (plan.operator, plan.all) {
            (SetOperator::Union, _) => 1,
            (SetOperator::Intersect, true) => left.min(right),
            (SetOperator::Intersect, false) => left.min(right).min(1),
            (SetOperator::Except, true) => left.saturating_sub(right),
            (SetOperator::Except, false) => u64::from(left > 0 && right == 0),
        };
        Ok(true)
    }
}
