//! A file of numbered pages behind a few buffers, of which the one not used for the longest time gives way.
//!
//! # Rules
//! - P1: a page is in one buffer at most, and a buffer's page is as new as all that was done to it.
//! - P2: one worker of a bank reads or writes its pages of the file at a time, so a page that is read is the newest that was
//!   written. Meanwhile others use the bank's buffers.
//! - P3: a page leaves its buffer only if nothing was done to it since it was written.
//!
//! Page `p` of `B` banks is in bank `p % B`. With one bank this is the cache before PostgreSQL 17: one latch for all. A latch
//! is taken exclusively also to read, as theirs is for multixacts.
//!
//! Pages come and go as those of the commit log do (`clearway_txn`, `commit_log/bank.rs`), in a cache that is as theirs is.
//!
//! Left out: a latch for the transfer of each buffer (a bank has one for all), segments of the file, its syncs.

use clearway_latch::{LatchClass, Latched, LwLockOptions};
use clearway_machine::{Machine, Padded, Work};

use super::MEMBER_NS;

/// The file behind the buffers.
pub(in crate::simulate) trait PageFile {
    /// Reads a page, which was written before.
    fn read(&self, page: u64, words: &mut [u64]);
    /// Writes a page.
    fn write(&self, page: u64, words: &[u64]);
}

/// Classes of a cache's latches, that of the transfers first: it is taken before the bank's.
#[derive(Debug, Clone, Copy)]
pub(super) struct SlruLatches {
    pub(super) transfer: &'static LatchClass,
    pub(super) bank: &'static LatchClass,
}

/// Sizes of a cache.
#[derive(Debug, Clone, Copy)]
pub(super) struct SlruSizes {
    pub(super) banks: usize,
    pub(super) buffers_per_bank: usize,
    /// Entries of a page.
    pub(super) entries_per_page: u64,
}

/// A page in its buffer.
#[derive(Debug)]
struct Buffer {
    page: u64,
    entries: Box<[u64]>,
    /// Changes since it was last written.
    changes: u64,
    /// The number of the bank's use that was the last of this page.
    used: u64,
}

#[derive(Debug, Default)]
struct Buffers {
    all: Vec<Buffer>,
    uses: u64,
}

impl Buffers {
    fn find(&mut self, page: u64) -> Option<&mut Buffer> {
        self.uses += 1;
        let found = self.all.iter_mut().find(|buffer| buffer.page == page)?;
        found.used = self.uses;
        Some(found)
    }
}

#[derive(Debug)]
struct Bank<M: Machine> {
    transfer: Latched<(), M>,
    buffers: Latched<Buffers, M>,
}

/// A file of pages with its buffers. An entry is a word.
#[derive(Debug)]
pub(super) struct Slru<M: Machine, F> {
    banks: Box<[Padded<Bank<M>>]>,
    file: F,
    sizes: SlruSizes,
}

impl<M: Machine, F: PageFile> Slru<M, F> {
    pub(super) fn new(sizes: SlruSizes, latches: SlruLatches, lwlock: LwLockOptions, file: F) -> Self {
        let bank = |_| {
            Padded(Bank {
                transfer: Latched::new(latches.transfer, lwlock, ()),
                buffers: Latched::new(latches.bank, lwlock, Buffers::default()),
            })
        };
        Self {
            banks: (0..sizes.banks).map(bank).collect(),
            file,
            sizes,
        }
    }

    /// The page of an entry.
    pub(super) fn page_of(&self, entry: u64) -> u64 {
        entry / self.sizes.entries_per_page
    }

    /// Adds a page to the end of the file, in a buffer, all zeros.
    pub(super) fn begin_page(&self, page: u64) {
        self.bring(page, true);
    }

    /// Entries from `first` on.
    pub(super) fn read(&self, first: u64, count: usize) -> Vec<u64> {
        let mut entries = Vec::with_capacity(count);
        while entries.len() < count {
            let (at, left) = (first + entries.len() as u64, count - entries.len());
            self.on_page(self.page_of(at), |buffer| {
                let part = self.part(at, left);
                M::charge(Work::Nanos(MEMBER_NS * part.len() as u64));
                entries.extend_from_slice(&buffer.entries[part]);
            });
        }
        entries
    }

    /// Sets entries from `first` on.
    pub(super) fn write(&self, first: u64, entries: &[u64]) {
        let mut done = 0;
        while done < entries.len() {
            let at = first + done as u64;
            self.on_page(self.page_of(at), |buffer| {
                let part = self.part(at, entries.len() - done);
                M::charge(Work::Nanos(MEMBER_NS * part.len() as u64));
                let length = part.len();
                buffer.entries[part].copy_from_slice(&entries[done..done + length]);
                buffer.changes += 1;
                done += length;
            });
        }
    }

    /// The places on its page of the entries from `at` on, `count` at most.
    fn part(&self, at: u64, count: usize) -> std::ops::Range<usize> {
        let place = (at % self.sizes.entries_per_page) as usize;
        place..(place + count).min(self.sizes.entries_per_page as usize)
    }

    fn bank(&self, page: u64) -> &Bank<M> {
        &self.banks[(page % self.banks.len() as u64) as usize]
    }

    /// Calls `work` with a page in its buffer, under the bank's latch.
    fn on_page(&self, page: u64, work: impl FnOnce(&mut Buffer)) {
        loop {
            if let Some(buffer) = self.bank(page).buffers.exclusive().find(page) {
                return work(buffer);
            }
            self.bring(page, false);
        }
    }

    /// Brings a page into a buffer, at least for a moment.
    #[cold]
    fn bring(&self, page: u64, is_new: bool) {
        let bank = self.bank(page);
        let _transfer = bank.transfer.exclusive();
        if bank.buffers.exclusive().find(page).is_some() {
            return;
        }
        let mut entries = vec![0; self.sizes.entries_per_page as usize].into_boxed_slice();
        if !is_new {
            self.file.read(page, &mut entries);
        }
        loop {
            let mut buffers = bank.buffers.exclusive();
            if buffers.all.len() == self.sizes.buffers_per_bank {
                let oldest = oldest(&buffers.all);
                let Buffer { page, changes, .. } = buffers.all[oldest];
                if changes > 0 {
                    let copy = buffers.all[oldest].entries.clone();
                    drop(buffers);
                    self.file.write(page, &copy);
                    let mut buffers = bank.buffers.exclusive();
                    // No other worker has replaced it: P2. One may have changed it: P3.
                    let mut all = buffers.all.iter_mut();
                    let written = all.find(|buffer| buffer.page == page);
                    written.expect("P2: it leaves by this worker alone").changes -= changes;
                    continue;
                }
                buffers.all.swap_remove(oldest);
            }
            let used = buffers.uses;
            // A new page is in no file yet.
            let changes = u64::from(is_new);
            buffers.all.push(Buffer {
                page,
                entries,
                changes,
                used,
            });
            return;
        }
    }

    #[cfg(test)]
    pub(super) fn file(&self) -> &F {
        &self.file
    }
}

/// The buffer that was not used for the longest time.
fn oldest(buffers: &[Buffer]) -> usize {
    let (oldest, _) = buffers
        .iter()
        .enumerate()
        .min_by_key(|(_, buffer)| buffer.used)
        .expect("a bank has a buffer at least");
    oldest
}
