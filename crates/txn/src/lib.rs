//! Transactions without pages: who runs, what each snapshot sees, how transactions ended, and who waits for whom.
//!
//! | file | holds |
//! | --- | --- |
//! | `xid` | transaction ids |
//! | `snapshot` | which transactions a statement regards as still running |
//! | `proc_array` | the array of running transactions; handing out xids; the horizon |
//! | `proc_array_latch` | the latch over it |
//! | `commit_log` | two bits a transaction: in progress, committed, aborted, sub-committed |
//! | `lock_mode` | the eight lock modes and their conflicts |
//! | `lock_table` | relation and tuple locks, held to the end of a transaction |
//! | `fate` | how a transaction stands |
//! | `transaction_wait` | waiting for the end of another transaction |
//! | `deadlock` | finding cycles among all of these waits |
//!
//! The crate knows nothing of pages and files: the commit log reads and writes through a [`StatusDevice`].

mod commit_log;
mod deadlock;
mod fate;
mod lock_mode;
mod lock_table;
mod proc_array;
mod proc_array_latch;
mod snapshot;
mod transaction_wait;
mod xid;

pub use commit_log::{
    COMMIT_LOG_PAGE_HEADER, COMMIT_LOG_PAGE_SIZE, CommitLog, CommitLogVariant, Status, StatusDevice,
    XIDS_PER_PAGE,
};
pub use fate::{Fate, ended, fate};
pub use lock_mode::LockMode;
pub use lock_table::{LockError, LockManager, LockTag, LockWait, RelationLocksVariant};
pub use proc_array::{ProcArray, ProcArrayFull, ProcClearVariant, ProcId, SnapshotVariant};
pub use proc_array_latch::ProcArrayLatchVariant;
pub use snapshot::Snapshot;
pub use xid::Xid;
