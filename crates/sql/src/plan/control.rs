//! Statements about the transaction, the session and maintenance: no row goes through a plan.
//!
//! [`ControlStatement`] is the one type of such a statement from its text to its end. The parser makes it with the names
//! as they are written; binding looks these up, and changes nothing else. The two forms are its two [`Stage`]s:
//!
//! | stage | a table of VACUUM | a column of ANALYZE | a type of PREPARE | arguments of EXECUTE | the query of DECLARE |
//! | --- | --- | --- | --- | --- | --- |
//! | `AsRead`, of the parser | its name | its name | its text | syntax trees | a syntax tree |
//! | [`Resolved`] | its definition | its number | the type | expressions with their types | a plan |

use super::cursor::{DeclareCursor, FetchCursor};
use super::stage::{Resolved, Stage};
use super::wait_for_lsn::WaitForLsn;
use crate::explained::ExplainOptions;
use crate::plan::IntoTable;

/// A table of VACUUM or ANALYZE.
#[derive(Debug, Clone)]
pub struct MaintainedTable<S: Stage = Resolved> {
    /// The table.
    pub table: S::Table,
    /// The columns to analyze; `None` = all.
    pub columns: Option<Vec<S::Column>>,
}

/// A statement about the transaction, the session, or maintenance. All but LOCK TABLE take no relation lock before they
/// run, and begin no transaction.
#[derive(Debug, Clone)]
pub enum ControlStatement<S: Stage = Resolved> {
    /// Nothing but blanks and comments.
    Empty,
    /// BEGIN, START TRANSACTION
    Begin(TransactionModes),
    /// COMMIT, END; with AND CHAIN when true
    Commit {
        /// True if a new transaction starts at once.
        chain: bool,
    },
    /// ROLLBACK, ABORT
    Rollback {
        /// True if a new transaction starts at once.
        chain: bool,
    },
    /// SAVEPOINT name
    Savepoint(String),
    /// RELEASE SAVEPOINT name
    Release(String),
    /// ROLLBACK TO SAVEPOINT name
    RollbackTo(String),
    /// SET TRANSACTION, or SET SESSION CHARACTERISTICS AS TRANSACTION
    SetTransaction {
        /// The modes to set.
        modes: TransactionModes,
        /// For the session's later transactions rather than this one.
        session: bool,
    },
    /// SET name = value
    Set {
        /// The setting, lower case.
        name: String,
        /// Its value; `None` = DEFAULT.
        value: Option<String>,
        /// For this transaction only.
        local: bool,
    },
    /// ALTER SYSTEM SET name = value, ALTER SYSTEM RESET name
    AlterSystem {
        /// The key of the configuration, lower case; `None` = ALL, of RESET.
        name: Option<String>,
        /// Its value; `None` = DEFAULT, or RESET.
        value: Option<String>,
    },
    /// CREATE EXTENSION of one that is always there.
    CreateExtension {
        /// Its name.
        name: String,
        /// IF NOT EXISTS
        if_not_exists: bool,
    },
    /// RESET name; `None` = ALL
    Reset(Option<String>),
    /// SHOW name
    Show(String),
    /// SHOW ALL
    ShowAll,
    /// VACUUM, with or without ANALYZE
    Vacuum {
        /// The tables; none = all.
        tables: Vec<MaintainedTable<S>>,
        /// Also ANALYZE.
        analyze: bool,
        /// Tells what it does.
        verbose: bool,
    },
    /// ANALYZE
    Analyze {
        /// The tables; none = all.
        tables: Vec<MaintainedTable<S>>,
        /// Tells what it does.
        verbose: bool,
    },
    /// LOCK TABLE, for the rest of the transaction
    Lock {
        /// The tables.
        tables: Vec<S::Table>,
        /// The mode.
        mode: TableLockMode,
        /// NOWAIT: 55P03 if a lock cannot be had at once.
        no_wait: bool,
    },
    /// CHECKPOINT
    Checkpoint,
    /// PREPARE name (types) AS statement
    Prepare {
        /// Its name.
        name: String,
        /// The declared parameter types.
        types: Vec<S::ParameterType>,
        /// The statement's text.
        sql: String,
        /// Characters in front of it in the text that the client has sent.
        before: u32,
    },
    /// EXECUTE name (arguments)
    Execute {
        /// Its name.
        name: String,
        /// The arguments.
        arguments: S::Arguments,
        /// EXPLAIN EXECUTE: the options of EXPLAIN.
        explained: Option<ExplainOptions>,
    },
    /// CREATE TABLE … AS EXECUTE name (arguments)
    ExecuteInto {
        /// Its name.
        name: String,
        /// The arguments.
        arguments: S::Arguments,
        /// The table that its rows go to.
        into: Box<IntoTable>,
    },
    /// DEALLOCATE name; `None` = ALL
    Deallocate(Option<String>),
    /// DECLARE name CURSOR FOR query
    Declare(DeclareCursor<S>),
    /// FETCH and MOVE
    Fetch(FetchCursor),
    /// CLOSE name; `None` = ALL
    Close(Option<String>),
    /// LISTEN channel
    Listen(String),
    /// UNLISTEN channel; `None` = all
    Unlisten(Option<String>),
    /// NOTIFY channel, payload
    Notify {
        /// The channel.
        channel: String,
        /// The text that it brings.
        payload: String,
    },
    /// WAIT FOR LSN
    WaitForLsn(WaitForLsn),
    /// DROP DATABASE: of one that is not there, for there is one alone, which the session is in.
    DropDatabase {
        /// Its name.
        name: String,
        /// A notice instead of an error if it is not there.
        if_exists: bool,
    },
    /// DISCARD ALL
    DiscardAll,
    /// DISCARD TEMP
    DiscardTemporary,
    /// DISCARD SEQUENCES
    DiscardSequences,
    /// SET CONSTRAINTS
    SetConstraints {
        /// The constraints; none are all. They are looked up when the statement runs.
        names: Vec<ConstraintName>,
        /// DEFERRED
        deferred: bool,
    },
    /// Accepted and without effect here: the tag to answer with, e.g. `DISCARD PLANS`
    NoOperation(&'static str),
}

impl ControlStatement {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            ControlStatement::Empty => "",
            ControlStatement::Begin(modes) if modes.start_keyword => "START TRANSACTION",
            ControlStatement::Begin(_) => "BEGIN",
            ControlStatement::Commit { .. } => "COMMIT",
            ControlStatement::Rollback { .. } | ControlStatement::RollbackTo(_) => "ROLLBACK",
            ControlStatement::Savepoint(_) => "SAVEPOINT",
            ControlStatement::Release(_) => "RELEASE",
            ControlStatement::SetTransaction { .. } | ControlStatement::Set { .. } => "SET",
            ControlStatement::AlterSystem { .. } => "ALTER SYSTEM",
            ControlStatement::CreateExtension { .. } => "CREATE EXTENSION",
            ControlStatement::Reset(_) => "RESET",
            ControlStatement::Show(_) | ControlStatement::ShowAll => "SHOW",
            ControlStatement::Vacuum { .. } => "VACUUM",
            ControlStatement::Analyze { .. } => "ANALYZE",
            ControlStatement::Lock { .. } => "LOCK TABLE",
            ControlStatement::Checkpoint => "CHECKPOINT",
            ControlStatement::Prepare { .. } => "PREPARE",
            ControlStatement::Execute {
                explained: Some(_), ..
            } => "EXPLAIN",
            ControlStatement::Execute { .. } => "EXECUTE",
            ControlStatement::ExecuteInto { .. } => "CREATE TABLE AS",
            ControlStatement::Deallocate(None) => "DEALLOCATE ALL",
            ControlStatement::Deallocate(Some(_)) => "DEALLOCATE",
            ControlStatement::Declare(_) => "DECLARE CURSOR",
            ControlStatement::Fetch(fetch) if fetch.is_move => "MOVE",
            ControlStatement::Fetch(_) => "FETCH",
            ControlStatement::Close(None) => "CLOSE CURSOR ALL",
            ControlStatement::Close(Some(_)) => "CLOSE CURSOR",
            ControlStatement::Listen(_) => "LISTEN",
            ControlStatement::Unlisten(_) => "UNLISTEN",
            ControlStatement::Notify { .. } => "NOTIFY",
            ControlStatement::WaitForLsn(_) => "WAIT",
            ControlStatement::DropDatabase { .. } => "DROP DATABASE",
            ControlStatement::DiscardAll => "DISCARD ALL",
            ControlStatement::DiscardTemporary => "DISCARD TEMP",
            ControlStatement::DiscardSequences => "DISCARD SEQUENCES",
            ControlStatement::SetConstraints { .. } => "SET CONSTRAINTS",
            ControlStatement::NoOperation(tag) => tag,
        }
    }
}

/// A constraint that a statement names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConstraintName {
    /// Its schema, if one is given.
    pub schema: Option<String>,
    /// Its name.
    pub name: String,
}

/// A mode of LOCK TABLE, from the weakest to the strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableLockMode {
    /// ACCESS SHARE
    AccessShare,
    /// ROW SHARE
    RowShare,
    /// ROW EXCLUSIVE
    RowExclusive,
    /// SHARE UPDATE EXCLUSIVE
    ShareUpdateExclusive,
    /// SHARE
    Share,
    /// SHARE ROW EXCLUSIVE
    ShareRowExclusive,
    /// EXCLUSIVE
    Exclusive,
    /// ACCESS EXCLUSIVE
    AccessExclusive,
}

impl TableLockMode {
    /// All modes with their words, those that others begin with behind these.
    pub(crate) const WORDS: [(&'static str, TableLockMode); 8] = [
        ("access share", TableLockMode::AccessShare),
        ("row share", TableLockMode::RowShare),
        ("row exclusive", TableLockMode::RowExclusive),
        ("share update exclusive", TableLockMode::ShareUpdateExclusive),
        ("share row exclusive", TableLockMode::ShareRowExclusive),
        ("share", TableLockMode::Share),
        ("exclusive", TableLockMode::Exclusive),
        ("access exclusive", TableLockMode::AccessExclusive),
    ];
}

/// Isolation of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsolationLevel {
    /// As READ COMMITTED, under another name.
    ReadUncommitted,
    /// Each statement sees what was committed when it began.
    ReadCommitted,
    /// Each statement sees what was committed when the transaction's first one began.
    RepeatableRead,
    /// As that, and the transactions of this level that commit could have run one after the other.
    Serializable,
}

impl IsolationLevel {
    /// The level of this name, in whatever case.
    pub fn named(name: &str) -> Option<IsolationLevel> {
        match name.to_ascii_lowercase().as_str() {
            "read uncommitted" => Some(IsolationLevel::ReadUncommitted),
            "read committed" => Some(IsolationLevel::ReadCommitted),
            "repeatable read" => Some(IsolationLevel::RepeatableRead),
            "serializable" => Some(IsolationLevel::Serializable),
            _ => None,
        }
    }

    /// True if all statements of a transaction see by one snapshot.
    pub const fn keeps_snapshot(self) -> bool {
        matches!(
            self,
            IsolationLevel::RepeatableRead | IsolationLevel::Serializable
        )
    }

    /// As SHOW tells it.
    pub const fn name(self) -> &'static str {
        match self {
            IsolationLevel::ReadUncommitted => "read uncommitted",
            IsolationLevel::ReadCommitted => "read committed",
            IsolationLevel::RepeatableRead => "repeatable read",
            IsolationLevel::Serializable => "serializable",
        }
    }
}

/// The options of BEGIN and SET TRANSACTION.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TransactionModes {
    /// The isolation level, if given.
    pub isolation: Option<IsolationLevel>,
    /// READ ONLY (true) or READ WRITE (false), if given.
    pub read_only: Option<bool>,
    /// DEFERRABLE (true) or NOT DEFERRABLE (false), if given.
    pub deferrable: Option<bool>,
    /// Written START TRANSACTION, which answers with a tag of its own.
    pub start_keyword: bool,
}
