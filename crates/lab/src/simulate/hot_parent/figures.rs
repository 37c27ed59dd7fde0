//! Measurements of a hot parent beside its throughput.

use std::cell::Cell;
use std::rc::Rc;

use clearway_sim::clock_ns;
use serde::{Deserialize, Serialize};

use super::Done;
use super::parents::Parents;
use crate::simulate::meter::Meter;

/// The results of transactions that share rows, in the measured window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HotParentFigures {
    /// Transactions that had the row and had not ended when one got it, itself among them: the mean.
    pub sharers: f64,
    /// Part of the transactions' time from asking for the row to having it. Giving it back, which only sharers in memory do, is
    /// not in it.
    pub lock_share: f64,
    /// Transactions that had the row alone, FOR UPDATE.
    pub alone: u64,
}

/// The counts that all clients report to.
pub(crate) struct Tally {
    meter: Rc<Meter>,
    parents: Rc<Parents>,
    transactions: Cell<u64>,
    alone: Cell<u64>,
    sharers: Cell<u64>,
    lock_ns: Cell<u64>,
    total_ns: Cell<u64>,
}

impl Tally {
    pub(super) fn within(meter: Rc<Meter>, parents: Rc<Parents>) -> Rc<Self> {
        Rc::new(Self {
            meter,
            parents,
            transactions: Cell::default(),
            alone: Cell::default(),
            sharers: Cell::default(),
            lock_ns: Cell::default(),
            total_ns: Cell::default(),
        })
    }

    /// A transaction that began at `began_ns` has ended now.
    pub(super) fn done(&self, began_ns: u64, done: &Done) {
        if !self.meter.done(began_ns) {
            return;
        }
        for (count, more) in [
            (&self.transactions, 1),
            (&self.alone, u64::from(done.is_alone)),
            (&self.sharers, u64::from(done.sharers)),
            (&self.lock_ns, done.lock_ns),
            (&self.total_ns, clock_ns() - began_ns),
        ] {
            count.set(count.get() + more);
        }
    }

    /// The figures, when all transactions have ended.
    pub(crate) fn figures(&self) -> HotParentFigures {
        assert!(
            self.parents.all_are_free(),
            "a transaction has ended and has its parent still"
        );
        HotParentFigures {
            sharers: self.sharers.get() as f64 / self.transactions.get().max(1) as f64,
            lock_share: self.lock_ns.get() as f64 / self.total_ns.get().max(1) as f64,
            alone: self.alone.get(),
        }
    }
}
