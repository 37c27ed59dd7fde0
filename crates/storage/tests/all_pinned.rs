//! Pools with fewer frames than their workers want at one moment, under every variant of `buffer_clock`.

#[path = "support/pages.rs"]
#[allow(dead_code, reason = "asynchronous commits are for the model checkers")]
mod pages;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use clearway_machine::{Native, Switch, Watchdog};
use clearway_storage::{BufferClockVariant, BufferPool, BufferPoolOptions, StorageError};
use pages::MemoryPages;

const PAGES: u32 = 60;
const HOURS: Duration = Duration::from_secs(10_000);

type Pool = BufferPool<Native, Arc<MemoryPages<Native>>>;

/// A pool of each variant.
fn each(frames: usize, case: impl Fn(&Pool, &MemoryPages<Native>)) {
    for &clock in BufferClockVariant::ALL {
        eprintln!("under {clock:?}");
        let options = BufferPoolOptions {
            clock,
            ..BufferPoolOptions::default()
        };
        let device = Arc::new(MemoryPages::<Native>::new(PAGES));
        let pool = BufferPool::with_frames(frames, options, Arc::clone(&device));
        case(&pool, &device);
    }
}

/// Alice has pinned all frames, and Bob wants one more. He waits, and gets the one that she gives back.
///
/// Mutation that it is for: an error after the first sweep.
#[test]
fn a_worker_waits_for_a_pin_to_go() {
    let _watchdog = Watchdog::over_test();
    each(4, |pool, device| {
        pool.set_pin_wait_max(HOURS);
        let mut pinned: Vec<_> = (0..4)
            .map(|block| pool.pin(device.page(block)).unwrap())
            .collect();
        let given_back = AtomicBool::new(false);
        thread::scope(|scope| {
            let bob = scope.spawn(|| {
                let page = pool.pin(device.page(10)).unwrap();
                assert!(given_back.load(Relaxed), "Bob got a frame that was pinned");
                assert_eq!(page.page_id(), device.page(10));
            });
            thread::sleep(Duration::from_millis(30));
            assert!(!bob.is_finished());
            given_back.store(true, Relaxed);
            pinned.pop();
            bob.join().unwrap();
        });
        let (ended_well, given_up) = pool.pin_waits();
        assert!(ended_well <= 1 && given_up == 0);
    });
}

/// Twelve workers that want two pages each, the second while they have the first, and 13 frames: sometimes all are pinned,
/// and never for long, since one worker always has both.
#[test]
fn many_workers_share_few_frames() {
    let _watchdog = Watchdog::over_test();
    each(13, |pool, device| {
        pool.set_pin_wait_max(HOURS);
        thread::scope(|scope| {
            for worker in 0..12_u32 {
                scope.spawn(move || {
                    for step in 0..400_u32 {
                        let block = (worker * 7 + step * 11) % PAGES;
                        let first = pool.pin(device.page(block)).unwrap();
                        if step % 16 == 0 {
                            thread::yield_now();
                        }
                        let second = pool.pin(device.page((block + 1 + step % 7) % PAGES)).unwrap();
                        assert_eq!(first.page_id(), device.page(block));
                        drop((first, second));
                    }
                });
            }
        });
        let (_, given_up) = pool.pin_waits();
        assert_eq!(given_up, 0);
    });
}

/// Four workers hold a frame each, which is all there are, and want another: a deadlock of pins. The error of one is the
/// frame of the next, so not all fail, and each failure is counted.
#[test]
fn a_deadlock_of_pins_ends_with_an_error() {
    let _watchdog = Watchdog::over_test();
    each(4, |pool, device| {
        pool.set_pin_wait_max(Duration::from_millis(60));
        let all_have_one = std::sync::Barrier::new(4);
        let refused: usize = thread::scope(|scope| {
            let workers: Vec<_> = (0..4)
                .map(|worker| {
                    let all_have_one = &all_have_one;
                    scope.spawn(move || {
                        let _first = pool.pin(device.page(worker)).unwrap();
                        all_have_one.wait();
                        match pool.pin(device.page(10 + worker)) {
                            Ok(_) => 0,
                            Err(StorageError::NoFreeBuffer { frames }) => {
                                assert_eq!(frames, 4);
                                1
                            }
                            Err(error) => panic!("{error}"),
                        }
                    })
                })
                .collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).sum()
        });
        assert!(refused >= 1);
        assert_eq!(pool.pin_waits().1, refused as u64);
    });
}

thread_local! {
    static STOPS: Cell<bool> = const { Cell::new(false) };
}

/// A statement that is to stop does not wait on.
///
/// Mutation that it is for: no look at it.
#[test]
fn a_statement_that_is_to_stop_waits_no_longer() {
    let _watchdog = Watchdog::over_test();
    each(4, |pool, device| {
        pool.set_pin_wait_max(HOURS);
        pool.set_stop_asked(|| STOPS.get());
        let _pinned: Vec<_> = (0..4)
            .map(|block| pool.pin(device.page(block)).unwrap())
            .collect();
        STOPS.set(true);
        let error = pool.pin(device.page(10)).unwrap_err();
        assert!(matches!(error, StorageError::StopAsked));
        assert_eq!(error.sqlstate(), "57014");
    });
}
