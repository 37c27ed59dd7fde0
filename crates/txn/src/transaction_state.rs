//! The state of a transaction now.
//!
//! A transaction that commits writes its status into the commit log and leaves the array of running transactions after
//! that. Whether it runs must therefore be asked first. Asked the other way round, a status read before the commit and
//! an array read after it make a committed transaction look like one that was interrupted by a crash: not running, and
//! without a status.

use std::io;

use clearway_machine::Machine;

use crate::{CommitLog, ProcArray, StatusDevice, TransactionState, Xid, final_state};

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
