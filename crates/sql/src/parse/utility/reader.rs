//! The tokens of a statement that we read ourselves, from front to back.

use std::cell::Cell;

use crate::error::{EngineError, Result, SqlState};
use crate::lex::{Kind, Token};

/// A table's or index's name as written, with its position in the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name {
    pub schema: Option<String>,
    pub name: String,
    pub position: u32,
}

pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    pub(super) offset: u32,
    pub(super) tokens: Vec<Token>,
    pub(super) at: usize,
    /// A byte of the text, and how many characters come before it: the place asked for last. Places are asked for from
    /// front to back, so the text is counted once.
    pub(super) counted: Cell<(usize, u32)>,
}

impl Reader<'_> {
    pub(super) fn peek(&self) -> Option<&Kind> {
        self.tokens.get(self.at).map(|token| &token.kind)
    }

    pub(super) fn peek_word(&self) -> &str {
        match self.peek() {
            Some(Kind::Word(word)) => word,
            _ => "",
        }
    }

    /// Goes past these words, if they come next.
    pub(super) fn eat(&mut self, words: &str) -> bool {
        let found = self.begins(words);
        if found {
            self.at += words.split(' ').count();
        }
        found
    }

    /// True if these words come next.
    pub(super) fn begins(&self, words: &str) -> bool {
        let mut here = self.tokens[self.at..].iter();
        words.split(' ').all(
            |wanted| matches!(here.next().map(|token| &token.kind), Some(Kind::Word(word)) if word == wanted),
        )
    }

    pub(super) fn eat_symbol(&mut self, symbol: char) -> bool {
        let found = self.peek() == Some(&Kind::Symbol(symbol));
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, words: &str) -> Result<()> {
        if self.eat(words) {
            Ok(())
        } else {
            Err(self.syntax_error())
        }
    }

    pub(super) fn expect_symbol(&mut self, symbol: char) -> Result<()> {
        if self.eat_symbol(symbol) {
            Ok(())
        } else {
            Err(self.syntax_error())
        }
    }

    pub(super) fn expect_end(&self) -> Result<()> {
        if self.at == self.tokens.len() {
            Ok(())
        } else {
            Err(self.syntax_error())
        }
    }

    pub(super) fn position_of(&self, byte: usize) -> u32 {
        let (mut from, mut characters) = self.counted.get();
        if byte < from {
            (from, characters) = (0, 0);
        }
        characters += self.text[from..byte].chars().count() as u32;
        self.counted.set((byte, characters));
        self.offset + characters + 1
    }

    pub(super) fn syntax_error(&self) -> EngineError {
        match self.tokens.get(self.at) {
            Some(token) => EngineError::new(
                SqlState::SYNTAX_ERROR,
                format!(
                    "syntax error at or near \"{}\"",
                    &self.text[token.start..token.end]
                ),
            )
            .with_position(self.position_of(token.start)),
            None => EngineError::new(SqlState::SYNTAX_ERROR, super::super::AT_END)
                .with_position(self.position_of(self.text.trim_end().len())),
        }
    }

    /// Refuses what is no query (or change of rows) as what PREPARE, EXPLAIN or COPY hold. So these do not nest, and a
    /// prepared statement cannot execute itself.
    pub(super) fn expect_query(&self) -> Result<()> {
        if matches!(self.peek_word(), "create" | "declare" | "refresh") {
            let statement = self.peek_word().to_uppercase();
            let position = self
                .tokens
                .get(self.at)
                .map(|token| self.position_of(token.start));
            return Err(
                EngineError::not_supported(format!("{statement} within another statement"))
                    .or_position(position),
            );
        }
        let begins = matches!(
            self.peek_word(),
            "select" | "insert" | "update" | "delete" | "merge" | "values" | "with" | "table"
        );
        if begins || self.peek() == Some(&Kind::Symbol('(')) {
            Ok(())
        } else {
            Err(self.syntax_error())
        }
    }

    /// The text from the next token to the end, which is taken as read, and how many characters come before it.
    pub(super) fn rest(&mut self) -> (String, u32) {
        let start = self
            .tokens
            .get(self.at)
            .map_or(self.text.len(), |token| token.start);
        // They are not needed any more, and a long text has many.
        self.tokens = Vec::new();
        self.at = 0;
        (self.text[start..].to_owned(), self.position_of(start) - 1)
    }

    /// A string literal.
    pub(super) fn string(&mut self) -> Result<String> {
        match self.peek() {
            Some(Kind::Text(text)) => {
                let text = text.clone();
                self.at += 1;
                Ok(text)
            }
            _ => Err(self.syntax_error()),
        }
    }

    pub(super) fn identifier(&mut self) -> Result<(String, u32)> {
        let token = self.tokens.get(self.at).ok_or_else(|| self.syntax_error())?;
        let position = self.position_of(token.start);
        let name = match &token.kind {
            Kind::Word(word) => word.clone(),
            Kind::Quoted(name) => name.clone(),
            _ => return Err(self.syntax_error()),
        };
        self.at += 1;
        Ok((name, position))
    }

    pub(super) fn name(&mut self) -> Result<Name> {
        let (name, position) = self.identifier()?;
        if !self.eat_symbol('.') {
            return Ok(Name {
                schema: None,
                name,
                position,
            });
        }
        let (inner, _) = self.identifier()?;
        Ok(Name {
            schema: Some(name),
            name: inner,
            position,
        })
    }

    pub(super) fn names(&mut self) -> Result<Vec<Name>> {
        let mut names = vec![self.name()?];
        while self.eat_symbol(',') {
            names.push(self.name()?);
        }
        Ok(names)
    }
}
