//! Operators that are measured.

use clearway_sql::error::Result;
use clearway_sql::plan::MeasuredNode;
use clearway_sql::value::Value;

use crate::executor::Execution;
use crate::executor::measure::{Loop, Stretch};
use crate::executor::select::rows::Rows;

/// A running operator that is measured.
#[derive(Debug)]
pub(crate) struct MeasuredRows {
    rows: Rows,
    current: Loop,
}

impl MeasuredRows {
    pub(super) fn open(
        execution: &mut Execution<'_>,
        measured: &MeasuredNode,
        row: &mut [Value],
    ) -> Result<MeasuredRows> {
        let stretch = Stretch::begin(execution, measured.what);
        let rows = Rows::open(execution, &measured.input, row)?;
        let ns = stretch.end(execution, &measured.counter);
        Ok(MeasuredRows {
            rows,
            current: Loop::opened(&measured.counter, ns),
        })
    }

    pub(super) fn next(
        &mut self,
        execution: &mut Execution<'_>,
        measured: &MeasuredNode,
        row: &mut [Value],
    ) -> Result<bool> {
        let stretch = Stretch::begin(execution, measured.what);
        let found = self.rows.next(execution, &measured.input, row)?;
        let ns = stretch.end(execution, &measured.counter);
        self.current.asked(&measured.counter, ns, found);
        Ok(found)
    }
}
