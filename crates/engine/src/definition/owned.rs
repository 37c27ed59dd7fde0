//! REASSIGN OWNED and DROP OWNED: all that roles own, and all that they have been granted.

use std::collections::BTreeSet;
use std::sync::Arc;

use clearway_sql::error::Result;
use clearway_sql::plan::Owner;
use clearway_sql::{ObjectAddress, SchemaRef};

use crate::catalog::CatalogState;
use crate::catalog::access::{Access, Acl, denied};
use crate::catalog::schema::SchemaEntry;
use crate::definition::{DefinitionChange, ReadableBy};

impl DefinitionChange<'_, '_, '_> {
    pub(super) fn reassign_owned(
        &mut self,
        state: &mut CatalogState,
        roles: &[Owner],
        to: &Owner,
    ) -> Result<()> {
        let owners = self.owners(state, roles, "permission denied to reassign objects")?;
        let to = self.role_number(state, to)?;
        if !state.has_privileges_of(self.execution.identity.current, to) {
            return Err(denied("permission denied to reassign objects"));
        }
        let schemas: Vec<SchemaEntry> = state.schema_entries().cloned().collect();
        for entry in schemas
            .into_iter()
            .filter(|entry| owners.contains(&entry.access.owner))
        {
            let access = Arc::new(entry.access.given_to(to));
            self.put_schema_row(state, SchemaEntry { access, ..entry })?;
        }
        for entry in state.all_relations() {
            if owners.contains(&entry.access.owner) {
                self.give(state, &entry, to)?;
            }
        }
        for found in state.user_types() {
            if owners.contains(&found.owner) {
                self.give_type(state, found.oid.get(), to)?;
            }
        }
        Ok(())
    }

    pub(super) fn drop_owned(&mut self, state: CatalogState, roles: &[Owner], cascade: bool) -> Result<()> {
        let owners = self.owners(&state, roles, "permission denied to drop objects")?;
        let is_owned = |access: &Access| owners.contains(&access.owner);
        let schemas = state.schema_entries().filter(|entry| is_owned(&entry.access));
        let schemas: Vec<SchemaRef> = schemas.map(|entry| entry.schema.clone()).collect();
        let address = |schema: &SchemaRef| ObjectAddress::new(ObjectAddress::PG_NAMESPACE, schema.oid);
        let mut roots: Vec<ObjectAddress> = schemas.iter().map(address).collect();
        let relations = state.all_relations().into_iter();
        roots.extend(
            relations
                .filter(|entry| is_owned(&entry.access))
                .map(|entry| ObjectAddress::relation(entry.def.oid)),
        );
        let types = state.user_types().into_iter();
        let types = types.filter(|found| owners.contains(&found.owner));
        roots.extend(types.map(|found| ObjectAddress::new(ObjectAddress::PG_TYPE, found.oid.get())));
        self.execution.txn.set_catalog_state(state);
        if !roots.is_empty() {
            self.drop_with(&roots, cascade)?;
        }
        let mut state = self.state()?;
        for schema in &schemas {
            self.drop_schema(&mut state, schema)?;
        }
        self.take_grants(&mut state, &owners)?;
        self.execution.txn.set_catalog_state(state);
        Ok(())
    }

    /// Takes away what was granted to these roles.
    fn take_grants(&mut self, state: &mut CatalogState, roles: &BTreeSet<u32>) -> Result<()> {
        let schemas: Vec<SchemaEntry> = state.schema_entries().cloned().collect();
        for entry in schemas {
            if let Some(access) = without(&entry.access, roles) {
                let access = Arc::new(access);
                self.put_schema_row(state, SchemaEntry { access, ..entry })?;
            }
        }
        for entry in state.all_relations() {
            if let Some(access) = without(&entry.access, roles) {
                let mut changed = (*entry).clone();
                changed.access = Arc::new(access);
                self.replace(state, &changed, (*entry.def).clone(), ReadableBy::OlderSnapshots)?;
            }
        }
        if let Some(access) = without(&state.database_access(), roles) {
            self.put_database(state, access)?;
        }
        for (key, acl) in state.all_default_acls() {
            let kept: Acl = acl
                .iter()
                .copied()
                .filter(|item| !roles.contains(&item.0))
                .collect();
            if roles.contains(&key.role) {
                self.put_default_acl(state, key, None)?;
            } else if kept.len() != acl.len() {
                self.put_default_acl(state, key, Some(kept))?;
            }
        }
        Ok(())
    }

    /// The roles of a statement; 42501 for one whose privileges the role that acts has not.
    fn owners(&self, state: &CatalogState, roles: &[Owner], message: &str) -> Result<BTreeSet<u32>> {
        let mut owners = BTreeSet::new();
        for role in roles {
            let oid = self.role_number(state, role)?;
            if !state.has_privileges_of(self.execution.identity.current, oid) {
                return Err(denied(message));
            }
            owners.insert(oid);
        }
        Ok(owners)
    }
}

/// The access without what these roles have been granted; `None` if they have been granted nothing.
fn without(access: &Access, roles: &BTreeSet<u32>) -> Option<Access> {
    let is_theirs =
        |item: &crate::catalog::access::AclItem| roles.contains(&item.0) && item.0 != access.owner;
    let mut lists = access.acl.iter().chain(access.columns.values());
    if !lists.any(|acl| acl.iter().any(is_theirs)) {
        return None;
    }
    let mut kept = access.clone();
    for acl in kept.acl.iter_mut().chain(kept.columns.values_mut()) {
        acl.retain(|item| !is_theirs(item));
    }
    kept.columns.retain(|_, acl| !acl.is_empty());
    Some(kept)
}
