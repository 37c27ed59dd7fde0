//! A device for the buffer pool in memory, which holds the pool to the log rule.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use clearway_machine::{AtomicWord, Machine};
use clearway_storage::{Lsn, PAGE_SIZE, PageDevice, PageId, RacyPage, RelId, Result, StorageError, page};

/// The offsets of the number that the tests keep on each page, twice.
pub const NUMBERS: [usize; 2] = [64, PAGE_SIZE - 8];

/// The item whose hints the tests set: a bit for each asynchronous commit.
pub const HINT_ITEM: usize = 104;
/// Offset of its hints.
const HINTS: usize = HINT_ITEM + 30;
/// A header of a page whose items have hints, and no line pointers.
const HEADER: [(usize, u16); 4] = [(12, page::PageKind::HEAP.0), (16, 24), (18, 8_192), (20, 8_192)];

/// The number on a page, and its log position.
pub fn number_on(bytes: &[u8; PAGE_SIZE]) -> (u64, Lsn) {
    let [first, second] = NUMBERS.map(|at| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()));
    assert_eq!(first, second, "half of a change");
    (first, page::lsn(bytes))
}

/// The number on a page that may be changing, where the tests keep it, and the log position. They may not fit together.
pub fn racy_numbers(page: RacyPage<'_>) -> Option<[u32; 3]> {
    Some([
        page.u32_at(NUMBERS[0])?,
        page.u32_at(NUMBERS[1])?,
        page.u32_at(0)?,
    ])
}

pub fn put_number(bytes: &mut [u8; PAGE_SIZE], number: u64) {
    for at in NUMBERS {
        bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
    }
}

/// The pages' file, and a log of which only positions are kept. Plain words behind a mutex, which are no steps of the
/// machine: what a checker orders by them it would order without them.
#[derive(Debug)]
pub struct MemoryPages<M: Machine> {
    pages: u32,
    /// The last write of each page: the number on it and its log position.
    written: Mutex<HashMap<u32, (u64, Lsn)>>,
    logged: AtomicU64,
    flushed: AtomicU64,
    /// The newest asynchronous commit, and all of them.
    async_commit: AtomicU64,
    commits: Mutex<Vec<Lsn>>,
    /// The relation is discarded: none of its pages may be written any more.
    discarded: AtomicBool,
    /// A step of the machine in the middle of each access, so that others run meanwhile.
    step: M::U32,
}

impl<M: Machine> MemoryPages<M> {
    pub fn new(pages: u32) -> Self {
        Self {
            pages,
            written: Mutex::default(),
            logged: AtomicU64::new(0),
            flushed: AtomicU64::new(0),
            async_commit: AtomicU64::new(0),
            commits: Mutex::default(),
            discarded: AtomicBool::new(false),
            step: M::U32::new(0),
        }
    }

    /// Logs something; the position after it.
    pub fn log(&self) -> Lsn {
        Lsn(self.logged.fetch_add(8, Relaxed) + 8)
    }

    /// Commits without waiting for the disk; the bit that may now be set on any page.
    pub fn commit(&self) -> u16 {
        let lsn = self.log();
        self.async_commit.fetch_max(lsn.0, Relaxed);
        let mut commits = self.commits.lock().unwrap();
        commits.push(lsn);
        1 << (commits.len() - 1)
    }

    /// From here on the relation's file may be gone, and no page is written to it.
    pub fn discarded(&self) {
        self.discarded.store(true, Relaxed);
    }

    /// The content of a page in the file.
    pub fn on_file(&self, block: u32) -> (u64, Lsn) {
        let written = self.written.lock().unwrap();
        written.get(&block).copied().unwrap_or_default()
    }

    pub fn page(&self, block: u32) -> PageId {
        PageId {
            rel: RelId(20),
            block,
        }
    }
}

impl<M: Machine> PageDevice for MemoryPages<M> {
    fn check_exists(&self, page: PageId) -> Result<()> {
        if page.block < self.pages {
            return Ok(());
        }
        Err(StorageError::NoSuchPage {
            rel: page.rel.0,
            block: page.block,
        })
    }

    fn extend(&self, _rel: RelId, _enter: &mut dyn FnMut(PageId)) -> Result<()> {
        unreachable!("the tests' relation has all its pages");
    }

    fn read(&self, page: PageId, bytes: &mut [u8; PAGE_SIZE]) -> Result<()> {
        let (number, lsn) = self.on_file(page.block);
        bytes.fill(0);
        bytes[..8].copy_from_slice(&lsn.0.to_le_bytes());
        for (at, word) in HEADER {
            bytes[at..at + 2].copy_from_slice(&word.to_le_bytes());
        }
        put_number(bytes, number);
        self.step.load(Relaxed);
        Ok(())
    }

    fn write(&self, page: PageId, bytes: &mut [u8; PAGE_SIZE]) -> Result<()> {
        assert_eq!(page, self.page(page.block), "a frame without a page is written");
        self.check_exists(page)?;
        let (number, lsn) = number_on(bytes);
        let flushed = self.flushed.load(Relaxed);
        assert!(
            lsn.0 <= flushed,
            "the page at {lsn} is written, the log durable to {flushed}"
        );
        let hints = u16::from_le_bytes(bytes[HINTS..HINTS + 2].try_into().unwrap());
        for (bit, commit) in self.commits.lock().unwrap().iter().enumerate() {
            assert!(
                hints & 1 << bit == 0 || commit.0 <= flushed,
                "a page tells of the commit at {commit}, the log is durable to {flushed}"
            );
        }
        self.step.load(Relaxed);
        assert!(
            !self.discarded.load(Relaxed),
            "a page of a relation that is gone is written"
        );
        let mut written = self.written.lock().unwrap();
        let before = written.insert(page.block, (number, lsn));
        assert!(
            before.is_none_or(|before| before.1 <= lsn),
            "an older copy is written over a newer one"
        );
        Ok(())
    }

    fn newest_early_commit(&self) -> Lsn {
        Lsn(self.async_commit.load(Relaxed))
    }

    fn flush_log(&self, upto: Lsn) {
        self.step.load(Relaxed);
        self.flushed.fetch_max(upto.0, Relaxed);
    }
}
