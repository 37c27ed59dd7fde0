//! A file's bytes, and the changes of them that no sync has covered yet.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

pub(super) const BLOCK: usize = 4096;
const SECTOR: u64 = 512;
pub(super) static ZEROS: [u8; BLOCK] = [0; BLOCK];

/// A file's bytes; blocks of zeros take no memory.
#[derive(Debug, Clone, Default)]
pub(super) struct Content {
    pub(super) length: u64,
    blocks: BTreeMap<u64, Arc<[u8; BLOCK]>>,
}

impl Content {
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        self.length = self.length.max(offset + bytes.len() as u64);
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            let (number, within) = (at / BLOCK as u64, (at % BLOCK as u64) as usize);
            let take = (bytes.len() - done).min(BLOCK - within);
            let part = &bytes[done..done + take];
            if take == BLOCK && part == &ZEROS[..] {
                self.blocks.remove(&number);
            } else {
                let block = self.blocks.entry(number).or_insert_with(|| Arc::new(ZEROS));
                Arc::make_mut(block)[within..within + take].copy_from_slice(part);
            }
            done += take;
        }
    }

    pub(super) fn read(&self, offset: u64, bytes: &mut [u8]) -> usize {
        let count = self.length.saturating_sub(offset).min(bytes.len() as u64) as usize;
        let mut done = 0;
        while done < count {
            let at = offset + done as u64;
            let (number, within) = (at / BLOCK as u64, (at % BLOCK as u64) as usize);
            let take = (count - done).min(BLOCK - within);
            match self.blocks.get(&number) {
                Some(block) => bytes[done..done + take].copy_from_slice(&block[within..within + take]),
                None => bytes[done..done + take].fill(0),
            }
            done += take;
        }
        count
    }

    pub(super) fn set_length(&mut self, length: u64) {
        if length < self.length {
            let keep = length.div_ceil(BLOCK as u64);
            self.blocks.split_off(&keep);
            if let Some(block) = self.blocks.get_mut(&(length / BLOCK as u64)) {
                Arc::make_mut(block)[(length % BLOCK as u64) as usize..].fill(0);
            }
        }
        self.length = length;
    }

    /// The bytes of a range, and zeros behind the file's end.
    pub(super) fn range(&self, range: Range<u64>) -> Vec<u8> {
        let mut bytes = vec![0; range.end.saturating_sub(range.start) as usize];
        self.read(range.start, &mut bytes);
        bytes
    }
}

/// A change of a file that no sync has covered yet.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Write(u64, Arc<[u8]>),
    Zeros(u64, u64),
    Length(u64),
    Allocate(u64),
}

impl Change {
    pub(super) fn apply(&self, content: &mut Content) {
        match self {
            Change::Write(offset, bytes) => content.write(*offset, bytes),
            Change::Zeros(offset, length) => {
                let mut at = *offset;
                while at < offset + length {
                    let take = (offset + length - at).min(BLOCK as u64 - at % BLOCK as u64);
                    content.write(at, &ZEROS[..take as usize]);
                    at += take;
                }
            }
            Change::Length(length) => content.set_length(*length),
            Change::Allocate(end) => content.length = content.length.max(*end),
        }
    }

    /// Applies the sectors that `survives` chooses.
    pub(super) fn apply_torn(&self, content: &mut Content, mut survives: impl FnMut() -> bool) {
        let (offset, length) = match self {
            Change::Write(offset, bytes) => (*offset, bytes.len() as u64),
            Change::Zeros(offset, length) => (*offset, *length),
            _ => return self.apply(content),
        };
        let mut at = offset;
        while at < offset + length {
            let take = (offset + length - at).min(SECTOR - at % SECTOR);
            if survives() {
                match self {
                    Change::Write(_, bytes) => {
                        let from = (at - offset) as usize;
                        content.write(at, &bytes[from..from + take as usize]);
                    }
                    _ => content.write(at, &ZEROS[..take as usize]),
                }
            }
            at += take;
        }
    }

    /// The bytes that it writes, if it writes any.
    pub(super) fn range(&self) -> Option<Range<u64>> {
        match self {
            Change::Write(offset, bytes) => Some(*offset..offset + bytes.len() as u64),
            Change::Zeros(offset, length) => Some(*offset..offset + length),
            Change::Length(_) | Change::Allocate(_) => None,
        }
    }
}
