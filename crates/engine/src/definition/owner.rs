//! Owners: the roles that statements name, and what only an owner may do.

use std::sync::Arc;

use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::Owner;
use clearway_sql::{SchemaRef, TableKind};

use crate::catalog::access::{CREATE, Kind, denied};
use crate::catalog::{CatalogState, TableEntry};
use crate::definition::{DefinitionChange, ReadableBy};

/// A relation's kind, as PostgreSQL's messages name it.
pub(crate) fn kind_of(entry: &TableEntry) -> &'static str {
    match (entry.def.kind, &entry.def.sequence) {
        (TableKind::View, _) => "view",
        (_, Some(_)) => "sequence",
        _ => "table",
    }
}

impl DefinitionChange<'_, '_, '_> {
    /// The number of the role that a statement names.
    pub(super) fn role_number(&self, state: &CatalogState, role: &Owner) -> Result<u32> {
        let identity = self.execution.identity;
        match role {
            Owner::Current => Ok(identity.current),
            Owner::Session => Ok(identity.session),
            Owner::Public => Err(no_role("public")),
            Owner::Named(name) => state
                .role_number(name, self.execution.login)
                .ok_or_else(|| no_role(name)),
        }
    }

    /// The name of a role.
    pub(super) fn name_of_role(&self, state: &CatalogState, oid: u32) -> String {
        let name = state.role_name(oid, self.execution.login);
        name.map_or_else(|| oid.to_string(), str::to_owned)
    }

    /// 42501 unless the role that acts owns a relation.
    pub(super) fn require_owner(&self, state: &CatalogState, entry: &TableEntry) -> Result<()> {
        match state.has_privileges_of(self.execution.identity.current, entry.access.owner) {
            true => Ok(()),
            false => Err(denied(format!(
                "must be owner of {} {}",
                kind_of(entry),
                entry.def.name
            ))),
        }
    }

    /// 42501 unless the role that acts may give an object to another, which may have it in this schema.
    pub(super) fn require_may_give(
        &self,
        state: &CatalogState,
        to: u32,
        schema: Option<&SchemaRef>,
    ) -> Result<()> {
        let identity = self.execution.identity;
        if identity.is_superuser {
            return Ok(());
        }
        if !state.is_member(identity.current, to) {
            let name = self.name_of_role(state, to);
            return Err(denied(format!("must be member of role \"{name}\"")));
        }
        match schema {
            Some(schema) if !schema.is_temporary() && !state.may(to, Kind::Schema, schema.oid, CREATE) => {
                Err(denied(format!("permission denied for schema {}", schema.name)))
            }
            _ => Ok(()),
        }
    }

    /// OWNER TO, of a relation; the sequences of its columns go with it.
    pub(super) fn relation_owner(&mut self, entry: &TableEntry, owner: &Owner) -> Result<()> {
        let mut state = self.state()?;
        let to = self.role_number(&state, owner)?;
        if to == entry.access.owner {
            return Ok(());
        }
        self.require_owner(&state, entry)?;
        self.require_may_give(&state, to, Some(&entry.def.schema))?;
        for sequence in state.owned_sequences(entry.def.oid, None) {
            self.give(&mut state, &sequence, to)?;
        }
        self.give(&mut state, entry, to)?;
        self.keep(state, &entry.def.schema);
        Ok(())
    }

    /// Gives a relation to a role.
    pub(super) fn give(&mut self, state: &mut CatalogState, entry: &TableEntry, to: u32) -> Result<()> {
        let mut entry = entry.clone();
        entry.access = Arc::new(entry.access.given_to(to));
        let table = (*entry.def).clone();
        self.replace(state, &entry, table, ReadableBy::OlderSnapshots)
    }
}

/// 42704
pub(super) fn no_role(name: &str) -> EngineError {
    EngineError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("role \"{name}\" does not exist"),
    )
}
