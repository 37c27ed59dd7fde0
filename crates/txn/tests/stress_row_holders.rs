//! Row locks under real threads.

mod support;

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clearway_machine::{Native, Watchdog};
use clearway_txn::ProcId;
use support::Random;
use support::row_locking::Rows;

const SESSIONS: u32 = 8;
const RUN: Duration = Duration::from_secs(2);

/// Sessions lock three rows in random strengths and give them new versions; some have so many that they get the relation
/// in their place. Counters show that holders never conflict; at the end nothing is held.
#[test]
fn row_locks_never_conflict_and_every_wait_ends() {
    let _watchdog = Watchdog::over_test();
    for rows_max in [2, 10_000] {
        let rows = Rows::<Native>::new(3, SESSIONS, rows_max, Duration::from_millis(2));
        let (ended, victims) = (AtomicU64::new(0), AtomicU64::new(0));
        let started = Instant::now();
        thread::scope(|scope| {
            for number in 0..SESSIONS {
                let (rows, ended, victims) = (&rows, &ended, &victims);
                scope.spawn(move || {
                    let proc = rows.array.attach().unwrap();
                    let mut random = Random(u64::from(number) + 77);
                    while started.elapsed() < RUN {
                        if rows.transaction(proc, &mut random) {
                            victims.fetch_add(1, Ordering::Relaxed);
                        }
                        ended.fetch_add(1, Ordering::Relaxed);
                    }
                    assert!(proc < ProcId(SESSIONS));
                });
            }
        });
        assert!(ended.load(Ordering::Relaxed) > victims.load(Ordering::Relaxed));
        assert_eq!(rows.locks.rows().held_rows(), 0);
        assert_eq!(rows_max == 2, rows.locks.rows().escalations() > 0);
    }
}
