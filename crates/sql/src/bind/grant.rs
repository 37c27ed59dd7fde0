//! GRANT and REVOKE: the relations in them are looked up.

use std::sync::Arc;

use crate::bind::Binder;
use crate::catalog::TableDef;
use crate::error::{EngineError, Result, SqlState};
use crate::parse::utility::Name;
use crate::plan::{DefinitionStatement, GrantObjects, GrantPlan};

impl Binder<'_> {
    pub(super) fn grant(&self, grant: &GrantPlan<Name>) -> Result<DefinitionStatement> {
        let tables = |names: &[Name]| {
            names
                .iter()
                .map(|name| self.granted(name))
                .collect::<Result<Vec<_>>>()
        };
        let objects = match &grant.objects {
            GrantObjects::Tables(names) => GrantObjects::Tables(tables(names)?),
            GrantObjects::Sequences(names) => GrantObjects::Sequences(tables(names)?),
            GrantObjects::TablesIn(schemas) => GrantObjects::TablesIn(schemas.clone()),
            GrantObjects::SequencesIn(schemas) => GrantObjects::SequencesIn(schemas.clone()),
            GrantObjects::Schemas(names) => GrantObjects::Schemas(names.clone()),
            GrantObjects::Databases(names) => GrantObjects::Databases(names.clone()),
            GrantObjects::Defaults { roles, schemas, of } => GrantObjects::Defaults {
                roles: roles.clone(),
                schemas: schemas.clone(),
                of: *of,
            },
        };
        Ok(DefinitionStatement::Grant(Box::new(GrantPlan {
            is_grant: grant.is_grant,
            privileges: grant.privileges.clone(),
            objects,
            grantees: grant.grantees.clone(),
            grant_option: grant.grant_option,
            cascade: grant.cascade,
            grantor: grant.grantor.clone(),
        })))
    }

    /// A relation of GRANT; 42809 for an index.
    fn granted(&self, name: &Name) -> Result<Arc<TableDef>> {
        self.any_table(name).map_err(|error| {
            match self.catalog.lookup_index(name.schema.as_deref(), &name.name) {
                Some(_) => EngineError::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!("\"{}\" is an index", name.name),
                ),
                None => error.without_position(),
            }
        })
    }
}
