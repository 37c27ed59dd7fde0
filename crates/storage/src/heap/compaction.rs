//! Moving a page's tuples together.
//!
//! Removed tuples leave holes. Compaction moves what stays to the page's end, in the order that it has there, so
//! that all free space is in one piece. Neighbours move together: after one removed version there is one move, of all
//! tuples before it, and one entry in the log, whatever their number.
//!
//! # Steps
//! 1. The line pointers get their new states; those at the end that are Unused go.
//! 2. A tuple begins at a multiple of 8. A map of the page has a bit for each place where one begins, and the line
//!    pointer that leads there, so the tuples need not be sorted.
//! 3. The map is read from the page's end. Each tuple is given the place below the one before. As long as a tuple ends
//!    where the one before begins, both move by the same distance, and are one run.
//! 4. Runs move in this order, each into space that is free or its own. Recovery repeats the moves in the same order.
//! 5. Of the line pointers those from the first to the last that differ are written. The page's flags are those of the
//!    line pointers alone: what `replace` has noted is gone, because what it named may be.
//!
//! Cost: pruning is the dearest part of an update on a page that is full, and most full pages lose one version at a
//! time. Sorting and moving tuple by tuple took 18,000 instructions with 60 tuples (`docs/performance.md`).

use std::mem::MaybeUninit;

use clearway_machine::Native;

use crate::buffer::PageExclusive;
use crate::change::byte_buffers::ByteBuffer;
use crate::change::{AtomicChange, ChangeLog};
use crate::heap::layout::{HAS_UNUSED, LINE_POINTER, Line, PAGE_FLAGS, line_offset, line_words};
use crate::page::{self, LOWER, PAGE_SIZE};

/// A line pointer as it is on the page.
type Word = [u8; LINE_POINTER];

/// The alignment of tuples and of their lengths.
const ALIGNMENT: usize = 8;
/// Places where a tuple can begin.
const PLACES: usize = PAGE_SIZE / ALIGNMENT;

/// Gives line pointers new states, and moves the tuples that stay together at the page's end.
pub(crate) fn compact<L: ChangeLog>(
    change: &mut AtomicChange<'_, Native, L>,
    page: &mut PageExclusive<'_>,
    replaced: impl IntoIterator<Item = (u16, Line)>,
) {
    let mut bytes = ByteBuffer::take();
    bytes.extend_from_slice(line_words(page.hinted().front()).as_flattened());
    let words = bytes.as_chunks_mut().0;
    for (slot, line) in replaced {
        words[usize::from(slot) - 1] = line.encode();
    }
    let is_unused = |word: &Word| Line::decode(*word) == Line::Unused;
    let count = words
        .iter()
        .rposition(|word| !is_unused(word))
        .map_or(0, |last| last + 1);
    let words = &mut words[..count];
    let upper = move_together(change, page, words);
    write_words(change, page, words);
    let lower = line_offset(1) + words.len() * LINE_POINTER;
    change.write(page, LOWER, &(lower as u32 | (upper as u32) << 16).to_le_bytes());
    let flags = if words.iter().any(is_unused) {
        HAS_UNUSED
    } else {
        0
    };
    if flags != page::flags(page.header()) {
        change.write_u16(page, PAGE_FLAGS, flags);
    }
}

/// The places where tuples begin, and the line pointers that lead to them (step 2).
struct Places {
    taken: [u64; PLACES / 64],
    /// Written where a place is taken. Not zeroed before: that took as long as half of the moves.
    indexes: [MaybeUninit<u16>; PLACES],
}

impl Places {
    fn of(words: &[Word]) -> Self {
        let mut places = Places {
            taken: [0; PLACES / 64],
            indexes: [MaybeUninit::uninit(); PLACES],
        };
        for (index, word) in words.iter().enumerate() {
            if let Line::Normal { offset, .. } = Line::decode(*word) {
                // On a sound page an offset is below the page's end.
                let place = offset / ALIGNMENT % PLACES;
                places.indexes[place].write(index as u16);
                places.taken[place / 64] |= 1 << (place % 64);
            }
        }
        places
    }

    /// The indexes of line pointers in the order of their tuples, from the page's end.
    fn last_first(&self) -> impl Iterator<Item = usize> {
        (0..PLACES / 64).rev().flat_map(move |group| {
            let mut rest = self.taken[group];
            std::iter::from_fn(move || {
                let bit = rest.checked_ilog2()? as usize;
                rest ^= 1 << bit;
                // SAFETY: `of` has written the index of each place whose bit it has set.
                Some(usize::from(unsafe {
                    self.indexes[group * 64 + bit].assume_init()
                }))
            })
        })
    }
}

/// Tuples that are side by side (step 3).
struct Run {
    /// The place of its first byte.
    source: usize,
    /// The place to which that byte moves.
    target: usize,
    length: usize,
}

impl Run {
    fn make<L: ChangeLog>(self, change: &mut AtomicChange<'_, Native, L>, page: &mut PageExclusive<'_>) {
        if self.source != self.target {
            change.move_bytes(page, self.source, self.target, self.length);
        }
    }
}

/// Steps 3 and 4. Returns where the tuples begin.
fn move_together<L: ChangeLog>(
    change: &mut AtomicChange<'_, Native, L>,
    page: &mut PageExclusive<'_>,
    words: &mut [Word],
) -> usize {
    let mut run = Run {
        source: PAGE_SIZE,
        target: PAGE_SIZE,
        length: 0,
    };
    for index in Places::of(words).last_first() {
        let Line::Normal { offset, length } = Line::decode(words[index]) else {
            continue;
        };
        let size = length.next_multiple_of(ALIGNMENT);
        let target = run.target - size;
        if offset + size == run.source {
            run.source = offset;
            run.target = target;
            run.length += size;
        } else {
            let next = Run {
                source: offset,
                target,
                length: size,
            };
            std::mem::replace(&mut run, next).make(change, page);
        }
        let moved = Line::Normal {
            offset: target,
            length,
        };
        words[index] = moved.encode();
    }
    let upper = run.target;
    run.make(change, page);
    upper
}

/// Step 5.
fn write_words<L: ChangeLog>(
    change: &mut AtomicChange<'_, Native, L>,
    page: &mut PageExclusive<'_>,
    words: &[Word],
) {
    let mut differing = line_words(page.hinted().front())
        .iter()
        .zip(words)
        .enumerate()
        .filter(|(_, (old, new))| old != new)
        .map(|(index, _)| index);
    let Some(first) = differing.next() else {
        return;
    };
    let last = differing.next_back().unwrap_or(first);
    let differing = words[first..=last].as_flattened();
    change.write(page, line_offset(first as u16 + 1), differing);
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use clearway_txn::Xid;
    use proptest::prelude::*;
    use proptest::test_runner::TestRunner;

    use super::*;
    use crate::change;
    use crate::heap::insert::{fits, place};
    use crate::heap::layout::{lines, slot_count};
    use crate::page::{Lsn, PageId, PageKind, RelId};
    use crate::storage::{Storage, StorageOptions};
    use crate::wal::RedoMoved;
    use crate::wal::record::RecordKind;

    /// Keeps the newest record. No page needs an image.
    #[derive(Default)]
    struct Kept(RefCell<Vec<u8>>);

    impl ChangeLog for Kept {
        fn reserved(&self) -> Lsn {
            Lsn(1)
        }

        fn redo(&self) -> Lsn {
            Lsn(0)
        }

        fn insert(&self, _: RecordKind, _: Xid, payload: &[u8], _: Lsn) -> Result<Lsn, RedoMoved> {
            self.0.replace(payload.to_vec());
            Ok(Lsn(1))
        }
    }

    /// The line pointers of a page, each with the bytes that it leads to.
    fn led_to(bytes: &[u8]) -> Vec<(Line, Vec<u8>)> {
        let content = |line| match line {
            // Tuples move; their bytes stay.
            Line::Normal { offset, length } => (
                Line::Normal { offset: 0, length },
                bytes[offset..offset + length].to_vec(),
            ),
            other => (other, Vec::new()),
        };
        lines(bytes).map(|(_, line)| content(line)).collect()
    }

    /// Tuples of these lengths, as many as fit, each with bytes of its own; then a compaction for each list of what
    /// becomes of some line pointers.
    fn compacts(storage: &Storage, rel: RelId, lengths: &[usize], rounds: &[Vec<(usize, u8)>]) {
        let block = storage.extend(rel).unwrap().page_id().block;
        let mut page = storage.pin(PageId { rel, block }).unwrap().into_exclusive();
        let log = Kept::default();
        let mut change = AtomicChange::new(&log, Xid::INVALID);
        change.init_page(&mut page, PageKind::HEAP, 0);
        change.finish().unwrap();
        let mut fill = lengths.iter().cycle().zip(1..=255_u8);
        for replaced in rounds {
            let mut change = AtomicChange::new(&log, Xid::INVALID);
            for (&length, byte) in fill.by_ref() {
                if !fits(page.header(), length) {
                    break;
                }
                place(&mut change, &mut page, &vec![byte; length]);
            }
            change.finish().unwrap();
            let count = usize::from(slot_count(page.header()));
            let replaced = replaced.iter().filter(|_| count > 0).map(|&(index, kind)| {
                let line = [Line::Unused, Line::Dead, Line::Redirect(1)][usize::from(kind)];
                ((index % count) as u16 + 1, line)
            });
            let replaced: Vec<(u16, Line)> = replaced.collect();
            let before = page.copy();
            let mut wanted = led_to(&before[..]);
            for &(slot, line) in &replaced {
                wanted[usize::from(slot) - 1] = (line, Vec::new());
            }
            while wanted.last().is_some_and(|(line, _)| *line == Line::Unused) {
                wanted.pop();
            }

            let mut change = AtomicChange::new(&log, Xid::INVALID);
            compact(&mut change, &mut page, replaced.iter().copied());
            change.finish().unwrap();

            let after = page.copy();
            assert_eq!(led_to(&after[..]), wanted);
            let sizes = wanted
                .iter()
                .map(|(_, bytes)| bytes.len().next_multiple_of(ALIGNMENT));
            assert_eq!(page::upper(&after[..]), PAGE_SIZE - sizes.sum::<usize>());
            let has_unused = wanted.iter().any(|(line, _)| *line == Line::Unused);
            assert_eq!(page::flags(&after[..]) & HAS_UNUSED != 0, has_unused);
            // Replay of the record makes the same page of the one before.
            let mut replayed = before;
            let record = log.0.take();
            let (_, part) = change::next_part(&mut &record[..]).unwrap();
            part.apply(&mut replayed[..]);
            page::set_lsn(&mut replayed[..], Lsn(1));
            assert!(replayed == after, "replay makes another page");
            // At most one move for each hole.
            let most = 60 + page::lower(&after[..]) + 7 * replaced.len();
            assert!(record.len() <= most, "{} bytes, {replaced:?}", record.len());
        }
    }

    /// The tuples that stay keep their bytes and line pointers, all free space is in one piece, and replay of the record
    /// does the same.
    #[test]
    fn what_stays_is_moved_whole() {
        let dir = tempfile::tempdir().unwrap();
        let options = StorageOptions {
            fsync: false,
            buffer_bytes: 1 << 20,
            ..StorageOptions::default()
        };
        let storage = Storage::open(dir.path(), options).unwrap().0;
        let rel = storage.create_rel().unwrap();
        let lengths = prop::collection::vec(32_usize..700, 1..20);
        let replaced = prop::collection::vec((any::<usize>(), 0_u8..3), 0..12);
        let rounds = prop::collection::vec(replaced, 1..5);
        let config = ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::with_cases(128)
        };
        TestRunner::new(config)
            .run(&(lengths, rounds), |(lengths, rounds)| {
                compacts(&storage, rel, &lengths, &rounds);
                Ok(())
            })
            .unwrap();
        storage.stop_threads();
    }
}
