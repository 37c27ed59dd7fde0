//! Statements about transactions, settings and maintenance: those that touch no row through a plan.

use std::sync::Arc;

use crate::catalog::access::denied;
use crate::config::values::FOR_SUPERUSERS;
use crate::engine::LockWaits;
use crate::output::{Notice, Output};
use crate::session::Session;
use crate::session::prepared::Prepared;
use crate::session::run::Request;
use crate::settings::Settings;
use crate::transaction::Phase;
use clearway_sql::Expr;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::explained::ExplainOptions;
use clearway_sql::plan::{Column, ControlStatement, IsolationLevel, TransactionModes};
use clearway_sql::value::cast::{CastContext, cast};
use clearway_sql::value::{DataType, Value};

impl Session {
    /// Runs a statement to its tag. `columns`: those of its rows, if it has rows and descriptions of them are sent.
    ///
    /// The two that each transaction has are apart from the others, whose room on the stack they would have to make.
    #[inline]
    pub(crate) fn run_control(
        &mut self,
        statement: &ControlStatement,
        columns: Option<&[Column]>,
        request: Request,
        out: &mut dyn Output,
    ) -> Result<()> {
        match statement {
            ControlStatement::Begin(modes) => {
                self.begin_block(modes, out)?;
                out.complete(statement.tag())
            }
            ControlStatement::Commit { chain } => {
                let answer = self.end_block(true, *chain, out)?;
                out.complete(answer)
            }
            _ => self.run_rarer_control(statement, columns, request, out),
        }
    }

    #[inline(never)]
    fn run_rarer_control(
        &mut self,
        statement: &ControlStatement,
        columns: Option<&[Column]>,
        request: Request,
        out: &mut dyn Output,
    ) -> Result<()> {
        match statement {
            ControlStatement::Begin(_) | ControlStatement::Commit { .. } => {
                unreachable!("run_control runs it")
            }
            ControlStatement::Empty => return out.empty(),
            ControlStatement::Rollback { chain } => {
                self.end_block(false, *chain, out)?;
            }
            ControlStatement::Savepoint(name) => self.savepoint(name)?,
            ControlStatement::Release(name) => self.release(name)?,
            ControlStatement::RollbackTo(name) => self.rollback_to(name, out)?,
            ControlStatement::SetTransaction { modes, session } => {
                self.set_transaction(modes, *session, out)?
            }
            ControlStatement::Set { name, value, local } => self.set(name, value.as_deref(), *local, out)?,
            ControlStatement::AlterSystem { name, value } => {
                self.engine.alter_system(name.as_deref(), value.as_deref())?;
            }
            ControlStatement::CreateExtension { name, if_not_exists } => {
                self.extension_is_there(name, *if_not_exists, out)?;
            }
            ControlStatement::DropDatabase { name, if_exists } => {
                self.check_not_in_recovery("DROP DATABASE")?;
                self.drop_database(name, *if_exists, out)?;
            }
            ControlStatement::Reset(Some(name)) => self.set(name, None, false, out)?,
            ControlStatement::Reset(None) => self.settings.reset_all(self.txn.phase != Phase::None),
            ControlStatement::Show(name) => {
                let value = self.show(name)?;
                send_rows(columns, [vec![Value::text(value)]], out)?;
            }
            ControlStatement::WaitForLsn(wait) => self.wait_for_lsn(wait, columns, out)?,
            ControlStatement::ShowAll => {
                let rows = self
                    .settings
                    .all()
                    .into_iter()
                    .map(|(name, value)| vec![Value::text(name), Value::text(value), Value::text("")]);
                send_rows(columns, rows, out)?;
            }
            ControlStatement::Vacuum {
                tables,
                analyze,
                verbose,
            } => {
                self.check_not_in_recovery("VACUUM")?;
                let Some(tables) = &self.maintainable(tables, "vacuum", out)? else {
                    return out.complete(statement.tag());
                };
                let oids: Vec<u32> = tables.iter().map(|named| named.table.oid).collect();
                let engine = Arc::clone(&self.engine);
                self.txn.catalog_version();
                let settings = &self.settings;
                let waits = LockWaits {
                    interrupts: &self.interrupts,
                    lock_timeout: settings.lock_timeout,
                    session: Some(self.txn.proc),
                    deadlock_timeout: settings.deadlock_timeout,
                    log_after: settings.log_lock_waits.then_some(settings.deadlock_timeout),
                };
                engine.vacuum_tables(&self.txn.catalog_state(), &oids, &waits)?;
                if *analyze {
                    self.analyze(tables, *verbose, out)?;
                }
            }
            ControlStatement::Analyze { tables, verbose } => {
                self.check_not_in_recovery("ANALYZE")?;
                let Some(tables) = &self.maintainable(tables, "analyze", out)? else {
                    return out.complete(statement.tag());
                };
                self.analyze(tables, *verbose, out)?;
            }
            // The locks were taken before it ran.
            ControlStatement::Lock { .. } => {}
            ControlStatement::Checkpoint => {
                let engine = Arc::clone(&self.engine);
                engine.checkpoint()?;
            }
            ControlStatement::Prepare {
                name,
                types,
                sql,
                before,
            } => {
                self.check_name_is_free(name)?;
                // An error is placed in the inner text, then in the whole one, and at last in that of the client.
                let places = self.client_places.take();
                let prepared = self.prepare_text(sql.as_str().into(), types);
                self.client_places = places;
                let prepared = prepared.map_err(|error| match error.position() {
                    Some(position) => error.with_position(before + position),
                    None => error,
                })?;
                let text = self.slot.shown_query();
                self.keep_named(name, prepared, Some(text));
            }
            ControlStatement::Execute {
                name,
                arguments,
                explained,
            } => {
                return self.execute_named(name, arguments, *explained, request, out);
            }
            ControlStatement::ExecuteInto {
                name,
                arguments,
                into,
            } => {
                let prepared = self.statement_to_execute(name)?;
                let params = self.parameters(name, &prepared, arguments)?;
                let made = self.prepared_into(&prepared, into)?;
                return self.run_named(&made, &params, request, out);
            }
            ControlStatement::Deallocate(Some(name)) => {
                self.remove_named(name)?;
            }
            ControlStatement::Deallocate(None) => self.named.clear(),
            // Run where statements with rows are.
            ControlStatement::Declare(_)
            | ControlStatement::Fetch(_)
            | ControlStatement::Listen(_)
            | ControlStatement::Unlisten(_)
            | ControlStatement::Notify { .. } => {
                return Err(EngineError::internal(
                    "a statement that the session runs by itself",
                ));
            }
            ControlStatement::Close(Some(name)) => self.cursors.close(name)?,
            ControlStatement::Close(None) => self.cursors.close_all(),
            ControlStatement::DiscardTemporary => {
                if self.txn.phase != Phase::None || self.among_others {
                    return Err(EngineError::not_supported("DISCARD TEMP in a transaction block"));
                }
                self.txn.drop_temporary();
            }
            ControlStatement::DiscardSequences => {
                self.serial_values.take();
            }
            ControlStatement::DiscardAll => {
                self.txn.drop_temporary();
                self.cursors.close_all();
                self.named.clear();
                self.forget_texts();
                self.serial_values.take();
                self.unlisten_all();
                self.unlock_all_advisory();
                self.set("session_authorization", None, false, out)?;
                self.settings.reset_all(false);
                self.report("application_name", out)?;
            }
            ControlStatement::SetConstraints { names, deferred } => {
                self.set_constraints(names, *deferred, out)?;
            }
            ControlStatement::NoOperation(_) => {}
        }
        out.complete(statement.tag())
    }

    /// CREATE EXTENSION of one that is built in: 42710, or a notice.
    fn extension_is_there(&self, name: &str, if_not_exists: bool, out: &mut dyn Output) -> Result<()> {
        let code = SqlState::DUPLICATE_OBJECT;
        let told = format!("extension \"{name}\" already exists");
        match if_not_exists {
            true => self.notice(&Notice::new("NOTICE", code, format!("{told}, skipping")), out),
            false => Err(EngineError::new(code, told)),
        }
    }

    /// DROP DATABASE: 55006 for the session's own, which is the only one; 3D000, or a notice, for any other.
    fn drop_database(&self, name: &str, if_exists: bool, out: &mut dyn Output) -> Result<()> {
        if name == self.info.database {
            return Err(EngineError::new(
                SqlState::OBJECT_IN_USE,
                "cannot drop the currently open database",
            ));
        }
        let told = format!("database \"{name}\" does not exist");
        match if_exists {
            true => {
                let code = SqlState::SUCCESS;
                self.notice(&Notice::new("NOTICE", code, format!("{told}, skipping")), out)
            }
            false => Err(EngineError::new(SqlState::INVALID_CATALOG_NAME, told)),
        }
    }

    pub(super) fn set(
        &mut self,
        name: &str,
        value: Option<&str>,
        local: bool,
        out: &mut dyn Output,
    ) -> Result<()> {
        let in_transaction = self.txn.phase == Phase::Block;
        if local && !in_transaction {
            return self.notice(
                &Notice::warning(
                    SqlState::NO_ACTIVE_SQL_TRANSACTION,
                    "SET LOCAL can only be used in transaction blocks",
                ),
                out,
            );
        }
        Settings::check_may_set(name, self.identity.is_superuser)?;
        if self.set_identity(&name.to_ascii_lowercase(), value, local, out)? {
            return Ok(());
        }
        match (name, value) {
            ("transaction_isolation", Some(value)) if in_transaction => {
                // A wrong value is refused below.
                let isolation = IsolationLevel::named(value);
                if isolation.is_some() {
                    let modes = TransactionModes {
                        isolation,
                        ..TransactionModes::default()
                    };
                    return self.apply_modes(&modes);
                }
            }
            ("transaction_deferrable", Some(value)) if in_transaction => {
                let modes = TransactionModes {
                    deferrable: Some(is_on(value)),
                    ..TransactionModes::default()
                };
                return self.apply_modes(&modes);
            }
            ("transaction_read_only", Some(value)) => {
                let modes = TransactionModes {
                    read_only: Some(is_on(value)),
                    ..TransactionModes::default()
                };
                if in_transaction {
                    return self.apply_modes(&modes);
                }
                self.check_writable_here(&modes)?;
            }
            _ => {}
        }
        if self.settings.set(name, value, local, in_transaction)? {
            self.report(&name.to_ascii_lowercase(), out)?;
        }
        Ok(())
    }

    /// Puts what `set_config` has changed into force. SET LOCAL outside a block would end with the statement.
    pub(crate) fn apply_changed(&mut self, out: &mut dyn Output) -> Result<()> {
        if !self.changed.get_mut().is_empty() {
            self.txn.note_in_tags();
        }
        for changed in std::mem::take(self.changed.get_mut()) {
            if !changed.local || self.txn.phase == Phase::Block {
                self.set(&changed.name, changed.value.as_deref(), changed.local, out)?;
            }
        }
        Ok(())
    }

    fn show(&self, name: &str) -> Result<String> {
        let in_transaction = self.txn.phase != Phase::None;
        match name.to_ascii_lowercase().as_str() {
            "transaction_isolation" | "transaction isolation level" => {
                let isolation = if in_transaction {
                    self.txn.isolation
                } else {
                    self.settings.default_isolation
                };
                Ok(isolation.name().to_owned())
            }
            "transaction_deferrable" => {
                let deferrable = match in_transaction {
                    true => self.txn.deferrable,
                    false => self.settings.default_deferrable,
                };
                Ok(if deferrable { "on" } else { "off" }.to_owned())
            }
            "transaction_read_only" => {
                let read_only = if in_transaction {
                    self.txn.read_only
                } else {
                    self.settings.default_read_only || self.engine.is_standby()
                };
                Ok(if read_only { "on" } else { "off" }.to_owned())
            }
            other => self
                .settings
                .show(other)
                .or_else(|error| self.engine.configured(other, self.identity.current).ok_or(error))
                .map_err(|error| match FOR_SUPERUSERS.contains(&other) {
                    true => denied(format!(
                        "must be superuser or have privileges of pg_read_all_settings to examine \"{other}\""
                    )),
                    false => error,
                }),
        }
    }

    fn execute_named(
        &mut self,
        name: &str,
        arguments: &[(Expr, DataType)],
        explained: Option<ExplainOptions>,
        request: Request,
        out: &mut dyn Output,
    ) -> Result<()> {
        let prepared = self.statement_to_execute(name)?;
        let params = self.parameters(name, &prepared, arguments)?;
        let prepared = match explained {
            None => prepared,
            Some(options) => {
                let types: Vec<Option<DataType>> = prepared.param_types().iter().copied().map(Some).collect();
                let text = options.written() + prepared.text();
                self.prepare_text(text.into(), &types)?
            }
        };
        self.run_named(&prepared, &params, request, out)
    }

    /// The values of EXECUTE's arguments, as the statement takes them.
    fn parameters(
        &self,
        name: &str,
        prepared: &Prepared,
        arguments: &[(Expr, DataType)],
    ) -> Result<Vec<Value>> {
        let types = prepared.param_types();
        if arguments.len() != types.len() {
            return Err(EngineError::new(
                SqlState::SYNTAX_ERROR,
                format!("wrong number of parameters for prepared statement \"{name}\""),
            )
            .with_detail(format!(
                "Expected {} parameters but got {}.",
                types.len(),
                arguments.len()
            )));
        }
        let mut params = Vec::with_capacity(types.len());
        for ((expr, from), to) in arguments.iter().zip(types) {
            let value = self.evaluate(expr)?;
            params.push(cast(
                value,
                *from,
                *to,
                -1,
                CastContext::Assignment,
                self.transaction_timestamp(),
            )?);
        }
        Ok(params)
    }
}

/// The value of a setting that is on or off.
fn is_on(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "on" | "true" | "yes" | "1")
}

fn send_rows(
    columns: Option<&[Column]>,
    rows: impl IntoIterator<Item = Vec<Value>>,
    out: &mut dyn Output,
) -> Result<()> {
    if let Some(columns) = columns {
        out.row_description(columns)?;
    }
    for row in rows {
        out.row(&row)?;
    }
    Ok(())
}
