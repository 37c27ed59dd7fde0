//! A segment for the tests of this folder.

use core::alloc::Layout;
use core::ops::Deref;
use core::ptr::NonNull;
use std::alloc::alloc_zeroed;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::memory::SegmentMemory;
use super::process::ProcessId;

/// Processes that do not exist: numbers above those that the kernel gives.
pub(super) const OTHER: ProcessId = ProcessId(0x7fff_fff1);
pub(super) const THIRD: ProcessId = ProcessId(0x7fff_fff2);

const SIZE: usize = 8192;

/// A segment with three workers. A process has one at a time, so its tests follow one another. Fields are dropped in this order.
pub(super) struct Memory {
    segment: SegmentMemory,
    _one: MutexGuard<'static, ()>,
}

impl Deref for Memory {
    type Target = SegmentMemory;

    fn deref(&self) -> &SegmentMemory {
        &self.segment
    }
}

pub(super) fn memory() -> Memory {
    static ONE: Mutex<()> = Mutex::new(());
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let layout = Layout::from_size_align(SIZE, 128).unwrap();
    // SAFETY: not empty.
    let bytes = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap();
    // SAFETY: bytes of its own, which are never freed.
    let segment = unsafe { SegmentMemory::create(bytes, SIZE, 3, 0) }.unwrap();
    Memory { segment, _one: one }
}
