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

use crate::sql::lex::{Kind, lex};
use crate::sql::split::{is_identifier, past_element};

/// A text of this length or less is parsed as a whole.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// A piece ends with the row that reaches this length.
const PIECE_BYTES: usize = 32 << 10;

/// Some of the rows after the first.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    /// Where they are in their statement's text.
    pub bytes: Range<usize>,
    /// How many characters of the statement's text come before them.
    pub characters_before: u32,
}

/// Where the rows of a long INSERT are.
#[derive(Debug)]
pub(super) struct Cut {
    /// Where the first row ends.
    pub first_row_end: usize,
    /// Where the last one ends.
    pub rows_end: usize,
    pub pieces: Vec<Piece>,
}

/// Cuts a long INSERT; `None` for other texts.
pub(super) fn cut(text: &str) -> Option<Cut> {
    if text.len() <= TEXT_BYTES_MAX || !begins_with_insert(text) {
        return None;
    }
    let bytes = text.as_bytes();
    let mut rows = Rows {
        bytes,
        at: past_values(bytes)?,
    };
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

fn begins_with_insert(text: &str) -> bool {
    matches!(lex(text, 1).first().map(|token| &token.kind), Some(Kind::Word(word)) if word == "insert")
}

/// Past the word VALUES that stands outside of brackets.
fn past_values(bytes: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (0, 0usize);
    while at < bytes.len() {
        match bytes[at] {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            byte if is_identifier(byte) => {
                let length = bytes[at..]
                    .iter()
                    .take_while(|byte| is_identifier(**byte))
                    .count();
                let word = &bytes[at..at + length];
                // What a quote follows is the beginning of a string, such as E'…'.
                if bytes.get(at + length) != Some(&b'\'') && !word.starts_with(b"$") {
                    at += length;
                    if depth == 0 && word.eq_ignore_ascii_case(b"values") {
                        return Some(at);
                    }
                    continue;
                }
            }
            _ => {}
        }
        at = past_element(bytes, at);
    }
    None
}

/// Walks from row to row.
struct Rows<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Rows<'_> {
    /// The byte after blanks and comments.
    fn past_blanks(&mut self) -> Option<u8> {
        loop {
            let byte = *self.bytes.get(self.at)?;
            let comment =
                self.bytes[self.at..].starts_with(b"--") || self.bytes[self.at..].starts_with(b"/*");
            if !comment && !byte.is_ascii_whitespace() {
                return Some(byte);
            }
            self.at = past_element(self.bytes, self.at);
        }
    }

    fn past_comma(&mut self) -> bool {
        let found = self.past_blanks() == Some(b',');
        self.at += usize::from(found);
        found
    }

    /// A list in brackets.
    fn next_row(&mut self) -> Option<Range<usize>> {
        if self.past_blanks() != Some(b'(') {
            return None;
        }
        let start = self.at;
        let mut depth = 0usize;
        while self.at < self.bytes.len() {
            match self.bytes[self.at] {
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ => {}
            }
            self.at = past_element(self.bytes, self.at);
            if depth == 0 {
                return Some(start..self.at);
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
