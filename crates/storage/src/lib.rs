//! Storage: pages, the buffer pool, the write-ahead log, heaps, B+trees, checkpoints and recovery.
//!
//! A room depends on those above it only; `scripts/module-cycles` finds a circle of rooms.
//!
//! | room | holds |
//! | --- | --- |
//! | `error`, `page` | errors and findings of checks; the form of a page, and the types of positions and page numbers |
//! | [`disk`] | [`disk::Disk`]: the file system under everything here |
//! | [`wal`] | the log: insertion, flushing, reading, segments; timelines, which say whose log a position belongs to |
//! | `files` | what is in a data directory besides the log: relations and their lengths, the control file, the commit log's pages |
//! | `replication` | what others need of this server, and what a standby has of another one: the state that commits, sessions and followers look at |
//! | [`commit`] | the end of a transaction: the order of its steps |
//! | `buffer` | pages in memory |
//! | `change` | [`AtomicChange`]: changing pages and logging it |
//! | `storage` | [`Storage`]: everything of one data directory that statements use, from one `Arc` |
//! | `records` | what each kind of log record says, and what it does when it is replayed |
//! | [`heap`], [`btree`] | rows; indexes |
//! | [`standby`] | receiving the log of another server, and replaying it beside sessions |
//! | `open` | opening a data directory: recovery, to the log's end or to a point; checkpoints; a promotion |
//! | [`backup`] | making a copy of the files for others, and a standby's directory of such a copy |
//! | [`rewind`] | making a former primary's directory a standby's again |
//! | `maintenance` | vacuum; the check of what is on disk |
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
//!   never valid, and each relation's length is known from the last checkpoint and the log (`src/files/lengths.rs`);
//!   a relation without its file is `MissingFile`. A page newer than the log's end, or a log that ends before
//!   the control file says so, is an error too.
//! - E4: damage to log that was durable is an error with file and offset, and not the log's end, if a later record
//!   proves the damage (`src/open/recovery/mod.rs` says what can be proven and what cannot). Recovery then
//!   changes nothing.
//! - E5: everything in a data directory goes through `disk::Disk`. Each sync there has a purpose, and an image that
//!   needs it (`tests/power_cuts.rs` lists them).

pub mod backup;
pub mod btree;
mod buffer;
mod change;
pub mod commit;
pub mod disk;
mod error;
mod files;
pub mod heap;
mod maintenance;
mod open;
pub mod page;
mod records;
mod replication;
pub mod rewind;
pub mod standby;
mod storage;
pub mod wal;

pub use backup::received_copy;
pub use buffer::{
    BufferClockVariant, BufferMapVariant, BufferPool, BufferPoolOptions, CountedPages, FrameRing, PageCounts,
    PageDevice, PageExclusive, PageLatchVariant, PageReadVariant, PageShared, PageUpdate, PagesOnDisk,
    PinnedPage, RacyPage,
};
pub use change::{AtomicChange, ChangeLog};
pub use commit::{
    AnswerLevel, BeforeVisible, CommitCounters, CommitOptions, CommitOrderVariant, CommitPath, CommitStates,
    CommitVariants, CommitWait, Commits, Gate, LockReleaseVariant, NotCommitted, Publish, Reader,
    RecentCommits, RowInHand, SeenCommits, SessionSnapshot, Unsecured, wall_clock,
};
pub use error::findings::{Finding, Findings, Progress};
pub use error::{Result, StorageError};
pub use files::{descriptors, directory_state};
pub use maintenance::vacuum;
pub use open::directory_log;
pub use open::recovery::{RecoveryPoint, RecoveryReport, RecoveryTarget};
pub use page::{Lsn, NoPosition, PAGE_HEADER, PAGE_SIZE, PageId, PageKind, RelId};
pub use replication::{cleanup, retention, running_transactions, sync_replication};
pub use standby::{Standby, StandbyOptions};
pub use storage::background_state::CheckpointCounts;
pub use storage::page_room::PageRoomVariant;
pub use storage::{Storage, StorageOptions, background};
pub use wal::{log_digest, timeline};
