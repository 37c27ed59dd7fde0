//! CREATE TABLE, TRUNCATE and a table's storage parameters.

use std::sync::Arc;

use clearway_storage::RelId;
use clearway_storage::heap::{DeleteOutcome, Heap};

use crate::catalog::{CATALOG_REL, FIRST_OID, TableEntry};
use crate::convert::storage_error;
use crate::definition::{
    DefinitionChange, ReadableBy, already_exists, default, generated, kept_index, raced,
};
use crate::executor::modify;
use clearway_sql::error::{EngineError, Result};
use clearway_sql::expr::Expr;
use clearway_sql::plan::{CreateTable, CreateTableAs, InsertPlan, InsertSource};
use clearway_sql::{IndexDef, TableDef, TableKind};

impl DefinitionChange<'_, '_, '_> {
    /// The new table; `None` if there is one of its name, and that is no error.
    pub(super) fn create_table(&mut self, create: &CreateTable) -> Result<Option<Arc<TableDef>>> {
        if create.schema.is_temporary() {
            self.execution.txn.open_temporary();
        }
        let mut state = self.state()?;
        if !self.may_make(&state, create.schema.oid, &create.name, create.if_not_exists)? {
            return Ok(None);
        }
        let rel = self.create_rel(&create.schema)?;
        let kind = TableKind::Heap { rel: rel.0 };
        let mut table = TableDef::new(
            FIRST_OID + rel.0,
            create.name.clone(),
            kind,
            create.columns.clone(),
        );
        table.schema = create.schema.clone();
        table.parameters = create.parameters.clone();
        table.unlogged = create.unlogged;
        table.of_type = create.of_type;
        self.lock_new(table.oid)?;
        generated::print(&mut table)?;
        table.columns.iter_mut().try_for_each(default::keep)?;
        let checks = self.make_checks(&state, &mut table, &create.checks)?;
        for column in 0..table.columns.len() as u16 {
            self.make_sequence(&mut state, &mut table, column)?;
        }
        for spec in &create.indexes {
            if state.is_taken(create.schema.oid, &spec.name)
                || table.indexes.iter().any(|index| index.name == spec.name)
            {
                return Err(already_exists(&spec.name));
            }
            let rel = self.create_tree(&create.schema)?;
            let index = kept_index::made(spec, rel, &table)?;
            table.indexes.push(Arc::new(index));
        }
        self.make_foreign_keys(&state, &mut table, &create.foreign_keys)?;
        let table = self.add(&mut state, table, create.on_commit)?;
        self.take_comments(&mut state, &table, &create.comments, &checks)?;
        self.keep(state, &table.schema);
        Ok(Some(table))
    }

    /// The table first: a name that is taken is an error before the query runs.
    pub(super) fn create_table_as(&mut self, create: &CreateTableAs) -> Result<()> {
        let Some(table) = self.create_table(&create.create)? else {
            return Ok(());
        };
        if create.with_data {
            let columns = (0..table.columns.len() as u16).map(Expr::Column).collect();
            let insert = InsertPlan {
                generates: false,
                table,
                source: InsertSource::Select {
                    select: create.select.clone(),
                    columns,
                },
                conflict: None,
                returning: None,
                checks: None,
            };
            let rows = modify::insert(self.execution, &insert, &mut |_, _| Ok(()))?;
            self.outcome.rows = Some(rows);
        } else if create.is_execute {
            self.outcome.rows = Some(0);
        }
        Ok(())
    }

    pub(super) fn truncate(&mut self, def: &TableDef, restart_identity: bool) -> Result<()> {
        let mut state = self.state()?;
        let entry = self.execution.entry(def)?;
        let mut table = (*entry.def).clone();
        let rel = self.create_rel(&def.schema)?;
        self.execution.txn.note_dropped(RelId(entry.rel()));
        table.kind = TableKind::Heap { rel: rel.0 };
        self.replace_long_rel(&mut table)?;
        table.finish_indexes();
        table.map_indexes(|index| {
            let rel = self.create_tree(&def.schema)?;
            self.execution.txn.note_dropped(RelId(index.rel));
            Ok::<_, EngineError>(Arc::new(IndexDef {
                rel,
                ..(**index).clone()
            }))
        })?;
        if restart_identity {
            for sequence in state.owned_sequences(def.oid, None) {
                self.begin_anew(&mut state, &sequence)?;
            }
        }
        self.execution.txn.mark_table_emptied(def)?;
        self.execution.txn.count_truncation(def.oid);
        self.replace(&mut state, &entry, table, ReadableBy::NewSnapshots)?;
        self.keep(state, &def.schema);
        Ok(())
    }

    pub(super) fn set_parameters(
        &mut self,
        def: &TableDef,
        changes: &[(String, Option<String>)],
    ) -> Result<()> {
        let mut state = self.state()?;
        let entry = self.execution.entry(def)?;
        let mut table = (*entry.def).clone();
        table.parameters = table.parameters.changed(changes);
        self.replace(&mut state, &entry, table, ReadableBy::OlderSnapshots)?;
        self.keep(state, &def.schema);
        Ok(())
    }

    pub(super) fn delete_row(&mut self, entry: &TableEntry) -> Result<()> {
        let context = self.execution.txn.context();
        match Heap::new(CATALOG_REL)
            .delete(&context, entry.tid)
            .map_err(storage_error)?
        {
            DeleteOutcome::Deleted => Ok(()),
            _ => Err(raced(&entry.def.name)),
        }
    }
}
