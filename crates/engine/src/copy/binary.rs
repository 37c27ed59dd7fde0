//! COPY's binary format. All numbers are big-endian.
//!
//! ```text
//! "PGCOPY\n" ff 0d 0a 00 | flags: 4 bytes | length of what follows: 4 bytes | …     once
//! number of fields: 2 bytes | of each its length: 4 bytes, −1 for NULL | its bytes    each row
//! −1: 2 bytes                                                                         the end
//! ```
//!
//! The client cuts its data wherever it likes: bytes go in by [`BinaryReader::push`], rows come out by
//! [`BinaryReader::next_row`] as soon as they are whole.

use std::ops::Range;

use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::value::{Value, encode_binary};

use crate::memory;

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";

/// The flag that says that rows have numbers: none of ours have.
const WITH_OIDS: u32 = 1 << 16;

/// The flags that a reader must know.
const CRITICAL: u32 = 0xffff_0000;

/// No row may be longer; lengths that a client makes up must not take all memory.
const ROW_BYTES_MAX: usize = 1 << 30;

/// The end of the data.
pub(super) const END: [u8; 2] = (-1i16).to_be_bytes();

/// Appends the header.
pub(super) fn write_header(out: &mut Vec<u8>) {
    out.extend_from_slice(SIGNATURE);
    out.extend_from_slice(&[0; 8]);
}

/// Appends a row.
pub(super) fn write_row(out: &mut Vec<u8>, row: &[Value]) {
    out.extend_from_slice(&(row.len() as u16).to_be_bytes());
    for value in row {
        let start = out.len();
        out.extend_from_slice(&(-1i32).to_be_bytes());
        if !value.is_null() {
            encode_binary(value, out);
            let length = (out.len() - start - 4) as u32;
            out[start..start + 4].copy_from_slice(&length.to_be_bytes());
        }
    }
}

/// Cuts binary COPY data into rows.
#[derive(Debug, Default)]
pub(super) struct BinaryReader {
    pending: Vec<u8>,
    /// The start of what has not been taken.
    at: usize,
    header_is_read: bool,
    /// The end has been seen.
    ended: bool,
    /// The places of the fields of the row taken last; none for NULL.
    fields: Vec<Option<Range<usize>>>,
    row_number: u64,
}

impl BinaryReader {
    /// The number of the row taken last, from 1.
    pub(super) fn row_number(&self) -> u64 {
        self.row_number
    }

    /// Number of fields of the row taken last.
    pub(super) fn len(&self) -> usize {
        self.fields.len()
    }

    /// A field of the row taken last; `None` is NULL.
    pub(super) fn get(&self, number: usize) -> Option<&[u8]> {
        let place = self.fields[number].clone()?;
        Some(&self.pending[place])
    }

    /// Adds what the client sent.
    pub(super) fn push(&mut self, chunk: &[u8]) -> Result<()> {
        if self.ended && !chunk.is_empty() {
            return Err(bad("received copy data after EOF marker"));
        }
        self.pending.drain(..self.at);
        self.at = 0;
        let wanted = self.pending.len() + chunk.len();
        if wanted > ROW_BYTES_MAX {
            return Err(EngineError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!("a row of COPY data is longer than {ROW_BYTES_MAX} bytes"),
            ));
        }
        if wanted > self.pending.capacity() {
            // The buffer doubles.
            memory::require(2 * wanted)?;
        }
        self.pending.extend_from_slice(chunk);
        Ok(())
    }

    /// Takes the next row if it is whole. `finished`: no more data will come.
    pub(super) fn next_row(&mut self, finished: bool) -> Result<bool> {
        if self.ended {
            return match self.at < self.pending.len() {
                true => Err(bad("received copy data after EOF marker")),
                false => Ok(false),
            };
        }
        if !self.header_is_read && !self.read_header(finished)? {
            return Ok(false);
        }
        let mut rest = &self.pending[self.at..];
        let Some(count) = number::<2>(&mut rest) else {
            // Data may end without their end mark.
            return Ok(false);
        };
        let count = i16::from_be_bytes(count);
        if count == -1 {
            self.at += 2;
            self.ended = true;
            return self.next_row(finished);
        }
        let cut = |whole: bool| match finished && !whole {
            true => Err(bad("unexpected EOF in COPY data")),
            false => Ok(false),
        };
        self.row_number += 1;
        let count = usize::try_from(count).unwrap_or(0);
        let mut at = self.at + 2;
        self.fields.clear();
        for _ in 0..count {
            let Some(length) = self.pending.get(at..).and_then(|mut rest| number::<4>(&mut rest)) else {
                self.row_number -= 1;
                return cut(false);
            };
            at += 4;
            let length = i32::from_be_bytes(length);
            if length == -1 {
                self.fields.push(None);
                continue;
            }
            let Ok(length) = usize::try_from(length) else {
                return Err(bad("invalid field size"));
            };
            if self.pending.len() - at < length {
                self.row_number -= 1;
                return cut(false);
            }
            self.fields.push(Some(at..at + length));
            at += length;
        }
        self.at = at;
        Ok(true)
    }

    /// Goes past the header; false if it has not come yet.
    fn read_header(&mut self, finished: bool) -> Result<bool> {
        let mut rest = &self.pending[self.at..];
        let known = rest.len().min(SIGNATURE.len());
        if rest[..known] != SIGNATURE[..known] || finished && known < SIGNATURE.len() {
            return Err(bad("COPY file signature not recognized"));
        }
        rest = &rest[known..];
        let missing = |what: &'static str| match finished {
            true => Err(bad(what)),
            false => Ok(false),
        };
        let Some(flags) = number::<4>(&mut rest) else {
            return missing("invalid COPY file header (missing flags)");
        };
        let flags = u32::from_be_bytes(flags);
        if flags & WITH_OIDS != 0 {
            return Err(bad("invalid COPY file header (WITH OIDS)"));
        }
        if flags & CRITICAL != 0 {
            return Err(bad("unrecognized critical flags in COPY file header"));
        }
        let Some(length) = number::<4>(&mut rest) else {
            return missing("invalid COPY file header (missing length)");
        };
        let wrong_length = "invalid COPY file header (wrong length)";
        let Ok(length) = usize::try_from(i32::from_be_bytes(length)) else {
            return Err(bad(wrong_length));
        };
        if rest.len() < length {
            return missing(wrong_length);
        }
        self.at = self.pending.len() - rest.len() + length;
        self.header_is_read = true;
        Ok(true)
    }
}

/// Takes a number of so many bytes off the front.
fn number<const BYTES: usize>(rest: &mut &[u8]) -> Option<[u8; BYTES]> {
    let (number, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*number)
}

fn bad(message: &'static str) -> EngineError {
    EngineError::new(SqlState::BAD_COPY_FILE_FORMAT, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data() -> Vec<u8> {
        let mut data = Vec::new();
        write_header(&mut data);
        write_row(&mut data, &[Value::Int4(7), Value::Null, Value::from("ab")]);
        write_row(&mut data, &[]);
        write_row(&mut data, &[Value::from("")]);
        data.extend_from_slice(&END);
        data
    }

    fn read(data: &[u8], step: usize) -> Result<Vec<Vec<Option<Vec<u8>>>>> {
        let mut reader = BinaryReader::default();
        let mut rows = Vec::new();
        let chunks = data.chunks(step).map(|chunk| (chunk, false));
        for (chunk, finished) in chunks.chain([(&[][..], true)]) {
            reader.push(chunk)?;
            while reader.next_row(finished)? {
                let fields = (0..reader.len()).map(|field| reader.get(field).map(<[u8]>::to_vec));
                rows.push(fields.collect());
            }
        }
        Ok(rows)
    }

    #[test]
    fn rows_come_out_the_same_however_they_are_cut() {
        let expected = vec![
            vec![Some(7i32.to_be_bytes().to_vec()), None, Some(b"ab".to_vec())],
            vec![],
            vec![Some(Vec::new())],
        ];
        for step in 1..=data().len() {
            assert_eq!(read(&data(), step).unwrap(), expected);
        }
    }

    #[test]
    fn cut_and_changed_data_are_errors_or_fewer_rows() {
        let whole = data();
        for end in 0..whole.len() {
            let found = read(&whole[..end], 3);
            assert!(found.is_err() || found.unwrap().len() <= 3, "{end}");
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0x80;
            let _ = read(&changed, 5);
        }
        assert!(read(&[whole.as_slice(), b"x"].concat(), 4).is_err());
        let mut flagged = whole;
        flagged[SIGNATURE.len()] = 1;
        assert!(read(&flagged, 100).is_err());
    }
}
