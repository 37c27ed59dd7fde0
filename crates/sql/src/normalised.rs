//! Statements without their constants: what `pg_stat_statements` counts under one name.
//!
//! Two texts are one statement if they differ in constants, in blanks and comments, or in the case of unquoted words. The
//! names in them are compared as they are written: `t` is one name, whatever schema it is found in.
//!
//! | part of a query (SELECT, INSERT, UPDATE, DELETE, MERGE, VALUES, WITH, TABLE) | becomes |
//! | --- | --- |
//! | a string, a number | `$n`, counted on from the highest parameter of the text |
//! | a sign in front of a number, where no number can stand in front of it | a part of the number |
//! | a number in parentheses behind a type's name: `numeric(10, 2)` | stays, and tells statements apart |
//! | a number alone in GROUP BY or ORDER BY, which counts columns | the same |
//!
//! Other statements keep their text, but for passwords ([`masked`]): their constants tell them apart.
//!
//! The number of a statement is a hash of its parts: the same in each session, and after a restart of the same version.

use std::hash::{DefaultHasher, Hasher};
use std::ops::Range;

use crate::lex::{Element, Elements};
use crate::masked::masked;

/// The most bytes of a statement's text that are kept.
pub const NORMALISED_BYTES_MAX: usize = 4 << 10;

/// The words that a query begins with; so does a query in parentheses.
const QUERIES: [&str; 8] = [
    "select", "insert", "update", "delete", "merge", "values", "with", "table",
];

/// Types with numbers in parentheses behind their names.
const MODIFIED_TYPES: [&str; 13] = [
    "bit",
    "bpchar",
    "char",
    "character",
    "dec",
    "decimal",
    "float",
    "interval",
    "numeric",
    "time",
    "timestamp",
    "varchar",
    "varying",
];

/// The words that end a list behind GROUP BY or ORDER BY.
const BEHIND_LISTS: [&str; 13] = [
    "except",
    "fetch",
    "for",
    "having",
    "intersect",
    "limit",
    "offset",
    "order",
    "range",
    "returning",
    "rows",
    "union",
    "window",
];

/// A statement without its constants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Normalised {
    /// Its text, the first [`NORMALISED_BYTES_MAX`] bytes.
    pub text: String,
    /// Its number, which is not 0.
    pub number: i64,
}

/// The text of one statement without its constants. Backslashes do not escape in its plain strings.
pub fn normalised(text: &str) -> Normalised {
    let start = Elements::of(text).next().map_or(0, |(_, range)| range.start);
    let first = Elements::of(text).find(|(element, _)| *element != Element::Symbol(b'('));
    let is_query = first.is_some_and(|(element, range)| {
        element == Element::Word
            && QUERIES
                .iter()
                .any(|word| text[range.clone()].eq_ignore_ascii_case(word))
    });
    // A number made of a password could be tried out.
    let masked = if is_query { text.into() } else { masked(text) };
    let text = &*masked;
    let mut walk = Walk {
        text,
        hasher: DefaultHasher::new(),
        shown: String::new(),
        copied: start,
        end: start,
        next_number: highest_parameter(text) + 1,
    };
    if is_query {
        walk.query();
        walk.shown.push_str(&text[walk.copied..walk.end]);
    } else {
        for (element, range) in Elements::of(text) {
            walk.hash(element, &range);
            walk.end = walk.end.max(end_of(element, &range, walk.end));
        }
        walk.shown = text[start..walk.end].to_owned();
    }
    let mut shown = walk.shown.trim().to_owned();
    shown.truncate(shown.floor_char_boundary(NORMALISED_BYTES_MAX));
    Normalised {
        text: shown,
        number: match walk.hasher.finish().cast_signed() {
            0 => 1,
            number => number,
        },
    }
}

/// The end of a statement's text after this element: a semicolon is no part of it.
fn end_of(element: Element, range: &Range<usize>, before: usize) -> usize {
    if element == Element::Symbol(b';') {
        before
    } else {
        range.end
    }
}

/// The highest `$n` of a text; 0 without one.
fn highest_parameter(text: &str) -> u32 {
    let mut highest = 0;
    let mut dollar = None;
    for (element, range) in Elements::of(text) {
        if element == Element::Number && dollar == Some(range.start) {
            highest = highest.max(text[range.clone()].parse().unwrap_or(0));
        }
        dollar = (element == Element::Symbol(b'$')).then_some(range.end);
    }
    highest
}

/// A walk over one text.
struct Walk<'a> {
    text: &'a str,
    hasher: DefaultHasher,
    shown: String,
    /// The end of the part of the text that `shown` was made of.
    copied: usize,
    /// The end of the last element that counts.
    end: usize,
    next_number: u32,
}

/// The element before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// `=`, `<`, `>`, `(`, `,`: what follows is a value.
    Operator,
    /// `-` or `+` behind such an element, at this byte.
    Sign(usize),
    /// `$`, which ends at this byte.
    Dollar(usize),
    Other,
}

/// The lists around an element.
struct Lists {
    /// Open parentheses.
    depth: u32,
    /// The depth of a list behind BY.
    by: Option<u32>,
    /// The depth of the parentheses behind a type's name.
    modifiers: Option<u32>,
    /// True if the element before is BY, or a comma of its list: a number may stand for a column.
    begins_item: bool,
    /// True if the word before is a type's name.
    behind_type: bool,
}

impl Walk<'_> {
    fn hash(&mut self, element: Element, range: &Range<usize>) {
        let written = &self.text.as_bytes()[range.clone()];
        match element {
            // A quoted identifier in lower case is the same name as the word.
            Element::Quoted => self.hasher.write(&written[1..written.len().max(2) - 1]),
            Element::Word => written
                .iter()
                .for_each(|byte| self.hasher.write_u8(byte.to_ascii_lowercase())),
            Element::Symbol(b';') => return,
            _ => self.hasher.write(written),
        }
        self.hasher.write_u8(0);
    }

    /// Shows a parameter for a constant.
    fn replace(&mut self, range: &Range<usize>) {
        self.shown.push_str(&self.text[self.copied..range.start]);
        self.shown.push('$');
        self.shown.push_str(&self.next_number.to_string());
        self.next_number += 1;
        self.copied = range.end;
        self.end = range.end;
        // No element of a text has this byte.
        self.hasher.write_u8(0xff);
    }

    fn query(&mut self) {
        let mut before = Before::Other;
        let mut lists = Lists {
            depth: 0,
            by: None,
            modifiers: None,
            begins_item: false,
            behind_type: false,
        };
        let mut elements = Elements::of(self.text).peekable();
        while let Some((element, range)) = elements.next() {
            let follower = elements.peek().cloned();
            let is_constant = match element {
                Element::Text { .. } | Element::DollarQuoted { .. } => true,
                Element::Number => {
                    let is_parameter = before == Before::Dollar(range.start);
                    let is_column = lists.begins_item && self.ends_item(follower.as_ref());
                    !is_parameter && !is_column && lists.modifiers.is_none()
                }
                // The letter of `B'101'`, `X'1F'`, `N'…'`, whose string follows.
                Element::Word => {
                    let letter = &self.text[range.clone()];
                    let is_letter = ["b", "x", "n"]
                        .iter()
                        .any(|word| letter.eq_ignore_ascii_case(word));
                    match &follower {
                        Some((Element::Text { .. }, text)) if is_letter && text.start == range.end => {
                            let whole = range.start..text.end;
                            elements.next();
                            self.replace(&whole);
                            before = Before::Other;
                            continue;
                        }
                        _ => false,
                    }
                }
                _ => false,
            };
            if is_constant {
                let start = match before {
                    Before::Sign(at) => at,
                    _ => range.start,
                };
                let mut end = range.end;
                // `1e-5` is one number of three elements.
                if element == Element::Number
                    && self.text[range.clone()].ends_with(['e', 'E'])
                    && let Some((Element::Symbol(b'-' | b'+'), sign)) = &follower
                    && sign.start == end
                {
                    elements.next();
                    let exponent = elements.next_if(|(element, _)| *element == Element::Number);
                    end = exponent.map_or(sign.end, |(_, digits)| digits.end);
                }
                self.replace(&(start..end));
                before = Before::Other;
                lists.begins_item = false;
                continue;
            }
            if let Before::Sign(at) = before {
                self.hash(Element::Symbol(b'-'), &(at..at + 1));
            }
            let next = self.next_before(element, &range, before);
            if !matches!(next, Before::Sign(_)) {
                self.hash(element, &range);
            }
            lists.pass(element, &self.text[range.clone()]);
            self.end = self.end.max(end_of(element, &range, self.end));
            before = next;
        }
    }

    fn next_before(&self, element: Element, range: &Range<usize>, before: Before) -> Before {
        match element {
            Element::Symbol(b'=' | b'<' | b'>' | b'(' | b',') => Before::Operator,
            // The sign stands directly before its number.
            Element::Symbol(b'-' | b'+')
                if before == Before::Operator
                    && self
                        .text
                        .as_bytes()
                        .get(range.end)
                        .is_some_and(u8::is_ascii_digit) =>
            {
                Before::Sign(range.start)
            }
            Element::Symbol(b'$') => Before::Dollar(range.end),
            _ => Before::Other,
        }
    }

    /// True if a list's item ends before `follower`.
    fn ends_item(&self, follower: Option<&(Element, Range<usize>)>) -> bool {
        match follower {
            None | Some((Element::Symbol(b',' | b')' | b';'), _)) => true,
            Some((Element::Word, range)) => {
                let word = &self.text[range.clone()];
                ["asc", "desc", "nulls"]
                    .iter()
                    .chain(&BEHIND_LISTS)
                    .any(|known| word.eq_ignore_ascii_case(known))
            }
            Some(_) => false,
        }
    }
}

impl Lists {
    /// Goes past an element that is no constant.
    fn pass(&mut self, element: Element, written: &str) {
        let is_one_of = |words: &[&str]| words.iter().any(|word| written.eq_ignore_ascii_case(word));
        self.begins_item = false;
        match element {
            Element::Symbol(b'(') => {
                self.depth += 1;
                if self.behind_type {
                    self.modifiers = Some(self.depth);
                }
            }
            Element::Symbol(b')') => {
                if self.modifiers == Some(self.depth) {
                    self.modifiers = None;
                }
                if self.by.is_some_and(|by| by >= self.depth) {
                    self.by = None;
                }
                self.depth = self.depth.saturating_sub(1);
            }
            Element::Symbol(b',') => self.begins_item = self.by == Some(self.depth),
            Element::Word if written.eq_ignore_ascii_case("by") => {
                self.by = Some(self.depth);
                self.begins_item = true;
            }
            Element::Word if self.by == Some(self.depth) && is_one_of(&BEHIND_LISTS) => self.by = None,
            _ => {}
        }
        self.behind_type = element == Element::Word && is_one_of(&MODIFIED_TYPES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(text: &str) -> String {
        normalised(text).text
    }

    #[test]
    fn constants_of_queries_become_parameters() {
        for (text, shown) in [
            ("select 1", "select $1"),
            (
                "SELECT a, 'it''s' FROM t WHERE b = 3.5e2 ;",
                "SELECT a, $1 FROM t WHERE b = $2",
            ),
            (
                "select * from t where a = $2 and b = 7 and c = $1",
                "select * from t where a = $2 and b = $3 and c = $1",
            ),
            (
                "insert into t values (1, -2, $x$y$x$, e'\\'', b'101', null)",
                "insert into t values ($1, $2, $3, $4, $5, null)",
            ),
            (
                "select a - 1, a -1, a*-1 from t",
                "select a - $1, a -$2, a*-$3 from t",
            ),
            (
                "select x::numeric(10, 2), 5 from t",
                "select x::numeric(10, 2), $1 from t",
            ),
            (
                "select a, count(*) from t group by 1 order by 2 desc, 1 limit 10",
                "select a, count(*) from t group by 1 order by 2 desc, 1 limit $1",
            ),
            (
                "select a from t order by a + 1, coalesce(b, 2), 3 nulls first",
                "select a from t order by a + $1, coalesce(b, $2), 3 nulls first",
            ),
            (
                "select (select a from t order by 1), 2",
                "select (select a from t order by 1), $1",
            ),
            ("(select 1)", "(select $1)"),
            ("/* hi */ select /* there */ 1 -- end\n", "select /* there */ $1"),
            ("select 1., 1e-5, 2E+7", "select $1, $2, $3"),
            (
                "select a from t where a=-1 and b<-2",
                "select a from t where a=$1 and b<$2",
            ),
            ("", ""),
        ] {
            assert_eq!(text_of(text), shown, "{text}");
        }
    }

    #[test]
    fn other_statements_keep_their_constants_but_for_passwords() {
        for (text, shown) in [
            ("set work_mem = '4MB';", "set work_mem = '4MB'"),
            (
                "alter role joe password 'secret'",
                "alter role joe password '********'",
            ),
            ("begin", "begin"),
        ] {
            assert_eq!(text_of(text), shown, "{text}");
        }
        let number = |text| normalised(text).number;
        assert_ne!(number("set work_mem = '4MB'"), number("set work_mem = '8MB'"));
        // Nothing is to be learned of a password.
        let of_password =
            |password: &str| normalised(&format!("alter role joe password '{password}'")).number;
        assert_eq!(of_password("secret"), of_password("another one"));
    }

    #[test]
    fn one_statement_has_one_number() {
        let number = |text| normalised(text).number;
        for (one, other) in [
            ("select 1", "SELECT   'x'; "),
            (
                "select a from t where b = -1",
                "select A from \"t\" where b /* c */ = 17",
            ),
            ("select a from t limit 1", "select a from t limit 2"),
            ("begin", "BEGIN;"),
        ] {
            assert_eq!(number(one), number(other), "{one}, {other}");
        }
        for (one, other) in [
            ("select a from t", "select b from t"),
            ("select a from \"T\"", "select a from t"),
            ("select a, b from t order by 1", "select a, b from t order by 2"),
            ("select a b from t", "select ab from t"),
            ("select $1", "select $2"),
            (
                "select a from t where b in (1, 2)",
                "select a from t where b in (1, 2, 3)",
            ),
            ("select x::varchar(1)", "select x::varchar(2)"),
        ] {
            assert_ne!(number(one), number(other), "{one}, {other}");
        }
    }

    #[test]
    fn a_text_of_any_bytes_and_length_is_walked_once() {
        let long = format!("select '{}', ünïcode", "é".repeat(10_000));
        assert_eq!(text_of(&long), "select $1, ünïcode");
        let long = format!("select {}", "é".repeat(10_000));
        assert!(text_of(&long).len() <= NORMALISED_BYTES_MAX);
        for text in [
            "'",
            "\"",
            "$",
            "select '",
            "select \"",
            "select $",
            "select by 1",
            "select )))",
            "select -",
        ] {
            assert_ne!(normalised(text).number, 0, "{text}");
        }
    }
}
