//! Text to tokens, for the statements we read ourselves.
//!
//! Words come in lower case, strings and quoted identifiers without their quotes; comments and blanks are gone. Each
//! token knows the bytes it came from.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// An unquoted word, in lower case.
    Word(String),
    /// A quoted identifier.
    Quoted(String),
    /// A string literal.
    Text(String),
    Number(String),
    Symbol(char),
}

#[derive(Debug, Clone)]
pub(super) struct Token {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
}

/// The first token of a text as it is written, for error messages.
pub(crate) fn first_token(text: &str) -> Option<&str> {
    let tokens = lex(text, 1);
    let token = tokens.first()?;
    Some(&text[token.start..token.end])
}

/// Splits a text into at most `limit` tokens.
pub(super) fn lex(text: &str, limit: usize) -> Vec<Token> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() && tokens.len() < limit {
        let start = at;
        let byte = bytes[at];
        if byte.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        if bytes[at..].starts_with(b"--") {
            at += bytes[at..]
                .iter()
                .position(|byte| *byte == b'\n')
                .unwrap_or(bytes.len() - at);
            continue;
        }
        if bytes[at..].starts_with(b"/*") {
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
            continue;
        }
        let kind = if byte == b'\'' || byte == b'"' {
            let content = quoted(text, &mut at, false);
            if byte == b'"' {
                Kind::Quoted(content)
            } else {
                Kind::Text(content)
            }
        } else if matches!(byte, b'e' | b'E') && bytes.get(at + 1) == Some(&b'\'') {
            at += 1;
            Kind::Text(quoted(text, &mut at, true))
        } else if byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80 {
            while at < bytes.len()
                && (bytes[at].is_ascii_alphanumeric()
                    || matches!(bytes[at], b'_' | b'$')
                    || bytes[at] >= 0x80)
            {
                at += 1;
            }
            Kind::Word(text[start..at].to_lowercase())
        } else if byte.is_ascii_digit() {
            while at < bytes.len() && (bytes[at].is_ascii_alphanumeric() || bytes[at] == b'.') {
                at += 1;
            }
            Kind::Number(text[start..at].to_owned())
        } else {
            at += 1;
            Kind::Symbol(char::from(byte))
        };
        tokens.push(Token { kind, start, end: at });
    }
    tokens
}

/// The content of a quoted run that begins at `at`, which moves past it.
fn quoted(text: &str, at: &mut usize, escapes: bool) -> String {
    let quote = char::from(text.as_bytes()[*at]);
    let mut content = String::new();
    let mut characters = text[*at + 1..].char_indices().peekable();
    let base = *at + 1;
    while let Some((offset, character)) = characters.next() {
        if character == quote {
            match characters.peek() {
                Some((_, next)) if *next == quote => {
                    characters.next();
                }
                _ => {
                    *at = base + offset + 1;
                    return content;
                }
            }
        } else if escapes && character == '\\' {
            content.push(match characters.next() {
                Some((_, 't')) => '\t',
                Some((_, 'n')) => '\n',
                Some((_, 'r')) => '\r',
                Some((_, 'b')) => '\u{8}',
                Some((_, other)) => other,
                None => '\\',
            });
            continue;
        }
        content.push(character);
    }
    *at = text.len();
    content
}
