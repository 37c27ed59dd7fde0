//! The buffer pool under loom: the shipped frames, maps, clock and pool, on loom's atomics and latches, over a
//! device in memory that holds the pool to the log rule. Each case runs under every variant of `buffer_map`
//! and of `buffer_clock`, and is so small that loom sees all its schedules within a bound of preemptions.
//!
//! Caught mutations (`mutations/buffer.toml`), each of a shipped file: `unpin` with `Relaxed`, and `try_take`
//! that does not look at the pins (`pin/state.rs`); a lookup that pins after it has released the partition
//! (`map/partitioned.rs`); a lookup without the latch that does not compare the frame's tag, that keeps its pin
//! on another page's frame, or that takes a page for missing, and an insertion that does not look for the page
//! (`map/concurrent.rs`); the same comparison and the same insertion of `map/chash.rs`, a node that is unlinked without
//! its mark, and each of the two fences between scans and reclaimers.

#![cfg(feature = "loom")]

#[path = "support/pages.rs"]
#[allow(dead_code, reason = "what the larger cases use")]
mod pages;

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use clearway_machine::{AtomicWord, Loom, Machine};
use clearway_storage::{
    BufferPool, BufferPoolOptions, Lsn, PAGE_SIZE, PageDevice, PageId, PageLatchVariant, RelId, Result,
};
use loom::thread;
use pages::{HINT_ITEM, MemoryPages, number_on, put_number};

struct Pool(BufferPool<Loom, Arc<MemoryPages<Loom>>>, Arc<MemoryPages<Loom>>);

impl Deref for Pool {
    type Target = BufferPool<Loom, Arc<MemoryPages<Loom>>>;
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

fn explore(frames: usize, preemptions: usize, case: impl Fn(Arc<Pool>) + Copy + Send + Sync + 'static) {
    for options in BufferPoolOptions::each_map().chain(BufferPoolOptions::each_other_clock()) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions);
        builder.max_branches = 20_000;
        builder.check(move || {
            Loom::workers();
            let device = Arc::new(MemoryPages::new(3));
            let options = BufferPoolOptions {
                page_latch: PageLatchVariant::LwLock,
                ..options
            };
            let pool = BufferPool::with_frames(frames, options, Arc::clone(&device));
            case(Arc::new(Pool(pool, device)));
        });
    }
}

/// The content of a page, if there is a frame for it.
fn look(pool: &Pool, block: u32) -> Option<u64> {
    let pinned = pool.pin(pool.1.page(block)).ok()?;
    assert_eq!(pinned.page_id(), pool.1.page(block), "the frame has another page");
    let page = pinned.shared();
    Some(number_on(&page.copy()).0)
}

fn change(pool: &Pool, block: u32, number: u64) -> bool {
    let Ok(pinned) = pool.pin(pool.1.page(block)) else {
        return false;
    };
    let mut page = pinned.exclusive();
    page.change_and_log(|bytes| put_number(bytes, number), || pool.1.log());
    true
}

/// One frame, and two readers that want different pages in it.
#[test]
fn loom_a_pinned_page_stays() {
    explore(1, 2, |pool| {
        assert_eq!(look(&pool, 0), Some(0));
        let other = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || look(&pool, 0))
        };
        look(&pool, 1);
        other.join().unwrap();
    });
}

/// A changed page gives way to another, while its reader comes back: the change is found, in memory or on file.
#[test]
fn loom_a_change_is_written_before_its_frame_is_used() {
    explore(1, 2, |pool| {
        assert!(change(&pool, 0, 7));
        let other = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || look(&pool, 0))
        };
        look(&pool, 1);
        assert!(other.join().unwrap().is_none_or(|number| number == 7));
        assert_eq!(look(&pool, 0), Some(7));
    });
}

/// A page is changed while it is written: it stays dirty, or the copy has the change.
#[test]
fn loom_a_change_during_a_write_is_not_lost() {
    explore(1, 2, |pool| {
        assert!(change(&pool, 0, 7));
        let writer = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || pool.write_all().unwrap())
        };
        assert!(change(&pool, 0, 8));
        writer.join().unwrap();
        pool.write_all().unwrap();
        assert_eq!(pool.1.on_file(0).0, 8);
        assert_eq!(pool.write_all().unwrap(), 0, "a page that was written is clean");
    });
}

/// Two workers want a page that is in no frame: it is read into one of the two frames, and both change that one.
#[test]
fn loom_a_page_is_read_into_one_frame() {
    explore(2, 2, |pool| {
        let add = |pool: &Pool| {
            let pinned = pool.pin(pool.1.page(0)).expect("a frame for each worker");
            let mut page = pinned.exclusive();
            let number = number_on(&page.copy()).0;
            page.change_and_log(|bytes| put_number(bytes, number + 1), || pool.1.log());
        };
        let other = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || add(&pool))
        };
        add(&pool);
        other.join().unwrap();
        assert_eq!(look(&pool, 0), Some(2));
    });
}

/// A page leaves the map that entered it before a dirty one, and stands before it, and one that comes behind it enters;
/// meanwhile a checkpoint asks for the dirty one.
#[test]
fn loom_a_page_is_found_while_its_neighbours_come_and_go() {
    explore(2, 2, |pool| {
        look(&pool, 0);
        // Used twice, so that the clock prefers the other one.
        assert!(change(&pool, 1, 6));
        assert!(change(&pool, 1, 7));
        let writer = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || {
                pool.write_all().unwrap();
                assert_eq!(pool.1.on_file(1).0, 7, "a dirty page was not found");
            })
        };
        look(&pool, 2);
        writer.join().unwrap();
    });
}

/// A page leaves the map while another worker enters one next to it: the new one can be found.
#[test]
fn loom_a_page_enters_while_its_neighbour_goes() {
    explore(2, 2, |pool| {
        look(&pool, 1);
        let other = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || change(&pool, 2, 5))
        };
        look(&pool, 0);
        if other.join().unwrap() {
            assert_eq!(
                look(&pool, 2),
                Some(5),
                "a change is in a frame that is not found"
            );
        }
    });
}

/// Pages as [`MemoryPages`], with the newest commit that is not durable in a word that the checker follows.
#[derive(Debug)]
struct EarlyCommits {
    pages: MemoryPages<Loom>,
    newest: <Loom as Machine>::U64,
}

impl EarlyCommits {
    /// Commits without waiting for the disk, in the orders of `commit`; the bit that may now be set on any page.
    fn commit(&self) -> u16 {
        let bit = self.pages.commit();
        self.newest
            .store(self.pages.newest_early_commit().0, Ordering::Release);
        bit
    }
}

impl PageDevice for EarlyCommits {
    fn check_exists(&self, page: PageId) -> Result<()> {
        self.pages.check_exists(page)
    }
    fn extend(&self, rel: RelId, enter: &mut dyn FnMut(PageId)) -> Result<()> {
        self.pages.extend(rel, enter)
    }
    fn read(&self, page: PageId, bytes: &mut [u8; PAGE_SIZE]) -> Result<()> {
        self.pages.read(page, bytes)
    }
    fn write(&self, page: PageId, bytes: &mut [u8; PAGE_SIZE]) -> Result<()> {
        self.pages.write(page, bytes)
    }
    fn newest_early_commit(&self) -> Lsn {
        Lsn(self.newest.load(Ordering::Acquire))
    }
    fn flush_log(&self, upto: Lsn) {
        self.pages.flush_log(upto);
    }
}

/// A page is written while a reader, which holds the page's shared latch as well, sets the hint of a commit that is not
/// durable: a hint that is in the copy is waited for.
#[test]
fn loom_a_hint_is_written_after_its_commit() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.max_branches = 20_000;
    builder.check(|| {
        Loom::workers();
        let device = Arc::new(EarlyCommits {
            pages: MemoryPages::new(1),
            newest: <Loom as Machine>::U64::new(0),
        });
        let options = BufferPoolOptions {
            page_latch: PageLatchVariant::LwLock,
            ..BufferPoolOptions::default()
        };
        let pool = BufferPool::<Loom, _>::with_frames(1, options, Arc::clone(&device));
        let pool = Arc::new((pool, device));
        let pinned = pool.0.pin(pool.1.pages.page(0)).unwrap();
        pinned
            .exclusive()
            .change_and_log(|bytes| put_number(bytes, 7), || pool.1.pages.log());
        drop(pinned);
        let reader = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || {
                let pinned = pool.0.pin(pool.1.pages.page(0)).unwrap();
                let page = pinned.shared();
                let bit = pool.1.commit();
                page.set_hints_at(HINT_ITEM, bit);
            })
        };
        pool.0.write_all().unwrap();
        reader.join().unwrap();
    });
}
