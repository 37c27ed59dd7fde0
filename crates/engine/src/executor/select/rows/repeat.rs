//! Joins by a loop: for each row of one side, the rows of the other.
//!
//! The inner side is opened again for each outer row if it reads that row (an index lookup, LATERAL); if not, its rows
//! are made once and kept.

use clearway_sql::error::Result;
use clearway_sql::plan::{JoinKind, LoopJoin};
use clearway_sql::value::Value;

use crate::executor::Execution;
use crate::executor::select::rows::{Rows, copied, put, set_null};
use crate::spill::{KeptReader, KeptRows};

/// A running join by a loop.
#[derive(Debug)]
pub(crate) struct LoopRows {
    left: Rows,
    inner: Inner,
    /// The state of the current outer row; `None`: a new one is wanted.
    current: Option<Current>,
}

/// The rows of the inner side.
#[derive(Debug)]
enum Inner {
    /// Opened for each outer row.
    Again,
    /// Not made yet.
    ToKeep,
    Kept(KeptRows),
}

/// The inner rows of an outer row.
#[derive(Debug)]
struct Current {
    rows: InnerRows,
    matched: bool,
}

#[derive(Debug)]
enum InnerRows {
    Made(Box<Rows>),
    Kept(Box<KeptReader>, Vec<Value>),
}

impl LoopRows {
    pub(super) fn open(
        execution: &mut Execution<'_>,
        join: &LoopJoin,
        row: &mut [Value],
    ) -> Result<LoopRows> {
        Ok(LoopRows {
            left: Rows::open(execution, &join.left, row)?,
            inner: if join.keeps_right {
                Inner::ToKeep
            } else {
                Inner::Again
            },
            current: None,
        })
    }

    pub(super) fn next(
        &mut self,
        execution: &mut Execution<'_>,
        join: &LoopJoin,
        row: &mut [Value],
    ) -> Result<bool> {
        loop {
            if self.current.is_none() {
                if !self.left.next(execution, &join.left, row)? {
                    return Ok(false);
                }
                execution.tick()?;
                self.current = Some(Current {
                    rows: self.inner_rows(execution, join, row)?,
                    matched: false,
                });
            }
            let fits = self.next_fitting(execution, join, row)?;
            let Some(current) = &mut self.current else {
                continue;
            };
            let first = fits && !std::mem::replace(&mut current.matched, true);
            let matched = current.matched;
            match join.kind {
                JoinKind::Inner | JoinKind::Left if fits => return Ok(true),
                JoinKind::Semi | JoinKind::Anti if fits => {
                    self.current = None;
                    if first && join.kind == JoinKind::Semi {
                        return Ok(true);
                    }
                }
                // The inner rows are at their end.
                kind => {
                    self.current = None;
                    if !matched && matches!(kind, JoinKind::Left | JoinKind::Anti) {
                        set_null(row, &join.right_columns);
                        return Ok(true);
                    }
                }
            }
        }
    }

    fn inner_rows(
        &mut self,
        execution: &mut Execution<'_>,
        join: &LoopJoin,
        row: &mut [Value],
    ) -> Result<InnerRows> {
        if let Inner::ToKeep = self.inner {
            let mut kept = KeptRows::new(execution.spill);
            let mut rows = Rows::open(execution, &join.right, row)?;
            while rows.next(execution, &join.right, row)? {
                kept.push(&copied(row, &join.right_columns))?;
            }
            kept.finish()?;
            self.inner = Inner::Kept(kept);
        }
        Ok(match &self.inner {
            Inner::Kept(_) => InnerRows::Kept(Box::default(), Vec::new()),
            _ => InnerRows::Made(Box::new(Rows::open(execution, &join.right, row)?)),
        })
    }

    /// Goes to the next inner row that satisfies the condition.
    fn next_fitting(
        &mut self,
        execution: &mut Execution<'_>,
        join: &LoopJoin,
        row: &mut [Value],
    ) -> Result<bool> {
        let Some(current) = &mut self.current else {
            return Ok(false);
        };
        loop {
            let found = match (&mut current.rows, &self.inner) {
                (InnerRows::Made(rows), _) => rows.next(execution, &join.right, row)?,
                (InnerRows::Kept(reader, values), Inner::Kept(kept)) => {
                    execution.tick()?;
                    let found = kept.next(reader, values)?;
                    if found {
                        put(row, &join.right_columns, values);
                    }
                    found
                }
                (InnerRows::Kept(..), _) => false,
            };
            if !found {
                return Ok(false);
            }
            match &join.condition {
                Some(condition) if !execution.evaluating(|context| condition.passes(row, context))? => {}
                _ => return Ok(true),
            }
        }
    }
}
