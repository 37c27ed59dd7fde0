//! Statements as they may be shown: without the passwords in them.
//!
//! A password is the string behind the word PASSWORD, in CREATE ROLE and ALTER ROLE. In other statements a string there is
//! masked too: what is shown is for reading, and a word too few does no harm. The text of a statement that was cut may end
//! inside the string, which then reaches to the end. A string with a backslash ends at one place or another, as the settings
//! of its session have it: a text that has such a string is masked from the first PASSWORD to its end.
//!
//! A password is in a connection string as well, behind `password=` or before the `@` of a URI: a string with one is masked
//! whole.

use std::borrow::Cow;

use crate::lex::{Element, Elements};

/// The word behind which a password stands.
const WORD: &str = "password";

/// The characters before the user and the host of a URI.
const AUTHORITY: &str = "://";

/// The text in place of a password.
const MASK: &str = "'********'";

/// A statement's text without the passwords in it.
pub fn masked(text: &str) -> Cow<'_, str> {
    let first = first_word(text.as_bytes());
    if first.is_none() && !text.contains(AUTHORITY) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::new();
    let (mut copied, mut is_behind) = (0, false);
    if has_plain_backslash(text) {
        let end = match first {
            Some(first) => first + WORD.len(),
            None => text.find(AUTHORITY).unwrap_or(text.len()),
        };
        return Cow::Owned(format!("{} {MASK}", &text[..end]));
    }
    for (element, range) in Elements::of(text) {
        let is_text = matches!(element, Element::Text { .. } | Element::DollarQuoted { .. });
        if is_text && (is_behind || is_secret_connection(&text[range.clone()])) {
            shown.push_str(&text[copied..range.start]);
            shown.push_str(MASK);
            copied = range.end;
        }
        is_behind = element == Element::Word && text[range].eq_ignore_ascii_case(WORD);
    }
    shown.push_str(&text[copied..]);
    Cow::Owned(shown)
}

/// True if a connection string, with its quotation marks, has a password in it: `password = …`, or a URI with `user:…@`.
fn is_secret_connection(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = first_word(rest.as_bytes()) {
        rest = &rest[at + WORD.len()..];
        if rest.trim_start().starts_with('=') {
            return true;
        }
    }
    text.split_once(AUTHORITY).is_some_and(|(_, behind)| {
        let authority = behind.split(['/', '?']).next().unwrap_or(behind);
        authority
            .rsplit_once('@')
            .is_some_and(|(user, _)| user.contains(':'))
    })
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
            (
                "alter system set primary_conninfo = 'host=p user=r password=secret'",
                "alter system set primary_conninfo = '********'",
            ),
            (
                "alter system set primary_conninfo to $$host=p PassWord = 'secret'$$; select 1",
                "alter system set primary_conninfo to '********'; select 1",
            ),
            (
                "alter system set primary_conninfo = 'postgresql://r:secret@p:5433/d?x=y'",
                "alter system set primary_conninfo = '********'",
            ),
            (
                "select 'postgresql://r@p:5433/d', 'http://a/b:c@d', 'no password here = x'",
                "select 'postgresql://r@p:5433/d', 'http://a/b:c@d', 'no password here = x'",
            ),
            ("set x = 'a\\b://r:secret@p'", "set x = 'a\\b '********'"),
            ("select 'password', x from t", "select 'password', x from t"),
        ] {
            assert_eq!(masked(text), shown);
        }
        assert!(matches!(masked("select 1"), Cow::Borrowed("select 1")));
    }
}
