//! Foreign keys: making, validating, renaming and dropping them.
//!
//! A key of a table with rows is there at once, and the session then looks whether all rows satisfy it
//! (`Outcome::to_validate`), in the same statement: if one does not, the statement fails as a whole.

use std::sync::Arc;

use crate::catalog::{CatalogState, TableEntry};
use crate::definition::check::{already_there, free_name, has_constraint};
use crate::definition::{DefinitionChange, notice};
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::foreign_key::{CheckTime, KeyTypes, key_types};
use clearway_sql::plan::NewForeignKey;
use clearway_sql::{ForeignKeyDef, ObjectAddress, ReferentialAction, TableDef, TableKind};
use clearway_txn::LockMode;

/// The columns that every table has beside its own.
const SYSTEM_COLUMNS: [&str; 6] = ["tableoid", "ctid", "xmin", "cmin", "xmax", "cmax"];

/// The most columns of a foreign key.
const COLUMNS_MAX: usize = 32;

/// The foreign keys that depend on an object: a table, a column of one, or an index or the constraint that it is.
pub(super) fn depending_on(state: &CatalogState, on: ObjectAddress) -> Vec<ObjectAddress> {
    let is_index = |table: &Arc<TableEntry>| table.def.indexes.iter().any(|index| index.oid == on.object);
    let by_index = state.owner(on.object).filter(|owner| is_index(owner));
    let parent = by_index.map_or(on.object, |owner| owner.def.oid);
    let references = state.references_to(parent).into_iter();
    let depending = references.filter(|reference| match (by_index.is_some(), on.column) {
        (true, _) => reference.key.index == on.object,
        // A table's own keys go with it.
        (false, 0) => reference.child.def.oid != parent,
        (false, column) => {
            let mut numbers = reference.key.parent_columns.iter();
            numbers.any(|number| i32::from(*number) == column)
                // Those of the column's own table that have it go with it.
                && !(reference.child.def.oid == parent
                    && reference.key.columns.iter().any(|number| i32::from(*number) == column))
        }
    });
    depending
        .map(|reference| ObjectAddress::new(ObjectAddress::PG_CONSTRAINT, reference.key.oid))
        .collect()
}

impl DefinitionChange<'_, '_, '_> {
    /// Gives a table in the making its foreign keys.
    pub(super) fn make_foreign_keys(
        &mut self,
        state: &CatalogState,
        table: &mut TableDef,
        keys: &[NewForeignKey],
    ) -> Result<()> {
        for key in keys {
            self.make_foreign_key(state, table, key)?;
        }
        Ok(())
    }

    /// ADD FOREIGN KEY
    pub(super) fn add_foreign_key(&mut self, entry: &TableEntry, new: &NewForeignKey) -> Result<()> {
        let state = self.execution.txn.catalog_state();
        let mut table = (*entry.def).clone();
        let oid = self.make_foreign_key(&state, &mut table, new)?;
        if new.validated {
            self.outcome.to_validate.push(oid);
        }
        self.redefine(entry, table)
    }

    /// Gives a table that `state` has, or will have, a foreign key; its number.
    fn make_foreign_key(
        &mut self,
        state: &CatalogState,
        table: &mut TableDef,
        new: &NewForeignKey,
    ) -> Result<u32> {
        let parent = match &new.parent {
            Some(parent) if parent.oid != table.oid => {
                require_table(parent)?;
                Arc::clone(&self.execution.entry(parent)?.def)
            }
            _ => Arc::new(table.clone()),
        };
        require_persistence(table, &parent)?;
        let columns = attributes(table, &new.columns)?;
        let mut on_delete_columns = attributes(table, &new.on_delete_columns)?;
        for (name, number) in new.on_delete_columns.iter().zip(&on_delete_columns) {
            if !columns.contains(number) {
                return Err(EngineError::new(
                    SqlState::INVALID_COLUMN_REFERENCE,
                    format!(
                        "column \"{name}\" referenced in ON DELETE SET action must be part of foreign key"
                    ),
                ));
            }
        }
        let mut seen = Vec::new();
        on_delete_columns.retain(|number| {
            let is_new = !seen.contains(number);
            seen.push(*number);
            is_new
        });
        refuse_of_generated(table, new)?;
        let (index, parent_columns) = referenced_key(&parent, &new.parent_columns)?;
        if columns.len() != parent_columns.len() {
            return Err(EngineError::new(
                SqlState::INVALID_FOREIGN_KEY,
                "number of referencing and referenced columns for foreign key disagree",
            ));
        }
        let name = match &new.name {
            Some(name) if has_constraint(table, name) => return Err(already_there(table, name)),
            Some(name) => name.clone(),
            None => free_name(state, table, Some(&joined(&new.columns)), "fkey"),
        };
        let key = ForeignKeyDef {
            oid: self.fresh_number()?,
            name,
            columns,
            parent: parent.oid,
            parent_columns,
            index,
            is_full: new.is_full,
            on_delete: new.on_delete,
            on_delete_columns,
            on_update: new.on_update,
            check_time: new.check_time,
            validated: new.validated,
        };
        check_types(&key, table, &parent)?;
        let oid = key.oid;
        table.foreign_keys.push(Arc::new(key));
        sort(table);
        Ok(oid)
    }

    /// VALIDATE CONSTRAINT; false if the table has no foreign key of this name.
    pub(super) fn validate_foreign_key(&mut self, entry: &TableEntry, name: &str) -> Result<bool> {
        let mut table = (*entry.def).clone();
        let Some(key) = table.foreign_keys.iter_mut().find(|key| key.name == name) else {
            return Ok(false);
        };
        if !key.validated {
            Arc::make_mut(key).validated = true;
            self.outcome.to_validate.push(key.oid);
            self.redefine(entry, table)?;
        }
        Ok(true)
    }

    /// Renames a foreign key; false if the table has none of this name.
    pub(super) fn rename_foreign_key(&mut self, entry: &TableEntry, from: &str, to: &str) -> Result<bool> {
        let mut table = (*entry.def).clone();
        let Some(place) = table.foreign_keys.iter().position(|key| key.name == from) else {
            return Ok(false);
        };
        if has_constraint(&table, to) {
            return Err(already_there(&table, to));
        }
        to.clone_into(&mut Arc::make_mut(&mut table.foreign_keys[place]).name);
        sort(&mut table);
        self.redefine(entry, table)?;
        Ok(true)
    }

    /// ALTER CONSTRAINT, which knows foreign keys alone.
    pub(super) fn set_check_time(&mut self, entry: &TableEntry, name: &str, time: CheckTime) -> Result<()> {
        let mut table = (*entry.def).clone();
        let Some(key) = table.foreign_keys.iter_mut().find(|key| key.name == name) else {
            let (state, problem) = match has_constraint(&entry.def, name) {
                true => (SqlState::WRONG_OBJECT_TYPE, "is not a foreign key constraint"),
                false => (SqlState::UNDEFINED_OBJECT, "does not exist"),
            };
            let what = format!(
                "constraint \"{name}\" of relation \"{}\" {problem}",
                entry.def.name
            );
            return Err(EngineError::new(state, what));
        };
        Arc::make_mut(key).check_time = time;
        self.redefine(entry, table)
    }

    /// DROP CONSTRAINT; false if the table has no foreign key of this name.
    pub(super) fn drop_foreign_key_named(&mut self, entry: &TableEntry, name: &str) -> Result<bool> {
        let found = entry.def.foreign_keys.iter().find(|key| key.name == name);
        let Some(oid) = found.map(|key| key.oid) else {
            return Ok(false);
        };
        self.drop_foreign_key(oid)?;
        Ok(true)
    }

    /// Drops the foreign key of this number.
    pub(super) fn drop_foreign_key(&mut self, oid: u32) -> Result<()> {
        let child = self.execution.txn.catalog_state().foreign_key(oid);
        // It went with its table.
        let Some(child) = child.map(|reference| reference.child.def.oid) else {
            return Ok(());
        };
        let (interrupts, timeout) = (self.execution.interrupts, self.execution.lock_timeout);
        self.execution
            .txn
            .lock_relation(child, LockMode::AccessExclusive, interrupts, timeout)?;
        let mut state = self.state()?;
        let Some(reference) = state.foreign_key(oid) else {
            return Ok(());
        };
        let entry = reference.child;
        let mut table = (*entry.def).clone();
        table.foreign_keys.retain(|key| key.oid != oid);
        if !table.schema.is_temporary() {
            let address = ObjectAddress::new(ObjectAddress::PG_CONSTRAINT, oid);
            self.remove_comments(&mut state, &[address])?;
        }
        let schema = table.schema.clone();
        self.keep(state, &schema);
        self.redefine(&entry, table)
    }

    /// 42804 if one of these columns cannot be compared any more, with its type of `table`, with what foreign keys join it
    /// to. What can be is looked at again when the statement has run.
    pub(super) fn require_comparable(
        &mut self,
        entry: &TableEntry,
        table: &TableDef,
        columns: &[u16],
    ) -> Result<()> {
        let numbers: Vec<u16> = columns
            .iter()
            .map(|column| entry.def.attribute_number(*column))
            .collect();
        let has = |key: &[u16]| key.iter().any(|number| numbers.contains(number));
        let state = self.execution.txn.catalog_state();
        let mut joined = state.references_to(table.oid);
        joined.retain(|reference| has(&reference.key.parent_columns));
        for reference in &joined {
            let child = match reference.child.def.oid == table.oid {
                true => table,
                false => &reference.child.def,
            };
            check_types(&reference.key, child, table)?;
            self.outcome.to_validate.push(reference.key.oid);
        }
        for key in entry.def.foreign_keys.iter().filter(|key| has(&key.columns)) {
            if key.parent != table.oid
                && let Some(parent) = state.table(key.parent)
            {
                check_types(key, table, &parent.def)?;
            }
            self.outcome.to_validate.push(key.oid);
        }
        // What was not valid before stays so.
        let is_valid = |oid: &u32| state.foreign_key(*oid).is_none_or(|found| found.key.validated);
        self.outcome.to_validate.retain(is_valid);
        Ok(())
    }

    /// 55006 for a table with deferred checks: they know its rows by their places and columns.
    pub(super) fn require_no_waiting(&mut self, table: &TableDef, statement: &str) -> Result<()> {
        let txn = &mut *self.execution.txn;
        if !txn.has_deferred_checks() {
            return Ok(());
        }
        let state = txn.catalog_state();
        let own = table.foreign_keys.iter().map(|key| key.oid);
        let own: Vec<u32> = own.chain(table.all_indexes().map(|index| index.oid)).collect();
        let to = state.references_to(table.oid).into_iter();
        let to: Vec<u32> = to.map(|reference| reference.key.oid).collect();
        match txn.checks_mut().wait_of(&own, &to)? {
            false => Ok(()),
            true => Err(EngineError::new(
                SqlState::OBJECT_IN_USE,
                format!(
                    "cannot {statement} \"{}\" because it has pending trigger events",
                    table.name
                ),
            )),
        }
    }

    /// 0A000 if foreign keys of other tables than these name rows of one of them; tells of those that CASCADE adds.
    pub(super) fn require_truncatable(
        &mut self,
        named: &[Arc<TableDef>],
        cascaded: &[Arc<TableDef>],
    ) -> Result<()> {
        for table in cascaded {
            let text = format!("truncate cascades to table \"{}\"", table.name);
            self.outcome.notices.push(notice(SqlState::SUCCESS, text));
        }
        let state = self.execution.txn.catalog_state();
        for table in named.iter().chain(cascaded) {
            self.require_no_waiting(table, "TRUNCATE")?;
            for child in state.children(table.oid) {
                let mut all = named.iter().chain(cascaded);
                if all.any(|other| other.oid == *child) {
                    continue;
                }
                let child = state.table(*child).map_or("", |entry| &entry.def.name);
                return Err(EngineError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "cannot truncate a table referenced in a foreign key constraint",
                )
                .with_detail(format!("Table \"{child}\" references \"{}\".", table.name))
                .with_hint(format!(
                    "Truncate table \"{child}\" at the same time, or use TRUNCATE ... CASCADE."
                )));
            }
        }
        Ok(())
    }
}

fn sort(table: &mut TableDef) {
    table.foreign_keys.sort_by_key(|key| key.oid);
}

/// The columns' names as a constraint's name has them.
fn joined(columns: &[String]) -> String {
    columns.join("_")
}

/// 42809 for a relation whose rows no foreign key can name.
fn require_table(parent: &TableDef) -> Result<()> {
    match parent.kind {
        TableKind::Heap { .. } => Ok(()),
        TableKind::Virtual => Err(EngineError::new(
            SqlState::from_code("42501"),
            format!("permission denied: \"{}\" is a system catalog", parent.name),
        )),
        TableKind::View => Err(EngineError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("referenced relation \"{}\" is not a table", parent.name),
        )),
    }
}

/// 42P16 for a key that names rows which may be gone while the table's own are there: those of a temporary table go with the
/// session, those of an unlogged one in a crash. Rows of temporary tables name no others.
fn require_persistence(table: &TableDef, parent: &TableDef) -> Result<()> {
    let is_temporary = |table: &TableDef| table.schema.is_temporary();
    let (is_allowed, kinds) = match (is_temporary(table), table.unlogged) {
        (true, _) => (is_temporary(parent), ("temporary", "temporary")),
        (false, true) => (!is_temporary(parent), ("unlogged", "permanent or unlogged")),
        (false, false) => (
            !is_temporary(parent) && !parent.unlogged,
            ("permanent", "permanent"),
        ),
    };
    if is_allowed {
        return Ok(());
    }
    let (own, others) = kinds;
    Err(EngineError::new(
        SqlState::INVALID_TABLE_DEFINITION,
        format!("constraints on {own} tables may reference only {others} tables"),
    ))
}

/// The attributes of the columns of these names.
fn attributes(table: &TableDef, names: &[String]) -> Result<Vec<u16>> {
    if names.len() > COLUMNS_MAX {
        return Err(EngineError::new(
            SqlState::TOO_MANY_COLUMNS,
            format!("cannot have more than {COLUMNS_MAX} keys in a foreign key"),
        ));
    }
    let found = names.iter().map(|name| {
        let column = table.column_number(name).ok_or_else(|| {
            if SYSTEM_COLUMNS.contains(&name.as_str()) {
                return EngineError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "system columns cannot be used in foreign keys",
                );
            }
            EngineError::new(
                SqlState::UNDEFINED_COLUMN,
                format!("column \"{name}\" referenced in foreign key constraint does not exist"),
            )
        })?;
        Ok(table.attribute_number(column))
    });
    found.collect()
}

/// The unique index whose key the columns of these names are, in whatever order, and their attributes; without names those
/// of the primary key.
fn referenced_key(parent: &TableDef, names: &[String]) -> Result<(u32, Vec<u16>)> {
    if names.is_empty() {
        let Some(key) = parent.primary_key() else {
            return Err(EngineError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("there is no primary key for referenced table \"{}\"", parent.name),
            ));
        };
        if key.check_time.deferrable {
            return Err(deferrable_key("primary key", parent));
        }
        let columns = key.key_columns();
        let columns = columns.map(|column| parent.attribute_number(column));
        return Ok((key.oid, columns.collect()));
    }
    let columns = attributes(parent, names)?;
    if (1..columns.len()).any(|at| columns[..at].contains(&columns[at])) {
        return Err(EngineError::new(
            SqlState::INVALID_FOREIGN_KEY,
            "foreign key referenced-columns list must not contain duplicates",
        ));
    }
    let is_key = |index: &&Arc<clearway_sql::IndexDef>| {
        let is_wanted = |column: &u16| columns.contains(&parent.attribute_number(*column));
        let own = index.plain_columns().filter(|_| index.unique);
        own.is_some_and(|own| own.len() == columns.len() && own.iter().all(is_wanted))
    };
    let mut keys = parent.indexes.iter().filter(is_key).peekable();
    let has_some = keys.peek().is_some();
    match keys.find(|index| index.is_always_unique()) {
        Some(index) => Ok((index.oid, columns)),
        None if has_some => Err(deferrable_key("unique constraint", parent)),
        None => Err(EngineError::new(
            SqlState::INVALID_FOREIGN_KEY,
            format!(
                "there is no unique constraint matching given keys for referenced table \"{}\"",
                parent.name
            ),
        )),
    }
}

/// 55000 for a key that two rows may have until it is checked; `kind`: the constraint.
fn deferrable_key(kind: &str, parent: &TableDef) -> EngineError {
    EngineError::new(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!(
            "cannot use a deferrable {kind} for referenced table \"{}\"",
            parent.name
        ),
    )
}

/// 42804 for columns that cannot be compared.
fn check_types(key: &ForeignKeyDef, table: &TableDef, parent: &TableDef) -> Result<()> {
    let pairs = key.places(table).into_iter().zip(key.parent_places(parent));
    for (own, referenced) in pairs {
        let own = &table.columns[usize::from(own)];
        let referenced = &parent.columns[usize::from(referenced)];
        if key_types(own.data_type, referenced.data_type) == KeyTypes::Incompatible {
            return Err(EngineError::new(
                SqlState::DATATYPE_MISMATCH,
                format!("foreign key constraint \"{}\" cannot be implemented", key.name),
            )
            .with_detail(format!(
                "Key columns \"{}\" and \"{}\" are of incompatible types: {} and {}.",
                own.name, referenced.name, own.data_type, referenced.data_type
            )));
        }
    }
    Ok(())
}

/// 42601 for an action that would give a generated column a value.
fn refuse_of_generated(table: &TableDef, new: &NewForeignKey) -> Result<()> {
    let named = |name: &String| table.columns.iter().find(|column| column.name == *name);
    let mut columns = new.columns.iter().filter_map(named);
    if columns.all(|column| column.generated().is_none()) {
        return Ok(());
    }
    let sets = |action| matches!(action, ReferentialAction::SetNull | ReferentialAction::SetDefault);
    let what = match (new.on_update, new.on_delete) {
        (update, _) if sets(update) || update == ReferentialAction::Cascade => "UPDATE",
        (_, delete) if sets(delete) => "DELETE",
        _ => return Ok(()),
    };
    Err(EngineError::new(
        SqlState::SYNTAX_ERROR,
        format!("invalid ON {what} action for foreign key constraint containing generated column"),
    ))
}
