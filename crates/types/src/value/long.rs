//! Long values as rows keep them: compressed, or a pointer to where the bytes are stored apart.
//!
//! In a row a varying column has its length in front. Two bytes that no length is written as, `80 00`, tell that a *stored
//! form* follows: its own length, and these bytes.
//!
//! ```text
//! ┌────────┬─────────────┬────────────────────────────────────────────────────────────────┐
//! │ 1      │ raw length  │ blocks                                                         │ compressed, in the row
//! │ 2 or 3 │ raw length  │ stored length │ writer │ number │ page │ slot                  │ apart, as it is or in blocks
//! └────────┴─────────────┴────────────────────────────────────────────────────────────────┘
//!  1 byte   4 bytes        4               8        4        4      2
//! ```
//!
//! The content that is cut into *blocks* of 64 KiB is what the row would hold itself. Each block has a header of four
//! bytes, its length and whether it is compressed (LZ4), and can be read alone. So a value is compressed on its way to
//! the disk and restored on its way back in one pass, and neither side holds its compressed bytes as a whole.
//!
//! # Rules
//! L1. A stored form stands for one content, for ever: the bytes apart never change while any row has the pointer.
//! L2. Bytes that do not restore to a content of the raw length are damaged (XX001), never a panic and never a shorter
//!     value: they come from a file.
//! L3. A [`Value::Stored`](super::Value::Stored) is what a row has, not what an expression sees: the code that reads a row
//!     restores it before.

/// The raw bytes of a block.
const BLOCK: usize = 64 << 10;
/// Set in the header of a block that is not compressed.
const PLAIN: u32 = 1 << 31;
/// Bytes of a block's header.
const HEADER: usize = 4;

const COMPRESSED: u8 = 1;
const APART: u8 = 2;
const APART_COMPRESSED: u8 = 3;

/// Bytes of a pointer.
pub const POINTER_BYTES: usize = 1 + 4 + 4 + 8 + 4 + 4 + 2;

/// The longest content that a value may have, in bytes.
pub const CONTENT_MAX: usize = (1 << 30) - 1;

/// A value whose bytes are stored apart from its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pointer {
    /// Bytes of the content.
    pub raw_length: u32,
    /// Bytes that are stored.
    pub stored_length: u32,
    /// True if those are blocks.
    pub is_compressed: bool,
    /// The transaction that has stored it.
    pub writer: u64,
    /// Its number among the values that the transaction has stored.
    pub number: u32,
    /// The page of the first piece.
    pub page: u32,
    /// The line pointer of the first piece.
    pub slot: u16,
}

/// The kinds of stored forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredForm<'b> {
    /// Compressed, in the row.
    Compressed {
        /// Bytes of the content.
        raw_length: u32,
        /// The blocks.
        blocks: &'b [u8],
    },
    /// Apart.
    Apart(Pointer),
}

impl<'b> StoredForm<'b> {
    /// Reads a stored form; `None` if it is damaged.
    pub fn parse(bytes: &'b [u8]) -> Option<StoredForm<'b>> {
        let (kind, rest) = bytes.split_first()?;
        let (raw_length, rest) = rest.split_first_chunk()?;
        let raw_length = u32::from_le_bytes(*raw_length);
        if *kind == COMPRESSED {
            return Some(StoredForm::Compressed {
                raw_length,
                blocks: rest,
            });
        }
        let (stored_length, rest) = rest.split_first_chunk()?;
        let (writer, rest) = rest.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (page, rest) = rest.split_first_chunk()?;
        let pointer = Pointer {
            raw_length,
            stored_length: u32::from_le_bytes(*stored_length),
            is_compressed: *kind == APART_COMPRESSED,
            writer: u64::from_le_bytes(*writer),
            number: u32::from_le_bytes(*number),
            page: u32::from_le_bytes(*page),
            slot: u16::from_le_bytes(rest.try_into().ok()?),
        };
        matches!(*kind, APART | APART_COMPRESSED).then_some(StoredForm::Apart(pointer))
    }
}

impl Pointer {
    /// The stored form.
    pub fn encode(&self) -> Box<[u8]> {
        let mut out = Vec::with_capacity(POINTER_BYTES);
        out.push(if self.is_compressed {
            APART_COMPRESSED
        } else {
            APART
        });
        out.extend_from_slice(&self.raw_length.to_le_bytes());
        out.extend_from_slice(&self.stored_length.to_le_bytes());
        out.extend_from_slice(&self.writer.to_le_bytes());
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.page.to_le_bytes());
        out.extend_from_slice(&self.slot.to_le_bytes());
        out.into()
    }
}

/// The stored form of a content that is compressed in the row; `None` if that saves nothing.
pub fn compressed(content: &[u8]) -> Option<Box<[u8]>> {
    let raw_length = u32::try_from(content.len()).ok()?;
    let mut out = vec![COMPRESSED];
    out.extend_from_slice(&raw_length.to_le_bytes());
    for block in content.chunks(BLOCK) {
        push_block(block, &mut out);
        if out.len() >= content.len() {
            return None;
        }
    }
    Some(out.into())
}

/// True if it is worth to store a content in blocks: the first one gets shorter.
pub fn is_compressible(content: &[u8]) -> bool {
    let first = &content[..content.len().min(BLOCK)];
    let mut block = Vec::new();
    push_block(first, &mut block);
    block.len() < first.len()
}

/// The blocks of a content, one after the other, each with its header.
pub fn each_block<E>(content: &[u8], mut write: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    let mut block = Vec::new();
    for raw in content.chunks(BLOCK) {
        block.clear();
        push_block(raw, &mut block);
        write(&block)?;
    }
    Ok(())
}

/// Appends a block.
fn push_block(raw: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(
        start + HEADER + lz4_flex::block::get_maximum_output_size(raw.len()),
        0,
    );
    let length = lz4_flex::block::compress_into(raw, &mut out[start + HEADER..]);
    let header = match length {
        Ok(length) if length < raw.len() => {
            out.truncate(start + HEADER + length);
            length as u32
        }
        _ => {
            out.truncate(start + HEADER);
            out.extend_from_slice(raw);
            raw.len() as u32 | PLAIN
        }
    };
    out[start..start + HEADER].copy_from_slice(&header.to_le_bytes());
}

/// Restores a content from what is stored of it, which comes in pieces of any length.
#[derive(Debug)]
pub struct Restoring {
    raw_length: usize,
    content: Vec<u8>,
    is_compressed: bool,
    /// The beginning of a block that is not all there.
    part: Vec<u8>,
}

impl Restoring {
    /// For a content of so many bytes. The caller has asked for the memory.
    pub fn new(raw_length: u32, is_compressed: bool) -> Restoring {
        let raw_length = raw_length as usize;
        Restoring {
            raw_length,
            content: Vec::with_capacity(raw_length.min(CONTENT_MAX)),
            is_compressed,
            part: Vec::new(),
        }
    }

    /// Takes the next piece; `None` if it is damaged (L2).
    pub fn push(&mut self, mut piece: &[u8]) -> Option<()> {
        if !self.is_compressed {
            self.has_room(piece.len())?;
            self.content.extend_from_slice(piece);
            return Some(());
        }
        if !self.part.is_empty() {
            let mut part = std::mem::take(&mut self.part);
            part.extend_from_slice(piece);
            let mut rest = &part[..];
            while let Some(block) = take_block(&mut rest) {
                self.restore(block?)?;
            }
            part.drain(..part.len() - rest.len());
            self.part = part;
            return Some(());
        }
        while let Some(block) = take_block(&mut piece) {
            self.restore(block?)?;
        }
        self.part.extend_from_slice(piece);
        Some(())
    }

    fn has_room(&self, bytes: usize) -> Option<()> {
        (bytes <= self.raw_length - self.content.len()).then_some(())
    }

    fn restore(&mut self, (is_plain, block): (bool, &[u8])) -> Option<()> {
        let start = self.content.len();
        if is_plain {
            self.has_room(block.len())?;
            self.content.extend_from_slice(block);
            return Some(());
        }
        let room = (self.raw_length - start).min(BLOCK);
        self.content.resize(start + room, 0);
        let length = lz4_flex::block::decompress_into(block, &mut self.content[start..]).ok()?;
        // Each block but the last is a whole one.
        (length == room).then_some(())
    }

    /// The content; `None` if it is not all there.
    pub fn finish(self) -> Option<Vec<u8>> {
        (self.part.is_empty() && self.content.len() == self.raw_length).then_some(self.content)
    }
}

/// A block at the front of `bytes`: whether it is plain, and what it holds. The outer `None`: it is not all there.
fn take_block<'b>(bytes: &mut &'b [u8]) -> Option<Option<(bool, &'b [u8])>> {
    let (header, rest) = bytes.split_first_chunk()?;
    let header = u32::from_le_bytes(*header);
    let length = (header & !PLAIN) as usize;
    if length > BLOCK {
        return Some(None);
    }
    let (block, rest) = rest.split_at_checked(length)?;
    *bytes = rest;
    Some(Some((header & PLAIN != 0, block)))
}

/// The content of blocks that are all there.
pub(super) fn restored(raw_length: u32, blocks: &[u8]) -> Option<Vec<u8>> {
    // A block of LZ4 has at most 255 times as many bytes as it is stored in: more than that is damage.
    if raw_length as usize > blocks.len().saturating_mul(256) {
        return None;
    }
    let mut restoring = Restoring::new(raw_length, true);
    restoring.push(blocks)?;
    restoring.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that do not get shorter.
    fn noise(length: usize) -> Vec<u8> {
        let mut state = 7u64;
        let next = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u8
        });
        next.take(length).collect()
    }

    #[test]
    fn contents_come_back_however_they_are_cut() {
        let mut mixed = noise(100_000);
        mixed.extend(std::iter::repeat_n(b'x', 200_000));
        for content in [noise(3_000), vec![b'a'; 1_000_000], mixed, vec![b'b'; BLOCK]] {
            let mut blocks = Vec::new();
            each_block(&content, |block| {
                blocks.extend_from_slice(block);
                Ok::<(), ()>(())
            })
            .unwrap();
            for piece in [1_000, 8_107, blocks.len()] {
                let mut restoring = Restoring::new(content.len() as u32, true);
                blocks
                    .chunks(piece)
                    .for_each(|piece| restoring.push(piece).unwrap());
                assert!(restoring.finish().unwrap() == content);
            }
            // L2: none of these is a value.
            for length in [0, 1, 3, 4, blocks.len() / 2, blocks.len() - 1] {
                assert_eq!(restored(content.len() as u32, &blocks[..length]), None);
            }
            for raw_length in [0, content.len() - 1, content.len() + 1, CONTENT_MAX] {
                assert_eq!(restored(raw_length as u32, &blocks), None);
            }
        }
    }

    #[test]
    fn what_gets_no_shorter_is_not_compressed() {
        assert_eq!(compressed(&noise(5_000)), None);
        assert!(!is_compressible(&noise(5_000)) && is_compressible(&[b'a'; 5_000]));
        let stored = compressed(&[b'a'; 5_000]).unwrap();
        assert!(stored.len() < 100);
        let Some(StoredForm::Compressed { raw_length, blocks }) = StoredForm::parse(&stored) else {
            panic!("{stored:?}");
        };
        assert_eq!(restored(raw_length, blocks).unwrap(), [b'a'; 5_000]);
    }

    #[test]
    fn pointers_come_back() {
        let pointer = Pointer {
            raw_length: 1 << 29,
            stored_length: 77,
            is_compressed: true,
            writer: u64::MAX - 1,
            number: 3,
            page: 9,
            slot: 2,
        };
        let bytes = pointer.encode();
        assert_eq!(bytes.len(), POINTER_BYTES);
        assert_eq!(StoredForm::parse(&bytes), Some(StoredForm::Apart(pointer)));
        for length in 0..bytes.len() {
            assert_eq!(StoredForm::parse(&bytes[..length]), None);
        }
    }
}
