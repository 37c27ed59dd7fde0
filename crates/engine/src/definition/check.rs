//! CHECK constraints: making, validating, renaming and dropping them.

use std::sync::Arc;

use crate::catalog::{CatalogState, TableEntry};
use crate::definition::{DefinitionChange, generated, kept_index};
use clearway_sql::deparse::{check_condition, check_renamed};
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::NewCheck;
use clearway_sql::value::datetime::in_force as date_times;
use clearway_sql::{CheckDef, ObjectAddress, TableDef, bind_check, types_by_number};

/// The most bytes of a name.
const NAME_BYTES_MAX: usize = 63;

impl DefinitionChange<'_, '_, '_> {
    /// Gives a table in the making its CHECK constraints; their numbers, in the order of the statement.
    pub(super) fn make_checks(
        &mut self,
        state: &CatalogState,
        table: &mut TableDef,
        checks: &[NewCheck],
    ) -> Result<Vec<u32>> {
        let mut numbers = Vec::with_capacity(checks.len());
        for check in checks {
            if let Some(name) = &check.name
                && table.checks.iter().any(|other| other.name == *name)
            {
                return Err(EngineError::new(
                    SqlState::DUPLICATE_OBJECT,
                    format!("check constraint \"{name}\" already exists"),
                ));
            }
            numbers.push(self.make_check(state, table, check)?);
        }
        Ok(numbers)
    }

    /// Gives a table that `state` has, or will have, a constraint; its number.
    fn make_check(&mut self, state: &CatalogState, table: &mut TableDef, new: &NewCheck) -> Result<u32> {
        let sql = {
            let _kept = date_times::for_keeping();
            types_by_number(&check_condition(&new.sql, table, false)?)
        };
        let expr = bind_check(&sql, table)?;
        let mut check = CheckDef {
            oid: self.fresh_number()?,
            name: String::new(),
            sql,
            expr,
            validated: new.validated,
        };
        check.name = match &new.name {
            Some(name) if has_constraint(table, name) => return Err(already_there(table, name)),
            Some(name) => name.clone(),
            None => chosen_name(state, table, &check),
        };
        let oid = check.oid;
        table.checks.push(Arc::new(check));
        sort(table);
        Ok(oid)
    }

    /// ADD CHECK
    pub(super) fn add_check(&mut self, entry: &TableEntry, new: &NewCheck) -> Result<()> {
        let state = self.execution.txn.catalog_state();
        let mut table = (*entry.def).clone();
        let oid = self.make_check(&state, &mut table, new)?;
        if new.validated {
            self.require_checked(&table, |check| check.oid == oid)?;
        }
        self.redefine(entry, table)
    }

    /// VALIDATE CONSTRAINT
    pub(super) fn validate_constraint(&mut self, entry: &TableEntry, name: &str) -> Result<()> {
        let mut table = (*entry.def).clone();
        if self.validate_foreign_key(entry, name)? {
            return Ok(());
        }
        let Some(place) = table.checks.iter().position(|check| check.name == name) else {
            let is_key = table
                .indexes
                .iter()
                .any(|index| index.constraint && index.name == name);
            return Err(match is_key {
                true => EngineError::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!(
                        "constraint \"{name}\" of relation \"{}\" is not a foreign key or check constraint",
                        table.name
                    ),
                ),
                false => EngineError::new(
                    SqlState::UNDEFINED_OBJECT,
                    format!(
                        "constraint \"{name}\" of relation \"{}\" does not exist",
                        table.name
                    ),
                ),
            });
        };
        if table.checks[place].validated {
            return Ok(());
        }
        self.require_checked(&table, |check| check.name == name)?;
        Arc::make_mut(&mut table.checks[place]).validated = true;
        self.redefine(entry, table)
    }

    /// Renames a constraint; false if the table has no CHECK constraint of this name.
    pub(super) fn rename_check(&mut self, entry: &TableEntry, from: &str, to: &str) -> Result<bool> {
        let mut table = (*entry.def).clone();
        let Some(place) = table.checks.iter().position(|check| check.name == from) else {
            return Ok(false);
        };
        if has_constraint(&table, to) {
            return Err(already_there(&table, to));
        }
        to.clone_into(&mut Arc::make_mut(&mut table.checks[place]).name);
        sort(&mut table);
        self.redefine(entry, table)?;
        Ok(true)
    }

    /// Drops a constraint; false if the table has no CHECK constraint of this name.
    pub(super) fn drop_check(&mut self, entry: &TableEntry, name: &str) -> Result<bool> {
        let mut table = (*entry.def).clone();
        let Some(place) = table.checks.iter().position(|check| check.name == name) else {
            return Ok(false);
        };
        let gone = table.checks.remove(place);
        let mut state = self.state()?;
        if !table.schema.is_temporary() {
            self.remove_comments(&mut state, &[address(&gone)])?;
        }
        let schema = table.schema.clone();
        self.keep(state, &schema);
        self.redefine(entry, table)?;
        Ok(true)
    }
}

/// The address of a constraint.
pub(super) fn address(check: &CheckDef) -> ObjectAddress {
    ObjectAddress::new(ObjectAddress::PG_CONSTRAINT, check.oid)
}

/// Binds all conditions of a table, the expressions of its generated columns and those of its indexes anew, after places or
/// types of its columns have changed.
pub(super) fn rebind(table: &mut TableDef) -> Result<()> {
    generated::rebind(table)?;
    kept_index::rebind(table)?;
    for place in 0..table.checks.len() {
        let expr = bind_check(&table.checks[place].sql, table)?;
        Arc::make_mut(&mut table.checks[place]).expr = expr;
    }
    Ok(())
}

/// Puts a column's new name into the conditions, generated columns and indexes of its table, which has the old one still.
pub(super) fn rename_in_checks(table: &mut TableDef, from: &str, to: &str) -> Result<()> {
    generated::rename(table, from, to)?;
    kept_index::rename(table, from, to)?;
    for place in 0..table.checks.len() {
        let _as_kept = date_times::under(None);
        let sql = types_by_number(&check_renamed(&table.checks[place].sql, table, from, to)?);
        Arc::make_mut(&mut table.checks[place]).sql = sql;
    }
    Ok(())
}

fn sort(table: &mut TableDef) {
    table.checks.sort_by(|one, other| one.name.cmp(&other.name));
}

pub(super) fn has_constraint(table: &TableDef, name: &str) -> bool {
    let mut keys = table.indexes.iter().filter(|index| index.constraint);
    keys.any(|index| index.name == name)
        || table.checks.iter().any(|check| check.name == name)
        || table.foreign_keys.iter().any(|key| key.name == name)
}

pub(super) fn already_there(table: &TableDef, name: &str) -> EngineError {
    EngineError::new(
        SqlState::DUPLICATE_OBJECT,
        format!(
            "constraint \"{name}\" for relation \"{}\" already exists",
            table.name
        ),
    )
}

/// The name that PostgreSQL gives to a constraint: that of the table and of the column, if it reads a single one, with a
/// number behind it if a constraint of the schema has it.
fn chosen_name(state: &CatalogState, table: &TableDef, check: &CheckDef) -> String {
    let columns = check.columns();
    let column = match columns.as_slice() {
        [column] => Some(table.columns[usize::from(*column)].name.as_str()),
        _ => None,
    };
    free_name(state, table, column, "check")
}

/// `table_column_label`, with a number behind it if a constraint of the schema has it.
pub(super) fn free_name(state: &CatalogState, table: &TableDef, column: Option<&str>, label: &str) -> String {
    let others = state.tables_in(table.schema.oid);
    let is_taken = |name: &str| {
        has_constraint(table, name) || others.iter().any(|entry| has_constraint(&entry.def, name))
    };
    let numbered = (1..).map(|number| made_name(&table.name, column, &format!("{label}{number}")));
    let wanted = made_name(&table.name, column, label);
    let mut names = std::iter::once(wanted.clone()).chain(numbered);
    names.find(|name| !is_taken(name)).unwrap_or(wanted)
}

/// `table_column_label`, the longer of both names shortened until it fits.
pub(super) fn made_name(table: &str, column: Option<&str>, label: &str) -> String {
    let around = label.len() + 1 + usize::from(column.is_some());
    let (mut left, mut right) = (table.len(), column.map_or(0, str::len));
    while left + right > NAME_BYTES_MAX - around {
        if left > right {
            left -= 1;
        } else {
            right -= 1;
        }
    }
    let table = &table[..table.floor_char_boundary(left)];
    match column {
        Some(column) => format!("{table}_{}_{label}", &column[..column.floor_char_boundary(right)]),
        None => format!("{table}_{label}"),
    }
}
