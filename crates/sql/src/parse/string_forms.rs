//! `U&'…' UESCAPE '…'`, whose escapes the tokenizer does not decode.

use sqlparser::tokenizer::{Token, TokenWithSpan, TokenizerError, Whitespace};

/// Decodes the strings with an escape character of their own, and takes the UESCAPE away.
pub(super) fn decode(tokens: &mut [TokenWithSpan], text: &str) -> Result<(), TokenizerError> {
    for number in 0..tokens.len() {
        if !matches!(tokens[number].token, Token::UnicodeStringLiteral(_)) {
            continue;
        }
        let significant = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_));
        let mut next = (number + 1..tokens.len()).filter(significant);
        let (Some(word), Some(escape)) = (next.next(), next.next()) else {
            continue;
        };
        let is_uescape = matches!(&tokens[word].token, Token::Word(word)
            if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("uescape"));
        let (true, Token::SingleQuotedString(escape_text)) = (is_uescape, &tokens[escape].token) else {
            continue;
        };
        let fault = |message: &str| TokenizerError {
            message: message.to_owned(),
            location: tokens[number].span.start,
        };
        let mut characters = escape_text.chars();
        let escape_character = match (characters.next(), characters.next()) {
            (Some(one), None) if !one.is_ascii_hexdigit() && !"+'\" \t\n\r".contains(one) => one,
            _ => return Err(fault("invalid Unicode escape character")),
        };
        let start = tokens[number].span.start;
        let written = place_of(text, start.line, start.column).unwrap_or_default();
        let decoded = decoded(written, escape_character).ok_or_else(|| fault("invalid Unicode escape"))?;
        tokens[number].token = Token::SingleQuotedString(decoded);
        for left_out in [word, escape] {
            tokens[left_out].token = Token::Whitespace(Whitespace::Space);
        }
    }
    Ok(())
}

/// The text from a line and column on.
fn place_of(text: &str, line: u64, column: u64) -> Option<&str> {
    let start: usize = text
        .split_inclusive('\n')
        .take(line.checked_sub(1)? as usize)
        .map(str::len)
        .sum();
    let rest = &text[start..];
    let (at, _) = rest.char_indices().nth(column.checked_sub(1)? as usize)?;
    Some(&rest[at..])
}

/// The string that `U&'…'` at the start of a text means under an escape character.
fn decoded(written: &str, escape: char) -> Option<String> {
    let (_, inside) = written.split_once('\'')?;
    let mut characters = inside.chars().peekable();
    let mut result = String::new();
    // The first half of a pair that means one character.
    let mut high: Option<u32> = None;
    loop {
        let character = match characters.next()? {
            '\'' if characters.next_if_eq(&'\'').is_some() => '\'',
            '\'' => return high.is_none().then_some(result),
            one if one == escape && characters.next_if_eq(&escape).is_some() => escape,
            one if one == escape => {
                let digits = if characters.next_if_eq(&'+').is_some() {
                    6
                } else {
                    4
                };
                let digits: String = characters.by_ref().take(digits).collect();
                let number = u32::from_str_radix(&digits, 16).ok()?;
                match (high.take(), number) {
                    (None, 0xD800..=0xDBFF) => {
                        high = Some(number);
                        continue;
                    }
                    (Some(high), 0xDC00..=0xDFFF) => {
                        char::from_u32(0x1_0000 + ((high - 0xD800) << 10) + (number - 0xDC00))?
                    }
                    (Some(_), _) => return None,
                    (None, number) => char::from_u32(number).filter(|one| *one != '\0')?,
                }
            }
            other => other,
        };
        if high.is_some() {
            return None;
        }
        result.push(character);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded_under_their_own_character() {
        assert_eq!(decoded("U&'d!0061t!+000061!!' x", '!').as_deref(), Some("data!"));
        assert_eq!(decoded("U&'it''s \\'", '!').as_deref(), Some("it's \\"));
        assert_eq!(decoded("U&'!D83D!DE00'", '!').as_deref(), Some("😀"));
        for wrong in ["U&'!D83D'", "U&'!00'", "U&'!0000'", "U&'!DE00'", "U&'open"] {
            assert_eq!(decoded(wrong, '!'), None, "{wrong}");
        }
    }
}
