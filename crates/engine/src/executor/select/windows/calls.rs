//! The values of a window's calls for the current row.

use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::expr::Expr;
use clearway_sql::plan::{WindowCall, WindowPlan};
use clearway_sql::value::Value;

use super::aggregates::Aggregates;
use super::frame::Frame;
use super::partition::{PartitionRows, RowReader};
use super::value_of;
use crate::executor::Execution;

/// The calls of a window.
#[derive(Debug)]
pub(super) struct Calls {
    aggregates: [Aggregates; 2],
    others: Vec<Other>,
    /// The results for the current row.
    results: Vec<Value>,
}

/// State of a call that is no aggregate, from row to row.
#[derive(Debug, Default)]
struct Other {
    reader: RowReader,
    buckets: Option<Buckets>,
}

/// The buckets of `ntile`: the first ones have one row more if the rows do not divide evenly.
#[derive(Debug)]
struct Buckets {
    /// The row that the first bucket begins with.
    first: u64,
    /// Rows of a bucket, of those that have one less.
    rows: u64,
    /// Number of buckets that have one more.
    larger: u64,
}

impl Buckets {
    fn number_of(&self, row: u64) -> u64 {
        let row = row - self.first;
        let in_larger = self.larger * (self.rows + 1);
        match self.rows {
            0 => row + 1,
            _ if row < in_larger => row / (self.rows + 1) + 1,
            rows => self.larger + (row - in_larger) / rows + 1,
        }
    }
}

impl Calls {
    pub(super) fn new(plan: &WindowPlan) -> Calls {
        Calls {
            aggregates: Aggregates::of(plan),
            others: plan.calls.iter().map(|_| Other::default()).collect(),
            results: Vec::new(),
        }
    }

    /// Forgets what belongs to a partition that has ended.
    pub(super) fn begin_partition(&mut self) {
        self.aggregates.iter_mut().for_each(Aggregates::begin_partition);
        self.others.iter_mut().for_each(|other| *other = Other::default());
    }

    /// Appends the values of all calls to the current row.
    pub(super) fn evaluate(
        &mut self,
        execution: &mut Execution<'_>,
        plan: &WindowPlan,
        partition: &PartitionRows,
        frame: &mut Frame,
        row: &mut Vec<Value>,
    ) -> Result<()> {
        self.results.clear();
        self.results.resize(plan.calls.len(), Value::Null);
        for aggregates in &mut self.aggregates {
            aggregates.evaluate(execution, plan, partition, frame)?;
            for (number, result) in aggregates.results() {
                self.results[number].clone_from(result);
            }
        }
        let Calls { others, results, .. } = self;
        let mut here = Here {
            execution,
            partition,
            frame,
            row,
        };
        for ((call, other), result) in plan.calls.iter().zip(others).zip(results.iter_mut()) {
            if !matches!(call, WindowCall::Aggregate(_)) {
                *result = here.value(call, other)?;
            }
        }
        row.append(&mut self.results);
        Ok(())
    }
}

/// The current row and its surroundings.
struct Here<'h, 'e> {
    execution: &'h mut Execution<'e>,
    partition: &'h PartitionRows,
    frame: &'h mut Frame,
    row: &'h [Value],
}

impl Here<'_, '_> {
    fn value(&mut self, call: &WindowCall, other: &mut Other) -> Result<Value> {
        let (current, count) = (self.partition.current(), self.partition.count());
        Ok(match call {
            WindowCall::Aggregate(_) => Value::Null,
            WindowCall::RowNumber => whole(current + 1),
            WindowCall::Rank => whole(self.frame.group_start() + 1),
            WindowCall::DenseRank => whole(self.partition.group() + 1),
            WindowCall::PercentRank if count <= 1 => Value::Float8(0.0),
            WindowCall::PercentRank => Value::Float8(self.frame.group_start() as f64 / (count - 1) as f64),
            WindowCall::CumeDist => {
                let end = self.frame.group_end(self.execution, self.partition)?;
                Value::Float8(end as f64 / count as f64)
            }
            WindowCall::Ntile(buckets) => self.bucket(buckets, other)?,
            WindowCall::Neighbour {
                forward,
                value,
                offset,
                default,
            } => {
                let distance = match offset {
                    None => Some(1),
                    Some(offset) => value_of(self.execution, offset, self.row)?.as_i64(),
                };
                let Some(distance) = distance else {
                    return Ok(Value::Null);
                };
                let distance = if *forward { distance } else { -distance };
                match (current as i64).checked_add(distance) {
                    Some(number) if (0..count as i64).contains(&number) => {
                        self.value_at(value, Some(number as u64), other)?
                    }
                    _ => match default {
                        Some(default) => value_of(self.execution, default, self.row)?,
                        None => Value::Null,
                    },
                }
            }
            WindowCall::First(value) => self.value_at(value, self.frame.nth(0), other)?,
            WindowCall::Last(value) => self.value_at(value, self.frame.last(), other)?,
            WindowCall::Nth(value, number) => {
                let Some(number) = value_of(self.execution, number, self.row)?.as_i64() else {
                    return Ok(Value::Null);
                };
                if number <= 0 {
                    return Err(must_be_positive("22016", "nth_value"));
                }
                self.value_at(value, self.frame.nth(number as u64 - 1), other)?
            }
        })
    }

    /// The value of an expression over another row of the partition; NULL if there is none.
    fn value_at(&mut self, expr: &Expr, number: Option<u64>, other: &mut Other) -> Result<Value> {
        let Some(number) = number else {
            return Ok(Value::Null);
        };
        match other.reader.row(self.partition, number)? {
            Some((row, _)) => value_of(self.execution, expr, row),
            None => Ok(Value::Null),
        }
    }

    /// `ntile`: its argument is evaluated once, at the first row where it is not NULL.
    fn bucket(&mut self, argument: &Expr, other: &mut Other) -> Result<Value> {
        let (current, count) = (self.partition.current(), self.partition.count());
        let buckets = match &other.buckets {
            Some(buckets) => buckets,
            None => {
                let Some(number) = value_of(self.execution, argument, self.row)?.as_i64() else {
                    return Ok(Value::Null);
                };
                if number <= 0 {
                    return Err(must_be_positive("22014", "ntile"));
                }
                other.buckets.insert(Buckets {
                    first: current,
                    rows: count / number as u64,
                    larger: count % number as u64,
                })
            }
        };
        Ok(Value::Int4(buckets.number_of(current) as i32))
    }
}

fn whole(number: u64) -> Value {
    Value::Int8(number as i64)
}

fn must_be_positive(sqlstate: &'static str, function: &str) -> EngineError {
    EngineError::new(
        SqlState::from_code(sqlstate),
        format!("argument of {function} must be greater than zero"),
    )
}
