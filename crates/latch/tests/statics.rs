//! Latches that are made by the compiler.

use clearway_latch::{LatchClass, Latched, LwLockOptions};
use clearway_machine::WaitEvent;

static CLASS: LatchClass = LatchClass::new("InStatic", WaitEvent::UserLatch, 0);
static NUMBERS: Latched<[u64; 4]> = Latched::in_static(&CLASS, LwLockOptions::BEST, [0; 4]);

#[test]
fn a_latch_in_a_static_excludes_and_is_one_of_its_class() {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..1_000).for_each(|at| NUMBERS.exclusive()[at % 4] += 1));
        }
    });
    assert_eq!(*NUMBERS.shared(), [1_000; 4]);
    let counts = CLASS.statistics();
    assert_eq!(counts.name, "InStatic");
    if let (Some(exclusive), Some(shared)) = (counts.exclusive.acquisitions, counts.shared.acquisitions) {
        assert_eq!((exclusive, shared), (4_000, 1));
    }
}
