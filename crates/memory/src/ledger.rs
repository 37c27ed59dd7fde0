//! Large requests are weighed together.
//!
//! Two sessions that each look whether there are 100 MB find the same 100 MB. So a request is written down before the
//! look, and the look is for all that is written down:
//!
//! ```text
//!   A  adds 100 ──▶ 100 outstanding ──▶ has 100? yes ──▶ allocates ──▶ takes 100 off
//!   B      adds 100 ──▶ 200 outstanding ──▶ has 200? no ──▶ takes its 100 off: 53200
//! ```
//!
//! Invariant: memory that the system has is at least what is outstanding among requests that were granted.
//!
//! - A granted request was looked for together with every granted one that it saw outstanding. Of two requests, one added
//!   later than the other and saw it, unless that was taken off: then its memory is allocated, and the look of the later
//!   one finds the less.
//! - A request is taken off after its memory was allocated, never before: in between, both count, which may refuse
//!   another request that would have fitted. It never grants one that does not.
//!
//! Costs: two read-modify-writes of one shared word for each request of 1 MiB and more.

use std::sync::atomic::Ordering;

use clearway_machine::{AtomicWord, CoreU64, Machine, Native};

/// Bytes that are promised and not yet allocated, so that large requests are weighed together.
#[derive(Debug)]
pub struct Ledger<M: Machine = Native> {
    outstanding: M::U64,
}

impl<M: Machine> Default for Ledger<M> {
    fn default() -> Self {
        Ledger {
            outstanding: AtomicWord::new(0),
        }
    }
}

impl Ledger<Native> {
    /// An empty one, usable in statics.
    pub const fn new_const() -> Self {
        Ledger {
            outstanding: CoreU64::new_const(0),
        }
    }
}

impl<M: Machine> Ledger<M> {
    /// Promises `bytes` if `has` says that the system has what it is given: these and all other promises. Of a promise
    /// that was given, each byte goes to [`kept`](Self::kept) once.
    pub fn ask(&self, bytes: u64, has: impl FnOnce(u64) -> bool) -> bool {
        // Acquire pairs with the Release in `kept`: a promise that is not in the sum any more was allocated before the
        // look. AcqRel, so that the look does not move before the sum.
        let together = self.outstanding.fetch_add(bytes, Ordering::AcqRel) + bytes;
        let granted = has(together);
        if !granted {
            self.kept(bytes);
        }
        granted
    }

    /// These promised bytes have been allocated, or will not be.
    pub fn kept(&self, bytes: u64) {
        self.outstanding.fetch_sub(bytes, Ordering::Release);
    }

    /// Bytes that are promised and not yet allocated.
    pub fn outstanding(&self) -> u64 {
        self.outstanding.load(Ordering::Relaxed)
    }
}
