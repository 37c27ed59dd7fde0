//! The state of a transaction.
//!
//! A transaction that commits writes its status into the commit log and leaves the array of running transactions after
//! that. Whether it runs must therefore be asked first. Asked the other way round, a status read before the commit and
//! an array read after it make a committed transaction look like one that was interrupted by a crash: not running, and
//! without a status.

use std::io;

use clearway_machine::Machine;

use crate::{CommitLog, ProcArray, Status, StatusDevice, Xid};

/// The state of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionState {
    /// It runs.
    Running,
    /// It has committed.
    Committed,
    /// It was rolled back, or interrupted by a crash.
    Aborted,
}

/// The state of `xid` now: from the array first, then from the commit log.
pub fn transaction_state<M: Machine, D: StatusDevice>(
    array: &ProcArray<M>,
    log: &CommitLog<M, D>,
    xid: Xid,
) -> io::Result<TransactionState> {
    if array.is_running(xid) {
        return Ok(TransactionState::Running);
    }
    final_state(log, xid)
}

/// The final state of `xid`, which does not run any more.
pub fn final_state<M: Machine, D: StatusDevice>(
    log: &CommitLog<M, D>,
    xid: Xid,
) -> io::Result<TransactionState> {
    Ok(match log.get(xid)? {
        Status::Committed => TransactionState::Committed,
        _ => TransactionState::Aborted,
    })
}
