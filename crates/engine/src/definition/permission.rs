//! The right to define: owners may change what is theirs, others need a privilege.

use std::sync::Arc;

use clearway_sql::error::{EngineError, Result};
use clearway_sql::plan::{Commented, DefinitionStatement, NewForeignKey, Owner, ReindexTarget, TableAction};
use clearway_sql::{ObjectAddress, SchemaRef, TableDef};

use crate::catalog::access::{CREATE, Kind, REFERENCES, TEMPORARY, TRUNCATE, denied, held};
use crate::catalog::{CatalogState, TableEntry};
use crate::definition::DefinitionChange;
use crate::definition::owner::kind_of;

/// A name of a statement with what it leads to.
type Named = (String, Option<Arc<TableDef>>);

impl DefinitionChange<'_, '_, '_> {
    /// 42501 unless the role that acts may run the statement. Roles and grants have rules of their own.
    pub(super) fn check_permission(&self, statement: &DefinitionStatement) -> Result<()> {
        if self.execution.identity.is_superuser {
            return Ok(());
        }
        let state = self.execution.txn.catalog_state();
        let owns = |table: &Option<Arc<TableDef>>| match table {
            Some(table) => self.require_owner_of(&state, table),
            None => Ok(()),
        };
        match statement {
            DefinitionStatement::CreateTable(create) => {
                self.may_create(&state, &create.schema)?;
                self.may_refer(&state, create.foreign_keys.iter())
            }
            DefinitionStatement::CreateTableAs(create) => self.may_create(&state, &create.create.schema),
            DefinitionStatement::CreateSequence(create) => self.may_create(&state, &create.schema),
            DefinitionStatement::CreateView(create) => {
                self.may_create(&state, &create.schema)?;
                owns(&create.replaced)
            }
            DefinitionStatement::DropTable { tables: found, .. }
            | DefinitionStatement::DropView { views: found, .. }
            | DefinitionStatement::DropSequence { sequences: found, .. } => self.may_drop(&state, found),
            DefinitionStatement::DropIndex { indexes, .. } => {
                for (name, table) in indexes {
                    let entry = table.as_ref().and_then(|table| state.table(table.oid));
                    if entry.is_some_and(|entry| !self.owns(&state, entry)) {
                        return Err(denied(format!("must be owner of index {name}")));
                    }
                }
                Ok(())
            }
            DefinitionStatement::Reindex(reindex) => self.may_reindex(&state, &reindex.target),
            DefinitionStatement::AlterTable(alter) => {
                owns(&alter.table)?;
                self.may_refer(&state, alter.actions.iter().flat_map(TableAction::foreign_keys))
            }
            DefinitionStatement::AlterView(alter) => owns(&alter.view),
            DefinitionStatement::AlterSequence(alter) => owns(&alter.sequence),
            DefinitionStatement::CreateIndex(create) => self.require_owner_of(&state, &create.table),
            DefinitionStatement::SetParameters { table, .. } => self.require_owner_of(&state, table),
            DefinitionStatement::Truncate { tables, cascaded, .. } => {
                for table in tables.iter().chain(cascaded) {
                    self.require_privilege(&state, table, TRUNCATE)?;
                }
                Ok(())
            }
            DefinitionStatement::CreateSchema { owner, .. } => {
                if let Some(owner @ (Owner::Named(_) | Owner::Session)) = owner {
                    let to = self.role_number(&state, owner)?;
                    self.require_may_give(&state, to, None)?;
                }
                self.may_in_database(&state, CREATE)
            }
            DefinitionStatement::RenameSchema { name, .. } => {
                self.require_owner_of_schema(&state, name)?;
                self.may_in_database(&state, CREATE)
            }
            DefinitionStatement::SchemaOwner { name, owner } => {
                self.require_owner_of_schema(&state, name)?;
                let to = self.role_number(&state, owner)?;
                self.require_may_give(&state, to, None)?;
                self.may_in_database(&state, CREATE)
            }
            DefinitionStatement::DropSchema { names, .. } => {
                let mut names = names.iter();
                names.try_for_each(|name| self.require_owner_of_schema(&state, name))
            }
            DefinitionStatement::Comment(comment) => self.may_comment(&state, &comment.on),
            DefinitionStatement::Type(statement) => {
                self.check_type_permission(&state, statement)?;
                let mut of_tables = statement.of_tables().iter();
                of_tables.try_for_each(|alter| owns(&alter.table))
            }
            DefinitionStatement::Role(_) | DefinitionStatement::Grant(_) => Ok(()),
        }
    }

    fn may_reindex(&self, state: &CatalogState, target: &ReindexTarget) -> Result<()> {
        match target {
            ReindexTarget::Table(table) => self.require_owner_of(state, table),
            ReindexTarget::Index { table, index } => {
                let owned = (state.table(table.oid)).is_none_or(|entry| self.owns(state, entry));
                let name = table.all_indexes().find(|other| other.oid == *index);
                match (owned, name) {
                    (false, Some(index)) => Err(denied(format!("must be owner of index {}", index.name))),
                    _ => Ok(()),
                }
            }
            ReindexTarget::Schema(schema) => self.require_owner_of_schema(state, &schema.name),
            ReindexTarget::Database(name) | ReindexTarget::System(name) => {
                self.require_owner_of_database(state, name)
            }
        }
    }

    fn owns(&self, state: &CatalogState, entry: &TableEntry) -> bool {
        state.has_privileges_of(self.execution.identity.current, entry.access.owner)
    }

    /// 42501 unless the role that acts owns a relation, which may be one of the system.
    fn require_owner_of(&self, state: &CatalogState, table: &TableDef) -> Result<()> {
        match state.table(table.oid) {
            Some(entry) => self.require_owner(state, entry),
            None => Err(denied(format!("must be owner of table {}", table.name))),
        }
    }

    fn require_owner_of_database(&self, state: &CatalogState, name: &str) -> Result<()> {
        match state.has_privileges_of(self.execution.identity.current, state.database_owner()) {
            true => Ok(()),
            false => Err(denied(format!("must be owner of database {name}"))),
        }
    }

    fn require_owner_of_schema(&self, state: &CatalogState, name: &str) -> Result<()> {
        let schema = state.schema_named(name);
        let entry = schema.and_then(|schema| state.schema_entry(schema.oid).cloned());
        let acts = self.execution.identity.current;
        match entry {
            Some(entry) if !state.has_privileges_of(acts, entry.access.owner) => {
                Err(denied(format!("must be owner of schema {name}")))
            }
            // What is not there, or the system's, is refused where it is looked up.
            _ => Ok(()),
        }
    }

    /// The owner of its schema may drop a relation too.
    fn may_drop(&self, state: &CatalogState, found: &[Named]) -> Result<()> {
        let acts = self.execution.identity.current;
        for (_, table) in found {
            let Some(entry) = table.as_ref().and_then(|table| state.table(table.oid)) else {
                continue;
            };
            let schema = state.schema_entry(entry.def.schema.oid);
            let owns_schema = schema.is_some_and(|schema| state.has_privileges_of(acts, schema.access.owner));
            if !owns_schema {
                self.require_owner(state, entry)?;
            }
        }
        Ok(())
    }

    fn may_create(&self, state: &CatalogState, schema: &SchemaRef) -> Result<()> {
        if !schema.is_temporary() {
            // The binder has asked.
            return Ok(());
        }
        if state.may(self.execution.identity.current, Kind::Database, 0, TEMPORARY) {
            return Ok(());
        }
        let database = self.execution.eval.session.database();
        Err(denied(format!(
            "permission denied to create temporary tables in database \"{database}\""
        )))
    }

    fn may_in_database(&self, state: &CatalogState, privilege: u16) -> Result<()> {
        if state.may(self.execution.identity.current, Kind::Database, 0, privilege) {
            return Ok(());
        }
        let database = self.execution.eval.session.database();
        Err(denied(format!("permission denied for database {database}")))
    }

    /// Foreign keys need REFERENCES on the columns that they name.
    fn may_refer<'k>(
        &self,
        state: &CatalogState,
        keys: impl Iterator<Item = &'k NewForeignKey>,
    ) -> Result<()> {
        for key in keys {
            let Some(parent) = &key.parent else { continue };
            self.require_references(state, parent, &key.parent_columns)?;
        }
        Ok(())
    }

    fn require_privilege(&self, state: &CatalogState, table: &TableDef, privilege: u16) -> Result<()> {
        match state.may(self.execution.identity.current, Kind::Table, table.oid, privilege) {
            true => Ok(()),
            false => Err(self.refused(state, table)),
        }
    }

    /// REFERENCES on a table, or on each of the columns that a foreign key names: those of the primary key if there are none.
    fn require_references(&self, state: &CatalogState, table: &TableDef, named: &[String]) -> Result<()> {
        let acts = self.execution.identity.current;
        let roles = state.inherited_roles(acts);
        let may = |column: u16| {
            let lists = state.table(table.oid).map(|entry| &entry.access.columns);
            let acl = lists.and_then(|lists| lists.get(&table.attribute_number(column)));
            acl.is_some_and(|acl| held(acl, &roles, REFERENCES, false) != 0)
        };
        let columns: Vec<u16> = match (named, table.primary_key()) {
            ([], Some(key)) => (0..key.keys.len()).filter_map(|at| key.column(at)).collect(),
            (named, _) => named
                .iter()
                .filter_map(|name| table.column_number(name))
                .collect(),
        };
        if state.may(acts, Kind::Table, table.oid, REFERENCES)
            || (!columns.is_empty() && columns.into_iter().all(may))
        {
            return Ok(());
        }
        Err(self.refused(state, table))
    }

    fn refused(&self, state: &CatalogState, table: &TableDef) -> EngineError {
        let kind = state.table(table.oid).map_or("table", |entry| kind_of(entry));
        denied(format!("permission denied for {kind} {}", table.name))
    }

    fn may_comment(&self, state: &CatalogState, on: &Commented) -> Result<()> {
        match on {
            Commented::Object(address) => {
                let relation = match address.catalog {
                    ObjectAddress::PG_CLASS => state.table(address.object),
                    _ => None,
                };
                match relation.or_else(|| state.owner(address.object)) {
                    Some(entry) => self.require_owner(state, entry),
                    None => Ok(()),
                }
            }
            Commented::Type(of, _) => self.require_owner_of_type(state, of),
            Commented::Schema(name) => self.require_owner_of_schema(state, name),
            Commented::Database(name) => self.require_owner_of_database(state, name),
            Commented::Role(name) => {
                let role = state.roles().named(name);
                let acts = state.roles().get(self.execution.identity.current);
                if role.is_some_and(|entry| entry.role.superuser) {
                    return Err(denied("must be superuser"));
                }
                match acts.is_some_and(|entry| entry.role.create_roles) {
                    true => Ok(()),
                    false => Err(denied("must have CREATEROLE privilege")),
                }
            }
        }
    }
}
