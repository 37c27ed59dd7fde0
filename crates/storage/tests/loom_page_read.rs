//! Reading pages under loom: the shipped pool, on loom's atomics and latches. Each case runs under every variant of
//! `buffer_map` and of `page_read`.
//!
//! loom does not see the bytes of a page. The frame has a word for it that each write of bytes changes and each reader
//! without a latch reads (`Frame::note_unpinned_read`), so that what such a reader sees of the bytes is ordered as it
//! would be by them.
//!
//! Mutations for it (`mutations/page_read.toml`): a read that is not validated, or
//! does not compare the tag; each of the two fences left out; an even version stored Relaxed; a writer, and an owner,
//! that leaves the version even.

#![cfg(feature = "loom")]

#[path = "support/pages.rs"]
#[allow(dead_code, reason = "hints and commits are for the cases of shuttle")]
mod pages;

use clearway_machine::{AtomicWord, Loom, Machine};
use clearway_storage::{BufferPool, BufferPoolOptions, PAGE_SIZE, RacyPage, StorageError};
use loom::thread;
use pages::{MemoryPages, put_number, racy_numbers};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

type Device = Arc<MemoryPages<Loom>>;

struct Pool {
    pool: BufferPool<Loom, Device>,
    device: Device,
    step: <Loom as Machine>::U32,
}

/// The place of the row's place on a page (0: on the next page), as a line pointer or a right link has it.
const POINTER: usize = 256;
/// Two places for the row.
const PLACES: [u32; 2] = [512, 1024];
const ROW: u32 = 7;

fn explore(frames: usize, preemptions: usize, case: impl Fn(Arc<Pool>) + Copy + Send + Sync + 'static) {
    for options in BufferPoolOptions::each_map_and_page_read() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions);
        builder.max_branches = 20_000;
        builder.check(move || {
            Loom::workers();
            let device = Device::new(MemoryPages::new(2));
            let pool = BufferPool::with_frames(frames, options, Arc::clone(&device));
            let step = <Loom as Machine>::U32::new(0);
            case(Arc::new(Pool { pool, device, step }));
        });
    }
}

impl Pool {
    /// Number and log position of a page; `None` if there is no frame for it.
    fn read(&self, block: u32) -> Option<(u32, u32)> {
        let read = match self.pool.read(self.device.page(block), racy_numbers) {
            Err(StorageError::NoFreeBuffer { .. }) => return None,
            read => read.unwrap(),
        };
        let [first, second, lsn] = read.expect("all three are on the page");
        assert_eq!(first, second, "half of a change");
        Some((first, lsn))
    }

    /// Puts a number on a page, and its log position behind that; true unless there was no frame.
    fn change(&self, block: u32, number: u64) -> bool {
        let Ok(pinned) = self.pool.pin(self.device.page(block)) else {
            return false;
        };
        let mut page = pinned.exclusive();
        page.change_and_log(|bytes| put_number(bytes, number), || self.device.log());
        true
    }
}

/// Preemptions in cases in which pages are evicted: with two they take minutes (`CLEARWAY_LOOM=exhaustive`).
fn preemptions_of_evictions() -> usize {
    let exhaustive = std::env::var("CLEARWAY_LOOM").is_ok_and(|how| how == "exhaustive");
    if exhaustive { 2 } else { 1 }
}

fn put(bytes: &mut [u8; PAGE_SIZE], at: usize, number: u32) {
    bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
}

/// Puts the row in a place, and wipes the other one.
fn put_row(bytes: &mut [u8; PAGE_SIZE], place: u32) {
    for each in PLACES {
        put(bytes, each as usize, if each == place { ROW } else { 0 });
    }
    put(bytes, POINTER, place);
}

impl Pool {
    /// The row, by the pointer on a page; `None`: the page has no row.
    fn read_row(&self, block: u32) -> Option<u32> {
        let read = |page: RacyPage<'_>| {
            let place = page.u32_at(POINTER)?;
            // The writer goes on in the middle of the read.
            self.step.load(Relaxed);
            if place == 0 {
                Some(None)
            } else {
                page.u32_at(place as usize).map(Some)
            }
        };
        let read = self.pool.read(self.device.page(block), read).unwrap();
        read.expect("the row is on the page")
    }
}

/// A row moves on its page, as when the page is pruned: the reader follows the pointer to it, and not to where it was.
#[test]
fn loom_a_page_is_read_while_its_row_moves() {
    explore(1, 2, |pool| {
        let page = pool.device.page(0);
        let move_row = move |pool: &Pool, place: u32| {
            let mut page = pool.pool.pin(page).unwrap().into_exclusive();
            page.change_and_log(|bytes| put_row(bytes, place), || pool.device.log());
        };
        move_row(&pool, PLACES[0]);
        let writer = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || move_row(&pool, PLACES[1]))
        };
        assert_eq!(pool.read_row(0), Some(ROW));
        writer.join().unwrap();
    });
}

/// A page splits, and the row goes to the right. A reader that finds the page without the row finds it on the next one.
#[test]
fn loom_a_row_is_read_while_its_page_splits() {
    explore(2, 2, |pool| {
        let pages = [0, 1].map(|block| pool.device.page(block));
        for (page, place) in pages.into_iter().zip([PLACES[0], 0]) {
            let mut page = pool.pool.pin(page).unwrap().into_exclusive();
            page.change_and_log(|bytes| put_row(bytes, place), || pool.device.log());
        }
        let writer = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || {
                let [mut left, mut right] = pages.map(|page| pool.pool.pin(page).unwrap().into_exclusive());
                right.change_and_log(|bytes| put_row(bytes, PLACES[1]), || pool.device.log());
                left.change_and_log(|bytes| put_row(bytes, 0), || pool.device.log());
            })
        };
        let found = pool.read_row(0).or_else(|| pool.read_row(1));
        assert_eq!(found, Some(ROW), "the row is on neither page");
        writer.join().unwrap();
    });
}

/// A page gives way to another in the only frame, while a reader reads the one of the two: never the other's number.
/// `reader_first`: which of the two is interrupted, where only one preemption is explored.
fn one_page_goes_and_one_comes(read: u32, reader_first: bool) {
    explore(1, preemptions_of_evictions(), move |pool| {
        assert!(pool.change(1, 8) && pool.change(0, 7));
        let read = move |pool: &Pool| {
            if let Some((number, _)) = pool.read(read) {
                assert_eq!(number, [7, 8][read as usize], "another page's number");
            }
        };
        let evict = |pool: &Pool| drop(pool.pool.pin(pool.device.page(1)));
        let other = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || if reader_first { evict(&pool) } else { read(&pool) })
        };
        if reader_first {
            read(&pool)
        } else {
            evict(&pool)
        }
        other.join().unwrap();
    });
}

#[test]
fn loom_a_page_is_read_while_it_goes() {
    one_page_goes_and_one_comes(0, true);
}

#[test]
fn loom_a_page_is_read_while_it_comes() {
    one_page_goes_and_one_comes(1, false);
}

/// A page is changed while it is read: the reader sees all of the change or nothing of it.
#[test]
fn loom_a_page_is_read_while_it_changes() {
    explore(1, 2, |pool| {
        assert_eq!(pool.read(0), Some((0, 0)));
        let writer = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || assert!(pool.change(0, 7)))
        };
        let read = pool.read(0);
        assert!(
            [Some((0, 0)), Some((7, 8))].contains(&read),
            "half of a change: {read:?}"
        );
        writer.join().unwrap();
        assert_eq!(pool.read(0), Some((7, 8)), "a change that is known to the reader");
    });
}

/// A page goes, comes back and is changed. A reader that knows of the change sees it.
#[test]
fn loom_a_reader_sees_the_change_that_it_knows_of() {
    explore(1, preemptions_of_evictions(), |pool| {
        let changed = Arc::new(<Loom as Machine>::U32::new(0));
        pool.read(0);
        let writer = {
            let (pool, changed) = (Arc::clone(&pool), Arc::clone(&changed));
            thread::spawn(move || {
                drop(pool.pool.pin(pool.device.page(1)));
                if pool.change(0, 7) {
                    changed.store(1, Release);
                }
            })
        };
        if changed.load(Acquire) == 1 {
            assert!(pool.read(0).is_none_or(|read| read == (7, 8)));
        } else if let Some((number, _)) = pool.read(0) {
            assert!([0, 7].contains(&number), "{number}");
        }
        writer.join().unwrap();
    });
}
