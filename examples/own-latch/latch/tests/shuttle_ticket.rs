//! The ticket latch under shuttle: more workers than loom can exhaust, in random schedules. Overlap inside the latch is
//! seen by the data cell, a sleeper left behind as a deadlock.
//!
//! Seen to catch: a wake-up of one sleeper instead of all, which may be the wrong one (deadlock); a release
//! before the section (overlap).
//!
//! `cargo test -p own-latch --features shuttle --test shuttle_ticket --release`

use std::sync::Arc;

use clearway_machine::{DataCell, Machine, Shuttle};
use own_latch::TicketLatch;
use shuttle::thread;

const WORKERS: u64 = 5;
const TIMES: u64 = 4;
const SCHEDULES: usize = 2_000;

/// A number under the latch.
struct Shared {
    latch: TicketLatch<Shuttle>,
    data: <Shuttle as Machine>::Data<u64>,
}

// SAFETY: the data is reached under the latch only, which is what the test checks.
unsafe impl Sync for Shared {}

#[test]
fn workers_do_not_overlap_and_all_are_woken() {
    shuttle::check_random(
        || {
            let shared = Arc::new(Shared {
                latch: TicketLatch::new(),
                data: DataCell::new(0),
            });
            let workers: Vec<_> = (0..WORKERS)
                .map(|_| {
                    let shared = Arc::clone(&shared);
                    thread::spawn(move || {
                        for _ in 0..TIMES {
                            // SAFETY: the latch is held; the cell fails the test on overlap.
                            shared
                                .latch
                                .with(|| shared.data.with_mut(|data| unsafe { *data += 1 }));
                        }
                    })
                })
                .collect();
            for worker in workers {
                worker.join().unwrap();
            }
            // SAFETY: as above.
            let sum = shared.latch.with(|| shared.data.with(|data| unsafe { *data }));
            assert_eq!(sum, WORKERS * TIMES);
        },
        SCHEDULES,
    );
}
