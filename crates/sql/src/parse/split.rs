//! The boundaries of statements in a text.
//!
//! A semicolon ends a statement unless it is in a string ('…', E'…', $tag$…$tag$), a quoted identifier, a comment
//! (`--`, nested `/* */`) or parentheses.

use std::ops::Range;

use crate::lex::{Element, Elements};

/// The byte ranges of the statements of a text, without the semicolons; blank ones are left out.
pub fn split(sql: &str) -> Vec<Range<usize>> {
    let mut statements = Vec::new();
    let mut start = 0;
    let mut depth = 0usize;
    // Whether anything but blanks and comments has been seen since `start`.
    let mut solid = false;
    for (element, bytes) in Elements::of(sql) {
        match element {
            Element::Symbol(b';') if depth == 0 => {
                if std::mem::take(&mut solid) {
                    statements.push(start..bytes.start);
                }
                start = bytes.end;
                continue;
            }
            Element::Symbol(b'(' | b'[') => depth += 1,
            Element::Symbol(b')' | b']') => depth = depth.saturating_sub(1),
            _ => {}
        }
        solid = true;
    }
    if solid {
        statements.push(start..sql.len());
    }
    statements
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
