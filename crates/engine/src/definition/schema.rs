//! CREATE, ALTER and DROP SCHEMA.
//!
//! A schema is a row of the catalog heap with its number and its name. Its number is one that a relation could have had:
//! a relation is made for it, and removed when the transaction ends either way.

use std::sync::Arc;

use clearway_sql::{ObjectAddress, SchemaRef};
use clearway_storage::heap::{DeleteOutcome, Heap, Tid, UpdateOutcome};

use crate::catalog::access::{Access, Kind};
use crate::catalog::schema::SchemaEntry;
use crate::catalog::system::shape::Schema;
use crate::catalog::{CATALOG_REL, CatalogState, stored};
use crate::convert::storage_error;
use crate::definition::written_names::require_schema_unwritten;
use crate::definition::{DefinitionChange, NewSchema, notice, raced};
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::Owner;

impl DefinitionChange<'_, '_, '_> {
    pub(super) fn create_schema(
        &mut self,
        name: Option<&str>,
        owner: Option<&Owner>,
        if_not_exists: bool,
    ) -> Result<()> {
        let mut state = self.state()?;
        let owner = self.role_number(&state, owner.unwrap_or(&Owner::Current))?;
        let is_own = owner == self.role_number(&state, &Owner::Current)?;
        let name = match name {
            Some(name) => name.to_owned(),
            None => self.name_of_role(&state, owner),
        };
        check_name(&name)?;
        if state.schema_named(&name).is_some() {
            if !if_not_exists {
                return Err(already_exists(&name));
            }
            let text = format!("schema \"{name}\" already exists, skipping");
            self.outcome
                .notices
                .push(notice(SqlState::from_code("42P06"), text));
            return Ok(());
        }
        let public = state.schema_entry(SchemaRef::PUBLIC_OID);
        let was_dropped = public.filter(|entry| entry.is_dropped && *entry.schema.name == *name);
        let access = Access {
            acl: state.acl_of_new(Kind::Schema, owner, 0),
            ..Access::of(owner)
        };
        let entry = match was_dropped {
            Some(dropped) => SchemaEntry {
                is_dropped: false,
                access: Arc::new(access),
                ..dropped.clone()
            },
            None => SchemaEntry {
                schema: SchemaRef::new(self.fresh_number()?, &name),
                tid: None,
                is_dropped: false,
                access: Arc::new(access),
            },
        };
        self.put_schema_row(&mut state, entry)?;
        self.execution.txn.set_catalog_state(state);
        self.outcome.schema = Some(NewSchema { name, is_own });
        Ok(())
    }

    pub(super) fn rename_schema(&mut self, name: &str, to: &str) -> Result<()> {
        let mut state = self.state()?;
        let entry = users_schema(&state, name)?;
        check_name(to)?;
        if state.schema_named(to).is_some() {
            return Err(already_exists(to));
        }
        require_schema_unwritten(&state, name)?;
        let entry = SchemaEntry {
            schema: SchemaRef::new(entry.schema.oid, to),
            ..entry
        };
        self.put_schema_row(&mut state, entry)?;
        self.execution.txn.set_catalog_state(state);
        Ok(())
    }

    pub(super) fn schema_owner(&mut self, name: &str, owner: &Owner) -> Result<()> {
        let mut state = self.state()?;
        if state.schema_named(name).is_none() {
            return Err(no_schema(name));
        }
        let entry = users_schema(&state, name)?;
        let owner = self.role_number(&state, owner)?;
        let access = Arc::new(entry.access.given_to(owner));
        self.put_schema_row(&mut state, SchemaEntry { access, ..entry })?;
        self.execution.txn.set_catalog_state(state);
        Ok(())
    }

    pub(super) fn drop_schemas(&mut self, names: &[String], if_exists: bool, cascade: bool) -> Result<()> {
        let state = self.execution.txn.catalog_state();
        let mut schemas = Vec::with_capacity(names.len());
        for name in names {
            if if_exists && state.schema_named(name).is_none() {
                let text = format!("schema \"{name}\" does not exist, skipping");
                self.outcome.notices.push(notice(SqlState::SUCCESS, text));
                continue;
            }
            let schema = users_schema(&state, name)?.schema;
            if !schemas.contains(&schema) {
                schemas.push(schema);
            }
        }
        let address = |schema: &SchemaRef| ObjectAddress::new(ObjectAddress::PG_NAMESPACE, schema.oid);
        let roots: Vec<ObjectAddress> = schemas.iter().map(address).collect();
        self.drop_with(&roots, cascade)?;
        let mut state = self.state()?;
        for schema in &schemas {
            self.drop_schema(&mut state, schema)?;
        }
        self.execution.txn.set_catalog_state(state);
        Ok(())
    }

    pub(super) fn drop_schema(&mut self, state: &mut CatalogState, schema: &SchemaRef) -> Result<()> {
        let entry = users_schema(state, &schema.name)?;
        let address = ObjectAddress::new(ObjectAddress::PG_NAMESPACE, schema.oid);
        self.remove_comments(state, &[address])?;
        for (key, _) in state.all_default_acls() {
            if key.schema == schema.oid {
                self.put_default_acl(state, key, None)?;
            }
        }
        match entry.tid {
            tid if schema.oid == SchemaRef::PUBLIC_OID => {
                // Under the name that it has first: CREATE SCHEMA makes that one again.
                let dropped = SchemaEntry {
                    is_dropped: true,
                    tid,
                    ..SchemaEntry::public()
                };
                self.put_schema_row(state, dropped)
            }
            Some(tid) => {
                self.delete_schema_row(tid, &schema.name)?;
                state.remove_schema(schema.oid);
                Ok(())
            }
            None => Err(raced(&schema.name)),
        }
    }

    /// Writes the row of a schema, in the place of the one that it has, if it has one.
    pub(super) fn put_schema_row(&mut self, state: &mut CatalogState, mut entry: SchemaEntry) -> Result<()> {
        let before = entry.tid;
        let bytes = stored::encode_schema(&entry)?;
        let context = self.execution.txn.context();
        let heap = Heap::new(CATALOG_REL);
        entry.tid = Some(match before {
            None => heap.insert(&context, &bytes).map_err(storage_error)?,
            Some(tid) => match heap.update(&context, tid, &bytes, false).map_err(storage_error)? {
                UpdateOutcome::Updated { tid, .. } => tid,
                _ => return Err(raced(&entry.schema.name)),
            },
        });
        // A later step of the same statement may change the row again.
        self.execution.txn.next_command();
        state.put_schema(entry);
        Ok(())
    }

    fn delete_schema_row(&mut self, tid: Tid, name: &str) -> Result<()> {
        let context = self.execution.txn.context();
        match Heap::new(CATALOG_REL)
            .delete(&context, tid)
            .map_err(storage_error)?
        {
            DeleteOutcome::Deleted => Ok(()),
            _ => Err(raced(name)),
        }
    }
}

/// The schema of users of this name; 2BP01 for one of the system.
pub(super) fn users_schema(state: &CatalogState, name: &str) -> Result<SchemaEntry> {
    if Schema::SYSTEM.into_iter().any(|schema| schema.name() == name) {
        return Err(EngineError::new(
            SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
            format!("cannot drop schema {name} because it is required by the database system"),
        ));
    }
    let schema = state.schema_named(name).ok_or_else(|| no_schema(name))?;
    if schema.is_temporary() {
        return Err(EngineError::not_supported(
            "a change of the schema of temporary tables",
        ));
    }
    state
        .schema_entry(schema.oid)
        .cloned()
        .ok_or_else(|| no_schema(name))
}

pub(super) fn no_schema(name: &str) -> EngineError {
    EngineError::new(
        SqlState::INVALID_SCHEMA_NAME,
        format!("schema \"{name}\" does not exist"),
    )
}

fn already_exists(name: &str) -> EngineError {
    EngineError::new(
        SqlState::from_code("42P06"),
        format!("schema \"{name}\" already exists"),
    )
}

/// 42939 for a name that is kept for the system.
fn check_name(name: &str) -> Result<()> {
    if !name.starts_with("pg_") {
        return Ok(());
    }
    Err(EngineError::new(
        SqlState::from_code("42939"),
        format!("unacceptable schema name \"{name}\""),
    )
    .with_detail("The prefix \"pg_\" is reserved for system schemas."))
}
