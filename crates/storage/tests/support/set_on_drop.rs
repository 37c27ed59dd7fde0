//! A flag that stops the workers of a test at its end, also when an assertion fails: a scope of threads would wait for them
//! for ever.

use std::sync::atomic::{AtomicBool, Ordering};

/// Sets the flag when it is dropped.
pub struct SetOnDrop<'a>(pub &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
