//! Cursors: statements whose rows are fetched by name. DECLARE makes one, and so does a Bind that names its portal: FETCH
//! and Execute reach both.
//!
//! ```text
//!   Bind ──▶ bound ──first use──▶ open ◀── DECLARE
//!                                  │ all rows are sent, and none can be asked for again ──▶ ended
//!                                  │ COMMIT, WITH HOLD ──▶ held
//!                                  │ an error ──▶ failed
//! ```
//!
//! # Rules
//!
//! - C1: an open cursor reads under the snapshot and the command number of its DECLARE (P1 to P3 of `portal`). So it is
//!   insensitive: what its own transaction changes afterwards is not in its rows.
//! - C2: it is gone when its transaction ends, and when ROLLBACK TO goes back behind its DECLARE. Its position is not taken
//!   back. A held cursor has no transaction: its rows lie in memory and in a temporary file, made before the commit.
//! - C3: rows are made when they are asked for. Going backwards reads rows that were kept (`walk`), so a row is the same
//!   each time that it is fetched.
//! - C4: an error while rows are fetched ends the use of the cursor (55000), also where a savepoint has saved its
//!   transaction: rows may be missing.
//!
//! | module | job |
//! | --- | --- |
//! | `fetch` | FETCH, MOVE, and Execute of a named portal |
//! | `hold` | WITH HOLD, at the commit |
//! | `kept` | rows that have been fetched |
//! | `place` | the row of a table that a cursor is on: WHERE CURRENT OF |
//! | `position` | the place of a cursor among its rows |
//! | `walk` | going through rows, forwards and backwards |

mod fetch;
mod hold;
mod kept;
mod place;
mod position;
mod walk;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::catalog::system::ListedCursor;
use crate::executor::subquery::SubqueryResults;
use crate::session::Session;
use crate::session::portal::{Portal, PortalRows};
use crate::session::prepared::{CachedPlan, Prepared};
use crate::transaction::Phase;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::{Column, DeclareCursor, Resolved, RowsStatement, SelectPlan, Statement};
use clearway_sql::value::Value;
use kept::Kept;
use position::Position;

/// The most cursors and named portals that a session may have.
const CURSORS_MAX: usize = 1_000;

/// The most bytes that their parameters may take.
const PARAMETER_BYTES_MAX: usize = 64 << 20;

/// The cursors of a session, by name.
#[derive(Debug, Default)]
pub(crate) struct Cursors {
    by_name: BTreeMap<String, Cursor>,
}

/// A cursor.
#[derive(Debug)]
struct Cursor {
    /// The statement that has made it.
    text: Arc<str>,
    binary: bool,
    hold: bool,
    /// True once it has outlived its transaction.
    is_held: bool,
    backwards: Backwards,
    /// Microseconds since 2000.
    created_us: i64,
    /// By the session's clock of savepoints.
    made: u64,
    /// The number of its transaction; `None` for a portal that was bound where no transaction was open.
    transaction: Option<u64>,
    described: Described,
    /// About what its parameters take.
    bytes: usize,
    position: Position,
    rows: CursorRows,
}

/// Going backwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Backwards {
    /// Refused.
    No,
    /// The query runs once more when a row is wanted again, and rows are kept from then on.
    RunsAgain,
    /// Rows are kept from the first on.
    Keeps,
}

/// Source of the columns of its rows.
#[derive(Debug)]
enum Described {
    /// Of a portal.
    Prepared(Arc<Prepared>),
    /// Of a query.
    Plan(Arc<CachedPlan>),
}

/// The rows of a cursor.
#[derive(Debug)]
enum CursorRows {
    /// Of a portal that has not run.
    Bound {
        statement: Arc<Prepared>,
        params: Vec<Value>,
    },
    /// Made when they are asked for.
    Open { portal: Box<Portal>, kept: Option<Kept> },
    /// Of a cursor that has outlived its transaction.
    Held(Kept),
    /// There are no more, and none before can be asked for.
    Ended,
    /// An error has ended its use.
    Failed,
}

impl Cursor {
    fn columns(&self) -> Option<&[Column]> {
        match &self.described {
            Described::Prepared(statement) => statement.columns(),
            Described::Plan(cached) => cached.plan.columns.as_deref(),
        }
    }
}

impl Cursors {
    /// True if there are any.
    #[inline]
    pub(super) fn has_some(&self) -> bool {
        !self.by_name.is_empty()
    }

    /// The rows of `pg_cursors`.
    pub(super) fn listed(&self) -> Vec<ListedCursor> {
        let cursors = self.by_name.iter().map(|(name, cursor)| ListedCursor {
            name: name.clone(),
            statement: Arc::clone(&cursor.text),
            is_holdable: cursor.hold,
            is_binary: cursor.binary,
            is_scrollable: cursor.backwards != Backwards::No,
            created_us: cursor.created_us,
        });
        cursors.collect()
    }

    /// 34000 without one of this name.
    pub(super) fn close(&mut self, name: &str) -> Result<()> {
        self.take(name).map(|_| ())
    }

    /// Closes all of them, also those that are held.
    pub(super) fn close_all(&mut self) {
        self.by_name.clear();
    }

    fn take(&mut self, name: &str) -> Result<Cursor> {
        self.by_name.remove(name).ok_or_else(|| no_cursor(name))
    }

    /// Adds one; 42P03 if there is one of this name, 54000 if there are too many.
    fn add(&mut self, name: &str, cursor: Cursor) -> Result<()> {
        if self.by_name.contains_key(name) {
            return Err(EngineError::new(
                SqlState::DUPLICATE_CURSOR,
                format!("cursor \"{name}\" already exists"),
            ));
        }
        let bytes: usize = self.by_name.values().map(|cursor| cursor.bytes).sum();
        let what = if self.by_name.len() >= CURSORS_MAX {
            format!("{CURSORS_MAX} portals are open")
        } else if bytes + cursor.bytes > PARAMETER_BYTES_MAX {
            let megabytes = PARAMETER_BYTES_MAX >> 20;
            format!("the parameters of all portals would take more than {megabytes} MB")
        } else {
            self.by_name.insert(name.to_owned(), cursor);
            return Ok(());
        };
        Err(EngineError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, what)
            .with_hint("Close portals that are not needed any more, or end the transaction."))
    }

    /// The transaction has been committed: those that are not held are gone (C2).
    pub(super) fn committed(&mut self) {
        self.by_name.retain(|_, cursor| cursor.is_held);
    }

    /// The transaction of this number was rolled back: only those stay that were held before.
    pub(super) fn rolled_back(&mut self, transaction: u64) {
        self.by_name
            .retain(|_, cursor| cursor.is_held && cursor.transaction != Some(transaction));
    }

    /// A savepoint was gone back to: those made at its time and later, by the clock of savepoints, are gone.
    pub(super) fn gone_back(&mut self, clock: u64) {
        self.by_name
            .retain(|_, cursor| cursor.is_held || cursor.made < clock);
    }
}

impl Session {
    /// Refuses a DECLARE before anything is locked for it.
    pub(super) fn check_declare(&self, name: &str, hold: bool) -> Result<()> {
        if name.is_empty() {
            return Err(EngineError::new(
                SqlState::INVALID_CURSOR_NAME,
                "invalid cursor name: must not be empty",
            ));
        }
        if !hold && !self.among_others && self.txn.phase != Phase::Block {
            return Err(EngineError::new(
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "DECLARE CURSOR can only be used in transaction blocks",
            ));
        }
        Ok(())
    }

    /// DECLARE. Its tables are locked.
    pub(super) fn declare(
        &mut self,
        text: &Arc<str>,
        cached: &CachedPlan,
        declare: &DeclareCursor<Resolved>,
        params: &[Value],
    ) -> Result<()> {
        let Statement::Rows(RowsStatement::Select(select)) = &declare.query.statement else {
            return Err(EngineError::internal(
                "a cursor is for something else than a query",
            ));
        };
        let query = Arc::new(CachedPlan::of_cursor(cached, &declare.query));
        let mut cursor = self.new_cursor(text, Described::Plan(Arc::clone(&query)), params);
        cursor.binary = declare.binary;
        cursor.hold = declare.hold;
        cursor.backwards = match declare.scroll {
            Some(false) => Backwards::No,
            None if !select.runs_backwards() => Backwards::No,
            None if select.can_run_again() => Backwards::RunsAgain,
            _ => Backwards::Keeps,
        };
        cursor.rows = self.opened(text, query, select, params, cursor.backwards)?;
        self.cursors.add(&declare.name, cursor)
    }

    /// A cursor that is made now.
    fn new_cursor(&self, text: &Arc<str>, described: Described, params: &[Value]) -> Cursor {
        Cursor {
            text: Arc::clone(text),
            binary: false,
            hold: false,
            is_held: false,
            backwards: Backwards::No,
            created_us: self.slot.statement_start_us(),
            made: self.txn.portal_clock(),
            transaction: self.txn.is_open().then(|| self.txn.number()),
            described,
            bytes: params.iter().map(value_bytes).sum(),
            position: Position::default(),
            rows: CursorRows::Failed,
        }
    }

    /// The rows of a query, none of which has been made (C1). Its tables are locked.
    fn opened(
        &mut self,
        text: &Arc<str>,
        cached: Arc<CachedPlan>,
        select: &Arc<SelectPlan>,
        params: &[Value],
        backwards: Backwards,
    ) -> Result<CursorRows> {
        if self.standby.is_some() && !cached.uses.is_empty() {
            self.engine.check_not_diverged()?;
        }
        self.txn
            .take_snapshot_for(&cached.uses, &self.interrupts, self.settings.lock_timeout)?;
        self.spill.bytes_max = self.settings.work_mem;
        Ok(CursorRows::Open {
            kept: (backwards == Backwards::Keeps).then(|| Kept::new(&self.spill)),
            portal: Box::new(Portal {
                text: Arc::clone(text),
                prepared: None,
                cached,
                params: params.to_vec(),
                rows: PortalRows::Unopened(Arc::clone(select)),
                snapshot: self.txn.portal_snapshot(),
                results: SubqueryResults::default(),
            }),
        })
    }

    /// Bind of a portal with a name.
    pub fn bind_portal(
        &mut self,
        name: &str,
        statement: &Arc<Prepared>,
        params: Vec<Value>,
    ) -> Result<(), EngineError> {
        let described = Described::Prepared(Arc::clone(statement));
        let mut cursor = self.new_cursor(&statement.text, described, &params);
        cursor.rows = CursorRows::Bound {
            statement: Arc::clone(statement),
            params,
        };
        self.cursors.add(name, cursor)
    }

    /// True if there is a cursor or portal of this name; and whether it was bound rather than declared.
    pub fn has_portal(&self, name: &str) -> (bool, bool) {
        match self.cursors.by_name.get(name) {
            None => (false, false),
            Some(cursor) => (true, matches!(cursor.described, Described::Prepared(_))),
        }
    }

    /// True for a BINARY cursor.
    pub fn is_binary_cursor(&self, name: &str) -> bool {
        self.cursors.by_name.get(name).is_some_and(|cursor| cursor.binary)
    }

    /// The columns of a cursor or named portal; `None` without rows.
    pub fn portal_columns(&self, name: &str) -> Option<&[Column]> {
        self.cursors.by_name.get(name)?.columns()
    }

    /// The columns of a statement's rows as they would be now: those of FETCH are its cursor's, those of EXECUTE the named
    /// statement's.
    pub fn result_columns<'a>(&'a self, statement: &'a Prepared) -> Option<&'a [Column]> {
        if let Some(cursor) = statement.fetched_cursor() {
            return self.portal_columns(cursor);
        }
        match statement.executed_statement() {
            Some(name) => self.named_statement(name).ok()?.columns(),
            None => statement.columns(),
        }
    }

    /// Closes a cursor or named portal, if there is one.
    pub fn close_portal(&mut self, name: &str) {
        self.cursors.by_name.remove(name);
    }

    /// The client's turn has come, and no transaction is open: all portals are gone but for held cursors.
    pub fn end_portals(&mut self) {
        self.cursors.committed();
    }
}

/// About what a value takes.
fn value_bytes(value: &Value) -> usize {
    size_of::<Value>() + value.as_str().map_or(0, str::len)
}

#[cold]
fn no_cursor(name: &str) -> EngineError {
    EngineError::new(
        SqlState::INVALID_CURSOR_NAME,
        format!("cursor \"{name}\" does not exist"),
    )
}
