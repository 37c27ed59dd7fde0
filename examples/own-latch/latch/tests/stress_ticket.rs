//! The ticket latch on the real machine: more threads than CPUs, and two words that must never be seen apart.

use std::cell::UnsafeCell;
use std::thread;
use std::time::Duration;

use clearway_machine::{Native, Watchdog};
use own_latch::TicketLatch;

const THREADS: u64 = 12;
const TIMES: u64 = 5_000;

/// Two words that are equal whenever the latch is free.
struct Words {
    latch: TicketLatch<Native>,
    words: UnsafeCell<[u64; 2]>,
}

// SAFETY: `words` is reached under the latch only, which is what the test checks.
unsafe impl Sync for Words {}

#[test]
fn words_are_never_seen_apart() {
    let _watchdog = Watchdog::over_test();
    let shared = Words {
        latch: TicketLatch::new(),
        words: UnsafeCell::new([0; 2]),
    };
    thread::scope(|scope| {
        for number in 0..THREADS {
            let shared = &shared;
            scope.spawn(move || {
                for time in 0..TIMES {
                    shared.latch.with(|| {
                        // SAFETY: the latch is held.
                        let words = unsafe { &mut *shared.words.get() };
                        assert_eq!(words[0], words[1]);
                        words[0] += 1;
                        // Longer than the others poll, now and then, so that they sleep.
                        if (time + number) % 1_000 == 0 {
                            thread::sleep(Duration::from_micros(200));
                        }
                        words[1] += 1;
                    });
                }
            });
        }
    });
    assert_eq!(shared.words.into_inner(), [THREADS * TIMES; 2]);
}
