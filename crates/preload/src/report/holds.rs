//! Since when each latch is held by its one holder, and from which call.
//!
//! A table of a fixed size, as that of the counters. An entry belongs to a latch once its address is written, and is changed by the
//! latch's holder alone, which the latch itself orders. A latch without room is not measured.

use core::ptr;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};

use super::counts::Row;
use crate::platform::now;

/// Entries; a power of two.
const ENTRIES: usize = 1 << 13;

/// Entries that a search looks at.
const PROBES: usize = 64;

struct Hold {
    latch: AtomicUsize,
    since_ns: AtomicU64,
    row: AtomicPtr<Row>,
    /// Acquisitions by the holder, of a recursive mutex.
    times: AtomicU32,
}

static HOLDS: [Hold; ENTRIES] = [const {
    Hold {
        latch: AtomicUsize::new(0),
        since_ns: AtomicU64::new(0),
        row: AtomicPtr::new(ptr::null_mut()),
        times: AtomicU32::new(0),
    }
}; ENTRIES];

fn of(latch: usize, claims: bool) -> Option<&'static Hold> {
    let hash = ((latch >> 3) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    for step in 0..PROBES {
        let hold = &HOLDS[(hash as usize + step) & (ENTRIES - 1)];
        let found = match hold.latch.load(Relaxed) {
            0 if claims => match hold.latch.compare_exchange(0, latch, Relaxed, Relaxed) {
                Ok(_) => latch,
                Err(found) => found,
            },
            found => found,
        };
        if found == latch {
            return Some(hold);
        }
        if found == 0 {
            return None;
        }
    }
    None
}

/// Forgets all holders.
pub(super) fn forget() {
    for hold in HOLDS.iter().filter(|hold| hold.latch.load(Relaxed) != 0) {
        hold.times.store(0, Relaxed);
        hold.latch.store(0, Relaxed);
    }
}

/// The caller has acquired `latch` exclusively, and counted that in `row`.
pub(super) fn begin(latch: usize, row: &'static Row) {
    let Some(hold) = of(latch, true) else {
        return;
    };
    let times = hold.times.load(Relaxed);
    hold.times.store(times + 1, Relaxed);
    if times == 0 {
        hold.row.store(ptr::from_ref(row).cast_mut(), Relaxed);
        hold.since_ns.store(now(), Relaxed);
    }
}

/// The caller, which holds `latch`, is about to release it. Nothing, if it is a reader.
pub(super) fn end(latch: usize) {
    let Some(hold) = of(latch, false) else {
        return;
    };
    let Some(times) = hold.times.load(Relaxed).checked_sub(1) else {
        return;
    };
    hold.times.store(times, Relaxed);
    if times > 0 {
        return;
    }
    let held = now().saturating_sub(hold.since_ns.load(Relaxed));
    // SAFETY: null, or a row, which is there for as long as the process lives.
    if let Some(row) = unsafe { hold.row.load(Relaxed).as_ref() } {
        row.hold_ns_max.fetch_max(held, Relaxed);
    }
}
