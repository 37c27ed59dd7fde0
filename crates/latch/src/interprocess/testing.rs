//! A segment for the tests of this folder, in memory that a child of `fork` shares.

use core::ptr::{self, NonNull};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Segment;

/// A process has one segment at a time, so its tests follow one another: each holds this as long as it has one.
pub(super) fn one_at_a_time() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A segment with `workers` slots and a page for latches, whose memory is never given back.
pub(super) fn segment(workers: u32) -> Segment {
    let size = Segment::size_for(workers, 4096);
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping, at an address that the kernel chooses.
    let memory = unsafe { libc::mmap(ptr::null_mut(), size, protection, flags, -1, 0) };
    assert_ne!(memory, libc::MAP_FAILED);
    let memory = NonNull::new(memory.cast()).unwrap();
    // SAFETY: new memory of that size, which stays mapped.
    unsafe { Segment::create(memory, size, workers) }.unwrap()
}
