//! The array of running transactions.
//!
//! Every session attaches to a slot. What snapshots scan is packed apart from the slots: `xids[..attached]`, the running
//! transaction of each attached session (0 = none), eight to a cache line. A slot mirrors its own xid, and holds the oldest
//! xid that its snapshots may need (`xmin`), on a cache line of its own, since its session writes there at each statement.
//!
//! | word | written under | read under |
//! | --- | --- | --- |
//! | `xids[i]`: 0 → xid | XidGen | ProcArray shared |
//! | `xids[i]`: xid → 0 | ProcArray exclusive | ProcArray shared |
//! | `procs[i]`, `slot.index`, `attached_count` | XidGen and ProcArray exclusive | either |
//! | `slot.xid` | as `xids[i]` | nothing: one load |
//! | `slot.xmin`: 0 → xmin | ProcArray shared, by its session | ProcArray |
//! | `slot.xmin`: xmin → 0 | nothing, by its session | ProcArray |
//! | `latest_completed` | ProcArray exclusive | ProcArray shared |
//!
//! # Rules
//! - R1: an xid is stored in `xids[]` under XidGen before the next xid can be handed out.
//! - R2: an xid leaves `xids[]`, and `latest_completed` moves, under ProcArray exclusive; its status is in the commit log
//!   before that. So whoever finds an xid *not* in the array finds its end in the commit log.
//! - R3: a snapshot is taken under ProcArray shared, and installs its xmin before it lets go.
//! - R4: entries move only under both latches: neither who hands out an xid nor who scans sees a half-moved entry.
//!
//! # Why a snapshot is consistent
//! `xmax` is `latest_completed + 1`. Take any xid x below it that has not ended. Some y > x had ended, so y was handed out;
//! by R1 x was stored before that, and y's end (R2) comes before our shared acquire: we see x in the array. And as no
//! transaction ends while we scan (R2, R3), we see either all or nothing of each one. The simpler version, a scan without
//! the latch, sees Alice still running and Bob, who committed after her and read what she wrote, as done.
//!
//! # Why the horizon cannot pass a snapshot
//! The horizon is the least of `xids[]`, the xmins and `latest_completed + 1`, under ProcArray shared. Nothing ends
//! meanwhile (R2). A snapshot taken before has its xmin in its slot (R3). One that is being taken beside us may not have it
//! there yet, but the xids it sees running we see running too, and its xmax is ours. A later one sees what only grows.
//!
//! Costs: a snapshot is one shared acquire and a scan of 8 bytes a session, without allocation once its vector has grown;
//! handing out an xid and ending it take one exclusive acquire each; 16 bytes and 128 bytes a session.
//!
//! Origin: PostgreSQL's procarray.c; the dense arrays are those of its version 14.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_latch::{LatchClass, Latched, LwLock, LwLockOptions};
use clearway_machine::{AtomicWord, Machine, Native, Padded, WaitEvent, switch};

use crate::proc_array_latch::{ProcArrayLatch, ProcArrayLatchVariant};
use crate::{Snapshot, Xid};

static XID_GEN: LatchClass = LatchClass::new("XidGen", WaitEvent::XidGen, 300);
static PROC_SLOTS: LatchClass = LatchClass::new("ProcSlots", WaitEvent::ProcArray, 290);
static PROC_ARRAY: LatchClass = LatchClass::new("ProcArray", WaitEvent::ProcArray, 310);

/// A session's slot in the array; not the thread's worker slot, since one thread may drive several sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcId(pub u32);

switch! {
    /// How a snapshot is taken.
    pub enum SnapshotVariant = "snapshot", best Scan, planned ["shared-cache", "reuse", "csn"] {
        /// Scan the running transactions.
        Scan = "scan",
    }
}

switch! {
    /// How a transaction leaves the array of running ones.
    pub enum ProcClearVariant = "proc_clear", best Single, planned ["group"] {
        /// Each by itself, under the exclusive latch.
        Single = "single",
    }
}

/// All slots are attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("all {capacity} session slots are in use")]
pub struct ProcArrayFull {
    /// How many slots there are.
    pub capacity: u32,
}

/// What one session's slot holds.
#[derive(Debug)]
struct Slot<M: Machine> {
    /// The running transaction, or 0; the same as `xids[index]`.
    xid: M::U64,
    /// The oldest xid the session's snapshots may need, or 0.
    xmin: M::U64,
    /// The session's place in the dense arrays.
    index: M::U32,
}

/// The array of running transactions.
#[derive(Debug)]
pub struct ProcArray<M: Machine = Native> {
    /// Dense: the running transaction of each attached session.
    xids: Box<[M::U64]>,
    /// Dense: whose entry it is.
    procs: Box<[M::U32]>,
    slots: Box<[Padded<Slot<M>>]>,
    /// How many entries of the dense arrays are in use.
    attached_count: M::U32,
    attached: Latched<Vec<bool>, M>,
    /// One past the highest slot attached.
    slots_end: M::U32,
    latch: ProcArrayLatch<M>,
    xid_gen: Padded<LwLock<M>>,
    next_xid: M::U64,
    latest_completed: Padded<M::U64>,
}

impl<M: Machine> ProcArray<M> {
    /// An array for `capacity` sessions under a plain latch; `first_xid` is the next to be handed out, and all before it have
    /// ended.
    pub fn new(capacity: u32, lwlock: impl Into<LwLockOptions>, first_xid: Xid) -> Self {
        Self::with_latch(ProcArrayLatchVariant::default(), capacity, lwlock, first_xid)
    }

    /// As [`new`](Self::new), under a latch of `kind`.
    pub fn with_latch(
        kind: ProcArrayLatchVariant,
        capacity: u32,
        lwlock: impl Into<LwLockOptions>,
        first_xid: Xid,
    ) -> Self {
        let lwlock = lwlock.into();
        assert!(
            first_xid >= Xid::FIRST_NORMAL,
            "xids below {} are reserved",
            Xid::FIRST_NORMAL
        );
        let slot = || Slot {
            xid: M::U64::new(0),
            xmin: M::U64::new(0),
            index: M::U32::new(0),
        };
        Self {
            xids: (0..capacity).map(|_| M::U64::new(0)).collect(),
            procs: (0..capacity).map(|_| M::U32::new(0)).collect(),
            slots: (0..capacity).map(|_| Padded(slot())).collect(),
            attached_count: M::U32::new(0),
            attached: Latched::new(&PROC_SLOTS, lwlock, vec![false; capacity as usize]),
            slots_end: M::U32::new(0),
            latch: ProcArrayLatch::new(kind, &PROC_ARRAY, lwlock),
            xid_gen: Padded(LwLock::new(&XID_GEN, lwlock)),
            next_xid: M::U64::new(first_xid.0),
            latest_completed: Padded(M::U64::new(first_xid.0 - 1)),
        }
    }

    /// How many sessions can be attached at once.
    pub fn capacity(&self) -> u32 {
        self.slots.len() as u32
    }

    fn slot(&self, proc: ProcId) -> &Slot<M> {
        &self.slots[proc.0 as usize]
    }

    /// Takes the lowest free slot.
    pub fn attach(&self) -> Result<ProcId, ProcArrayFull> {
        let mut attached = self.attached.exclusive();
        let Some(free) = attached.iter().position(|taken| !taken) else {
            return Err(ProcArrayFull {
                capacity: self.capacity(),
            });
        };
        attached[free] = true;
        let proc = ProcId(free as u32);
        if self.slots_end.load(Relaxed) <= proc.0 {
            self.slots_end.store(proc.0 + 1, Relaxed);
        }
        // R4.
        let _xid_gen = self.xid_gen.exclusive();
        let _exclusive = self.latch.exclusive();
        let index = self.attached_count.load(Relaxed);
        debug_assert_eq!(
            self.xids[index as usize].load(Relaxed),
            0,
            "an entry past the end is in use"
        );
        self.procs[index as usize].store(proc.0, Relaxed);
        self.slot(proc).index.store(index, Relaxed);
        self.attached_count.store(index + 1, Relaxed);
        Ok(proc)
    }

    /// Returns a slot whose transaction has ended.
    pub fn detach(&self, proc: ProcId) {
        let mut attached = self.attached.exclusive();
        assert!(attached[proc.0 as usize], "slot {} is detached twice", proc.0);
        attached[proc.0 as usize] = false;
        let end = attached
            .iter()
            .rposition(|taken| *taken)
            .map_or(0, |last| last as u32 + 1);
        self.slots_end.store(end, Relaxed);
        // R4: the last entry fills the hole.
        let _xid_gen = self.xid_gen.exclusive();
        let _exclusive = self.latch.exclusive();
        let slot = self.slot(proc);
        assert_eq!(
            slot.xid.load(Relaxed),
            0,
            "a session detaches inside a transaction"
        );
        slot.xmin.store(0, Release);
        let hole = slot.index.load(Relaxed) as usize;
        let last = self.attached_count.load(Relaxed) as usize - 1;
        let moved = ProcId(self.procs[last].load(Relaxed));
        self.procs[hole].store(moved.0, Relaxed);
        self.xids[hole].store(self.xids[last].load(Relaxed), Relaxed);
        self.slot(moved).index.store(hole as u32, Relaxed);
        self.xids[last].store(0, Relaxed);
        self.attached_count.store(last as u32, Relaxed);
    }

    /// The dense entries in use; the caller holds ProcArray.
    fn dense(&self) -> &[M::U64] {
        &self.xids[..self.attached_count.load(Relaxed) as usize]
    }

    /// Every slot that may be attached.
    pub(crate) fn slots(&self) -> impl Iterator<Item = ProcId> {
        (0..self.slots_end.load(Relaxed)).map(ProcId)
    }

    /// Hands out the next xid to `proc`.
    pub fn assign_xid(&self, proc: ProcId) -> Xid {
        let _exclusive = self.xid_gen.exclusive();
        let xid = self.next_xid.load(Relaxed);
        let slot = self.slot(proc);
        assert_eq!(slot.xid.load(Relaxed), 0, "a transaction gets a second xid");
        // Release: pairs with the Acquire in `xid_of`.
        slot.xid.store(xid, Release);
        // R1: before `next_xid` moves. Scans are ordered after it: a snapshot by a later xid's way through both latches,
        // `find_running` by its Acquire of `next_xid`.
        self.xids[slot.index.load(Relaxed) as usize].store(xid, Relaxed);
        self.next_xid.store(xid + 1, Release);
        Xid(xid)
    }

    /// The xid that will be handed out next; all below it have been.
    pub fn next_xid(&self) -> Xid {
        Xid(self.next_xid.load(Acquire))
    }

    /// The xid `proc` is running, if it has one. Acquire: `None` after an xid means its end is in the commit log.
    #[inline]
    pub fn xid_of(&self, proc: ProcId) -> Option<Xid> {
        Some(Xid(self.slot(proc).xid.load(Acquire))).filter(|xid| xid.is_valid())
    }

    /// The xmin `proc` holds back the horizon with, if any.
    pub fn xmin_of(&self, proc: ProcId) -> Option<Xid> {
        Some(Xid(self.slot(proc).xmin.load(Acquire))).filter(|xid| xid.is_valid())
    }

    /// Takes a snapshot into `snapshot`, reusing its memory, and holds back the horizon for `proc` until
    /// [`clear_xmin`](Self::clear_xmin) or [`end`](Self::end). A slot keeps the oldest xmin it has installed.
    pub fn snapshot(&self, proc: ProcId, snapshot: &mut Snapshot) {
        let running = &mut snapshot.running;
        running.clear();
        {
            let _shared = self.latch.shared();
            let xmax = self.latest_completed.load(Relaxed) + 1;
            let mut xmin = xmax;
            for entry in self.dense() {
                let xid = entry.load(Relaxed);
                // 0, wrapped, is above every xmax.
                if xid.wrapping_sub(1) < xmax - 1 {
                    xmin = xmin.min(xid);
                    running.push(Xid(xid));
                }
            }
            let held = &self.slot(proc).xmin;
            if held.load(Relaxed) == 0 {
                // R3.
                held.store(xmin, Relaxed);
            }
            snapshot.xmin = Xid(xmin);
            snapshot.xmax = Xid(xmax);
        }
        if running.len() > 1 {
            running.sort_unstable();
        }
    }

    /// `proc` needs no snapshot any more. No latch: moving the horizon forward late is harmless.
    #[inline]
    pub fn clear_xmin(&self, proc: ProcId) {
        // Release: pairs with the Acquire fence in `horizon`; what the session read under its snapshots, it has read.
        self.slot(proc).xmin.store(0, Release);
    }

    /// The transaction of `proc` has ended, and the commit log says how (R2). Without an xid only the xmin goes.
    pub fn end(&self, proc: ProcId, xid: Option<Xid>) {
        let Some(xid) = xid else {
            return self.clear_xmin(proc);
        };
        let slot = self.slot(proc);
        assert_eq!(
            slot.xid.load(Relaxed),
            xid.0,
            "slot {} ends a transaction it does not run",
            proc.0
        );
        let _exclusive = self.latch.exclusive();
        self.xids[slot.index.load(Relaxed) as usize].store(0, Relaxed);
        // Release: pairs with the Acquire in `xid_of`.
        slot.xid.store(0, Release);
        slot.xmin.store(0, Release);
        if self.latest_completed.load(Relaxed) < xid.0 {
            self.latest_completed.store(xid.0, Relaxed);
        }
    }

    /// The oldest xid that any snapshot, present or future, may regard as running. A row version deleted by a
    /// transaction that committed below it is visible to nobody.
    pub fn horizon(&self) -> Xid {
        let mut horizon;
        {
            let _shared = self.latch.shared();
            horizon = self.latest_completed.load(Relaxed) + 1;
            for (index, entry) in self.dense().iter().enumerate() {
                let proc = ProcId(self.procs[index].load(Relaxed));
                for word in [entry, &self.slot(proc).xmin] {
                    let xid = word.load(Relaxed);
                    if xid != 0 {
                        horizon = horizon.min(xid);
                    }
                }
            }
        }
        M::fence(Acquire);
        Xid(horizon)
    }

    /// The slot that runs `xid`, if it is still running. Whoever wants to know *how* it ended asks this first and the
    /// commit log second; the other way round it may end in between.
    pub fn find_running(&self, xid: Xid) -> Option<ProcId> {
        if xid >= self.next_xid() {
            return None;
        }
        let _shared = self.latch.shared();
        let index = self
            .dense()
            .iter()
            .position(|entry| entry.load(Relaxed) == xid.0)?;
        Some(ProcId(self.procs[index].load(Relaxed)))
    }

    /// Whether `xid` is still running.
    pub fn is_running(&self, xid: Xid) -> bool {
        self.find_running(xid).is_some()
    }
}

#[cfg(test)]
mod tests {
    use clearway_latch::LwLockVariant;

    use super::*;

    fn array() -> ProcArray<Native> {
        ProcArray::new(4, LwLockVariant::SingleCas, Xid(100))
    }

    #[test]
    fn a_snapshot_lists_who_runs() {
        let array = array();
        let (alice, bob) = (array.attach().unwrap(), array.attach().unwrap());
        let (a, b) = (array.assign_xid(alice), array.assign_xid(bob));
        array.end(bob, Some(b));
        let mut snapshot = Snapshot::default();
        array.snapshot(bob, &mut snapshot);
        assert_eq!(
            snapshot,
            Snapshot {
                xmin: a,
                xmax: b.next(),
                running: vec![a]
            }
        );
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
        assert!(
            snapshot.running.is_empty(),
            "what is not below xmax need not be listed"
        );
        array.end(alice, Some(a));
        assert_eq!(array.horizon(), a);
        array.clear_xmin(bob);
        assert_eq!(array.horizon(), a.next());
    }

    /// A session that holds an older snapshot, as a cursor does, takes a newer one: what the older one sees is kept.
    ///
    /// Caught mutation: `snapshot` that installs its xmin over an older one.
    #[test]
    fn a_second_snapshot_does_not_let_go_of_the_first() {
        let array = array();
        let (alice, bob) = (array.attach().unwrap(), array.attach().unwrap());
        let a = array.assign_xid(alice);
        let (mut first, mut second) = (Snapshot::default(), Snapshot::default());
        array.snapshot(bob, &mut first);
        array.end(alice, Some(a));
        array.snapshot(bob, &mut second);
        assert!(first.is_running(a) && !second.is_running(a));
        assert_eq!(
            array.horizon(),
            first.xmin,
            "vacuum would take what the first snapshot sees"
        );
        assert_eq!(array.xmin_of(bob), Some(first.xmin));
    }

    #[test]
    fn a_snapshot_lists_the_running_in_their_order() {
        let array = array();
        let all: Vec<_> = (0..4).map(|_| array.attach().unwrap()).collect();
        let xids = [2, 0, 1, 3].map(|slot: usize| array.assign_xid(all[slot]));
        array.end(all[3], Some(xids[3]));
        let mut snapshot = Snapshot::default();
        array.snapshot(all[3], &mut snapshot);
        assert_eq!(snapshot.running, xids[..3]);
        assert!(xids[..3].iter().all(|xid| snapshot.is_running(*xid)));
    }

    #[test]
    fn slots_in_use_are_listed() {
        let array = array();
        let all: Vec<_> = (0..3).map(|_| array.attach().unwrap()).collect();
        assert!(array.slots().eq(all.iter().copied()));
        array.detach(all[2]);
        assert!(array.slots().eq(all[..2].iter().copied()));
        array.detach(all[0]);
        assert!(array.slots().any(|slot| slot == all[1]));
    }

    #[test]
    fn slots_run_out_and_come_back() {
        let array = array();
        let all: Vec<_> = (0..4).map(|_| array.attach().unwrap()).collect();
        assert_eq!(array.attach(), Err(ProcArrayFull { capacity: 4 }));
        array.detach(all[1]);
        assert_eq!(array.attach(), Ok(all[1]));
    }

    #[test]
    fn a_hole_is_filled_and_the_moved_session_goes_on() {
        let array = array();
        let all: Vec<_> = (0..3).map(|_| array.attach().unwrap()).collect();
        let before = array.assign_xid(all[2]);
        array.detach(all[0]);
        assert_eq!(array.dense().len(), 2);
        assert_eq!(
            (array.find_running(before), array.xid_of(all[2])),
            (Some(all[2]), Some(before))
        );
        array.end(all[2], Some(before));
        let after = array.assign_xid(all[2]);
        let mut snapshot = Snapshot::default();
        let newest = array.assign_xid(all[1]);
        array.end(all[1], Some(newest));
        array.snapshot(all[1], &mut snapshot);
        assert_eq!(snapshot.running, vec![after]);
        assert_eq!(array.attach(), Ok(all[0]), "the lowest free slot");
    }
}
