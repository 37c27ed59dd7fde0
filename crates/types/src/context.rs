//! The context of an expression's evaluation beside the row: parameters, and facts of its session.

use crate::catalog_facts::CatalogFacts;
use crate::error::{EngineError, Result, SqlState};
use crate::value::Value;

/// The facts that evaluation can ask of the session it runs in.
pub trait SessionFacts {
    /// Start of the transaction, as a timestamptz value (`now()`).
    fn transaction_timestamp(&self) -> i64;
    /// The id of the transaction; `None` if it has none.
    fn transaction_id(&self) -> Option<u64> {
        None
    }
    /// The id of the transaction, assigned now if it has none.
    fn assigned_transaction_id(&self) -> Result<u64> {
        Err(EngineError::not_supported("the id of a transaction here"))
    }
    /// Start of the statement, as a timestamptz value.
    fn statement_timestamp(&self) -> i64;
    /// The session's number.
    fn backend_pid(&self) -> i32;
    /// The database's name.
    fn database(&self) -> &str;
    /// The name of the role whose privileges count.
    fn user(&self) -> &str;
    /// The name of the session's role.
    fn session_user(&self) -> &str {
        self.user()
    }
    /// A setting's value as SHOW gives it.
    fn setting(&self, name: &str) -> Option<String>;
    /// The next number of an identity column's sequence.
    fn next_serial(&self, sequence: u32) -> Result<i64>;
    /// A random number in 0 ≤ x < 1.
    fn random(&self) -> f64;
    /// Bytes that cannot be foreseen.
    fn random_bytes(&self) -> Result<[u8; 16]>;
    /// An error if the statement is to stop.
    fn check_interrupts(&self) -> Result<()>;
    /// Sleeps; an error if the statement is ended meanwhile.
    fn sleep(&self, duration: std::time::Duration) -> Result<()>;
    /// Changes a setting as SET does; its new value as SHOW gives it.
    fn set_setting(&self, name: &str, value: Option<&str>, local: bool) -> Result<String>;
    /// The server's position in its log; of a standby, and of a primary that was one, also in the log that it receives.
    fn log_position(&self, which: LogPosition) -> Option<u64>;
    /// True if the server is a standby.
    fn is_in_recovery(&self) -> bool;
    /// The time at which the last transaction ended whose end a standby has replayed, as a timestamptz value.
    fn last_replayed_commit(&self) -> Option<i64>;
    /// Asks for the standby to be promoted, and waits for it that long, if given; returns true if it was promoted.
    fn promote(&self, patience: Option<std::time::Duration>) -> Result<bool>;
    /// Has a standby pause replay, or go on with it.
    fn pause_replay(&self, _pauses: bool) -> Result<()> {
        Err(EngineError::internal("replay outside a session"))
    }
    /// The state of a standby's pause of replay, in PostgreSQL's words.
    fn replay_pause(&self) -> Result<&'static str> {
        Err(EngineError::internal("replay outside a session"))
    }
    /// Goes on with the log in its next file; the position at which that begins.
    fn switch_log_file(&self) -> Result<u64> {
        Err(EngineError::internal("a log outside a session"))
    }
    /// The name of the log's file that a position lies in; of one between two files, of the first of them.
    fn log_file(&self, _position: u64) -> Result<String> {
        Err(EngineError::internal("a log outside a session"))
    }
    /// Has the server read its configuration again; whether it could.
    fn reload_configuration(&self) -> Result<bool>;
    /// Resets the counts of the database, or of one table; of the server, if it is named.
    fn reset_counts(&self, _of: CountsToReset<'_>) -> Result<()> {
        Err(EngineError::internal("counts are reset outside a session"))
    }
    /// Forgets the counts of the statements of a role, of a database and of a number; 0: of each.
    fn reset_statements(&self, _role: u32, _database: u32, _number: i64) -> Result<()> {
        Err(EngineError::internal("statements are counted outside a session"))
    }
    /// Notes a notification, which the transaction's commit sends.
    fn notify(&self, _channel: &str, _payload: &str) -> Result<()> {
        Err(EngineError::internal("a notification outside a session"))
    }
    /// The channels that the session listens on.
    fn listening_channels(&self) -> Vec<String> {
        Vec::new()
    }
    /// The part of the room for notifications that is taken, 0 to 1.
    fn notification_queue_usage(&self) -> f64 {
        0.0
    }
    /// Takes an advisory lock, for the transaction or for the session; true if it has it. Without `wait` it takes what is
    /// free at once.
    fn lock_advisory(&self, _lock: AdvisoryLock, _for_transaction: bool, _wait: bool) -> Result<bool> {
        Err(EngineError::internal("an advisory lock outside a session"))
    }
    /// Gives a lock of the session back once; false, and a warning, if it does not have it.
    fn unlock_advisory(&self, _lock: AdvisoryLock) -> Result<bool> {
        Err(EngineError::internal("an advisory lock outside a session"))
    }
    /// Gives back all advisory locks of the session; those of the transaction stay.
    fn unlock_all_advisory(&self) {}
    /// The sessions that a session waits for in order to get a lock.
    fn blocking_pids(&self, _pid: i32) -> Vec<i32> {
        Vec::new()
    }
    /// The sessions that a session waits for until its snapshot is known to be safe or not.
    fn safe_snapshot_blocking_pids(&self, _pid: i32) -> Vec<i32> {
        Vec::new()
    }
    /// Ends the statement of a session; false, and a warning, if there is no such session.
    fn cancel_backend(&self, _pid: i32) -> Result<bool> {
        Err(EngineError::internal("a statement is canceled outside a session"))
    }
    /// Ends a session, and waits that long until it is gone; true if it was told to, or if it is gone when that was
    /// waited for.
    fn terminate_backend(&self, _pid: i32, _patience: Option<std::time::Duration>) -> Result<bool> {
        Err(EngineError::internal("a session is ended outside a session"))
    }
    /// The place (block and slot) of the row that a cursor is on in the table of this number and name; `None` if the table
    /// has none there.
    fn cursor_place(&self, cursor: &str, table: u32, name: &str) -> Result<Option<(u32, u16)>>;
    /// The version at a place (block and slot) of the table of this number; `None` if there is none any more.
    fn row_version(&self, _table: u32, _place: (u32, u16)) -> Result<Option<RowVersion>> {
        Err(EngineError::internal("a row's version outside a session"))
    }
    /// The catalog, as the session sees it.
    fn catalog(&self) -> Result<&dyn CatalogFacts>;
}

/// Counts that a function resets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountsToReset<'a> {
    /// Of the database and all its tables.
    Database,
    /// Of the table of this number.
    Relation(u32),
    /// Of a part of the server, by PostgreSQL's name of it.
    Server(&'a str),
}

/// The header of a version of a row: transactions and commands, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowVersion {
    /// The transaction that made it.
    pub xmin: u64,
    /// The transaction that replaced, deleted or locked it, whatever became of that transaction; 0 without one.
    pub xmax: u64,
    /// The command that made it.
    pub cmin: u32,
    /// The command that replaced or deleted it; 0 without one.
    pub cmax: u32,
}

/// The number, or the pair of numbers, that names an advisory lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdvisoryKey {
    /// The first number of a pair, or the upper half of one number.
    pub high: u32,
    /// The second, or the lower half.
    pub low: u32,
    /// True for a pair.
    pub is_pair: bool,
}

/// An advisory lock in one of its two modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdvisoryLock {
    /// Its name.
    pub key: AdvisoryKey,
    /// Shared, or exclusive.
    pub shared: bool,
}

/// A place in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogPosition {
    /// The end of what is logged.
    Inserted,
    /// The end of what is durable.
    Flushed,
    /// The end of what a standby has received.
    Received,
    /// The end of what a standby has replayed.
    Replayed,
}

/// Facts for places without a session (tests, folding constants): the questions that need one are errors.
pub struct NoSession;

impl SessionFacts for NoSession {
    fn transaction_timestamp(&self) -> i64 {
        0
    }
    fn statement_timestamp(&self) -> i64 {
        0
    }
    fn backend_pid(&self) -> i32 {
        0
    }
    fn database(&self) -> &str {
        ""
    }
    fn user(&self) -> &str {
        ""
    }
    fn setting(&self, _name: &str) -> Option<String> {
        None
    }
    fn next_serial(&self, _sequence: u32) -> Result<i64> {
        Err(EngineError::internal(
            "a sequence was asked for a number outside a session",
        ))
    }
    fn random(&self) -> f64 {
        0.0
    }
    fn random_bytes(&self) -> Result<[u8; 16]> {
        Err(EngineError::internal("randomness outside a session"))
    }
    fn check_interrupts(&self) -> Result<()> {
        Ok(())
    }
    fn sleep(&self, _duration: std::time::Duration) -> Result<()> {
        Err(EngineError::internal("sleep outside a session"))
    }
    fn set_setting(&self, _name: &str, _value: Option<&str>, _local: bool) -> Result<String> {
        Err(EngineError::internal("a setting is changed outside a session"))
    }
    fn log_position(&self, _which: LogPosition) -> Option<u64> {
        None
    }
    fn is_in_recovery(&self) -> bool {
        false
    }
    fn last_replayed_commit(&self) -> Option<i64> {
        None
    }
    fn promote(&self, _patience: Option<std::time::Duration>) -> Result<bool> {
        Err(EngineError::internal("a promotion outside a session"))
    }
    fn reload_configuration(&self) -> Result<bool> {
        Ok(false)
    }
    fn cursor_place(&self, _cursor: &str, _table: u32, _name: &str) -> Result<Option<(u32, u16)>> {
        Err(EngineError::internal("a cursor is asked for outside a session"))
    }
    fn catalog(&self) -> Result<&dyn CatalogFacts> {
        Err(EngineError::internal("the catalog is asked outside a session"))
    }
}

/// The context of an evaluation beside the row.
#[derive(Clone, Copy)]
pub struct EvalContext<'a> {
    /// `$1`, `$2`, …
    pub params: &'a [Value],
    /// The session.
    pub session: &'a dyn SessionFacts,
    /// The query around, of an expression inside a query that is run for the rows of another, or that runs others.
    pub query: Option<&'a QueryContext<'a>>,
    /// The value of the step before, while the steps of an expression are evaluated.
    pub previous: Option<&'a Value>,
    /// Bytes of the values that the expressions around this one keep meanwhile.
    pub kept: usize,
}

/// Gives the key of a row; `None` for NULL.
pub type KeyOfRow<'k> = &'k mut dyn FnMut(&[Value]) -> Result<Option<Vec<u8>>>;

/// Runs the queries that expressions contain, by their numbers in the statement's list.
pub trait RunSubqueries {
    /// Gives the rows of a query for these arguments, until `each` wants no more.
    fn rows(
        &self,
        number: usize,
        arguments: &[Value],
        each: &mut dyn FnMut(&[Value]) -> Result<bool>,
    ) -> Result<()>;

    /// Looks for a key among those of a query's rows. The query has no arguments; it runs once. A row without a key is
    /// a NULL.
    fn find(&self, number: usize, key: &[u8], key_of_row: KeyOfRow<'_>) -> Result<Membership>;
}

/// The outcome of looking for a key among a query's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    /// There are no rows.
    Empty,
    /// A row has it.
    Found,
    /// No row has it.
    Missing,
    /// No row has it, and some are NULL.
    MissingAmongNulls,
}

/// The query that an expression is evaluated for.
#[derive(Clone, Copy)]
pub struct QueryContext<'a> {
    /// The values of `Expr::Outer(n)`.
    pub arguments: &'a [Value],
    /// Runs the queries inside the expression, where it may have any.
    pub subqueries: Option<&'a dyn RunSubqueries>,
}

/// The most bytes that the values of an expression may have while others of it are evaluated. A value may have 1 GB,
/// and each of the levels of an expression keeps some.
const KEPT_MAX: usize = 1 << 30;

impl<'a> EvalContext<'a> {
    /// A context.
    pub fn new(params: &'a [Value], session: &'a dyn SessionFacts) -> EvalContext<'a> {
        EvalContext {
            params,
            session,
            query: None,
            previous: None,
            kept: 0,
        }
    }

    /// This context for the expressions of a query.
    #[inline]
    pub fn within<'b>(&self, query: &'b QueryContext<'b>) -> EvalContext<'b>
    where
        'a: 'b,
    {
        EvalContext {
            query: Some(query),
            ..*self
        }
    }

    /// The argument of this number of the query around.
    #[inline]
    pub fn outer(&self, number: u16) -> Result<&'a Value> {
        self.query
            .and_then(|query| query.arguments.get(usize::from(number)))
            .ok_or_else(|| EngineError::internal("a query has too few arguments"))
    }

    /// The runner of the queries inside an expression.
    pub fn subqueries(&self) -> Result<&'a dyn RunSubqueries> {
        self.query
            .and_then(|query| query.subqueries)
            .ok_or_else(|| EngineError::internal("a subquery is evaluated where none can run"))
    }

    /// This context while one more value of `bytes` is kept; 54000 when that is too much.
    #[inline]
    pub fn keeping(&self, bytes: usize) -> Result<EvalContext<'a>> {
        let kept = self.kept + bytes;
        if kept > KEPT_MAX {
            return Err(EngineError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                "expression too large: its intermediate values may have 1 GB together",
            ));
        }
        Ok(EvalContext { kept, ..*self })
    }
}
