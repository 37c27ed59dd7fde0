//! Statements as they may be shown: without the passwords in them.
//!
//! A password is the string behind the word PASSWORD, in CREATE ROLE and ALTER ROLE. In other statements a string there is
//! masked too: what is shown is for reading, and a word too few does no harm. The text of a statement that was cut may end
//! inside the string, which then reaches to the end.

use std::borrow::Cow;

use crate::lex::{Element, Elements};

/// The text in place of a password.
const MASK: &str = "'********'";

/// A statement's text without the passwords in it.
pub fn masked(text: &str) -> Cow<'_, str> {
    if !has_word(text.as_bytes()) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::new();
    let (mut copied, mut is_behind) = (0, false);
    for (element, range) in Elements::of(text) {
        let is_text = matches!(element, Element::Text { .. } | Element::DollarQuoted { .. });
        if is_behind && is_text {
            shown.push_str(&text[copied..range.start]);
            shown.push_str(MASK);
            copied = range.end;
        }
        is_behind = element == Element::Word && text[range].eq_ignore_ascii_case("password");
    }
    shown.push_str(&text[copied..]);
    Cow::Owned(shown)
}

/// True if the word may be in a text.
fn has_word(text: &[u8]) -> bool {
    const WORD: &[u8] = b"password";
    text.windows(WORD.len())
        .any(|part| part.eq_ignore_ascii_case(WORD))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        for (text, shown) in [
            (
                "alter role joe password 'se''cret' login",
                "alter role joe password '********' login",
            ),
            (
                "CREATE USER joe ENCRYPTED PASSWORD\n e'a\\'b' ",
                "CREATE USER joe ENCRYPTED PASSWORD\n '********' ",
            ),
            (
                "alter role joe password $x$secret$x$; select 1",
                "alter role joe password '********'; select 1",
            ),
            (
                "alter role joe password /* it is */ 'secret",
                "alter role joe password /* it is */ '********'",
            ),
            ("alter role joe password null", "alter role joe password null"),
            ("select 'password', x from t", "select 'password', x from t"),
        ] {
            assert_eq!(masked(text), shown);
        }
        assert!(matches!(masked("select 1"), Cow::Borrowed("select 1")));
    }
}
