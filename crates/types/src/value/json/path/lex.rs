//! The tokens of a path.
//!
//! A name is a run of characters that are not special, blank, a quote or a backslash; escapes may stand in it. A number is
//! read before a name, unless the name is longer: `12abc` is a name, `1a` is a number with junk behind it, and an error.
//! A token's words for an error are the text where PostgreSQL would stand at it: for a name the blanks behind it.

use super::escape::{self, EscapeFault};
use crate::error::{EngineError, Result, SqlState, shown};

/// A token.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token<'t> {
    /// A character, or two, that mean something by themselves.
    Symbol(&'t str),
    /// A string in quotes.
    Text(String),
    /// A name, perhaps a keyword.
    Name(String),
    /// `$name`, `$"name"`
    Variable(String),
    /// Digits alone.
    Integer(&'t str),
    /// Another number.
    Number(&'t str),
    /// Nothing more.
    End,
}

/// Symbols of two characters.
const PAIRS: [&str; 8] = ["&&", "||", "**", "<=", ">=", "==", "!=", "<>"];

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0c')
}

fn is_special(byte: u8) -> bool {
    b"?%$.[]{}()|&!=<>@#,*:-+/".contains(&byte)
}

/// True for a byte of a name.
fn is_other(byte: u8) -> bool {
    !is_blank(byte) && !is_special(byte) && byte != b'\\' && byte != b'"'
}

/// Reads tokens from a text.
pub(super) struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    pub(super) fn of(text: &'t str) -> Lexer<'t> {
        Lexer { text, at: 0 }
    }

    fn rest(&self) -> &'t [u8] {
        &self.text.as_bytes()[self.at..]
    }

    /// The length of the run of bytes at a place that belong to something.
    fn run(&self, from: usize, belongs: fn(u8) -> bool) -> usize {
        let bytes = self.text.as_bytes()[from..].iter();
        bytes.take_while(|byte| belongs(**byte)).count()
    }

    /// The next token, and its words for an error.
    pub(super) fn next(&mut self) -> Result<(Token<'t>, &'t str)> {
        self.skip()?;
        let start = self.at;
        let rest = self.rest();
        let Some(first) = rest.first() else {
            return Ok((Token::End, ""));
        };
        let is_digit = |at: usize| rest.get(at).is_some_and(u8::is_ascii_digit);
        match first {
            b'"' => {
                let text = self.quoted(start + 1)?;
                Ok((Token::Text(text), "\""))
            }
            b'$' if rest.get(1) == Some(&b'"') => {
                let name = self.quoted(start + 2)?;
                Ok((Token::Variable(name), "\""))
            }
            b'$' if rest.get(1).is_some_and(|byte| is_other(*byte)) => {
                self.at += 1 + self.run(start + 1, is_other);
                let words = &self.text[start..self.at];
                Ok((Token::Variable(words[1..].to_owned()), words))
            }
            b'.' if is_digit(1) => self.number(),
            byte if byte.is_ascii_digit() => self.number(),
            byte if is_special(*byte) => {
                let pair = PAIRS.iter().any(|pair| rest.starts_with(pair.as_bytes()));
                self.at += 1 + usize::from(pair);
                let words = &self.text[start..self.at];
                Ok((Token::Symbol(words), words))
            }
            _ => self.name(),
        }
    }

    /// Passes over blanks and comments.
    fn skip(&mut self) -> Result<()> {
        loop {
            self.at += self.run(self.at, is_blank);
            if !self.rest().starts_with(b"/*") {
                return Ok(());
            }
            match self.text[self.at + 2..].find("*/") {
                Some(length) => self.at += 2 + length + 2,
                None => return Err(error("unexpected end of comment", "")),
            }
        }
    }

    /// Reads up to the closing quote.
    fn quoted(&mut self, from: usize) -> Result<String> {
        let mut text = String::new();
        self.at = from;
        loop {
            let rest = &self.text[self.at..];
            let Some(stop) = rest.find(['"', '\\']) else {
                return Err(error("unexpected end of quoted string", ""));
            };
            text.push_str(&rest[..stop]);
            self.at += stop;
            if rest[stop..].starts_with('"') {
                self.at += 1;
                return Ok(text);
            }
            self.escapes(&mut text)?;
        }
    }

    fn name(&mut self) -> Result<(Token<'t>, &'t str)> {
        let mut name = String::new();
        loop {
            let length = self.run(self.at, is_other);
            name.push_str(&self.text[self.at..self.at + length]);
            self.at += length;
            if !self.rest().starts_with(b"\\") {
                break;
            }
            self.escapes(&mut name)?;
        }
        let blanks = self.run(self.at, is_blank);
        Ok((Token::Name(name), &self.text[self.at..self.at + blanks]))
    }

    fn escapes(&mut self, out: &mut String) -> Result<()> {
        let rest = &self.text[self.at..];
        match escape::read(rest, out) {
            Ok(length) => {
                self.at += length;
                Ok(())
            }
            Err(EscapeFault::Malformed(message, length)) => Err(error(message, &rest[..length])),
            Err(EscapeFault::Value(error)) => Err(error),
        }
    }

    fn number(&mut self) -> Result<(Token<'t>, &'t str)> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let byte = |at: usize| bytes.get(at).copied();
        let digits = |from| self.run(from, |byte| byte.is_ascii_digit());
        let mut end = match byte(start) {
            Some(b'0') => start + 1,
            _ => start + digits(start),
        };
        let mut is_integer = true;
        if byte(end) == Some(b'.') {
            end += 1 + digits(end + 1);
            is_integer = false;
        }
        if matches!(byte(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(byte(end + 1), Some(b'+' | b'-')));
            match digits(end + 1 + sign) {
                0 if sign == 1 => {
                    return Err(error("invalid numeric literal", &self.text[start..end + 2]));
                }
                0 => {}
                count => {
                    end += 1 + sign + count;
                    is_integer = false;
                }
            }
        }
        let junk = self.text[end..].chars().next().map_or(0, char::len_utf8);
        let has_junk = byte(end).is_some_and(is_other);
        let longest = end + if has_junk { junk } else { 0 };
        if start + self.run(start, is_other) > longest {
            return self.name();
        }
        if has_junk {
            return Err(error(
                "trailing junk after numeric literal",
                &self.text[start..longest],
            ));
        }
        self.at = end;
        let words = &self.text[start..end];
        match is_integer {
            true => Ok((Token::Integer(words), words)),
            false => Ok((Token::Number(words), words)),
        }
    }
}

/// 42601 in PostgreSQL's words: what is wrong, and where.
#[cold]
pub(super) fn error(message: &str, near: &str) -> EngineError {
    let message = match near {
        "" => format!("{message} at end of jsonpath input"),
        near => format!("{message} at or near \"{}\" of jsonpath input", shown(near)),
    };
    EngineError::new(SqlState::SYNTAX_ERROR, message)
}
