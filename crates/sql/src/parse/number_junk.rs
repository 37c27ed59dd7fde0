//! Numbers that go on as a name would: `123abc` is an error, as in PostgreSQL 15, and not 123 in a column called `abc`.
//!
//! The tokens of sqlparser are looked at, and the text only where one of them may be wrong.

use sqlparser::tokenizer::{Location, Token, TokenWithSpan, TokenizerError};

/// The beginning of the message.
pub(super) const TRAILING_JUNK: &str = "trailing junk after ";

/// An error for a number, or a parameter's, that goes on with what a name may begin with.
pub(super) fn refuse(tokens: &[TokenWithSpan], text: &str) -> Result<(), TokenizerError> {
    for (number, token) in tokens.iter().enumerate() {
        let (start, end) = (token.span.start, token.span.end);
        let width = (end.column.saturating_sub(start.column)) as usize;
        let (what, may_be_junk) = match &token.token {
            Token::Number(digits, long) => {
                let next = tokens.get(number + 1).filter(|next| next.span.start == end);
                let goes_on = next.is_some_and(|next| begins_with_letter(&next.token));
                let other = *long || digits.contains('_') || width != digits.len();
                ("numeric literal", goes_on || other)
            }
            // `x'1f'` is longer.
            Token::HexStringLiteral(digits) => ("numeric literal", width == digits.len() + 2),
            Token::Placeholder(name) => {
                let name = name.strip_prefix('$').unwrap_or_default();
                let is_number = name.starts_with(|c: char| c.is_ascii_digit());
                (
                    "parameter",
                    is_number && !name.bytes().all(|b| b.is_ascii_digit()),
                )
            }
            _ => continue,
        };
        if let Some(junk) = may_be_junk.then(|| number_and_junk(text, start)).flatten() {
            return Err(TokenizerError {
                message: format!("{TRAILING_JUNK}{what} at or near \"{junk}\""),
                location: start,
            });
        }
    }
    Ok(())
}

fn begins_with_letter(token: &Token) -> bool {
    match token {
        Token::Word(word) => word.quote_style.is_none(),
        Token::EscapedStringLiteral(_)
        | Token::NationalStringLiteral(_)
        | Token::SingleQuotedByteStringLiteral(_)
        | Token::UnicodeStringLiteral(_)
        | Token::HexStringLiteral(_) => true,
        _ => false,
    }
}

/// The number at a place of the text, with the name that follows it, if one does.
fn number_and_junk(text: &str, start: Location) -> Option<&str> {
    let line = text
        .split_inclusive('\n')
        .nth(start.line.checked_sub(1)? as usize)?;
    let (from, _) = line.char_indices().nth(start.column.checked_sub(1)? as usize)?;
    let rest = &line[from..];
    let bytes = rest.as_bytes();
    let digits = |at: usize| {
        let rest = bytes.get(at..).unwrap_or_default();
        at + rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let mut end = digits(usize::from(bytes.first() == Some(&b'$')));
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        end = if exponent > end + 1 + sign { exponent } else { end };
    }
    let begins_name = |byte: u8| byte == b'_' || byte.is_ascii_alphabetic() || !byte.is_ascii();
    let goes_on = |byte: &u8| begins_name(*byte) || byte.is_ascii_digit() || *byte == b'$';
    let junk = &bytes[end..];
    let length = junk.iter().take_while(|byte| goes_on(byte)).count();
    begins_name(*junk.first()?).then(|| &rest[..end + length])
}

#[cfg(test)]
mod tests {
    use super::super::dialect::tokens;
    use super::*;

    /// Mutations that it is for: a number that is taken by itself; junk that is any token behind a number.
    #[test]
    fn a_number_does_not_go_on_as_a_name() {
        for (text, junk) in [
            ("123abc", "numeric literal at or near \"123abc"),
            ("1.5e7x", "numeric literal at or near \"1.5e7x"),
            ("\n 1e", "numeric literal at or near \"1e"),
            (".5x", "numeric literal at or near \".5x"),
            ("0x1f", "numeric literal at or near \"0x1f"),
            ("1_000", "numeric literal at or near \"1_000"),
            ("12L", "numeric literal at or near \"12L"),
            ("1éß$2+3", "numeric literal at or near \"1éß$2"),
            ("$1a", "parameter at or near \"$1a"),
        ] {
            let error = tokens(&format!("select {text}")).unwrap_err();
            assert_eq!(error.message, format!("{TRAILING_JUNK}{junk}\""), "{text}");
        }
        for text in [
            "1 a", "1\"a\"", "1.5", "1.e3", "1e-3", "x'1f'", "a1b", "1+a", "1::int", "$1::int", "t.a1",
        ] {
            assert!(tokens(text).is_ok(), "{text}");
        }
    }
}
