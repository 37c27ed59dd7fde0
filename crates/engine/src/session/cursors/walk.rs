//! Going through a cursor's rows.
//!
//! Forwards, a row that was kept is read again, and another is asked of the query. Backwards, rows are kept rows: from the
//! first on, or (`Backwards::RunsAgain`) from the moment when the first step back is asked for, when the query runs once
//! more up to here. The rows are the same, since the snapshot is. So a large table that is only read forwards, as most
//! cursors do, costs no temporary file.

use std::sync::Arc;

use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::{ALL_ROWS, FetchDirection};

use super::Backwards;
use super::kept::Kept;
use super::position::Position;
use crate::executor::Execution;
use crate::output::Output;
use crate::session::portal::PortalRows;

/// The rows of a cursor, and its place among them.
pub(super) struct Walk<'c> {
    /// The query; `None` if it has ended, or was of another transaction.
    pub(super) query: Option<&'c mut PortalRows>,
    pub(super) kept: Option<&'c mut Option<Kept>>,
    pub(super) position: &'c mut Position,
    pub(super) backwards: Backwards,
}

/// The receiver of rows; none for MOVE.
pub(super) type Receiver<'o> = Option<&'o mut dyn Output>;

/// The source of a row.
#[derive(Clone, Copy)]
enum From {
    Query,
    Kept,
}

impl Walk<'_> {
    /// FETCH or MOVE; the number of rows.
    pub(super) fn fetch(
        &mut self,
        execution: &mut Execution<'_>,
        direction: FetchDirection,
        out: &mut Receiver<'_>,
    ) -> Result<u64> {
        match direction {
            FetchDirection::Forward(count) => self.step(execution, count, out),
            FetchDirection::Backward(count) => self.step(execution, count.saturating_neg(), out),
            FetchDirection::Absolute(row) => self.go_to_row(execution, row, out),
            FetchDirection::Relative(0) => self.step(execution, 0, out),
            FetchDirection::Relative(count) => {
                let sign = count.signum();
                self.step_unseen(execution, count - sign)?;
                self.step(execution, sign, out)
            }
        }
    }

    /// Moves this number of rows on, or back; fetches the row that it is on if the number is 0.
    fn step(&mut self, execution: &mut Execution<'_>, count: i64, out: &mut Receiver<'_>) -> Result<u64> {
        match count {
            0 if !self.position.is_on_row() => Ok(0),
            // Not fetched again, so that a cursor that only goes forwards can do it.
            0 if out.is_none() => Ok(1),
            0 => {
                self.back(execution, 1, &mut None)?;
                self.forward(execution, 1, out)
            }
            1.. => self.forward(execution, row_count(count), out),
            _ if out.is_none() && row_count(count) == u64::MAX => {
                let passed = self.position.rows - u64::from(self.position.is_on_row());
                self.rewind(execution)?;
                Ok(passed)
            }
            _ => self.back(execution, row_count(count), out),
        }
    }

    /// Moves this number of rows on, or back, which are not wanted.
    fn step_unseen(&mut self, execution: &mut Execution<'_>, count: i64) -> Result<()> {
        match count {
            0 => {}
            1.. => drop(self.forward(execution, row_count(count), &mut None)?),
            _ => drop(self.back(execution, row_count(count), &mut None)?),
        }
        Ok(())
    }

    /// The row of a number, counted from the start, or from the end if it is negative.
    fn go_to_row(&mut self, execution: &mut Execution<'_>, row: i64, out: &mut Receiver<'_>) -> Result<u64> {
        match row {
            0 => {
                self.rewind(execution)?;
                Ok(0)
            }
            1.. => {
                let before = row_count(row) - 1;
                if self.position.is_at_end && before > self.position.rows {
                    return Ok(0);
                }
                if before < self.position.rows || self.position.is_at_end {
                    self.rewind(execution)?;
                }
                self.skip_to(execution, before)?;
                self.forward(execution, 1, out)
            }
            _ => {
                self.forward(execution, u64::MAX, &mut None)?;
                self.step_unseen(execution, row + 1)?;
                self.back(execution, 1, out)
            }
        }
    }

    /// Goes forwards to the place behind so many rows, at most.
    fn skip_to(&mut self, execution: &mut Execution<'_>, before: u64) -> Result<()> {
        // Kept rows need not be read one by one.
        if let Some(Some(kept)) = self.kept.as_deref()
            && before > self.position.rows
            && kept.has(before - 1)
        {
            self.position.is_at_start = false;
            self.position.go_to(before, None);
            return Ok(());
        }
        let left = before - self.position.rows;
        self.forward(execution, left, &mut None).map(|_| ())
    }

    /// Moves this number of rows on; the number of those that there were.
    pub(super) fn forward(
        &mut self,
        execution: &mut Execution<'_>,
        count: u64,
        out: &mut Receiver<'_>,
    ) -> Result<u64> {
        let mut moved = 0;
        while moved < count && !self.position.is_at_end {
            let Some(from) = self.next(execution)? else {
                self.position.end();
                break;
            };
            moved += 1;
            self.send(from, out)?;
        }
        Ok(moved)
    }

    /// The next row, if there is one; it is the one that the cursor is on.
    fn next(&mut self, execution: &mut Execution<'_>) -> Result<Option<From>> {
        let before = self.position.rows;
        if let Some(Some(kept)) = self.kept.as_deref_mut()
            && kept.has(before)
        {
            execution.tick()?;
            let found = kept.read(before)?;
            self.position.advance(kept.place());
            return Ok(found.then_some(From::Kept));
        }
        let Some(query) = self.query.as_deref_mut() else {
            return Ok(None);
        };
        if !query.next(execution)? {
            return Ok(None);
        }
        if let Some(Some(kept)) = self.kept.as_deref_mut() {
            kept.push(query.row(), query.place())?;
        }
        self.position.advance(query.place());
        Ok(Some(From::Query))
    }

    /// Moves this number of rows back; the number of those that there were.
    fn back(&mut self, execution: &mut Execution<'_>, count: u64, out: &mut Receiver<'_>) -> Result<u64> {
        if self.backwards == Backwards::No {
            return Err(only_forwards());
        }
        if self.position.is_at_start {
            return Ok(0);
        }
        self.keep(execution)?;
        let mut moved = 0;
        while moved < count {
            // Behind the last row, the row before is the last one.
            let row = self.position.rows - u64::from(!self.position.is_at_end);
            if row == 0 {
                self.position.rewind();
                break;
            }
            execution.tick()?;
            let Some(Some(kept)) = self.kept.as_deref_mut() else {
                return Err(EngineError::internal("a row of a cursor was not kept"));
            };
            if !kept.read(row - 1)? {
                return Err(EngineError::internal("a kept row of a cursor is gone"));
            }
            self.position.go_to(row, kept.place());
            moved += 1;
            self.send(From::Kept, out)?;
        }
        Ok(moved)
    }

    /// Before the first row.
    fn rewind(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        let position = &self.position;
        if position.is_at_start && !position.is_at_end {
            return Ok(());
        }
        if self.backwards == Backwards::No {
            return Err(only_forwards());
        }
        self.keep(execution)?;
        self.position.rewind();
        Ok(())
    }

    /// Has all rows so far kept: runs the query once more, if they are not.
    fn keep(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        let Some(kept @ None) = self.kept.as_deref_mut() else {
            return Ok(());
        };
        let Some(query) = self.query.as_deref_mut() else {
            return Err(EngineError::internal("a cursor without rows goes backwards"));
        };
        if let PortalRows::Select { plan, .. } = query {
            *query = PortalRows::Unopened(Arc::clone(plan));
        }
        let kept = kept.insert(Kept::new(execution.spill));
        for _ in 0..self.position.rows {
            if !query.next(execution)? {
                return Err(EngineError::internal("a query has fewer rows than before"));
            }
            kept.push(query.row(), query.place())?;
        }
        Ok(())
    }

    /// Keeps all rows from the place of the cursor on, so that the query is not needed any more; those before too, if the
    /// cursor goes backwards.
    pub(super) fn keep_rest(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        match self.backwards {
            Backwards::No => {
                if let Some(kept) = self.kept.as_deref_mut() {
                    *kept = Some(Kept::behind(execution.spill, self.position.rows));
                }
            }
            Backwards::RunsAgain | Backwards::Keeps => self.keep(execution)?,
        }
        let (Some(query), Some(Some(kept))) = (self.query.as_deref_mut(), self.kept.as_deref_mut()) else {
            return Ok(());
        };
        if !self.position.is_at_end {
            while query.next(execution)? {
                kept.push(query.row(), query.place())?;
            }
        }
        kept.finish()
    }

    fn send(&self, from: From, out: &mut Receiver<'_>) -> Result<()> {
        let Some(out) = out else { return Ok(()) };
        match (from, self.query.as_deref(), self.kept.as_deref()) {
            (From::Query, Some(query), _) => out.row(query.row()),
            (From::Kept, _, Some(Some(kept))) => out.row(kept.row()),
            _ => Err(EngineError::internal("a row of a cursor is nowhere")),
        }
    }
}

/// A number of rows without its sign.
fn row_count(count: i64) -> u64 {
    match count {
        ALL_ROWS => u64::MAX,
        count if count == -ALL_ROWS => u64::MAX,
        count => count.unsigned_abs(),
    }
}

#[cold]
fn only_forwards() -> EngineError {
    EngineError::new(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        "cursor can only scan forward",
    )
    .with_hint("Declare it with SCROLL option to enable backward scan.")
}
