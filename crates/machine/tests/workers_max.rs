//! The most worker slots, chosen by the program. In one test: a process has one table.

use clearway_machine::{Machine, Native, WorkersInUse};

// Mutation: the table is made with the default bound whatever was asked for.
#[test]
fn a_program_chooses_the_most_slots_before_the_first_wait() {
    const SLOTS: usize = 5_000;
    assert_eq!(Native::set_workers_max(SLOTS), Ok(()));
    assert_eq!(Native::workers().capacity(), SLOTS);
    assert_eq!(Native::workers().capacity_at_first(), 4_096);
    let mut claimed: Vec<_> = std::iter::from_fn(|| Native::workers().claim()).collect();
    claimed.sort();
    claimed.dedup();
    assert_eq!(claimed.len(), SLOTS);
    assert_eq!(Native::known_worker(), None);
    for worker in claimed {
        // SAFETY: claimed above, and no thread goes by it.
        unsafe { Native::workers().release(worker) };
    }
    assert!(Native::known_worker().is_some());
    assert_eq!(Native::set_workers_max(10_000), Err(WorkersInUse));
}
