//! From a text to a prepared statement, and from that to a plan whose tables are locked.

use std::sync::Arc;
use std::time::Duration;

use crate::catalog::CATALOG_REL;
use crate::clock;
use crate::output::{Discard, Output};
use crate::planning_memory::Reservation;
use crate::session::Session;
use crate::session::prepared::{CachedPlan, Prepared, View, Viewer};
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::{ControlStatement, Statement};
use clearway_sql::value::DataType;
use clearway_sql::{self as sql, ParsedStatement};

impl Session {
    /// Parses and binds one statement (or none: an empty text is a statement that does nothing).
    ///
    /// `param_types` are the client's; `None` or missing ones are inferred.
    pub fn prepare(
        &mut self,
        sql: &str,
        param_types: &[Option<DataType>],
    ) -> Result<Arc<Prepared>, EngineError> {
        self.prepare_to(sql, param_types, &mut Discard::default())
    }

    /// As [`prepare`](Self::prepare); warnings about the text go to `out`.
    pub fn prepare_to(
        &mut self,
        sql: &str,
        param_types: &[Option<DataType>],
        out: &mut dyn Output,
    ) -> Result<Arc<Prepared>, EngineError> {
        let text: Arc<str> = sql.into();
        self.begin_call();
        self.begin_statement(&text);
        let prepared = match self.written_out(&text, out) {
            Ok(text) => self.prepare_text(text, param_types),
            Err(error) => Err(self.fail(error)),
        };
        self.client_places = None;
        self.begun = false;
        self.end_call();
        prepared
    }

    /// [`prepare`](Self::prepare) as a part of the statement that is running.
    pub(crate) fn prepare_text(
        &mut self,
        text: Arc<str>,
        param_types: &[Option<DataType>],
    ) -> Result<Arc<Prepared>> {
        let sql = &*text;
        self.statements
            .check(sql.len())
            .map_err(|error| self.fail(error))?;
        let memory = match self.engine.planning_memory.reserve(sql) {
            Ok(memory) => memory,
            Err(error) => return Err(self.fail(error)),
        };
        let mut statements = match sql::parse(sql) {
            Ok(statements) => statements,
            Err(error) => return Err(self.fail(error)),
        };
        if statements.len() > 1 {
            return Err(self.fail(EngineError::new(
                SqlState::SYNTAX_ERROR,
                "cannot insert multiple commands into a prepared statement",
            )));
        }
        let statement = statements.pop();
        let prepared = self.bind(text, statement, param_types, memory).map(Arc::new)?;
        match self.statements.add(&prepared) {
            Ok(()) => Ok(prepared),
            Err(error) => Err(self.fail(error)),
        }
    }

    /// A statement begins, as far as clients and limits are concerned: with its text, before it is parsed.
    pub(super) fn begin_statement(&mut self, text: &Arc<str>) {
        self.slot.begin_statement(text, clock::now_us());
        self.interrupts.begin(self.settings.statement_timeout);
        self.txn.set_deadlock_timeout(&self.settings);
        self.begun = true;
    }

    pub(super) fn bind(
        &mut self,
        text: Arc<str>,
        parsed: Option<ParsedStatement>,
        types: &[Option<DataType>],
        memory: Option<Reservation>,
    ) -> Result<Prepared> {
        let ends = parsed.as_ref().is_none_or(ParsedStatement::ends_transaction);
        if let Some(refusal) = self.refusal(ends) {
            self.begun = false;
            self.went_idle();
            return Err(refusal);
        }
        self.refresh_identity();
        let version = self.txn.catalog_version();
        self.know_types(version);
        let state = self.txn.catalog_state();
        let view = View {
            state: &state,
            viewer: self.viewer(),
        };
        Prepared::new(text, parsed, types, view, &self.interrupts, memory).map_err(|error| self.fail(error))
    }

    pub(super) fn viewer(&self) -> Viewer<'_> {
        Viewer {
            planning: &self.settings.planning,
            identity: &self.identity,
            session: self.slot.process_id,
        }
    }

    pub(crate) fn current_plan(&mut self, prepared: &Arc<Prepared>) -> Result<Arc<CachedPlan>> {
        let version = self.txn.catalog_version();
        self.know_types(version);
        let (plan, is_first) = prepared.plan(
            version,
            self.viewer(),
            || self.txn.catalog_state(),
            &self.interrupts,
            &self.engine.planning_memory,
        )?;
        if is_first {
            self.statements.planned(prepared);
        } else {
            self.statements.used(prepared);
        }
        Ok(plan)
    }

    /// Takes the statement's table locks, and plans anew until no definition has changed since planning.
    pub(super) fn lock_tables(
        &mut self,
        prepared: &Arc<Prepared>,
        mut cached: Arc<CachedPlan>,
    ) -> Result<Arc<CachedPlan>> {
        // LOCK … NOWAIT alone does not wait.
        let no_wait = matches!(
            cached.plan.statement,
            Statement::Control(ControlStatement::Lock { no_wait: true, .. })
        );
        let timeout = match no_wait {
            true => Some(Duration::ZERO),
            false => self.settings.lock_timeout,
        };
        loop {
            // The catalog's lock comes first.
            if let [first, _, ..] = &*cached.uses
                && first.oid == CATALOG_REL
            {
                let wanted: Vec<_> = cached.uses.iter().map(|table| (table.oid, table.mode)).collect();
                self.txn.lock_to_define(&wanted, &self.interrupts, timeout)?;
            }
            for table in &cached.uses {
                self.txn
                    .lock_relation(table.oid, table.mode, &self.interrupts, timeout)
                    .map_err(|error| match error.sqlstate() {
                        SqlState::LOCK_NOT_AVAILABLE if no_wait => EngineError::new(
                            SqlState::LOCK_NOT_AVAILABLE,
                            format!("could not obtain lock on relation \"{}\"", table.name),
                        ),
                        _ => error,
                    })?;
            }
            if cached.version == self.txn.catalog_version() {
                break;
            }
            cached = self.current_plan(prepared)?;
        }
        Ok(cached)
    }
}
