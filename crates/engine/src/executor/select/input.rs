//! The source of the rows that a SELECT projects: a table, a series, groups, windows, or operators.

use clearway_sql::error::{EngineError, Result};
use clearway_sql::plan::{MeasuredSource, Node, RowsPlan, SelectPlan, Source};
use clearway_sql::value::Value;
use clearway_sql::value::sent::is_long;
use clearway_storage::heap::Tid;

use crate::executor::Execution;
use crate::executor::group::GroupRows;
use crate::executor::measure::{Loop, Stretch};
use crate::executor::scan::ScanRows;
use crate::executor::select::count;
use crate::executor::select::project::RestoredRow;
use crate::executor::select::rows::Rows;
use crate::executor::select::windows::WindowRows;
use crate::executor::series::SeriesRows;

/// The source of the rows that are projected.
#[derive(Debug, Default)]
pub(super) enum Input {
    /// No more, or none at all.
    #[default]
    Done,
    /// One empty row.
    OneRow,
    /// `generate_series`
    Series(SeriesRows),
    /// A table, and how many rows have come from it.
    Table { rows: ScanRows, passed: u64 },
    /// Grouping
    Groups(Box<GroupRows>),
    /// Operators over one row.
    Rows(Box<RowsInput>),
    /// Any of these, measured.
    Measured(Box<MeasuredInput>),
    /// Windows over one of the others.
    Windows(Box<WindowRows>),
}

#[cold]
fn opened_by_another_plan() -> EngineError {
    EngineError::internal("rows are read by another plan than the one that has opened them")
}

/// Operators and the row that they work on.
#[derive(Debug)]
pub(super) struct RowsInput {
    rows: Rows,
    row: Vec<Value>,
    /// The columns of the current row whose long values were restored, and what the operators have there.
    places: Vec<(u16, Value)>,
    /// True if the operators read nothing of the row that they have given.
    is_given_up: bool,
}

impl RowsInput {
    /// Goes to the next row. The operators find what they left in it (J4 of `rows::merge`).
    fn next(&mut self, execution: &mut Execution<'_>, plan: &RowsPlan) -> Result<bool> {
        for (column, place) in self.places.drain(..) {
            self.row[usize::from(column)] = place;
        }
        let found = self.rows.next(execution, &plan.node, &mut self.row)?;
        if found {
            execution.restore_late(&plan.late, &mut self.row, &mut self.places)?;
        }
        Ok(found)
    }

    /// See [`Input::restored_row`].
    fn restored_row(&mut self) -> Option<RestoredRow<'_>> {
        let restored = match self.places.is_empty() {
            false => Some(&self.places[..]),
            true if self.is_given_up && self.row.iter().any(is_long) => None,
            true => return None,
        };
        Some(RestoredRow {
            row: &mut self.row,
            restored,
        })
    }
}

/// True if an operator reads nothing of the row that it has given.
fn is_given_up(node: &Node) -> bool {
    match node {
        Node::Query { .. } | Node::Set(_) => true,
        Node::Filter { input, .. } => is_given_up(input),
        _ => false,
    }
}

/// An input that is measured.
#[derive(Debug)]
pub(super) struct MeasuredInput {
    input: Input,
    current: Loop,
}

impl MeasuredInput {
    fn open(execution: &mut Execution<'_>, measured: &MeasuredSource) -> Result<MeasuredInput> {
        let counters = &measured.counters;
        let stretch = Stretch::begin(execution, counters.what);
        let input = Input::open(execution, &measured.plan)?;
        let ns = stretch.end(execution, &counters.source);
        Ok(MeasuredInput {
            input,
            current: Loop::opened(&counters.source, ns),
        })
    }

    fn next(
        &mut self,
        execution: &mut Execution<'_>,
        measured: &MeasuredSource,
    ) -> Result<Option<Option<Tid>>> {
        let counters = &measured.counters;
        let stretch = Stretch::begin(execution, counters.what);
        let found = self.input.next(execution, &measured.plan)?;
        let ns = stretch.end(execution, &counters.source);
        self.current.asked(&counters.source, ns, found.is_some());
        Ok(found)
    }
}

impl Input {
    pub(super) fn open(execution: &mut Execution<'_>, plan: &SelectPlan) -> Result<Input> {
        Ok(match &plan.source {
            Source::Measured(measured) => {
                Input::Measured(Box::new(MeasuredInput::open(execution, measured)?))
            }
            Source::OneRow => Input::OneRow,
            Source::Rows(rows) => {
                let mut row = vec![Value::Null; rows.width];
                Input::Rows(Box::new(RowsInput {
                    rows: Rows::open(execution, &rows.node, &mut row)?,
                    row,
                    places: Vec::new(),
                    is_given_up: is_given_up(&rows.node),
                }))
            }
            Source::Series(series) => match SeriesRows::open(&execution.eval, series, &[])? {
                Some(rows) => Input::Series(rows),
                None => Input::Done,
            },
            Source::Table(scan) => Input::Table {
                rows: ScanRows::open(execution, scan)?,
                passed: 0,
            },
        })
    }

    /// Goes to the next row: where it lies, if it lies in a table; `None` at the end.
    pub(super) fn next(
        &mut self,
        execution: &mut Execution<'_>,
        plan: &SelectPlan,
    ) -> Result<Option<Option<Tid>>> {
        match (&mut *self, &plan.source, &plan.aggregate) {
            (Input::Table { rows, passed }, Source::Table(scan), _) => {
                if plan.stop_after.is_some_and(|most| *passed >= most) {
                    return Ok(None);
                }
                let found = rows.next(execution, scan)?;
                *passed += 1;
                return Ok(found.map(Some));
            }
            (Input::Series(rows), Source::Series(series), _) => {
                return Ok(rows.next(execution, series)?.then_some(None));
            }
            (Input::Groups(rows), _, Some(aggregate)) => {
                while rows.next(aggregate)? {
                    execution.tick()?;
                    let row = rows.row();
                    let passes = match &aggregate.having {
                        None => true,
                        Some(having) => execution.evaluating(|context| having.passes(row, context))?,
                    };
                    if passes {
                        execution.restore_late(&aggregate.late, rows.row_mut(), &mut Vec::new())?;
                        count(plan, |counters| &counters.aggregate);
                        return Ok(Some(None));
                    }
                }
            }
            (Input::Rows(input), Source::Rows(rows), _) => {
                return Ok(input.next(execution, rows)?.then_some(None));
            }
            (Input::Measured(input), Source::Measured(measured), _) => {
                return input.next(execution, measured);
            }
            (Input::Windows(rows), _, _) => {
                return Ok(rows.next(execution, plan)?.then_some(None));
            }
            (Input::OneRow, _, _) => {
                *self = Input::Done;
                return Ok(Some(None));
            }
            (Input::Done, _, _) => {}
            // As if the rows had ended, some would be missing without a word.
            _ => return Err(opened_by_another_plan()),
        }
        Ok(None)
    }

    /// The current row, if it has long values that may be taken out: those that were restored, and those of rows that nothing
    /// else has.
    pub(super) fn restored_row(&mut self) -> Option<RestoredRow<'_>> {
        match self {
            Input::Table { rows, .. } if rows.has_restored() => Some(RestoredRow {
                row: rows.row_mut(),
                restored: None,
            }),
            Input::Rows(input) => input.restored_row(),
            Input::Groups(rows) if rows.row().iter().any(is_long) => Some(RestoredRow {
                row: rows.row_mut(),
                restored: None,
            }),
            Input::Windows(rows) if rows.has_restored() => Some(RestoredRow {
                row: rows.row_mut(),
                restored: None,
            }),
            Input::Measured(measured) => measured.input.restored_row(),
            _ => None,
        }
    }

    /// The current row.
    #[inline]
    pub(super) fn row(&self) -> &[Value] {
        match self {
            Input::Table { rows, .. } => rows.row(),
            Input::Series(rows) => &rows.row,
            Input::Groups(rows) => rows.row(),
            Input::Rows(input) => &input.row,
            Input::Measured(measured) => measured.input.row(),
            Input::Windows(rows) => rows.row(),
            Input::Done | Input::OneRow => &[],
        }
    }
}
