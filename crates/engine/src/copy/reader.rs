//! COPY data into fields.
//!
//! The client cuts its data into messages wherever it likes, so lines are cut here: bytes go in by
//! [`RowReader::push`], rows come out by [`RowReader::next_row`] as soon as they are whole. A field is NULL when its
//! raw text, before escapes are undone and (in CSV) without quotes, is the NULL string.

use std::borrow::Cow;
use std::io::BufRead;
use std::ops::Range;

use crate::copy::plain_lines::{Field, PlainLines};
use crate::memory;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::{CopyFormat, CopyOptions};

/// No line may be longer, as in PostgreSQL; and what a line needs is asked for, so a client that forgets its newlines does not
/// take all memory.
const LINE_BYTES_MAX: usize = 1 << 30;

/// As many times its length may a line have in memory at once.
const LINE_COPIES: usize = 6;

/// The fields of one row. The memory is used again for the next.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    text: String,
    places: Vec<Field>,
}

impl Fields {
    /// Number of fields.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// The field of this number; `None` is NULL.
    pub(crate) fn get(&self, number: usize) -> Option<&str> {
        let Field { start, end, null } = self.places[number];
        (!null).then(|| &self.text[start as usize..end as usize])
    }
}

/// Cuts COPY data into rows.
#[derive(Debug)]
pub(crate) struct RowReader<'a> {
    options: &'a CopyOptions,
    pending: Vec<u8>,
    /// The start of the first line that has not been taken.
    at: usize,
    /// Up to where `pending` is known to hold no end of that line, and whether that point is inside CSV quotes.
    searched: (usize, bool),
    line_number: u64,
    /// The place of the line taken last.
    line: Range<usize>,
    skip_header: bool,
    /// The names that the first line has to hold.
    names: Vec<String>,
    /// The end marker `\.` has been seen, or the client said it is done.
    ended: bool,
    scratch: Vec<u8>,
    plain: PlainLines<'a>,
}

impl<'a> RowReader<'a> {
    pub(crate) fn new(options: &'a CopyOptions) -> RowReader<'a> {
        RowReader {
            options,
            pending: Vec::new(),
            at: 0,
            searched: (0, false),
            line_number: 0,
            line: 0..0,
            skip_header: options.header,
            names: Vec::new(),
            ended: false,
            scratch: Vec::new(),
            plain: PlainLines::new(options),
        }
    }

    /// As [`new`](Self::new), for columns of these names: the first line holds them, if the options say so.
    pub(crate) fn of_columns(options: &'a CopyOptions, names: Vec<String>) -> RowReader<'a> {
        RowReader {
            names: if options.matches { names } else { Vec::new() },
            ..RowReader::new(options)
        }
    }

    /// 22P04 for a first line that does not hold the names of the columns.
    fn match_header(&mut self, line: Range<usize>, fields: &mut Fields) -> Result<()> {
        self.split(line, fields)?;
        let refused = |message: String| Err(EngineError::new(SqlState::BAD_COPY_FILE_FORMAT, message));
        let (given, wanted) = (fields.len(), self.names.len());
        if given != wanted {
            return refused(format!(
                "wrong number of fields in header line: got {given}, expected {wanted}"
            ));
        }
        for (at, name) in self.names.iter().enumerate() {
            let got = match fields.get(at) {
                Some(text) if text == name => continue,
                Some(text) => format!("\"{text}\""),
                None => format!("null value (\"{}\")", self.options.null),
            };
            return refused(format!(
                "column name mismatch in header line field {}: got {got}, expected \"{name}\"",
                at + 1
            ));
        }
        Ok(())
    }

    /// The number of the line taken last, from 1: for error messages.
    pub(crate) fn line_number(&self) -> u64 {
        self.line_number
    }

    /// The text of the line taken last, until more is added.
    pub(crate) fn line(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.pending.get(self.line.clone()).unwrap_or_default())
    }

    /// Adds what the client sent.
    pub(crate) fn push(&mut self, chunk: &[u8]) -> Result<()> {
        if self.at > 0 {
            self.pending.drain(..self.at);
            self.searched.0 -= self.at;
            self.at = 0;
        }
        if self.pending.len() + chunk.len() > LINE_BYTES_MAX + (1 << 20) && self.searched.0 > LINE_BYTES_MAX {
            return Err(EngineError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!(
                    "line {} of COPY data is longer than {LINE_BYTES_MAX} bytes",
                    self.line_number + 1
                ),
            ));
        }
        let wanted = self.pending.len() + chunk.len();
        if wanted > self.pending.capacity() {
            // The buffer doubles; and of a long line fields, values and a row are made.
            memory::require(LINE_COPIES * wanted)?;
        }
        self.pending.extend_from_slice(chunk);
        Ok(())
    }

    /// Takes the next row if it is whole. `finished`: no more data will come, so the last line needs no newline.
    pub(crate) fn next_row(&mut self, finished: bool, fields: &mut Fields) -> Result<bool> {
        loop {
            if self.ended {
                return Ok(false);
            }
            let Some((end, next)) = self.find_line(finished) else {
                return Ok(false);
            };
            let line = self.at..end;
            self.at = next;
            self.searched = (next, false);
            self.line_number += 1;
            self.line = line.clone();
            if std::mem::take(&mut self.skip_header) {
                if self.options.matches {
                    self.match_header(line, fields)?;
                }
                continue;
            }
            if &self.pending[line.clone()] == b"\\." {
                self.ended = true;
                return Ok(false);
            }
            self.split(line, fields)?;
            return Ok(true);
        }
    }

    /// The end of the current line and the start of the next.
    fn find_line(&mut self, finished: bool) -> Option<(usize, usize)> {
        let (mut position, mut quoted) = self.searched;
        let csv = self.options.format == CopyFormat::Csv;
        let bytes = &self.pending;
        let found = if csv {
            let mut found = None;
            while let rest @ [first, ..] = &bytes[position..] {
                if quoted && rest.len() == 1 && *first == self.options.escape {
                    // What it means is for the next byte to say.
                    break;
                }
                match csv_token(rest, quoted, self.options) {
                    CsvToken::Unquoted(b'\n') => {
                        found = Some(position);
                        break;
                    }
                    CsvToken::Unquoted(_) => position += 1,
                    CsvToken::Quoted { length, .. } => position += length,
                    CsvToken::Quote => {
                        quoted = !quoted;
                        position += 1;
                    }
                }
            }
            found
        } else {
            // A backslash before a newline makes it part of the field: rare, so looked at only when a newline is met.
            let mut found = None;
            while let Some(offset) = position_of(b'\n', &bytes[position..]) {
                let newline = position + offset;
                let backslashes = bytes[self.at..newline]
                    .iter()
                    .rev()
                    .take_while(|byte| **byte == b'\\')
                    .count();
                if backslashes % 2 == 0 {
                    found = Some(newline);
                    break;
                }
                position = newline + 1;
            }
            if found.is_none() {
                position = bytes.len();
            }
            found
        };
        match found {
            Some(newline) => {
                let end = if newline > self.at && bytes[newline - 1] == b'\r' {
                    newline - 1
                } else {
                    newline
                };
                Some((end, newline + 1))
            }
            None if finished && self.at < bytes.len() => Some((bytes.len(), bytes.len())),
            None => {
                self.searched = (position, quoted);
                None
            }
        }
    }

    fn split(&mut self, line: std::ops::Range<usize>, fields: &mut Fields) -> Result<()> {
        let bytes = &self.pending[line];
        fields.places.clear();
        if self.plain.split(bytes, &mut fields.places) {
            fields.text.clear();
            return match std::str::from_utf8(bytes) {
                Ok(text) => {
                    fields.text.push_str(text);
                    Ok(())
                }
                Err(_) => Err(self.bad_encoding()),
            };
        }
        self.scratch.clear();
        fields.places.clear();
        match self.options.format {
            CopyFormat::Text | CopyFormat::Binary => {
                split_text(bytes, self.options, &mut self.scratch, &mut fields.places)?
            }
            CopyFormat::Csv => split_csv(bytes, self.options, &mut self.scratch, &mut fields.places)?,
        }
        let mut text = std::mem::take(&mut fields.text).into_bytes();
        std::mem::swap(&mut text, &mut self.scratch);
        match String::from_utf8(text) {
            Ok(text) if !text.contains('\0') => {
                // Each end is a boundary of the escaped text's fields, but an octal escape may have cut a character.
                if fields
                    .places
                    .iter()
                    .any(|field| !text.is_char_boundary(field.end as usize))
                {
                    return Err(self.bad_encoding());
                }
                fields.text = text;
                Ok(())
            }
            _ => Err(self.bad_encoding()),
        }
    }

    fn bad_encoding(&self) -> EngineError {
        EngineError::new(
            SqlState::CHARACTER_NOT_IN_REPERTOIRE,
            format!(
                "invalid byte sequence for encoding \"UTF8\" in COPY data, line {}",
                self.line_number
            ),
        )
    }
}

/// The first place of `byte` in `bytes`.
fn position_of(byte: u8, bytes: &[u8]) -> Option<usize> {
    // The standard library's search for a byte by whole words is behind `BufRead`.
    let mut rest = bytes;
    let skipped = rest.skip_until(byte).unwrap_or(0);
    let last = skipped.checked_sub(1)?;
    (bytes[last] == byte).then_some(last)
}

fn split_text(line: &[u8], options: &CopyOptions, out: &mut Vec<u8>, places: &mut Vec<Field>) -> Result<()> {
    let mut start = 0;
    loop {
        let mut end = start;
        let mut escaped = false;
        while end < line.len() && line[end] != options.delimiter {
            if line[end] == b'\\' {
                escaped = true;
                end += 1;
            } else if line[end] == b'\r' {
                return Err(carriage_return(
                    "literal",
                    "Use \"\\r\" to represent carriage return.",
                ));
            }
            end += 1;
        }
        let end = end.min(line.len());
        let raw = &line[start..end];
        let null = raw == options.null.as_bytes();
        let field_start = out.len() as u32;
        if !null {
            if escaped {
                unescape(raw, out);
            } else {
                out.extend_from_slice(raw);
            }
        }
        places.push(Field {
            start: field_start,
            end: out.len() as u32,
            null,
        });
        if end >= line.len() {
            return Ok(());
        }
        start = end + 1;
    }
}

/// 22P04: lines end with a newline, so data whose lines end with carriage returns would be one long line.
#[cold]
fn carriage_return(what: &str, hint: &'static str) -> EngineError {
    EngineError::new(
        SqlState::BAD_COPY_FILE_FORMAT,
        format!("{what} carriage return found in data"),
    )
    .with_hint(hint)
}

fn unescape(raw: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    while at < raw.len() {
        let byte = raw[at];
        at += 1;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        if at == raw.len() {
            // The data ends with it: it stands for nothing.
            return;
        }
        let escaped = raw[at];
        at += 1;
        match escaped {
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(11),
            b'0'..=b'7' => {
                let mut code = u32::from(escaped - b'0');
                let mut digits = 1;
                while digits < 3 && at < raw.len() && (b'0'..=b'7').contains(&raw[at]) {
                    code = code * 8 + u32::from(raw[at] - b'0');
                    at += 1;
                    digits += 1;
                }
                out.push(code as u8);
            }
            b'x' if at < raw.len() && raw[at].is_ascii_hexdigit() => {
                let mut code = 0;
                let mut digits = 0;
                while digits < 2 && at < raw.len() && raw[at].is_ascii_hexdigit() {
                    code = code * 16 + (raw[at] as char).to_digit(16).unwrap_or(0);
                    at += 1;
                    digits += 1;
                }
                out.push(code as u8);
            }
            other => out.push(other),
        }
    }
}

/// The next byte of CSV data, or the next two if the first is an escape.
enum CsvToken {
    /// Outside quotes: a byte that may end the field or the line.
    Unquoted(u8),
    /// Inside quotes: a byte of the field, and how many bytes stand for it.
    Quoted { byte: u8, length: usize },
    /// It opens quotes, or closes them.
    Quote,
}

/// The token that `bytes` begin with, inside quotes or outside. There is one byte at least. Inside quotes, an escape
/// before a quote or another escape stands for that; before any other byte it is data.
#[inline]
fn csv_token(bytes: &[u8], quoted: bool, options: &CopyOptions) -> CsvToken {
    let byte = bytes[0];
    if quoted
        && byte == options.escape
        && let Some(&next) = bytes.get(1)
        && (next == options.quote || next == options.escape)
    {
        return CsvToken::Quoted {
            byte: next,
            length: 2,
        };
    }
    match byte {
        byte if byte == options.quote => CsvToken::Quote,
        byte if quoted => CsvToken::Quoted { byte, length: 1 },
        byte => CsvToken::Unquoted(byte),
    }
}

fn split_csv(line: &[u8], options: &CopyOptions, out: &mut Vec<u8>, places: &mut Vec<Field>) -> Result<()> {
    let mut at = 0;
    loop {
        let start = out.len();
        let mut any_quotes = false;
        let mut quoted = false;
        while at < line.len() {
            match csv_token(&line[at..], quoted, options) {
                CsvToken::Quoted { byte, length } => {
                    out.push(byte);
                    at += length;
                    continue;
                }
                CsvToken::Quote => {
                    quoted = !quoted;
                    any_quotes = true;
                }
                CsvToken::Unquoted(byte) if byte == options.delimiter => break,
                CsvToken::Unquoted(b'\r') => {
                    return Err(carriage_return(
                        "unquoted",
                        "Use quoted CSV field to represent carriage return.",
                    ));
                }
                CsvToken::Unquoted(byte) => out.push(byte),
            }
            at += 1;
        }
        if quoted {
            return Err(EngineError::new(
                SqlState::BAD_COPY_FILE_FORMAT,
                "unterminated CSV quoted field",
            ));
        }
        let forced = &options.forced;
        let is_forced = |columns: &[bool]| columns.get(places.len()) == Some(&true);
        let may_be_null = if any_quotes {
            is_forced(&forced.null)
        } else {
            !is_forced(&forced.not_null)
        };
        let null = may_be_null && &out[start..] == options.null.as_bytes();
        if null {
            out.truncate(start);
        }
        places.push(Field {
            start: start as u32,
            end: out.len() as u32,
            null,
        });
        if at >= line.len() {
            return Ok(());
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_carriage_return_is_data_only_where_it_is_marked() {
        let data = |format, bytes: &[u8]| {
            let options = options(format);
            let mut reader = RowReader::new(&options);
            reader.push(bytes).unwrap();
            reader.next_row(true, &mut Fields::default())
        };
        for format in [CopyFormat::Text, CopyFormat::Csv] {
            let error = data(format, b"1\r2\r").unwrap_err();
            assert_eq!(error.sqlstate(), SqlState::BAD_COPY_FILE_FORMAT);
            assert!(data(format, b"1\r\n").unwrap());
        }
        assert!(data(CopyFormat::Text, b"1\\\r2\n").unwrap());
        assert!(data(CopyFormat::Csv, b"\"1\r2\"\n").unwrap());
    }

    fn options(format: CopyFormat) -> CopyOptions {
        let csv = format == CopyFormat::Csv;
        CopyOptions {
            format,
            delimiter: if csv { b',' } else { b'\t' },
            null: if csv { String::new() } else { "\\N".to_owned() },
            header: false,
            matches: false,
            quote: b'"',
            escape: b'"',
            freeze: false,
            forced: Default::default(),
        }
    }

    /// Feeds `data` in pieces of `step` bytes; NULL is shown as `~`.
    fn read(format: CopyFormat, data: &[u8], step: usize) -> Vec<Vec<String>> {
        read_with(&options(format), data, step)
    }

    fn read_with(options: &CopyOptions, data: &[u8], step: usize) -> Vec<Vec<String>> {
        let mut reader = RowReader::new(options);
        let mut fields = Fields::default();
        let mut rows = Vec::new();
        let mut take = |reader: &mut RowReader<'_>, finished: bool| {
            while reader.next_row(finished, &mut fields).unwrap() {
                rows.push(
                    (0..fields.len())
                        .map(|n| fields.get(n).unwrap_or("~").to_owned())
                        .collect(),
                );
            }
        };
        for chunk in data.chunks(step) {
            reader.push(chunk).unwrap();
            take(&mut reader, false);
        }
        take(&mut reader, true);
        rows
    }

    #[test]
    fn text_rows_come_out_the_same_however_they_are_cut() {
        let data =
            b"1\tAlice\t\\N\n2\tBob\\tby\\\\\t\n3\t\\101\\x42\tx\r\n4\ttwo\\\nlines\ty\n\\.\n5\tno\tno\n";
        let whole = read(CopyFormat::Text, data, data.len());
        assert_eq!(
            whole,
            [
                ["1", "Alice", "~"],
                ["2", "Bob\tby\\", ""],
                ["3", "AB", "x"],
                ["4", "two\nlines", "y"]
            ]
        );
        for step in 1..9 {
            assert_eq!(read(CopyFormat::Text, data, step), whole);
        }
    }

    #[test]
    fn csv_quotes_hold_delimiters_newlines_and_empty_strings() {
        let data = b"1,\"a \"\"b\"\", c\",\n2,\"line\nbreak\",\"\"\n3,,z";
        let whole = read(CopyFormat::Csv, data, data.len());
        assert_eq!(
            whole,
            [
                ["1", "a \"b\", c", "~"],
                ["2", "line\nbreak", ""],
                ["3", "~", "z"]
            ]
        );
        for step in 1..9 {
            assert_eq!(read(CopyFormat::Csv, data, step), whole);
        }
    }

    /// An escape of its own: before a quote or itself it makes that data, before any other byte it is data itself.
    #[test]
    fn csv_escapes_are_the_same_for_lines_and_fields() {
        let options = CopyOptions {
            escape: b'\\',
            ..options(CopyFormat::Csv)
        };
        let data = b"1,\"a\\\"\nb\\\\\",\\\n2,\"\\\nc\\,\",\"\\\\\\\"\"\n3,\"\"\"\",\"x\"y";
        let whole = read_with(&options, data, data.len());
        assert_eq!(
            whole,
            [
                ["1", "a\"\nb\\", "\\"],
                ["2", "\\\nc\\,", "\\\""],
                ["3", "", "xy"]
            ]
        );
        for step in 1..9 {
            assert_eq!(read_with(&options, data, step), whole);
        }
    }

    #[test]
    fn bytes_that_are_no_utf8_are_refused() {
        let options = options(CopyFormat::Text);
        let mut reader = RowReader::new(&options);
        reader.push(b"\xff\xfe\n").unwrap();
        let error = reader.next_row(false, &mut Fields::default()).unwrap_err();
        assert_eq!(error.sqlstate(), SqlState::CHARACTER_NOT_IN_REPERTOIRE);
    }
}
