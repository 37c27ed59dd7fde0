//! CREATE DOMAIN and ALTER DOMAIN.

use crate::error::{EngineError, Result, SqlState};
use crate::lex::Kind;
use crate::parse::utility::reader::Reader;
use crate::parse::utility::user_type::{DomainChange, DomainParts, TypeChange, TypeStatement};

/// The words that begin a part of a domain's definition.
const PARTS: [&str; 7] = [
    "default",
    "constraint",
    "not",
    "null",
    "check",
    "collate",
    "unique",
];

impl Reader<'_> {
    /// CREATE DOMAIN, behind both words.
    pub(super) fn create_domain(&mut self) -> Result<TypeStatement> {
        let name = self.name()?;
        let _ = self.eat("as");
        let start = self.at;
        self.skip_to_part();
        let base = self.written_from(start)?;
        let mut parts = DomainParts::default();
        while self.at < self.tokens.len() {
            self.domain_part(&mut parts)?;
        }
        Ok(TypeStatement::CreateDomain { name, base, parts })
    }

    fn domain_part(&mut self, parts: &mut DomainParts) -> Result<()> {
        if self.eat("collate") {
            let collation = self.name()?.name;
            return match collation.as_str() {
                "C" | "default" | "POSIX" => Ok(()),
                other => Err(EngineError::not_supported(format!("the collation {other}"))),
            };
        }
        if self.eat("default") {
            let start = self.at;
            self.at += 1;
            self.skip_to_part();
            let default = self.written_from(start)?;
            return match parts.default.replace(default) {
                None => Ok(()),
                Some(_) => Err(EngineError::new(
                    SqlState::SYNTAX_ERROR,
                    "multiple default expressions",
                )),
            };
        }
        let name = match self.eat("constraint") {
            true => Some(self.identifier()?.0),
            false => None,
        };
        let nullability = match () {
            () if self.eat("not null") => true,
            () if self.eat("null") => false,
            () if self.eat("check") => {
                let condition = self.in_parentheses()?;
                if self.eat("no inherit") {
                    return Err(EngineError::new(
                        SqlState::INVALID_OBJECT_DEFINITION,
                        "check constraints for domains cannot be marked NO INHERIT",
                    ));
                }
                parts.checks.push((name, condition));
                return Ok(());
            }
            () => return Err(self.syntax_error()),
        };
        match parts.not_null.replace(nullability) {
            Some(other) if other != nullability => Err(EngineError::new(
                SqlState::SYNTAX_ERROR,
                "conflicting NULL/NOT NULL constraints",
            )),
            _ => Ok(()),
        }
    }

    /// ALTER DOMAIN, behind both words.
    pub(super) fn alter_domain(&mut self) -> Result<TypeStatement> {
        let name = self.name()?;
        let change = if self.eat("set default") {
            let start = self.at;
            self.at = self.tokens.len();
            DomainChange::SetDefault(Some(self.written_from(start)?))
        } else if self.eat("drop default") {
            DomainChange::SetDefault(None)
        } else if self.eat("set not null") {
            DomainChange::SetNotNull(true)
        } else if self.eat("drop not null") {
            DomainChange::SetNotNull(false)
        } else if self.eat("add") {
            let mut parts = DomainParts::default();
            self.domain_part(&mut parts)?;
            let validated = !self.eat("not valid");
            match (parts.not_null, parts.checks.pop()) {
                (Some(not_null), _) => DomainChange::SetNotNull(not_null),
                (None, Some((name, condition))) => DomainChange::AddCheck {
                    name,
                    condition,
                    validated,
                },
                _ => return Err(self.syntax_error()),
            }
        } else if self.eat("drop constraint") {
            let if_exists = self.eat("if exists");
            let name = self.identifier()?.0;
            let _ = self.eat("cascade") || self.eat("restrict");
            DomainChange::DropConstraint { name, if_exists }
        } else if self.eat("rename constraint") {
            let from = self.identifier()?.0;
            self.expect("to")?;
            DomainChange::RenameConstraint {
                from,
                to: self.identifier()?.0,
            }
        } else if self.eat("validate constraint") {
            DomainChange::Validate(self.identifier()?.0)
        } else {
            let change = match () {
                () if self.eat("rename to") => TypeChange::Rename(self.identifier()?.0),
                () if self.eat("set schema") => TypeChange::SetSchema(self.name()?),
                () if self.eat("owner to") => TypeChange::Owner(self.role()?),
                () => return Err(self.syntax_error()),
            };
            return Ok(TypeStatement::AlterType {
                name,
                change,
                domain: true,
            });
        };
        Ok(TypeStatement::AlterDomain { name, change })
    }

    /// Goes on to the word that begins the next part, parentheses aside.
    fn skip_to_part(&mut self) {
        let mut depth = 0;
        while let Some(kind) = self.peek() {
            match kind {
                Kind::Symbol('(' | '[') => depth += 1,
                Kind::Symbol(')' | ']') => depth -= 1,
                Kind::Word(word) if depth == 0 && PARTS.contains(&word.as_str()) => return,
                _ => {}
            }
            self.at += 1;
        }
    }

    /// The text from a token to the one before the next.
    pub(super) fn written_from(&self, start: usize) -> Result<String> {
        match (self.tokens.get(start), self.tokens.get(self.at.wrapping_sub(1))) {
            (Some(first), Some(last)) if start < self.at => Ok(self.text[first.start..last.end].to_owned()),
            _ => Err(self.syntax_error()),
        }
    }

    /// The text in parentheses that come next.
    fn in_parentheses(&mut self) -> Result<String> {
        self.expect_symbol('(')?;
        let start = self.at;
        let mut depth = 1;
        loop {
            match self.peek() {
                Some(Kind::Symbol('(')) => depth += 1,
                Some(Kind::Symbol(')')) => depth -= 1,
                Some(_) => {}
                None => return Err(self.syntax_error()),
            }
            if depth == 0 {
                break;
            }
            self.at += 1;
        }
        let text = self.written_from(start)?;
        self.at += 1;
        Ok(text)
    }
}
