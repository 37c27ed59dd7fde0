//! CREATE INDEX, DROP INDEX, and the constraints that are indexes.

use std::sync::Arc;

use clearway_storage::RelId;

use crate::catalog::TableEntry;
use crate::catalog::comment::addresses_of_index;
use crate::definition::{DefinitionChange, ReadableBy, index_build, kept_index, notice};
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::{CreateIndex, NewIndexedValue};
use clearway_sql::{IndexDef, ObjectAddress, TableDef};

/// 42P16 for a second primary key.
pub(super) fn several_primary_keys(table: &str) -> EngineError {
    EngineError::new(
        SqlState::INVALID_TABLE_DEFINITION,
        format!("multiple primary keys for table \"{table}\" are not allowed"),
    )
}

impl DefinitionChange<'_, '_, '_> {
    pub(super) fn create_index(&mut self, create: &CreateIndex) -> Result<()> {
        let mut state = self.state()?;
        let spec = &create.index;
        if !self.may_make(&state, create.table.schema.oid, &spec.name, create.if_not_exists)? {
            return Ok(());
        }
        self.tell_access_method(create);
        let entry = self.execution.entry(&create.table)?;
        self.require_no_waiting(&entry.def, "CREATE INDEX")?;
        let mut table = (*entry.def).clone();
        if spec.primary {
            if table.primary_key().is_some() {
                return Err(several_primary_keys(&table.name));
            }
            for key in &spec.keys {
                if let NewIndexedValue::Column(column) = key.value {
                    table.columns[usize::from(column)].not_null = true;
                }
            }
        }
        if !self.execution.txn.snapshot_is_current() {
            return Err(EngineError::new(
                SqlState::SERIALIZATION_FAILURE,
                "could not serialize access: an index cannot lead to rows as this transaction's snapshot sees them",
            ));
        }
        let rel = self.create_tree(&table.schema)?;
        let index = kept_index::made(spec, rel, &table)?;
        self.fill_index(&table, &index)?;
        table.indexes.push(Arc::new(index));
        self.replace(&mut state, &entry, table, ReadableBy::NewSnapshots)?;
        self.keep(state, &create.table.schema);
        Ok(())
    }

    /// A notice if another kind of index was asked for.
    pub(super) fn tell_access_method(&mut self, create: &CreateIndex) {
        if create.asks_for_hash {
            let text = "substituting access method \"btree\" for \"hash\"";
            self.outcome
                .notices
                .push(notice(SqlState::SUCCESS, text.to_owned()));
        }
    }

    /// Enters the rows that there are now into the tree of a new index.
    pub(super) fn fill_index(&mut self, table: &TableDef, index: &IndexDef) -> Result<()> {
        let spill = self.execution.spill.with_bytes(self.execution.maintenance_bytes);
        self.execution.txn.with_fresh_snapshot(|txn| {
            index_build::build(
                self.execution.storage,
                txn,
                self.execution.interrupts,
                &spill,
                (table, index),
                &self.execution.eval,
            )
        })
    }

    pub(super) fn drop_index(&mut self, name: &str, def: Option<&TableDef>, if_exists: bool) -> Result<()> {
        let Some(def) = def else {
            if !if_exists {
                return Err(EngineError::new(
                    SqlState::UNDEFINED_OBJECT,
                    format!("index \"{name}\" does not exist"),
                ));
            }
            let text = format!("index \"{name}\" does not exist, skipping");
            self.outcome.notices.push(notice(SqlState::SUCCESS, text));
            return Ok(());
        };
        let entry = self.execution.entry(def)?;
        let index = self.droppable(&entry, name)?;
        self.drop_with(&[ObjectAddress::relation(index.oid)], false)?;
        self.remove_index(&entry, index.oid)
    }

    /// The index of this name, if no constraint needs it.
    pub(super) fn droppable(&self, entry: &TableEntry, name: &str) -> Result<Arc<IndexDef>> {
        let index = entry.def.all_indexes().find(|index| index.name == name);
        let index = index.ok_or_else(|| {
            EngineError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("index \"{name}\" does not exist"),
            )
        })?;
        if index.constraint {
            let table = &entry.def.name;
            return Err(EngineError::new(
                SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
                format!("cannot drop index {name} because constraint {name} on table {table} requires it"),
            )
            .with_hint(format!(
                "You can drop constraint {name} on table {table} instead."
            )));
        }
        Ok(Arc::clone(index))
    }

    /// A constraint is its index. The columns of a primary key stay NOT NULL.
    pub(super) fn drop_constraint(
        &mut self,
        def: &TableDef,
        name: &str,
        if_exists: bool,
        cascade: bool,
    ) -> Result<()> {
        let entry = self.execution.entry(def)?;
        if self.drop_check(&entry, name)? || self.drop_foreign_key_named(&entry, name)? {
            return Ok(());
        }
        let found = |index: &Arc<IndexDef>| index.constraint && index.name == name;
        if let Some(index) = entry.def.indexes.iter().find(|index| found(index)) {
            let constraint = ObjectAddress::new(ObjectAddress::PG_CONSTRAINT, index.oid);
            self.drop_with(&[constraint], cascade)?;
            let now = self.execution.entry(def)?;
            return self.remove_index(&now, index.oid);
        }
        let text = format!(
            "constraint \"{name}\" of relation \"{}\" does not exist",
            def.name
        );
        if !if_exists {
            return Err(EngineError::new(SqlState::UNDEFINED_OBJECT, text));
        }
        self.outcome
            .notices
            .push(notice(SqlState::SUCCESS, format!("{text}, skipping")));
        Ok(())
    }

    pub(super) fn remove_index(&mut self, entry: &TableEntry, oid: u32) -> Result<()> {
        let mut state = self.state()?;
        let mut table = (*entry.def).clone();
        let index = table.all_indexes().find(|index| index.oid == oid);
        let index = Arc::clone(index.ok_or_else(|| EngineError::internal("an index is dropped twice"))?);
        table.indexes.retain(|other| other.oid != oid);
        table.unfinished.retain(|other| other.index.oid != oid);
        self.remove_comments(&mut state, &addresses_of_index(index.oid))?;
        self.execution.txn.note_dropped(RelId(index.rel));
        self.execution.txn.coarsen_marks(entry.def.oid, &[index.oid]);
        self.replace(&mut state, entry, table, ReadableBy::OlderSnapshots)?;
        self.keep(state, &entry.def.schema);
        Ok(())
    }
}
