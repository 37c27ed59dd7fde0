//! A session's lines in the server's log.
//!
//! | line | when | switch |
//! | --- | --- | --- |
//! | `statement: …`, `execute: …` | a statement has its plan, and is about to run; that of an SQL-level EXECUTE too | `log_statement` |
//! | `duration: … ms  statement: …` | its answer has left | `log_min_duration_statement` |
//! | an error, with its statement | the client is told | `log_min_messages` |
//! | `disconnection: …` | the session has ended | `log_disconnections` |
//!
//! The time of a statement goes from its arrival to the moment at which its answer leaves, the wait of its commit included.
//! Of several statements whose answers leave together, that is so for the last one; the time of the others goes to the end of
//! their own work.

use std::sync::Arc;
use std::time::Duration;

use crate::activity::BackendType;
use crate::clock;
use crate::logging::LogStatement;
use crate::server_log::{self, LoggedSession, logged_message, logged_text};
use crate::session::Session;
use crate::session::prepared::Prepared;
use clearway_sql::error::EngineError;
use clearway_sql::plan::{ControlStatement, DefinitionStatement, RowsStatement, Statement};

/// A statement that has run, and whose answer may not have left.
#[derive(Debug)]
pub(super) struct TimedStatement {
    text: Arc<str>,
    start_us: i64,
    /// The time of its own work.
    elapsed: Duration,
}

/// The least `log_statement` under which a statement is told of.
fn class_of(statement: &Statement) -> LogStatement {
    match statement {
        Statement::Definition(DefinitionStatement::Truncate { .. }) => LogStatement::Mod,
        Statement::Definition(_) | Statement::Control(ControlStatement::AlterSystem { .. }) => {
            LogStatement::Ddl
        }
        Statement::Rows(RowsStatement::Merge(_)) => LogStatement::Mod,
        Statement::Rows(rows) if rows.changed_table().is_some() => LogStatement::Mod,
        Statement::Rows(_) | Statement::Control(_) => LogStatement::All,
    }
}

/// The time between two moments of the clock, which may have been set back meanwhile.
fn between(start_us: i64, end_us: i64) -> Duration {
    Duration::from_micros(u64::try_from(end_us - start_us).unwrap_or(0))
}

impl Session {
    /// Tells the log of a statement that is about to run, if it is of those that `log_statement` names.
    #[cold]
    pub(super) fn log_statement(&self, prepared: &Prepared, statement: &Statement) {
        if class_of(statement) <= self.settings.log_statement {
            let how = prepared.in_which_protocol();
            tracing::info!("{how}: {}", logged_text(&prepared.text));
        }
    }

    /// A statement has run: its time goes on until its answer has left, if the caller says when that is.
    #[cold]
    pub(super) fn time_statement(&mut self, text: &Arc<str>) {
        let start_us = self.slot.statement_start_us();
        let timed = TimedStatement {
            text: Arc::clone(text),
            start_us,
            elapsed: between(start_us, clock::now_us()),
        };
        if !self.txn.leaves_waits_to_caller() {
            return self.log_time(&timed);
        }
        self.end_times();
        self.timed = Some(timed);
    }

    /// The answers of the statements so far have left.
    #[inline]
    pub fn answers_have_left(&mut self) {
        if self.timed.is_some() {
            self.end_timed();
        }
    }

    /// A statement has failed, or another one is timed: the time of the one before has ended with its own work.
    pub(super) fn end_times(&mut self) {
        if let Some(before) = self.timed.take() {
            self.log_time(&before);
        }
    }

    #[cold]
    fn end_timed(&mut self) {
        if let Some(mut timed) = self.timed.take() {
            timed.elapsed = between(timed.start_us, clock::now_us());
            self.log_time(&timed);
        }
    }

    fn log_time(&self, timed: &TimedStatement) {
        if self
            .settings
            .log_min_duration
            .is_some_and(|least| timed.elapsed >= least)
        {
            tracing::info!(
                "duration: {:.3} ms  statement: {}",
                timed.elapsed.as_secs_f64() * 1e3,
                logged_text(&timed.text)
            );
        }
    }

    /// Tells the log of an error that the client is told of, and of the statement that it ends.
    #[cold]
    pub fn log_error(&self, error: &EngineError) {
        let statement = self.slot.query();
        tracing::error!(
            sqlstate = error.sqlstate().as_str(),
            detail = error.detail(),
            hint = error.hint(),
            statement = logged_text(&statement),
            "{}",
            logged_message(error.message(), &statement)
        );
    }

    /// The session has ended.
    pub(super) fn log_end(&self) {
        let slot = &self.slot;
        let is_own = |session: &LoggedSession| session.process_id == slot.process_id;
        let is_told = self.engine.in_force().config.log_disconnections
            && slot.backend_type() != BackendType::AutovacuumWorker;
        if is_told && let Some(session) = server_log::session_of_thread().filter(is_own) {
            let lasted = between(session.start_us, clock::now_us());
            let seconds = lasted.as_secs();
            tracing::info!(
                "disconnection: session time: {}:{:02}:{:02}.{:03} user={} database={} host={}",
                seconds / 3_600,
                seconds / 60 % 60,
                seconds % 60,
                lasted.subsec_millis(),
                session.user,
                session.database,
                server_log::host(session.client_address),
            );
        }
        server_log::session_ends(slot);
    }
}
