//! Storage parameters: `WITH (…)` of CREATE TABLE … AS, SET and RESET of ALTER TABLE.

use crate::error::{EngineError, Result};
use crate::lex::Kind;
use crate::parse::utility::{NamedDefinition, Reader};
use crate::storage_parameters::{StorageParameters, check};

impl Reader<'_> {
    /// True for `ALTER TABLE t SET (` and `ALTER TABLE t RESET (`, read from its second word on.
    pub(super) fn alters_parameters(&mut self) -> bool {
        self.at = 1;
        let begins = self.expect("table").is_ok() && {
            let _ = self.eat("only");
            self.name().is_ok()
        };
        begins && (self.eat("set") || self.eat("reset")) && self.eat_symbol('(')
    }

    /// ALTER TABLE t SET (…) or RESET (…), after its ALTER.
    pub(super) fn alter_parameters(&mut self) -> Result<NamedDefinition> {
        self.expect("table")?;
        let _ = self.eat("only");
        let table = self.name()?;
        if self.eat("reset") {
            let names = self.parameters(false)?;
            let changes = names.into_iter().map(|(name, _)| (name, None)).collect();
            return Ok(NamedDefinition::SetParameters { table, changes });
        }
        self.expect("set")?;
        let given = self.storage_parameters()?;
        for (name, value) in &given {
            check(name, value)?;
        }
        StorageParameters::of(given.clone())?;
        let changes = given
            .into_iter()
            .map(|(name, value)| (name, Some(value)))
            .collect();
        Ok(NamedDefinition::SetParameters { table, changes })
    }

    /// `(name = value, …)`; a name alone is true.
    pub(super) fn storage_parameters(&mut self) -> Result<Vec<(String, String)>> {
        self.parameters(true)
    }

    fn parameters(&mut self, with_values: bool) -> Result<Vec<(String, String)>> {
        self.expect_symbol('(')?;
        let mut list = Vec::new();
        loop {
            let (name, _) = self.identifier()?;
            if self.eat_symbol('.') {
                return Err(EngineError::not_supported("storage parameters of a TOAST table"));
            }
            let value = match with_values && self.eat_symbol('=') {
                true => self.parameter_value()?,
                false => "true".to_owned(),
            };
            list.push((name, value));
            if self.eat_symbol(')') {
                return Ok(list);
            }
            self.expect_symbol(',')?;
        }
    }

    fn parameter_value(&mut self) -> Result<String> {
        let sign = if self.eat_symbol('-') { "-" } else { "" };
        let value = match self.peek().cloned() {
            Some(Kind::Number(text) | Kind::Text(text)) => text,
            Some(Kind::Word(word)) => word.to_lowercase(),
            _ => return Err(self.syntax_error()),
        };
        self.at += 1;
        Ok(format!("{sign}{value}"))
    }
}
