//! Reading pages under loom: the shipped pool, on loom's atomics and latches. Each case runs under every variant of
//! `buffer_map` and of `page_read`.
//!
//! loom does not see the bytes of a page. The frame has a word for it that each write of bytes changes and each reader
//! without a latch reads (`Frame::note_unpinned_read`), so that what such a reader sees of the bytes is ordered as it
//! would be by them.
//!
//! Mutations that it should catch (`mutations/page_read.toml`; none has been run): a read that is not validated, or
//! does not compare the tag; each of the two fences left out; an even version stored Relaxed; a writer, and an owner,
//! that leaves the version even.

#![cfg(feature = "loom")]

#[path = "support/pages.rs"]
#[allow(dead_code, reason = "hints and commits are for the cases of shuttle")]
mod pages;

use clearway_machine::{AtomicWord, Loom, Machine};
use clearway_storage::{BufferPool, BufferPoolOptions, StorageError};
use loom::sync::Arc;
use loom::thread;
use pages::{MemoryPages, put_number, racy_numbers};
use std::sync::atomic::Ordering::{Acquire, Release};

type Device = std::sync::Arc<MemoryPages<Loom>>;

struct Pool {
    pool: BufferPool<Loom, Device>,
    device: Device,
}

fn explore(frames: usize, preemptions: usize, case: impl Fn(Arc<Pool>) + Copy + Send + Sync + 'static) {
    for options in BufferPoolOptions::each_map_and_page_read() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions);
        builder.max_branches = 20_000;
        builder.check(move || {
            Loom::workers();
            let device = Device::new(MemoryPages::new(2));
            let pool = BufferPool::with_frames(frames, options, std::sync::Arc::clone(&device));
            case(Arc::new(Pool { pool, device }));
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

/// A page gives way to another in the only frame, while a reader reads the one of the two: never the other's number.
fn one_page_goes_and_one_comes(read: u32) {
    explore(1, 2, move |pool| {
        assert!(pool.change(1, 8) && pool.change(0, 7));
        let other = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || drop(pool.pool.pin(pool.device.page(1))))
        };
        if let Some((number, _)) = pool.read(read) {
            assert_eq!(number, [7, 8][read as usize], "another page's number");
        }
        other.join().unwrap();
    });
}

#[test]
fn loom_a_page_is_read_while_it_goes() {
    one_page_goes_and_one_comes(0);
}

#[test]
fn loom_a_page_is_read_while_it_comes() {
    one_page_goes_and_one_comes(1);
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
    explore(1, 2, |pool| {
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
