//! The array of running transactions: the words that sessions share (`session_array`, which has the rules R1 to R4), the
//! snapshots that are taken of them (`snapshot`), and the way in which transactions leave (`proc_clear`), commits in the
//! order of their records in the log (`commit_order`).
//!
//! Costs: handing out an xid and ending it take one exclusive acquire each; 16 bytes and 128 bytes a session.

mod commits;

use std::ops::Deref;

use clearway_latch::{LwLockOptions, LwLockVariant};
use clearway_machine::{Machine, Native, Padded, Switch};

use crate::commit_order::CommitOrder;
use crate::proc_clear::{Clearing, Leaving, ProcClearVariant};
use crate::session_array::{ProcArrayLatchVariant, SessionArray};
use crate::snapshot::{ArrayParameters, SnapshotVariant, Snapshots};
use crate::{ProcId, Snapshot, Xid};

/// The variants that an array of running transactions is built with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcArrayOptions {
    /// The switch `proc_array_latch`.
    pub latch: ProcArrayLatchVariant,
    /// The switch `snapshot`.
    pub snapshot: SnapshotVariant,
    /// The switch `proc_clear`.
    pub clear: ProcClearVariant,
    /// The options of its LwLocks.
    pub lwlock: LwLockOptions,
}

impl ProcArrayOptions {
    /// The default, and all that differ from it in one switch of the array: what test suites run over.
    pub fn each_variant() -> impl Iterator<Item = Self> {
        let default = Self::default();
        let latches = ProcArrayLatchVariant::ALL
            .iter()
            .map(move |&latch| Self { latch, ..default });
        let snapshots = SnapshotVariant::ALL
            .iter()
            .map(move |&snapshot| Self { snapshot, ..default });
        let clears = ProcClearVariant::ALL
            .iter()
            .map(move |&clear| Self { clear, ..default });
        let others = latches.chain(snapshots).chain(clears);
        std::iter::once(default).chain(others.filter(move |options| *options != default))
    }
}

impl From<LwLockOptions> for ProcArrayOptions {
    fn from(lwlock: LwLockOptions) -> Self {
        Self {
            lwlock,
            ..Self::default()
        }
    }
}

impl From<LwLockVariant> for ProcArrayOptions {
    fn from(lwlock: LwLockVariant) -> Self {
        LwLockOptions::from(lwlock).into()
    }
}

/// The array of running transactions. What concerns its words alone are methods of [`SessionArray`].
#[derive(Debug)]
pub struct ProcArray<M: Machine = Native> {
    sessions: SessionArray<M>,
    snapshots: Padded<Snapshots<M>>,
    clearing: Clearing<M>,
    order: CommitOrder<M>,
}

impl<M: Machine> Deref for ProcArray<M> {
    type Target = SessionArray<M>;

    #[inline(always)]
    fn deref(&self) -> &SessionArray<M> {
        &self.sessions
    }
}

impl<M: Machine> ProcArray<M> {
    /// An array for `capacity` sessions; `first_xid` is the next to be handed out, and all before it have ended.
    pub fn new(capacity: u32, options: impl Into<ProcArrayOptions>, first_xid: Xid) -> Self {
        let options = options.into();
        let lwlock = options.lwlock;
        let parameters = ArrayParameters {
            capacity,
            first_xid,
            lwlock,
        };
        Self {
            sessions: SessionArray::new(capacity, options.latch, lwlock, first_xid),
            snapshots: Padded(Snapshots::new(options.snapshot, parameters)),
            clearing: Clearing::new(options.clear, capacity),
            order: CommitOrder::new(capacity),
        }
    }

    /// The parts of the array that change when a transaction leaves.
    #[inline]
    fn leaving(&self) -> Leaving<'_, M> {
        Leaving {
            sessions: &self.sessions,
            snapshots: &self.snapshots,
            order: &self.order,
        }
    }

    /// Hands out the next xid to `proc`.
    pub fn assign_xid(&self, proc: ProcId) -> Xid {
        let prepare = |xid| self.snapshots.xid_is_handed_out(&self.sessions, xid);
        self.sessions.assign_xid(proc, prepare)
    }

    /// Takes a snapshot into `snapshot`, reusing its memory, and holds back the horizon for `proc` until
    /// [`clear_xmin`](SessionArray::clear_xmin) or [`end`](Self::end). A slot keeps the oldest xmin it has installed.
    #[inline]
    pub fn snapshot(&self, proc: ProcId, snapshot: &mut Snapshot) {
        self.snapshots.take(&self.sessions, proc, snapshot);
    }

    /// The transaction of `proc` has ended, and the commit log says how (R2). Without an xid only the xmin goes. For a
    /// commit that is logged: [`end_commit`](Self::end_commit).
    pub fn end(&self, proc: ProcId, xid: Option<Xid>) {
        let Some(xid) = xid else {
            return self.sessions.clear_xmin(proc);
        };
        self.sessions.assert_runs(proc, xid);
        self.clearing.clear(self.leaving(), proc, 0);
    }

    /// The end of recovery: `next` is handed out next, and all before have ended (P2 of `session_array::standby`).
    pub fn continue_from(&self, next: Xid) {
        self.sessions
            .continue_from(next, || self.snapshots.continue_from(next));
    }
}

#[cfg(test)]
mod tests;
