//! Memory is scarce: the statement whose session holds the most ends.
//!
//! # Example
//! `server_memory` is 1 GB. A holds 600 MB, B 300 MB, C 2 MB, and B's next row is the one too many.
//!
//! ```text
//!   ms  bar      A (600)            B (300)            C (2)
//!    0  512 MB   looks: ends        looks: goes on     looks: goes on
//!    …           frees 600 MB       goes on            goes on
//!    8           -                  looks: 402 MB of 1 GB are used; it is over
//! ```
//!
//! Had A waited for its client and not looked, the bar would have come down to 256 MB after 2 ms, and B had ended.
//!
//! # Steps
//! 1. The allocator raises *attention* when the system has refused memory, or when more is allocated than when the
//!    engine last looked and a part of what was left then.
//! 2. A session that finds attention raised, where it looks for cancel requests and at each row, looks at the process:
//!    is it beyond `server_memory`, or does the system still refuse [`HEADROOM`](super::HEADROOM)? One session looks, at
//!    most once in a millisecond. Before it believes so, it gives back what the allocator holds of freed memory. If there
//!    is enough, attention is lowered.
//! 3. Otherwise a *bar* is set at half of what is allocated, and halved every 2 ms down to [`BAR_MIN`]. A session that
//!    looks and holds as much as the bar ends its statement with 53200. So the largest ends first, within a factor of
//!    two, and none has to know of the others.
//! 4. The session that ends its statement raises the bar again for 20 ms: its memory is freed meanwhile, and no other session
//!    ends a statement for it.
//! 5. Meanwhile new sessions are refused.
//!
//! # Rules
//! - R1: a session that holds less than [`BAR_MIN`] is never ended. What is short then is held by none that could be
//!   ended, and small statements go on from the reserve.
//! - R2: a session counts with all it has, not with its statement alone: parameters, portals and prepared statements too.
//!   What it keeps when its statement ends has limits of its own (docs/limits.md).
//! - R3: attention is lowered before the look. A refusal after that raises it again.
//!
//! # Costs
//! One load a row. While memory is scarce, a read of `/proc/self/statm` a millisecond.

use std::sync::atomic::{AtomicU64, Ordering};

use super::process::ATTENTION;
use super::{HEADROOM, LIMIT, ProcessMemory, megabytes, out_of_memory, process, used};
use crate::clock::running_us;
use clearway_sql::error::EngineError;

/// The least that a session holds whose statement is ended.
const BAR_MIN: u64 = 1 << 20;

/// The bar is halved each time so many microseconds have passed.
const HALVING_US: u64 = 2_000;

/// The time that a statement has to free what it held.
const GRACE_US: u64 = 20_000;

/// The least time between two looks at the process.
const LOOK_US: u64 = 1_000;

/// The next look is due when a sixteenth of what is left has been allocated, within these bounds.
const MARK_MIN: u64 = 1 << 20;
const MARK_MAX: u64 = 64 << 20;

/// The time of the last look at the process.
static LOOKED_US: AtomicU64 = AtomicU64::new(0);

/// The time at which the bar was set, by `clock::running_us`; 0: memory is not scarce.
static BAR_US: AtomicU64 = AtomicU64::new(0);

/// Bytes that were allocated when the bar was set.
static BAR_OF: AtomicU64 = AtomicU64::new(0);

/// An engine begins: the allocator is told when to raise attention.
pub(super) fn begin() {
    if let Some(process) = process::installed() {
        recover(process);
    }
}

/// True if sessions are to look: at each row.
#[inline(always)]
pub(crate) fn attention() -> bool {
    // Relaxed: a hint; what follows from it is looked at anew.
    ATTENTION.load(Ordering::Relaxed)
}

/// True if the statement of a session that holds `bytes` is to end, so that others can go on.
#[cold]
pub(crate) fn must_end(bytes: u64) -> bool {
    if !look() {
        return false;
    }
    let (since_us, now_us) = (BAR_US.load(Ordering::Relaxed), running_us());
    let Some(waited_us) = now_us.checked_sub(since_us).filter(|_| since_us != 0) else {
        return false;
    };
    bytes >= bar(BAR_OF.load(Ordering::Relaxed), waited_us)
        // One at a time.
        && BAR_US
            .compare_exchange(since_us, now_us + GRACE_US, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
}

/// The bar at so many microseconds after it was set.
fn bar(of: u64, waited_us: u64) -> u64 {
    let halvings = 1 + waited_us / HALVING_US;
    of.checked_shr(u32::try_from(halvings).unwrap_or(u32::MAX))
        .unwrap_or(0)
        .max(BAR_MIN)
}

/// Looks whether memory is scarce, if it is time to.
pub(super) fn look() -> bool {
    let Some(process) = process::installed() else {
        return false;
    };
    let (last_us, now_us) = (LOOKED_US.load(Ordering::Relaxed), running_us());
    let due = now_us >= last_us + LOOK_US
        && LOOKED_US
            .compare_exchange(last_us, now_us, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok();
    if !due {
        return BAR_US.load(Ordering::Relaxed) != 0;
    }
    ATTENTION.store(false, Ordering::Relaxed);
    if !is_scarce(process) {
        recover(process);
        return false;
    }
    if BAR_US.load(Ordering::Relaxed) == 0 {
        process.give_back();
        if !is_scarce(process) {
            recover(process);
            return false;
        }
        BAR_OF.store(process.allocated_bytes(), Ordering::Relaxed);
        BAR_US.store(now_us, Ordering::Relaxed);
    }
    ATTENTION.store(true, Ordering::Relaxed);
    true
}

fn is_scarce(process: &dyn ProcessMemory) -> bool {
    is_beyond_limit() || process.is_short() && !process.has(HEADROOM)
}

fn is_beyond_limit() -> bool {
    let limit = LIMIT.load(Ordering::Relaxed);
    limit != 0 && used() > limit
}

/// There is enough.
fn recover(process: &dyn ProcessMemory) {
    BAR_US.store(0, Ordering::Relaxed);
    let mark = match LIMIT.load(Ordering::Relaxed) {
        0 => u64::MAX,
        limit => process.allocated_bytes() + (limit.saturating_sub(used()) / 16).clamp(MARK_MIN, MARK_MAX),
    };
    process.recovered(mark);
}

/// 53200 for a session that holds `bytes`, or for one that would begin (0).
#[cold]
pub(crate) fn scarcity_error(bytes: u64) -> EngineError {
    let limit = LIMIT.load(Ordering::Relaxed);
    let mut detail = if limit != 0 && used() > limit {
        format!("The server has {} MB of {} MB.", used() >> 20, limit >> 20)
    } else {
        format!(
            "The server has {} MB, and the operating system refuses more.",
            used() >> 20
        )
    };
    if bytes > 0 {
        detail += &format!(
            " This session holds {} MB, as much as any.",
            megabytes(bytes as usize)
        );
    }
    out_of_memory(
        detail,
        "Use fewer or shorter values at a time, or give the server more memory (server_memory, ulimit -v).",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_comes_down_from_half_of_all_to_its_least() {
        assert_eq!(bar(1 << 30, 0), 512 << 20);
        assert_eq!(bar(1 << 30, HALVING_US - 1), 512 << 20);
        assert_eq!(bar(1 << 30, HALVING_US), 256 << 20);
        assert_eq!(bar(1 << 30, 20 * HALVING_US), BAR_MIN);
        assert_eq!(bar(u64::MAX, u64::MAX), BAR_MIN);
        assert_eq!(bar(0, 0), BAR_MIN);
    }
}
