//! Classes of latches: a name, a place in the order of latches, and the counts of waits.

use std::ffi::{CStr, c_char};

use clearway_latch::{LatchClass, ModeStatistics, SpinPolicy};
use clearway_machine::WaitEvent;

/// A class. It is never freed.
pub struct clearway_class_t(LatchClass);

/// The waits for latches of a class in one mode, since the class was made.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct clearway_waits_t {
    /// Acquisitions that were not granted at the first attempt.
    pub conflicts: u64,
    /// Looks at the latch while spinning.
    pub spins: u64,
    /// Sleeps.
    pub sleeps: u64,
    /// The median of the waits, nanoseconds; the end of its power of two. 0 if there were none.
    pub p50_ns: u64,
    /// The 99th percentile, likewise.
    pub p99_ns: u64,
}

impl From<&ModeStatistics> for clearway_waits_t {
    fn from(waits: &ModeStatistics) -> Self {
        Self {
            conflicts: waits.conflicts,
            spins: waits.spins,
            sleeps: waits.sleeps,
            p50_ns: waits.wait_ns_at(0.5).unwrap_or(0),
            p99_ns: waits.wait_ns_at(0.99).unwrap_or(0),
        }
    }
}

/// The counts of a class, by mode.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct clearway_class_statistics_t {
    /// Waits for exclusive mode.
    pub exclusive: clearway_waits_t,
    /// Waits for shared mode.
    pub shared: clearway_waits_t,
    /// Waits until a latch is free, without wanting it.
    pub until_free: clearway_waits_t,
}

impl clearway_class_t {
    /// The class that a latch is made with.
    ///
    /// # Safety
    /// `class` was made by [`clearway_class_new`].
    pub(crate) unsafe fn of(class: *const clearway_class_t) -> &'static LatchClass {
        // SAFETY: classes are never freed.
        &unsafe { crate::at(class) }.0
    }
}

/// A new class. `rank` is its place in the order in which a thread takes latches, ascending, which builds with debug
/// assertions check; 0 for a latch without a place. `spins` is the number of looks at a latch before its waiter sleeps, or
/// 0 for a number that is learned. The name is copied. Returns NULL if the name is NULL or not UTF-8. A class is never
/// freed, so a program makes each of its classes once.
///
/// # Safety
/// `name` is NULL or a string that ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_class_new(
    name: *const c_char,
    rank: u16,
    spins: u32,
) -> *const clearway_class_t {
    if name.is_null() {
        return std::ptr::null();
    }
    // SAFETY: the caller's.
    let Ok(name) = unsafe { CStr::from_ptr(name) }.to_str() else {
        return std::ptr::null();
    };
    let class = LatchClass::new(String::from(name).leak(), WaitEvent::UserLatch, rank);
    let class = match spins {
        0 => class,
        spins => class.spinning(SpinPolicy::Fixed(spins)),
    };
    Box::leak(Box::new(clearway_class_t(class)))
}

/// Writes the counts of a class to `statistics`.
///
/// # Safety
/// `class` was made by `clearway_class_new`; `statistics` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_class_statistics(
    class: *const clearway_class_t,
    statistics: *mut clearway_class_statistics_t,
) {
    // SAFETY: the caller's.
    let counts = unsafe { clearway_class_t::of(class) }.statistics();
    let counts = clearway_class_statistics_t {
        exclusive: (&counts.exclusive).into(),
        shared: (&counts.shared).into(),
        until_free: (&counts.until_free).into(),
    };
    // SAFETY: the caller's.
    unsafe { statistics.write(counts) };
}
