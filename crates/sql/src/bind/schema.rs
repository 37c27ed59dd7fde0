//! Schemas in definitions: the one that a new relation goes to, and CREATE, ALTER and DROP SCHEMA.

use crate::bind::Binder;
use crate::catalog::SchemaRef;
use crate::error::{EngineError, Result, SqlState};
use crate::parse::utility::NamedDefinition;
use crate::plan::{DefinitionStatement, OnCommit};
use crate::search_path::PG_TEMP;

/// The numbers of the schemas that only the system has relations in.
const SYSTEM_SCHEMAS: [u32; 2] = [11, 13_207];

impl Binder<'_> {
    /// The schema that a new relation of this name goes to; 3F000 if there is none.
    pub(super) fn schema_for(
        &self,
        schema: Option<&str>,
        name: &str,
        position: Option<u32>,
    ) -> Result<SchemaRef> {
        let found = match schema {
            None => self.catalog.creation_schema().ok_or_else(|| {
                EngineError::new(
                    SqlState::INVALID_SCHEMA_NAME,
                    "no schema has been selected to create in",
                )
            }),
            Some(schema) => self.catalog.schema(schema).ok_or_else(|| no_schema(schema)),
        };
        let found = found.map_err(|error| error.or_position(position))?;
        if SYSTEM_SCHEMAS.contains(&found.oid) {
            return Err(EngineError::new(
                SqlState::from_code("42501"),
                format!("permission denied to create \"{}.{name}\"", found.name),
            )
            .with_detail("System catalog modifications are currently disallowed."));
        }
        self.catalog.require_create(&found)?;
        Ok(found)
    }

    /// [`schema_for`](Self::schema_for) a table that may be temporary: said to be, or by its schema.
    pub(super) fn schema_for_table(
        &self,
        temporary: bool,
        schema: Option<&str>,
        name: &str,
        position: Option<u32>,
    ) -> Result<SchemaRef> {
        let own = self.catalog.temporary_schema();
        let names_own =
            |schema: &str| schema == PG_TEMP || own.as_ref().is_some_and(|own| *own.name == *schema);
        match schema {
            Some(schema) if names_own(schema) => {}
            None if temporary => {}
            Some(_) if temporary => {
                return Err(EngineError::new(
                    SqlState::INVALID_TABLE_DEFINITION,
                    "cannot create temporary relation in non-temporary schema",
                )
                .or_position(position));
            }
            _ => return self.schema_for(schema, name, position),
        }
        own.ok_or_else(|| EngineError::not_supported("CREATE TEMPORARY TABLE"))
    }

    /// 3F000 for a schema that is written and that there is not.
    pub(super) fn require_schema(&self, schema: Option<&str>, position: Option<u32>) -> Result<()> {
        match schema {
            Some(schema) if self.catalog.schema(schema).is_none() => {
                Err(no_schema(schema).or_position(position))
            }
            Some(schema) => self.catalog.require_usage(schema),
            _ => Ok(()),
        }
    }

    /// CREATE, ALTER or DROP SCHEMA; `None` for another statement.
    pub(super) fn schema_statement(&self, statement: &NamedDefinition) -> Option<DefinitionStatement> {
        Some(match statement {
            NamedDefinition::CreateSchema {
                name,
                owner: role,
                if_not_exists,
                elements,
            } => DefinitionStatement::CreateSchema {
                name: name.clone(),
                owner: role.clone(),
                if_not_exists: *if_not_exists,
                elements: elements.clone(),
            },
            NamedDefinition::RenameSchema { name, to } => DefinitionStatement::RenameSchema {
                name: name.clone(),
                to: to.clone(),
            },
            NamedDefinition::SchemaOwner { name, owner: role } => DefinitionStatement::SchemaOwner {
                name: name.clone(),
                owner: role.clone(),
            },
            NamedDefinition::DropSchema {
                names,
                if_exists,
                cascade,
            } => DefinitionStatement::DropSchema {
                names: names.clone(),
                if_exists: *if_exists,
                cascade: *cascade,
            },
            _ => return None,
        })
    }
}

/// The fate of a table of this schema at a commit; 42P16 if one is asked for and the table is not temporary.
pub(super) fn on_commit(asked: Option<OnCommit>, schema: &SchemaRef) -> Result<OnCommit> {
    if asked.is_some() && !schema.is_temporary() {
        return Err(EngineError::new(
            SqlState::INVALID_TABLE_DEFINITION,
            "ON COMMIT can only be used on temporary tables",
        ));
    }
    Ok(asked.unwrap_or(OnCommit::PreserveRows))
}

/// 3F000
pub(super) fn no_schema(name: &str) -> EngineError {
    EngineError::new(
        SqlState::INVALID_SCHEMA_NAME,
        format!("schema \"{name}\" does not exist"),
    )
}

/// 42P16 for an UNLOGGED table in a schema of temporary ones.
pub(super) fn require_logged(unlogged: bool, schema: &SchemaRef) -> Result<()> {
    match unlogged && schema.is_temporary() {
        true => Err(EngineError::new(
            SqlState::INVALID_TABLE_DEFINITION,
            "only temporary relations may be created in temporary schemas",
        )),
        false => Ok(()),
    }
}
