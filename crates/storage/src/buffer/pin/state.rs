//! The word that holds a frame's state.
//!
//! | bits | name | meaning |
//! | --- | --- | --- |
//! | 0–17 | pin count | workers that rely on the tag |
//! | 18–20 | usage | how often the clock hand passes before it may evict |
//! | 24 | `DIRTY` | changed since it was written |
//! | 25 | `VALID` | the content is the page's |
//! | 26 | `CHANGING` | an atomic change is under way: the content latch must not be released |
//! | 27 | `REDIRTIED` | changed since the last copy for writing was made: that write leaves the page dirty |

use std::sync::atomic::Ordering;

use clearway_machine::{AtomicWord, Machine, Native};

const PIN: u32 = 1;
const PIN_MASK: u32 = (1 << 18) - 1;
const USAGE: u32 = 1 << 18;
const USAGE_MASK: u32 = 7 << 18;
const USAGE_MAX: u32 = 5 << 18;
pub(crate) const DIRTY: u32 = 1 << 24;
pub(crate) const VALID: u32 = 1 << 25;
pub(crate) const CHANGING: u32 = 1 << 26;
pub(crate) const REDIRTIED: u32 = 1 << 27;
/// The bits that a change sets.
pub(crate) const CHANGED: u32 = DIRTY | REDIRTIED;

/// Rounds of the clock hand after which a frame that stays unpinned is claimed.
pub(crate) const ROUNDS_TO_CLAIM: usize = (USAGE_MAX / USAGE) as usize + 1;

/// The state of a frame.
#[derive(Debug)]
pub(crate) struct FrameState<M: Machine = Native>(M::U32);

impl<M: Machine> FrameState<M> {
    /// Of a frame without a page.
    pub(crate) fn empty() -> Self {
        Self(M::U32::new(0))
    }

    /// Adds a pin and raises the usage. Only a map does this, for the page that it has found here. Returns the state
    /// with the pin (P3).
    #[inline]
    pub(crate) fn pin(&self) -> u32 {
        let mut state = self.0.load(Ordering::Relaxed);
        loop {
            debug_assert!(state & PIN_MASK < PIN_MASK, "a frame has too many pins");
            let mut new = state + PIN;
            if new & USAGE_MASK < USAGE_MAX {
                new += USAGE;
            }
            // Acquire: pairs with the Release in `unpin`.
            match self
                .0
                .compare_exchange_weak(state, new, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => return new,
                Err(found) => state = found,
            }
        }
    }

    /// Raises the usage without a pin, unless it is at its top. One attempt: that other workers use the page raises it
    /// as well.
    #[inline]
    pub(crate) fn raise_usage(&self) {
        let state = self.0.load(Ordering::Relaxed);
        if state & USAGE_MASK < USAGE_MAX {
            // Relaxed: a change by another worker that comes with a Release is carried on by this one.
            let _ = self
                .0
                .compare_exchange(state, state + USAGE, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(crate) fn unpin(&self) {
        // Release: what this pin's owner did comes before an eviction that sees the pin gone.
        let before = self.0.fetch_sub(PIN, Ordering::Release);
        debug_assert!(before & PIN_MASK > 0, "a frame is unpinned once too often");
    }

    /// True if there is one pin, which is the caller's.
    pub(crate) fn is_pinned_once(&self) -> bool {
        self.0.load(Ordering::Acquire) & PIN_MASK == PIN
    }

    /// Step 2: takes a pin if the frame has none and its usage is 0; else lowers the usage.
    pub(crate) fn try_claim(&self) -> bool {
        let state = self.0.load(Ordering::Relaxed);
        if state & PIN_MASK != 0 {
            return false;
        }
        let new = if state & USAGE_MASK != 0 {
            state - USAGE
        } else {
            state + PIN
        };
        let swapped = self
            .0
            .compare_exchange(state, new, Ordering::Acquire, Ordering::Relaxed)
            .is_ok();
        swapped && new & PIN_MASK != 0
    }

    /// Step 2, for a frame of a ring: takes a pin if the frame has none and its usage is 0 (F1). A usage above 0 stays.
    pub(crate) fn try_claim_unused(&self) -> bool {
        let state = self.0.load(Ordering::Relaxed);
        state & (PIN_MASK | USAGE_MASK) == 0
            && self
                .0
                .compare_exchange(state, state + PIN, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }

    /// Lowers the usage, which a pin of the caller has raised (F3).
    pub(crate) fn forget_use(&self) {
        let mut state = self.0.load(Ordering::Relaxed);
        while state & USAGE_MASK != 0 {
            // Relaxed: the caller has a pin, which orders what it does.
            match self
                .0
                .compare_exchange_weak(state, state - USAGE, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(found) => state = found,
            }
        }
    }

    /// Step 2, for a frame that is listed as free: takes a pin if the frame has none, and no page. The usage, which is
    /// that of the page it had, becomes 0.
    pub(crate) fn try_claim_free(&self) -> bool {
        let state = self.0.load(Ordering::Relaxed);
        state & (PIN_MASK | VALID) == 0
            && self
                .0
                .compare_exchange(
                    state,
                    (state & !USAGE_MASK) + PIN,
                    Ordering::Acquire,
                    Ordering::Relaxed,
                )
                .is_ok()
    }

    /// Step 3, for the worker that has claimed the frame: makes it the owner; `false` if another worker has pinned the
    /// page since, or changed it.
    pub(crate) fn try_take(&self) -> bool {
        let state = self.0.load(Ordering::Relaxed);
        if state & PIN_MASK != PIN || state & DIRTY != 0 {
            return false;
        }
        // Acquire: pairs with the Release in `unpin`.
        self.0
            .compare_exchange(state, state & !VALID, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Takes a pin if there is none, whatever the usage.
    pub(crate) fn try_pin_alone(&self) -> bool {
        let state = self.0.load(Ordering::Relaxed);
        state & PIN_MASK == 0
            && self
                .0
                .compare_exchange(state, state + PIN, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }

    /// Makes the caller, which has a pin, the owner of a frame whose page is not needed any more, changed or not;
    /// `false` if another worker has the frame pinned too.
    pub(crate) fn try_seize(&self) -> bool {
        let state = self.0.load(Ordering::Relaxed);
        let new = state & !(CHANGED | VALID);
        state & PIN_MASK == PIN
            && self
                .0
                .compare_exchange(state, new, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }

    /// A copy of the page has reached its file: the page is clean, unless it was changed after the copy was made.
    pub(crate) fn written(&self) {
        let mut state = self.0.load(Ordering::Relaxed);
        while state & REDIRTIED == 0 {
            // Release: the write comes before a checkpoint that sees the page clean and syncs the file.
            match self
                .0
                .compare_exchange(state, state & !DIRTY, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(found) => state = found,
            }
        }
    }

    pub(crate) fn has(&self, bits: u32) -> bool {
        self.0.load(Ordering::Acquire) & bits != 0
    }

    pub(crate) fn set(&self, bits: u32) {
        self.0.fetch_or(bits, Ordering::Release);
    }

    pub(crate) fn clear(&self, bits: u32) {
        self.0.fetch_and(!bits, Ordering::Release);
    }
}
