//! The ticket latch under loom: every schedule of two and three workers within a bound of preemptions, under weak
//! memory.
//!
//! A worker that is left asleep shows as a deadlock, below which its line is named, and data that the latch did not order as a
//! causality violation. The latch is shared by std's `Arc`: loom's own would be asked again while a failed test unwinds.
//!
//! Seen to catch: either fence of T2 taken out (deadlock); either `Acquire` or the `Release` made `Relaxed`
//! (causality). `mutations/ticket.toml` has them, and `scripts/mutations --only own-latch` runs them.
//!
//! `cargo test -p own-latch --features loom --test loom_ticket --release`

use std::sync::Arc;

use clearway_machine::{DataCell, Loom, Machine};
use loom::thread;
use own_latch::TicketLatch;

/// A number under the latch.
struct Shared {
    latch: TicketLatch<Loom>,
    data: <Loom as Machine>::Data<u64>,
}

// SAFETY: the data is reached under the latch only, which is what the test checks.
unsafe impl Sync for Shared {}

/// The first `early` sleeps of each worker end though none has woken it.
fn every_schedule(workers: u64, times: u64, early: u32, preemptions: usize) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        // The machine's globals come to life before there is a thread to race with.
        Loom::workers();
        let shared = Arc::new(Shared {
            latch: TicketLatch::new(),
            data: DataCell::new(0),
        });
        let add = move |shared: &Shared| {
            Loom::end_waits_early(early);
            for _ in 0..times {
                // SAFETY: the latch is held; loom fails the test if that does not order the accesses.
                shared
                    .latch
                    .with(|| shared.data.with_mut(|data| unsafe { *data += 1 }));
            }
        };
        let threads: Vec<_> = (1..workers)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || add(&shared))
            })
            .collect();
        add(&shared);
        for thread in threads {
            thread.join().unwrap();
        }
        // SAFETY: as above.
        let sum = shared.latch.with(|| shared.data.with(|data| unsafe { *data }));
        assert_eq!(sum, workers * times);
    });
}

#[test]
fn two_workers_twice_each() {
    every_schedule(2, 2, 0, 3);
}

#[test]
fn three_workers_once_each() {
    every_schedule(3, 1, 0, 2);
}

/// Seen to catch: a worker that takes the end of its sleep for its turn (causality).
#[test]
fn sleeps_end_early() {
    every_schedule(2, 2, 2, 3);
}
