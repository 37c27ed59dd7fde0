//! Sorting records by the bytes of their keys, within a bound of memory.
//!
//! # Example
//!
//! A bound of three records, and nine that come in:
//!
//! ```text
//!   in: 5 9 1 │ 7 3 8 │ 2 6 4
//!       ▼       ▼       ▼ (the last stay in memory until the end, then they are a run too)
//!   runs in the file: [1 5 9] [3 7 8] [2 4 6]
//!       ▼ merge
//!   out: 1 2 3 4 5 6 7 8 9
//! ```
//!
//! # Steps
//!
//! 1. A record goes into one long buffer; an entry remembers where it lies, and the beginning of its key, which decides
//!    most comparisons without a look into the buffer. What counts against the bound is the capacity of both, so nothing is
//!    estimated.
//! 2. When the next record would not fit, the entries are sorted and written to a temporary file as a *run*.
//! 3. [`Sorter::finish`] sorts what is in memory. Without runs, that is the result.
//! 4. With runs, the rest becomes a run too and the buffer is freed. A merge needs a block for each run, so at most
//!    `bytes_max / BLOCK_BYTES` runs merge at a time (two at least): while there are more, the oldest merge into one.
//!
//! # Rules
//!
//! - S1: records with equal keys come out in the order in which they went in: within a run, ties are broken by the
//!   place in the buffer; between runs, by the age of the run, and runs that are merged into one are neighbours. So
//!   the result does not depend on the bound.
//! - S2: when only the first `keep` records are wanted, what is behind them is dropped whenever it is as much again.
//! - S3: a record that is larger than the bound is taken all the same, alone: a row has to be in memory anyway.
//! - S4: memory that cannot be had is like a bound that is reached: what is there becomes a run.
//!
//! No library is used: the crates that sort externally bound the number of records rather than bytes, or sort values
//! that own memory which is not counted; and none lets the caller stop between two steps of a merge, which cancelling
//! needs.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;

use crate::interrupt::Interrupts;
use crate::memory;
use crate::spill::SpillOptions;
use crate::spill::temporary::{BLOCK_BYTES, Reader, Record, Temporary};
use clearway_sql::error::{EngineError, Result, SqlState};

/// A record may have this many bytes: 1 GiB, as everything that is one value or one row.
const RECORD_BYTES_MAX: usize = 1 << 30;

/// Records between two looks at the interrupts.
const RECORDS_PER_CHECK: usize = 1_024;

/// The place of a record in the buffer: its key, then its payload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    /// The first bytes of the key as a number, zeros behind a shorter one: in the order of the keys, and equal for some that
    /// differ.
    beginning: u64,
    start: usize,
    key_length: u32,
    length: u32,
}

impl Entry {
    fn key<'b>(&self, buffer: &'b [u8]) -> &'b [u8] {
        &buffer[self.start..self.start + self.key_length as usize]
    }

    fn payload<'b>(&self, buffer: &'b [u8]) -> &'b [u8] {
        &buffer[self.start + self.key_length as usize..self.start + self.length as usize]
    }
}

/// See [`Entry::beginning`].
#[inline]
fn beginning_of(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    let mut padded = [0; 8];
    padded[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(padded)
}

/// Takes records in.
#[derive(Debug)]
pub(crate) struct Sorter {
    options: SpillOptions,
    buffer: Vec<u8>,
    entries: Vec<Entry>,
    /// The most records that are wanted.
    keep: usize,
    file: Option<Temporary>,
    /// Sorted ranges of the file, oldest first.
    runs: VecDeque<Range<u64>>,
}

impl Sorter {
    /// An empty sorter.
    pub(crate) fn new(options: &SpillOptions) -> Sorter {
        Sorter {
            options: options.clone(),
            buffer: Vec::new(),
            entries: Vec::new(),
            keep: usize::MAX,
            file: None,
            runs: VecDeque::new(),
        }
    }

    /// One that need give no more than the first `keep` records.
    pub(crate) fn keeping(options: &SpillOptions, keep: u64) -> Sorter {
        Sorter {
            keep: usize::try_from(keep).unwrap_or(usize::MAX),
            ..Sorter::new(options)
        }
    }

    /// The bound.
    pub(crate) fn bytes_max(&self) -> usize {
        self.options.bytes_max
    }

    /// Takes a record in.
    pub(crate) fn push(&mut self, key: &[u8], payload: &[u8], interrupts: &Interrupts) -> Result<()> {
        let length = key.len() + payload.len();
        if length > RECORD_BYTES_MAX {
            return Err(EngineError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!("a row of {length} bytes cannot be sorted: at most {RECORD_BYTES_MAX} are possible"),
            ));
        }
        if self.entries.len() >= self.keep.saturating_mul(2).max(RECORDS_PER_CHECK) {
            self.drop_surplus();
        }
        if !self.has_room(length)? {
            self.write_run(interrupts)?;
        }
        self.entries.push(Entry {
            beginning: beginning_of(key),
            start: self.buffer.len(),
            key_length: key.len() as u32,
            length: length as u32,
        });
        self.buffer.extend_from_slice(key);
        self.buffer.extend_from_slice(payload);
        Ok(())
    }

    /// Makes room for a record of `length` bytes within the bound, if that is possible. An error if there is no memory
    /// for it alone.
    fn has_room(&mut self, length: usize) -> Result<bool> {
        let entry = size_of::<Entry>();
        let wanted = self.buffer.len() + length;
        let entries = self.entries.len() + 1;
        if wanted <= self.buffer.capacity() && entries <= self.entries.capacity() {
            return Ok(true);
        }
        let needed = wanted.max(self.buffer.capacity()) + entries.max(self.entries.capacity()) * entry;
        let Some(left) = self.options.bytes_max.checked_sub(needed) else {
            // S3.
            if self.entries.is_empty() {
                memory::require(length)?;
            }
            return Ok(self.entries.is_empty());
        };
        // Capacities double, as far as the bound and the memory allow.
        if wanted > self.buffer.capacity() {
            let more = self.buffer.capacity().min(left / 2);
            if !self.may_allocate(wanted + more)? {
                return Ok(false);
            }
            self.buffer.reserve_exact(length + more);
        }
        if entries > self.entries.capacity() {
            let more = self.entries.capacity().min(left / 2 / entry);
            if !self.may_allocate((entries + more) * entry)? {
                return Ok(false);
            }
            self.entries.reserve_exact(1 + more);
        }
        Ok(true)
    }

    /// S4: true if there is memory for so many bytes; an error if there is not and no record could become a run.
    fn may_allocate(&self, bytes: usize) -> Result<bool> {
        match memory::require(bytes) {
            Err(error) if self.entries.is_empty() => Err(error),
            asked => Ok(asked.is_ok()),
        }
    }

    fn sort(&mut self) {
        let buffer = &self.buffer;
        // S1: the place in the buffer makes every two entries different.
        self.entries.sort_unstable_by(|a, b| {
            let beginnings = a.beginning.cmp(&b.beginning);
            beginnings.then_with(|| a.key(buffer).cmp(b.key(buffer)).then(a.start.cmp(&b.start)))
        });
    }

    /// S2.
    fn drop_surplus(&mut self) {
        self.sort();
        self.entries.truncate(self.keep);
        // In the order of the buffer, so that each record moves towards its front.
        self.entries.sort_unstable_by_key(|entry| entry.start);
        let mut end = 0;
        for entry in &mut self.entries {
            let length = entry.length as usize;
            self.buffer.copy_within(entry.start..entry.start + length, end);
            entry.start = end;
            end += length;
        }
        self.buffer.truncate(end);
    }

    /// Writes what is in memory as a run.
    fn write_run(&mut self, interrupts: &Interrupts) -> Result<()> {
        self.sort();
        self.entries.truncate(self.keep);
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(Temporary::create(&self.options)?),
        };
        let start = file.end();
        for (number, entry) in self.entries.iter().enumerate() {
            if number.is_multiple_of(RECORDS_PER_CHECK) {
                interrupts.check()?;
            }
            file.write(entry.key(&self.buffer), entry.payload(&self.buffer))?;
        }
        file.flush()?;
        self.runs.push_back(start..file.end());
        // Given back, since the next records may be of another size and divide the bound differently.
        self.entries = Vec::new();
        self.buffer = Vec::new();
        Ok(())
    }

    /// True if nothing has been written to a file.
    #[cfg(test)]
    pub(crate) fn is_in_memory(&self) -> bool {
        self.file.is_none()
    }

    /// No more records come: their sorted sequence.
    pub(crate) fn finish(mut self, interrupts: &Interrupts) -> Result<Sorted> {
        if self.file.is_none() {
            interrupts.check()?;
            self.sort();
            self.entries.truncate(self.keep);
            return Ok(Sorted::Memory {
                buffer: self.buffer,
                entries: self.entries.into_iter(),
            });
        }
        if !self.entries.is_empty() {
            self.write_run(interrupts)?;
        }
        let mut file = self.file.take().ok_or_else(no_file)?;
        let at_once = (self.options.bytes_max / BLOCK_BYTES).max(2);
        while self.runs.len() > at_once {
            // As few as bring the number down to what the last merge takes: neighbours, the smallest first.
            let count = (self.runs.len() - at_once + 1).min(at_once);
            merge_in_place(&mut file, &mut self.runs, count, self.keep, interrupts)?;
        }
        file.finish()?;
        let merge = Merge::new(&file, self.runs.into_iter())?;
        Ok(Sorted::Merging {
            file,
            merge,
            left: self.keep,
        })
    }
}

/// Merges `count` neighbouring runs, those with the fewest bytes, into one in their place.
fn merge_in_place(
    file: &mut Temporary,
    runs: &mut VecDeque<Range<u64>>,
    count: usize,
    keep: usize,
    interrupts: &Interrupts,
) -> Result<()> {
    let bytes = |first: usize| -> u64 {
        runs.range(first..first + count)
            .map(|run| run.end - run.start)
            .sum()
    };
    let first = (0..=runs.len() - count)
        .min_by_key(|first| bytes(*first))
        .unwrap_or(0);
    let mut merge = Merge::new(file, runs.range(first..first + count).cloned())?;
    let start = file.end();
    let mut written = 0;
    while written < keep
        && let Some(record) = merge.next(file)?
    {
        if written.is_multiple_of(RECORDS_PER_CHECK) {
            interrupts.check()?;
        }
        file.write(&record.key, &record.payload)?;
        written += 1;
    }
    file.flush()?;
    let merged = start..file.end();
    runs.drain(first..first + count);
    runs.insert(first, merged);
    Ok(())
}

#[cold]
fn no_file() -> EngineError {
    EngineError::internal("an external sort has no file")
}

/// The runs of a merge, each with its first record that has not come out.
#[derive(Debug)]
pub(crate) struct Merge {
    readers: Vec<Reader>,
    /// By key, then by the run's age (S1).
    heads: BinaryHeap<Reverse<Head>>,
    /// The record that came out last, and the run it came from.
    last: Option<Head>,
}

#[derive(Debug)]
struct Head {
    record: Record,
    run: usize,
}

impl Ord for Head {
    fn cmp(&self, other: &Head) -> std::cmp::Ordering {
        self.record
            .key
            .cmp(&other.record.key)
            .then(self.run.cmp(&other.run))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}

impl Merge {
    fn new(file: &Temporary, runs: impl Iterator<Item = Range<u64>>) -> Result<Merge> {
        let mut merge = Merge {
            readers: runs.map(Reader::new).collect(),
            heads: BinaryHeap::new(),
            last: None,
        };
        for (run, reader) in merge.readers.iter_mut().enumerate() {
            let mut record = Record::default();
            if reader.next(file, &mut record)? {
                merge.heads.push(Reverse(Head { record, run }));
            }
        }
        Ok(merge)
    }

    fn next(&mut self, file: &Temporary) -> Result<Option<&Record>> {
        // The buffers of the record given last take the next one of its run.
        if let Some(mut head) = self.last.take()
            && self.readers[head.run].next(file, &mut head.record)?
        {
            self.heads.push(Reverse(head));
        }
        self.last = self.heads.pop().map(|Reverse(head)| head);
        Ok(self.last.as_ref().map(|head| &head.record))
    }
}

/// Records in the order of their keys.
#[derive(Debug)]
pub(crate) enum Sorted {
    /// All fitted into memory.
    Memory {
        buffer: Vec<u8>,
        entries: std::vec::IntoIter<Entry>,
    },
    /// Runs of a file.
    Merging {
        file: Temporary,
        merge: Merge,
        left: usize,
    },
}

impl Sorted {
    /// The next record: its key and its payload.
    pub(crate) fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        match self {
            Sorted::Memory { buffer, entries } => Ok(entries
                .next()
                .map(|entry| (entry.key(buffer), entry.payload(buffer)))),
            Sorted::Merging { left: 0, .. } => Ok(None),
            Sorted::Merging { file, merge, left } => {
                *left -= 1;
                let next = merge.next(file)?;
                Ok(next.map(|record| (&record.key[..], &record.payload[..])))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::{ActivitySlot, SessionInfo};
    use proptest::prelude::*;
    use std::sync::Arc;

    fn interrupts() -> Interrupts {
        Interrupts::new(
            Arc::new(ActivitySlot::new(1, 1, &SessionInfo::default())),
            Arc::default(),
        )
    }

    fn options(bytes_max: usize) -> (tempfile::TempDir, SpillOptions) {
        let directory = tempfile::tempdir().unwrap();
        let options = SpillOptions::new(directory.path().join("tmp").into(), bytes_max);
        (directory, options)
    }

    /// Sorts keys, each with its place in the input as payload.
    fn sorted(keys: &[Vec<u8>], bytes_max: usize, keep: u64) -> (bool, Vec<(Vec<u8>, u32)>) {
        let (_directory, options) = options(bytes_max);
        let interrupts = interrupts();
        let mut sorter = Sorter::keeping(&options, keep);
        for (place, key) in keys.iter().enumerate() {
            sorter
                .push(key, &(place as u32).to_be_bytes(), &interrupts)
                .unwrap();
        }
        let in_memory = sorter.is_in_memory();
        let mut sorted = sorter.finish(&interrupts).unwrap();
        let mut all = Vec::new();
        while let Some((key, payload)) = sorted.next().unwrap() {
            all.push((key.to_vec(), u32::from_be_bytes(payload.try_into().unwrap())));
        }
        (in_memory, all)
    }

    #[test]
    fn many_runs_merge_in_several_passes() {
        // Two runs at a time, some forty runs.
        let keys: Vec<Vec<u8>> = (0..4_000u32)
            .map(|number| (number.wrapping_mul(2_654_435_761) % 500).to_be_bytes().to_vec())
            .collect();
        let (in_memory, all) = sorted(&keys, 2_500, u64::MAX);
        assert!(!in_memory);
        let mut expected: Vec<(Vec<u8>, u32)> = keys.iter().cloned().zip(0..).collect();
        expected.sort();
        assert_eq!(all, expected);
    }

    #[test]
    fn a_record_larger_than_the_bound_is_sorted_too() {
        let keys = vec![vec![3; 10_000], vec![1; 10], vec![2; 10_000]];
        let (_, all) = sorted(&keys, 1_000, u64::MAX);
        assert_eq!(all.iter().map(|(key, _)| key[0]).collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[test]
    fn what_is_held_stays_within_the_bound() {
        let (_directory, options) = options(100_000);
        let interrupts = interrupts();
        let mut sorter = Sorter::new(&options);
        for number in 0..50_000u32 {
            sorter.push(&number.to_le_bytes(), &[0; 50], &interrupts).unwrap();
            let held = sorter.buffer.capacity() + sorter.entries.capacity() * size_of::<Entry>();
            assert!(held <= 100_000, "{held} bytes after {number} records");
        }
        assert!(!sorter.is_in_memory());
    }

    #[test]
    fn a_cancel_stops_a_run_being_written() {
        let (_directory, options) = options(10_000);
        let slot = Arc::new(ActivitySlot::new(1, 1, &SessionInfo::default()));
        let interrupts = Interrupts::new(Arc::clone(&slot), Arc::default());
        let mut sorter = Sorter::new(&options);
        slot.cancel.store(1, std::sync::atomic::Ordering::Relaxed);
        let error = (0..10_000u32)
            .find_map(|number| sorter.push(&number.to_be_bytes(), &[0; 50], &interrupts).err())
            .expect("a cancel");
        assert_eq!(error.sqlstate(), SqlState::QUERY_CANCELED);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_result_does_not_depend_on_the_bound(
            keys in prop::collection::vec(prop::collection::vec(0u8..4, 0..3), 0..400),
            bytes_max in 100usize..2_000,
            keep in prop_oneof![Just(u64::MAX), 1u64..100],
        ) {
            let (_, small) = sorted(&keys, bytes_max, keep);
            let (in_memory, large) = sorted(&keys, 1 << 20, keep);
            prop_assert!(in_memory);
            let mut expected: Vec<(Vec<u8>, u32)> = keys.iter().cloned().zip(0..).collect();
            expected.sort();
            expected.truncate(usize::try_from(keep).unwrap_or(usize::MAX));
            prop_assert_eq!(&small, &expected);
            prop_assert_eq!(&large, &expected);
        }
    }
}
