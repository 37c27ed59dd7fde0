//! `log_sync`: the call that makes the log's bytes durable.
//!
//! Protects: nothing; it decides the calls of [`SegmentFiles`](super::SegmentFiles).
//!
//! | variant | a write | a sync |
//! | --- | --- | --- |
//! | `fdatasync` | into the kernel's cache | `fdatasync` of each segment that was written |
//! | `dsync` | through the cache, durable when it returns (`RWF_DSYNC`) | nothing is left to do |
//! | `direct` | past the cache, whole blocks, durable when it returns (`O_DIRECT` and `RWF_DSYNC`) | nothing is left to do |
//!
//! A log that is written and synced by one call pays one system call less for each flush. In return a write that needs not be
//! durable waits for the disk as well (a session that finds the ring full, a standby that receives log), and the next group cannot be written while one
//! is being synced: `log_flush` `split` and `overlapped` overlap nothing.
//!
//! # Whole blocks
//! Under `direct` a write begins and ends at multiples of [`BLOCK`], in memory and in the file.
//! - B1: a block's bytes before a write are those that the log has there. They are what the last write ended with, or, if that
//!   did not end here, read from the file.
//! - B2: behind a write its last block is zeros. The log is written from front to back, so nothing is there yet; what a
//!   recycled segment holds there is not the log's.
//! - B3: a block that is written again holds the same bytes before the new ones. So a power cut that keeps some of its
//!   sectors and not the others changes no byte that was durable.
//!
//! Origin: PostgreSQL's `wal_sync_method`, whose `open_datasync` is `dsync`; MariaDB's `O_DIRECT` redo log.

use std::io;

use clearway_machine::switch;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

switch! {
    /// The call that makes the log's bytes durable.
    pub enum LogSyncVariant = "log_sync", best Fdatasync, planned [] {
        /// Written into the kernel's cache, then one `fdatasync`.
        Fdatasync = "fdatasync",
        /// Each write is durable when it returns.
        Dsync = "dsync",
        /// As dsync, past the kernel's cache, in whole blocks.
        Direct = "direct",
    }
    why {
        Fdatasync: "The baseline. A write that needs not be durable costs no sync, and the next group is written during a sync."
            in "docs/mechanisms/log.md#the-call-that-syncs";
        Dsync: "One system call less for each flush."
            in "docs/mechanisms/log.md#the-call-that-syncs";
        Direct: "One system call less for each flush, and no copy of the log in the kernel's cache."
            in "docs/mechanisms/log.md#the-call-that-syncs";
    }
}

/// The unit of direct writes: a page of memory, and a multiple of every disk's sectors.
pub(super) const BLOCK: usize = 4096;

/// The most blocks of one write.
const BLOCKS_MAX: usize = 256;

#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(4096))]
struct Block([u8; BLOCK]);

const ZEROS: Block = Block([0; BLOCK]);

/// Writes bytes as whole blocks. The module says by which rules.
#[derive(Debug)]
pub(super) struct BlockWriter {
    /// The blocks of the last write.
    blocks: Vec<Block>,
    /// The position behind the last write, if it succeeded.
    end: Option<u64>,
}

impl BlockWriter {
    pub(super) fn new() -> BlockWriter {
        BlockWriter {
            blocks: Vec::new(),
            end: None,
        }
    }

    /// Writes `bytes` at `position`: `write(blocks, position)` for one piece after the other. `read(into, position)` reads
    /// what is there before them.
    pub(super) fn write(
        &mut self,
        mut position: u64,
        mut bytes: &[u8],
        read: impl Fn(&mut [u8], u64) -> io::Result<()>,
        write: impl Fn(&[u8], u64) -> io::Result<()>,
    ) -> io::Result<()> {
        while !bytes.is_empty() {
            let head = (position % BLOCK as u64) as usize;
            let start = position - head as u64;
            let (piece, rest) = bytes.split_at(bytes.len().min(BLOCKS_MAX * BLOCK - head));
            // B1, and B2: `first` is zeros from `head` on.
            let mut first = ZEROS;
            if head > 0 {
                match (self.end, self.blocks.last()) {
                    (Some(end), Some(last)) if end == position => first = *last,
                    _ => read(&mut first.0[..head], start)?,
                }
            }
            // A write that fails leaves nothing to go on from.
            self.end = None;
            self.blocks.clear();
            self.blocks.resize((head + piece.len()).div_ceil(BLOCK), ZEROS);
            self.blocks[0] = first;
            self.blocks.as_mut_slice().as_mut_bytes()[head..head + piece.len()].copy_from_slice(piece);
            write(self.blocks.as_slice().as_bytes(), start)?;
            position += piece.len() as u64;
            self.end = Some(position);
            bytes = rest;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// A file whose bytes are `0xEE` where nothing was written: a recycled segment.
    struct Recycled {
        bytes: RefCell<Vec<u8>>,
        reads: RefCell<usize>,
        writes: RefCell<usize>,
    }

    impl Recycled {
        fn new(length: usize) -> Recycled {
            Recycled {
                bytes: RefCell::new(vec![0xEE; length]),
                reads: RefCell::new(0),
                writes: RefCell::new(0),
            }
        }

        fn write(&self, writer: &mut BlockWriter, position: usize, bytes: &[u8]) {
            let read = |into: &mut [u8], at: u64| {
                *self.reads.borrow_mut() += 1;
                into.copy_from_slice(&self.bytes.borrow()[at as usize..at as usize + into.len()]);
                Ok(())
            };
            let write = |blocks: &[u8], at: u64| {
                *self.writes.borrow_mut() += 1;
                assert_eq!((blocks.as_ptr() as usize % BLOCK, at as usize % BLOCK), (0, 0));
                assert_eq!(blocks.len() % BLOCK, 0);
                self.bytes.borrow_mut()[at as usize..at as usize + blocks.len()].copy_from_slice(blocks);
                Ok(())
            };
            writer.write(position as u64, bytes, read, write).unwrap();
        }
    }

    /// Log of all lengths, from front to back: each byte is there, zeros are behind it, and the file is never read.
    #[test]
    fn a_log_is_written_from_front_to_back() {
        let lengths = [1, 72, 4_023, 1, 4_095, 4_096, 8_192, 5, 12_300, 3 << 20, 17];
        let length: usize = lengths.iter().sum();
        let file = Recycled::new(length.next_multiple_of(BLOCK));
        let (mut writer, mut expected) = (BlockWriter::new(), Vec::new());
        for (number, length) in lengths.into_iter().enumerate() {
            let bytes: Vec<u8> = (0..length).map(|at| (at * 7 + number) as u8).collect();
            file.write(&mut writer, expected.len(), &bytes);
            expected.extend(&bytes);
            let bytes = file.bytes.borrow();
            assert!(bytes.starts_with(&expected), "after {number}");
            let block_end = expected.len().next_multiple_of(BLOCK);
            assert!(bytes[expected.len()..block_end].iter().all(|&byte| byte == 0));
            assert!(bytes[block_end..].iter().all(|&byte| byte == 0xEE));
        }
        assert_eq!(*file.reads.borrow(), 0);
        // 3 MiB go in pieces.
        assert!(*file.writes.borrow() > lengths.len());
    }

    /// A writer that begins in the middle of a block, or goes back, keeps what is before.
    #[test]
    fn what_is_before_a_write_stays() {
        let file = Recycled::new(4 * BLOCK);
        let mut writer = BlockWriter::new();
        file.write(&mut writer, 10, b"found");
        assert_eq!(
            &file.bytes.borrow()[..16],
            b"\xEE\xEE\xEE\xEE\xEE\xEE\xEE\xEE\xEE\xEEfound\0"
        );
        file.write(&mut writer, 15, &[7; BLOCK]);
        file.write(&mut writer, 12, b"again");
        assert_eq!(&file.bytes.borrow()[9..18], b"\xEEfoagain\0");
        file.write(&mut writer, 17, b"on");
        assert_eq!(&file.bytes.borrow()[10..20], b"foagainon\0");
        assert_eq!(*file.reads.borrow(), 2);
    }

    /// After a write that failed the file decides.
    #[test]
    fn a_write_that_fails_is_not_gone_on_from() {
        let file = Recycled::new(2 * BLOCK);
        let mut writer = BlockWriter::new();
        file.write(&mut writer, 0, b"kept");
        let fails = writer.write(
            4,
            b"lost",
            |_, _| unreachable!(),
            |_, _| Err(io::Error::other("no")),
        );
        assert!(fails.is_err());
        file.write(&mut writer, 4, b"on");
        assert_eq!(&file.bytes.borrow()[..8], b"kepton\0\0");
        file.write(&mut writer, 8, b"x");
        assert_eq!(*file.reads.borrow(), 2);
    }
}
