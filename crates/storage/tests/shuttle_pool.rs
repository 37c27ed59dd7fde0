//! The buffer pool under shuttle: the shipped pool with fewer frames than its users want, over a device in
//! memory that holds it to the log rule. Random schedules of readers, of writers that count pages up, of a
//! checkpointer and of a worker that drops a relation.
//!
//! Each case runs under every variant of `buffer_map`, of `page_read` and of `buffer_clock`.
//!
//! Caught mutations (`mutations/buffer.toml`). In `buffer/pool.rs`: no log flush before a page is written; a
//! flush that does not regard the newest asynchronous commit; a copy that does not clear `REDIRTIED`. In
//! `buffer/pin/state.rs`: a change that does not set `REDIRTIED`; `try_take` that does not look whether the page
//! is dirty again; a `try_seize` that takes a frame that is being written: the writer then finds a frame
//! without a page, or writes to a file that is removed meanwhile, and the checkpoint fails.

#![cfg(feature = "shuttle")]

#[path = "support/pages.rs"]
mod pages;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use clearway_machine::Shuttle;
use clearway_storage::{BufferPool, BufferPoolOptions, PageLatchVariant, PinnedPage, RacyPage, StorageError};
use pages::{HINT_ITEM, MemoryPages, number_on, put_number, racy_numbers};
use shuttle::sync::Arc;
use shuttle::thread;

const PAGES: u32 = 9;
/// Pages that the cases with two frames use.
const FEW_PAGES: u32 = 3;
const WRITERS: u64 = 2;
const CHANGES: u64 = 3;

type Device = std::sync::Arc<MemoryPages<Shuttle>>;

struct Pool {
    pool: BufferPool<Shuttle, Device>,
    device: Device,
    /// Number of times that each page was counted up.
    counted: [AtomicU64; PAGES as usize],
}

impl Pool {
    fn new(frames: usize, options: BufferPoolOptions) -> Arc<Pool> {
        let device: Device = std::sync::Arc::new(MemoryPages::new(PAGES));
        let pool = BufferPool::with_frames(frames, options, std::sync::Arc::clone(&device));
        let counted = Default::default();
        Arc::new(Pool {
            pool,
            device,
            counted,
        })
    }

    /// Adds 1 to a page, unless all frames are pinned.
    fn count_up(&self, block: u32) {
        self.count_up_on(block, self.pool.pin(self.device.page(block)));
    }

    fn count_up_on(&self, block: u32, pinned: Result<PinnedPage<'_, Shuttle>, StorageError>) {
        let pinned = match pinned {
            Err(StorageError::NoFreeBuffer { .. }) => return,
            pinned => pinned.unwrap(),
        };
        let mut page = pinned.exclusive();
        let number = number_on(&page.copy()).0;
        page.change_and_log(|bytes| put_number(bytes, number + 1), || self.device.log());
        self.counted[block as usize].fetch_add(1, Relaxed);
    }

    /// Commits without waiting for the disk, and notes that on a page as a hint.
    fn commit_and_hint(&self, block: u32) {
        let bit = self.device.commit();
        if let Ok(pinned) = self.pool.pin(self.device.page(block)) {
            pinned.shared().set_hints_at(HINT_ITEM, bit);
        }
    }

    /// Reads a page as `page_read` has it.
    fn read(&self, block: u32, at_least: u64) -> u64 {
        let read = |page: RacyPage<'_>| {
            let [first, ..] = racy_numbers(page)?;
            // Others change the page, or use its frame, in the middle of the read.
            thread::yield_now();
            let [_, second, _] = racy_numbers(page)?;
            Some((first, second))
        };
        let (first, second) = match self.pool.read(self.device.page(block), read) {
            Err(StorageError::NoFreeBuffer { .. }) => return at_least,
            numbers => numbers.unwrap().expect("both are on the page"),
        };
        assert_eq!(first, second, "half of a change, or of another page");
        assert!(
            u64::from(first) >= at_least,
            "page {block} goes back from {at_least} to {first}"
        );
        first.into()
    }

    fn look(&self, block: u32, at_least: u64) -> u64 {
        let at_least = self.read(block, at_least);
        let pinned = match self.pool.pin(self.device.page(block)) {
            Err(StorageError::NoFreeBuffer { .. }) => return at_least,
            pinned => pinned.unwrap(),
        };
        assert_eq!(
            pinned.page_id(),
            self.device.page(block),
            "the frame has another page"
        );
        let number = number_on(&pinned.shared().copy()).0;
        assert!(
            number >= at_least,
            "page {block} goes back from {at_least} to {number}"
        );
        number
    }

    /// After all workers have ended: a checkpoint writes what is dirty, once.
    fn check_files(&self) {
        self.pool.write_all().unwrap();
        for block in 0..PAGES {
            let counted = self.counted[block as usize].load(Relaxed);
            assert_eq!(self.device.on_file(block).0, counted, "page {block} on file");
        }
        assert_eq!(self.pool.write_all().unwrap(), 0, "what was written is clean");
    }
}

fn readers_writers_and_a_checkpointer(options: BufferPoolOptions) {
    let pool = Pool::new(2, options);
    let mut threads: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let pool = Arc::clone(&pool);
            thread::spawn(move || {
                for number in 0..CHANGES {
                    pool.count_up(((writer + number) % u64::from(FEW_PAGES)) as u32);
                    if number == 1 {
                        pool.commit_and_hint(writer as u32);
                    }
                }
            })
        })
        .collect();
    let reader = Arc::clone(&pool);
    threads.push(thread::spawn(move || {
        let mut seen = [0; PAGES as usize];
        for number in 0..4 {
            let block = number % FEW_PAGES;
            seen[block as usize] = reader.look(block, seen[block as usize]);
        }
    }));
    let checkpointer = Arc::clone(&pool);
    threads.push(thread::spawn(move || {
        // Rule 7: what was counted before is on file after it.
        let before: Vec<u64> = checkpointer
            .counted
            .iter()
            .map(|counted| counted.load(Relaxed))
            .collect();
        checkpointer.pool.write_all().unwrap();
        for (block, before) in before.into_iter().enumerate() {
            assert!(
                checkpointer.device.on_file(block as u32).0 >= before,
                "page {block} was dirty"
            );
        }
    }));
    for thread in threads {
        thread.join().unwrap();
    }
    pool.check_files();
}

/// Random schedules under every map and every way to read a page, with this page latch.
fn check(page_latch: PageLatchVariant, schedules: usize, case: fn(BufferPoolOptions)) {
    for options in BufferPoolOptions::each_map_and_page_read().chain(BufferPoolOptions::each_other_clock()) {
        shuttle::check_random(
            move || {
                case(BufferPoolOptions {
                    page_latch,
                    ..options
                })
            },
            schedules,
        );
    }
}

#[test]
fn shuttle_frames_are_shared_under_lwlocks() {
    check(
        PageLatchVariant::LwLock,
        2_500,
        readers_writers_and_a_checkpointer,
    );
}

#[test]
fn shuttle_frames_are_shared_under_futex_latches() {
    check(PageLatchVariant::Ssux, 1_500, readers_writers_and_a_checkpointer);
}

#[test]
fn shuttle_frames_are_shared_under_hybrid_latches() {
    check(
        PageLatchVariant::Hybrid,
        1_500,
        readers_writers_and_a_checkpointer,
    );
}

/// More frames than a bucket or a chain of the maps has room for under a checker, and more pages than frames: chains
/// grow, lose entries in the middle, and pass lines on to each other, while all pages are looked for.
#[test]
fn shuttle_pages_come_and_go() {
    check(PageLatchVariant::LwLock, 1_500, |options| {
        let pool = Pool::new(6, options);
        let threads = (0..3_u32).map(|worker| {
            let pool = Arc::clone(&pool);
            thread::spawn(move || {
                let mut seen = [0; PAGES as usize];
                for number in 0..7 {
                    let block = (worker * 4 + number * 5) % PAGES;
                    pool.count_up(block);
                    let other = (block + 2 * worker + 1) % PAGES;
                    seen[other as usize] = pool.look(other, seen[other as usize]);
                }
            })
        });
        for thread in threads.collect::<Vec<_>>() {
            thread.join().unwrap();
        }
        pool.check_files();
    });
}

/// A scan and a bulk write with a ring of one frame each, beside workers that use the same pages without: no count is
/// lost, and no page is in two frames.
#[test]
fn shuttle_rings_share_frames_with_the_clock() {
    check(PageLatchVariant::LwLock, 1_500, |options| {
        let pool = Pool::new(3, options);
        let worker = Arc::clone(&pool);
        let writer = Arc::clone(&pool);
        let threads = [
            thread::spawn(move || {
                for number in 0..4 {
                    worker.count_up(number * 2 % PAGES);
                }
            }),
            thread::spawn(move || {
                let mut ring = writer.pool.write_ring();
                for block in 0..5 {
                    let page = writer.device.page(block);
                    writer.count_up_on(block, writer.pool.pin_in(page, &mut ring));
                }
            }),
        ];
        let mut ring = pool.pool.scan_ring(PAGES).expect("the table is big");
        let mut seen = 0;
        for block in [0, 1, 2, 3, 0, 2] {
            let Ok(pinned) = pool.pool.pin_in(pool.device.page(block), &mut ring) else {
                continue;
            };
            assert_eq!(
                pinned.page_id(),
                pool.device.page(block),
                "the frame has another page"
            );
            let number = number_on(&pinned.shared().copy()).0;
            if block == 0 {
                assert!(number >= seen, "page 0 goes back from {seen} to {number}");
                seen = number;
            }
        }
        for thread in threads {
            thread.join().unwrap();
        }
        pool.check_files();
    });
}

/// Fewer frames than workers, and each worker has one pin at a time: one that finds all frames pinned waits, and gets one.
/// None is given up, and no count is lost.
///
/// Mutation that it is for (`mutations/buffer.toml`): an error after the first sweep.
#[test]
fn shuttle_a_worker_waits_until_a_frame_is_unpinned() {
    check(PageLatchVariant::LwLock, 1_000, |options| {
        let pool = Pool::new(2, options);
        pool.pool.set_pin_wait_max(Duration::from_secs(10_000));
        let workers = (0..4_u32).map(|worker| {
            let pool = Arc::clone(&pool);
            thread::spawn(move || {
                for number in 0..3 {
                    let block = (worker + number * 2) % PAGES;
                    pool.count_up_on(block, Ok(pool.pool.pin(pool.device.page(block)).unwrap()));
                }
            })
        });
        for worker in workers.collect::<Vec<_>>() {
            worker.join().unwrap();
        }
        assert_eq!(pool.pool.pin_waits().1, 0);
        pool.check_files();
    });
}

/// Two workers have a frame each, which is all there are, and want another: a deadlock of pins. The wait of one ends with
/// an error, which is counted, and what it gives back ends the wait of the other, unless that was too long as well.
///
/// Mutation that it is for (`mutations/buffer.toml`): a wait without an end.
#[test]
fn shuttle_a_deadlock_of_pins_ends() {
    check(PageLatchVariant::LwLock, 300, |options| {
        let pool = Pool::new(2, options);
        pool.pool.set_pin_wait_max(Duration::from_millis(1));
        let workers = (0..2_u32).map(|worker| {
            let pool = Arc::clone(&pool);
            thread::spawn(move || {
                let page = |block| pool.pool.pin(pool.device.page(block));
                let Ok(_first) = page(worker) else { return 1 };
                u64::from(page(2 + worker).is_err())
            })
        });
        let workers: Vec<_> = workers.collect();
        let refused: u64 = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
        assert_eq!(pool.pool.pin_waits().1, refused);
        // All pins have been given back.
        let _both = [4, 5].map(|block| pool.pool.pin(pool.device.page(block)).unwrap());
    });
}

/// A relation is dropped while a checkpoint writes its pages, and another user wants their frames: afterwards
/// none of its pages is in memory or on its way to the file, which is removed then, and all frames can be
/// used.
#[test]
fn shuttle_a_relation_goes_while_it_is_written() {
    check(PageLatchVariant::LwLock, 1_500, |options| {
        let pool = Pool::new(2, options);
        for block in 0..2 {
            pool.count_up(block);
        }
        let writer = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || pool.pool.write_all().map(drop).unwrap())
        };
        pool.pool.discard(pool.device.page(0).rel);
        pool.device.discarded();
        writer.join().unwrap();
        assert_eq!(
            pool.pool.write_all().unwrap(),
            0,
            "a page of the relation is in memory"
        );
        let both = [0, 1].map(|block| pool.pool.pin(pool.device.page(block)).unwrap());
        for (pinned, block) in both.iter().zip(0..) {
            let number = number_on(&pinned.shared().copy()).0;
            assert_eq!(number, pool.device.on_file(block).0, "read from its file");
        }
    });
}
