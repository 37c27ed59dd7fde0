//! Classes of latches in a segment: numbers, which each process gives a meaning of its own.

use core::ptr;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Release};

use clearway_machine::WaitEvent;

use crate::class::{ClassHandle, LatchClass};

/// The number of a class, as latches in a segment keep it. All processes mean the same by a number if they have
/// [set](Self::set) the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct ClassNumber(pub u8);

static CLASSES: [AtomicPtr<LatchClass>; 256] = [const { AtomicPtr::new(ptr::null_mut()) }; 256];

impl ClassNumber {
    /// Has this process mean `class` by the number, before it uses a latch of the class. The counts of waits are the process's
    /// own.
    pub fn set(self, class: &'static LatchClass) {
        // Release: pairs with the Acquire in `class`.
        CLASSES[usize::from(self.0)].store(ptr::from_ref(class).cast_mut(), Release);
    }
}

impl ClassHandle for ClassNumber {
    /// The class that was set, or one without rank that is named `segment`.
    #[inline]
    fn class(self) -> &'static LatchClass {
        static UNNAMED: LatchClass = LatchClass::new("segment", WaitEvent::UserLatch, 0);
        // SAFETY: null, or from the `'static` reference in `set`.
        unsafe { CLASSES[usize::from(self.0)].load(Acquire).as_ref() }.unwrap_or(&UNNAMED)
    }
}
