//! CREATE VIEW, ALTER VIEW and DROP VIEW.

use std::sync::Arc;

use clearway_txn::LockMode;

use crate::definition::written_names::require_row_type_unwritten;
use crate::definition::{DefinitionChange, ReadableBy, already_exists, notice};
use clearway_sql::error::{Result, SqlState};
use clearway_sql::plan::{AlterViewPlan, CreateViewPlan, OnCommit, ViewChange};
use clearway_sql::{TableDef, TableKind};

impl DefinitionChange<'_, '_, '_> {
    pub(super) fn create_view(&mut self, create: &CreateViewPlan) -> Result<()> {
        if create.made_temporary {
            let text = format!("view \"{}\" will be a temporary view", create.name);
            self.outcome.notices.push(notice(SqlState::SUCCESS, text));
        }
        if create.schema.is_temporary() {
            self.execution.txn.open_temporary();
        }
        let mut state = self.state()?;
        if let Some(replaced) = &create.replaced {
            let entry = self.execution.entry(replaced)?;
            let mut table = TableDef::new(
                entry.def.oid,
                create.name.clone(),
                TableKind::View,
                create.columns.clone(),
            );
            table.schema = create.schema.clone();
            table.view = Some(Arc::clone(&create.view));
            for (column, before) in table.columns.iter_mut().zip(&entry.def.columns) {
                column.default.clone_from(&before.default);
            }
            self.replace(&mut state, &entry, table, ReadableBy::OlderSnapshots)?;
            self.keep(state, &create.schema);
            return Ok(());
        }
        if state.is_taken(create.schema.oid, &create.name) {
            return Err(already_exists(&create.name));
        }
        let mut table = TableDef::new(
            self.fresh_number()?,
            create.name.clone(),
            TableKind::View,
            create.columns.clone(),
        );
        table.schema = create.schema.clone();
        table.view = Some(Arc::clone(&create.view));
        self.lock_new(table.oid)?;
        self.add(&mut state, table, OnCommit::PreserveRows)?;
        self.keep(state, &create.schema);
        Ok(())
    }

    /// Locks a new relation. This never waits; it keeps other sessions away between the commit's publishing and its end.
    pub(super) fn lock_new(&mut self, oid: u32) -> Result<()> {
        let (interrupts, timeout) = (self.execution.interrupts, self.execution.lock_timeout);
        self.execution
            .txn
            .lock_relation(oid, LockMode::AccessExclusive, interrupts, timeout)
    }

    pub(super) fn alter_view(&mut self, alter: &AlterViewPlan) -> Result<()> {
        let Some(view) = &alter.view else {
            let text = format!("relation \"{}\" does not exist, skipping", alter.name);
            self.outcome.notices.push(notice(SqlState::SUCCESS, text));
            return Ok(());
        };
        let mut state = self.state()?;
        let entry = self.execution.entry(view)?;
        let mut table = (*entry.def).clone();
        match &alter.change {
            ViewChange::Rename(name) => {
                if state.is_taken(table.schema.oid, name) {
                    return Err(already_exists(name));
                }
                require_row_type_unwritten(&state, &table, "renaming")?;
                table.name.clone_from(name);
            }
            ViewChange::RenameColumn { column, name } => {
                return self.rename_read_column(&entry, *column, name, table);
            }
            ViewChange::Owner(owner) => return self.relation_owner(&entry, owner),
            ViewChange::Define(view) => table.view = Some(Arc::clone(view)),
        }
        self.replace(&mut state, &entry, table, ReadableBy::OlderSnapshots)?;
        self.keep(state, &view.schema);
        Ok(())
    }
}
