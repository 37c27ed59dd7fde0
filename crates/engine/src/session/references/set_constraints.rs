//! SET CONSTRAINTS.

use crate::output::{Notice, Output};
use crate::session::Session;
use crate::transaction::Phase;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::ConstraintName;

impl Session {
    /// Sets when constraints are checked in the rest of the transaction. Those that are checked at once from now on are
    /// looked at for all that has been noted before.
    pub(crate) fn set_constraints(
        &mut self,
        names: &[ConstraintName],
        deferred: bool,
        out: &mut dyn Output,
    ) -> Result<()> {
        if self.txn.phase != Phase::Block {
            self.notice(
                &Notice::warning(
                    SqlState::NO_ACTIVE_SQL_TRANSACTION,
                    "SET CONSTRAINTS can only be used in transaction blocks",
                ),
                out,
            )?;
        }
        let mut keys = Vec::new();
        for name in names {
            keys.extend(self.constraints_named(name, deferred)?);
        }
        if self.txn.phase != Phase::Block {
            return Ok(());
        }
        let keys = (!names.is_empty()).then_some(keys);
        self.txn.references_mut().set_mode(keys.clone(), deferred);
        if !deferred && self.txn.has_deferred_references() {
            self.fire_deferred(keys)?;
        }
        Ok(())
    }

    /// The foreign keys of this name: those of its schema, or of the first on the path that has some.
    fn constraints_named(&mut self, name: &ConstraintName, deferred: bool) -> Result<Vec<u32>> {
        self.txn.catalog_version();
        let state = self.txn.catalog_state();
        let schemas = match &name.schema {
            Some(schema) => vec![state.schema_named(schema).ok_or_else(|| {
                EngineError::new(
                    SqlState::INVALID_SCHEMA_NAME,
                    format!("schema \"{schema}\" does not exist"),
                )
            })?],
            None => state
                .searched(&self.settings.search_path, &self.identity.user)
                .collect(),
        };
        for schema in schemas {
            let (mut keys, mut others) = (Vec::new(), false);
            for table in state.tables_in(schema.oid) {
                let own = table.def.foreign_keys.iter();
                for key in own.filter(|key| key.name == name.name) {
                    match key.check_time.deferrable {
                        true => keys.push(key.oid),
                        false => others = true,
                    }
                }
                let mut indexes = table.def.indexes.iter();
                others |= indexes.any(|index| index.constraint && index.name == name.name);
                others |= table.def.checks.iter().any(|check| check.name == name.name);
            }
            if others && deferred {
                return Err(EngineError::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!("constraint \"{}\" is not deferrable", name.name),
                ));
            }
            if others || !keys.is_empty() {
                return Ok(keys);
            }
        }
        Err(EngineError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("constraint \"{}\" does not exist", name.name),
        ))
    }
}
