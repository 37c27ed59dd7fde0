//! Row locks under shuttle: four sessions, random schedules, two rows. Holders that conflict are seen by counters; a session
//! left asleep, or a deadlock that stays, is shuttle's deadlock.
//!
//! `cargo test -p clearway-txn --features shuttle --test shuttle_row_holders --release`

mod support;

use std::sync::Arc;
use std::time::Duration;

use clearway_machine::Shuttle;
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;
use support::Random;
use support::row_locking::Rows;

const SESSIONS: u32 = 4;
const SCHEDULES: usize = 1_500;

/// Mutations that it is for: `RowHolders::follow` that does nothing; `escalate` that forgets the stronger mode.
#[test]
fn shuttle_row_locks_exclude_and_deadlocks_end() {
    for rows_max in [2, 10_000] {
        shuttle::check_random(
            move || {
                let rows = Arc::new(Rows::<Shuttle>::new(
                    2,
                    SESSIONS,
                    rows_max,
                    Duration::from_micros(3),
                ));
                let sessions: Vec<_> = (0..SESSIONS)
                    .map(|_| {
                        let rows = Arc::clone(&rows);
                        thread::spawn(move || {
                            let proc = rows.array.attach().unwrap();
                            let mut random = Random(thread_rng().gen_range(1..u64::MAX));
                            for _ in 0..2 {
                                rows.transaction(proc, &mut random);
                            }
                        })
                    })
                    .collect();
                for session in sessions {
                    session.join().unwrap();
                }
                assert_eq!(rows.locks.rows().held_rows(), 0);
            },
            SCHEDULES,
        );
    }
}
