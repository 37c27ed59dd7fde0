//! CREATE and ALTER DOMAIN.
//!
//! A change that values may not satisfy looks at all rows of the tables that have the domain. It locks these tables first
//! (SHARE): statements that were planned before have ended then, and those that come are planned with the new domain.

use std::sync::Arc;

use clearway_sql::deparse::{check_condition, kept_default};
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::expr::domain::check;
use clearway_sql::plan::{DomainChange, TypeStatement};
use clearway_sql::value::datetime::in_force as date_times;
use clearway_sql::value::user_type::{DomainCheck, DomainType, UserType, UserTypeKind, definition_of};
use clearway_sql::value::{DataType, Value};
use clearway_sql::{ObjectAddress, TableDef, compile_domain, domain_table, types_by_number};
use clearway_txn::LockMode;

use crate::catalog::types_in_force::put_in_force;
use crate::catalog::{CATALOG_REL, CatalogState};
use crate::definition::rewrite::each_row;
use crate::definition::{DefinitionChange, notice, raced};
use crate::executor::Execution;

/// A domain's default as it is kept.
fn kept_default_of(written: Option<&str>, base: DataType, typmod: i32) -> Result<Option<String>> {
    let kept = |sql: &str| kept_default(sql, base, typmod).map(|sql| types_by_number(&sql));
    written.map(kept).transpose()
}

impl DefinitionChange<'_, '_, '_> {
    pub(super) fn create_domain(&mut self, statement: &TypeStatement) -> Result<()> {
        let TypeStatement::CreateDomain {
            schema,
            name,
            base,
            typmod,
            not_null,
            default,
            checks,
        } = statement
        else {
            return Err(EngineError::internal("a statement makes no domain"));
        };
        let mut domain = DomainType {
            base: *base,
            typmod: *typmod,
            not_null: *not_null,
            default: kept_default_of(default.as_deref(), *base, *typmod)?,
            checks: Vec::new(),
            compiled: Arc::new(()),
        };
        for (constraint, condition) in checks {
            self.add_domain_check(name, &mut domain, constraint.as_deref(), condition, true)?;
        }
        compile(&mut domain)?;
        self.create_type(schema, name, |_| Ok(UserTypeKind::Domain(domain)))
    }

    /// Gives a domain a constraint.
    fn add_domain_check(
        &mut self,
        name: &str,
        domain: &mut DomainType,
        constraint: Option<&str>,
        condition: &str,
        validated: bool,
    ) -> Result<()> {
        let table = domain_table(domain.base, domain.typmod);
        let is_taken = |domain: &DomainType, name: &str| domain.checks.iter().any(|check| check.name == name);
        let constraint = match constraint {
            Some(given) if is_taken(domain, given) => {
                return Err(EngineError::new(
                    SqlState::DUPLICATE_OBJECT,
                    format!("constraint \"{given}\" for domain \"{name}\" already exists"),
                ));
            }
            Some(given) => given.to_owned(),
            None => {
                let numbered = (1..).map(|number: u32| format!("{name}_check{number}"));
                let mut names = std::iter::once(format!("{name}_check")).chain(numbered);
                names.find(|name| !is_taken(domain, name)).unwrap_or_default()
            }
        };
        let sql = {
            let _kept = date_times::for_keeping();
            types_by_number(&check_condition(condition, &table, false)?)
        };
        domain.checks.push(DomainCheck {
            oid: self.fresh_number()?,
            name: constraint,
            sql,
            validated,
        });
        domain.checks.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(())
    }

    pub(super) fn alter_domain(&mut self, of: &UserType, change: &DomainChange) -> Result<()> {
        let mut state = self.state()?;
        let entry = state
            .type_entry(of.oid.get())
            .cloned()
            .ok_or_else(|| raced(&of.name))?;
        let mut def = (*entry.def).clone();
        let name = def.name.clone();
        let UserTypeKind::Domain(domain) = &mut def.kind else {
            return Err(raced(&of.name));
        };
        let mut looked_at = None;
        match change {
            DomainChange::SetDefault(default) => {
                domain.default = kept_default_of(default.as_deref(), domain.base, domain.typmod)?;
            }
            DomainChange::SetNotNull(not_null) => {
                if *not_null && !domain.not_null {
                    looked_at = Some(Looked::NotNull);
                }
                domain.not_null = *not_null;
            }
            DomainChange::AddCheck {
                name: constraint,
                condition,
                validated,
            } => {
                self.add_domain_check(&name, domain, constraint.as_deref(), condition, *validated)?;
                looked_at = validated.then_some(Looked::Checks);
            }
            DomainChange::DropConstraint {
                name: constraint,
                if_exists,
            } => {
                let Some(at) = place_of(domain, constraint) else {
                    if !if_exists {
                        return Err(no_constraint(constraint, &name));
                    }
                    let text =
                        format!("constraint \"{constraint}\" of domain \"{name}\" does not exist, skipping");
                    self.outcome.notices.push(notice(SqlState::SUCCESS, text));
                    return Ok(());
                };
                let gone = domain.checks.remove(at);
                let address = ObjectAddress::new(ObjectAddress::PG_CONSTRAINT, gone.oid);
                self.remove_comments(&mut state, &[address])?;
            }
            DomainChange::RenameConstraint { from, to } => {
                let at = place_of(domain, from).ok_or_else(|| no_constraint(from, &name))?;
                if place_of(domain, to).is_some() {
                    return Err(EngineError::new(
                        SqlState::DUPLICATE_OBJECT,
                        format!("constraint \"{to}\" for domain {name} already exists"),
                    ));
                }
                domain.checks[at].name.clone_from(to);
                domain.checks.sort_by(|one, other| one.name.cmp(&other.name));
            }
            DomainChange::Validate(constraint) => {
                let at = place_of(domain, constraint).ok_or_else(|| no_constraint(constraint, &name))?;
                if !domain.checks[at].validated {
                    domain.checks[at].validated = true;
                    looked_at = Some(Looked::Checks);
                }
            }
        }
        compile(domain)?;
        let data_type = def.data_type();
        self.put_type_row(&mut state, def, Some(entry.tid))?;
        if let Some(what) = looked_at {
            put_in_force(&state);
            self.look_at_values(&state, data_type, what)?;
        }
        self.execution.txn.set_catalog_state(state);
        Ok(())
    }

    /// Drops a constraint of a domain, which names a type that goes.
    pub(super) fn drop_domain_check(&mut self, address: ObjectAddress) -> Result<()> {
        let state = self.execution.txn.catalog_state();
        let is_it = |check: &DomainCheck| check.oid == address.object;
        let found = state.user_types().into_iter().find_map(|of| {
            let mut checks = of.domain()?.checks.iter();
            let name = checks.find(|check| is_it(check))?.name.clone();
            Some((of, name))
        });
        let Some((of, name)) = found else { return Ok(()) };
        let change = DomainChange::DropConstraint {
            name,
            if_exists: true,
        };
        self.alter_domain(&of, &change)
    }

    /// An error if a table has a value of a domain that the domain does not allow.
    fn look_at_values(&mut self, state: &CatalogState, domain: DataType, what: Looked) -> Result<()> {
        for entry in state.tables() {
            for column in &entry.def.columns {
                if is_over(state, column.data_type, domain) && !is_one(column.data_type, domain) {
                    return Err(EngineError::new(
                        SqlState::FEATURE_NOT_SUPPORTED,
                        format!(
                            "cannot alter type \"{}\" because column \"{}.{}\" uses it",
                            domain.internal_name(),
                            entry.def.name,
                            column.name
                        ),
                    ));
                }
            }
        }
        for entry in state.tables() {
            let columns: Vec<usize> = (0..entry.def.columns.len())
                .filter(|at| is_over(state, entry.def.columns[*at].data_type, domain))
                .collect();
            if columns.is_empty() || entry.def.oid == CATALOG_REL {
                continue;
            }
            let (interrupts, timeout) = (self.execution.interrupts, self.execution.lock_timeout);
            self.execution
                .txn
                .lock_relation(entry.def.oid, LockMode::Share, interrupts, timeout)?;
            look_at_rows(self.execution, &entry.def, &columns, what)?;
        }
        Ok(())
    }
}

/// The reason for which values are looked at.
#[derive(Debug, Clone, Copy)]
enum Looked {
    NotNull,
    Checks,
}

fn look_at_rows(
    execution: &mut Execution<'_>,
    table: &TableDef,
    columns: &[usize],
    what: Looked,
) -> Result<()> {
    each_row(execution, table, |row, eval| {
        for at in columns {
            let outcome = check(&row[*at], table.columns[*at].data_type, eval);
            outcome.map_err(|error| refused(error, table, *at, &row[*at], what))?;
        }
        Ok(())
    })
}

/// The error for a value that a changed domain does not allow; any other as it is.
fn refused(error: EngineError, table: &TableDef, at: usize, value: &Value, what: Looked) -> EngineError {
    let column = &table.columns[at].name;
    let (state, problem) = match (what, error.sqlstate()) {
        (Looked::NotNull, SqlState::NOT_NULL_VIOLATION) if value.is_null() => {
            (SqlState::NOT_NULL_VIOLATION, "contains null values")
        }
        (_, SqlState::CHECK_VIOLATION) => (
            SqlState::CHECK_VIOLATION,
            "contains values that violate the new constraint",
        ),
        _ => return error,
    };
    EngineError::new(
        state,
        format!("column \"{column}\" of table \"{}\" {problem}", table.name),
    )
    .with_table(&table.schema.name, &table.name)
    .with_column(column)
}

/// True if a type is a domain, or one over it.
fn is_one(data_type: DataType, domain: DataType) -> bool {
    let mut at = data_type;
    while at != domain {
        match definition_of(at).as_deref().and_then(UserType::domain) {
            Some(over) => at = over.base,
            None => return false,
        }
    }
    true
}

/// True if a type is a domain, is over it, or has it inside.
fn is_over(state: &CatalogState, data_type: DataType, domain: DataType) -> bool {
    if data_type == domain {
        return true;
    }
    if let Some(element) = data_type.element() {
        return is_over(state, element, domain);
    }
    let found = data_type.user_oid().and_then(|oid| state.user_type(oid));
    found.is_some_and(|found| {
        let mut parts = found.parts().into_iter();
        parts.any(|part| clearway_sql::checkpoint(|| is_over(state, part, domain)))
    })
}

fn compile(domain: &mut DomainType) -> Result<()> {
    let conditions = domain.checks.iter().map(|check| check.sql.as_str());
    domain.compiled = compile_domain(domain.base, domain.typmod, domain.default.as_deref(), conditions)?;
    Ok(())
}

fn place_of(domain: &DomainType, name: &str) -> Option<usize> {
    domain.checks.iter().position(|check| check.name == name)
}

fn no_constraint(name: &str, domain: &str) -> EngineError {
    EngineError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("constraint \"{name}\" of domain \"{domain}\" does not exist"),
    )
}
