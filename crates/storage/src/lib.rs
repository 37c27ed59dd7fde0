//! Storage: pages, the buffer pool, the write-ahead log, heaps, B+trees, checkpoints and recovery.
//!
//! | module | holds |
//! | --- | --- |
//! | `storage` | [`Storage`]: everything of one data directory, from one `Arc` |
//! | `page`, `data_file`, `control_file` | what is on disk besides the log |
//! | `data_directory` | what a directory holds before it is opened; making a new one |
//! | [`directory_state`] | the same for a program that does not open it |
//! | `disk` | [`disk::Disk`]: the file system under all of that |
//! | `lengths` | how many pages each relation has, so that a lost page is an error |
//! | `wal` | the log |
//! | `buffer` | pages in memory |
//! | `change` | [`AtomicChange`]: changing pages and logging it |
//! | `commit` | the end of a transaction: the order of its steps |
//! | `running_transactions`, `cleanup` | what is logged for standbys: which transactions run, which versions go |
//! | `sync_replication` | commits that wait until standbys have them |
//! | `retention`, `backup` | what of the log stays for others, and a copy of the files for them |
//! | `timeline`, `new_timeline` | whose log a position belongs to; how the log goes on under a new number |
//! | `received_copy` | the other end: making a standby's directory of such a copy |
//! | `checkpoint`, `recovery` | bounding and doing the replay of the log |
//! | `background_log` | what the background threads log of their own account |
//! | `status_pages` | the commit log's pages on disk |
//! | `heap`, `page_room`, `btree`, `root_hints`, `fsm`, `vacuum` | rows, indexes and where a descent begins, free space |
//! | `check`, `check_findings` | whether what is on disk is sound |
//!
//! README.md says where the rules of access are.
//!
//! # Rules for errors
//! - E1: an error of the log's device, or a failed sync of a file or directory, ends the process with a message on
//!   standard error. It is not tried again: after a failed fsync the content of the disk is unknown.
//!   Directories are open from the start, so that no sync fails for want of a descriptor. (At the start a
//!   failed sync is an error: nothing was acknowledged yet.)
//! - E2: a full disk is `DiskFull` (53100), before anything is changed. `begin_change`, `assign_xid`, `create_rel`
//!   and `commit` make sure of room in the log for a segment ahead; a rollback needs none.
//! - E3: a page that is not what was last written in its place is `CorruptPage` with file and offset, for the
//!   caller that asks for it; the rest goes on. Its checksum covers its relation and number, a page of zeros is
//!   never valid, and each relation's length is known from the last checkpoint and the log (`src/lengths.rs`);
//!   a relation without its file is `MissingFile`. A page newer than the log's end, or a log that ends before
//!   the control file says so, is an error too.
//! - E4: damage to log that was durable is an error with file and offset, and not the log's end, if a later record
//!   proves the damage (`src/recovery.rs` says what can be proven and what cannot). Recovery then changes
//!   nothing.
//! - E5: everything in a data directory goes through `disk::Disk`. Each sync there has a purpose, and an image that
//!   needs it (`tests/power_cuts.rs` lists them).

pub mod background;
mod background_log;
pub mod backup;
pub mod btree;
mod buffer;
mod byte_buffers;
mod change;
mod check;
mod check_findings;
mod checkpoint;
pub mod cleanup;
pub mod commit;
mod control_file;
mod copy_manifest;
mod data_directory;
mod data_file;
pub mod descriptors;
pub mod directory_log;
pub mod directory_state;
pub mod disk;
mod error;
mod fsm;
pub mod heap;
mod lengths;
pub mod log_digest;
mod new_timeline;
pub mod page;
mod page_room;
pub mod received_copy;
mod recovery;
pub mod retention;
mod root_hints;
pub mod running_transactions;
pub mod standby;
mod status_journal;
mod status_pages;
mod storage;
pub mod sync_replication;
pub mod timeline;
pub mod vacuum;
pub mod wal;
pub mod wall_clock;

pub use buffer::{
    BufferClockVariant, BufferMapVariant, BufferPool, BufferPoolOptions, FrameRing, PageDevice,
    PageExclusive, PageLatchVariant, PageReadVariant, PageShared, PageUpdate, PagesOnDisk, PinnedPage,
    RacyPage,
};
pub use change::{AtomicChange, ChangeLog};
pub use check_findings::{Finding, Findings, Progress};
pub use commit::{
    AnswerLevel, BeforeVisible, CommitCounters, CommitOptions, CommitOrderVariant, CommitPath, CommitStates,
    CommitWait, Commits, Gate, LockReleaseVariant, NotCommitted, Publish, Reader, RecentCommits, RowInHand,
    SeenCommits, SessionSnapshot, Unsecured,
};
pub use error::{Result, StorageError};
pub use page::{Lsn, NoPosition, PAGE_HEADER, PAGE_SIZE, PageId, PageKind, RelId};
pub use page_room::PageRoomVariant;
pub use recovery::{RecoveryPoint, RecoveryReport, RecoveryTarget};
pub use standby::{Standby, StandbyOptions};
pub use storage::{Storage, StorageOptions};
