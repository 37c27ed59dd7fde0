//! Reading the log back.

use std::io;

use crate::page::Lsn;
use crate::wal::LogDevice;
use crate::wal::record::{self, Decoded, Record};

const CHUNK: usize = 256 << 10;

/// Reads records in order until the last whole one.
#[derive(Debug)]
pub struct LogReader<'a, D: LogDevice> {
    device: &'a D,
    /// Where the next record begins.
    position: u64,
    buffer: Vec<u8>,
    /// The log position of the buffer's first byte.
    buffer_start: u64,
}

impl<'a, D: LogDevice> LogReader<'a, D> {
    /// A reader of what `device` holds from `start` on.
    pub fn new(device: &'a D, start: Lsn) -> Self {
        Self {
            device,
            position: start.0,
            buffer: Vec::new(),
            buffer_start: start.0,
        }
    }

    /// Where the next record begins: after the last whole one, once [`next_record`](Self::next_record) has said `None`.
    pub fn position(&self) -> Lsn {
        Lsn(self.position)
    }

    /// The next record and the position after it.
    pub fn next_record(&mut self) -> io::Result<Option<(Record<'_>, Lsn)>> {
        let mut wanted = record::HEADER;
        let (kind, xid, payload, total) = loop {
            let start = (self.position - self.buffer_start) as usize;
            if self.buffer.len() < start + wanted {
                if !self.fill(wanted)? {
                    return Ok(None);
                }
                continue;
            }
            match record::decode(&self.buffer[start..], self.position) {
                Decoded::Record(record, total) => {
                    let from = start + record::HEADER;
                    break (record.kind, record.xid, from..from + record.payload.len(), total);
                }
                Decoded::NeedMore(needed) => wanted = needed,
                Decoded::End => return Ok(None),
            }
        };
        self.position += total as u64;
        let record = Record {
            kind,
            xid,
            payload: &self.buffer[payload],
        };
        Ok(Some((record, Lsn(self.position))))
    }

    /// Makes the buffer begin at the position and hold `wanted` bytes; `false` if the device has fewer.
    fn fill(&mut self, wanted: usize) -> io::Result<bool> {
        let start = (self.position - self.buffer_start) as usize;
        self.buffer.drain(..start.min(self.buffer.len()));
        self.buffer_start = self.position;
        let have = self.buffer.len();
        self.buffer.resize(have + CHUNK.max(wanted), 0);
        let read = self
            .device
            .read(self.buffer_start + have as u64, &mut self.buffer[have..])?;
        self.buffer.truncate(have + read);
        Ok(self.buffer.len() >= wanted)
    }
}
