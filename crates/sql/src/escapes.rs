//! Strings with backslash escapes, written out without them.
//!
//! A backslash in a plain string stands for itself while `standard_conforming_strings` is on. While it is off, it escapes
//! as in `E'…'`. Nothing but this module knows of the setting: a text that a client sends is written out under the rules of
//! its moment before it is parsed. So the text of a definition, a prepared statement or a cursor means the same whatever is
//! set later, on every server that reads it.
//!
//! | in the text, where backslashes escape | written out |
//! | --- | --- |
//! | `'it\'s'`, `E'it\'s'` | `'it''s'` |
//! | `'\x41'`, `'\101'`, `'\u0041'` | `'A'` |
//! | `'a\\'`, and `'b'` on the next line | `'a\b'` |
//! | `U&'…'` | an error |
//! | a string without a backslash or of bits, a name, `$$…$$`, a comment | as it is |
//!
//! With the setting on, the same is done to `E'…'` alone. What is written out has other lengths: [`Places`] finds the place
//! in the client's text of an error that was found in the text written out.

use crate::error::{EngineError, Result, SqlState};
use crate::function::not_utf8;
use crate::lex::{Element, Elements, goes_on_between};
use std::ops::Range;

/// The rules by which strings are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StringRules {
    /// Backslashes escape in plain strings: `standard_conforming_strings` is off.
    pub plain_escapes: bool,
    /// A backslash may stand in front of a quote: `backslash_quote` is not off.
    pub backslash_quote: bool,
}

impl Default for StringRules {
    fn default() -> StringRules {
        StringRules {
            plain_escapes: false,
            backslash_quote: true,
        }
    }
}

/// A warning of `escape_string_warning`: the first escape in a plain string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EscapeWarning {
    /// The text.
    pub message: &'static str,
    /// The form to write instead.
    pub hint: &'static str,
    /// Character of the client's text at which the string begins, from 1.
    pub position: u32,
}

/// A text without backslash escapes.
#[derive(Debug)]
pub struct WrittenOut {
    /// The text.
    pub text: String,
    /// The places of its characters in the client's text.
    pub places: Places,
}

/// The places in the client's text of the characters of a text written out.
#[derive(Debug, Default)]
pub struct Places(Vec<Place>);

/// From this character on, counted from 0, up to the next place.
#[derive(Debug, Clone, Copy)]
struct Place {
    written_out: u32,
    original: u32,
    /// The characters up to the next place are a string that was written out: all of them stand where it begins.
    is_string: bool,
}

impl Places {
    /// A position in the client's text for one in the text written out, both from 1.
    pub fn original(&self, position: u32) -> u32 {
        let at = position.saturating_sub(1);
        let behind = self.0.partition_point(|place| place.written_out <= at);
        match behind.checked_sub(1).map(|before| self.0[before]) {
            Some(place) if place.is_string => place.original + 1,
            Some(place) => place.original + (at - place.written_out) + 1,
            None => position,
        }
    }
}

/// Writes a text out; `None` if it has no string to write out. What the strings warn of is added to `warnings`, also where
/// the text has an error further on.
pub fn written_out(
    text: &str,
    rules: StringRules,
    warnings: &mut Vec<EscapeWarning>,
) -> Result<Option<WrittenOut>> {
    let may_have = match rules.plain_escapes {
        true => text.contains('\\') || text.contains("&'"),
        false => text.contains('\\') && (text.contains("e'") || text.contains("E'")),
    };
    if !may_have {
        return Ok(None);
    }
    let elements = match rules.plain_escapes {
        true => Elements::with_escapes(text),
        false => Elements::of(text),
    };
    let mut writer = Writer::of(text);
    let mut counted = Counted::default();
    let mut open: Option<OpenString> = None;
    // The end of the element in front, if that is a string.
    let mut string_end = None;
    for (element, range) in elements {
        let before = string_end.take();
        if let Element::Text { .. } = element {
            string_end = Some(range.end);
        }
        let Element::Text { escapes: true } = element else {
            writer.close(open.take())?;
            continue;
        };
        let is_plain = text.as_bytes()[range.start] == b'\'';
        if !is_plain && before.is_some_and(|end: usize| goes_on_between(&text.as_bytes()[end..range.start])) {
            // Without its `E` the string in front would go on in it. The two are a syntax error, which the parser finds.
            writer.close(open.take())?;
            continue;
        }
        let goes_on = is_plain
            && open
                .as_ref()
                .is_some_and(|open| goes_on_between(&text.as_bytes()[open.range.end..range.start]));
        if !goes_on {
            writer.close(open.take())?;
            if is_plain && is_of_unicode_escapes(&text[..range.start]) {
                return Err(unsafe_unicode_escapes(text, range.start - 2));
            }
        }
        let string = open.get_or_insert_with(|| OpenString::at(range.start, is_plain));
        string.range.end = range.end;
        Reader {
            text,
            rules,
            string,
            warnings,
            counted: &mut counted,
        }
        .read(range.start + usize::from(!is_plain) + 1)?;
    }
    writer.close(open.take())?;
    Ok(writer.finish())
}

/// True if the quote behind this text opens a `U&'…'`.
fn is_of_unicode_escapes(before: &str) -> bool {
    let Some(before) = before.strip_suffix("u&").or(before.strip_suffix("U&")) else {
        return false;
    };
    !before.ends_with(|last: char| last.is_alphanumeric() || matches!(last, '_' | '$'))
}

fn unsafe_unicode_escapes(text: &str, at: usize) -> EngineError {
    EngineError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        "unsafe use of string constant with Unicode escapes",
    )
    .with_detail(
        "String constants with Unicode escapes cannot be used when standard_conforming_strings is off.",
    )
    .with_position(position(text, at))
}

/// The character at a byte, from 1.
fn position(text: &str, at: usize) -> u32 {
    text[..at].chars().count() as u32 + 1
}

/// A string that may go on in the next line.
struct OpenString {
    /// Bytes of the text, from its first quote (or the `E` in front) to its last.
    range: Range<usize>,
    /// True if it has no `E` in front.
    is_plain: bool,
    has_escapes: bool,
    /// The bytes that it means.
    meant: Vec<u8>,
}

impl OpenString {
    fn at(start: usize, is_plain: bool) -> OpenString {
        OpenString {
            range: start..start,
            is_plain,
            has_escapes: false,
            meant: Vec::new(),
        }
    }
}

/// Reads a part of a string.
struct Reader<'a> {
    text: &'a str,
    rules: StringRules,
    string: &'a mut OpenString,
    warnings: &'a mut Vec<EscapeWarning>,
    counted: &'a mut Counted,
}

/// Characters in front of the string that was warned of last: a text of many strings is counted once.
#[derive(Default)]
struct Counted {
    bytes: usize,
    characters: u32,
}

impl Counted {
    fn position(&mut self, text: &str, at: usize) -> u32 {
        self.characters += text[self.bytes..at].chars().count() as u32;
        self.bytes = at;
        self.characters + 1
    }
}

impl Reader<'_> {
    /// From behind the part's first quote to its last.
    fn read(mut self, mut at: usize) -> Result<()> {
        let bytes = self.text.as_bytes();
        // The first half of a character that is written as two.
        let mut high: Option<u32> = None;
        loop {
            let (byte, next) = match (bytes.get(at), bytes.get(at + 1)) {
                (Some(b'\\'), None) | (None, _) => return Err(self.unterminated()),
                (Some(byte), next) => (*byte, next.copied()),
            };
            let unicode_digits = match (byte, next) {
                (b'\\', Some(b'u')) => Some(4),
                (b'\\', Some(b'U')) => Some(8),
                _ => None,
            };
            if high.is_some() && unicode_digits.is_none() {
                let length = self.text[at..].chars().next().map_or(1, char::len_utf8);
                return Err(self.syntax_error("invalid Unicode surrogate pair", at..at + length));
            }
            at += match (byte, next, unicode_digits) {
                (_, _, Some(digits)) => self.unicode_escape(at, digits, &mut high)?,
                (b'\\', Some(next), _) => self.escape(at, next)?,
                (b'\'', Some(b'\''), _) => {
                    self.string.meant.push(byte);
                    2
                }
                (b'\'', ..) => return Ok(()),
                _ => {
                    self.string.meant.push(byte);
                    1
                }
            };
        }
    }

    /// A backslash at `at` in front of `next`; the bytes that the escape takes.
    fn escape(&mut self, at: usize, next: u8) -> Result<usize> {
        let bytes = self.text.as_bytes();
        let digits = |from: usize, most: usize, radix: u32| {
            let all = bytes[from..].iter().take(most);
            all.take_while(|byte| char::from(**byte).is_digit(radix)).count()
        };
        let (meant, length) = match next {
            b'0'..=b'7' => {
                let length = digits(at + 1, 3, 8);
                (self.number(at + 1, length, 8) as u8, 1 + length)
            }
            b'x' if digits(at + 2, 2, 16) > 0 => {
                let length = digits(at + 2, 2, 16);
                (self.number(at + 2, length, 16) as u8, 2 + length)
            }
            b'\'' if !self.rules.backslash_quote => return Err(self.unsafe_quote()),
            b'b' => (8, 2),
            b'f' => (12, 2),
            b'n' => (b'\n', 2),
            b'r' => (b'\r', 2),
            b't' => (b'\t', 2),
            other => (other, 2),
        };
        self.warn(next);
        self.string.has_escapes = true;
        self.string.meant.push(meant);
        Ok(length)
    }

    /// The number that some digits of ASCII mean.
    fn number(&self, from: usize, length: usize, radix: u32) -> u32 {
        u32::from_str_radix(&self.text[from..from + length], radix).unwrap_or(u32::MAX)
    }

    /// `\uXXXX` or `\UXXXXXXXX` at `at`; the bytes that it takes.
    fn unicode_escape(&mut self, at: usize, digits: usize, high: &mut Option<u32>) -> Result<usize> {
        let length = 2 + digits;
        let written = self.text.as_bytes().get(at + 2..at + length);
        if !written.is_some_and(|written| written.iter().all(u8::is_ascii_hexdigit)) {
            return Err(
                EngineError::new(SqlState::INVALID_ESCAPE_SEQUENCE, "invalid Unicode escape")
                    .with_hint("Unicode escapes must be \\uXXXX or \\UXXXXXXXX.")
                    .with_position(position(self.text, at)),
            );
        }
        self.warn(b'u');
        self.string.has_escapes = true;
        let fault = |what| Err(self.syntax_error(what, at..at + length));
        let number = match (high.take(), self.number(at + 2, digits, 16)) {
            (None, number @ 0xD800..=0xDBFF) => {
                *high = Some(number);
                return Ok(length);
            }
            (Some(high), number @ 0xDC00..=0xDFFF) => 0x1_0000 + ((high - 0xD800) << 10) + (number - 0xDC00),
            (Some(_), _) | (None, 0xDC00..=0xDFFF) => return fault("invalid Unicode surrogate pair"),
            (None, number) => number,
        };
        match char::from_u32(number) {
            None | Some('\0') => fault("invalid Unicode escape value"),
            Some(character) => {
                let bytes = character.encode_utf8(&mut [0; 4]).as_bytes().to_vec();
                self.string.meant.extend(bytes);
                Ok(length)
            }
        }
    }

    /// Warns of the first escape of a plain string, whose character behind the backslash is `next`.
    fn warn(&mut self, next: u8) {
        if !self.string.is_plain || self.string.has_escapes {
            return;
        }
        let (message, hint) = match next {
            b'\'' => (
                "nonstandard use of \\' in a string literal",
                "Use '' to write quotes in strings, or use the escape string syntax (E'...').",
            ),
            b'\\' => (
                "nonstandard use of \\\\ in a string literal",
                "Use the escape string syntax for backslashes, e.g., E'\\\\'.",
            ),
            _ => (
                "nonstandard use of escape in a string literal",
                "Use the escape string syntax for escapes, e.g., E'\\r\\n'.",
            ),
        };
        self.warnings.push(EscapeWarning {
            message,
            hint,
            position: self.counted.position(self.text, self.string.range.start),
        });
    }

    fn syntax_error(&self, what: &str, near: Range<usize>) -> EngineError {
        let at = position(self.text, near.start);
        let message = format!("{what} at or near \"{}\"", &self.text[near]);
        EngineError::new(SqlState::SYNTAX_ERROR, message).with_position(at)
    }

    fn unterminated(&self) -> EngineError {
        self.syntax_error(
            "unterminated quoted string",
            self.string.range.start..self.text.len(),
        )
    }

    fn unsafe_quote(&self) -> EngineError {
        EngineError::new(
            SqlState::from_code("22P06"),
            "unsafe use of \\' in a string literal",
        )
        .with_hint("Use '' to write quotes in strings. \\' is insecure in client-only encodings.")
        .with_position(position(self.text, self.string.range.start))
    }
}

/// The text written out, as far as it is.
struct Writer<'a> {
    text: &'a str,
    /// Bytes of the text that are written out.
    done: usize,
    out: String,
    places: Vec<Place>,
    /// Characters of the text that are written out, and characters written.
    characters: u32,
    written: u32,
}

impl<'a> Writer<'a> {
    fn of(text: &'a str) -> Writer<'a> {
        Writer {
            text,
            done: 0,
            out: String::new(),
            places: Vec::new(),
            characters: 0,
            written: 0,
        }
    }

    /// A string has ended: it is written out if it has escapes.
    fn close(&mut self, ended: Option<OpenString>) -> Result<()> {
        let Some(string) = ended.filter(|string| string.has_escapes) else {
            return Ok(());
        };
        let meant = match String::from_utf8(string.meant) {
            Ok(meant) => meant,
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                let zero = error.as_bytes()[..at].iter().position(|byte| *byte == 0);
                return Err(not_utf8(error.as_bytes(), zero.unwrap_or(at)));
            }
        };
        if let Some(zero) = meant.bytes().position(|byte| byte == 0) {
            return Err(not_utf8(meant.as_bytes(), zero));
        }
        self.copy(string.range.start);
        self.place(true);
        let before = self.out.len();
        self.out.push('\'');
        self.out.push_str(&meant.replace('\'', "''"));
        self.out.push('\'');
        self.written += self.out[before..].chars().count() as u32;
        self.characters += self.text[string.range.clone()].chars().count() as u32;
        self.done = string.range.end;
        self.place(false);
        Ok(())
    }

    /// Copies the text up to a byte.
    fn copy(&mut self, end: usize) {
        let copied = &self.text[self.done..end];
        let characters = copied.chars().count() as u32;
        self.out.push_str(copied);
        self.done = end;
        self.characters += characters;
        self.written += characters;
    }

    fn place(&mut self, is_string: bool) {
        self.places.push(Place {
            written_out: self.written,
            original: self.characters,
            is_string,
        });
    }

    fn finish(mut self) -> Option<WrittenOut> {
        if self.places.is_empty() {
            return None;
        }
        self.copy(self.text.len());
        Some(WrittenOut {
            text: self.out,
            places: Places(self.places),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFF: StringRules = StringRules {
        plain_escapes: true,
        backslash_quote: true,
    };

    fn read(text: &str, rules: StringRules) -> String {
        match written_out(text, rules, &mut Vec::new()) {
            Ok(Some(done)) => done.text,
            Ok(None) => text.to_owned(),
            Err(error) => format!("{} at {:?}", error.message(), error.position()),
        }
    }

    #[test]
    fn strings_mean_the_same_without_their_escapes() {
        for (text, off, on) in [
            (r"'a\tb' 'c'", "'a\tb' 'c'", r"'a\tb' 'c'"),
            (r"'it\'s' x", "'it''s' x", r"'it\'s' x"),
            (r"E'it\'s' x", "'it''s' x", "'it''s' x"),
            (
                r"'\x41\101\u0041\U00000041\q\v\\'",
                r"'AAAAqv\'",
                r"'\x41\101\u0041\U00000041\q\v\\'",
            ),
            (r"e'\303\251\x4g\xg\7'", "'é\u{4}gxg\u{7}'", "'é\u{4}gxg\u{7}'"),
            (r"'\uD83D\uDE00'", "'😀'", r"'\uD83D\uDE00'"),
            ("'a' -- it's\n'\\'b' c", "'a''b' c", "'a' -- it's\n'\\'b' c"),
            ("E'a'\n'\\'b' c", "'a''b' c", "'a''b' c"),
            // Two strings on one line are an error, behind one that goes on too.
            ("'\\t'\n'b' 'c'", "'\tb' 'c'", "'\\t'\n'b' 'c'"),
            ("'a' '\\n'", "'a' '\n'", "'a' '\\n'"),
            ("'a'\nE'\\x41'", "'a'\nE'\\x41'", "'a'\nE'\\x41'"),
            (
                "E'\\x41'\nE'\\x42'\n'c'",
                "'A'\nE'\\x42'\n'c'",
                "'A'\nE'\\x42'\n'c'",
            ),
            ("'a' /* \n */ '\\t'", "'a' /* \n */ '\t'", "'a' /* \n */ '\\t'"),
            (
                r"b'1\' x'\' n'\'' ab'\''",
                r"b'1\' x'\' n'''' ab''''",
                r"b'1\' x'\' n'\'' ab'\''",
            ),
            (
                r#""\'" $$\'$$ -- \'"#,
                r#""\'" $$\'$$ -- \'"#,
                r#""\'" $$\'$$ -- \'"#,
            ),
            (
                r#"U&"\0041" '\0041'"#,
                "U&\"\\0041\" '\u{4}1'",
                r#"U&"\0041" '\0041'"#,
            ),
            (
                r"1 + 'open\",
                r#"unterminated quoted string at or near "'open\" at Some(5)"#,
                r"1 + 'open\",
            ),
        ] {
            assert_eq!(read(text, OFF), off, "{text}");
            assert_eq!(read(text, StringRules::default()), on, "{text}");
        }
    }

    #[test]
    fn what_is_no_string_is_an_error_where_it_stands() {
        for (text, error) in [
            (r"é 'a\u12'", r"invalid Unicode escape at Some(5)"),
            (
                r"'\uD83D'",
                r#"invalid Unicode surrogate pair at or near "'" at Some(8)"#,
            ),
            (
                r"'\uD83Dé'",
                r#"invalid Unicode surrogate pair at or near "é" at Some(8)"#,
            ),
            (
                r"'\uDE00'",
                r#"invalid Unicode surrogate pair at or near "\uDE00" at Some(2)"#,
            ),
            (
                r"'\U00110000'",
                r#"invalid Unicode escape value at or near "\U00110000" at Some(2)"#,
            ),
            (
                r"'\0'",
                r#"invalid byte sequence for encoding "UTF8": 0x00 at None"#,
            ),
            (
                r"'\0\xff'",
                r#"invalid byte sequence for encoding "UTF8": 0x00 at None"#,
            ),
            (
                r"'a\xff\0'",
                r#"invalid byte sequence for encoding "UTF8": 0xff at None"#,
            ),
            (
                r"x U&'a'",
                r"unsafe use of string constant with Unicode escapes at Some(3)",
            ),
            (
                r"'a\'",
                r#"unterminated quoted string at or near "'a\'" at Some(1)"#,
            ),
        ] {
            assert_eq!(read(text, OFF), error, "{text}");
        }
        let strict = StringRules {
            backslash_quote: false,
            ..OFF
        };
        let unsafe_quote = r"unsafe use of \' in a string literal at Some(1)";
        assert_eq!(read(r"'a\'b'", strict), unsafe_quote);
        assert_eq!(read(r"'a\\b''c'", strict), r"'a\b''c'");
    }

    #[test]
    fn each_plain_string_warns_of_its_first_escape() {
        let mut warnings = Vec::new();
        let text = "é '\\'\\\\' E'\\t' '\\\\' 'a'\n'\\t' '\\u12'";
        written_out(text, OFF, &mut warnings).unwrap_err();
        let found = warnings.iter().map(|warning| (warning.position, warning.message));
        assert!(found.eq([
            (3, "nonstandard use of \\' in a string literal"),
            (16, "nonstandard use of \\\\ in a string literal"),
            (21, "nonstandard use of escape in a string literal"),
        ]));
    }

    #[test]
    fn places_are_those_of_the_original() {
        let text = "é '\\u0041' x 'a'\n'\\'' y";
        let done = written_out(text, OFF, &mut Vec::new()).unwrap().unwrap();
        assert_eq!(done.text, "é 'A' x 'a''' y");
        for word in ["é", "x", "y", "'A'", "'a'''"] {
            let place = |text: &str, word| text.find(word).map(|at| position(text, at));
            let original = match word {
                "'A'" => "'\\u0041'",
                "'a'''" => "'a'\n",
                word => word,
            };
            let found = place(&done.text, word).map(|at| done.places.original(at));
            assert_eq!(found, place(text, original), "{word}");
        }
        assert_eq!(done.places.original(5), 3, "inside a string");
    }
}
