//! The number of worker slots, chosen by the program. In one test: a process has one table.

use std::sync::Barrier;

use clearway_machine::{Machine, Native, WorkersInUse};

// Mutation: the table is made with the default number whatever was asked for. 4,200 threads do not all get one.
#[test]
fn a_program_chooses_the_number_of_slots_before_the_first_wait() {
    const THREADS: usize = 4_200;
    assert_eq!(Native::set_workers_max(THREADS + 100), Ok(()));
    let together = Barrier::new(THREADS);
    let known = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let thread = std::thread::Builder::new().stack_size(64 << 10);
                thread
                    .spawn_scoped(scope, || {
                        let worker = Native::known_worker();
                        // Slots are given back at the end, so all take theirs first.
                        together.wait();
                        worker
                    })
                    .unwrap()
            })
            .collect();
        let mut known: Vec<_> = threads
            .into_iter()
            .filter_map(|thread| thread.join().unwrap())
            .collect();
        known.sort();
        known.dedup();
        known.len()
    });
    assert_eq!(known, THREADS);
    assert_eq!(Native::set_workers_max(10_000), Err(WorkersInUse));
    assert_eq!(Native::workers().capacity(), THREADS + 100);
}
