//! The array of running transactions.
//!
//! Every session attaches to a slot. Two dense arrays mirror what scans need, one cache line serving eight slots: `xids[]`
//! (the running transaction of each slot, 0 = none) and `xmins[]` (the oldest xid each slot's snapshots may need).
//!
//! # Rules
//! - R1: an xid is stored in `xids[]` under XidGen before the next xid can be handed out.
//! - R2: an xid leaves `xids[]`, and `latest_completed` moves, under ProcArray exclusive; its status is in the commit log
//!   before that. So whoever finds an xid *not* in the array finds its end in the commit log.
//! - R3: a snapshot is taken under ProcArray shared, and installs its xmin before it lets go.
//!
//! # Why a snapshot is consistent
//! `xmax` is `latest_completed + 1`. Take any xid x below it that has not ended. Some y > x had ended, so y was handed out;
//! by R1 x was stored before that, and y's end (R2) comes before our shared acquire: we see x in the array. And as no
//! transaction ends while we scan (R2, R3), we see either all or nothing of each one.
//!
//! # Why the horizon cannot pass a snapshot
//! The horizon is the least of `xids[]` and `xmins[]` under ProcArray shared. While a snapshot is being taken the xids it
//! saw running cannot leave; afterwards its xmin stands in `xmins[]`. There is no instant with neither.
//!
//! Slots are handed out lowest first and scans stop at the highest ever attached, so the scanned part stays dense without
//! moving entries.
//!
//! Origin: PostgreSQL's procarray.c; the dense arrays are those of its version 14.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_latch::{LatchClass, Latched, LwLock, LwLockAlgorithm};
use clearway_machine::{AtomicWord, Machine, Native, Padded, WaitEvent};

use crate::{Snapshot, Xid};

static XID_GEN: LatchClass = LatchClass::new("XidGen", WaitEvent::XidGen, 300);
static PROC_ARRAY: LatchClass = LatchClass::new("ProcArray", WaitEvent::ProcArray, 310);

/// A session's slot in the array; not the thread's worker slot, since one thread may drive several sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcId(pub u32);

/// How snapshots are made; the switch `snapshot`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum SnapshotSource {
    /// Scan the array each time.
    #[default]
    Scan,
}

/// How a transaction leaves the array; the switch `proc_clear`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ProcClear {
    /// Each by itself, under the exclusive latch.
    #[default]
    Single,
}

/// All slots are attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("all {capacity} session slots are in use")]
pub struct ProcArrayFull {
    /// How many slots there are.
    pub capacity: u32,
}

/// The array of running transactions.
#[derive(Debug)]
pub struct ProcArray<M: Machine = Native> {
    xids: Box<[M::U64]>,
    xmins: Box<[M::U64]>,
    attached: Latched<Vec<bool>, M>,
    /// One past the highest slot ever attached.
    scan_end: M::U32,
    latch: Padded<LwLock<M>>,
    xid_gen: Padded<LwLock<M>>,
    next_xid: M::U64,
    latest_completed: M::U64,
}

impl<M: Machine> ProcArray<M> {
    /// An array for `capacity` sessions; `first_xid` is the next to be handed out, and all before it have ended.
    pub fn new(capacity: u32, algorithm: LwLockAlgorithm, first_xid: Xid) -> Self {
        assert!(first_xid >= Xid::FIRST_NORMAL, "xids below {} are reserved", Xid::FIRST_NORMAL);
        Self {
            xids: (0..capacity).map(|_| M::U64::new(0)).collect(),
            xmins: (0..capacity).map(|_| M::U64::new(0)).collect(),
            attached: Latched::new(&PROC_ARRAY, algorithm, vec![false; capacity as usize]),
            scan_end: M::U32::new(0),
            latch: Padded(LwLock::new(&PROC_ARRAY, algorithm)),
            xid_gen: Padded(LwLock::new(&XID_GEN, algorithm)),
            next_xid: M::U64::new(first_xid.0),
            latest_completed: M::U64::new(first_xid.0 - 1),
        }
    }

    /// How many sessions can be attached at once.
    pub fn capacity(&self) -> u32 {
        self.xids.len() as u32
    }

    /// Takes the lowest free slot.
    pub fn attach(&self) -> Result<ProcId, ProcArrayFull> {
        let mut attached = self.attached.exclusive();
        let Some(free) = attached.iter().position(|taken| !taken) else {
            return Err(ProcArrayFull { capacity: self.capacity() });
        };
        attached[free] = true;
        let end = free as u32 + 1;
        if self.scan_end.load(Relaxed) < end {
            // Release: pairs with the Acquire in `scan_end`; under the latch, so that no scan is half-way.
            let _exclusive = self.latch.exclusive();
            self.scan_end.store(end, Release);
        }
        Ok(ProcId(free as u32))
    }

    /// Returns a slot whose transaction has ended.
    pub fn detach(&self, proc: ProcId) {
        assert_eq!(self.xids[proc.0 as usize].load(Relaxed), 0, "a session detaches inside transaction");
        self.clear_xmin(proc);
        let mut attached = self.attached.exclusive();
        assert!(attached[proc.0 as usize], "slot {} is detached twice", proc.0);
        attached[proc.0 as usize] = false;
    }

    fn scan_end(&self) -> usize {
        self.scan_end.load(Acquire) as usize
    }

    /// The slots a scan looks at.
    pub(crate) fn slots(&self) -> impl Iterator<Item = ProcId> {
        (0..self.scan_end() as u32).map(ProcId)
    }

    /// Hands out the next xid to `proc`.
    pub fn assign_xid(&self, proc: ProcId) -> Xid {
        let _exclusive = self.xid_gen.exclusive();
        let xid = self.next_xid.load(Relaxed);
        assert_eq!(self.xids[proc.0 as usize].load(Relaxed), 0, "a transaction gets a second xid");
        // R1: stored first. Release: a scan that sees it sees nothing less than its predecessors.
        self.xids[proc.0 as usize].store(xid, Release);
        self.next_xid.store(xid + 1, Release);
        Xid(xid)
    }

    /// The xid that will be handed out next; all below it have been.
    pub fn next_xid(&self) -> Xid {
        Xid(self.next_xid.load(Acquire))
    }

    /// The xid `proc` is running, if it has one.
    pub fn xid_of(&self, proc: ProcId) -> Option<Xid> {
        Some(Xid(self.xids[proc.0 as usize].load(Acquire))).filter(|xid| xid.is_valid())
    }

    /// The xmin `proc` holds back the horizon with, if any.
    pub fn xmin_of(&self, proc: ProcId) -> Option<Xid> {
        Some(Xid(self.xmins[proc.0 as usize].load(Acquire))).filter(|xid| xid.is_valid())
    }

    /// Takes a snapshot into `snapshot`, reusing its memory, and holds back the horizon for `proc` until
    /// [`clear_xmin`](Self::clear_xmin) or [`end`](Self::end). A slot keeps the oldest xmin it has installed.
    pub fn snapshot(&self, proc: ProcId, snapshot: &mut Snapshot) {
        snapshot.running.clear();
        {
            let _shared = self.latch.shared();
            let xmax = self.latest_completed.load(Relaxed) + 1;
            let mut xmin = xmax;
            for slot in &self.xids[..self.scan_end()] {
                let xid = slot.load(Relaxed);
                if xid != 0 && xid < xmax {
                    xmin = xmin.min(xid);
                    snapshot.running.push(Xid(xid));
                }
            }
            let held = &self.xmins[proc.0 as usize];
            if held.load(Relaxed) == 0 {
                // R3.
                held.store(xmin, Release);
            }
            snapshot.xmin = Xid(xmin);
            snapshot.xmax = Xid(xmax);
        }
        snapshot.running.sort_unstable();
    }

    /// `proc` needs no snapshot any more. No latch: moving the horizon forward late is harmless.
    #[inline]
    pub fn clear_xmin(&self, proc: ProcId) {
        self.xmins[proc.0 as usize].store(0, Release);
    }

    /// The transaction of `proc` has ended, and the commit log says how (R2). Without an xid only the xmin goes.
    pub fn end(&self, proc: ProcId, xid: Option<Xid>) {
        let Some(xid) = xid else {
            return self.clear_xmin(proc);
        };
        let _exclusive = self.latch.exclusive();
        let before = self.xids[proc.0 as usize].load(Relaxed);
        assert_eq!(before, xid.0, "slot {} ends a transaction it does not run", proc.0);
        self.xids[proc.0 as usize].store(0, Release);
        self.xmins[proc.0 as usize].store(0, Release);
        if self.latest_completed.load(Relaxed) < xid.0 {
            self.latest_completed.store(xid.0, Relaxed);
        }
    }

    /// The oldest xid that any snapshot, present or future, may regard as running. A row version deleted by a
    /// transaction that committed below it is visible to nobody.
    pub fn horizon(&self) -> Xid {
        let _shared = self.latch.shared();
        let mut horizon = self.latest_completed.load(Relaxed) + 1;
        for slot in 0..self.scan_end() {
            for word in [&self.xids[slot], &self.xmins[slot]] {
                let xid = word.load(Relaxed);
                if xid != 0 {
                    horizon = horizon.min(xid);
                }
            }
        }
        Xid(horizon)
    }

    /// The slot that runs `xid`, if it is still running. Whoever wants to know *how* it ended asks this first and the
    /// commit log second; the other way round it may end in between.
    pub fn find_running(&self, xid: Xid) -> Option<ProcId> {
        if xid >= self.next_xid() {
            return None;
        }
        let _shared = self.latch.shared();
        self.slots().find(|proc| self.xids[proc.0 as usize].load(Relaxed) == xid.0)
    }

    /// Whether `xid` is still running.
    pub fn is_running(&self, xid: Xid) -> bool {
        self.find_running(xid).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array() -> ProcArray<Native> {
        ProcArray::new(4, LwLockAlgorithm::SingleCas, Xid(100))
    }

    #[test]
    fn a_snapshot_lists_who_runs() {
        let array = array();
        let (alice, bob) = (array.attach().unwrap(), array.attach().unwrap());
        let (a, b) = (array.assign_xid(alice), array.assign_xid(bob));
        array.end(bob, Some(b));
        let mut snapshot = Snapshot::default();
        array.snapshot(bob, &mut snapshot);
        assert_eq!(snapshot, Snapshot { xmin: a, xmax: b.next(), running: vec![a] });
        assert!(array.is_running(a) && !array.is_running(b) && !array.is_running(Xid(1000)));
    }

    #[test]
    fn a_snapshot_holds_back_the_horizon() {
        let array = array();
        let (alice, bob) = (array.attach().unwrap(), array.attach().unwrap());
        let a = array.assign_xid(alice);
        let mut snapshot = Snapshot::default();
        // Bob's snapshot has xmax = a, since nothing has completed after it.
        array.snapshot(bob, &mut snapshot);
        array.end(alice, Some(a));
        assert_eq!(array.horizon(), a);
        array.clear_xmin(bob);
        assert_eq!(array.horizon(), a.next());
    }

    #[test]
    fn slots_run_out_and_come_back() {
        let array = array();
        let all: Vec<_> = (0..4).map(|_| array.attach().unwrap()).collect();
        assert_eq!(array.attach(), Err(ProcArrayFull { capacity: 4 }));
        array.detach(all[1]);
        assert_eq!(array.attach(), Ok(all[1]));
    }
}
