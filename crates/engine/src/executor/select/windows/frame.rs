//! Frames: the rows of a partition that a call sees from one row.
//!
//! A frame is `head..tail` in the numbers of rows, less what EXCLUDE takes out. With ROWS the bounds are computed from
//! the number of the current row. With RANGE and GROUPS each bound goes on from where it was for the row before (W1)
//! past the rows that lie outside:
//!
//! ```text
//! order by x range between 2 preceding and 1 following      x: 1 2 4 4 5 9
//!                                                  current row:    ▲
//!                                        head: first x >= 4 - 2:   2           tail: first x > 4 + 1: 9
//! ```
//!
//! NULLs are equal to one another and as far as can be from everything else.

use std::ops::Range;

use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::{FrameBound, FrameExclusion, FrameUnit, WindowCall, WindowPlan};
use clearway_sql::value::Value;
use clearway_sql::value::range_offset::{RangeSide, in_range};

use super::partition::{PartitionRows, RowReader};
use super::value_of;
use crate::executor::Execution;

/// The offsets of a frame's bounds, which are the same for all rows.
#[derive(Debug)]
pub(super) struct Offsets {
    start: Value,
    end: Value,
}

impl Offsets {
    /// Evaluates the offsets of a frame; 22004 for NULL, 22013 for a negative number of rows.
    pub(super) fn evaluate(execution: &mut Execution<'_>, plan: &WindowPlan) -> Result<Offsets> {
        let mut evaluated = |bound: &FrameBound, name: &str| -> Result<Value> {
            let Some(offset) = bound.offset() else {
                return Ok(Value::Null);
            };
            let value = value_of(execution, offset, &[])?;
            if value.is_null() {
                return Err(EngineError::new(
                    SqlState::NULL_VALUE_NOT_ALLOWED,
                    format!("frame {name} offset must not be null"),
                ));
            }
            let counts = !matches!(plan.frame.unit, FrameUnit::Range(_));
            if counts && value.as_i64().is_none_or(|offset| offset < 0) {
                return Err(EngineError::new(
                    SqlState::from_code("22013"),
                    format!("frame {name} offset must not be negative"),
                ));
            }
            Ok(value)
        };
        Ok(Offsets {
            start: evaluated(&plan.frame.start, "starting")?,
            end: evaluated(&plan.frame.end, "ending")?,
        })
    }
}

/// A bound that goes forward.
#[derive(Debug, Default)]
struct Bound {
    at: u64,
    reader: RowReader,
}

impl Bound {
    /// Goes on while `outside` holds for the row at the bound and its group.
    fn pass(
        &mut self,
        execution: &mut Execution<'_>,
        partition: &PartitionRows,
        mut outside: impl FnMut(&mut Execution<'_>, &[Value], u64) -> Result<bool>,
    ) -> Result<u64> {
        while let Some((row, group)) = self.reader.row(partition, self.at)? {
            if !outside(execution, row, group)? {
                break;
            }
            execution.tick()?;
            self.at += 1;
        }
        Ok(self.at)
    }
}

/// The frame of the current row, and the group that it belongs to.
#[derive(Debug, Default)]
pub(super) struct Frame {
    head: Bound,
    tail: Bound,
    end_of_group: Bound,
    /// Number of the group's first row.
    group_start: u64,
    group: u64,
    /// The rows of the frame, as far as a call reads it: ranges in order.
    parts: [Range<u64>; 3],
    /// True if `parts` is one range because nothing is excluded.
    whole: bool,
}

impl Frame {
    /// The rows of the frame, as ranges in their order.
    pub(super) fn parts(&self) -> &[Range<u64>; 3] {
        &self.parts
    }

    /// The first and last row of a frame from which nothing is excluded.
    pub(super) fn whole(&self) -> Option<Range<u64>> {
        self.whole.then(|| self.parts[0].clone())
    }

    /// Number of the first row that is equal to the current one in ORDER BY.
    pub(super) fn group_start(&self) -> u64 {
        self.group_start
    }

    /// Number of the row behind the last that is equal to the current one in ORDER BY.
    pub(super) fn group_end(
        &mut self,
        execution: &mut Execution<'_>,
        partition: &PartitionRows,
    ) -> Result<u64> {
        let current = partition.group();
        self.end_of_group
            .pass(execution, partition, |_, _, group| Ok(group <= current))
    }

    /// The number of the frame's row of this number, counted from 0.
    pub(super) fn nth(&self, number: u64) -> Option<u64> {
        let mut left = number;
        for part in &self.parts {
            let length = part.end - part.start;
            if left < length {
                return Some(part.start + left);
            }
            left -= length;
        }
        None
    }

    /// The number of the frame's last row.
    pub(super) fn last(&self) -> Option<u64> {
        let part = self.parts.iter().rev().find(|part| !part.is_empty())?;
        Some(part.end - 1)
    }

    /// Computes the frame of the current row.
    pub(super) fn move_to(
        &mut self,
        execution: &mut Execution<'_>,
        plan: &WindowPlan,
        offsets: &Offsets,
        partition: &PartitionRows,
        row: &[Value],
    ) -> Result<()> {
        if partition.group() != self.group {
            self.group = partition.group();
            self.group_start = partition.current();
        }
        if !plan.calls.iter().any(WindowCall::reads_frame) {
            return Ok(());
        }
        let order_value = match (plan.frame.unit, plan.keys.get(plan.partition)) {
            (FrameUnit::Range(_), Some(key))
                if plan.frame.start.offset().or(plan.frame.end.offset()).is_some() =>
            {
                value_of(execution, key, row)?
            }
            _ => Value::Null,
        };
        let here = Here {
            plan,
            partition,
            order_value: &order_value,
        };
        let head = self.head_of(execution, &here, &offsets.start)?;
        let tail = self.tail_of(execution, &here, &offsets.end)?.max(head);
        let current = partition.current();
        let (first, last) = match plan.frame.exclusion {
            FrameExclusion::NoOthers => (current, current),
            FrameExclusion::CurrentRow => (current, current + 1),
            FrameExclusion::Group | FrameExclusion::Ties => {
                (self.group_start, self.group_end(execution, partition)?)
            }
        };
        let within = |range: Range<u64>| {
            let start = range.start.clamp(head, tail);
            start..range.end.clamp(start, tail)
        };
        self.whole = plan.frame.exclusion == FrameExclusion::NoOthers;
        self.parts = match plan.frame.exclusion {
            FrameExclusion::NoOthers => [head..tail, tail..tail, tail..tail],
            FrameExclusion::Ties => [
                within(head..first),
                within(current..current + 1),
                within(last..tail.max(last)),
            ],
            _ => [
                within(head..first.max(head)),
                tail..tail,
                within(last..tail.max(last)),
            ],
        };
        Ok(())
    }

    /// The number of the frame's first row.
    fn head_of(&mut self, execution: &mut Execution<'_>, here: &Here<'_>, offset: &Value) -> Result<u64> {
        let (current, count) = (here.partition.current(), here.partition.count());
        let group = here.partition.group();
        let rows = offset.as_i64().unwrap_or(0) as u64;
        match (&here.plan.frame.start, here.plan.frame.unit) {
            (FrameBound::Unbounded, _) => Ok(0),
            (FrameBound::CurrentRow, FrameUnit::Rows) => Ok(current),
            (FrameBound::CurrentRow, _) => Ok(self.group_start),
            (FrameBound::Preceding(_), FrameUnit::Rows) => Ok(current.saturating_sub(rows)),
            (FrameBound::Following(_), FrameUnit::Rows) => Ok(current.saturating_add(rows).min(count)),
            (bound, FrameUnit::Groups) => {
                let first = match bound {
                    FrameBound::Preceding(_) => group.saturating_sub(rows),
                    _ => group.saturating_add(rows),
                };
                self.head
                    .pass(execution, here.partition, |_, _, group| Ok(group < first))
            }
            (bound, FrameUnit::Range(_)) => {
                let subtract = matches!(bound, FrameBound::Preceding(_));
                self.head.pass(execution, here.partition, |execution, row, _| {
                    Ok(!here.reaches(execution, row, offset, subtract, RangeSide::AtLeast)?)
                })
            }
        }
    }

    /// The number of the row behind the frame's last one.
    fn tail_of(&mut self, execution: &mut Execution<'_>, here: &Here<'_>, offset: &Value) -> Result<u64> {
        let (current, count) = (here.partition.current(), here.partition.count());
        let group = here.partition.group();
        let rows = offset.as_i64().unwrap_or(0) as u64;
        match (&here.plan.frame.end, here.plan.frame.unit) {
            (FrameBound::Unbounded, _) => Ok(count),
            (FrameBound::CurrentRow, FrameUnit::Rows) => Ok(current + 1),
            (FrameBound::CurrentRow, _) => self.group_end(execution, here.partition),
            (FrameBound::Preceding(_), FrameUnit::Rows) => Ok((current + 1).saturating_sub(rows)),
            (FrameBound::Following(_), FrameUnit::Rows) => Ok((current + 1).saturating_add(rows).min(count)),
            (FrameBound::Preceding(_), FrameUnit::Groups) if rows > group => Ok(0),
            (bound, FrameUnit::Groups) => {
                let last = match bound {
                    FrameBound::Preceding(_) => group - rows,
                    _ => group.saturating_add(rows),
                };
                self.tail
                    .pass(execution, here.partition, |_, _, group| Ok(group <= last))
            }
            (bound, FrameUnit::Range(_)) => {
                let subtract = matches!(bound, FrameBound::Preceding(_));
                self.tail.pass(execution, here.partition, |execution, row, _| {
                    here.reaches(execution, row, offset, subtract, RangeSide::AtMost)
                })
            }
        }
    }
}

/// The current row, as bounds by value see it.
struct Here<'h> {
    plan: &'h WindowPlan,
    partition: &'h PartitionRows,
    /// The value of ORDER BY.
    order_value: &'h Value,
}

impl Here<'_> {
    /// True if a row lies on this side of the bound, in the direction of the order.
    fn reaches(
        &self,
        execution: &mut Execution<'_>,
        row: &[Value],
        offset: &Value,
        subtract: bool,
        side: RangeSide,
    ) -> Result<bool> {
        let order = &self.plan.sort[self.plan.partition];
        let value = value_of(execution, &self.plan.keys[self.plan.partition], row)?;
        let is_behind = match (value.is_null(), self.order_value.is_null()) {
            (true, true) => return Ok(true),
            // A NULL among others, or a value seen from a NULL.
            (true, false) => !order.nulls_first,
            (false, true) => order.nulls_first,
            (false, false) => {
                let (subtract, side) = match (order.descending, side) {
                    (false, side) => (subtract, side),
                    (true, RangeSide::AtMost) => (!subtract, RangeSide::AtLeast),
                    (true, RangeSide::AtLeast) => (!subtract, RangeSide::AtMost),
                };
                return in_range(&value, self.order_value, offset, subtract, side);
            }
        };
        Ok(is_behind == (side == RangeSide::AtLeast))
    }
}
