//! Long lists of rows, parsed in pieces.
//!
//! A syntax tree takes more than a hundred bytes for a byte of `insert into t values (1, 2), (3, 4), …`, and its tokens
//! as much again: 16 MB of text would take some gigabytes, all at once, before the first row is bound. So a long INSERT
//! is cut between its rows:
//!
//! 1. [`cut`] walks over the text and notes where its rows are. Nothing is parsed for that.
//! 2. The text without the rows after the first, the *frame*, is parsed as any statement is.
//! 3. Binding parses some rows, binds them, drops their tree, and goes on with the next ([`Piece`]). Between two pieces
//!    it looks whether to stop.
//!
//! A text that is not quite as expected is not cut. What is accepted, and the places of mistakes, do not depend on
//! this; only a mistake in a later row is found later, after errors of binding in the rows before it. That is why the
//! only statement of a message is cut and no other: those before it would have run.

use std::ops::Range;

use crate::lex::{Element, Elements};

/// A text of this length or less is parsed as a whole.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// A piece ends with the row that reaches this length.
const PIECE_BYTES: usize = 32 << 10;

/// Some of the rows after the first.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    /// Their place in their statement's text.
    pub bytes: Range<usize>,
    /// Number of characters of the statement's text before them.
    pub characters_before: u32,
}

/// The places of a long INSERT's rows.
#[derive(Debug)]
pub(super) struct Cut {
    /// The end of the first row.
    pub first_row_end: usize,
    /// The end of the last one.
    pub rows_end: usize,
    pub pieces: Vec<Piece>,
}

/// Cuts a long INSERT; `None` for other texts.
pub(super) fn cut(text: &str) -> Option<Cut> {
    if text.len() <= TEXT_BYTES_MAX {
        return None;
    }
    let mut elements = Elements::of(text);
    skip_to_values(text, &mut elements)?;
    let mut rows = Rows(elements);
    let first = rows.next_row()?;
    let mut pieces: Vec<Piece> = Vec::new();
    let (mut counted, mut characters) = (0, 0);
    let mut rows_end = first.end;
    while rows.past_comma() {
        // A comma without a row is a mistake, which the parser is to report.
        let row = rows.next_row()?;
        rows_end = row.end;
        match pieces.last_mut() {
            Some(last) if last.bytes.len() < PIECE_BYTES => last.bytes.end = row.end,
            _ => {
                characters += text[counted..row.start].chars().count() as u32;
                counted = row.start;
                pieces.push(Piece {
                    bytes: row,
                    characters_before: characters,
                });
            }
        }
    }
    (!pieces.is_empty()).then_some(Cut {
        first_row_end: first.end,
        rows_end,
        pieces,
    })
}

/// Past the word VALUES that is outside of brackets, in a text that begins with INSERT.
fn skip_to_values(text: &str, elements: &mut Elements<'_>) -> Option<()> {
    let is = |element, bytes: Range<usize>, word: &str| {
        element == Element::Word && text[bytes].eq_ignore_ascii_case(word)
    };
    let (element, bytes) = elements.next()?;
    if !is(element, bytes, "insert") {
        return None;
    }
    let mut depth = 0usize;
    for (element, bytes) in elements {
        match element {
            Element::Symbol(b'(' | b'[') => depth += 1,
            Element::Symbol(b')' | b']') => depth = depth.saturating_sub(1),
            _ if depth == 0 && is(element, bytes, "values") => return Some(()),
            _ => {}
        }
    }
    None
}

/// Walks from row to row.
struct Rows<'a>(Elements<'a>);

impl Rows<'_> {
    fn past_comma(&mut self) -> bool {
        let mut ahead = self.0.clone();
        let found = matches!(ahead.next(), Some((Element::Symbol(b','), _)));
        if found {
            self.0 = ahead;
        }
        found
    }

    /// A list in brackets.
    fn next_row(&mut self) -> Option<Range<usize>> {
        let Some((Element::Symbol(b'('), first)) = self.0.next() else {
            return None;
        };
        let mut depth = 1usize;
        for (element, bytes) in &mut self.0 {
            match element {
                Element::Symbol(b'(') => depth += 1,
                Element::Symbol(b')') => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Some(first.start..bytes.end);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long(rows: &str) -> String {
        let filler: Vec<String> = (0..12_000).map(|row| format!("({row}, 'é')")).collect();
        format!("{rows}, {}", filler.join(", "))
    }

    #[test]
    fn rows_are_found_whatever_they_hold() {
        for first in [
            "(1)",
            "(f(1, (2)), ')')",
            "(E'\\')', $$)$$)",
            "(\"a)b\", /* ) */ 1 -- )\n)",
            "('it''s', U&'(')",
        ] {
            let text = long(&format!(
                "INSERT INTO \"values\" /* values (0) */ (a, b) VALUES{first}"
            ));
            let cut = cut(&text).expect(first);
            assert!(text[..cut.first_row_end].ends_with(first), "{first}");
            assert_eq!(cut.rows_end, text.len());
            assert!(cut.pieces.len() > 3, "{}", cut.pieces.len());
            for piece in &cut.pieces {
                let rows = &text[piece.bytes.clone()];
                assert!(rows.starts_with('(') && rows.ends_with(')'));
                let before = text[..piece.bytes.start].chars().count();
                assert_eq!(piece.characters_before as usize, before);
            }
        }
    }

    #[test]
    fn what_follows_the_rows_is_left() {
        let text = long("insert into t values (1)") + "\n returning a";
        let cut = cut(&text).unwrap();
        assert_eq!(&text[cut.rows_end..], "\n returning a");
    }

    #[test]
    fn other_texts_are_not_cut() {
        assert!(cut("insert into t values (1), (2)").is_none(), "short");
        assert!(cut(&long("select (1)")).is_none());
        assert!(cut(&long("insert into t select (1)")).is_none());
        assert!(cut(&long("insert into t values (1),, (2)")).is_none());
        assert!(cut(&long("insert into t values (1")).is_none());
        assert!(cut(&long("insert into t values 'a")).is_none());
    }
}
