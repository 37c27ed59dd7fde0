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
        let mut constraints = Vec::new();
        for name in names {
            constraints.extend(self.constraints_named(name, deferred)?);
        }
        if self.txn.phase != Phase::Block {
            return Ok(());
        }
        let constraints = (!names.is_empty()).then_some(constraints);
        self.txn.checks_mut().set_mode(constraints.clone(), deferred);
        if !deferred && self.txn.has_deferred_checks() {
            self.fire_deferred(constraints)?;
        }
        Ok(())
    }

    /// The deferrable constraints of this name: those of its schema, or of the first on the path that has some.
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
            let (mut found, mut others) = (Vec::new(), false);
            for table in state.tables_in(schema.oid) {
                let references = table.def.foreign_keys.iter();
                let references = references.map(|key| (&key.name, key.check_time, key.oid));
                let keys = table.def.indexes.iter().filter(|index| index.constraint);
                let keys = keys.map(|index| (&index.name, index.check_time, index.oid));
                for (_, time, oid) in references.chain(keys).filter(|known| *known.0 == name.name) {
                    match time.deferrable {
                        true => found.push(oid),
                        false => others = true,
                    }
                }
                others |= table.def.checks.iter().any(|check| check.name == name.name);
            }
            if others && deferred {
                return Err(EngineError::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!("constraint \"{}\" is not deferrable", name.name),
                ));
            }
            if others || !found.is_empty() {
                return Ok(found);
            }
        }
        Err(EngineError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("constraint \"{}\" does not exist", name.name),
        ))
    }
}
