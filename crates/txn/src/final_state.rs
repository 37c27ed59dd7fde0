//! The states of a transaction, and the state of one that has ended, which is in the commit log.

use std::io;

use clearway_machine::Machine;

use crate::{CommitLog, Status, StatusDevice, Xid};

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
