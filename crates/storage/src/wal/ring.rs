//! The ring buffer that holds log bytes from their insertion until they have been written to the device.
//!
//! The ring knows positions of the log and no order: [`insert`](super::insert) says when bytes may be copied
//! in (R1), and [`flush`](super::flush) when they may be overwritten (R3).

use clearway_machine::{DataCell, Machine, Work};

use super::link::LogLink;
use super::record;

/// Bytes of a word of the ring. Records are aligned to words.
pub(super) const WORD: usize = 8;

/// Log bytes by words of 8.
pub(super) struct Ring<M: Machine> {
    words: Box<[M::Data<[u8; WORD]>]>,
}

/// Records that have got their links.
pub(super) struct LinkedRecords {
    /// The end of the last of them, which may be behind what was asked for.
    pub(super) end: u64,
    /// The link of the record that begins there.
    pub(super) next: LogLink,
    /// Their number.
    pub(super) count: u64,
}

// SAFETY: a word is written by the one worker that reserved its position (R1), and read by the one worker
// that writes the log out, after the insertion protocol has shown the word complete; that protocol orders the
// two.
unsafe impl<M: Machine> Sync for Ring<M> {}
// SAFETY: nothing in the ring belongs to a thread.
unsafe impl<M: Machine> Send for Ring<M> {}

impl<M: Machine> Ring<M> {
    /// True where the ring can be addressed as one piece: natively a cell is its content and nothing else.
    const CONTIGUOUS: bool = !M::EXPLORED && size_of::<M::Data<[u8; WORD]>>() == WORD;

    /// A ring of `bytes`, a power of two.
    pub(super) fn new(bytes: usize) -> Self {
        assert!(
            bytes.is_power_of_two(),
            "positions are mapped to the ring by a mask"
        );
        let word = |_| M::Data::new([0; WORD]);
        Self {
            words: (0..bytes / WORD).map(word).collect(),
        }
    }

    /// Bytes of the ring.
    pub(super) fn size(&self) -> usize {
        self.words.len() * WORD
    }

    /// The address of the ring's byte `offset`.
    fn byte(&self, offset: usize) -> *mut u8 {
        debug_assert!(Self::CONTIGUOUS && offset < self.size());
        // SAFETY: the offset lies in the ring, whose cells are one behind the other and allow writes through `&self`.
        unsafe { self.words.as_ptr().cast::<u8>().cast_mut().add(offset) }
    }

    /// Copies `bytes` to `position`, a multiple of 8, and zeros up to the next one.
    ///
    /// # Safety
    /// The caller alone owns the log's bytes from `position` to the end of the copy, rounded up to 8: it has
    /// reserved them and has not published them (R1), and the bytes one ring size before them have been
    /// written out (R3).
    pub(super) unsafe fn copy_in(&self, position: u64, bytes: &[u8]) {
        // Costs that a simulation does not see for itself: one store for each word, and one line of the ring
        // fetched for every eight words.
        M::charge(Work::Nanos(bytes.len() as u64 / 2));
        if Self::CONTIGUOUS {
            let start = position as usize & (self.size() - 1);
            let (front, back) = bytes.split_at(bytes.len().min(self.size() - start));
            let end = (start + bytes.len()) & (self.size() - 1);
            // SAFETY: the caller owns these bytes, and both parts and the zeros lie in the ring.
            unsafe {
                self.byte(start)
                    .copy_from_nonoverlapping(front.as_ptr(), front.len());
                self.byte(0).copy_from_nonoverlapping(back.as_ptr(), back.len());
                if !end.is_multiple_of(WORD) {
                    self.byte(end).write_bytes(0, WORD - end % WORD);
                }
            }
            return;
        }
        let mask = self.words.len() - 1;
        let start = position as usize / WORD;
        for (index, part) in bytes.chunks(WORD).enumerate() {
            let mut word = [0; WORD];
            word[..part.len()].copy_from_slice(part);
            // SAFETY: the caller owns this word.
            self.words[(start + index) & mask].with_mut(|place| unsafe { *place = word });
        }
    }

    /// Enters the links of the records that begin from `start` on and before `end`, the first of which gets `link` (K2 of the
    /// links).
    ///
    /// # Safety
    /// A record begins at `start`. These records are whole and visible to the caller (R1), and no other worker reads or
    /// changes them until they are written out (R3).
    pub(super) unsafe fn enter_links(&self, start: u64, end: u64, mut link: LogLink) -> LinkedRecords {
        let mask = self.words.len() - 1;
        let mut at = start;
        let mut count = 0;
        while at < end {
            // Two words of a line that was fetched to be written out.
            M::charge(Work::Nanos(8));
            let word = (at as usize / WORD) & mask;
            // SAFETY: complete, and read and changed by the caller alone, as it says.
            let head = self.words[word].with(|word| unsafe { *word });
            let [l0, l1, l2, l3, c0, c1, c2, c3] = head;
            let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
            assert!(
                length >= record::HEADER,
                "a record of {length} bytes at {at} in the ring"
            );
            let place = &self.words[(word + record::LINK / WORD) & mask];
            // SAFETY: as above.
            let mut linked = place.with(|word| unsafe { *word });
            linked[record::LINK % WORD..][..4].copy_from_slice(&link.0.to_le_bytes());
            // SAFETY: as above.
            place.with_mut(|word| unsafe { *word = linked });
            link = link.after(u32::from_le_bytes([c0, c1, c2, c3]));
            at += length.next_multiple_of(WORD) as u64;
            count += 1;
        }
        LinkedRecords {
            end: at,
            next: link,
            count,
        }
    }

    /// Hands the bytes from `start` to `end` to `write`, with their positions, in one or two pieces.
    ///
    /// # Safety
    /// These bytes are complete and visible to the caller (R1), and stay until it returns (R3).
    pub(super) unsafe fn read(
        &self,
        start: u64,
        end: u64,
        mut write: impl FnMut(u64, &[u8]) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        let size = self.size() as u64;
        let mut at = start;
        while at < end {
            let offset = (at % size) as usize;
            let take = (end - at).min(size - offset as u64) as usize;
            if Self::CONTIGUOUS {
                // SAFETY: complete and unchanged, as the caller says; both ends lie in the ring.
                write(at, unsafe { std::slice::from_raw_parts(self.byte(offset), take) })?;
            } else {
                let mut bytes = Vec::with_capacity(take);
                for place in &self.words[offset / WORD..(offset + take) / WORD] {
                    // SAFETY: complete and unchanged, as the caller says.
                    bytes.extend_from_slice(&place.with(|word| unsafe { *word }));
                }
                write(at, &bytes)?;
            }
            at += take as u64;
        }
        Ok(())
    }
}
