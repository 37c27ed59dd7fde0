//! Counting acquisitions by latch and call site, and the table of them. Only if `CLEARWAY_REPORT` is set.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod` | one acquisition or release: what is measured of it |
//! | `counts` | the counters, by latch and call site |
//! | `holds` | since when a latch is held, and from where |
//! | `table` | the text |
//! | `place` | where it goes, and when |

mod counts;
mod holds;
mod place;
mod table;

use std::os::raw::c_int;

use libc::{EBUSY, EOWNERDEAD};

use crate::platform::now;

/// A kind of acquisition.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Mode {
    Mutex = 1,
    Read = 2,
    Write = 3,
    Spin = 4,
}

impl Mode {
    /// Readers hold a latch together, so no one of them is the holder.
    fn is_exclusive(self) -> bool {
        self != Self::Read
    }
}

/// True for a result with which the caller has the latch.
fn has(result: c_int) -> bool {
    matches!(result, 0 | EOWNERDEAD)
}

/// Acquires the latch at `latch` by `attempt`, or if another thread has it, by `acquire`, and counts what that took.
#[cold]
#[inline(never)]
pub(crate) fn acquire(
    latch: usize,
    site: usize,
    mode: Mode,
    attempt: impl FnOnce() -> c_int,
    acquire: impl FnOnce() -> c_int,
) -> c_int {
    let mut result = attempt();
    let mut waited = None;
    if result == EBUSY {
        let began = now();
        result = acquire();
        waited = Some(now().saturating_sub(began));
    }
    if has(result) {
        acquired(latch, site, mode, waited);
    }
    result
}

/// Counts an attempt that did not wait, and its `result`.
pub(crate) fn attempted(latch: usize, site: usize, mode: Mode, result: c_int) {
    if has(result) {
        acquired(latch, site, mode, None);
    }
}

fn acquired(latch: usize, site: usize, mode: Mode, waited: Option<u64>) {
    let row = counts::row(latch, site, mode);
    row.count(waited);
    if mode.is_exclusive() {
        holds::begin(latch, row);
    }
}

/// Forgets all that was counted, and which latches are held: those that the caller holds count no longer.
///
/// Only while no other thread counts.
fn forget() {
    counts::forget();
    holds::forget();
}

/// The caller is about to release the latch at `latch`.
#[cold]
#[inline(never)]
pub(crate) fn releases(latch: usize) {
    holds::end(latch);
}
