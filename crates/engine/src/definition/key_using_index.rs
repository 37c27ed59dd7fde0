//! ALTER TABLE … ADD PRIMARY KEY and UNIQUE with USING INDEX: a unique index becomes that of a constraint.
//!
//! Nothing is built: the entries are there, and unique. For a primary key the table is read for NULLs, as SET NOT NULL
//! does.

use std::sync::Arc;

use crate::catalog::TableEntry;
use crate::definition::index::several_primary_keys;
use crate::definition::{DefinitionChange, already_exists, notice};
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::KeyUsingIndex;
use clearway_sql::{IndexDef, TableDef};

/// An index that a constraint cannot have.
fn unfit(message: String) -> EngineError {
    EngineError::new(SqlState::WRONG_OBJECT_TYPE, message)
        .with_detail("Cannot create a primary key or unique constraint using such an index.")
}

/// The error for an index that cannot be that of a key.
fn require_fit(index: &IndexDef) -> Result<()> {
    let name = &index.name;
    if index.constraint {
        return Err(EngineError::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("index \"{name}\" is already associated with a constraint"),
        ));
    }
    if !index.unique {
        return Err(unfit(format!("\"{name}\" is not a unique index")));
    }
    if (0..index.keys.len()).any(|at| index.column(at).is_none()) {
        return Err(unfit(format!("index \"{name}\" contains expressions")));
    }
    if index.predicate.is_some() {
        return Err(unfit(format!("\"{name}\" is a partial index")));
    }
    let is_sorted_otherwise = |key: &clearway_sql::IndexKey| {
        let options = &key.options;
        options.descending || options.nulls_first || options.class.is_some() || options.collation.is_some()
    };
    if let Some(at) = index.keys.iter().position(is_sorted_otherwise) {
        let message = format!(
            "index \"{name}\" column number {} does not have default sorting behavior",
            at + 1
        );
        return Err(unfit(message));
    }
    Ok(())
}

impl DefinitionChange<'_, '_, '_> {
    pub(super) fn add_key_using_index(&mut self, entry: &TableEntry, key: &KeyUsingIndex) -> Result<()> {
        let mut table: TableDef = (*entry.def).clone();
        let Some(place) = table.indexes.iter().position(|index| index.name == key.index) else {
            let state = self.state()?;
            return Err(match state.owner_of_index(table.schema.oid, &key.index) {
                Some(_) => EngineError::new(
                    SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                    format!(
                        "index \"{}\" does not belong to table \"{}\"",
                        key.index, table.name
                    ),
                ),
                None => EngineError::new(
                    SqlState::UNDEFINED_OBJECT,
                    format!("index \"{}\" does not exist", key.index),
                ),
            });
        };
        if key.primary && table.primary_key().is_some() {
            return Err(several_primary_keys(&table.name));
        }
        let mut index = (*table.indexes[place]).clone();
        require_fit(&index)?;
        if key.primary {
            let columns = (0..index.keys.len()).filter_map(|at| index.column(at));
            for column in columns.collect::<Vec<_>>() {
                if !table.columns[usize::from(column)].not_null {
                    self.require_no_nulls(&entry.def, column)?;
                    table.columns[usize::from(column)].not_null = true;
                }
            }
        }
        if let Some(name) = key.name.as_ref().filter(|name| **name != index.name) {
            if self.state()?.is_taken(table.schema.oid, name) {
                return Err(already_exists(name));
            }
            let text = format!(
                "ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index \"{}\" to \"{name}\"",
                index.name
            );
            self.outcome.notices.push(notice(SqlState::SUCCESS, text));
            index.name.clone_from(name);
        }
        (index.constraint, index.primary) = (true, key.primary);
        index.check_time = key.check_time;
        table.indexes[place] = Arc::new(index);
        self.redefine(entry, table)
    }
}
