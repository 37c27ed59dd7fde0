//! FETCH, MOVE, and Execute of a portal that has a name.

use std::sync::Arc;

use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::{FetchCursor, RowsStatement, Statement};

use super::walk::{Receiver, Walk};
use super::{Backwards, Cursor, CursorRows, Described};
use crate::clock;
use crate::executor::subquery::SubqueryResults;
use crate::executor::{Execution, InnerPlans};
use crate::output::Output;
use crate::session::named_output::NamedOutput;
use crate::session::{Completion, Session};

/// Work on the rows of a cursor.
type Work<'w, T> = &'w mut dyn FnMut(&mut Execution<'_>, &mut Walk<'_>, &mut Receiver<'_>) -> Result<T>;

impl Session {
    /// FETCH or MOVE; the number of rows.
    pub(in crate::session) fn fetch(
        &mut self,
        fetch: &FetchCursor,
        describe: bool,
        out: &mut dyn Output,
    ) -> Result<u64> {
        let mut cursor = self.cursors.take(&fetch.name)?;
        let fetched = self.fetch_from(&mut cursor, fetch, describe, out);
        // C4.
        if fetched.is_err() {
            cursor.rows = CursorRows::Failed;
        }
        self.put_back(&fetch.name, cursor);
        fetched
    }

    fn fetch_from(
        &mut self,
        cursor: &mut Cursor,
        fetch: &FetchCursor,
        describe: bool,
        out: &mut dyn Output,
    ) -> Result<u64> {
        if let CursorRows::Failed = cursor.rows {
            return Err(cannot_run(&fetch.name));
        }
        self.open_bound(cursor)?;
        if describe
            && !fetch.is_move
            && let Some(columns) = cursor.columns()
        {
            if cursor.binary {
                out.binary_rows();
            }
            out.row_description(columns)?;
        }
        let out = (!fetch.is_move).then_some(out);
        let direction = fetch.direction;
        self.walk(
            cursor,
            |execution, walk, out| walk.fetch(execution, direction, out),
            out,
        )
    }

    /// Opens a portal that has been bound and has not run, as DECLARE would.
    fn open_bound(&mut self, cursor: &mut Cursor) -> Result<()> {
        let CursorRows::Bound { statement, params } = &cursor.rows else {
            return Ok(());
        };
        let (statement, params) = (Arc::clone(statement), params.clone());
        let cached = self.current_plan(&statement)?;
        let cached = self.lock_tables(&statement, cached)?;
        self.check_access(&cached)?;
        let select = match &cached.plan.statement {
            Statement::Rows(RowsStatement::Select(select)) if cached.plan.changes.is_empty() => {
                Arc::clone(select)
            }
            _ => {
                return Err(EngineError::not_supported(
                    "FETCH from a portal that has not run, of another statement than a query",
                ));
            }
        };
        cursor.rows = self.opened(&statement.text, cached, &select, &params, Backwards::No)?;
        Ok(())
    }

    /// Calls `work` with the rows of a cursor.
    pub(super) fn walk<T>(
        &mut self,
        cursor: &mut Cursor,
        mut work: impl FnMut(&mut Execution<'_>, &mut Walk<'_>, &mut Receiver<'_>) -> Result<T>,
        out: Receiver<'_>,
    ) -> Result<T> {
        let Cursor {
            rows,
            position,
            backwards,
            described,
            ..
        } = cursor;
        let backwards = *backwards;
        let done = match rows {
            CursorRows::Open { portal, kept } => {
                self.txn.exchange_snapshot(&mut portal.snapshot);
                let inner = Arc::clone(&portal.cached);
                let mut walk = Walk {
                    query: Some(&mut portal.rows),
                    kept: Some(kept),
                    position,
                    backwards,
                };
                let results = &mut portal.results;
                let done = self.with_execution(
                    &portal.params,
                    InnerPlans::of(&inner.plan),
                    results,
                    |execution, _| work_named(execution, described, &mut walk, out, &mut work),
                );
                // On an error as well: the cursor is dropped with its own snapshot.
                self.txn.exchange_snapshot(&mut portal.snapshot);
                done
            }
            CursorRows::Held(_) | CursorRows::Ended | CursorRows::Bound { .. } | CursorRows::Failed => {
                let mut kept = match std::mem::replace(rows, CursorRows::Ended) {
                    CursorRows::Held(kept) => Some(kept),
                    other => {
                        *rows = other;
                        None
                    }
                };
                let mut walk = Walk {
                    query: None,
                    kept: Some(&mut kept),
                    position,
                    backwards,
                };
                let (inner, mut results) = (InnerPlans::default(), SubqueryResults::default());
                let done = self.with_execution(&[], inner, &mut results, |execution, _| {
                    work_named(execution, described, &mut walk, out, &mut work)
                });
                if let Some(kept) = kept {
                    *rows = CursorRows::Held(kept);
                }
                done
            }
        };
        // Its snapshot holds back the horizon for nothing from here on.
        if position.is_at_end
            && backwards == Backwards::No
            && matches!(rows, CursorRows::Open { .. })
            && !cursor.hold
        {
            *rows = CursorRows::Ended;
        }
        done
    }

    /// Puts a cursor back that was taken out, unless it has gone with its transaction meanwhile.
    fn put_back(&mut self, name: &str, mut cursor: Cursor) {
        let is_open = self.txn.is_open();
        let is_of_this = cursor.transaction.is_none() || cursor.transaction == Some(self.txn.number());
        let stays = cursor.is_held
            || match is_open {
                true => is_of_this && !self.txn.phase.is_failed(),
                false => cursor.transaction.is_none(),
            };
        if stays {
            if is_open && !cursor.is_held {
                cursor.transaction = Some(self.txn.number());
            }
            self.cursors.by_name.insert(name.to_owned(), cursor);
        }
    }

    /// Execute of a portal or cursor by its name: sends at most `max_rows` rows (0: all). True if there may be more.
    pub fn execute_portal(
        &mut self,
        name: &str,
        max_rows: u32,
        out: &mut dyn Output,
    ) -> Result<bool, EngineError> {
        let mut cursor = self.cursors.take(name)?;
        let sent = match std::mem::replace(&mut cursor.rows, CursorRows::Failed) {
            CursorRows::Bound { statement, params } => {
                let completion = self.execute(&statement, &params, max_rows, out);
                completion.map(|completion| match completion {
                    Completion::Complete => {
                        cursor.position.end();
                        cursor.rows = CursorRows::Ended;
                        false
                    }
                    Completion::Suspended(portal) => {
                        cursor.position.is_at_start = false;
                        cursor.position.rows = u64::from(max_rows);
                        cursor.position.place = portal.rows.place();
                        cursor.rows = CursorRows::Open { portal, kept: None };
                        true
                    }
                })
            }
            CursorRows::Failed => {
                let refused = self.fail(cannot_run(name));
                Err(refused)
            }
            rows => {
                cursor.rows = rows;
                self.go_on(name, &mut cursor, max_rows, out)
            }
        };
        if sent.is_err() {
            cursor.rows = CursorRows::Failed;
        }
        self.put_back(name, cursor);
        sent
    }

    /// Sends the next rows of a cursor, as a call of its own.
    fn go_on(
        &mut self,
        name: &str,
        cursor: &mut Cursor,
        max_rows: u32,
        out: &mut dyn Output,
    ) -> Result<bool> {
        self.begin_call();
        let sent = self.go_on_inner(name, cursor, max_rows, out);
        self.end_call();
        sent
    }

    fn go_on_inner(
        &mut self,
        name: &str,
        cursor: &mut Cursor,
        max_rows: u32,
        out: &mut dyn Output,
    ) -> Result<bool> {
        self.slot.begin_statement(&cursor.text, clock::now_us());
        self.interrupts.begin(self.settings.statement_timeout);
        self.txn.set_deadlock_timeout(&self.settings);
        if let Some(refusal) = self.refusal(false) {
            self.went_idle();
            return Err(refusal);
        }
        if cursor.columns().is_none() {
            return Err(self.fail(cannot_run(name)));
        }
        self.txn.begin_answer(true, &self.settings);
        let counted = match &cursor.described {
            Described::Prepared(prepared) if self.settings.counts_statements => Some(Arc::clone(prepared)),
            _ => None,
        };
        let counted = counted.map(|prepared| (self.begin_counts(&prepared), prepared));
        let most = match max_rows {
            0 => u64::MAX,
            rows => u64::from(rows),
        };
        let sent = self.interrupts.check().and_then(|()| {
            let rows = self.walk(
                cursor,
                |execution, walk, out| walk.forward(execution, most, out),
                Some(out),
            )?;
            self.txn.end_statement();
            if cursor.position.is_at_end {
                self.set_portal_tag(cursor, rows);
                out.complete(self.tag.as_str())?;
            } else {
                self.slot.counts.rows_told(rows);
            }
            Ok(!cursor.position.is_at_end)
        });
        match sent {
            Ok(more) => {
                self.end_answer(false)?;
                if let Some((meter, prepared)) = &counted {
                    self.add_to_counts(prepared, meter);
                }
                Ok(more)
            }
            Err(error) => Err(self.fail(error)),
        }
    }

    fn set_portal_tag(&mut self, cursor: &Cursor, rows: u64) {
        match (&cursor.rows, &cursor.described) {
            (CursorRows::Open { portal, .. }, _) => {
                let cached = Arc::clone(&portal.cached);
                self.set_tag(&cached, Some(rows));
            }
            (_, Described::Plan(cached)) => {
                let cached = Arc::clone(cached);
                self.set_tag(&cached, Some(rows));
            }
            _ => {
                self.slot.counts.rows_told(rows);
                self.tag.count("SELECT", rows);
            }
        }
    }
}

/// Does the work, with names instead of numbers in the rows that go out.
fn work_named<T>(
    execution: &mut Execution<'_>,
    described: &Described,
    walk: &mut Walk<'_>,
    out: Receiver<'_>,
    work: Work<'_, T>,
) -> Result<T> {
    let columns = match described {
        Described::Prepared(statement) => statement.columns(),
        Described::Plan(cached) => cached.plan.columns.as_deref(),
    };
    match (out, columns) {
        (Some(out), Some(columns)) if crate::session::named_output::has_names(Some(columns)) => {
            let mut named = NamedOutput::new(out, execution.eval.session, columns);
            work(execution, walk, &mut Some(&mut named))
        }
        // A shorter life than the one it came with.
        (Some(out), _) => work(execution, walk, &mut Some(out as &mut dyn Output)),
        (None, _) => work(execution, walk, &mut None),
    }
}

#[cold]
fn cannot_run(name: &str) -> EngineError {
    EngineError::new(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("portal \"{name}\" cannot be run"),
    )
}
