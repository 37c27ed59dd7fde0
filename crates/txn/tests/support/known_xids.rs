//! A plain set against which the known xids are held.

use std::collections::BTreeSet;

use clearway_machine::Machine;
use clearway_txn::{KnownXids, KnownXidsOptions, ReplayedXids, RunningTransactions, RunningXids, Xid};

/// A step of replay.
#[derive(Debug, Clone)]
pub enum Step {
    Add(u64, u64),
    Remove(u64),
    Tree(u64, Vec<u64>),
    Preceding(u64, Vec<u64>),
    Idle,
}

pub fn xids(numbers: &[u64]) -> Vec<Xid> {
    numbers.iter().copied().map(Xid).collect()
}

impl Step {
    /// Takes the step; whether it was allowed.
    pub fn replay<M: Machine>(&self, replay: &mut ReplayedXids<'_, M>) -> bool {
        match self {
            Self::Add(from, to) => return replay.add(Xid(*from), Xid(*to)).is_ok(),
            Self::Remove(xid) => replay.remove(Xid(*xid)),
            Self::Tree(xid, children) => replay.remove_tree(Xid(*xid), &xids(children)),
            Self::Preceding(xid, prepared) => replay.remove_preceding(Xid(*xid), &xids(prepared)),
            Self::Idle => replay.idle(),
        }
        true
    }
}

/// The model that the variants must be equal to.
#[derive(Debug, Clone)]
pub struct Model {
    pub running: BTreeSet<u64>,
    pub next: u64,
    pub newest_ended: u64,
    pub capacity: usize,
}

impl Model {
    /// After a record in which these run and `next` is next.
    pub fn begun(running: &[u64], next: u64, capacity: u32) -> Self {
        Self {
            running: running.iter().copied().collect(),
            next,
            newest_ended: next - 1,
            capacity: capacity as usize,
        }
    }

    fn end(&mut self, xid: u64) {
        if self.running.remove(&xid) {
            self.newest_ended = self.newest_ended.max(xid);
        }
    }

    /// Takes the step; whether it was allowed.
    pub fn apply(&mut self, step: &Step) -> bool {
        match step {
            Step::Add(from, to) => {
                let wanted = (to + 1).saturating_sub(*from) as usize;
                if *from < self.next || to < from || self.running.len() + wanted > self.capacity {
                    return false;
                }
                self.running.extend(*from..=*to);
                self.next = to + 1;
            }
            Step::Remove(xid) => self.end(*xid),
            Step::Tree(xid, children) => {
                self.end(*xid);
                children.iter().for_each(|child| self.end(*child));
            }
            Step::Preceding(xid, prepared) => {
                let preceding: Vec<_> = self.running.range(..xid).copied().collect();
                for xid in preceding {
                    if !prepared.contains(&xid) {
                        self.end(xid);
                    }
                }
            }
            Step::Idle => {}
        }
        true
    }

    pub fn running_below(&self, xmax: u64) -> Vec<Xid> {
        self.running.range(..xmax).copied().map(Xid).collect()
    }

    /// Xmax and list of a snapshot.
    pub fn snapshot(&self) -> (Xid, Vec<Xid>) {
        (
            Xid(self.newest_ended + 1),
            self.running_below(self.newest_ended + 1),
        )
    }
}

/// Known xids after a record in which these run and `next` is next.
pub fn begun<M: Machine>(options: KnownXidsOptions, running: &[u64], next: u64) -> KnownXids<M> {
    let known = KnownXids::new(options);
    let running = xids(running);
    let record = RunningTransactions {
        next: Xid(next),
        oldest_running: running.first().copied().unwrap_or(Xid(next)),
        newest_ended: Xid(next - 1),
        running: &running,
        overflowed: false,
        prepared: &[],
    };
    known.replay().unwrap().apply(&record).unwrap();
    known
}

/// Xmax and list of a snapshot of now.
pub fn taken<M: Machine>(known: &KnownXids<M>) -> (Xid, Vec<Xid>) {
    let mut running = RunningXids::default();
    known.snapshot(&mut running).unwrap();
    (running.xmax(), running.xids().to_vec())
}
