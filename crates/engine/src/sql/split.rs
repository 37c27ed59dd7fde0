//! Where one statement ends and the next begins.
//!
//! A semicolon ends a statement unless it stands in a string ('…', E'…', $tag$…$tag$), a quoted identifier, a comment
//! (`--`, nested `/* */`) or parentheses.

use std::ops::Range;

/// The byte ranges of the statements of a text, without the semicolons; blank ones are left out.
pub fn split(sql: &str) -> Vec<Range<usize>> {
    let bytes = sql.as_bytes();
    let mut statements = Vec::new();
    let mut start = 0;
    let mut at = 0;
    let mut depth = 0usize;
    // Whether anything but blanks and comments has been seen since `start`.
    let mut solid = false;
    while at < bytes.len() {
        match bytes[at] {
            b';' if depth == 0 => {
                if solid {
                    statements.push(start..at);
                }
                at += 1;
                start = at;
                solid = false;
                continue;
            }
            b'-' if bytes.get(at + 1) == Some(&b'-') => {
                at = past_element(bytes, at);
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                at = past_element(bytes, at);
                continue;
            }
            byte if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at = past_element(bytes, at);
        solid = true;
    }
    if solid {
        statements.push(start..bytes.len());
    }
    statements
}

/// Past the comment, string or quoted identifier that begins at `at`, or past one byte of anything else.
pub(super) fn past_element(bytes: &[u8], at: usize) -> usize {
    match bytes[at] {
        b'-' if bytes.get(at + 1) == Some(&b'-') => {
            let rest = &bytes[at..];
            at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
        }
        b'/' if bytes.get(at + 1) == Some(&b'*') => skip_block_comment(bytes, at),
        b'\'' => {
            let escapes =
                at > 0 && matches!(bytes[at - 1], b'e' | b'E') && (at < 2 || !is_identifier(bytes[at - 2]));
            skip_quoted(bytes, at, escapes)
        }
        b'"' => skip_quoted(bytes, at, false),
        b'$' if at == 0 || !is_identifier(bytes[at - 1]) => skip_dollar_quoted(bytes, at),
        _ => at + 1,
    }
}

pub(super) fn is_identifier(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

fn skip_block_comment(bytes: &[u8], mut at: usize) -> usize {
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

/// Past a quoted run that begins at `at`; a doubled quote is one character of it.
fn skip_quoted(bytes: &[u8], at: usize, escapes: bool) -> usize {
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

/// Past a dollar-quoted string, or just past the dollar sign if it begins none (`$1`).
fn skip_dollar_quoted(bytes: &[u8], at: usize) -> usize {
    let tag = bytes[at + 1..]
        .iter()
        .take_while(|byte| is_identifier(**byte) && **byte != b'$')
        .count();
    let end = at + 1 + tag;
    if bytes.get(end) != Some(&b'$') || bytes.get(at + 1).is_some_and(u8::is_ascii_digit) {
        return at + 1;
    }
    let delimiter = &bytes[at..=end];
    bytes[end + 1..]
        .windows(delimiter.len())
        .position(|window| window == delimiter)
        .map_or(bytes.len(), |found| end + 1 + found + delimiter.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(sql: &str) -> Vec<&str> {
        split(sql).into_iter().map(|range| sql[range].trim()).collect()
    }

    #[test]
    fn semicolons_inside_things_do_not_count() {
        assert_eq!(parts("select 1; select 2;"), ["select 1", "select 2"]);
        assert_eq!(
            parts("select ';' ; select \"a;b\""),
            ["select ';'", "select \"a;b\""]
        );
        assert_eq!(
            parts("select 'it''s;' -- no; not here\n; x"),
            ["select 'it''s;' -- no; not here", "x"]
        );
        assert_eq!(parts("select E'\\';' ; x"), ["select E'\\';'", "x"]);
        assert_eq!(
            parts("select $$a;b$$, $t$;$t$; x"),
            ["select $$a;b$$, $t$;$t$", "x"]
        );
        assert_eq!(parts("select $1; select $2"), ["select $1", "select $2"]);
        assert_eq!(
            parts("/* a; /* b; */ c; */ select 1"),
            ["/* a; /* b; */ c; */ select 1"]
        );
        assert_eq!(parts(" ; ;; -- nothing\n"), [""; 0]);
        assert_eq!(parts(""), [""; 0]);
    }

    #[test]
    fn unclosed_things_reach_to_the_end() {
        assert_eq!(parts("select 'a; b"), ["select 'a; b"]);
        assert_eq!(parts("select $$a; b"), ["select $$a; b"]);
        assert_eq!(parts("/* a; b").len(), 0);
        assert_eq!(parts("select E'\\"), ["select E'\\"]);
    }
}
