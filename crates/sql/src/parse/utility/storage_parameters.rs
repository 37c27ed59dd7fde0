//! Storage parameters: `WITH (…)` of CREATE TABLE … AS, SET and RESET of ALTER TABLE.

use crate::error::{EngineError, Result, SqlState};
use crate::lex::Kind;
use crate::parse::utility::{NamedDefinition, Reader};
use crate::storage_parameters::{OF_LONG_VALUES, StorageParameters, check};

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
        let changes = self.parameter_changes()?;
        Ok(NamedDefinition::SetParameters { table, changes })
    }

    /// SET (…) or RESET (…): names, and values of those that are set.
    pub(super) fn parameter_changes(&mut self) -> Result<Vec<(String, Option<String>)>> {
        if self.eat("reset") {
            let names = self.parameters(false)?;
            return Ok(names.into_iter().map(|(name, _)| (name, None)).collect());
        }
        self.expect("set")?;
        let given = self.storage_parameters()?;
        for (name, value) in &given {
            check(name, value)?;
        }
        StorageParameters::of(given.clone())?;
        let changes = given.into_iter().map(|(name, value)| (name, Some(value)));
        Ok(changes.collect())
    }

    /// `(name = value, …)`; a name alone is true.
    pub(super) fn storage_parameters(&mut self) -> Result<Vec<(String, String)>> {
        self.parameters(true)
    }

    fn parameters(&mut self, with_values: bool) -> Result<Vec<(String, String)>> {
        self.expect_symbol('(')?;
        let mut list = Vec::new();
        loop {
            let (mut name, _) = self.identifier()?;
            if self.eat_symbol('.') {
                let space = std::mem::replace(&mut name, self.identifier()?.0);
                if format!("{space}.") != OF_LONG_VALUES {
                    return Err(EngineError::new(
                        SqlState::INVALID_PARAMETER_VALUE,
                        format!("unrecognized parameter namespace \"{space}\""),
                    ));
                }
                name.insert_str(0, OF_LONG_VALUES);
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
