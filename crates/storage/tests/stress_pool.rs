//! The buffer pool with real threads: many more pages than frames, under every variant of `buffer_map` and
//! of `page_read`, and of `buffer_clock`.
//!
//! Each worker counts pages up and looks at others, while a checkpointer writes. A page that was in two frames would
//! lose a count; one that was given away while it was pinned would show another page's number; one that a checkpoint
//! did not find would be dirty at the end with nothing to write.

#[path = "support/pages.rs"]
#[allow(dead_code, reason = "asynchronous commits are for the model checkers")]
mod pages;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

use clearway_machine::Native;
use clearway_storage::{BufferPool, BufferPoolOptions};
use pages::{MemoryPages, number_on, put_number, racy_numbers};

const FRAMES: usize = 24;
const PAGES: u32 = 60;
const WORKERS: u64 = 6;
const STEPS: u64 = 15_000;

#[test]
fn no_count_is_lost_under_any_variant() {
    for options in BufferPoolOptions::each_map_and_page_read().chain(BufferPoolOptions::each_other_clock()) {
        let device = Arc::new(MemoryPages::<Native>::new(PAGES));
        let pool = BufferPool::<Native, _>::with_frames(FRAMES, options, Arc::clone(&device));
        let counted: Vec<AtomicU64> = (0..PAGES).map(|_| AtomicU64::new(0)).collect();
        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            let workers: Vec<_> = (0..WORKERS)
                .map(|worker| {
                    let (pool, device, counted) = (&pool, &device, &counted);
                    scope.spawn(move || {
                        let mut random = worker + 1;
                        for _ in 0..STEPS {
                            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                            // Half of the accesses go to few pages, which stay; the others keep the clock turning.
                            let range = if random >> 63 == 0 { PAGES } else { 8 };
                            let block = (random >> 33) as u32 % range;
                            if random >> 61 & 1 == 0 {
                                let before = counted[block as usize].load(Relaxed);
                                let read = pool.read(device.page(block), racy_numbers);
                                let [first, second, _] = read.expect("more frames than workers").unwrap();
                                assert_eq!(first, second, "{options:?}: half of a change");
                                assert!(u64::from(first) >= before, "{options:?}: an old page {block}");
                                continue;
                            }
                            let pinned = pool.pin(device.page(block)).expect("more frames than workers");
                            assert_eq!(pinned.page_id(), device.page(block), "{options:?}");
                            if random >> 62 & 1 == 0 {
                                let before = counted[block as usize].load(Relaxed);
                                let number = number_on(&pinned.shared().copy()).0;
                                assert!(number >= before, "{options:?}: page {block} lost a count");
                            } else {
                                let mut page = pinned.exclusive();
                                let number = number_on(&page.copy()).0;
                                page.change_and_log(|bytes| put_number(bytes, number + 1), || device.log());
                                counted[block as usize].fetch_add(1, Relaxed);
                            }
                        }
                    })
                })
                .collect();
            let checkpointer = scope.spawn(|| {
                while !ended.load(Relaxed) {
                    pool.write_all().unwrap();
                    thread::yield_now();
                }
            });
            for worker in workers {
                worker.join().unwrap();
            }
            ended.store(true, Relaxed);
            checkpointer.join().unwrap();
        });
        pool.write_all().unwrap();
        for (block, counted) in counted.iter().enumerate() {
            let on_file = device.on_file(block as u32).0;
            assert_eq!(on_file, counted.load(Relaxed), "{options:?}: page {block}");
        }
    }
}
