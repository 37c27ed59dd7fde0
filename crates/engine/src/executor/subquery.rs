//! Queries inside expressions, run when the expression asks.
//!
//! An expression is evaluated with a [`Runner`], which has the execution while the evaluation lasts. A query that needs
//! nothing of the row around it gives the same rows each time, so they are kept for the rest of the statement: as far
//! as they have been read, or as a set of keys.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};

use clearway_sql::context::{EvalContext, KeyOfRow, Membership, QueryContext, RunSubqueries};
use clearway_sql::error::{EngineError, Result};
use clearway_sql::value::Value;

use crate::executor::Execution;
use crate::executor::key_hash::KeyHash;
use crate::executor::select::Select;
use crate::executor::select::rows::shared::SharedQueries;
use crate::spill::{KeptReader, KeptRows};

/// Bytes of an entry of a set beside its key.
const ENTRY_BYTES: usize = 48;

/// The rows of a statement's inner queries: none until the first of them runs. Every statement makes one, and most have
/// no such query.
#[derive(Debug, Default)]
pub(crate) struct SubqueryResults(Option<Box<InnerRows>>);

const _: () = assert!(size_of::<SubqueryResults>() == size_of::<usize>());

impl SubqueryResults {
    /// The rows, for a query to look at and to add to.
    pub(crate) fn inner(&mut self) -> &mut InnerRows {
        self.0.get_or_insert_default()
    }
}

/// The rows of queries that need nothing of the row around them, by the queries' numbers.
#[derive(Debug, Default)]
pub(crate) struct InnerRows {
    rows: BTreeMap<usize, Read>,
    keys: BTreeMap<usize, Keys>,
    /// Common table expressions.
    pub(crate) shared: SharedQueries,
    /// The rows that recursive queries gave in the round before, by the numbers of their working tables.
    pub(super) working: BTreeMap<usize, KeptRows>,
}

impl InnerRows {
    /// Forgets the rows of queries, which are to be made anew.
    pub(super) fn forget(&mut self, numbers: &[usize]) {
        for number in numbers {
            self.rows.remove(number);
            self.keys.remove(number);
            self.shared.forget(*number);
        }
    }
}

/// The rows of a query as far as they have been read.
#[derive(Debug)]
struct Read {
    rows: KeptRows,
    /// True if there are no more.
    all: bool,
}

/// The keys of a query's rows.
#[derive(Debug)]
struct Keys {
    set: HashSet<Box<[u8]>, KeyHash>,
    nulls: bool,
    empty: bool,
}

/// Has the execution while an expression is evaluated.
struct Runner<'r, 'e>(RefCell<&'r mut Execution<'e>>);

impl Execution<'_> {
    /// Evaluates something that may have queries inside it.
    pub(crate) fn evaluating<T>(&mut self, work: impl FnOnce(&EvalContext<'_>) -> Result<T>) -> Result<T> {
        let eval = self.eval;
        let runner = Runner(RefCell::new(self));
        let query = QueryContext {
            arguments: eval.query.map_or(&[], |query| query.arguments),
            subqueries: Some(&runner),
        };
        work(&eval.within(&query))
    }

    /// Calls `work` with the execution of a query that has these arguments.
    pub(crate) fn with_arguments<T>(
        &mut self,
        arguments: &[Value],
        work: impl FnOnce(&mut Execution<'_>) -> Result<T>,
    ) -> Result<T> {
        let query = QueryContext {
            arguments,
            subqueries: None,
        };
        let mut inner = Execution {
            storage: self.storage,
            txn: &mut *self.txn,
            eval: self.eval.within(&query),
            interrupts: self.interrupts,
            lock_timeout: self.lock_timeout,
            virtual_rows: self.virtual_rows,
            spill: self.spill,
            maintenance_bytes: self.maintenance_bytes,
            scratch: &mut *self.scratch,
            identity: self.identity,
            login: self.login,
            subqueries: self.subqueries,
            changes: self.changes,
            accesses: self.accesses,
            results: &mut *self.results,
            ticks: self.ticks,
            removed: self.removed,
        };
        let result = work(&mut inner);
        (self.ticks, self.removed) = (inner.ticks, inner.removed);
        result
    }

    /// Runs a query of an expression, until `each` wants no more; true if it came to its end.
    fn run_subquery(
        &mut self,
        number: usize,
        arguments: &[Value],
        each: &mut dyn FnMut(&[Value]) -> Result<bool>,
    ) -> Result<bool> {
        let plan = self.subqueries.get(number);
        let plan = plan.ok_or_else(|| EngineError::internal("a statement has no such subquery"))?;
        self.with_arguments(arguments, |execution| {
            let mut select = Select::open(execution, plan)?;
            let mut ended = true;
            while select.next(execution, plan)? {
                if !each(select.row(plan))? {
                    ended = false;
                    break;
                }
            }
            select.close(execution);
            Ok(ended)
        })
    }

    /// As [`run_subquery`](Self::run_subquery), of a query without arguments: from the rows that are kept, if they are
    /// enough.
    fn kept_subquery(&mut self, number: usize, each: &mut dyn FnMut(&[Value]) -> Result<bool>) -> Result<()> {
        let mut seen = 0;
        if let Some(read) = self.results.inner().rows.get(&number) {
            let (mut reader, mut row) = (KeptReader::default(), Vec::new());
            while read.rows.next(&mut reader, &mut row)? {
                seen += 1;
                if !each(&row)? {
                    return Ok(());
                }
            }
            if read.all {
                return Ok(());
            }
        }
        let mut rows = KeptRows::new(self.spill);
        let all = self.run_subquery(number, &[], &mut |row| {
            rows.push(row)?;
            // The rows that were kept have been looked at.
            match rows.count() > seen {
                true => each(row),
                false => Ok(true),
            }
        })?;
        rows.finish()?;
        self.results.inner().rows.insert(number, Read { rows, all });
        Ok(())
    }
}

impl RunSubqueries for Runner<'_, '_> {
    fn rows(
        &self,
        number: usize,
        arguments: &[Value],
        each: &mut dyn FnMut(&[Value]) -> Result<bool>,
    ) -> Result<()> {
        let execution = &mut **self.0.borrow_mut();
        if arguments.is_empty() {
            return execution.kept_subquery(number, each);
        }
        execution.run_subquery(number, arguments, each).map(|_| ())
    }

    fn find(&self, number: usize, key: &[u8], key_of_row: KeyOfRow<'_>) -> Result<Membership> {
        let execution = &mut **self.0.borrow_mut();
        if !execution.results.inner().keys.contains_key(&number) {
            let mut keys = Keys {
                set: HashSet::default(),
                nulls: false,
                empty: true,
            };
            let (bytes_max, mut bytes) = (execution.spill.bytes_max, 0);
            let all = execution.run_subquery(number, &[], &mut |row| {
                keys.empty = false;
                match key_of_row(row)? {
                    None => keys.nulls = true,
                    Some(found) => {
                        let added = found.len() + ENTRY_BYTES;
                        if keys.set.insert(found.into_boxed_slice()) {
                            bytes += added;
                        }
                    }
                }
                Ok(bytes <= bytes_max)
            })?;
            if !all {
                // Too many for a set: the rows are kept, in a file, and looked through.
                return looked_through(execution, number, key, key_of_row);
            }
            execution.results.inner().keys.insert(number, keys);
        }
        let Some(keys) = execution.results.inner().keys.get(&number) else {
            return Err(EngineError::internal("a subquery's keys were lost"));
        };
        Ok(match (keys.empty, keys.set.contains(key), keys.nulls) {
            (true, ..) => Membership::Empty,
            (_, true, _) => Membership::Found,
            (_, _, true) => Membership::MissingAmongNulls,
            _ => Membership::Missing,
        })
    }
}

/// Looks for a key in all rows of a query.
fn looked_through(
    execution: &mut Execution<'_>,
    number: usize,
    key: &[u8],
    key_of_row: KeyOfRow<'_>,
) -> Result<Membership> {
    let mut membership = Membership::Empty;
    execution.kept_subquery(number, &mut |row| {
        match key_of_row(row)? {
            Some(found) if found == key => {
                membership = Membership::Found;
                return Ok(false);
            }
            Some(_) if membership == Membership::Empty => membership = Membership::Missing,
            Some(_) => {}
            None => membership = Membership::MissingAmongNulls,
        }
        Ok(true)
    })?;
    Ok(membership)
}
