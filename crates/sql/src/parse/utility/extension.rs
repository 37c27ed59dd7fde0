//! CREATE EXTENSION, of the one extension that is always there.

use super::AsRead;
use super::reader::Reader;
use crate::error::Result;
use crate::lex::{Kind, Token};
use crate::plan::ControlStatement;

/// The extension that is built in.
const BUILT_IN: &str = "pg_stat_statements";

/// True if a statement that begins so creates it. All others are refused by their first words.
pub(super) fn creates_built_in(head: &[Token]) -> bool {
    let is_word = |at: usize, word: &str| {
        let kind = head.get(at).map(|token| &token.kind);
        matches!(kind, Some(Kind::Word(written)) if written == word)
    };
    let words = ["if", "not", "exists"];
    let is_conditional = (2..).zip(words).all(|(at, word)| is_word(at, word));
    let name = head.get(if is_conditional { 5 } else { 2 });
    is_word(0, "create")
        && is_word(1, "extension")
        && name.is_some_and(
            |token| matches!(&token.kind, Kind::Word(name) | Kind::Quoted(name) if name == BUILT_IN),
        )
}

impl Reader<'_> {
    /// Behind CREATE EXTENSION. Its options choose nothing, since the extension is there already.
    pub(super) fn create_extension(&mut self) -> Result<ControlStatement<AsRead>> {
        let if_not_exists = self.eat("if not exists");
        let (name, _) = self.identifier()?;
        let _ = self.eat("with");
        loop {
            if self.eat("schema") {
                self.identifier()?;
            } else if self.eat("version") {
                match self.peek() {
                    Some(Kind::Text(_)) => drop(self.string()?),
                    _ => drop(self.identifier()?),
                }
            } else if !self.eat("cascade") {
                return Ok(ControlStatement::CreateExtension { name, if_not_exists });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::parse::{Tree, parse};
    use crate::plan::ControlStatement;

    #[test]
    fn the_built_in_extension_is_created_with_all_options() {
        for (text, expected) in [
            ("create extension pg_stat_statements", Some(false)),
            (
                "CREATE EXTENSION IF NOT EXISTS \"pg_stat_statements\"",
                Some(true),
            ),
            (
                "create extension pg_stat_statements with schema public version '1.10' cascade",
                Some(false),
            ),
            (
                "create extension pg_stat_statements version v1 schema s",
                Some(false),
            ),
            ("create extension hstore", None),
            ("create extension if not exists hstore", None),
            ("create extension pg_stat_statements from x", None),
            ("create extension pg_stat_statements schema", None),
        ] {
            let parsed = parse(text).ok().and_then(|mut statements| statements.pop());
            let found = match parsed.map(|statement| statement.tree) {
                Some(Tree::Control(ControlStatement::CreateExtension { if_not_exists, name })) => {
                    assert_eq!(name, "pg_stat_statements");
                    Some(if_not_exists)
                }
                _ => None,
            };
            assert_eq!(found, expected, "{text}");
        }
    }
}
