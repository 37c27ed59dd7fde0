//! Storage: pages, the buffer pool, the write-ahead log, heaps, B+trees, checkpoints and recovery.
//!
//! | module | holds |
//! | --- | --- |
//! | `storage` | [`Storage`]: everything of one data directory, from one `Arc` |
//! | `page`, `data_file`, `control_file` | what is on disk besides the log |
//! | `data_directory` | what a directory holds before it is opened; making a new one |
//! | `disk` | [`disk::Disk`]: the file system under all of that |
//! | `lengths` | how many pages each relation has, so that a lost page is an error |
//! | `wal` | the log |
//! | `buffer` | pages in memory |
//! | `change` | [`AtomicChange`]: changing pages and logging it |
//! | `commit` | the end of a transaction: the order of its steps |
//! | `checkpoint`, `recovery` | bounding and doing the replay of the log |
//! | `status_pages` | the commit log's pages on disk |
//! | `heap`, `btree`, `fsm`, `vacuum` | rows, indexes, free space |
//! | `check` | whether what is on disk is sound |
//!
//! README.md says where the rules of access stand.

pub mod btree;
mod buffer;
mod change;
mod check;
mod checkpoint;
pub mod commit;
mod control_file;
mod data_directory;
mod data_file;
pub mod disk;
mod error;
mod fsm;
pub mod heap;
mod lengths;
pub mod page;
mod recovery;
mod status_pages;
mod storage;
pub mod vacuum;
pub mod wal;

pub use buffer::{
    BufferMapVariant, BufferPool, BufferPoolOptions, PageDevice, PageExclusive, PageLatchVariant, PageShared,
    PageUpdate, PagesOnDisk, PinnedPage,
};
pub use change::{AtomicChange, ChangeLog};
pub use check::{Finding, Findings, Progress};
pub use commit::{CommitCounters, CommitPath, Commits, NotCommitted};
pub use error::{Result, StorageError};
pub use page::{Lsn, PAGE_HEADER, PAGE_SIZE, PageId, PageKind, RelId};
pub use recovery::RecoveryReport;
pub use storage::{Storage, StorageOptions};
