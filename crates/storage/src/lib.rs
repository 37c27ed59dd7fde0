//! Storage: pages, the buffer pool, the write-ahead log, heaps, B+trees, checkpoints and recovery.
//!
//! | module | holds |
//! | --- | --- |
//! | `storage` | [`Storage`]: everything of one data directory, from one `Arc` |
//! | `page`, `data_file`, `control_file` | what is on disk besides the log |
//! | `wal` | the log |
//! | `buffer` | pages in memory |
//! | `change` | [`AtomicChange`]: changing pages and logging it |
//! | `checkpoint`, `recovery` | bounding and doing the replay of the log |
//! | `status_pages` | the commit log's pages on disk |
//! | `heap`, `btree`, `fsm`, `vacuum` | rows, indexes, free space |
//!
//! README.md lists the rules of access by number.

pub mod btree;
mod buffer;
mod change;
mod checkpoint;
mod control_file;
mod data_file;
mod error;
mod fsm;
pub mod heap;
pub mod page;
mod recovery;
mod status_pages;
mod storage;
pub mod vacuum;
pub mod wal;

pub use buffer::{BufferMapping, PageExclusive, PageLatchKind, PageShared, PageUpdate, PinnedPage};
pub use change::AtomicChange;
pub use error::{Result, StorageError};
pub use page::{Lsn, PAGE_HEADER, PAGE_SIZE, PageId, PageKind, RelId};
pub use recovery::RecoveryReport;
pub use storage::{Storage, StorageOptions};
