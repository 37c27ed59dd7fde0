//! Windows: each row with the results of window functions behind it.
//!
//! ```text
//! rows below ─▶ [sort] ─▶ window ─▶ [sort] ─▶ window ─▶ row
//!                           └ the rows of one partition, kept
//! ```
//!
//! # Steps
//! 1. A window that needs its rows in an order of its own reads all of the one before it into a sorter. Otherwise the
//!    rows come in the right order and are taken one by one.
//! 2. The rows of a partition are kept, each with the number of its group: rows that are equal in ORDER BY are a group
//!    (`PartitionRows`). They have `work_mem` bytes, and a temporary file beyond.
//! 3. Row after row is given with the values of the calls. A call sees the rows of its frame, whose bounds are computed
//!    for each row (`frame`).
//!
//! # Rules
//! - W1: the bounds of a frame never move back while the current row goes forward, since an offset is one value for all
//!   rows. So each bound is found by going on from where it was, and its rows are read once.
//! - W2: the state of an aggregate over a frame is the one it has when the frame's rows are taken in their order into a
//!   fresh one, to the last digit. It goes on from row to row as long as that holds (`aggregates`).
//! - W3: no window reads a column that is late (`long_values`): windows keep the places of its values, which are restored
//!   in the rows that come out.
//! - W4: a window keeps no row of a partition that has ended, and what it keeps for reading does not grow with
//!   the partition.
//!
//! | module | job |
//! | --- | --- |
//! | `partition` | the rows of a partition, and places in them |
//! | `frame` | bounds of frames |
//! | `aggregates` | aggregates over frames |
//! | `calls` | the values of window functions |

mod aggregates;
mod calls;
mod frame;
mod partition;

use clearway_sql::checkpoint;
use clearway_sql::error::Result;
use clearway_sql::expr::Expr;
use clearway_sql::plan::{SelectPlan, WindowPlan, WindowStage};
use clearway_sql::value::Value;

use super::Input;
use crate::executor::{Execution, evaluate_row};
use crate::spill::record::{read_row, read_u64, write_row, write_sort_key};
use crate::spill::{Sorted, Sorter};
use calls::Calls;
use frame::{Frame, Offsets};
use partition::PartitionRows;

/// The running windows of a SELECT, apart from their plans.
#[derive(Debug)]
pub(super) struct WindowRows {
    input: Input,
    windows: Vec<Window>,
    row: Vec<Value>,
    /// True if long values of the row were restored behind the windows.
    has_restored: bool,
}

impl WindowRows {
    pub(super) fn new(input: Input, stage: &WindowStage) -> WindowRows {
        WindowRows {
            input,
            windows: stage.windows.iter().map(Window::new).collect(),
            row: Vec::new(),
            has_restored: false,
        }
    }

    /// Goes to the next row, if there is one.
    pub(super) fn next(&mut self, execution: &mut Execution<'_>, plan: &SelectPlan) -> Result<bool> {
        let Some(stage) = &plan.windows else {
            return Ok(false);
        };
        let mut below = Below {
            input: &mut self.input,
            plan,
            stage,
        };
        let found = below.next(execution, &mut self.windows, &mut self.row)?;
        if found {
            let mut places = Vec::new();
            execution.restore_late(&stage.late, &mut self.row, &mut places)?;
            self.has_restored = !places.is_empty();
        }
        Ok(found)
    }

    /// The current row.
    pub(super) fn row(&self) -> &[Value] {
        &self.row
    }

    /// The same, to take values out: the windows keep rows of their own.
    pub(super) fn row_mut(&mut self) -> &mut [Value] {
        &mut self.row
    }

    /// True if long values of the current row were restored behind the windows.
    pub(super) fn has_restored(&self) -> bool {
        self.has_restored
    }
}

/// The source of the rows below the windows.
struct Below<'b> {
    input: &'b mut Input,
    plan: &'b SelectPlan,
    stage: &'b WindowStage,
}

impl Below<'_> {
    /// The next row with the results of the first windows behind it.
    fn next(
        &mut self,
        execution: &mut Execution<'_>,
        windows: &mut [Window],
        row: &mut Vec<Value>,
    ) -> Result<bool> {
        let Some((window, before)) = windows.split_last_mut() else {
            if self.input.next(execution, self.plan)?.is_none() {
                let ended = std::mem::replace(self.input, Input::Done);
                if let Input::Table { rows, .. } = ended {
                    rows.close(execution);
                }
                return Ok(false);
            }
            row.clear();
            row.extend_from_slice(self.input.row());
            row.resize(self.stage.base, Value::Null);
            return Ok(true);
        };
        checkpoint(|| window.next(execution, self, before, row))
    }
}

/// A row that comes to a window.
#[derive(Debug, Default)]
struct Arrival {
    /// The bytes that order it: of its partition's keys, then of its order's.
    key: Vec<u8>,
    /// Number of those of its partition.
    partition: usize,
    row: Vec<Value>,
}

/// A running window.
#[derive(Debug)]
struct Window {
    sorted: Option<Sorted>,
    /// The row that came last: of the next partition, unless that has begun.
    arrival: Arrival,
    state: Progress,
    partition: PartitionRows,
    offsets: Option<Offsets>,
    frame: Frame,
    calls: Calls,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// Nothing has been read.
    New,
    /// A row has come that no partition has yet.
    Waiting,
    /// All rows have come.
    Ended,
}

impl Window {
    fn new(plan: &WindowPlan) -> Window {
        Window {
            sorted: None,
            arrival: Arrival::default(),
            state: Progress::New,
            partition: PartitionRows::none(),
            offsets: None,
            frame: Frame::default(),
            calls: Calls::new(plan),
        }
    }

    /// The next row, into `row`.
    fn next(
        &mut self,
        execution: &mut Execution<'_>,
        below: &mut Below<'_>,
        before: &mut [Window],
        row: &mut Vec<Value>,
    ) -> Result<bool> {
        let plan = &below.stage.windows[before.len()];
        execution.tick()?;
        if self.offsets.is_none() {
            self.offsets = Some(Offsets::evaluate(execution, plan)?);
        }
        let begins = !self.partition.next_row(row)?;
        if begins && !(self.load(execution, plan, below, before)? && self.partition.next_row(row)?) {
            return Ok(false);
        }
        let Some(offsets) = &self.offsets else {
            return Ok(false);
        };
        let Window {
            partition,
            frame,
            calls,
            ..
        } = self;
        frame.move_to(execution, plan, offsets, partition, row)?;
        calls.evaluate(execution, plan, partition, frame, row)?;
        Ok(true)
    }

    /// Keeps the rows of the next partition; `false` if there is none.
    fn load(
        &mut self,
        execution: &mut Execution<'_>,
        plan: &WindowPlan,
        below: &mut Below<'_>,
        before: &mut [Window],
    ) -> Result<bool> {
        if self.state == Progress::New {
            if plan.sorts {
                self.sorted = Some(sort(execution, plan, below, before)?);
            }
            self.arrive(execution, plan, below, before)?;
        }
        if self.state == Progress::Ended {
            return Ok(false);
        }
        let mut partition = PartitionRows::new(execution.spill);
        let mut key = Vec::new();
        loop {
            let arrival = &mut self.arrival;
            partition.push(&mut arrival.row, partition.is_empty() || arrival.key != key)?;
            let bytes = arrival.partition;
            key.clear();
            key.extend_from_slice(&arrival.key);
            self.arrive(execution, plan, below, before)?;
            let arrival = &self.arrival;
            if self.state == Progress::Ended || arrival.key[..arrival.partition] != key[..bytes] {
                break;
            }
        }
        partition.finish()?;
        self.partition = partition;
        self.frame = Frame::default();
        self.calls.begin_partition();
        Ok(true)
    }

    /// Takes the next row.
    fn arrive(
        &mut self,
        execution: &mut Execution<'_>,
        plan: &WindowPlan,
        below: &mut Below<'_>,
        before: &mut [Window],
    ) -> Result<()> {
        execution.tick()?;
        let arrival = &mut self.arrival;
        let found = match &mut self.sorted {
            Some(sorted) => match sorted.next()? {
                Some((key, mut payload)) => {
                    arrival.key.clear();
                    arrival.key.extend_from_slice(key);
                    arrival.partition = read_u64(&mut payload)? as usize;
                    read_row(&mut payload, &mut arrival.row)?;
                    true
                }
                None => false,
            },
            None => {
                let found = below.next(execution, before, &mut arrival.row)?;
                if found {
                    arrival.write_key(execution, plan, below.plan.has_subqueries)?;
                }
                found
            }
        };
        self.state = if found {
            Progress::Waiting
        } else {
            self.sorted = None;
            Progress::Ended
        };
        Ok(())
    }
}

impl Arrival {
    /// The key of the row.
    fn write_key(
        &mut self,
        execution: &mut Execution<'_>,
        plan: &WindowPlan,
        has_subqueries: bool,
    ) -> Result<()> {
        let mut values = execution.scratch.rows.pop().unwrap_or_default();
        values.clear();
        let row = &self.row;
        if has_subqueries {
            execution.evaluating(|context| evaluate_row(&plan.keys, row, context, &mut values))?;
        } else {
            evaluate_row(&plan.keys, row, &execution.eval, &mut values)?;
        }
        self.key.clear();
        let (partition, order) = plan.sort.split_at(plan.partition);
        write_sort_key(&values, partition, &mut self.key);
        self.partition = self.key.len();
        write_sort_key(&values, order, &mut self.key);
        values.clear();
        execution.scratch.rows.push(values);
        Ok(())
    }
}

/// Step 1.
fn sort(
    execution: &mut Execution<'_>,
    plan: &WindowPlan,
    below: &mut Below<'_>,
    before: &mut [Window],
) -> Result<Sorted> {
    let mut sorter = Sorter::new(execution.spill);
    let mut arrival = Arrival::default();
    let mut payload = Vec::new();
    while below.next(execution, before, &mut arrival.row)? {
        arrival.write_key(execution, plan, below.plan.has_subqueries)?;
        payload.clear();
        payload.extend_from_slice(&(arrival.partition as u64).to_be_bytes());
        write_row(&arrival.row, &mut payload);
        sorter.push(&arrival.key, &payload, execution.interrupts)?;
    }
    sorter.finish(execution.interrupts)
}

/// The value of an expression over a row of a partition.
fn value_of(execution: &mut Execution<'_>, expr: &Expr, row: &[Value]) -> Result<Value> {
    match expr {
        Expr::Column(column) => Ok(row[usize::from(*column)].clone()),
        Expr::Constant(value) => Ok(value.clone()),
        other => execution.evaluating(|context| other.eval(row, context)),
    }
}
