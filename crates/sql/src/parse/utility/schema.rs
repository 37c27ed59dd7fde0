//! CREATE, ALTER and DROP SCHEMA.

use crate::error::{EngineError, Result, SqlState};
use crate::parse::utility::NamedDefinition;
use crate::parse::utility::reader::Reader;

/// A role as written.
pub(crate) use crate::plan::Owner as RoleName;

impl Reader<'_> {
    /// CREATE SCHEMA, behind both words.
    pub(super) fn create_schema(&mut self) -> Result<NamedDefinition> {
        let if_not_exists = self.eat("if not exists");
        let name = match self.peek_word() {
            "authorization" => None,
            _ => Some(self.identifier()?.0),
        };
        let owner = match self.eat("authorization") {
            true => Some(self.role()?),
            false => None,
        };
        let elements = match self.peek_word() {
            "create" | "grant" if if_not_exists => {
                return Err(EngineError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "CREATE SCHEMA IF NOT EXISTS cannot include schema elements",
                ));
            }
            "create" | "grant" => self.schema_elements(name.as_deref())?,
            _ => Vec::new(),
        };
        Ok(NamedDefinition::CreateSchema {
            name,
            owner,
            if_not_exists,
            elements,
        })
    }

    /// ALTER SCHEMA, behind both words.
    pub(super) fn alter_schema(&mut self) -> Result<NamedDefinition> {
        let (name, _) = self.identifier()?;
        if self.eat("owner to") {
            let owner = self.role()?;
            return Ok(NamedDefinition::SchemaOwner { name, owner });
        }
        self.expect("rename to")?;
        let (to, _) = self.identifier()?;
        Ok(NamedDefinition::RenameSchema { name, to })
    }

    /// DROP SCHEMA, behind both words.
    pub(super) fn drop_schema(&mut self) -> Result<NamedDefinition> {
        let if_exists = self.eat("if exists");
        let mut names = vec![self.identifier()?.0];
        while self.eat_symbol(',') {
            names.push(self.identifier()?.0);
        }
        let cascade = self.eat("cascade");
        let _ = cascade || self.eat("restrict");
        Ok(NamedDefinition::DropSchema {
            names,
            if_exists,
            cascade,
        })
    }
}
