//! Known xids: which of the primary's transactions run, as a standby's replay sees it. The switch `known_xids`.
//!
//! # An example
//! The log says of the primary: 100 begins, 101 begins, 101 commits. Bob reads on the standby.
//!
//! | time | replay | Bob |
//! | --- | --- | --- |
//! | 1 | meets a record of 101 first: adds 100 and 101, since xids are handed out in sequence | |
//! | 2 | replays the commit of 101: removes 101 | |
//! | 3 | | takes a snapshot: xmax 102, running 100 |
//! | 4 | replays the commit of 100: removes 100 | |
//! | 5 | | still regards 100 as running |
//!
//! On a primary each running transaction has a session with a slot; here there is one worker, which knows only what
//! the log has told so far, and many readers.
//!
//! # Contract
//! - K1: a snapshot is of one moment between its call and its return: what it lists was running then, and what it does
//!   not list, below xmax, had ended. A transaction and its subtransactions end at one moment.
//! - K2: [`KnownXids::snapshot`] has as xmax the xid after the newest one that had ended at that moment. So what it
//!   regards as finished saw nothing of what it regards as running.
//! - K3: [`KnownXids::snapshot_below`] takes its xmax from the caller, who has learnt in an orderly way, that is by an
//!   Acquire of what was published after the additions, that all xids below were added.
//! - K4: one worker at a time writes: [`KnownXids::replay`] gives it away once, until it is dropped.
//! - K5: xids are added in ascending order. Room is for `capacity` running ones; when it runs out nothing is added.
//! - K6: a snapshot's list is in ascending order.
//!
//! # Initialisation
//! | state | replay has | readers |
//! | --- | --- | --- |
//! | `Unknown` | seen no record of running transactions | wait |
//! | `Incomplete` | seen one that left out subtransactions: what it lists, and what came later, is known | wait |
//! | `Complete` | seen one that lists all; or later ones whose oldest running xid is after all that may have been left out | take snapshots |
//!
//! A further record in the state `Complete` removes what runs before its oldest xid and is not prepared: a transaction
//! whose end was never logged, because the primary crashed.
//!
//! A variant is a file with a [`KnownSet`].
//!
//! | variant | a snapshot looks at | under | a remove | bytes an xid of the capacity |
//! | --- | --- | --- | --- | --- |
//! | `array` | every entry since the oldest running one, or since the compaction | a latch, shared | a search, under the latch | 9 |
//! | `list` | the running ones, link by link | a latch, shared | a search and two links, under the latch | 17 |
//! | `offsets` | the running ones, and what has ended since the last snapshot | a latch, shared | a search, under the latch | 13 |
//! | `radix` | the running ones, and sums above them | a latch, shared | a search and a sum a level, under the latch | 10 |
//! | `bitmap` | the running ones, and bits above them | nothing | six stores, no latch | 12 |

mod array;
mod bitmap;
mod entries;
mod list;
mod offsets;
mod radix;

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_latch::LwLockOptions;
use clearway_machine::{AtomicWord, Machine, Native, Padded, Switch, switch, variants};

use crate::Xid;

/// The operations of a variant. Replay calls `add`, `remove`, `remove_preceding`, `begin`, `idle`, `running` and
/// `range`, one at a time; readers call `snapshot`.
pub(crate) trait KnownSet<M: Machine> {
    /// One in which nothing runs.
    fn new(options: &KnownXidsOptions) -> Self;

    /// Number of running ones.
    fn running(&self) -> u32;

    /// Number of entries, or xids, that a snapshot would have to look at if it looked at each.
    fn range(&self) -> u64;

    /// Adds an ascending run of xids, newer than all added before, for which there is room.
    fn add(&self, from: u64, to: u64);

    /// Removes, at one moment, what of a transaction and its subtransactions is there.
    fn remove(&self, xid: Xid, children: &[Xid]);

    /// Removes what runs before `xid`, without those in `prepared`.
    fn remove_preceding(&self, xid: Xid, prepared: &[Xid]);

    /// Replay has nothing to do.
    fn idle(&self) {}

    /// Nothing runs: begins with xids from `oldest` on, after the newest ended one. No reader is there yet.
    fn begin(&self, oldest: Xid, newest_ended: Xid);

    /// Lists what runs below xmax, or below the xid after the newest ended one.
    fn snapshot(&self, xmax: Option<Xid>, into: &mut RunningXids);
}

variants! {
    /// The structure by which a standby knows which of the primary's transactions run.
    pub enum KnownXidsVariant = "known_xids", best Bitmap, planned [] {
        /// An array of entries in order, which a snapshot scans under a latch.
        Array = "array": array::Set<M>,
        /// The array, with its running entries linked.
        List = "list": list::Set<M>,
        /// The array, with hints of readers how far the next running entry is.
        Offsets = "offsets": offsets::Set<M>,
        /// The array, under a tree of sums.
        Radix = "radix": radix::Set<M>,
        /// A ring of bits with summaries and a journal of ends; no latch.
        Bitmap = "bitmap": bitmap::Set<M>,
    }
    why {
        Array: "The baseline: an add with its remove takes it 309 to 663 instructions, bitmap 223 to 240."
            in "docs/mechanisms/known-xids.md#numbers-that-matter";
        Bitmap: "Simulated on four sockets with 64 readers it makes 1.12 times the reads of the others, and replay \
            ends ten times as many transactions; natively, on two CPUs, an open transaction costs readers a sixth of \
            their reads under array with the rule of 2010, and about 1 % under each other variant. Its snapshot is the dearer one where one transaction runs, 211 instructions to 106."
            in "docs/standby-predictions.md#four-sockets";
    }

    #[derive(Debug)]
    enum Sets[M: Machine], called by dispatch;
}

impl<M: Machine> Sets<M> {
    fn new(options: &KnownXidsOptions) -> Self {
        dispatch!(new options.variant => KnownSet::new(options))
    }
}

switch! {
    /// The time at which `known_xids = array` moves its running entries together.
    pub enum KnownXidsCompactionVariant = "known_xids_compaction", best Of2022, planned [],
        only beside "known_xids" ["array"]
    {
        /// At a range of four times the sessions, and twice what runs.
        Of2010 = "2010",
        /// At each 128th end if the range is twice what runs, when replay is idle, and at a record of running transactions.
        Of2022 = "2022",
    }
    why {
        Of2022: "It keeps the range below twice what runs and 128 entries; what that costs an end stands there."
            in "docs/mechanisms/known-xids.md#variants";
    }
}

/// The options of a set of known xids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownXidsOptions {
    /// The switch `known_xids`.
    pub variant: KnownXidsVariant,
    /// The switch `known_xids_compaction`.
    pub compaction: KnownXidsCompactionVariant,
    /// The most sessions that the primary may have.
    pub sessions: u32,
    /// The most transactions and subtransactions that can run.
    pub capacity: u32,
    /// The options of its latch, of variants that have one.
    pub lwlock: LwLockOptions,
}

impl KnownXidsOptions {
    /// Room for a transaction of each session with 64 subtransactions, and the variants of the preset `clearway`.
    pub fn for_sessions(sessions: u32) -> Self {
        Self {
            variant: KnownXidsVariant::default(),
            compaction: KnownXidsCompactionVariant::default(),
            sessions,
            capacity: sessions.saturating_mul(65),
            lwlock: LwLockOptions::default(),
        }
    }

    /// One for each variant, and `array` with each compaction: what test suites run over.
    pub fn each_variant(sessions: u32, capacity: u32) -> impl Iterator<Item = Self> {
        let of = move |variant, compaction| Self {
            variant,
            compaction,
            capacity,
            ..Self::for_sessions(sessions)
        };
        KnownXidsVariant::ALL.iter().flat_map(move |&variant| {
            let compactions = if KnownXidsCompactionVariant::is_obeyed_beside(variant) {
                KnownXidsCompactionVariant::ALL
            } else {
                &[KnownXidsCompactionVariant::BEST]
            };
            compactions.iter().map(move |&compaction| of(variant, compaction))
        })
    }
}

/// A snapshot: what ran at its moment. Its memory can be used again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunningXids {
    xmax: Xid,
    xids: Vec<Xid>,
}

impl RunningXids {
    /// The oldest running xid, or xmax.
    pub fn xmin(&self) -> Xid {
        self.xids.first().copied().unwrap_or(self.xmax)
    }

    /// From here on all xids count as running.
    pub fn xmax(&self) -> Xid {
        self.xmax
    }

    /// The running xids below xmax, in ascending order.
    pub fn xids(&self) -> &[Xid] {
        &self.xids
    }

    /// True if `xid` had not ended.
    pub fn is_running(&self, xid: Xid) -> bool {
        xid >= self.xmax || self.xids.binary_search(&xid).is_ok()
    }

    /// An empty one that uses this memory.
    #[inline]
    pub(crate) fn in_memory(mut xids: Vec<Xid>) -> Self {
        xids.clear();
        Self { xmax: Xid(0), xids }
    }

    /// The list.
    #[inline]
    pub(crate) fn into_memory(self) -> Vec<Xid> {
        self.xids
    }

    #[inline]
    fn begin(&mut self, xmax: Xid) {
        self.xmax = xmax;
        self.xids.clear();
    }

    #[inline]
    fn len(&self) -> usize {
        self.xids.len()
    }

    /// Lists `xid`, which is above all listed, unless it is not below xmax: `false`.
    #[inline]
    fn push(&mut self, xid: Xid) -> bool {
        let is_below = xid < self.xmax;
        if is_below {
            self.xids.push(xid);
        }
        is_below
    }

    /// Lists `xid` behind the others if it names a transaction below xmax that is not among the first `sorted`.
    fn push_unsorted(&mut self, xid: Xid, sorted: usize) {
        if xid.is_valid() && xid < self.xmax && self.xids[..sorted].binary_search(&xid).is_err() {
            self.xids.push(xid);
        }
    }

    /// Brings those behind the first `sorted` to their places.
    #[inline]
    fn sort_from(&mut self, sorted: usize) {
        if self.xids.len() > sorted {
            self.xids.sort_unstable();
            self.xids.dedup();
        }
    }
}

/// A record of the log: the primary's running transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunningTransactions<'a> {
    /// The record says nothing of xids from here on, some of which may have been handed out; all others that are not listed
    /// have ended.
    pub next: Xid,
    /// The oldest that runs, or `next`.
    pub oldest_running: Xid,
    /// The newest that has ended.
    pub newest_ended: Xid,
    /// The running ones with their subtransactions, in ascending order.
    pub running: &'a [Xid],
    /// True if subtransactions are missing in `running`.
    pub overflowed: bool,
    /// Those that are prepared, which only their own end removes.
    pub prepared: &'a [Xid],
}

/// The completeness of the known xids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum KnownXidsState {
    /// Nothing.
    Unknown = 0,
    /// Running subtransactions may be missing.
    Incomplete = 1,
    /// All that run.
    Complete = 2,
}

/// The reason why the known xids refuse a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KnownXidsError {
    /// K5.
    #[error("xids are added in ascending order: {from} to {to} cannot follow {next}, the next one expected")]
    OutOfOrder {
        /// The first one.
        from: Xid,
        /// The last one.
        to: Xid,
        /// The least that could have come.
        next: Xid,
    },
    /// K5.
    #[error(
        "no room for {wanted} more running transactions: {running} of at most {capacity} are known. The standby must \
         allow as many sessions as the primary"
    )]
    NoRoom {
        /// Number of xids that were to be added.
        wanted: u64,
        /// Number of running ones.
        running: u32,
        /// The most that may run.
        capacity: u32,
    },
    /// Replay began behind the last record of running transactions.
    #[error("no record of running transactions has been replayed yet")]
    Unknown,
    /// A snapshot cannot be taken.
    #[error(
        "the standby is not consistent yet: {}",
        match .0 {
            KnownXidsState::Incomplete => "a transaction on the primary with many subtransactions has to end first",
            _ => "it waits for a record of the primary's running transactions",
        }
    )]
    NotComplete(KnownXidsState),
    /// A record contradicts itself.
    #[error("a record of running transactions contradicts itself: {0}")]
    BadRecord(&'static str),
}

/// Of replay alone.
#[derive(Debug)]
struct ReplayPart<M: Machine> {
    is_taken: M::U32,
    /// The least xid that may be added.
    next: M::U64,
    /// In the state `Incomplete`: all that may be missing is before it.
    missing_before: M::U64,
}

/// The running transactions of the primary.
#[derive(Debug)]
pub struct KnownXids<M: Machine = Native> {
    set: Sets<M>,
    state: Padded<M::U32>,
    replay: Padded<ReplayPart<M>>,
    capacity: u32,
}

impl<M: Machine> KnownXids<M> {
    /// Nothing is known.
    pub fn new(options: KnownXidsOptions) -> Self {
        let capacity = options.capacity.clamp(1, 1 << 30);
        Self {
            set: Sets::new(&KnownXidsOptions { capacity, ..options }),
            state: Padded(M::U32::new(KnownXidsState::Unknown as u32)),
            replay: Padded(ReplayPart {
                is_taken: M::U32::new(0),
                next: M::U64::new(Xid::FIRST_NORMAL.0),
                missing_before: M::U64::new(0),
            }),
            capacity,
        }
    }

    /// The operations of replay, for one worker at a time; `None` if another one has them (K4).
    pub fn replay(&self) -> Option<ReplayedXids<'_, M>> {
        // Acquire: pairs with the Release in `drop`.
        let taken = self.replay.is_taken.compare_exchange(0, 1, Acquire, Relaxed);
        // Made only if it is the caller's: dropped, it gives back what it was made for.
        taken.is_ok().then(|| ReplayedXids(self))
    }

    /// The completeness of the known xids.
    pub fn state(&self) -> KnownXidsState {
        // Acquire: pairs with the Release in `set_state`.
        match self.state.load(Acquire) {
            0 => KnownXidsState::Unknown,
            1 => KnownXidsState::Incomplete,
            _ => KnownXidsState::Complete,
        }
    }

    /// Takes a snapshot into `into`, whose memory it uses again: K1, K2.
    #[inline]
    pub fn snapshot(&self, into: &mut RunningXids) -> Result<(), KnownXidsError> {
        self.take(None, into)
    }

    /// As [`snapshot`](Self::snapshot), with the caller's xmax: K3.
    #[inline]
    pub fn snapshot_below(&self, xmax: Xid, into: &mut RunningXids) -> Result<(), KnownXidsError> {
        self.take(Some(xmax), into)
    }

    #[inline]
    fn take(&self, xmax: Option<Xid>, into: &mut RunningXids) -> Result<(), KnownXidsError> {
        match self.state() {
            KnownXidsState::Complete => {
                dispatch!(&self.set, set => set.snapshot(xmax, into));
                Ok(())
            }
            state => Err(KnownXidsError::NotComplete(state)),
        }
    }
}

/// The operations of replay on the known xids.
#[derive(Debug)]
pub struct ReplayedXids<'a, M: Machine = Native>(&'a KnownXids<M>);

impl<M: Machine> Drop for ReplayedXids<'_, M> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `replay`.
        self.0.replay.is_taken.store(0, Release);
    }
}

impl<M: Machine> ReplayedXids<'_, M> {
    /// Number of running transactions, as far as is known.
    pub fn running(&self) -> u32 {
        dispatch!(&self.0.set, set => set.running())
    }

    /// Number of entries, or xids, between the oldest running one and the newest.
    pub fn range(&self) -> u64 {
        dispatch!(&self.0.set, set => set.range())
    }

    /// The least xid that may be added.
    pub fn next(&self) -> Xid {
        Xid(self.0.replay.next.load(Relaxed))
    }

    /// All xids from `from` to `to` have begun.
    #[inline]
    pub fn add(&mut self, from: Xid, to: Xid) -> Result<(), KnownXidsError> {
        if self.0.state.load(Relaxed) == KnownXidsState::Unknown as u32 {
            return Err(KnownXidsError::Unknown);
        }
        self.add_known(from, to)
    }

    #[inline]
    fn add_known(&mut self, from: Xid, to: Xid) -> Result<(), KnownXidsError> {
        let next = self.next();
        if from < next || to < from || to.0 >= 1 << 62 {
            return Err(KnownXidsError::OutOfOrder { from, to, next });
        }
        let (running, capacity, wanted) = (self.running(), self.0.capacity, to.0 - from.0 + 1);
        if wanted > u64::from(capacity - running) {
            return Err(KnownXidsError::NoRoom {
                wanted,
                running,
                capacity,
            });
        }
        dispatch!(&self.0.set, set => set.add(from.0, to.0));
        self.0.replay.next.store(to.0 + 1, Relaxed);
        Ok(())
    }

    /// `xid` has ended. One that is not there is ignored.
    #[inline]
    pub fn remove(&mut self, xid: Xid) {
        self.remove_tree(xid, &[]);
    }

    /// `xid` and its subtransactions have ended, at one moment (K1). Those that are not there are ignored.
    #[inline]
    pub fn remove_tree(&mut self, xid: Xid, children: &[Xid]) {
        dispatch!(&self.0.set, set => set.remove(xid, children));
    }

    /// All that ran before `xid` have ended, without those in `prepared`.
    pub fn remove_preceding(&mut self, xid: Xid, prepared: &[Xid]) {
        dispatch!(&self.0.set, set => set.remove_preceding(xid, prepared));
    }

    /// Replay has nothing to do at the moment.
    pub fn idle(&mut self) {
        dispatch!(&self.0.set, set => set.idle());
    }

    /// Replays a record of running transactions.
    pub fn apply(&mut self, record: &RunningTransactions) -> Result<KnownXidsState, KnownXidsError> {
        record.check()?;
        match self.0.state() {
            KnownXidsState::Complete => self.remove_preceding(record.oldest_running, record.prepared),
            KnownXidsState::Incomplete if record.overflowed => {
                // No end of a transaction of before is missing any more.
                self.remove_preceding(record.oldest_running, record.prepared);
                if record.oldest_running.0 >= self.0.replay.missing_before.load(Relaxed) {
                    self.set_state(KnownXidsState::Complete);
                }
            }
            KnownXidsState::Unknown | KnownXidsState::Incomplete => self.begin(record)?,
        }
        Ok(self.0.state())
    }

    /// Takes over what the record says. No reader is there yet.
    fn begin(&mut self, record: &RunningTransactions) -> Result<(), KnownXidsError> {
        let replay = &self.0.replay;
        let capacity = self.0.capacity;
        if record.running.len() > capacity as usize {
            return Err(KnownXidsError::NoRoom {
                wanted: record.running.len() as u64,
                running: 0,
                capacity,
            });
        }
        self.remove_preceding(Xid(u64::MAX), &[]);
        dispatch!(&self.0.set, set => set.begin(record.oldest_running, record.newest_ended));
        replay.next.store(Xid::FIRST_NORMAL.0, Relaxed);
        for xid in record.running {
            self.add_known(*xid, *xid)?;
        }
        replay.next.store(record.next.0, Relaxed);
        replay.missing_before.store(record.next.0, Relaxed);
        self.set_state(if record.overflowed {
            KnownXidsState::Incomplete
        } else {
            KnownXidsState::Complete
        });
        Ok(())
    }

    fn set_state(&mut self, state: KnownXidsState) {
        // Release: pairs with the Acquire in `state`.
        self.0.state.store(state as u32, Release);
    }
}

impl RunningTransactions<'_> {
    /// True if the record can be true.
    pub fn check(&self) -> Result<(), KnownXidsError> {
        let xids = self.running;
        let wrong = if !xids.is_sorted_by(|one, other| one < other) {
            "its xids are not in ascending order"
        } else if xids.last().is_some_and(|last| *last >= self.next) || self.oldest_running > self.next {
            "a running xid has not been handed out"
        } else if xids.first().is_some_and(|first| *first < self.oldest_running) {
            "an xid runs that is older than the oldest"
        } else if self.newest_ended >= self.next {
            "an xid has ended that has not been handed out"
        } else if self.next.0 >= 1 << 62 || self.oldest_running < Xid::FIRST_NORMAL {
            "an xid is out of bounds"
        } else {
            return Ok(());
        };
        Err(KnownXidsError::BadRecord(wrong))
    }
}
