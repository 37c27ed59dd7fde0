//! The text form of JSON, read.
//!
//! One reader serves three purposes, which differ in what they keep ([`Build`]): the tree, nothing (a check), or one
//! level of a value as pieces of its text. It descends into each array and object by a call of itself, so the depth is
//! bounded.

use std::cell::Cell;

use super::bytes::check_length;
use super::{DEPTH_MAX, Json, too_deep};
use crate::error::{EngineError, Result, SqlState, shown};
use crate::memory;
use crate::stack;
use crate::value::Numeric;

/// The use of the parts of a text.
trait Build {
    /// The outcome of a value.
    type Value;

    fn null(&self) -> Self::Value;
    fn truth(&self, truth: bool) -> Self::Value;
    fn number(&self, text: &str) -> Result<Self::Value>;
    /// Of a string; `raw` is what stands between its quotes.
    fn string(&self, raw: &str) -> Result<Self::Value>;
    /// A key; `None` if it is not wanted.
    fn key(&self, raw: &str) -> Result<Option<Box<str>>>;
    fn array(&self, elements: Vec<Self::Value>) -> Self::Value;
    fn object(&self, members: Vec<(Option<Box<str>>, Self::Value)>) -> Self::Value;
}

/// Keeps the tree; counts what its long numbers have on the heap, which a short text may make large.
#[derive(Default)]
struct Tree {
    bytes: Cell<usize>,
}

impl Build for Tree {
    type Value = Json;

    fn null(&self) -> Json {
        Json::Null
    }

    fn truth(&self, truth: bool) -> Json {
        Json::Bool(truth)
    }

    fn number(&self, text: &str) -> Result<Json> {
        let number = Numeric::parse(text)?;
        let bytes = self.bytes.get() + number.heap_bytes();
        self.bytes.set(bytes);
        check_length(bytes)?;
        Ok(Json::Number(number))
    }

    fn string(&self, raw: &str) -> Result<Json> {
        Ok(Json::String(unescaped(raw)?.into()))
    }

    fn key(&self, raw: &str) -> Result<Option<Box<str>>> {
        Ok(Some(unescaped(raw)?.into()))
    }

    fn array(&self, elements: Vec<Json>) -> Json {
        Json::Array(elements)
    }

    fn object(&self, members: Vec<(Option<Box<str>>, Json)>) -> Json {
        let members = members
            .into_iter()
            .map(|(key, value)| (key.unwrap_or_default(), value));
        Json::Object(members.collect())
    }
}

/// Keeps nothing.
struct Nothing;

impl Build for Nothing {
    type Value = ();

    fn null(&self) {}

    fn truth(&self, _: bool) {}

    fn number(&self, _: &str) -> Result<()> {
        Ok(())
    }

    fn string(&self, _: &str) -> Result<()> {
        Ok(())
    }

    fn key(&self, _: &str) -> Result<Option<Box<str>>> {
        Ok(None)
    }

    fn array(&self, _: Vec<()>) {}

    fn object(&self, _: Vec<(Option<Box<str>>, ())>) {}
}

/// One level of a JSON text: pieces of it.
#[derive(Debug, PartialEq)]
pub(crate) enum Level<'t> {
    /// The elements of an array.
    Array(Vec<&'t str>),
    /// The members of an object, in the order of the text.
    Object(Vec<(Box<str>, &'t str)>),
    /// A value that is neither.
    Scalar(&'t str),
}

/// The tree of a text.
pub(crate) fn parse(text: &str) -> Result<Json> {
    memory::require(4 * text.len())?;
    whole(text, &Tree::default())
}

/// An error for a text that is not JSON.
pub(crate) fn check(text: &str) -> Result<()> {
    whole(text, &Nothing)
}

fn whole<B: Build>(text: &str, build: &B) -> Result<B::Value> {
    let mut reader = Reader::of(text);
    reader.advance()?;
    let value = reader.value(build, 0)?;
    reader.expect_end()?;
    Ok(value)
}

/// One level of a text.
pub(crate) fn level(text: &str) -> Result<Level<'_>> {
    let mut reader = Reader::of(text);
    reader.advance()?;
    let level = match reader.token {
        Token::Punctuation(b'[') => {
            let mut elements = Vec::new();
            reader.array(1, &mut |reader| {
                elements.push(reader.piece()?);
                Ok(())
            })?;
            Level::Array(elements)
        }
        Token::Punctuation(b'{') => {
            let mut members = Vec::new();
            reader.object(1, &mut |reader, key| {
                let key = unescaped(key)?;
                members.push((key.into(), reader.piece()?));
                Ok(())
            })?;
            Level::Object(members)
        }
        _ => Level::Scalar(reader.piece()?),
    };
    reader.expect_end()?;
    Ok(level)
}

/// A token; its text is `Reader::token_text`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    /// One of `{}[]:,`
    Punctuation(u8),
    String,
    Number,
    True,
    False,
    Null,
    End,
}

struct Reader<'t> {
    text: &'t str,
    /// The token at which it stands.
    token: Token,
    start: usize,
    end: usize,
    /// The end of the token before.
    previous_end: usize,
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

impl<'t> Reader<'t> {
    fn of(text: &'t str) -> Reader<'t> {
        Reader {
            text,
            token: Token::End,
            start: 0,
            end: 0,
            previous_end: 0,
        }
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    fn token_text(&self) -> &'t str {
        &self.text[self.start..self.end]
    }

    /// Goes to the next token.
    fn advance(&mut self) -> Result<()> {
        self.previous_end = self.end;
        let mut at = self.end;
        while matches!(self.byte(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            at += 1;
        }
        (self.start, self.end) = (at, at);
        let Some(first) = self.byte(at) else {
            self.token = Token::End;
            return Ok(());
        };
        self.token = match first {
            b'{' | b'}' | b'[' | b']' | b':' | b',' => {
                self.end = at + 1;
                Token::Punctuation(first)
            }
            b'"' => {
                self.string()?;
                Token::String
            }
            b'-' | b'0'..=b'9' => {
                self.number()?;
                Token::Number
            }
            _ => self.word()?,
        };
        Ok(())
    }

    fn word(&mut self) -> Result<Token> {
        while self.byte(self.end).is_some_and(is_word) {
            self.end += 1;
        }
        match self.token_text() {
            "true" => Ok(Token::True),
            "false" => Ok(Token::False),
            "null" => Ok(Token::Null),
            "" => {
                let length = self.text[self.start..].chars().next().map_or(0, char::len_utf8);
                self.end = self.start + length;
                Err(self.invalid_token())
            }
            _ => Err(self.invalid_token()),
        }
    }

    fn digits(&mut self) -> bool {
        let start = self.end;
        while self.byte(self.end).is_some_and(|byte| byte.is_ascii_digit()) {
            self.end += 1;
        }
        self.end > start
    }

    fn number(&mut self) -> Result<()> {
        if self.byte(self.end) == Some(b'-') {
            self.end += 1;
        }
        let mut good = match self.byte(self.end) {
            Some(b'0') => {
                self.end += 1;
                true
            }
            _ => self.digits(),
        };
        if good && self.byte(self.end) == Some(b'.') {
            self.end += 1;
            good = self.digits();
        }
        if good && matches!(self.byte(self.end), Some(b'e' | b'E')) {
            self.end += 1;
            if matches!(self.byte(self.end), Some(b'+' | b'-')) {
                self.end += 1;
            }
            good = self.digits();
        }
        while self.byte(self.end).is_some_and(is_word) {
            self.end += 1;
            good = false;
        }
        match good {
            true => Ok(()),
            false => Err(self.invalid_token()),
        }
    }

    /// Goes behind a string, and checks its escapes.
    fn string(&mut self) -> Result<()> {
        let mut at = self.start + 1;
        loop {
            let byte = self.byte(at);
            match byte {
                None => {
                    self.end = at;
                    return Err(self.invalid_token());
                }
                Some(b'"') => {
                    self.end = at + 1;
                    return Ok(());
                }
                Some(control @ 0..0x20) => {
                    return Err(invalid(format!(
                        "Character with value 0x{control:02x} must be escaped."
                    )));
                }
                Some(b'\\') => at = self.escape(at + 1)?,
                Some(_) => at += 1,
            }
        }
    }

    /// Checks an escape behind its backslash; the place behind it.
    fn escape(&mut self, at: usize) -> Result<usize> {
        match self.text[at..].chars().next() {
            None => {
                self.end = at;
                Err(self.invalid_token())
            }
            Some('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't') => Ok(at + 1),
            Some('u') => {
                for place in at + 1..at + 5 {
                    match self.byte(place) {
                        None => {
                            self.end = place;
                            return Err(self.invalid_token());
                        }
                        Some(byte) if byte.is_ascii_hexdigit() => {}
                        Some(_) => {
                            return Err(invalid(
                                "\"\\u\" must be followed by four hexadecimal digits.".to_owned(),
                            ));
                        }
                    }
                }
                Ok(at + 5)
            }
            Some(other) => Err(invalid(format!("Escape sequence \"\\{other}\" is invalid."))),
        }
    }

    /// Reads the value at whose first token it stands, and goes behind it.
    fn value<B: Build>(&mut self, build: &B, depth: u32) -> Result<B::Value> {
        let value = match self.token {
            Token::Punctuation(b'[') => {
                let mut elements = Vec::new();
                stack::checkpoint(|| {
                    self.array(depth + 1, &mut |reader| {
                        elements.push(reader.value(build, depth + 1)?);
                        Ok(())
                    })
                })?;
                return Ok(build.array(elements));
            }
            Token::Punctuation(b'{') => {
                let mut members = Vec::new();
                stack::checkpoint(|| {
                    self.object(depth + 1, &mut |reader, key| {
                        let key = build.key(key)?;
                        members.push((key, reader.value(build, depth + 1)?));
                        Ok(())
                    })
                })?;
                return Ok(build.object(members));
            }
            Token::String => build.string(self.raw_string())?,
            Token::Number => build.number(self.token_text())?,
            Token::True => build.truth(true),
            Token::False => build.truth(false),
            Token::Null => build.null(),
            Token::Punctuation(_) | Token::End => return Err(self.expected("JSON value")),
        };
        self.advance()?;
        Ok(value)
    }

    /// The text of the value at whose first token it stands; goes behind it.
    fn piece(&mut self) -> Result<&'t str> {
        let start = self.start;
        self.value(&Nothing, 1)?;
        Ok(&self.text[start..self.previous_end])
    }

    fn raw_string(&self) -> &'t str {
        &self.text[self.start + 1..self.end - 1]
    }

    fn array(&mut self, depth: u32, element: &mut dyn FnMut(&mut Self) -> Result<()>) -> Result<()> {
        if depth > DEPTH_MAX {
            return Err(too_deep());
        }
        self.advance()?;
        if self.token != Token::Punctuation(b']') {
            loop {
                element(self)?;
                match self.token {
                    Token::Punctuation(b',') => self.advance()?,
                    Token::Punctuation(b']') => break,
                    _ => return Err(self.expected("\",\" or \"]\"")),
                }
            }
        }
        self.advance()
    }

    fn object(&mut self, depth: u32, member: &mut dyn FnMut(&mut Self, &'t str) -> Result<()>) -> Result<()> {
        if depth > DEPTH_MAX {
            return Err(too_deep());
        }
        self.advance()?;
        let mut expected = "string or \"}\"";
        if self.token != Token::Punctuation(b'}') {
            loop {
                if self.token != Token::String {
                    return Err(self.expected(expected));
                }
                let key = self.raw_string();
                self.advance()?;
                if self.token != Token::Punctuation(b':') {
                    return Err(self.expected("\":\""));
                }
                self.advance()?;
                member(self, key)?;
                match self.token {
                    Token::Punctuation(b',') => self.advance()?,
                    Token::Punctuation(b'}') => break,
                    _ => return Err(self.expected("\",\" or \"}\"")),
                }
                expected = "string";
            }
        }
        self.advance()
    }

    fn expect_end(&self) -> Result<()> {
        match self.token {
            Token::End => Ok(()),
            _ => Err(self.expected("end of input")),
        }
    }

    #[cold]
    fn expected(&self, what: &str) -> EngineError {
        invalid(match self.token {
            Token::End => "The input string ended unexpectedly.".to_owned(),
            _ => format!("Expected {what}, but found \"{}\".", shown(self.token_text())),
        })
    }

    #[cold]
    fn invalid_token(&self) -> EngineError {
        invalid(format!("Token \"{}\" is invalid.", shown(self.token_text())))
    }
}

#[cold]
fn invalid(detail: String) -> EngineError {
    EngineError::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        "invalid input syntax for type json",
    )
    .with_detail(detail)
}

/// The string whose escapes, found right before, are between its quotes.
fn unescaped(raw: &str) -> Result<String> {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    let mut high: Option<u32> = None;
    while let Some(place) = rest.find('\\') {
        if place > 0 && high.is_some() {
            return Err(lone_high());
        }
        out.push_str(&rest[..place]);
        let escape = rest.as_bytes()[place + 1];
        rest = &rest[place + 2..];
        if escape == b'u' {
            let code = u32::from_str_radix(&rest[..4], 16).map_err(|_| lone_high())?;
            rest = &rest[4..];
            high = code_unit(code, high, &mut out)?;
            continue;
        }
        if high.is_some() {
            return Err(lone_high());
        }
        out.push(match escape {
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            other => char::from(other),
        });
    }
    if high.is_some() {
        return Err(lone_high());
    }
    out.push_str(rest);
    Ok(out)
}

/// Takes a code unit of UTF-16; the first half of a pair that it begins.
fn code_unit(code: u32, high: Option<u32>, out: &mut String) -> Result<Option<u32>> {
    match (code, high) {
        (0xd800..0xdc00, None) => return Ok(Some(code)),
        (0xd800..0xdc00, Some(_)) => {
            return Err(invalid(
                "Unicode high surrogate must not follow a high surrogate.".to_owned(),
            ));
        }
        (0xdc00..0xe000, Some(high)) => {
            let pair = 0x10000 + ((high & 0x3ff) << 10 | (code & 0x3ff));
            out.extend(char::from_u32(pair));
        }
        (_, Some(_)) | (0xdc00..0xe000, None) => return Err(lone_high()),
        (0, None) => {
            return Err(EngineError::new(
                SqlState::from_code("22P05"),
                "unsupported Unicode escape sequence",
            )
            .with_detail("\\u0000 cannot be converted to text."));
        }
        (code, None) => out.extend(char::from_u32(code)),
    }
    Ok(None)
}

#[cold]
fn lone_high() -> EngineError {
    invalid("Unicode low surrogate must follow a high surrogate.".to_owned())
}
