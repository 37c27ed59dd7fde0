//! EXPLAIN.

use crate::error::Result;
use crate::explained::ExplainOptions;
use crate::lex::Kind;
use crate::parse::utility::reader::Reader;
use crate::parse::{ParsedStatement, parse_one};

impl Reader<'_> {
    /// The statement that EXPLAIN is about, and the options.
    pub(super) fn explain(&mut self) -> Result<(ParsedStatement, ExplainOptions)> {
        let mut options = ExplainOptions::default();
        if self.eat_symbol('(') {
            loop {
                let (option, position) = self.identifier()?;
                let value = match self.peek() {
                    Some(Kind::Word(word) | Kind::Number(word)) => Some(word.clone()),
                    Some(Kind::Text(text)) => Some(text.to_ascii_lowercase()),
                    _ => None,
                };
                self.at += usize::from(value.is_some());
                options.set(&option, value.as_deref(), position)?;
                if !self.eat_symbol(',') {
                    break;
                }
            }
            self.expect_symbol(')')?;
        } else {
            options.analyze = self.eat("analyze") || self.eat("analyse");
            options.verbose = self.eat("verbose");
        }
        options.check()?;
        if self.peek_word() != "execute" {
            self.expect_query()?;
        }
        let (text, offset) = self.rest();
        Ok((parse_one(&text, offset)?, options))
    }
}
