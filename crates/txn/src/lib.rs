//! Transactions without pages: which of them run, what each snapshot sees, how they ended, and which waits for which.
//!
//! | module | holds |
//! | --- | --- |
//! | `xid` | transaction ids |
//! | `snapshot` | which transactions a statement regards as finished; a variant a file |
//! | `proc_array` | the array of running transactions; handing out xids; the horizon; the latch over it |
//! | `proc_clear` | how a transaction leaves that array; a variant a file |
//! | `group` | workers of which one takes the same step for all |
//! | `commit_log` | two bits a transaction: in progress, committed, aborted, sub-committed; a variant a file |
//! | `transaction_state` | how a transaction stands |
//! | `lock_mode` | the eight lock modes and their conflicts |
//! | `lock_table` | relation and tuple locks, held to the end of a transaction |
//! | `transaction_wait` | waiting for the end of another transaction |
//! | `deadlock` | finding cycles among all of these waits |
//!
//! The crate knows nothing of pages and files: the commit log reads and writes through a [`StatusDevice`].

mod commit_log;
mod deadlock;
mod group;
mod lock_mode;
mod lock_table;
#[cfg(test)]
mod no_pages;
mod proc_array;
mod proc_clear;
mod snapshot;
mod transaction_state;
mod transaction_wait;
mod xid;

pub use commit_log::{
    COMMIT_LOG_PAGE_HEADER, COMMIT_LOG_PAGE_SIZE, CommitLog, CommitLogOptions, CommitLogVariant, Status,
    StatusDevice, XIDS_PER_PAGE,
};
pub use lock_mode::LockMode;
pub use lock_table::{LockError, LockManager, LockTag, LockWait, RelationLocksVariant};
pub use proc_array::{ProcArray, ProcArrayFull, ProcArrayLatchVariant, ProcArrayOptions, ProcId};
pub use proc_clear::ProcClearVariant;
pub use snapshot::{Snapshot, SnapshotVariant};
pub use transaction_state::{TransactionState, final_state, transaction_state};
pub use xid::Xid;
