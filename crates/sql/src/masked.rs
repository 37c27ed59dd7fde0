//! Statements as they may be shown: without the passwords in them.
//!
//! A password is the string behind the word PASSWORD, in CREATE ROLE and ALTER ROLE. In other statements a string there is
//! masked too: what is shown is for reading, and a word too few does no harm. The text of a statement that was cut may end
//! inside the string, which then reaches to the end. A string with a backslash ends at one place or another, as the settings
//! of its session have it: a text that has such a string is masked from the first PASSWORD to its end.

use std::borrow::Cow;

use crate::lex::{Element, Elements};

/// The word behind which a password stands.
const WORD: &str = "password";

/// The text in place of a password.
const MASK: &str = "'********'";

/// A statement's text without the passwords in it.
pub fn masked(text: &str) -> Cow<'_, str> {
    let Some(first) = first_word(text.as_bytes()) else {
        return Cow::Borrowed(text);
    };
    let mut shown = String::new();
    let (mut copied, mut is_behind) = (0, false);
    if has_plain_backslash(text) {
        let shown = &text[..first + WORD.len()];
        return Cow::Owned(format!("{shown} {MASK}"));
    }
    for (element, range) in Elements::of(text) {
        let is_text = matches!(element, Element::Text { .. } | Element::DollarQuoted { .. });
        if is_behind && is_text {
            shown.push_str(&text[copied..range.start]);
            shown.push_str(MASK);
            copied = range.end;
        }
        is_behind = element == Element::Word && text[range].eq_ignore_ascii_case(WORD);
    }
    shown.push_str(&text[copied..]);
    Cow::Owned(shown)
}

/// True if a string without `E` has a backslash.
fn has_plain_backslash(text: &str) -> bool {
    text.contains('\\')
        && Elements::of(text)
            .any(|(element, range)| element == Element::Text { escapes: false } && text[range].contains('\\'))
}

/// The first place of the word's letters, if they are there.
fn first_word(text: &[u8]) -> Option<usize> {
    text.windows(WORD.len())
        .position(|part| part.eq_ignore_ascii_case(WORD.as_bytes()))
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
            (
                "select '\\' -- '; alter role joe Password 'secret';\n select 'password'",
                "select '\\' -- '; alter role joe Password '********'",
            ),
            (
                "select 'a\\b', $$password$$",
                "select 'a\\b', $$password '********'",
            ),
            ("alter role joe password null", "alter role joe password null"),
            ("select 'password', x from t", "select 'password', x from t"),
        ] {
            assert_eq!(masked(text), shown);
        }
        assert!(matches!(masked("select 1"), Cow::Borrowed("select 1")));
    }
}
