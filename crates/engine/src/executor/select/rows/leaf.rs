//! Tables, queries, series and values as operators.

use clearway_sql::Expr;
use clearway_sql::error::Result;
use clearway_sql::plan::{SelectPlan, Series, TableScan};
use clearway_sql::value::Value;

use crate::executor::Execution;
use crate::executor::place::place_value;
use crate::executor::scan::ScanRows;
use crate::executor::select::Select;
use crate::executor::series::SeriesRows;

/// The values of expressions over the row.
pub(super) fn evaluated(execution: &mut Execution<'_>, exprs: &[Expr], row: &[Value]) -> Result<Vec<Value>> {
    if exprs.is_empty() {
        return Ok(Vec::new());
    }
    execution.evaluating(|context| exprs.iter().map(|expr| expr.eval(row, context)).collect())
}

/// The rows of a table.
#[derive(Debug)]
pub(crate) struct TableRows {
    scan: ScanRows,
    arguments: Vec<Value>,
}

impl TableRows {
    pub(super) fn open(
        execution: &mut Execution<'_>,
        plan: &TableScan,
        arguments: &[Expr],
        row: &[Value],
    ) -> Result<TableRows> {
        let arguments = evaluated(execution, arguments, row)?;
        let scan = execution.with_arguments(&arguments, |execution| ScanRows::open(execution, plan))?;
        Ok(TableRows { scan, arguments })
    }

    pub(super) fn next(
        &mut self,
        execution: &mut Execution<'_>,
        plan: &TableScan,
        base: u16,
        place: Option<u16>,
        row: &mut [Value],
    ) -> Result<bool> {
        let scan = &mut self.scan;
        let found = execution.with_arguments(&self.arguments, |execution| scan.next(execution, plan))?;
        let Some(tid) = found else { return Ok(false) };
        if let Some(place) = place {
            row[usize::from(place)] = place_value(tid);
        }
        let found = scan.row_mut();
        for column in plan.needed.iter() {
            row[usize::from(base + column)].put(std::mem::take(&mut found[usize::from(column)]));
        }
        Ok(true)
    }
}

/// The rows of a query.
#[derive(Debug)]
pub(crate) struct QueryRows {
    select: Select,
    arguments: Vec<Value>,
}

impl QueryRows {
    pub(super) fn open(
        execution: &mut Execution<'_>,
        plan: &SelectPlan,
        arguments: &[Expr],
        row: &[Value],
    ) -> Result<QueryRows> {
        let arguments = evaluated(execution, arguments, row)?;
        let select = execution.with_arguments(&arguments, |execution| Select::open(execution, plan))?;
        Ok(QueryRows { select, arguments })
    }

    pub(super) fn next(
        &mut self,
        execution: &mut Execution<'_>,
        plan: &SelectPlan,
        base: u16,
        row: &mut [Value],
    ) -> Result<bool> {
        let select = &mut self.select;
        if !execution.with_arguments(&self.arguments, |execution| select.next(execution, plan))? {
            return Ok(false);
        }
        let places = row[usize::from(base)..].iter_mut();
        for (place, value) in places.zip(select.row_mut(plan)) {
            place.put(std::mem::take(value));
        }
        Ok(true)
    }
}

/// The rows of `generate_series`.
#[derive(Debug)]
pub(crate) struct SeriesLeaf {
    /// Without rows if a bound is NULL.
    rows: Option<SeriesRows>,
}

impl SeriesLeaf {
    pub(super) fn open(execution: &mut Execution<'_>, series: &Series, row: &[Value]) -> Result<SeriesLeaf> {
        let rows = execution.evaluating(|context| SeriesRows::open(context, series, row))?;
        Ok(SeriesLeaf { rows })
    }

    pub(super) fn next(
        &mut self,
        execution: &mut Execution<'_>,
        series: &Series,
        base: u16,
        row: &mut [Value],
    ) -> Result<bool> {
        let Some(rows) = &mut self.rows else {
            return Ok(false);
        };
        if !rows.next(execution, series)? {
            return Ok(false);
        }
        row[usize::from(base)] = std::mem::take(&mut rows.row[0]);
        Ok(true)
    }
}

/// Rows of expressions.
#[derive(Debug, Default)]
pub(crate) struct ValuesRows {
    at: usize,
}

impl ValuesRows {
    pub(super) fn next(
        &mut self,
        execution: &mut Execution<'_>,
        plan: &[Vec<Expr>],
        base: u16,
        row: &mut [Value],
    ) -> Result<bool> {
        let Some(exprs) = plan.get(self.at) else {
            return Ok(false);
        };
        self.at += 1;
        execution.tick()?;
        let values = evaluated(execution, exprs, row)?;
        for (at, value) in values.into_iter().enumerate() {
            row[usize::from(base) + at] = value;
        }
        Ok(true)
    }
}
