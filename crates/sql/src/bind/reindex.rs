//! REINDEX and DROP INDEX: from names to tables and indexes.

use std::sync::Arc;

use crate::bind::Binder;
use crate::catalog::{TableDef, TableKind};
use crate::error::{EngineError, Result, SqlState};
use crate::parse::utility::Name;
use crate::plan::{DefinitionStatement, Reindex, ReindexAsRead, ReindexKind, ReindexTarget};

impl Binder<'_> {
    pub(super) fn reindex(&self, reindex: &ReindexAsRead<Name>) -> Result<DefinitionStatement> {
        let name = &reindex.name;
        let target = match reindex.kind {
            ReindexKind::Index => self.reindexed_index(name)?,
            ReindexKind::Table => ReindexTarget::Table(self.reindexed_table(name, reindex.concurrently)?),
            ReindexKind::Schema => match self.catalog.schema(&name.name) {
                Some(schema) => ReindexTarget::Schema(schema),
                None => {
                    return Err(EngineError::new(
                        SqlState::INVALID_SCHEMA_NAME,
                        format!("schema \"{}\" does not exist", name.name),
                    ));
                }
            },
            ReindexKind::Database => ReindexTarget::Database(name.name.clone()),
            ReindexKind::System if reindex.concurrently => return Err(system_concurrently()),
            ReindexKind::System => ReindexTarget::System(name.name.clone()),
        };
        Ok(DefinitionStatement::Reindex(Box::new(Reindex {
            target,
            verbose: reindex.verbose,
            concurrently: reindex.concurrently,
        })))
    }

    fn reindexed_index(&self, name: &Name) -> Result<ReindexTarget> {
        let schema = name.schema.as_deref();
        if let Some(table) = self.catalog.lookup_index(schema, &name.name) {
            let mut indexes = table.all_indexes();
            let index = indexes
                .find(|index| index.name == name.name)
                .map(|index| index.oid);
            if let Some(index) = index {
                drop(indexes);
                return Ok(ReindexTarget::Index { table, index });
            }
        }
        self.require_schema(schema, None)?;
        Err(match self.catalog.lookup_table(schema, &name.name) {
            Some(_) => EngineError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{}\" is not an index", name.name),
            ),
            None => EngineError::new(
                SqlState::UNDEFINED_TABLE,
                match schema {
                    Some(schema) => format!("relation \"{schema}.{}\" does not exist", name.name),
                    None => format!("relation \"{}\" does not exist", name.name),
                },
            ),
        })
    }

    fn reindexed_table(&self, name: &Name, concurrently: bool) -> Result<Arc<TableDef>> {
        let schema = name.schema.as_deref();
        let is_index = self.catalog.lookup_table(schema, &name.name).is_none()
            && self.catalog.lookup_index(schema, &name.name).is_some();
        let table = match is_index {
            true => None,
            false => {
                self.require_schema(schema, None)?;
                Some(self.table_named(schema, &name.name, None)?)
            }
        };
        let table = table.filter(|table| table.view.is_none() && table.sequence.is_none());
        match table {
            Some(table) if table.kind == TableKind::Virtual && concurrently => Err(system_concurrently()),
            Some(table) => Ok(table),
            None => Err(EngineError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{}\" is not a table or materialized view", name.name),
            )),
        }
    }

    pub(super) fn drop_index(
        &self,
        indexes: &[Name],
        if_exists: bool,
        concurrently: bool,
    ) -> Result<DefinitionStatement> {
        if concurrently && indexes.len() > 1 {
            return Err(EngineError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "DROP INDEX CONCURRENTLY does not support dropping multiple objects",
            ));
        }
        let mut found = Vec::with_capacity(indexes.len());
        for name in indexes {
            let table = self.catalog.lookup_index(name.schema.as_deref(), &name.name);
            if table.is_none() && !if_exists {
                self.require_schema(name.schema.as_deref(), None)?;
                return Err(EngineError::new(
                    SqlState::UNDEFINED_OBJECT,
                    format!("index \"{}\" does not exist", name.name),
                ));
            }
            found.push((name.name.clone(), table));
        }
        Ok(DefinitionStatement::DropIndex {
            indexes: found,
            if_exists,
            concurrently,
        })
    }
}

fn system_concurrently() -> EngineError {
    EngineError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        "cannot reindex system catalogs concurrently",
    )
}
