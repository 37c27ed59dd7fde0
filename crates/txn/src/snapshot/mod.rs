//! Snapshots: which transactions a statement regards as finished. The switch `snapshot`.
//!
//! # An example
//! Accounts 1 and 2 hold 50 each. Alice moves 10 from one to the other while Bob adds them up.
//!
//! | time | Alice, transaction 100 | Bob |
//! | --- | --- | --- |
//! | 1 | writes a version of account 1 that says 40 | |
//! | 2 | | takes a snapshot: 100 is running |
//! | 3 | | reads account 1: the version of 100 does not count, so 50 |
//! | 4 | writes a version of account 2 that says 60 | |
//! | 5 | commits | |
//! | 6 | | reads account 2: 100 has committed by now, and still does not count, so 50 |
//!
//! A reader that asks at each row whether its writer has committed *by now* adds 50 and 60, a sum that never was. Bob
//! asks what had committed *when the snapshot was taken*, and gets the same answer at times 3 and 6.
//!
//! # Contract
//! - S1: an answer about a transaction stays the same for as long as the snapshot is in use.
//! - S2: a snapshot that regards a transaction as finished regards every transaction as finished that ended before it.
//!   So it never sees an effect without its cause.
//! - S3: what a snapshot regards as running, the horizon does not pass, from when the snapshot is taken until its
//!   session calls [`SessionArray::clear_xmin`] or `ProcArray::end`.
//! - S4: the answer about the session's own transaction means nothing. A caller looks for its own xid first.
//! - S5: a snapshot taken after its session has learnt that a transaction has ended, by [`SessionArray::xid_of`] too,
//!   regards it as finished.
//!
//! A variant is a file with a [`SnapshotSource`], which takes snapshots, and the [`SnapshotView`] that it fills. What a
//! snapshot is made of stays inside: others ask [`Snapshot::sees`], or one of the questions beside it.

mod csn;
mod known;
mod last_committed;
mod reuse;
mod running_list;
mod scan;
mod shared_cache;

use std::io;

use clearway_latch::LwLockOptions;
use clearway_machine::{Machine, variants};

use self::last_committed::LastCommitted;
use crate::session_array::SessionArray;
use crate::{CommitLog, ProcId, StatusDevice, TransactionState, Xid};

/// The answers of one variant's snapshots.
pub(crate) trait SnapshotView: Default {
    /// The state of `xid` when the snapshot was taken. `Running` also means that it ended, or began, later.
    fn state<M: Machine, D: StatusDevice>(
        &self,
        xid: Xid,
        log: &CommitLog<M, D>,
    ) -> io::Result<TransactionState>;

    /// True if `xid`, which has committed by now, had committed when the snapshot was taken.
    fn sees_committed<M: Machine, D: StatusDevice>(
        &self,
        xid: Xid,
        log: &CommitLog<M, D>,
    ) -> io::Result<bool>;
}

/// The properties of the array that a variant may need.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArrayParameters {
    /// The most sessions that can be attached.
    pub(crate) capacity: u32,
    /// The next xid to be handed out; all before it have ended.
    pub(crate) first_xid: Xid,
    /// The options of LwLocks.
    pub(crate) lwlock: LwLockOptions,
}

/// The state of one variant beside the array of running transactions, and its way to take a snapshot.
pub(crate) trait SnapshotSource<M: Machine> {
    /// Its snapshots.
    type View: SnapshotView;

    /// For one array.
    fn new(parameters: ArrayParameters) -> Self;

    /// A view in which nothing has been taken yet.
    fn empty_view(&self) -> Self::View {
        Self::View::default()
    }

    /// Takes a snapshot for `proc` into `view`, whose memory it reuses, and installs its xmin (S3).
    fn take(&self, array: &SessionArray<M>, proc: ProcId, view: &mut Self::View);

    /// `xid` is about to be handed out. The caller holds XidGen exclusively, and not ProcArray.
    fn xid_is_handed_out(&self, _array: &SessionArray<M>, _xid: Xid) {}

    /// `xid` is about to leave the array: S5. The caller holds ProcArray exclusively, and the status of `xid` is in the
    /// commit log.
    fn transaction_ends(&self, _xid: Xid) {}

    /// The end of recovery: all before `next` have ended. The caller holds ProcArray exclusively.
    fn continue_from(&self, next: Xid) {
        // A snapshot of before is not used again.
        self.transaction_ends(next);
    }
}

variants! {
    /// The way in which a snapshot is taken.
    pub enum SnapshotVariant = "snapshot", best Reuse, planned [] {
        /// Scan the running transactions.
        Scan = "scan": scan::Source<M>,
        /// One scan for all sessions, until a transaction with an xid ends.
        SharedCache = "shared-cache": shared_cache::Source<M>,
        /// The session's last one again, while no transaction with an xid has ended since.
        Reuse = "reuse": reuse::Source<M>,
        /// One number, below which a row's transaction must have ended.
        Csn = "csn": csn::Source<M>,
    }
    why {
        Reuse: "A read beside few writers changes no shared line: simulated on four sockets it makes 2.1 times the \
            transactions of scan with 1 % writers. On two CPUs it is level."
            in "docs/read-path-predictions.md#snapshots-snapshots";
        Csn: "Simulated on four sockets, it makes 1.6 and 1.2 times the transactions of scan with 144 clients of which \
            10 or 50 % write, where reuse makes 1.4 and 1.1; but 0.5 with 434 clients of which 50 % write and \
            log_flush = single. On two CPUs it is level."
            in "docs/mechanisms/snapshots.md#why-reuse-and-not-csn";
    }

    /// The array's part of its variant.
    #[derive(Debug)]
    pub(crate) enum Snapshots[M: Machine], called by dispatch;
}

/// A snapshot's part of the variant that it was taken under.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Views {
    Scan(scan::View),
    SharedCache(shared_cache::View),
    Reuse(reuse::View),
    Csn(csn::View),
}

/// Calls a method of the variant's view.
macro_rules! dispatch_view {
    ($views:expr, $view:ident => $call:expr) => {
        match $views {
            Views::Scan($view) => $call,
            Views::SharedCache($view) => $call,
            Views::Reuse($view) => $call,
            Views::Csn($view) => $call,
        }
    };
}

impl<M: Machine> Snapshots<M> {
    pub(crate) fn new(variant: SnapshotVariant, parameters: ArrayParameters) -> Self {
        dispatch!(new variant => SnapshotSource::new(parameters))
    }

    #[inline]
    pub(crate) fn take(&self, array: &SessionArray<M>, proc: ProcId, snapshot: &mut Snapshot) {
        match (self, &mut snapshot.view) {
            (Self::Scan(source), Views::Scan(view)) => source.take(array, proc, view),
            (Self::SharedCache(source), Views::SharedCache(view)) => source.take(array, proc, view),
            (Self::Reuse(source), Views::Reuse(view)) => source.take(array, proc, view),
            (Self::Csn(source), Views::Csn(view)) => source.take(array, proc, view),
            _ => self.take_first(array, proc, snapshot),
        }
    }

    /// Takes a snapshot into one that was of another variant, as every new one may be.
    #[cold]
    fn take_first(&self, array: &SessionArray<M>, proc: ProcId, snapshot: &mut Snapshot) {
        snapshot.view = dispatch!(in Views, self, source => source.empty_view());
        self.take(array, proc, snapshot);
    }

    #[inline]
    pub(crate) fn xid_is_handed_out(&self, array: &SessionArray<M>, xid: Xid) {
        dispatch!(self, source => source.xid_is_handed_out(array, xid))
    }

    pub(crate) fn continue_from(&self, next: Xid) {
        dispatch!(self, source => source.continue_from(next))
    }

    #[inline]
    pub(crate) fn transaction_ends(&self, xid: Xid) {
        dispatch!(self, source => source.transaction_ends(xid))
    }
}

impl Snapshot {
    /// The state of `xid` when the snapshot was taken. `Running` also means that it ended, or began, later.
    #[inline]
    pub fn state<M: Machine, D: StatusDevice>(
        &self,
        xid: Xid,
        log: &CommitLog<M, D>,
    ) -> io::Result<TransactionState> {
        if self.last_committed.is(xid) {
            return Ok(TransactionState::Committed);
        }
        let state = dispatch_view!(&self.view, view => view.state(xid, log))?;
        if state == TransactionState::Committed {
            self.last_committed.set(xid);
        }
        Ok(state)
    }

    /// True if `xid` had committed when the snapshot was taken. The caller knows that it has committed by now,
    /// from a hint bit or because it met something that only a commit makes; that spares most variants the
    /// commit log.
    #[inline]
    pub fn sees_committed<M: Machine, D: StatusDevice>(
        &self,
        xid: Xid,
        log: &CommitLog<M, D>,
    ) -> io::Result<bool> {
        dispatch_view!(&self.view, view => view.sees_committed(xid, log))
    }
}

/// The transactions that had finished at one moment. The default one, never taken, regards all as running. One value is
/// used with one array and its commit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    view: Views,
    last_committed: LastCommitted,
}

impl Default for Snapshot {
    fn default() -> Self {
        Self {
            view: Views::Scan(scan::View::default()),
            last_committed: LastCommitted::default(),
        }
    }
}

impl Snapshot {
    /// True if the snapshot sees what `xid` has done: it had committed when the snapshot was taken.
    #[inline]
    pub fn sees<M: Machine, D: StatusDevice>(&self, xid: Xid, log: &CommitLog<M, D>) -> io::Result<bool> {
        Ok(self.state(xid, log)? == TransactionState::Committed)
    }
}

#[cfg(test)]
impl<M: Machine> Snapshots<M> {
    /// Parts of its memory that a variant keeps for old snapshots alone.
    pub(crate) fn kept_for_old_snapshots(&self) -> usize {
        match self {
            Self::Csn(source) => source.older_chunks(),
            _ => 0,
        }
    }
}
