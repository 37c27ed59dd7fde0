//! The statements inside CREATE SCHEMA, each cut out as a text of its own.

use crate::error::{EngineError, Result, SqlState};
use crate::lex::Kind;
use crate::parse::utility::reader::Reader;

/// The kinds of statements, in the order in which they run, whatever their order in the text is.
const ORDER: [&str; 5] = ["sequence", "table", "view", "index", "grant"];

impl Reader<'_> {
    /// The texts of the statements up to the end, in the order in which they run. `schema`: the new schema, if it is named.
    pub(super) fn schema_elements(&mut self, schema: Option<&str>) -> Result<Vec<String>> {
        let mut found: Vec<(usize, String)> = Vec::new();
        while self.at < self.tokens.len() {
            let start = self.tokens[self.at].start;
            let made = self.element_kind(schema)?;
            while self.at < self.tokens.len() && !self.begins_element() {
                self.at += 1;
            }
            let end = self
                .tokens
                .get(self.at)
                .map_or(self.text.len(), |next| next.start);
            let place = ORDER.iter().position(|kind| *kind == made).unwrap_or(ORDER.len());
            found.push((place, self.text[start..end].trim_end().to_owned()));
        }
        found.sort_by_key(|(place, _)| *place);
        Ok(found.into_iter().map(|(_, text)| text).collect())
    }

    /// True if the next statement begins here.
    fn begins_element(&self) -> bool {
        let word = |at: usize| match self.tokens.get(at).map(|token| &token.kind) {
            Some(Kind::Word(word)) => word.as_str(),
            _ => "",
        };
        match word(self.at) {
            // Behind WITH it is an option.
            "grant" => word(self.at - 1) != "with",
            "create" => matches!(
                word(self.at + 1),
                "table"
                    | "temp"
                    | "temporary"
                    | "local"
                    | "global"
                    | "unlogged"
                    | "sequence"
                    | "view"
                    | "recursive"
                    | "or"
                    | "index"
                    | "unique"
                    | "trigger"
                    | "constraint"
            ),
            _ => false,
        }
    }

    /// The kind of the statement that begins here, with the reader behind its name; an error for what cannot be in a schema.
    fn element_kind(&mut self, schema: Option<&str>) -> Result<&'static str> {
        if self.eat("grant") {
            return Ok("grant");
        }
        self.expect("create")?;
        let _ = self.eat("or replace") || self.eat("unlogged");
        if self.eat("local") || self.eat("global") || matches!(self.peek_word(), "temp" | "temporary") {
            return Err(EngineError::new(
                SqlState::INVALID_TABLE_DEFINITION,
                "cannot create temporary relation in non-temporary schema",
            ));
        }
        let _ = self.eat("recursive");
        if self.eat("unique index") || self.eat("index") {
            return Ok("index");
        }
        let kinds = ["sequence", "table", "view"];
        let Some(kind) = kinds.into_iter().find(|kind| self.eat(kind)) else {
            return match self.peek_word() {
                "trigger" | "constraint" => Err(EngineError::not_supported("CREATE TRIGGER")),
                _ => Err(self.syntax_error()),
            };
        };
        let _ = self.eat("if not exists");
        let (written, _) = self.identifier()?;
        if self.eat_symbol('.')
            && let Some(schema) = schema
            && written != schema
        {
            return Err(EngineError::new(
                SqlState::from_code("42P15"),
                format!(
                    "CREATE specifies a schema ({written}) different from the one being created ({schema})"
                ),
            ));
        }
        Ok(kind)
    }
}
