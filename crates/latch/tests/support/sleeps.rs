//! A class whose workers sleep at once, so that every wait is a sleep.

use clearway_latch::{ClassOf, LatchClass, SpinPolicy};
use clearway_machine::WaitEvent;

#[derive(Debug)]
pub struct Sleeps;

impl ClassOf for Sleeps {
    fn class() -> &'static LatchClass {
        static CLASS: LatchClass =
            LatchClass::new("sleeps", WaitEvent::UserLatch, 0).spinning(SpinPolicy::None);
        &CLASS
    }
}
