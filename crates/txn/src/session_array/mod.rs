//! The words of the array of running transactions, and the latches over them. [`ProcArray`](crate::ProcArray) adds the
//! snapshots that are taken of it, and the way in which transactions leave it.
//!
//! Every session attaches to a slot. What snapshots scan is packed apart from the slots: `xids[..attached]`, the
//! running transaction of each attached session (0 = none), eight to a cache line. A slot mirrors its own xid, and
//! holds the oldest xid that its snapshots may need (`xmin`), on a cache line of its own, since its session writes
//! there at each statement.
//!
//! # An example
//! Bob runs a long report. Vacuum wants to know which row versions it may remove.
//!
//! | time | Bob | Alice, transaction 100 | vacuum |
//! | --- | --- | --- | --- |
//! | 1 | takes a snapshot: 100 is running; his slot's xmin becomes 100 | | |
//! | 2 | | deletes a row, commits, leaves the array | |
//! | 3 | | | the horizon is 100, Bob's xmin: the row stays |
//! | 4 | reads the row, which his snapshot sees | | |
//! | 5 | needs the snapshot no longer: his xmin becomes 0 | | |
//! | 6 | | | the horizon is 101: the row goes |
//!
//! Without the xmin, vacuum would find nothing running at time 3, and the row would be gone at time 4.
//!
//! | word | written under | read under |
//! | --- | --- | --- |
//! | `xids[i]`: 0 → xid | XidGen | ProcArray shared |
//! | `xids[i]`: xid → 0 | ProcArray exclusive | ProcArray shared |
//! | `procs[i]`, `slot.index`, `attached_count` | XidGen and ProcArray exclusive | either |
//! | `slot.xid` | as `xids[i]` | nothing: one load |
//! | `slot.xmin`: 0 → xmin | ProcArray shared, or nothing but a fence, by its session | ProcArray |
//! | `slot.xmin`: xmin → 0 | nothing, by its session | ProcArray |
//! | `slot.standby_xmin` | nothing, by its session | ProcArray |
//! | `latest_completed` | ProcArray exclusive | ProcArray shared |
//!
//! # Rules
//! - R1: an xid is stored in `xids[]` under XidGen before the next xid can be handed out.
//! - R2: an xid leaves `xids[]`, and `latest_completed` moves, under ProcArray exclusive; its status is in the commit
//!   log before that. So an xid that is *not* found in the array has its end in the commit log.
//! - R3: a snapshot that scans the array does so under ProcArray shared, and installs its xmin before it releases the
//!   latch. One that does without the latch installs its xmin, passes a fence, and then looks which transactions have
//!   ended, at words that are written under ProcArray exclusive. The horizon passes a fence between acquiring the latch
//!   and reading the xmins. One of the two fences comes first: either the horizon finds the xmin, or the snapshot finds
//!   every end that the horizon counts.
//!   What a standby asks for ([`SessionArray::hold_for_standby`]) is a word of its own and needs none of this: it says what
//!   the standby read some time ago, so a horizon may have passed it already, and the standby learns of that from its log.
//! - R4: entries move only under both latches: neither handing out an xid nor a scan meets a half-moved entry.
//!
//! The module `snapshot` says why these make snapshots consistent, and why the horizon does not pass them. The latch is
//! a switch of its own (`latch`).
//!
//! Costs: handing out an xid and ending it take one exclusive acquire each; 16 bytes and 128 bytes a session.
//!
//! Origin: PostgreSQL's procarray.c; the dense arrays are those of its version 14.

mod latch;
mod latch_time;
mod standby;

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use clearway_latch::{LatchClass, Latched, LwLock, LwLockOptions};
use clearway_machine::{AtomicWord, Machine, Native, Padded, WaitEvent};

pub use latch::ProcArrayLatchVariant;
use latch::{ProcArrayExclusive, ProcArrayLatch, ProcArrayShared};
pub use latch_time::PROC_ARRAY_LATCH_TIME;
use latch_time::{Timed, TimedLatch};

use crate::{ProcId, RunningTransactions, Xid};

static XID_GEN: LatchClass = LatchClass::new("XidGen", WaitEvent::XidGen, 300);
static PROC_SLOTS: LatchClass = LatchClass::new("ProcSlots", WaitEvent::ProcArray, 290);
static PROC_ARRAY: LatchClass = LatchClass::new("ProcArray", WaitEvent::ProcArray, 310);

/// All slots are attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("all {capacity} session slots are in use")]
pub struct ProcArrayFull {
    /// Number of slots.
    pub capacity: u32,
}

/// The slot of one session.
#[derive(Debug)]
struct Slot<M: Machine> {
    /// The running transaction, or 0; the same as `xids[index]`.
    xid: M::U64,
    /// The oldest xid the session's snapshots may need, or 0.
    xmin: M::U64,
    /// The oldest xid that the snapshots of the standby may need that the session sends the log to, or 0.
    standby_xmin: M::U64,
    /// The session's place in the dense arrays.
    index: M::U32,
}

/// The sessions, and what each runs and holds back.
#[derive(Debug)]
pub struct SessionArray<M: Machine = Native> {
    /// Dense: the running transaction of each attached session.
    xids: Box<[M::U64]>,
    /// Dense: whose entry it is.
    procs: Box<[M::U32]>,
    slots: Box<[Padded<Slot<M>>]>,
    /// Number of entries of the dense arrays that are in use.
    attached_count: M::U32,
    attached: Latched<Vec<bool>, M>,
    /// One past the highest slot attached.
    slots_end: M::U32,
    latch: TimedLatch<M>,
    xid_gen: Padded<LwLock<M>>,
    /// Stored with every xid that is handed out, so it is not beside the pointers that every snapshot reads.
    next_xid: Padded<M::U64>,
    latest_completed: Padded<M::U64>,
}

// What each xid or each end writes shares no line with what each snapshot reads, nor with another of its kind.
const _: () = {
    use std::mem::offset_of;
    type Array = SessionArray<Native>;
    let written = [
        offset_of!(Array, latch),
        offset_of!(Array, xid_gen),
        offset_of!(Array, next_xid),
        offset_of!(Array, latest_completed),
    ];
    let read = [
        offset_of!(Array, xids),
        offset_of!(Array, procs),
        offset_of!(Array, slots),
        offset_of!(Array, attached_count),
        offset_of!(Array, slots_end),
    ];
    let mut index = 0;
    while index < written.len() {
        let line = written[index] / 128;
        let mut other = 0;
        while other < read.len() {
            assert!(read[other] / 128 != line);
            other += 1;
        }
        other = 0;
        while other < index {
            assert!(written[other] / 128 != line);
            other += 1;
        }
        index += 1;
    }
};

impl<M: Machine> SessionArray<M> {
    /// An array for `capacity` sessions; `first_xid` is the next to be handed out, and all before it have ended.
    pub(crate) fn new(
        capacity: u32,
        latch: ProcArrayLatchVariant,
        lwlock: LwLockOptions,
        first_xid: Xid,
    ) -> Self {
        assert!(
            first_xid >= Xid::FIRST_NORMAL,
            "xids below {} are reserved",
            Xid::FIRST_NORMAL
        );
        let slot = || Slot {
            xid: M::U64::new(0),
            xmin: M::U64::new(0),
            standby_xmin: M::U64::new(0),
            index: M::U32::new(0),
        };
        Self {
            xids: (0..capacity).map(|_| M::U64::new(0)).collect(),
            procs: (0..capacity).map(|_| M::U32::new(0)).collect(),
            slots: (0..capacity).map(|_| Padded(slot())).collect(),
            attached_count: M::U32::new(0),
            attached: Latched::new(&PROC_SLOTS, lwlock, vec![false; capacity as usize]),
            slots_end: M::U32::new(0),
            latch: TimedLatch(ProcArrayLatch::new(latch, &PROC_ARRAY, lwlock)),
            xid_gen: Padded(LwLock::new(&XID_GEN, lwlock)),
            next_xid: Padded(M::U64::new(first_xid.0)),
            latest_completed: Padded(M::U64::new(first_xid.0 - 1)),
        }
    }

    /// The most sessions that can be attached at once.
    pub fn capacity(&self) -> u32 {
        self.slots.len() as u32
    }

    /// The memory of the latch, which lies within the array, for reports of contended cache lines.
    pub fn latch_memory(&self) -> &impl std::fmt::Debug {
        &self.latch
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
        slot.standby_xmin.store(0, Release);
        let hole = slot.index.load(Relaxed) as usize;
        let last = self.attached_count.load(Relaxed) as usize - 1;
        let moved = ProcId(self.procs[last].load(Relaxed));
        self.procs[hole].store(moved.0, Relaxed);
        self.xids[hole].store(self.xids[last].load(Relaxed), Relaxed);
        self.slot(moved).index.store(hole as u32, Relaxed);
        self.xids[last].store(0, Relaxed);
        self.attached_count.store(last as u32, Relaxed);
    }

    /// Acquires ProcArray shared: nothing ends until the guard is dropped.
    #[inline]
    pub(crate) fn shared(&self) -> SharedArray<'_, M> {
        SharedArray {
            array: self,
            _latch: self.latch.shared(),
        }
    }

    /// Acquires ProcArray exclusively, for transactions to leave.
    #[inline]
    pub(crate) fn exclusive(&self) -> ExclusiveArray<'_, M> {
        ExclusiveArray {
            array: self,
            _latch: self.latch.exclusive(),
        }
    }

    /// As [`exclusive`](Self::exclusive), if that needs no waiting.
    #[inline]
    pub(crate) fn try_exclusive(&self) -> Option<ExclusiveArray<'_, M>> {
        Some(ExclusiveArray {
            array: self,
            _latch: self.latch.try_exclusive()?,
        })
    }

    /// The dense entries in use; the caller holds ProcArray.
    fn dense(&self) -> &[M::U64] {
        &self.xids[..self.attached_count.load(Relaxed) as usize]
    }

    /// Every slot that may be attached.
    pub(crate) fn slots(&self) -> impl Iterator<Item = ProcId> {
        (0..self.slots_end.load(Relaxed)).map(ProcId)
    }

    /// Hands out the next xid to `proc`. `prepare` is called with it, under XidGen, before any other session can find it.
    pub(crate) fn assign_xid(&self, proc: ProcId, prepare: impl FnOnce(Xid)) -> Xid {
        let _exclusive = self.xid_gen.exclusive();
        let xid = self.next_xid.load(Relaxed);
        let slot = self.slot(proc);
        assert_eq!(slot.xid.load(Relaxed), 0, "a transaction gets a second xid");
        prepare(Xid(xid));
        // Release: pairs with the Acquire in `xid_of`.
        slot.xid.store(xid, Release);
        // R1: before `next_xid` moves. Scans are ordered after it: a snapshot by a later xid's way through both
        // latches, `find_running` by its Acquire of `next_xid`.
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

    /// Panics unless `proc`, the caller's, runs `xid`.
    pub(crate) fn assert_runs(&self, proc: ProcId, xid: Xid) {
        let running = self.slot(proc).xid.load(Relaxed);
        assert_eq!(
            running, xid.0,
            "slot {} ends a transaction it does not run",
            proc.0
        );
    }

    /// The xmin `proc` holds back the horizon with, if any.
    pub fn xmin_of(&self, proc: ProcId) -> Option<Xid> {
        Some(Xid(self.slot(proc).xmin.load(Acquire))).filter(|xid| xid.is_valid())
    }

    /// Holds back the horizon at `xmin` for the standby that `proc` sends the log to, whatever the session's own snapshots
    /// hold; `None`: no longer. What it says last counts, also if that is older: the standby's oldest snapshot is what
    /// it is. `false`, and nothing changes, if the xid has not been handed out and is not the next one: no snapshot can
    /// need that.
    pub fn hold_for_standby(&self, proc: ProcId, xmin: Option<Xid>) -> bool {
        let xmin = xmin.unwrap_or(Xid::INVALID);
        if xmin > self.next_xid() || xmin.is_valid() && xmin < Xid::FIRST_NORMAL {
            return false;
        }
        // Release: as in `clear_xmin`.
        self.slot(proc).standby_xmin.store(xmin.0, Release);
        true
    }

    /// True if the slot of `proc`, the caller's, holds an xmin: that of its oldest snapshot.
    #[inline]
    pub(crate) fn holds_back_horizon(&self, proc: ProcId) -> bool {
        self.slot(proc).xmin.load(Relaxed) != 0
    }

    /// Installs an xmin in the slot of `proc`, the caller's, which holds none: R3 without the latch. A horizon whose
    /// fence comes after the one here finds it. One whose fence came before has seen no end of a transaction that the
    /// caller, from now on, does not find ended in the words that it reads.
    #[inline]
    pub(crate) fn hold_back_horizon_and_fence(&self, proc: ProcId, xmin: Xid) {
        self.slot(proc).xmin.store(xmin.0, Relaxed);
        // StoreLoad: pairs with the fence in `horizon`.
        M::fence(SeqCst);
    }

    /// `proc` needs no snapshot any more. No latch: moving the horizon forward late is harmless.
    #[inline]
    pub fn clear_xmin(&self, proc: ProcId) {
        // Release: pairs with the Acquire fence in `horizon`; what the session read under its snapshots, it has read.
        self.slot(proc).xmin.store(0, Release);
    }

    /// The oldest xid that any snapshot, present or future, may regard as running. A row version deleted by a
    /// transaction that committed below it is visible to no session.
    pub fn horizon(&self) -> Xid {
        let horizon = {
            let _shared = self.latch.shared();
            self.horizon_under_latch()
        };
        M::fence(Acquire);
        horizon
    }

    /// The horizon; the caller holds ProcArray.
    fn horizon_under_latch(&self) -> Xid {
        // StoreLoad: pairs with the fence in `hold_back_horizon_and_fence` (R3). The ends of transactions that the
        // latch has made visible come before it, the xmins that are read come after it.
        M::fence(SeqCst);
        let mut horizon = self.latest_completed.load(Relaxed) + 1;
        for (index, entry) in self.dense().iter().enumerate() {
            let proc = ProcId(self.procs[index].load(Relaxed));
            let slot = self.slot(proc);
            for word in [entry, &slot.xmin, &slot.standby_xmin] {
                let xid = word.load(Relaxed);
                if xid != 0 {
                    horizon = horizon.min(xid);
                }
            }
        }
        Xid(horizon)
    }

    /// Lists in `running`, in ascending order, the transactions that run, among those below the xid after the newest one
    /// that has ended: what the log tells a standby of this moment. It is no snapshot: nothing holds back the horizon.
    pub fn running_transactions<'a>(&self, running: &'a mut Vec<Xid>) -> RunningTransactions<'a> {
        running.clear();
        let newest_ended = {
            let shared = self.shared();
            let newest_ended = Xid(shared.latest_completed());
            let entries = shared.entries().map(Xid);
            running.extend(entries.filter(|xid| xid.is_valid() && *xid < newest_ended));
            newest_ended
        };
        running.sort_unstable();
        let next = newest_ended.next();
        RunningTransactions {
            next,
            oldest_running: running.first().copied().unwrap_or(next),
            newest_ended,
            running,
            overflowed: false,
            prepared: &[],
        }
    }

    /// The slot that runs `xid`, if it is still running. A caller that wants to know *how* it ended asks this first and
    /// the commit log second; the other way round, the transaction may end in between.
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

    /// True if `xid` is still running. One that is newer than all that have ended needs no look at the others: it was put into
    /// `xids[]` before `next_xid` told of it (R1), and would have moved `latest_completed` when it left (R2).
    pub fn is_running(&self, xid: Xid) -> bool {
        if xid >= self.next_xid() {
            return false;
        }
        let _shared = self.latch.shared();
        xid.0 > self.latest_completed.load(Relaxed)
            || self.dense().iter().any(|entry| entry.load(Relaxed) == xid.0)
    }
}

/// The array under its shared latch.
pub(crate) struct SharedArray<'a, M: Machine> {
    array: &'a SessionArray<M>,
    _latch: Timed<ProcArrayShared<'a, M>, M>,
}

impl<M: Machine> SharedArray<'_, M> {
    /// The newest transaction that has ended.
    #[inline]
    pub(crate) fn latest_completed(&self) -> u64 {
        self.array.latest_completed.load(Relaxed)
    }

    /// The running transaction of each attached session, 0 if it has none.
    #[inline]
    pub(crate) fn entries(&self) -> impl Iterator<Item = u64> {
        self.array.dense().iter().map(|entry| entry.load(Relaxed))
    }

    /// R3: installs the xmin of a snapshot, unless the session's slot holds that of an older one.
    #[inline]
    pub(crate) fn hold_back_horizon(&self, proc: ProcId, xmin: Xid) {
        let held = &self.array.slot(proc).xmin;
        if held.load(Relaxed) == 0 {
            held.store(xmin.0, Relaxed);
        }
    }
}

/// The array under its exclusive latch.
pub(crate) struct ExclusiveArray<'a, M: Machine> {
    array: &'a SessionArray<M>,
    _latch: Timed<ProcArrayExclusive<'a, M>, M>,
}

impl<M: Machine> ExclusiveArray<'_, M> {
    /// The transaction that `proc` runs.
    #[inline]
    pub(crate) fn running(&self, proc: ProcId) -> Xid {
        Xid(self.array.slot(proc).xid.load(Relaxed))
    }

    /// As [`SessionArray::horizon`].
    pub(crate) fn horizon(&self) -> Xid {
        self.array.horizon_under_latch()
    }

    /// Takes `xid` of `proc` out of the array (R2). The slot's xid is the last word that is written: its session may
    /// find by [`SessionArray::xid_of`], without the latch, that another session has taken it out, and begin the next one.
    #[inline]
    pub(crate) fn remove(&self, proc: ProcId, xid: Xid) {
        let array = self.array;
        let slot = array.slot(proc);
        array.xids[slot.index.load(Relaxed) as usize].store(0, Relaxed);
        slot.xmin.store(0, Release);
        if array.latest_completed.load(Relaxed) < xid.0 {
            array.latest_completed.store(xid.0, Relaxed);
        }
        // Release: pairs with the Acquire in `xid_of`.
        slot.xid.store(0, Release);
    }
}
