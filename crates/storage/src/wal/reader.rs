//! Reading the log back.

use std::io;

use crate::page::Lsn;
use crate::wal::link::LogLink;
use crate::wal::record::{self, Decoded, Record};
use crate::wal::{LogDevice, SEGMENT_SIZE};

const CHUNK: usize = 256 << 10;

/// Reads records in order until the last whole one.
#[derive(Debug)]
pub struct LogReader<'a, D: LogDevice> {
    device: &'a D,
    /// The start of the next record.
    position: u64,
    buffer: Vec<u8>,
    /// The log position of the buffer's first byte.
    buffer_start: u64,
    /// The position behind which nothing is read.
    limit: u64,
    /// The link of the next record, once it is known (K4 of the links).
    link: Option<LogLink>,
    /// The reason for which the last look found no record.
    end: LogEnd,
}

/// The reason for which a reader finds no further record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogEnd {
    /// The bytes come to an end, or what may be read.
    Missing,
    /// There are bytes that are no record.
    Damaged,
    /// There is a whole record of another log: its link is not that of the record before it (K5 of the links).
    Unlinked,
}

impl<'a, D: LogDevice> LogReader<'a, D> {
    /// A reader of what `device` holds from `start` on.
    pub fn new(device: &'a D, start: Lsn) -> Self {
        Self {
            device,
            position: start.0,
            buffer: Vec::new(),
            buffer_start: start.0,
            limit: u64::MAX,
            link: None,
            end: LogEnd::Missing,
        }
    }

    /// This reader, for log whose first record has to have `link`, if it is known.
    pub fn linked(self, link: Option<LogLink>) -> Self {
        Self { link, ..self }
    }

    /// As [`new`](Self::new), for what lies before `limit`.
    pub fn up_to(device: &'a D, start: Lsn, limit: Lsn) -> Self {
        Self {
            limit: limit.0,
            ..Self::new(device, start)
        }
    }

    /// The reason for which [`next_record`](Self::next_record) has said `None`.
    pub fn end(&self) -> LogEnd {
        self.end
    }

    /// The link of the next record; `None` if no record has been read.
    pub fn link(&self) -> Option<LogLink> {
        self.link
    }

    /// The start of the next record: the end of the last whole one, once [`next_record`](Self::next_record) has said
    /// `None`.
    pub fn position(&self) -> Lsn {
        Lsn(self.position)
    }

    /// The next record and the position after it.
    pub fn next_record(&mut self) -> io::Result<Option<(Record<'_>, Lsn)>> {
        let mut wanted = record::HEADER;
        let (mut found, payload, total) = loop {
            let start = (self.position - self.buffer_start) as usize;
            if self.buffer.len() < start + wanted {
                if !self.fill(wanted)? {
                    self.end = LogEnd::Missing;
                    return Ok(None);
                }
                continue;
            }
            match record::decode(&self.buffer[start..], self.position) {
                Decoded::Record(record, total) => {
                    if self.link.is_some_and(|link| link != record.link) {
                        self.end = LogEnd::Unlinked;
                        return Ok(None);
                    }
                    let from = start + record::HEADER;
                    let payload = from..from + record.payload.len();
                    break (
                        Record {
                            payload: &[],
                            ..record
                        },
                        payload,
                        total,
                    );
                }
                Decoded::NeedMore(needed) => wanted = needed,
                Decoded::End => {
                    self.end = LogEnd::Damaged;
                    return Ok(None);
                }
            }
        };
        self.position += total as u64;
        self.link = Some(found.next_link);
        found.payload = &self.buffer[payload];
        Ok(Some((found, Lsn(self.position))))
    }

    /// Makes the buffer begin at the position and hold `wanted` bytes; `false` if the device has fewer.
    fn fill(&mut self, wanted: usize) -> io::Result<bool> {
        let start = (self.position - self.buffer_start) as usize;
        self.buffer.drain(..start.min(self.buffer.len()));
        self.buffer_start = self.position;
        let have = self.buffer.len();
        let readable = self.limit.saturating_sub(self.buffer_start + have as u64);
        let more = readable.min(CHUNK.max(wanted) as u64) as usize;
        self.buffer.resize(have + more, 0);
        let read = self
            .device
            .read(self.buffer_start + have as u64, &mut self.buffer[have..])?;
        self.buffer.truncate(have + read);
        Ok(self.buffer.len() >= wanted)
    }
}

/// Proof that the log before `durable` was once whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DamageProof {
    /// The record that proves it.
    pub record: Lsn,
    /// The log was durable up to here when that record was inserted.
    pub durable: Lsn,
}

/// The log behind a place where no whole record begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogBehind {
    /// The first whole record: it would join the log if new log ended where it begins.
    pub record: Option<Lsn>,
    /// The first record that proves the place to be damage. No search goes on behind it.
    pub damage: Option<DamageProof>,
}

/// Looks behind `end`, where no whole record begins, for whole records, up to one that was inserted when the log was
/// durable beyond `end`; no further than `distance`.
///
/// A record is known by its own position and its CRC, so neither what an earlier life of a segment left
/// behind nor a record inside another one's payload is taken for one. Its link is not looked at: the record before it may be
/// the one that is damaged.
pub fn search_behind<D: LogDevice>(device: &D, end: Lsn, distance: u64) -> io::Result<LogBehind> {
    const BLOCK: usize = 4096;
    let zeros = [0; BLOCK];
    let mut bytes = vec![0; CHUNK + record::HEADER];
    let mut behind = LogBehind::default();
    let mut at = end.0 + 8;
    let limit = end.0 + distance;
    while at < limit {
        let read = device.read(at, &mut bytes)?;
        // If there are fewer bytes, a segment is missing. The search goes on with the next one.
        let next = if read < bytes.len() {
            (at + read as u64) / SEGMENT_SIZE * SEGMENT_SIZE + SEGMENT_SIZE
        } else {
            at + CHUNK as u64
        };
        let mut offset = 0;
        while offset + record::HEADER <= read {
            if bytes[offset..read].starts_with(&zeros) {
                // No header begins in it: each begins with its length.
                offset += BLOCK;
                continue;
            }
            let position = at + offset as u64;
            if record::may_begin_at(&bytes[offset..], position)
                && let Some(durable) = durable_at(device, position)?
            {
                let record = Lsn(position);
                behind.record.get_or_insert(record);
                if durable > end {
                    behind.damage = Some(DamageProof { record, durable });
                    return Ok(behind);
                }
            }
            offset += 8;
        }
        at = next;
    }
    Ok(behind)
}

/// Up to where the log was durable when the whole record at `position` was inserted, if there is one.
fn durable_at<D: LogDevice>(device: &D, position: u64) -> io::Result<Option<Lsn>> {
    let mut reader = LogReader::new(device, Lsn(position));
    Ok(reader.next_record()?.map(|(record, _)| record.durable))
}
