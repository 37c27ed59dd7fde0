//! Leaving the array of running transactions, at the end of one that has an xid. The switch `proc_clear`.
//!
//! # Contract
//! - When [`Clear::clear`] returns, the transaction has left: R2 of the array holds, and a snapshot taken from now on
//!   regards it as finished. Or it is a commit behind one that is not ready to leave: then its session counts as waiting
//!   (`commit_order`).
//! - It neither fails nor waits for anything but latches: the commit is in the log already.
//!
//! The step itself, [`ExclusiveLeaving::end`](leaving::ExclusiveLeaving::end), is that of all variants: it lets commits
//! leave in the order of their records, those of other sessions too that are ready. A variant decides which session takes
//! the latch, and when.
//!
//! | variant | the latch is taken by | exclusive acquires of n ends at once | wake-ups under the latch |
//! | --- | --- | --- | --- |
//! | `single` | each session | n | none, but each release may wake the next waiter |
//! | `group` | the first session, for all that joined until it has the latch | 1 | none |

mod group;
mod leaving;
mod single;

use clearway_machine::{Machine, variants};

pub(crate) use self::leaving::Leaving;
use crate::ProcId;

/// The state of one variant beside the array, and its way to let a transaction leave.
pub(crate) trait Clear<M: Machine> {
    /// For an array of `capacity` sessions.
    fn new(capacity: u32) -> Self;

    /// Takes the transaction of `proc` out of the array, by [`ExclusiveLeaving::end`](leaving::ExclusiveLeaving::end).
    fn clear(&self, array: Leaving<'_, M>, proc: ProcId, durable: u64);
}

variants! {
    /// The way in which a transaction leaves the array of running ones.
    pub enum ProcClearVariant = "proc_clear", best Single, planned [] {
        /// Each by itself, under the exclusive latch.
        Single = "single": single::Clearing<M>,
        /// Those that end at once in a group, all by the first of them.
        Group = "group": group::Clearing<M>,
    }
    why {
        Single: "On two busy CPUs group does not differ from it by more than the noise, with the sync and without."
            in "docs/mechanisms/snapshots.md#many-sessions-end-at-once";
        Group: "Not measured on a quiet machine yet. Simulated on four sockets, it \
            makes 1.14 times single's commits with 434 clients, and 2.5 times with the scanned queue."
            in "docs/commit-path-predictions.md#leaving-the-array-proc-clear";
    }

    /// The array's state for its variant.
    #[derive(Debug)]
    pub(crate) enum Clearing[M: Machine], called by dispatch;
}

impl<M: Machine> Clearing<M> {
    pub(crate) fn new(variant: ProcClearVariant, capacity: u32) -> Self {
        dispatch!(new variant => Clear::new(capacity))
    }

    #[inline]
    pub(crate) fn clear(&self, array: Leaving<'_, M>, proc: ProcId, durable: u64) {
        dispatch!(self, clearing => clearing.clear(array, proc, durable))
    }
}
