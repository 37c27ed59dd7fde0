//! The number of times that a session's transaction has gone back to a savepoint; `transaction_wait` says what for.

use std::sync::atomic::Ordering::{Acquire, Release};

use clearway_machine::{AtomicWord, Machine};

use crate::Xid;

/// The take-backs of a transaction: their number.
#[derive(Debug)]
pub(crate) struct TakeBacks<M: Machine> {
    xid: M::U64,
    count: M::U64,
}

impl<M: Machine> TakeBacks<M> {
    pub(crate) fn none() -> Self {
        Self {
            xid: M::U64::new(0),
            count: M::U64::new(0),
        }
    }

    /// Those of `xid`. The count of a slot's transaction never goes down.
    pub(crate) fn of(&self, xid: Xid) -> u64 {
        // Acquire, both: pair with the stores of `set`. The waiter sees the rows that were freed before, and with the xid a
        // count that is not that of a transaction before.
        match self.xid.load(Acquire) == xid.0 {
            true => self.count.load(Acquire),
            false => 0,
        }
    }

    pub(crate) fn set(&self, xid: Xid, count: u64) {
        self.count.store(count, Release);
        self.xid.store(xid.0, Release);
    }
}
