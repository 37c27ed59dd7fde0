//! More threads than there are worker slots from the start wait at once: slots are added, and each thread has one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clearway_latch::{LatchClass, LwLock, LwLockOptions, LwLockVariant, SpinPolicy};
use clearway_machine::{Machine, Native, Switch, WaitEvent, Watchdog};

const THREADS: usize = 4_300;

static CLASS: LatchClass = LatchClass::new("growth", WaitEvent::UserLatch, 0).spinning(SpinPolicy::None);

/// Without growth the threads without a slot wait for one that the others give back only after they have had the latch, and
/// the count of sleepers does not come.
#[test]
fn threads_beyond_the_first_slots_wait_at_one_latch() {
    let _watchdog = Watchdog::over_test();
    let workers = Native::workers();
    assert!(THREADS > workers.capacity_at_first());
    let latches: Vec<LwLock> = LwLockVariant::ALL
        .iter()
        .map(|&variant| LwLock::new(&CLASS, LwLockOptions::from(variant)))
        .collect();
    let acquired = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let guards: Vec<_> = latches.iter().map(LwLock::exclusive).collect();
        for _ in 0..THREADS {
            let threads = std::thread::Builder::new().stack_size(64 << 10);
            let one_after_another = || {
                for latch in &latches {
                    let _guard = latch.exclusive();
                    acquired.fetch_add(1, Ordering::Relaxed);
                }
            };
            threads.spawn_scoped(scope, one_after_another).unwrap();
        }
        let sleepers = || {
            let all = workers.claimed();
            all.filter(|(_, slot)| slot.wait_event() == WaitEvent::UserLatch)
                .count()
        };
        for guard in guards {
            while sleepers() < THREADS {
                std::thread::sleep(Duration::from_millis(1));
            }
            drop(guard);
        }
    });
    assert_eq!(acquired.into_inner(), THREADS * latches.len());
}
