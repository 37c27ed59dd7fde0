//! The number of pages of each relation, and why a page of zeros is always an error.
//!
//! A page that a disk lost often reads as zeros, and a file that lost its end is short. Neither can be told
//! from a page that was never written, unless it is known how many pages the relation has. The size of the
//! file does not say: the file system allocates pages ahead of their use, and a crash keeps some of them. So
//! each checkpoint records the lengths, and recovery computes them again from there.
//!
//! # Steps
//! 1. `BufferPool::extend` adds a page: the page is in a frame, empty but not zero (it has a header), and
//!    dirty, *before* the relation's length counts it.
//! 2. A checkpoint moves the redo position, writes out the commit log, reads all lengths, writes every dirty
//!    page, syncs the files, and then logs the lengths (`Lengths` records) and their number (the `Checkpoint`
//!    record). Last it writes the control file.
//! 3. A start reads the lengths back from the log between the redo position and the end of the checkpoint
//!    that the control file names. A start without them is refused: with all lengths zero the database would
//!    look empty.
//! 4. Replay meets a page at or past the length: it adds pages, as step 1 does, up to that one, and reads
//!    none of them. The first record of such a page replaces all of it, because its LSN was 0.
//! 5. After replay the lengths are those of step 3, grown by step 4. What a file holds past its length is
//!    free: the next `extend` uses it, and nothing reads it before.
//!
//! # Invariants
//! - R1: every page below a length that a finished checkpoint has logged was written, with a checksum, and
//!   synced before the control file named that checkpoint. (It was dirty or written when the length was read,
//!   by step 1.)
//! - R2: a page that is read from a file was written before. So zeros, and the end of the file, are errors:
//!   `CorruptPage`.
//! - R3: a relation that replay meets is known to step 3, or the log says before that it was created
//!   (`CreateRel` follows the entry in the list of relations, and the lengths are read from that list). A
//!   relation that is neither was dropped between the redo position and step 2, and replay passes over it. So
//!   is one that step 3 knows and whose file is gone; should the catalog still name it, each use of it is the
//!   error `MissingFile`.
//!
//! # Why the simpler versions are wrong
//! - *The length is the size of the file*: a lost block is a new page, and a lost end is a smaller table.
//! - *The length counts a page before the page is in a frame*: a checkpoint between the two logs a length
//!   that includes a page that it does not write, and a crash leaves zeros below the length.
//! - *Each extension is logged*: one more record for each page, and the first change of a page already is one.
//!
//! The commit log's pages (relation 0) are not in the pool. `StatusPages` writes a page, and every page
//! before it, before the length counts it.
//!
//! A page that was added and never changed (its transaction failed in between) is of the kind `NEW`. A heap
//! uses it for rows when vacuum has found it; a tree leaves it alone. Costs: 8 bytes of log for each relation
//! at each checkpoint.

use std::collections::BTreeMap;

use crate::page::{RelId, get_u32};

/// Bytes in an entry: relation and length.
const ENTRY: usize = 8;
/// The most entries in a record, so that no record is large.
const ENTRIES_MAX: usize = 4_096;

/// The number of pages of each relation that exists.
pub(crate) type Lengths = BTreeMap<RelId, u32>;

/// The payloads of the records that hold `lengths`.
pub(crate) fn encode(lengths: &Lengths) -> Vec<Vec<u8>> {
    let entries: Vec<_> = lengths.iter().collect();
    let payload = |chunk: &[(&RelId, &u32)]| {
        let words = chunk.iter().flat_map(|(rel, blocks)| [rel.0, **blocks]);
        words.flat_map(u32::to_le_bytes).collect()
    };
    entries.chunks(ENTRIES_MAX).map(payload).collect()
}

/// Adds the lengths in the payload of one record; `None` if it is malformed.
pub(crate) fn decode(payload: &[u8], lengths: &mut Lengths) -> Option<()> {
    let entries = payload.chunks_exact(ENTRY);
    if !entries.remainder().is_empty() {
        return None;
    }
    lengths.extend(entries.map(|entry| (RelId(get_u32(entry, 0)), get_u32(entry, 4))));
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_survive_encoding() {
        for count in [0, 1, ENTRIES_MAX as u32, ENTRIES_MAX as u32 + 1, 20_000] {
            let lengths: Lengths = (0..count).map(|rel| (RelId(rel), rel.wrapping_mul(77))).collect();
            let payloads = encode(&lengths);
            assert_eq!(payloads.len(), (count as usize).div_ceil(ENTRIES_MAX));
            let mut decoded = Lengths::new();
            for payload in &payloads {
                decode(payload, &mut decoded).unwrap();
            }
            assert_eq!(decoded, lengths);
        }
        assert_eq!(decode(&[0; 12], &mut Lengths::new()), None);
    }
}
