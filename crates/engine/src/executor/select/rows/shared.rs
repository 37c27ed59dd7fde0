//! Common table expressions whose rows are made once, for all that read them.
//!
//! # Example
//! Two readers of one query, whose rows are a b c d …:
//!
//! ```text
//!                 kept so far      first reader     second reader
//!   first  asks   a                a                             the query makes a row
//!   first  asks   a b              b                             and another
//!   second asks   a b              b                a            it is there
//!   second asks   a b              b                b
//!   second asks   a b c            b                c            now the second reader has the query make one
//! ```
//!
//! # Rules
//! - S1: the query makes a row when the reader that is furthest wants one more, and not before. So LIMIT ends a query
//!   without end.
//! - S2: a row is kept until the end of the statement, within `work_mem` and then in a temporary file.
//! - S3: a query with arguments has the rows of one set of them; a reader with others begins anew. There is no reader
//!   of the earlier rows then: the query that has the WITH has ended, or has been opened again.
//! - S4: a statement that changes rows runs to its end at the first row that is asked for. One that no reader has asked
//!   runs when the main statement has ended (`Execution::run_change`). All run under one snapshot and one command
//!   number, so none sees what another does.

use std::collections::BTreeMap;

use clearway_sql::error::{EngineError, Result};
use clearway_sql::plan::SelectPlan;
use clearway_sql::value::Value;

use crate::executor::Execution;
use crate::executor::select::Select;
use crate::spill::record::write_row;
use crate::spill::{KeptReader, KeptRows};

/// The common table expressions of a statement that have been read, by number.
#[derive(Debug, Default)]
pub(crate) struct SharedQueries {
    /// Absent while the query makes a row.
    queries: BTreeMap<usize, Option<Box<SharedQuery>>>,
    /// Number of times that a query was begun.
    begun: u64,
}

impl SharedQueries {
    /// Forgets the rows of one.
    pub(crate) fn forget(&mut self, number: usize) {
        self.queries.remove(&number);
    }

    fn get(&mut self, number: usize) -> Result<&mut SharedQuery> {
        let query = self.queries.get_mut(&number).and_then(Option::as_deref_mut);
        query.ok_or_else(lost)
    }
}

/// A common table expression, as far as it has been read.
#[derive(Debug)]
struct SharedQuery {
    arguments: Vec<Value>,
    /// Tells it from the same one with other arguments.
    run: u64,
    rows: KeptRows,
    making: Making,
}

/// The rows that are yet to be made.
#[derive(Debug)]
enum Making {
    All,
    Rest(Box<Select>),
    None,
}

/// True if no query can tell these from those: a NaN is itself, and -0 is not 0.
fn are_same(one: &[Value], other: &[Value]) -> bool {
    let bytes = |values: &[Value]| {
        let mut bytes = Vec::new();
        write_row(values, &mut bytes);
        bytes
    };
    one.len() == other.len() && (one.is_empty() || bytes(one) == bytes(other))
}

/// A place in the rows of a common table expression.
#[derive(Debug)]
pub(crate) struct SharedReader {
    number: usize,
    run: u64,
    reader: KeptReader,
    values: Vec<Value>,
}

impl SharedReader {
    /// A place before the first row.
    pub(super) fn open(execution: &mut Execution<'_>, number: usize, arguments: Vec<Value>) -> SharedReader {
        let shared = &mut execution.results.inner().shared;
        let known = match shared.queries.get(&number) {
            Some(Some(query)) if are_same(&query.arguments, &arguments) => Some(query.run),
            _ => None,
        };
        let run = known.unwrap_or_else(|| {
            shared.begun += 1;
            let query = SharedQuery {
                arguments,
                run: shared.begun,
                rows: KeptRows::new(execution.spill),
                making: Making::All,
            };
            shared.queries.insert(number, Some(Box::new(query)));
            shared.begun
        });
        SharedReader {
            number,
            run,
            reader: KeptReader::default(),
            values: Vec::new(),
        }
    }

    /// Puts the next row into the columns from `base` on, if there is one.
    pub(super) fn next(
        &mut self,
        execution: &mut Execution<'_>,
        base: u16,
        row: &mut [Value],
    ) -> Result<bool> {
        execution.tick()?;
        if !self.find(execution)? {
            return Ok(false);
        }
        for (place, value) in row[usize::from(base)..].iter_mut().zip(&mut self.values) {
            *place = std::mem::take(value);
        }
        Ok(true)
    }

    fn find(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        let query = execution.results.inner().shared.get(self.number)?;
        if query.run != self.run {
            return Err(lost());
        }
        if query.kept(&mut self.reader, &mut self.values)? {
            return Ok(true);
        }
        if let Making::None = query.making {
            return Ok(false);
        }
        if execution
            .changes
            .iter()
            .any(|change| change.number == self.number)
        {
            execution.run_change(self.number)?;
            let query = execution.results.inner().shared.get(self.number)?;
            return query.kept(&mut self.reader, &mut self.values);
        }
        let plan = execution.shared_plan(self.number)?;
        let mut query = execution.taken(self.number)?;
        let made = query.make(execution, plan, &mut self.values)?;
        if made {
            query.rows.skip_all(&mut self.reader);
        }
        execution
            .results
            .inner()
            .shared
            .queries
            .insert(self.number, Some(query));
        Ok(made)
    }
}

impl SharedQuery {
    /// The next row for a reader among those that are kept.
    fn kept(&mut self, reader: &mut KeptReader, values: &mut Vec<Value>) -> Result<bool> {
        if reader.passed() >= self.rows.count() {
            return Ok(false);
        }
        if self.rows.next(reader, values)? {
            return Ok(true);
        }
        self.rows.flush()?;
        self.rows.next(reader, values)
    }

    /// Makes a row and keeps it; `false` at the end.
    fn make(
        &mut self,
        execution: &mut Execution<'_>,
        plan: &SelectPlan,
        values: &mut Vec<Value>,
    ) -> Result<bool> {
        let SharedQuery {
            arguments,
            rows,
            making,
            ..
        } = self;
        execution.with_arguments(arguments, |execution| {
            if let Making::All = making {
                *making = Making::Rest(Box::new(Select::open(execution, plan)?));
            }
            let Making::Rest(select) = making else {
                return Ok(false);
            };
            if select.next(execution, plan)? {
                values.clear();
                values.extend_from_slice(select.row(plan));
                rows.push(values)?;
                return Ok(true);
            }
            if let Making::Rest(mut select) = std::mem::replace(making, Making::None) {
                select.close(execution);
            }
            rows.finish()?;
            Ok(false)
        })
    }
}

impl<'a> Execution<'a> {
    /// Has `run` make all rows of a statement of WITH that changes rows, unless they have been made; S4.
    pub(crate) fn make_all(
        &mut self,
        number: usize,
        run: impl FnOnce(&mut Execution<'_>, &mut KeptRows) -> Result<()>,
    ) -> Result<()> {
        if !self.results.inner().shared.queries.contains_key(&number) {
            SharedReader::open(self, number, Vec::new());
        }
        let mut query = self.taken(number)?;
        if let Making::All = query.making {
            let rows = &mut query.rows;
            self.with_arguments(&[], |execution| run(execution, rows))?;
            query.rows.finish()?;
            query.making = Making::None;
        }
        self.results.inner().shared.queries.insert(number, Some(query));
        Ok(())
    }

    fn shared_plan(&self, number: usize) -> Result<&'a SelectPlan> {
        self.subqueries.get(number).map(|plan| &**plan).ok_or_else(lost)
    }

    /// Takes a query out, for as long as it makes rows.
    fn taken(&mut self, number: usize) -> Result<Box<SharedQuery>> {
        let query = self.results.inner().shared.queries.get_mut(&number);
        query.and_then(Option::take).ok_or_else(lost)
    }
}

#[cold]
fn lost() -> EngineError {
    EngineError::internal("the rows of a common table expression were lost")
}
