//! Text to tokens.
//!
//! One walk says where a string, a quoted identifier, a comment, a word or a number ends: [`Elements`]. Callers that
//! look for a place in a text use it as it is (`split`, `long_insert`); a text may have megabytes, and nothing is
//! copied. [`lex`] makes tokens of it for the statements we read ourselves: words in lower case, strings and quoted
//! identifiers without their quotes.
//!
//! | begins with | is | ends |
//! | --- | --- | --- |
//! | a blank, `--`, `/*` | left out | at the other character, the line's end, the `*/` that belongs to it |
//! | `'` | a string | at the quote that is not doubled |
//! | `e'`, `E'` | a string with escapes | the same, behind a backslash no quote counts |
//! | `'` behind a string, and a line's end between them | more of that string, with escapes if it has them | as it |
//! | `$tag$` | a string | at the same `$tag$` |
//! | `"` | a quoted identifier | at the quote that is not doubled |
//! | a letter, `_` | a word | at what is no letter, digit, `_` or `$` |
//! | a digit | a number | at what is no letter, digit, `_`, `$` or `.` |
//! | anything else | a symbol | after one byte |
//!
//! An element that is not closed reaches to the end of the text. [`Elements::with_escapes`] reads plain strings as strings with
//! escapes, but for those of bits (`B'…'`, `X'…'`).

use std::ops::Range;

/// The kind of a part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// An unquoted word.
    Word,
    /// A quoted identifier.
    Quoted,
    /// A string; whether backslashes escape in it.
    Text {
        /// True of `E'…'`.
        escapes: bool,
    },
    /// A string between `$tag$`; how long the tag is with its dollars.
    DollarQuoted {
        /// Bytes of the tag.
        tag: usize,
    },
    /// A number as it is written.
    Number,
    /// Any other byte.
    Symbol(u8),
}

/// Walks over a text; blanks and comments are left out.
#[derive(Debug, Clone)]
pub struct Elements<'a> {
    bytes: &'a [u8],
    at: usize,
    plain_escapes: bool,
    /// True if backslashes escape in the element before; `None` if that is no string, which may go on in the next line.
    string_before: Option<bool>,
}

impl<'a> Elements<'a> {
    /// Begins at the start of the text.
    pub fn of(text: &'a str) -> Elements<'a> {
        Elements {
            bytes: text.as_bytes(),
            at: 0,
            plain_escapes: false,
            string_before: None,
        }
    }

    /// The same of a text in which backslashes escape in plain strings too.
    pub fn with_escapes(text: &'a str) -> Elements<'a> {
        Elements {
            plain_escapes: true,
            ..Elements::of(text)
        }
    }

    /// True if backslashes escape in a string whose quote is at `start`; `before` is the end of the element in front.
    fn escapes(&self, before: usize, start: usize) -> bool {
        match self.string_before {
            Some(escapes) if goes_on_between(&self.bytes[before..start]) => escapes,
            _ => self.plain_escapes && !is_of_bits(self.bytes, start),
        }
    }

    /// Past blanks and comments.
    fn skip_blanks(&mut self) {
        while let Some(byte) = self.bytes.get(self.at) {
            let rest = &self.bytes[self.at..];
            if byte.is_ascii_whitespace() {
                self.at += 1;
            } else if rest.starts_with(b"--") {
                self.at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            } else if rest.starts_with(b"/*") {
                self.at = past_block_comment(self.bytes, self.at);
            } else {
                return;
            }
        }
    }
}

impl Iterator for Elements<'_> {
    type Item = (Element, Range<usize>);

    /// The next element, and the bytes that it takes.
    fn next(&mut self) -> Option<(Element, Range<usize>)> {
        let before = self.at;
        self.skip_blanks();
        let (bytes, start) = (self.bytes, self.at);
        let first = *bytes.get(start)?;
        let second = bytes.get(start + 1);
        let (element, end) = match first {
            b'\'' => {
                let escapes = self.escapes(before, start);
                (Element::Text { escapes }, past_quoted(bytes, start, escapes))
            }
            b'e' | b'E' if second == Some(&b'\'') => (
                Element::Text { escapes: true },
                past_quoted(bytes, start + 1, true),
            ),
            b'"' => (Element::Quoted, past_quoted(bytes, start, false)),
            b'$' => match past_dollar_quoted(bytes, start) {
                Some((tag, end)) => (Element::DollarQuoted { tag }, end),
                None => (Element::Symbol(first), start + 1),
            },
            b'0'..=b'9' => (
                Element::Number,
                past(bytes, start, |byte| is_identifier(byte) || byte == b'.'),
            ),
            _ if is_identifier(first) => (Element::Word, past(bytes, start, is_identifier)),
            _ => (Element::Symbol(first), start + 1),
        };
        self.at = end;
        self.string_before = match element {
            Element::Text { escapes } => Some(escapes),
            _ => None,
        };
        Some((element, start..end))
    }
}

/// True if a string goes on behind these blanks and comments: a line ends there, and no comment is of the kind that nests.
pub fn goes_on_between(gap: &[u8]) -> bool {
    let is_line_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let mut lines = gap.split(|byte| *byte == b'\n');
    gap.iter().any(is_line_end)
        && lines.all(|line| {
            let code = line
                .windows(2)
                .position(|pair| pair == b"--")
                .map_or(line, |at| &line[..at]);
            code.iter().all(u8::is_ascii_whitespace)
        })
}

/// True if the quote at `start` stands directly behind the letter of a string of bits.
fn is_of_bits(bytes: &[u8], start: usize) -> bool {
    match bytes[..start] {
        [.., before, b'b' | b'B' | b'x' | b'X'] => !is_identifier(before),
        [b'b' | b'B' | b'x' | b'X'] => true,
        _ => false,
    }
}

/// True if a byte can be part of a word.
fn is_identifier(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// Past all bytes of a kind.
fn past(bytes: &[u8], start: usize, belongs: impl Fn(u8) -> bool) -> usize {
    let length = bytes[start..].iter().take_while(|byte| belongs(**byte)).count();
    start + length
}

/// Past a comment in which others may nest.
fn past_block_comment(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    at
}

/// Past a quoted run whose quote is at `at`; a doubled quote is one character of it.
fn past_quoted(bytes: &[u8], at: usize, escapes: bool) -> usize {
    let quote = bytes[at];
    let mut at = at + 1;
    while at < bytes.len() {
        if escapes && bytes[at] == b'\\' {
            at += 2;
        } else if bytes[at] == quote {
            if bytes.get(at + 1) != Some(&quote) {
                return at + 1;
            }
            at += 2;
        } else {
            at += 1;
        }
    }
    bytes.len()
}

/// The length of the tag, and the byte after the string; `None` if the dollar sign begins none (`$1`).
fn past_dollar_quoted(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let tag_end = past(bytes, at + 1, |byte| is_identifier(byte) && byte != b'$');
    if bytes.get(tag_end) != Some(&b'$') || bytes[at + 1].is_ascii_digit() {
        return None;
    }
    let tag = &bytes[at..=tag_end];
    let content = &bytes[tag_end + 1..];
    let end = content
        .windows(tag.len())
        .position(|window| window == tag)
        .map_or(bytes.len(), |found| tag_end + 1 + found + tag.len());
    Some((tag.len(), end))
}

/// The kind of a token, with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// An unquoted word, in lower case.
    Word(String),
    /// A quoted identifier.
    Quoted(String),
    /// A string literal.
    Text(String),
    /// A number as it is written.
    Number(String),
    /// Any other character.
    Symbol(char),
}

/// A token and its place.
#[derive(Debug, Clone)]
pub struct Token {
    /// The kind, with the text.
    pub kind: Kind,
    /// Its first byte.
    pub start: usize,
    /// The byte behind it.
    pub end: usize,
}

/// The first token of a text as it is written, for error messages.
pub fn first_token(text: &str) -> Option<&str> {
    let (_, range) = Elements::of(text).next()?;
    Some(&text[range])
}

/// Splits a text into at most `limit` tokens.
pub fn lex(text: &str, limit: usize) -> Vec<Token> {
    let token = |(element, range): (Element, Range<usize>)| {
        let written = &text[range.clone()];
        let kind = match element {
            Element::Word => Kind::Word(written.to_lowercase()),
            Element::Quoted => Kind::Quoted(content(written, false)),
            Element::Text { escapes: false } => Kind::Text(content(written, false)),
            Element::Text { escapes: true } => {
                Kind::Text(content(written.trim_start_matches(['e', 'E']), true))
            }
            Element::DollarQuoted { tag } => {
                let inside = &written[tag..];
                let closed = inside.strip_suffix(&written[..tag]);
                Kind::Text(closed.unwrap_or(inside).to_owned())
            }
            Element::Number => Kind::Number(written.to_owned()),
            Element::Symbol(byte) => Kind::Symbol(char::from(byte)),
        };
        Token {
            kind,
            start: range.start,
            end: range.end,
        }
    };
    Elements::of(text).take(limit).map(token).collect()
}

/// The content of a quoted run, which begins with its quote.
fn content(written: &str, escapes: bool) -> String {
    let mut characters = written.chars();
    let quote = characters.next();
    let mut content = String::with_capacity(written.len());
    while let Some(character) = characters.next() {
        if Some(character) == quote {
            // The second of two, or the end.
            if characters.next().is_none() {
                break;
            }
            content.push(character);
        } else if escapes && character == '\\' {
            content.push(match characters.next() {
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('b') => '\u{8}',
                Some(other) => other,
                None => '\\',
            });
        } else {
            content.push(character);
        }
    }
    content
}

/// A text that means the same where backslashes escape in plain strings.
pub fn with_double_backslashes(text: &str) -> String {
    let mut doubled = String::with_capacity(text.len());
    let mut copied = 0;
    for (element, range) in Elements::of(text) {
        if element == (Element::Text { escapes: false }) && text[range.clone()].contains('\\') {
            doubled.push_str(&text[copied..range.start]);
            doubled.push_str(&text[range.clone()].replace('\\', "\\\\"));
            copied = range.end;
        }
    }
    doubled + &text[copied..]
}

/// True if a text has this word, as an identifier or inside a literal.
pub fn has_word(text: &str, word: &str) -> bool {
    lex(text, usize::MAX).iter().any(|token| match &token.kind {
        Kind::Word(found) | Kind::Quoted(found) => found == word,
        Kind::Text(found) => found.contains(word),
        _ => false,
    })
}

/// The names, with their schemas, that stand in a text where one names a type: behind `::`, behind AS at the end of a cast, in
/// front of a literal, or behind a name in a list of columns.
pub fn names_of_types(text: &str) -> Vec<(Option<String>, String)> {
    // Such a word is in front of a value where a column's name would be in front of its type.
    const BEFORE_VALUES: [&str; 4] = ["all", "distinct", "not", "select"];
    let tokens = lex(text, usize::MAX);
    let kind = |at: Option<usize>| at.and_then(|at| tokens.get(at)).map(|token| &token.kind);
    let name = |at| match kind(at) {
        Some(Kind::Word(found) | Kind::Quoted(found)) => Some(found),
        _ => None,
    };
    let is_one_of = |at, symbols: &[char]| matches!(kind(at), Some(Kind::Symbol(it)) if symbols.contains(it));
    let names = (0..tokens.len()).filter_map(|at| {
        // A schema stands in front of a dot; AS is no name.
        let is_name = |found: &&String| *found != "as" && !is_one_of(Some(at + 1), &['.']);
        let found = name(Some(at)).filter(is_name)?;
        let in_front = |count: usize| at.checked_sub(count);
        let schema = name(in_front(2)).filter(|_| is_one_of(in_front(1), &['.']));
        let first = if schema.is_some() { 3 } else { 1 };
        let (before, before_that) = (in_front(first), in_front(first + 1));
        let behind = Some(at + 1);
        let is_cast = is_one_of(before, &[':']) && is_one_of(before_that, &[':'])
            || name(before).is_some_and(|before| before == "as") && is_one_of(behind, &[')', '[']);
        let is_of_column = is_one_of(before_that, &['(', ','])
            && name(before).is_some_and(|before| !BEFORE_VALUES.contains(&before.as_str()));
        let is_of_literal = matches!(kind(behind), Some(Kind::Text(_)));
        (is_cast || is_of_column || is_of_literal).then(|| (schema.cloned(), found.clone()))
    });
    names.collect()
}

/// True if a text names a field of a row by this word: `(row).field`, `(rows)[1].field`, `(row).row.field`.
pub fn names_field(text: &str, field: &str) -> bool {
    // Behind a value in parentheses, an element, or a field of either; and behind a dot there.
    let (mut is_behind_value, mut is_behind_dot) = (false, false);
    lex(text, usize::MAX).iter().any(|token| {
        let is_word = matches!(token.kind, Kind::Word(_) | Kind::Quoted(_));
        let is_field = is_word && is_behind_dot;
        is_behind_dot = is_behind_value && token.kind == Kind::Symbol('.');
        is_behind_value = is_field || matches!(token.kind, Kind::Symbol(')' | ']'));
        is_field && matches!(&token.kind, Kind::Word(word) | Kind::Quoted(word) if word == field)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_named_where_a_type_stands() {
        let names = |text: &str| {
            let found = names_of_types(text).into_iter();
            let shown = found.map(|(schema, name)| match schema {
                Some(schema) => format!("{schema}.{name}"),
                None => name,
            });
            shown.collect::<Vec<_>>().join(" ")
        };
        for (text, found) in [
            ("select ((1, 'a')::s.whole).b, null::Whole", "s.whole whole"),
            ("select array[]::\"Whole\"[]", "Whole"),
            ("select cast(x as s.whole), cast(y as whole[])", "s.whole whole"),
            ("select s.whole '(1)'", "s.whole"),
            ("select * from f(j) as x(a int, b s.whole)", "int s.whole"),
            ("select * from f(j) x(a whole)", "whole"),
            ("select whole.a, s.whole.b from s.whole", ""),
            ("select row_to_json(whole), count(distinct whole) from whole", ""),
            (
                "select a from t where (not whole is null) and b in (select whole from t)",
                "",
            ),
            (
                "select a as whole from t as whole join whole on true, whole as x",
                "",
            ),
            ("select x = 'whole'::text, whole::int from t", "text int"),
        ] {
            assert_eq!(names(text), found, "{text}");
        }
    }

    fn written(text: &str) -> Vec<(Element, &str)> {
        Elements::of(text)
            .map(|(element, range)| (element, &text[range]))
            .collect()
    }

    #[test]
    fn every_element_ends_where_postgresql_ends_it() {
        let plain = Element::Text { escapes: false };
        let escaped = Element::Text { escapes: true };
        for (text, elements) in [
            (
                "  a1$b -- c\n é",
                &[(Element::Word, "a1$b"), (Element::Word, "é")][..],
            ),
            ("/* a /* b */ c */ x", &[(Element::Word, "x")]),
            (
                "'it''s' e'\\'' ne'x'",
                &[
                    (plain, "'it''s'"),
                    (escaped, "e'\\''"),
                    (Element::Word, "ne"),
                    (plain, "'x'"),
                ],
            ),
            (
                "$$a'b$$ $t$ $$ $t$ $1",
                &[
                    (Element::DollarQuoted { tag: 2 }, "$$a'b$$"),
                    (Element::DollarQuoted { tag: 3 }, "$t$ $$ $t$"),
                    (Element::Symbol(b'$'), "$"),
                    (Element::Number, "1"),
                ],
            ),
            (
                "\"a;\"\"b\" 1.5e3,",
                &[
                    (Element::Quoted, "\"a;\"\"b\""),
                    (Element::Number, "1.5e3"),
                    (Element::Symbol(b','), ","),
                ],
            ),
            (
                "e'a' -- it's\n'\\'b' 'c\\'",
                &[(escaped, "e'a'"), (escaped, "'\\'b'"), (plain, "'c\\'")],
            ),
            (
                "e'a' '\\' e'b' /* \n */ '\\'",
                &[
                    (escaped, "e'a'"),
                    (plain, "'\\'"),
                    (escaped, "e'b'"),
                    (plain, "'\\'"),
                ],
            ),
            ("'a; $", &[(plain, "'a; $")]),
            ("e'\\", &[(escaped, "e'\\")]),
            ("$a$ b", &[(Element::DollarQuoted { tag: 3 }, "$a$ b")]),
            ("$", &[(Element::Symbol(b'$'), "$")]),
            ("/* a", &[]),
        ] {
            assert_eq!(written(text), elements, "{text}");
        }
    }

    #[test]
    fn tokens_hold_what_their_quotes_enclose() {
        let kinds = |text: &str| lex(text, usize::MAX).into_iter().map(|token| token.kind);
        let text = |text: &str| Kind::Text(text.to_owned());
        assert!(kinds("'it''s' 'open e'a\\tb\\'' $x$a'b$x$ $x$open").eq([
            text("it's"),
            text("open e"),
            Kind::Word("a".to_owned()),
            Kind::Symbol('\\'),
            Kind::Word("tb".to_owned()),
            Kind::Symbol('\\'),
            text(""),
            text("a'b"),
            text("open"),
        ]));
        assert!(kinds("e'a\\tb\\'' E'\\").eq([text("a\tb'"), text("\\")]));
        assert!(kinds("\"A\"\"b\" Ab").eq([Kind::Quoted("A\"b".to_owned()), Kind::Word("ab".to_owned())]));
        assert!(names_field("(t).A > 1", "a") && names_field("(x[1]).b [ 2 ] . \"c\"", "c"));
        assert!(names_field("(x).r.a", "a") && names_field("(x[1]).b.c.a", "a"));
        assert!(!names_field("t.a = '(t).a' + f(b)", "a") && !names_field("f(b) and a or x.r.a", "a"));
        assert_eq!(lex("a b c", 2).len(), 2);
        assert_eq!(
            with_double_backslashes("'a\\b' || e'\\\\' || $$\\$$ || \"\\\" || '\\'"),
            "'a\\\\b' || e'\\\\' || $$\\$$ || \"\\\" || '\\\\'"
        );
        assert_eq!(first_token(" /* x */ 'a b' c"), Some("'a b'"));
    }
}
